"""What is taken for a summary, and what is refused (rule S3)."""

from __future__ import annotations

from collections.abc import Sequence

from .._marks import unmarked
from .._text import shown
from ._fencing import harmless, repeats_fence
from ._request import SummaryEntry, SummaryRequest


class SummaryRefusedError(Exception):
    """There is no summary; the text says why, and holds nothing of it. What the summarizer raised is the cause."""


def checked_answer(answer: object, nonce: str, request: SummaryRequest) -> str:
    """The text of an answer, without a mark and without white space around it.

    Refuses what is no text, empty, or the conversation itself.
    """
    if not isinstance(answer, str):
        raise SummaryRefusedError(f"the summarizer gave {shown(answer)} and no text")
    text = unmarked(answer.strip()).strip()
    if not text:
        raise SummaryRefusedError("the summary is empty")
    # Short summaries of parts, one behind the other, may be what merges them.
    if repeats_fence(text, nonce) or (request.purpose != "merge" and _is_slice(text, request.entries)):
        raise SummaryRefusedError("the summary is the conversation itself")
    return harmless(text)


def _is_slice(text: str, entries: Sequence[SummaryEntry]) -> bool:
    """Whether it is a piece of the conversation, copied over the end of what one speaker said.

    One sentence or one message, word for word, may be a good summary of a short conversation.
    """
    flat = _flat(text)
    said = [_flat(entry.text) for entry in entries]
    return len(flat) > max(map(len, said), default=0) and flat in " ".join(said)


def _flat(text: str) -> str:
    return " ".join(text.split())
