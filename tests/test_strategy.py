"""The base of all strategies: when a pass runs, when it stops, and what a core may do (C2, C4, K1 to K5, K9)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import CHAT, Drop, call, drop, index_of, result, said, system, user

# -- K1 and K3: when a pass runs, and when it stops --------------------------------------------------


def test_a_trigger_that_does_not_fire() -> None:
    """K1: the very same objects, and a report that says why."""
    index = index_of()
    report = drop(cc.messages > 6).compact(index, hooks=())
    assert (report.skipped, report.changed, report.fits, report.stopped_by) == ("trigger", False, True, None)
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), CHAT, strict=True))


def test_a_target_that_already_holds() -> None:
    """K3: the trigger fires and nothing leaves."""
    index = index_of()
    report = drop(cc.messages > 2, cc.tokens <= 1000).compact(index, hooks=())
    assert (report.skipped, report.changed, report.fits, report.stopped_by) == ("target", False, True, None)
    assert len(index.included_messages()) == 6


def test_nothing_that_may_leave() -> None:
    """K5: the floor beats the target, and the report says so."""
    index = index_of()
    report = drop(cc.messages > 2, min_preserved_groups=6).compact(index, hooks=())
    assert (report.skipped, report.changed, report.fits, report.stopped_by) == ("floor", False, False, None)


@pytest.mark.parametrize(("limit", "kept"), [(5, 5), (4, 4), (2, 2), (1, 2), (0, 2)])
def test_the_target_is_asked_after_each_group(limit: int, kept: int) -> None:
    """K3: the default target is the inverse of the trigger, and nothing leaves once it holds."""
    index = index_of()
    report = drop(cc.messages > limit).compact(index, hooks=())
    assert index.included_positions() == list(range(6 - kept, 6))
    assert report.stopped_by == ("target" if kept <= limit else "floor")


def test_the_target_may_be_lower_than_the_trigger() -> None:
    """K3: hysteresis leaves room before it fires again."""
    index = index_of()
    strategy = drop(cc.messages > 5, cc.messages <= 3)
    assert strategy.compact(index, hooks=()).changed
    assert len(index.included_messages()) == 3
    index.extend([user("seven"), said("eight")])
    assert strategy.compact(index, hooks=()).skipped == "trigger"


def test_the_target_may_be_on_another_metric() -> None:
    """K3: fire on tokens, stop on turns."""
    index = index_of()
    report = drop(cc.tokens > 10, cc.turns <= 2).compact(index, hooks=())
    assert index.included_positions() == [2, 3, 4, 5]
    # The target holds, whatever the trigger says.
    assert (report.fits, report.stopped_by) == (True, "target")


@pytest.mark.parametrize(
    ("trigger", "target"),
    [
        (cc.tokens > 100, cc.tokens <= 101),
        (cc.tokens > 100, cc.tokens < 102),
        (cc.tokens >= 100, cc.tokens <= 100),
        ((cc.tokens > 100) | (cc.turns > 4), (cc.tokens <= 50) & (cc.turns <= 5)),
        ((cc.tokens > 100) & (cc.tokens > 50), cc.tokens <= 101),
        (cc.tokens > 100, (cc.tokens <= 50) | (cc.tokens <= 200)),
    ],
    ids=str,
)
def test_a_target_looser_than_its_trigger(trigger: cc.Predicate, target: cc.Predicate) -> None:
    """K3: on the same metric that is a mistake, and fails at construction."""
    with pytest.raises(
        ValueError, match=r"^target must not be looser than the trigger: expected \w+ <= \d+ or less, got "
    ):
        drop(trigger, target)


@pytest.mark.parametrize("target", [cc.tokens > 50, cc.tokens >= 50, (cc.tokens > 50) & (cc.turns <= 3)], ids=str)
def test_a_target_in_the_wrong_direction(target: cc.Predicate) -> None:
    """K3: a target says when there is little enough."""
    with pytest.raises(ValueError, match=r"^target must bound tokens from above, such as tokens <= 100, got "):
        drop(cc.tokens > 100, target)


@pytest.mark.parametrize(
    ("trigger", "target"),
    [
        (cc.tokens > 100, cc.tokens <= 100),
        (cc.tokens >= 100, cc.tokens < 100),
        ((cc.tokens > 100) | (cc.turns > 4), (cc.tokens <= 100) & (cc.turns <= 4)),
        ((cc.tokens > 50) & (cc.tokens > 100), cc.tokens <= 100),
        (cc.tokens > 100, (cc.tokens <= 50) & (cc.tokens <= 200)),
        (cc.tokens > 100, cc.turns <= 1000),
        (cc.always, cc.tokens <= 5),
    ],
    ids=str,
)
def test_a_target_as_tight_as_its_trigger(trigger: cc.Predicate, target: cc.Predicate) -> None:
    """K3: the inverse, or tighter, or on another metric."""
    assert drop(trigger, target).effective_target == target


# -- C2 and C4 --------------------------------------------------------------------------------------


def test_a_trigger_that_needs_no_tokens_counts_none() -> None:
    """C4: not when it declines, with its report and the default hook."""
    counter = RecordingCounter()
    index = index_of(counter=counter)
    report = drop((cc.groups > 6) | (cc.messages > 6)).compact(index)
    assert counter.counted == []
    assert (report.tokens_before, report.tokens_after, report.tokens_exact) == (0, 0, False)


def test_a_pass_counts_what_it_keeps_and_nothing_that_left() -> None:
    """C4: an exclusion causes no counting; what the pass leaves is counted for the report, once."""
    counter = RecordingCounter()
    index = index_of(counter=counter)
    report = drop(cc.groups > 2).compact(index)
    assert counter.counted == ["five", "six"]
    assert (report.tokens_after, report.tokens_exact) == (7, False)
    assert [exclusion.tokens for exclusion in report.excluded] == [None] * 4


def test_an_edit_in_place_is_seen_when_a_compaction_fires() -> None:
    """C2: before anything leaves, every message is looked at."""
    messages = [user("one"), said("long " * 10), user("three"), said("four")]
    index = index_of(messages)
    index.value(cc.tokens)
    messages[1]["content"] = "two"
    report = drop(cc.tokens > 20).compact(index, hooks=())
    assert (report.skipped, report.tokens_before, report.tokens_exact) == ("trigger", 15, True)
    assert len(index.included_messages()) == 4


def test_edits_in_place_are_always_seen_under_validate() -> None:
    """C2: also those that make the trigger fire."""
    for validate in (False, True):
        messages = [dict(message) for message in CHAT]
        index = index_of(messages, validate=validate)
        strategy = drop(cc.tokens > 30)
        assert strategy.compact(index, hooks=()).skipped == "trigger"
        messages[1]["content"] = "long " * 10
        assert strategy.compact(index, hooks=()).changed is validate


def test_a_pass_cannot_grow_or_change_the_history() -> None:
    """K9: the core excludes and includes, and nothing else."""

    class Growing(Drop):
        def compact_core(self, index: cc.MessageIndex) -> None:
            index.extend([user("more")])

    index = index_of()
    before = index.snapshot()
    with pytest.raises(
        cc.CompactionError, match=r"^the index is being compacted and cannot be extended until that has"
    ):
        Growing(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert index.snapshot() == before


# -- what a core may do -----------------------------------------------------------------------------


def test_a_protected_group_is_refused_in_a_pass() -> None:
    """K4: the whole floor, by its reason; and the pass is undone (K9)."""

    class Greedy(Drop):
        def compact_core(self, index: cc.MessageIndex) -> None:
            for group in index.groups:
                index.exclude(group, "greedy")

    index = index_of([system(), *CHAT])
    before = index.snapshot()
    for place, why in ((0, "system"), (5, "last_user"), (6, "floor")):
        with pytest.raises(cc.ProtectedGroupError, match=rf"\[{place}\]: {why}$"):
            Only(place).compact(index, hooks=())
    with pytest.raises(cc.ProtectedGroupError):
        Greedy(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert index.snapshot() == before


class Only(cc.CompactionStrategy):
    """Asks one group to leave."""

    trigger = cc.always
    target = cc.never
    min_preserved_groups = 1

    def __init__(self, place: int) -> None:
        self.place = place

    def compact_core(self, index: cc.MessageIndex) -> None:
        index.exclude(index.groups[self.place], "only")


def test_a_core_may_bring_groups_back() -> None:
    """A group that comes back is a change too, and no exclusion."""

    class Back(Drop):
        def compact_core(self, index: cc.MessageIndex) -> None:
            index.include_all()

    index = index_of()
    index.exclude(index.groups[0], "by hand")
    back = Back(trigger=cc.always, target=cc.never, min_preserved_groups=1)
    report = back.compact(index, hooks=())
    assert (report.changed, report.excluded, report.first_changed) == (True, (), 0)
    assert (report.messages_before, report.messages_after) == (5, 6)
    assert (report.tokens_before, report.tokens_after, report.tokens_exact) == (19, 22, True)


def test_a_core_that_does_nothing() -> None:
    """It had no more to offer, which is not the floor."""

    class Idle(Drop):
        def compact_core(self, index: cc.MessageIndex) -> None:
            pass

    report = Idle(trigger=cc.messages > 2, min_preserved_groups=1).compact(index_of(), hooks=())
    assert (report.changed, report.fits, report.stopped_by, report.skipped) == (False, False, "exhausted", None)


def test_evict_takes_groups_and_units_of_groups() -> None:
    """A unit leaves together; the target is asked before the first and after each."""

    class Pairs(Drop):
        def compact_core(self, index: cc.MessageIndex) -> None:
            first, *rest = self.candidates(index)
            reached = self.evict(index, [[first], rest[:2], rest[2:]], "pairs")
            assert reached is self.reached(index)

    index = index_of()
    report = Pairs(trigger=cc.messages > 4, min_preserved_groups=1).compact(index, hooks=())
    # One is not enough; the next two leave together, although one would have been.
    assert index.included_positions() == [3, 4, 5]
    assert {exclusion.reason for exclusion in report.excluded} == {"pairs"}


def test_candidates_can_be_asked_outside_of_a_pass() -> None:
    """What a pass would have to choose from, oldest first."""
    index = index_of([system(), user("one"), call("a"), user("two"), result("a"), said()])
    strategy = drop(cc.messages > 2)
    assert [group.positions for group in strategy.candidates(index)] == [(1,), (2, 4)]
    assert strategy.floor.keep_last_user


def test_a_core_may_return_the_answer_of_evict() -> None:
    """It is natural to write, and what it returns does not matter."""

    class Returning(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> bool:
            return self.evict(index, self.candidates(index), "returning")

    index = index_of()
    for limit in (4, 1):
        assert Returning(trigger=cc.messages > limit, min_preserved_groups=1).compact(index, hooks=()).changed


@pytest.mark.parametrize("answer", [0, [], "done"], ids=repr)
def test_a_core_that_returns_a_value(answer: Any) -> None:
    """It would be ignored in silence, so it is an error; a list of groups to keep, say."""

    class Returning(Drop):
        def compact_core(self, index: cc.MessageIndex) -> Any:
            index.exclude(self.candidates(index)[0], "before")
            return answer

    index = index_of()
    before = index.snapshot()
    hint = r"^Returning\.compact_core must exclude what should leave and return nothing, or be a generator of effects;"
    with pytest.raises(cc.StrategyError, match=hint):
        Returning(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert index.snapshot() == before


def test_a_core_that_is_async() -> None:
    """The error says what to do instead, and leaves no coroutine behind."""

    class Async(Drop):
        async def compact_core(self, index: cc.MessageIndex) -> None:  # type: ignore[override]
            raise AssertionError

    strategy = Async(trigger=cc.always, target=cc.never, min_preserved_groups=1)
    with pytest.raises(cc.StrategyError, match="must not be async: make it a generator, and yield an Effect for what"):
        strategy.compact(index_of(), hooks=())
    with pytest.raises(cc.StrategyError, match="must not be async"):
        asyncio.run(strategy.acompact(index_of(), hooks=()))


def test_a_core_that_is_an_async_generator() -> None:
    class Async(Drop):
        async def compact_core(self, index: cc.MessageIndex) -> Any:
            yield cc.Effect(print)

    with pytest.raises(cc.StrategyError, match="must not be async"):
        Async(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index_of(), hooks=())


class CoreError(Exception):
    """What a core fails with."""


@pytest.mark.parametrize("is_async", [False, True], ids=["compact", "acompact"])
def test_a_core_that_fails_leaves_the_index_as_it_was(is_async: bool) -> None:
    """K9: with groups that were out before, and one that is held back (K7)."""

    class Failing(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
            index.include_all()
            for group in self.candidates(index):
                index.exclude(group, "failing")
                yield cc.Effect(max, (1, 2))
            raise CoreError

    index = index_of(format="anthropic")
    index.exclude(index.groups[0], "by hand")  # held
    index.exclude(index.groups[2], "by hand")
    before, positions, numbers = (
        index.snapshot(),
        index.included_positions(),
        [index.value(m) for m in (cc.turns, cc.tokens)],
    )
    strategy = Failing(trigger=cc.always, target=cc.never, min_preserved_groups=1)
    with pytest.raises(CoreError):
        asyncio.run(strategy.acompact(index)) if is_async else strategy.compact(index)
    assert (index.snapshot(), index.included_positions()) == (before, positions)
    assert [index.value(m) for m in (cc.turns, cc.tokens)] == numbers
    # The wish to leave is as it was, too: the held group goes with what needs it.
    index.exclude(index.groups[1], "by hand")
    assert index.included_positions() == [2, 3, 4, 5]


# -- on_overflow ------------------------------------------------------------------------------------


def test_an_overflow_is_reported_by_default() -> None:
    """K5: the pass does what it can."""
    index = index_of()
    report = drop(cc.tokens > 3).compact(index, hooks=())
    assert (report.changed, report.fits, report.over_by) == (True, False, 4)


def test_an_overflow_raises_if_asked() -> None:
    """K5 and K9: the error carries the report, hooks see it too, and the index is as it was."""
    seen: list[cc.CompactionReport] = []
    index = index_of()
    before = index.snapshot()
    with pytest.raises(cc.ContextOverflowError) as caught:
        drop(cc.tokens > 3).compact(index, on_overflow="raise", hooks=[seen.append])
    assert seen == [caught.value.report]
    assert (caught.value.report.fits, caught.value.report.over_by) == (False, 4)
    assert index.snapshot() == before


def test_an_overflow_where_nothing_may_leave_raises_too() -> None:
    """K5: also when the pass was skipped."""
    with pytest.raises(cc.ContextOverflowError) as caught:
        drop(cc.messages > 2, min_preserved_groups=9).compact(index_of(), on_overflow="raise", hooks=())
    assert caught.value.report.skipped == "floor"


@pytest.mark.parametrize("on_overflow", ["ignore", None, True], ids=repr)
def test_on_overflow_is_one_of_two(on_overflow: Any) -> None:
    with pytest.raises(ValueError, match=r"^on_overflow must be one of 'report', 'raise', got "):
        drop(cc.always, cc.never).compact(index_of(), on_overflow=on_overflow)


@pytest.mark.parametrize("index", [None, CHAT, "index"], ids=lambda value: type(value).__name__)
def test_an_index_must_be_one(index: Any) -> None:
    """With a hint: a list is what a reducer takes."""
    with pytest.raises(
        TypeError, match=r"^index must be a MessageIndex \(MessageIndex\.from_messages\(history\)\), got "
    ):
        drop(cc.always, cc.never).compact(index)


def test_a_failed_pass_that_saw_an_edit_keeps_the_exclusions() -> None:
    """K9 and C2: an edit in place that was found on the way may group everything anew, and is undone, too."""

    class Fails(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            raise RuntimeError("no")

    messages = [{"role": "user", "content": f"question {n}"} for n in range(10)]
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter())
    for group in index.groups[2:5]:
        index.exclude(group, "by hand")
    before = index.included_positions()
    messages[1]["content"] = ""
    messages[1].update(role="assistant", refusal="no")
    with pytest.raises(RuntimeError):
        Fails(trigger=cc.messages > 2).compact(index, hooks=())
    assert index.included_positions() == before


def test_what_came_back_is_in_the_report() -> None:
    """A core of your own may include what an earlier pass excluded: that is a change, too."""

    class Restores(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            for group in index.groups:
                index.include(group)

    index = cc.MessageIndex.from_messages(
        [{"role": "user", "content": f"question {n}"} for n in range(20)], counter=characters_counter()
    )
    index.exclude(index.groups[0], "by hand")
    report = Restores(trigger=cc.messages > 2).compact(index, hooks=())
    assert report.changed
    assert report.excluded == ()
    assert report.restored == (cc.Exclusion((0,), cc.GroupKind.USER, "by hand", 10),)
    assert report.first_changed == 0


def test_async_functions_are_no_predicates_and_no_pins() -> None:
    """A coroutine counts as true, whatever it would come to."""

    async def later(_: object) -> bool:
        return False

    with pytest.raises(TypeError, match=r"^function must be a plain function, since nobody awaits it, got "):
        cc.predicate(later)
    with pytest.raises(TypeError, match=r"^pinned must be a plain function, since nobody awaits it, got "):
        cc.MessageIndex.from_messages([], pinned=later)
