"""The ledger under any sequence of operations: totals equal a recount, and groups are what the rules say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import chat_compaction as cc
from chat_compaction.testing import characters_counter, histories
from tests.naive import Group, History
from tests.property.drawing import KNOWN

METRICS = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
numbers = st.integers(0, 40)


def is_pinned(message: dict[str, Any]) -> bool:
    """Pins by predicate, so that a pin survives an edit."""
    return "#" in str(message["content"])


class LedgerMachine(RuleBasedStateMachine):
    """An index, and beside it the list that it should know."""

    @initialize(format=st.sampled_from(KNOWN), hostile=st.booleans(), data=st.data())
    def begin(self, format: str, hostile: bool, data: st.DataObject) -> None:
        self.format, self.hostile = format, hostile
        self.history: list[dict[str, Any]] = data.draw(histories(format, hostile=hostile))
        self.edited = False
        self.index = cc.MessageIndex.from_messages(
            self.history, format=format, pinned=is_pinned, counter=characters_counter(), reserved=7
        )

    def more(self, data: st.DataObject) -> list[dict[str, Any]]:
        return data.draw(histories(self.format, hostile=self.hostile))[:6]

    # -- the list changes --------------------------------------------------------------------------

    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        new = self.more(data)
        self.index.extend(new)
        self.history += new

    @rule(data=st.data())
    def update_with_more(self, data: st.DataObject) -> None:
        new = self.more(data)
        self.history += new
        update = self.index.update(self.history)
        assert (update.first_changed, update.shortened) == (None, False)
        assert update.read == len(new)

    @precondition(lambda self: self.history)
    @rule(data=st.data(), number=numbers)
    def update_with_another_past(self, data: st.DataObject, number: int) -> None:
        """One message is replaced, and what follows it goes, or stays."""
        place = number % len(self.history)
        known = len(self.history)
        tail = self.history[place + 1 :] if data.draw(st.booleans()) else []
        self.history = [*self.history[:place], {"role": "user", "content": "another"}, *tail]
        update = self.index.update(self.history)
        assert update.first_changed == place or self.history[place]["content"] == "another"
        assert update.shortened == (len(self.history) < known)

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def update_with_less(self, number: int) -> None:
        known = len(self.history)
        self.history = self.history[: number % known]
        update = self.index.update(self.history)
        assert (update.first_changed, update.shortened) == (len(self.history), True)

    @rule()
    def update_with_copies(self) -> None:
        """Equal messages in other objects: the caller's current objects are the ones to give back (rule K8)."""
        self.history = [dict(message) for message in self.history]
        before = self.index.snapshot()
        assert self.index.update(self.history).first_changed is None
        assert self.index.snapshot() == before

    @precondition(lambda self: self.history)
    @rule()
    def the_newest_grows_in_place(self) -> None:
        newest = self.history[-1]
        if isinstance(newest["content"], str):
            newest["content"] += " more"
            assert self.index.update(self.history).first_changed == len(self.history) - 1

    @precondition(lambda self: self.history)
    @rule(number=numbers, pin=st.booleans())
    def edit_in_place(self, number: int, pin: bool) -> None:
        place = number % len(self.history)
        message = self.history[place]
        if isinstance(message["content"], str):
            message["content"] += "#" if pin else "edited"
            assert self.index.refresh() == (place,)

    # -- the projection changes --------------------------------------------------------------------

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def exclude(self, number: int) -> None:
        group = self.index.groups[number % len(self.index.groups)]
        newest = [g for g in self.index.groups if g.excluded is None and g.kind is not cc.GroupKind.SYSTEM]
        protected = group.pinned or group.pending or group.kind is cc.GroupKind.SYSTEM
        if protected or group == max(newest, key=lambda g: g.newest, default=None):
            with pytest.raises(cc.ProtectedGroupError):
                self.index.exclude(group, "by hand")
        else:
            out = self.index.exclude(group, "by hand")
            assert out == (group.positions[0] not in self.index.included_positions())

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def include(self, number: int) -> None:
        group = self.index.groups[number % len(self.index.groups)]
        self.index.include(group)
        assert set(group.positions) <= set(self.index.included_positions())

    @rule()
    def include_all(self) -> None:
        self.index.include_all()
        assert self.index.included_positions() == list(range(len(self.history)))

    @rule(limit=st.integers(0, 150), floor=st.integers(0, 4), by_turn=st.booleans(), last_user=st.booleans())
    def compact(self, limit: int, floor: int, by_turn: bool, last_user: bool) -> None:
        strategy: cc.CompactionStrategy
        if by_turn:
            strategy = cc.TokenBudgetStrategy(limit, min_preserved_messages=floor, keep_last_user=last_user)
        else:
            trigger = cc.tokens > limit
            strategy = cc.TruncationStrategy(trigger=trigger, min_preserved_groups=floor, keep_last_user=last_user)
        before = self.index.included_positions()
        report = strategy.compact(self.index, hooks=())
        gone = sorted(position for exclusion in report.excluded for position in exclusion.positions)
        assert sorted(set(before) - set(self.index.included_positions())) == gone

    @rule()
    def look(self) -> None:
        """Looking changes nothing."""
        before = self.index.snapshot()
        assert repr(self.index)
        assert self.index.table()
        assert self.index.refresh() == ()
        assert self.index.snapshot() == before

    # -- what always holds -------------------------------------------------------------------------

    def oracle(self) -> History:
        pinned = frozenset(p for p, message in enumerate(self.history) if is_pinned(message))
        return History(self.history, self.format, pinned)

    @invariant()
    def the_groups_are_what_the_rules_say(self) -> None:
        found = [(list(g.positions), g.kind.value, g.turn, g.pinned, g.pending) for g in self.index.groups]
        assert found == [(g.positions, g.kind, g.turn, g.pinned, g.pending) for g in self.oracle().groups]

    @invariant()
    def the_totals_equal_a_recount(self) -> None:
        history = self.oracle()
        assert len(self.index) == len(self.history)
        included = [ours for ours, g in zip(history.groups, self.index.groups, strict=True) if g.excluded is None]
        self.agree(self.index.known(cc.tokens)[0] - 7, history.measure(included)["tokens"], at_most=True)
        for metric in METRICS[1:]:
            assert self.index.value(metric) == history.measure(included)[metric.name]
            assert self.index.total(metric) == history.measure(history.groups)[metric.name]
        self.the_projection_is(included)

    def agree(self, found: int, expected: int, at_most: bool) -> None:
        assert found <= expected if at_most else found == expected

    def the_projection_is(self, included: list[Group]) -> None:
        positions = sorted(position for group in included for position in group.positions)
        assert self.index.included_positions() == positions
        projected = self.index.included_messages()
        assert len(projected) == len(positions)
        assert all(ours is self.history[p] for ours, p in zip(projected, positions, strict=True))

    @rule()
    def the_tokens_equal_a_recount(self) -> None:
        history = self.oracle()
        included = [ours for ours, g in zip(history.groups, self.index.groups, strict=True) if g.excluded is None]
        self.agree(self.index.value(cc.tokens) - 7, history.measure(included)["tokens"], at_most=False)
        self.agree(self.index.total(cc.tokens) - 7, history.measure(history.groups)["tokens"], at_most=False)
        assert self.index.known(cc.tokens) == (self.index.value(cc.tokens), True)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=25)
