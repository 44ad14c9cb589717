"""The base of all strategies: when a pass runs, when it stops, and what a user's own strategy may be (K1 to K5, K9)."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import call, result, said, step, system, user

CHAT = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]


def index_of(messages: Sequence[Any] = CHAT, **arguments: Any) -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(messages, **{"counter": characters_counter(), **arguments})


class Drop(cc.CompactionStrategy):
    """A plain class: as short as a strategy gets."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.evict(index, self.candidates(index), "drop")


def drop(trigger: cc.Predicate, target: cc.Predicate | None = None, **arguments: Any) -> Drop:
    return Drop(trigger=trigger, target=target, **{"min_preserved_groups": 1, **arguments})


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
            reached = self.evict(index, [first, rest[:2], rest[2:]], "pairs")
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


@pytest.mark.parametrize("answer", [True, 0, [], "done"], ids=repr)
def test_a_core_that_returns_a_value(answer: Any) -> None:
    """It would be ignored in silence, so it is an error."""

    class Returning(Drop):
        def compact_core(self, index: cc.MessageIndex) -> Any:
            index.exclude(self.candidates(index)[0], "before")
            return answer

    index = index_of()
    before = index.snapshot()
    with pytest.raises(
        cc.StrategyError, match=r"^Returning\.compact_core must return None or be a generator of effects"
    ):
        Returning(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert index.snapshot() == before


def test_a_core_that_is_async() -> None:
    """The error says what to do instead, and leaves no coroutine behind."""

    class Async(Drop):
        async def compact_core(self, index: cc.MessageIndex) -> None:  # type: ignore[override]
            raise AssertionError

    strategy = Async(trigger=cc.always, target=cc.never, min_preserved_groups=1)
    with pytest.raises(cc.StrategyError, match="it is never async: yield an Effect for what must be awaited"):
        strategy.compact(index_of(), hooks=())
    with pytest.raises(cc.StrategyError, match="it is never async"):
        asyncio.run(strategy.acompact(index_of(), hooks=()))


def test_a_core_that_is_an_async_generator() -> None:
    class Async(Drop):
        async def compact_core(self, index: cc.MessageIndex) -> Any:
            yield cc.Effect(print)

    with pytest.raises(cc.StrategyError, match="it is never async"):
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


# -- a user's own strategy --------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class AttrsDrop(Drop):
    """An attrs class with a field of its own."""

    most: int = 2


@attrs.define(kw_only=True)
class MutableAttrsDrop(Drop):
    most: int = 2


@dataclasses.dataclass
class DataDrop(Drop):
    """A dataclass: it sets its own fields, and the base's are defaults where it has none of the name."""

    trigger: cc.Predicate = cc.messages > 2
    min_preserved_groups: int = 1
    most: int = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrozenDataDrop(Drop):
    trigger: cc.Predicate
    min_preserved_groups: int = 1


class ClassAttributes(Drop):
    """Fields of the class, and a constructor that knows nothing of the base."""

    trigger = cc.messages > 2
    min_preserved_groups = 1

    def __init__(self, note: str = "") -> None:
        self.note = note


class InstanceAttributes(Drop):
    def __init__(self, limit: int) -> None:
        self.trigger = cc.messages > limit
        self.min_preserved_groups = 1


class CallsTheBase(Drop):
    def __init__(self, limit: int) -> None:
        super().__init__(trigger=cc.messages > limit, min_preserved_groups=1)


class ComputedTrigger(Drop):
    """A trigger that follows from another field."""

    min_preserved_groups = 1

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @property
    def trigger(self) -> cc.Predicate:  # type: ignore[override]
        return cc.messages > self.limit


OWN: list[cc.CompactionStrategy] = [
    drop(cc.messages > 2),
    AttrsDrop(trigger=cc.messages > 2, min_preserved_groups=1, most=5),
    MutableAttrsDrop(trigger=cc.messages > 2, min_preserved_groups=1),
    DataDrop(most=5),
    FrozenDataDrop(trigger=cc.messages > 2),
    ClassAttributes("note"),
    InstanceAttributes(2),
    CallsTheBase(2),
    ComputedTrigger(2),
]
own = pytest.mark.parametrize("strategy", OWN, ids=lambda strategy: type(strategy).__name__)


@own
def test_a_strategy_of_any_class_works_like_ours(strategy: cc.CompactionStrategy) -> None:
    """Plain class, attrs class or dataclass; in a pass, in a reducer, sync and async; with the base's defaults."""
    index = index_of()
    report = strategy.compact(index, hooks=())
    assert index.included_positions() == [4, 5]
    assert (report.strategy, report.stopped_by) == (type(strategy).__name__, "target")
    reducer = cc.as_chat_reducer(strategy, counter=characters_counter(), hooks=())
    assert reducer(CHAT) == asyncio.run(reducer.areduce(CHAT)) == CHAT[4:]
    assert (strategy.keep_last_user, strategy.preserve_system, strategy.target) == (True, True, None)
    assert strategy.effective_target == (cc.messages <= 2)


@own
def test_a_strategy_of_any_class_prints(strategy: cc.CompactionStrategy) -> None:
    """Its repr names the class and the fields."""
    assert repr(strategy).startswith(f"{type(strategy).__qualname__}(")
    assert "trigger=messages > 2" in repr(strategy)


@own
@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle"])
def test_a_strategy_of_any_class_can_be_copied(strategy: cc.CompactionStrategy, how: str) -> None:
    """A value: an agent's settings are copied and sent to other processes, with the fields that a class adds too."""
    copiers: dict[str, Callable[[Any], Any]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
    }
    twin = copiers[how](strategy)
    assert repr(twin) == repr(strategy)
    for name in ("most", "note", "limit"):
        assert getattr(twin, name, None) == getattr(strategy, name, None)


def test_a_wrong_field_of_any_class_is_an_error() -> None:
    """At construction where a constructor of ours or a dataclass's runs, else at the first call."""
    wrong: Any = lambda index: True  # noqa: E731
    hint = r"^trigger must be a predicate such as tokens > 8_000, got .*; make a predicate of a function with "
    for make in (
        drop,
        lambda trigger: AttrsDrop(trigger=trigger),
        DataDrop,
        lambda trigger: FrozenDataDrop(trigger=trigger),
    ):
        with pytest.raises(TypeError, match=hint):
            make(wrong)
    strategy = ClassAttributes()
    strategy.trigger = wrong
    with pytest.raises(TypeError, match=hint):
        strategy.compact(index_of())
    with pytest.raises(ValueError, match=r"^min_preserved_groups must be an int of 0 or more, got -1$"):
        DataDrop(min_preserved_groups=-1)


def test_a_strategy_without_a_trigger() -> None:
    """The error says what is missing."""

    class NoTrigger(Drop):
        def __init__(self) -> None:
            pass

    with pytest.raises(
        AttributeError, match="'NoTrigger' object has no attribute 'trigger': a strategy needs a trigger"
    ):
        NoTrigger().compact(index_of())
    with pytest.raises(TypeError, match="trigger"):
        Drop()  # type: ignore[call-arg]


def test_other_names_are_no_fields() -> None:
    """A misspelt attribute is an AttributeError, as everywhere."""
    with pytest.raises(AttributeError, match="'Drop' object has no attribute 'triger'"):
        _ = drop(cc.always, cc.never).triger  # type: ignore[attr-defined]


def test_a_strategy_needs_a_core() -> None:
    class Nothing(cc.CompactionStrategy):
        pass

    with pytest.raises(TypeError, match="compact_core"):
        Nothing(trigger=cc.always)  # type: ignore[abstract]


def test_a_strategy_may_wrap_another() -> None:
    """A core may ask another strategy's core, in the same pass."""

    class Noted(cc.CompactionStrategy):
        def __init__(self, inner: cc.CompactionStrategy) -> None:
            self.inner = inner
            self.trigger = inner.trigger
            self.min_preserved_groups = inner.min_preserved_groups
            self.calls = 0

        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, Any] | None:
            self.calls += 1
            return self.inner.compact_core(index)

    strategy = Noted(drop(cc.messages > 2))
    index = index_of()
    strategy.compact(index, hooks=())
    assert (index.included_positions(), strategy.calls) == ([4, 5], 1)


def test_one_strategy_serves_many_indexes() -> None:
    """A strategy is a value: it keeps nothing of what it did."""
    strategy = drop(cc.messages > 2)
    before = repr(strategy)
    for messages in (CHAT, [user(), *step("a"), *step("b"), said()], []):
        strategy.compact(index_of(messages), hooks=())
    assert repr(strategy) == before
