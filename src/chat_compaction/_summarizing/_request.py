"""What a summariser is asked: a request is a value, and a summariser any callable from it to text."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import attrs

Purpose = Literal["summary", "chunk", "merge"]


@attrs.frozen(repr=False)
class SummaryEntry:
    """One piece of what is to be summarised: who speaks, and what.

    ``speaker`` is ``"user"``, ``"assistant"``, ``"tool"``, ``"system"``, or ``"summary"`` for the summary of
    what came before. The text is not fenced; it is for summarisers that work without a model.
    """

    speaker: str
    text: str

    def __repr__(self) -> str:
        return f"<SummaryEntry {self.speaker}: {len(self.text)} characters>"


@attrs.frozen(kw_only=True, repr=False)
class SummaryRequest:
    """One request to a summariser, which answers with the text of a summary and nothing else.

    ``instructions`` go where the model takes its orders (the system message), ``text`` is the one user message:
    the conversation between fences, as data. ``max_tokens`` bounds the answer; ask the model for no more. Offer
    no tools, and send nothing else.

    ``purpose``: ``"summary"`` for the whole of it, ``"chunk"`` for one piece of a conversation that is too long
    for the summariser, ``"merge"`` for the summaries of such pieces. ``entries`` are the same words apart and
    without fences, and ``must_keep`` what has to be in the answer word for word: for summarisers that need no
    model.
    """

    instructions: str
    text: str
    max_tokens: int
    purpose: Purpose = "summary"
    entries: tuple[SummaryEntry, ...] = ()
    must_keep: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        """Instructions and text as one, for models that take a single text."""
        return f"{self.instructions}\n\n{self.text}"

    @property
    def digest(self) -> str:
        """A name for what is asked: equal requests have equal ones."""
        asked = repr((self.purpose, self.max_tokens, self.instructions, self.text))
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        # The text of a conversation has no place in a log.
        return f"<SummaryRequest {self.purpose}: {len(self.prompt)} characters, at most {self.max_tokens} tokens back>"


Summarizer: TypeAlias = Callable[[SummaryRequest], "str | Awaitable[str]"]
"""A callable, or an async one, from a request to the text of a summary.

Where it has an attribute ``window``, that is how many tokens its model takes, the answer included.
"""
