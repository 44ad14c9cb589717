"""What the property tests draw: histories of every format, tame and hostile, with pins at random."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format
from chat_compaction.testing import characters_counter, histories
from tests.naive import NOBODY

EVERY_FORMAT = tuple(FORMATS)
KNOWN = ("openai_chat", "anthropic")
"""The formats that the oracle knows."""

# The oracle knows one rule about neighbours, that of the first message.
OF_THE_ORACLE: dict[str, Format] = {
    "openai_chat": FORMATS["openai_chat"],
    "anthropic": FORMATS["anthropic"].without_rules("system_place"),
}


@dataclass(frozen=True)
class Drawn:
    """A history, its format, and the positions that are pinned."""

    messages: list[dict[str, Any]]
    format: str
    pinned: frozenset[int] = NOBODY
    known: list[dict[str, Any]] | None = None
    """The list to which the pinned positions refer, where that is another."""

    def index(self, format: Format | None = None, **arguments: Any) -> cc.MessageIndex:
        """An index of it that counts characters."""
        settings = {"format": format or self.format, "pinned": self.pins, "counter": characters_counter(), **arguments}
        return cc.MessageIndex.from_messages(self.messages, **settings)

    @property
    def pins(self) -> list[dict[str, Any]]:
        """The pinned objects."""
        return [(self.known or self.messages)[position] for position in sorted(self.pinned)]


@cache
def drawn_histories(*formats: str, hostile: bool | None = None, pins: bool = True) -> st.SearchStrategy[Drawn]:
    """A history, of one of these formats or of any, hostile or not, unless asked; made once, not at each draw."""
    named = st.sampled_from(formats or EVERY_FORMAT)
    hostilities = st.booleans() if hostile is None else st.just(hostile)
    return _drawn_history(named, hostilities, pins)


@st.composite
def _drawn_history(
    draw: st.DrawFn, named: st.SearchStrategy[str], hostilities: st.SearchStrategy[bool], pins: bool
) -> Drawn:
    name = draw(named)
    messages = draw(histories(name, hostile=draw(hostilities)))
    return Drawn(messages, name, draw(_some_of(len(messages), 2 if pins and messages else 0)))


@cache
def _some_of(count: int, most: int) -> st.SearchStrategy[frozenset[int]]:
    """A few of so many positions."""
    return st.frozensets(st.integers(0, max(0, count - 1)), max_size=most)
