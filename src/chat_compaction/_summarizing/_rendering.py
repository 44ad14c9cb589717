"""A conversation as text: who said what, calls and results in words, no tools and no media."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .._marks import OPENING, unmarked
from .._messages import Message, Part, PartKind, Role
from .._replacing import FILLERS
from ._request import SummaryEntry

if TYPE_CHECKING:
    from .._groups import MessageGroup
    from .._index import MessageIndex

SUMMARY = "summary"
"""Who speaks in the summary of what came before."""
_TOOL = "tool"
_BESIDE = frozenset(FILLERS.values())
_SAYING = (PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT)


def shown_positions(index: MessageIndex, groups: Iterable[MessageGroup]) -> list[int]:
    """The positions of groups at which a message stands, in the order of the conversation."""
    return sorted(position for group in groups for position in index.positions_of(group))


def entries_of(index: MessageIndex, groups: Sequence[MessageGroup], *, reasoning: bool) -> list[SummaryEntry]:
    """What groups say, in the order of the conversation; an earlier summary comes first, without its mark."""
    names = _tool_names(index, groups)
    entries: list[SummaryEntry] = []
    for position in shown_positions(index, groups):
        view = index.view(position)
        if view.summary is not None:
            entries += [SummaryEntry(SUMMARY, text) for text in texts_of(view)]
        else:
            entries.extend(_of_message(view, position, names, reasoning=reasoning))
    return sorted(entries, key=lambda entry: entry.speaker != SUMMARY)


def texts_of(view: Message) -> Iterator[str]:
    """The words in which something may have to be kept: what was said, called and answered."""
    if view.summary is not None:
        # Beside the summary there may be a message of ours that only keeps the two sides in turn.
        bodies = (unmarked(part.text) for part in view.parts if part.text.startswith(OPENING))
        yield from (body for body in bodies if body not in _BESIDE)
        return
    yield from (part.text for part in view.parts if says(part))


def says(part: Part) -> bool:
    """Whether a part has words in which something may have to be kept."""
    return part.kind in _SAYING and bool(part.text)


def _tool_names(index: MessageIndex, groups: Iterable[MessageGroup]) -> dict[tuple[int, int], str]:
    """The tool that a result came from, by its place: most formats do not name it again."""
    uses = (use for group in groups for use in index.tool_uses(group))
    return {use.result: use.name for use in uses if use.result is not None}


def _of_message(
    view: Message, position: int, names: dict[tuple[int, int], str], *, reasoning: bool
) -> Iterator[SummaryEntry]:
    """The parts of one message; what a tool gave is the tool's, whoever hands it over."""
    speaker = view.role.value if not view.name or view.role is Role.TOOL else f"{view.role.value} {view.name}"
    lines: list[str] = []
    for number, part in enumerate(view.parts):
        if part.kind is PartKind.TOOL_RESULT:
            if lines:
                yield SummaryEntry(speaker, "\n".join(lines))
                lines = []
            name = names.get((position, number)) or part.name
            yield SummaryEntry(f"{_TOOL} {name}" if name else _TOOL, _with_media(part) or "(nothing)")
        elif text := _text_of(part, reasoning=reasoning):
            lines.append(text)
    if lines:
        yield SummaryEntry(speaker, "\n".join(lines))


def _text_of(part: Part, *, reasoning: bool) -> str:
    if part.kind is PartKind.TOOL_CALL:
        return f"(calls {part.name or 'a tool'} with {part.text or 'nothing'})"
    if part.kind is PartKind.REASONING:
        return f"(thinks: {part.text})" if reasoning and part.text else ""
    return _with_media(part)


def _with_media(part: Part) -> str:
    """The text of a part, and for each image or other medium in it a word."""
    media = [f"[{media.kind.replace('_', ' ')}]" for media in part.media if media.kind != "encrypted_reasoning"]
    return "\n".join([part.text, *media] if part.text else media)
