"""Valid in, valid out, in every format, over random histories (rule K7), and what a repair leaves."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format
from chat_compaction.testing import characters_counter
from tests import legality
from tests.property.drawing import EVERY_FORMAT, Drawn, drawn_histories
from tests.property.test_compaction import strategies as pruning

every_format = pytest.mark.parametrize("format", EVERY_FORMAT)


@dataclass(frozen=True)
class Masked:
    """A reducer that knows no rule: what stays repeats over the list."""

    stays: tuple[bool, ...]

    def __call__(self, messages: list[Any]) -> list[Any]:
        return [message for place, message in enumerate(messages) if self.stays[place % len(self.stays)]]


@st.composite
def choosing(draw: st.DrawFn) -> cc.ReducerStrategy:
    """A strategy that lets a reducer choose, with the smallest floors."""
    return cc.ReducerStrategy(
        Masked(tuple(draw(st.lists(st.booleans(), min_size=1, max_size=12)))),
        cc.messages >= 0,
        target=cc.never,
        min_preserved_groups=draw(st.integers(0, 3)),
        keep_last_user=draw(st.booleans()),
        preserve_system=draw(st.booleans()),
    )


strategies = pruning | choosing()


def seen(drawn: Drawn) -> Format:
    """The format, which still knows that the history leaves calls to the server when what told so has left."""
    format = FORMATS[drawn.format]
    known = legality.faults(drawn.messages, drawn.format)
    whole = legality.faults(drawn.messages, drawn.format, complete=True)
    return attrs.evolve(format, complete=False) if format.complete is None and known != whole else format


def rules_broken(messages: Sequence[Any], format: Format) -> Tally[str]:
    """How often each rule is broken, as the package sees it."""
    index = cc.MessageIndex.from_messages(messages, format=format, counter=characters_counter())
    return Tally(problem.rule for problem in index.problems)


def compacted(drawn: Drawn, strategy: cc.CompactionStrategy) -> list[Any]:
    """What is left, checked by the package itself on its way out."""
    reducer = cc.as_chat_reducer(
        strategy,
        format=drawn.format,
        pinned=drawn.pins,
        counter=characters_counter(),
        validate=True,
        hooks=(),
    )
    return reducer.reduce(drawn.messages)


@every_format
@given(data=st.data(), strategy=strategies)
def test_what_is_valid_stays_valid(format: str, data: st.DataObject, strategy: cc.CompactionStrategy) -> None:
    """K7: by the judge and by the package, nothing is wrong with what is left; ``validate=True`` agrees."""
    drawn = data.draw(drawn_histories(format, hostile=False))
    kept = compacted(drawn, strategy)
    assert legality.new_faults(drawn.messages, kept, format) == []
    assert rules_broken(kept, seen(drawn)) == Tally()


@every_format
@given(data=st.data(), strategy=strategies)
def test_what_is_invalid_gets_no_worse(format: str, data: st.DataObject, strategy: cc.CompactionStrategy) -> None:
    """K7: no rule is broken more often than it was, by the judge and by the package."""
    drawn = data.draw(drawn_histories(format, hostile=True))
    kept = compacted(drawn, strategy)
    assert legality.new_faults(drawn.messages, kept, format) == []
    assert rules_broken(kept, seen(drawn)) - rules_broken(drawn.messages, seen(drawn)) == Tally()


NEVER_MENDED = frozenset({"user_after_tool", "system_after_user", "call_after_user"})
"""Rules that do not know how to mend what they find."""
NOT_ALWAYS_MENDED = frozenset({"first_user", "alternation", "system_place", "empty_content"})
"""Where no user's message is left to begin with, where two can't be joined, or a system message comes first."""


@every_format
@given(data=st.data())
def test_a_repair_leaves_nothing_that_can_be_mended(format: str, data: st.DataObject) -> None:
    """Calls and results are always mended; a second repair finds nothing to do; no rule is broken more often."""
    drawn = data.draw(drawn_histories(format, hostile=True, pins=False))
    repaired = cc.repair(drawn.messages, format=format)
    assert {problem.rule for problem in repaired.problems} <= NEVER_MENDED | NOT_ALWAYS_MENDED
    again = cc.repair(repaired.messages, format=format)
    assert again.repairs == ()
    assert [id(message) for message in again.messages] == [id(message) for message in repaired.messages]
    assert len(repaired.positions) == len(repaired.messages)


@every_format
@given(data=st.data())
def test_a_repair_of_what_is_valid_does_nothing(format: str, data: st.DataObject) -> None:
    """The same objects come back."""
    drawn = data.draw(drawn_histories(format, hostile=False, pins=False))
    repaired = cc.repair(drawn.messages, format=format)
    assert [id(message) for message in repaired.messages] == [id(message) for message in drawn.messages]
    assert (repaired.repairs, repaired.problems) == ((), ())
