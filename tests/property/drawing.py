"""What the property tests draw: histories of both formats, tame and hostile, with pins at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from chat_compaction.testing import histories
from tests.naive import NOBODY

FORMATS = ("openai_chat", "anthropic")


@dataclass(frozen=True)
class Drawn:
    """A history, its format, and the positions that are pinned."""

    messages: list[dict[str, Any]]
    format: str
    pinned: frozenset[int] = NOBODY
    known: list[dict[str, Any]] | None = None
    """The list to which the pinned positions refer, where that is another."""

    @property
    def pins(self) -> list[dict[str, Any]]:
        """The pinned objects."""
        return [(self.known or self.messages)[position] for position in sorted(self.pinned)]


@st.composite
def drawn_histories(
    draw: st.DrawFn, format: str | None = None, hostile: bool | None = None, pins: bool = True
) -> Drawn:
    """A history; of any format, hostile or not, unless asked."""
    name = draw(st.sampled_from(FORMATS)) if format is None else format
    is_hostile = draw(st.booleans()) if hostile is None else hostile
    messages = draw(histories(name, hostile=is_hostile))
    positions = st.integers(0, max(0, len(messages) - 1))
    most = 2 if pins and messages else 0
    return Drawn(messages, name, draw(st.frozensets(positions, max_size=most)))
