"""A range of a text, by lines or characters, from pieces that come one after the other; and what is found in it.

Lines and characters are numbered from 1, and both ends of a range belong to it, as in ``sed`` and ``cut``. A line ends
with a line feed, which is part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import attrs

from .._validators import check_choice

Unit = Literal["lines", "characters"]
UNITS = ("lines", "characters")
AROUND = 100
"""How many characters are shown on either side of what was found, within its line."""


@attrs.frozen
class Excerpt:
    """A range of a text. ``character``: the number of its first character; ``ends``: with it the text ends."""

    text: str
    character: int
    ends: bool


@attrs.frozen
class Hit:
    """Something that was found: the numbers of its line and of its first character, and the text around it."""

    line: int
    character: int
    text: str


def check_range(start: object, end: object, unit: object) -> None:
    """Refuse what is no range."""
    check_choice("unit", unit, UNITS)
    for name, value in (("start", start), ("end", end)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} must be an int of 1 or more, or None, got {value!r}")
        if value is not None and value < 1:
            raise ValueError(f"{name} must be an int of 1 or more, or None, got {value!r}")
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise ValueError(f"end must be at least start ({start}), got {end}")


def excerpt(
    pieces: Iterable[tuple[str, bool]], start: int | None, end: int | None, unit: Unit, most: int | None = None
) -> Excerpt:
    """The range of a text that comes in pieces, of which the last is marked; no more than ``most`` characters of it.

    No piece behind the range is asked for.
    """
    to_skip = (start or 1) - 1
    to_take = None if end is None else end - to_skip
    before, kept, size = 0, [], 0
    for piece, last in pieces:
        first, to_skip = _forward(piece, 0, to_skip, unit)
        before += first
        after, to_take = (len(piece), None) if to_take is None else _forward(piece, first, to_take, unit)
        if most is not None:
            after = min(after, first + most - size)
        kept.append(piece[first:after])
        size += after - first
        if last or to_take == 0 or size == most:
            return Excerpt("".join(kept), before + 1, last and after == len(piece))
    raise AssertionError("a text has a last piece")  # pragma: no cover


def _forward(text: str, at: int, amount: int, unit: Unit) -> tuple[int, int]:
    """Where so many lines or characters further on is, and how many of them the text did not have."""
    if unit == "characters":
        step = min(amount, len(text) - at)
        return at + step, amount - step
    ends = text.count("\n", at)
    if ends < amount:
        return len(text), amount - ends
    for _ in range(amount):
        at = text.index("\n", at) + 1
    return at, 0


def hits(text: str, wanted: str) -> Iterator[Hit]:
    """Each place where a text holds another one, whatever the case; what one of them shows is not shown again."""
    # Escaped, the pattern can't run away; and unlike lower() it never changes how many characters there are.
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    at, line, counted = 0, 1, 0
    while found := pattern.search(text, at):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        begins = max(text.rfind("\n", 0, counted) + 1, counted - AROUND)
        stops = text.find("\n", found.end())
        stops = min(len(text) if stops < 0 else stops, found.end() + AROUND)
        yield Hit(line, counted + 1, text[begins:stops])
        at = max(stops, found.end())
