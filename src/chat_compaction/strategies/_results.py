"""What the strategies about tool results share: which uses are meant, and how other texts take a part's place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from .._groups import MessageGroup
from .._index import MessageIndex
from .._messages import Part
from .._predicates import tokens

Place = tuple[int, int]
"""The position of a message, and the number of a part in it."""

REMOVED = "[old tool result removed]"
"""What stands in the place of a result, unless the caller has another text."""
SHORTENED = "[old tool result, shortened]"
"""What stands ahead of a text that a function of the caller's gave, so that nobody takes it for the tool's."""
_LONGEST = 2_000
"""A longer text is never taken for one of ours: anybody's may begin with our words."""
_REFERENCE = re.compile(
    r"\[(same as|outdated by) the result of call \S+ below\]|\[(same as|outdated by) a newer result\]"
)


def reference(call_id: str | None, *, same: bool) -> str:
    """What stands in the place of an older result: that a newer one is the same, or that it outdates this one."""
    what = "same as" if same else "outdated by"
    # An id with white space in it could say anything.
    named = call_id and not any(map(str.isspace, call_id))
    return f"[{what} the result of call {call_id} below]" if named else f"[{what} a newer result]"


def is_ours(text: str) -> bool:
    """Whether a result is one that was replaced already (rule K10)."""
    if len(text) > _LONGEST:
        return False
    return text == REMOVED or text.startswith(SHORTENED) or _REFERENCE.fullmatch(text) is not None


@attrs.frozen
class UsedTool:
    """A tool use as a function of the caller's sees it.

    ``arguments`` is the text of the call's, JSON as a rule. ``result`` is the text of the result, empty where
    there is none yet, and ``tokens`` how much of the context it takes. ``call_id`` is None where the format has none.
    """

    name: str
    arguments: str
    result: str
    tokens: int
    call_id: str | None = None


@attrs.frozen
class Answered:
    """A tool use that has a result: where both stand, what the result is, and how many tokens it takes."""

    name: str
    arguments: str
    call: Place | None
    place: Place
    part: Part
    tokens: int

    def told(self) -> UsedTool:
        """What a function of the caller's sees of it."""
        return UsedTool(self.name, self.arguments, self.part.text, self.tokens, self.part.call_id)


def answered(index: MessageIndex, group: MessageGroup) -> list[Answered]:
    """The tool uses of a group that have a result, in order."""
    uses = [(use, use.result) for use in index.tool_uses(group) if use.result is not None]
    parts = [index.view(position).parts[number] for _, (position, number) in uses]
    sizes = _tokens_of(index, [place for _, place in uses], parts)
    return [
        Answered(use.name or part.name, use.arguments, use.call, place, part, size)
        for (use, place), part, size in zip(uses, parts, sizes, strict=True)
    ]


def _tokens_of(index: MessageIndex, places: Sequence[Place], parts: Sequence[Part]) -> list[int]:
    """The tokens that parts take: of their texts, and of what has none."""
    counts = index.count_texts([part.text for part in parts])
    return [
        _with_media(index, place, count) if part.media else count
        for place, part, count in zip(places, parts, counts, strict=True)
    ]


def _with_media(index: MessageIndex, place: Place, count: int) -> int:
    """The tokens of a result with media: what its message loses with it."""
    position, number = place
    raw = index.raw(position)
    bare = index.format.with_texts(raw, {number: ""})
    return count if bare is None else index.size_of(position, raw) - index.size_of(position, bare)


# -- which tools -------------------------------------------------------------------------------------


def as_names(value: Any) -> Any:
    """An attrs converter: names of tools as a tuple, those of a set in order; what is no list stays as it is."""
    if isinstance(value, set | frozenset):
        return tuple(sorted(value, key=repr))
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else value


def some_names_or_none(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: None, or at least one name."""
    if value is not None:
        names(_, attribute, value)
    if value == ():
        raise ValueError(f"{attribute.alias} must name a tool, or be None for all of them, got ()")


def names(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: names of tools."""
    if not isinstance(value, tuple) or not all(isinstance(name, str) and name for name in value):
        raise TypeError(f"{attribute.alias} must be a list of names of tools, got {value!r}")


def named(name: str, patterns: Iterable[str]) -> bool:
    """Whether a tool is one of these; ``*`` stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def chosen(name: str, only: tuple[str, ...] | None, exclude: tuple[str, ...]) -> bool:
    """Whether a tool is one of those that are meant."""
    return (only is None or named(name, only)) and not named(name, exclude)


def gains(index: MessageIndex, before: int, least: int) -> bool:
    """Whether so many tokens are gained; ``before`` are those of the beginning, needed where ``least`` is."""
    return not least or before - index.value(tokens) >= least


# -- other texts -------------------------------------------------------------------------------------


def rewrite_texts(index: MessageIndex, group: MessageGroup, texts: Mapping[Place, str], reason: str) -> bool:
    """Let these texts take the place of parts, each only where it is smaller; whether anything changed.

    A message beside signed reasoning stays as it is.
    """
    by_position: dict[int, dict[int, str]] = {}
    for (position, number), text in texts.items():
        by_position.setdefault(position, {})[number] = text
    smaller = ((position, _smaller(index, position, parts)) for position, parts in by_position.items())
    messages = {position: raw for position, raw in smaller if raw is not None}
    return bool(messages) and index.rewrite(group, messages, reason)


def _smaller(index: MessageIndex, position: int, texts: Mapping[int, str]) -> Any | None:
    """A message with those of the texts that can be written and take fewer tokens; None where that is none."""
    view, raw = index.view(position), index.raw(position)
    if view.signed:
        return None
    sizes = _tokens_of(index, [(position, number) for number in texts], [view.parts[number] for number in texts])
    counts = index.count_texts(list(texts.values()))
    pairs = zip(texts.items(), sizes, counts, strict=True)
    shorter = {number: text for (number, text), size, count in pairs if count < size}
    written = index.format.with_texts(raw, shorter) if shorter else None
    if written is None and len(shorter) > 1:  # One that can't be written shall not keep the others.
        shorter = {n: text for n, text in shorter.items() if index.format.with_texts(raw, {n: text}) is not None}
        written = index.format.with_texts(raw, shorter) if shorter else None
    if written is None or index.size_of(position, written) >= index.size_of(position, raw):
        return None
    return written
