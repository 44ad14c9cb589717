"""Messages as the text of a file, piece by piece: what ``json.dumps`` would write, never held as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..._errors import SessionError


@attrs.frozen
class Writer:
    """Writes JSON in one style. What it gives always has a UTF-8 form."""

    indent: str | None
    ascii: bool

    def lines(self, values: Iterable[Any]) -> Iterator[str]:
        """JSON Lines."""
        return (f"{self._text(value)}\n" for value in values)

    def items(self, values: Iterable[Any], depth: int = 0) -> Iterator[str]:
        """A list that stands so deep in others."""
        return self._between("[]", ((self._text(value, depth + 1),) for value in values), depth)

    def members(
        self, whole: Mapping[str, Any], way: Sequence[str], values: Iterable[Any], depth: int = 0
    ) -> Iterator[str]:
        """An object; where the way of keys leads to, a list of these values stands in the place of what is there."""
        members = (self._member(key, value, way, values, depth + 1) for key, value in whole.items())
        return self._between("{}", members, depth)

    def _member(self, key: str, value: Any, way: Sequence[str], values: Iterable[Any], depth: int) -> Iterator[str]:
        yield f"{self._text(key)}: "
        if key != way[0]:
            yield self._text(value, depth)
        elif len(way) == 1:
            yield from self.items(values, depth)
        else:
            yield from self.members(value, way[1:], values, depth)

    def _between(self, brackets: str, parts: Iterable[Iterable[str]], depth: int) -> Iterator[str]:
        before, separator, behind = "", ", ", ""
        if self.indent is not None:
            before, behind = f"\n{self.indent * (depth + 1)}", f"\n{self.indent * depth}"
            separator = f",{before}"
        written = False
        for part in parts:
            yield separator if written else brackets[0] + before
            yield from part
            written = True
        yield behind + brackets[1] if written else brackets

    def _text(self, value: Any, depth: int = 0) -> str:
        try:
            text = json.dumps(value, ensure_ascii=self.ascii, indent=self.indent)
        except RecursionError:
            raise SessionError("a message is nested too deeply to be written") from None
        if depth and self.indent is not None:
            text = text.replace("\n", f"\n{self.indent * depth}")  # Never one of a string: those are escaped.
        # A lone surrogate has no UTF-8 form; Python's escape of one is JSON's.
        return text if self.ascii else text.encode("utf-8", "backslashreplace").decode("utf-8")
