"""What no compaction may ever do, over random histories of every format, hostile ones too (rules K1 to K10)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.naive import Group, History
from tests.property.drawing import KNOWN, OF_THE_ORACLE, Drawn, drawn_histories

limits = st.integers(0, 120)
small = st.integers(0, 4)


@st.composite
def truncations(draw: st.DrawFn) -> cc.TruncationStrategy:
    """A truncation with small limits, on one metric or two."""
    metric = draw(st.sampled_from([cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups]))
    limit = draw(limits if metric is cc.tokens else st.integers(0, 8))
    return cc.TruncationStrategy(
        trigger=metric > limit,
        target=draw(st.none() | st.integers(0, limit).map(lambda stop: metric <= stop)),
        min_preserved_groups=draw(small),
        min_preserved_messages=draw(small),
        keep_last_user=draw(st.booleans()),
        preserve_system=draw(st.booleans()),
    )


@st.composite
def budgets(draw: st.DrawFn) -> cc.TokenBudgetStrategy:
    """A token budget with small limits."""
    most = draw(limits)
    return cc.TokenBudgetStrategy(
        max_tokens=most,
        target_tokens=draw(st.none() | st.integers(0, most)),
        max_turns=draw(st.none() | small),
        min_preserved_messages=draw(small),
        evict=draw(st.sampled_from(["turns-then-groups", "turns", "groups"])),
        min_preserved_groups=draw(small),
        keep_last_user=draw(st.booleans()),
        preserve_system=draw(st.booleans()),
    )


def oracle(drawn: Drawn) -> tuple[History, cc.MessageIndex]:
    """The slow and obvious way, and the index that is to do the same."""
    return History(drawn.messages, drawn.format, drawn.pinned), drawn.index(OF_THE_ORACLE[drawn.format])


def floor_of(strategy: cc.CompactionStrategy, history: History) -> list[Group]:
    """The floor by the oracle."""
    return history.floor(
        strategy.min_preserved_groups,
        strategy.min_preserved_messages,
        strategy.keep_last_user,
        strategy.preserve_system,
    )


def kept_groups(index: cc.MessageIndex, history: History) -> list[Group]:
    included = set(index.included_positions())
    return [group for group in history.groups if included.issuperset(group.positions)]


def holds(target: cc.Predicate, measured: dict[str, int]) -> bool:
    """Ask a predicate about the oracle's numbers."""
    return target(FakeIndex(measured))


@attrs.frozen
class FakeIndex:
    """The metrics of the oracle, as a predicate asks for them."""

    numbers: dict[str, int]

    def value(self, metric: cc.Metric) -> int:
        return self.numbers[metric.name]

    def exceeds(self, metric: cc.Metric, limit: int) -> bool:
        return self.value(metric) > limit

    def known(self, metric: cc.Metric) -> tuple[int, bool]:
        return self.value(metric), True


strategies = truncations() | budgets()


@given(drawn_histories(*KNOWN), truncations())
def test_truncation_keeps_what_the_rules_say(drawn: Drawn, strategy: cc.TruncationStrategy) -> None:
    """K3, K4 and K7: exactly the messages that the slow and obvious way keeps, and the numbers in the report."""
    history, index = oracle(drawn)
    report = strategy.compact(index, hooks=())
    everything = history.measure(history.groups)
    fires = holds(strategy.trigger, everything)
    if fires:
        kept = history.truncate(floor_of(strategy, history), lambda now: holds(strategy.effective_target, now))
    else:
        kept = history.groups
    assert index.included_positions() == sorted(position for group in kept for position in group.positions)
    after = history.measure(kept)
    assert report.messages_before == everything["messages"]
    assert report.groups_before == everything["groups"]
    assert report.turns_before == everything["turns"]
    assert report.messages_after == after["messages"]
    assert report.groups_after == after["groups"]
    assert report.turns_after == after["turns"]
    assert report.fits == (holds(strategy.effective_target, after) or not holds(strategy.trigger, after))
    if report.tokens_exact:
        assert (report.tokens_before, report.tokens_after) == (everything["tokens"], after["tokens"])
    else:
        assert report.tokens_before <= everything["tokens"]
        assert report.tokens_after <= after["tokens"]
    if report.changed:
        assert report.tokens_after == after["tokens"]


@given(drawn_histories(*KNOWN), strategies)
def test_the_floor_stays(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K2, K4 and K5: the floor is kept whole, the list is never emptied, and the report says when that is too much."""
    history, index = oracle(drawn)
    report = strategy.compact(index, hooks=())
    floor = floor_of(strategy, history)
    kept = kept_groups(index, history)
    assert [group for group in floor if group not in kept] == []
    assert bool(index.included_messages()) == bool(drawn.messages)
    if report.stopped_by == "floor" or report.skipped == "floor":
        assert kept == floor
    if not report.fits and report.tokens_exact:
        limit = min((c.limit for c in _token_targets(strategy)), default=None)
        over = None if limit is None or report.tokens_after <= limit else report.tokens_after - limit
        assert report.over_by == over
        assert [blocker.positions for blocker in report.blocked_by] == [tuple(group.positions) for group in kept]
        by_rule = [blocker.positions for blocker in report.blocked_by if blocker.reason != "strategy"]
        assert by_rule == [tuple(group.positions) for group in floor]


def _token_targets(strategy: cc.CompactionStrategy) -> list[Any]:
    target: Any = strategy.effective_target
    operands = getattr(target, "operands", (target,))
    return [operand for operand in operands if operand.metric is cc.tokens and operand.operator == "<="]


@given(drawn_histories(*KNOWN), strategies)
def test_no_call_parts_from_its_results(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """G2: a group stays whole or leaves whole, and the report lists exactly the groups that left."""
    history, index = oracle(drawn)
    report = strategy.compact(index, hooks=())
    included = set(index.included_positions())
    assert all(included.issuperset(g.positions) or included.isdisjoint(g.positions) for g in history.groups)
    gone = sorted(tuple(group.positions) for group in history.groups if included.isdisjoint(group.positions))
    assert sorted(exclusion.positions for exclusion in report.excluded) == gone
    assert report.changed == bool(gone)
    assert report.first_changed == min((positions[0] for positions in gone), default=None)


@given(drawn_histories(), strategies)
def test_the_callers_messages_are_never_touched(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K1 and K8: the list and its messages are as they were, and what is kept are the caller's objects in order."""
    before, objects = copy.deepcopy(drawn.messages), list(drawn.messages)
    reducer = cc.as_chat_reducer(
        strategy, format=drawn.format, pinned=drawn.pins, counter=characters_counter(), hooks=()
    )
    kept, report = reducer.reduce_with_report(drawn.messages)
    assert drawn.messages == before
    assert all(ours is theirs for ours, theirs in zip(drawn.messages, objects, strict=True))
    assert kept is not drawn.messages
    remaining = iter(drawn.messages)
    assert all(any(message is ours for ours in remaining) for message in kept)
    if report.skipped:
        assert [id(message) for message in kept] == [id(message) for message in objects]


@given(drawn_histories(hostile=False, pins=False), strategies)
def test_compacting_the_result_again_changes_nothing(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K10: the projected list, given to the same strategy again, comes back whole."""
    reducer = cc.as_chat_reducer(strategy, format=drawn.format, counter=characters_counter(), hooks=())
    once = reducer.reduce(drawn.messages)
    assert [id(message) for message in reducer.reduce(once)] == [id(message) for message in once]


@given(drawn_histories(), strategies)
def test_compacting_a_hostile_result_again_changes_nothing(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K10, for histories that break the rules and have pins."""
    reducer = cc.as_chat_reducer(
        strategy, format=drawn.format, pinned=drawn.pins, counter=characters_counter(), hooks=()
    )
    once = reducer.reduce(drawn.messages)
    assert [id(message) for message in reducer.reduce(once)] == [id(message) for message in once]


@given(drawn_histories(), strategies)
def test_compacting_the_same_index_again_changes_nothing(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K10, on the ledger itself."""
    index = drawn.index()
    strategy.compact(index, hooks=())
    before = index.snapshot()
    assert not strategy.compact(index, hooks=()).changed
    assert index.snapshot() == before


@given(drawn_histories("openai_chat"), truncations())
def test_nothing_leaves_once_the_target_holds(drawn: Drawn, strategy: cc.TruncationStrategy) -> None:
    """K3: with the last group that left still in, the target did not hold (in a format without the rule K7)."""
    history, index = oracle(drawn)
    report = strategy.compact(index, hooks=())
    if not report.changed:
        return
    left = {exclusion.positions for exclusion in report.excluded}
    last = max((group for group in history.groups if tuple(group.positions) in left), key=lambda group: group.newest)
    before_it = [g for g in history.groups if tuple(g.positions) not in left or g is last]
    assert not holds(strategy.effective_target, history.measure(before_it))


@given(drawn_histories(*KNOWN), budgets())
def test_a_budget_takes_no_question_from_its_answer(drawn: Drawn, strategy: cc.TokenBudgetStrategy) -> None:
    """By turns, a turn leaves whole but for what is pinned or system; of others a user's message never leaves."""
    assume(strategy.evict_order != "groups")
    history, index = oracle(drawn)
    report = strategy.compact(index, hooks=())
    kept = kept_groups(index, history)
    # What leaves ahead of the first user's message leaves for the format's sake (rule K7).
    chosen = {exclusion.positions for exclusion in report.excluded if exclusion.reason != "first_user"}
    for group in history.groups:
        if tuple(group.positions) in chosen and (strategy.evict_order == "turns" or group.kind == "user"):
            rest = [other for other in kept if other.turn == group.turn]
            assert all(other.pinned or (other.kind == "system" and strategy.preserve_system) for other in rest)


class BoomError(Exception):
    """What a user's core fails with."""


@attrs.frozen(kw_only=True)
class Meddling(cc.CompactionStrategy):
    """Does the drawn steps, in an effect between each, then fails."""

    steps: tuple[tuple[str, int], ...] = ()
    fails: bool = True

    def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
        for step, number in self.steps:
            self._do(index, step, number)
            yield cc.Effect(lambda: None)
        if self.fails:
            raise BoomError

    def _do(self, index: cc.MessageIndex, step: str, number: int) -> None:
        groups = index.groups
        group = groups[number % len(groups)]
        if step == "exclude":
            with suppress(cc.ProtectedGroupError):
                index.exclude(group, f"reason {number}")
        elif step == "include":
            index.include(group)
        elif step == "include_all":
            index.include_all()
        else:
            self.reached(index)


steps = st.lists(
    st.tuples(st.sampled_from(["exclude", "exclude", "include", "include_all", "ask"]), st.integers(0, 30)), max_size=12
).map(tuple)


@given(drawn_histories(), steps, steps, st.booleans())
def test_all_or_nothing(drawn: Drawn, before: tuple[Any, ...], failing: tuple[Any, ...], is_async: bool) -> None:
    """K9: whatever a user's core did before it failed, the index is as it was."""
    index = drawn.index()
    meddle = Meddling(trigger=cc.messages >= 0, target=cc.never, min_preserved_groups=1, fails=False, steps=before)
    meddle.compact(index, hooks=())
    state = _state(index)
    strategy = attrs.evolve(meddle, fails=True, steps=failing)
    if not strategy.candidates(index):
        assert strategy.compact(index, hooks=()).skipped == "floor"
    elif is_async:
        with pytest.raises(BoomError):
            asyncio.run(strategy.acompact(index, hooks=()))
    else:
        with pytest.raises(BoomError):
            strategy.compact(index, hooks=())
    assert _state(index) == state


def _state(index: cc.MessageIndex) -> tuple[Any, ...]:
    metrics = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
    numbers = [(index.value(metric), index.total(metric)) for metric in metrics]
    return index.snapshot(), numbers, index.included_positions(), [id(message) for message in index.included_messages()]


@given(drawn_histories(), strategies)
def test_sync_equals_async(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """The two drivers do the same: equal reports, equal states."""
    one, other = drawn.index(), drawn.index()
    assert strategy.compact(one, hooks=()) == asyncio.run(strategy.acompact(other, hooks=()))
    assert one.snapshot() == other.snapshot()


@given(drawn_histories(), strategies)
def test_on_overflow_raise_leaves_the_index_as_it_was(drawn: Drawn, strategy: cc.CompactionStrategy) -> None:
    """K5 and K9: the error carries the report of the pass, and the index is as before; without an overflow no error."""
    told, asked = drawn.index(), drawn.index()
    report = strategy.compact(told, hooks=())
    before = _state(asked)
    if report.fits:
        assert strategy.compact(asked, on_overflow="raise", hooks=()).fits
        assert asked.snapshot() == told.snapshot()
        return
    with pytest.raises(cc.ContextOverflowError) as caught:
        strategy.compact(asked, on_overflow="raise", hooks=())
    assert [e.positions for e in caught.value.report.excluded] == [e.positions for e in report.excluded]
    assert _state(asked) == before
