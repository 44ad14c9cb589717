"""What ``evict`` takes, and that leaving at once refuses all that leaving one by one does (rules K3, K4 and K9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from tests.build import CHAT, index_of, said, step, user

LONG = [make(str(number)) for number in range(20) for make in (user, said)]


def metrics(index: cc.MessageIndex) -> list[int]:
    return [index.value(metric) for metric in (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)]


def recounted(index: cc.MessageIndex) -> list[int]:
    """The same, of the groups that are included, one by one."""
    groups = [group for group in index.groups if group.excluded is None]
    turns = {group.turn for group in groups if group.turn}
    messages = [message for group in groups for message in index.messages_of(group)]
    assert sorted(map(LONG.index, messages)) == index.included_positions()
    return [sum(len(message["content"]) for message in messages), len(messages), len(groups), len(turns), 0]


@attrs.frozen(kw_only=True, repr=False)
class Evicting(cc.CompactionStrategy):
    """Evicts what a function makes of the index and the strategy."""

    units: Callable[[cc.MessageIndex, cc.CompactionStrategy], Iterable[Any]]
    reason: Any = "asked"
    raises: bool = False

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.evict(index, self.units(index, self), self.reason)
        if self.raises:
            raise OSError("gone")


def evicting(units: Callable[[cc.MessageIndex, cc.CompactionStrategy], Iterable[Any]], **fields: Any) -> Evicting:
    target = fields.pop("target", cc.messages <= 12)
    return Evicting(trigger=cc.always, target=target, units=units, **{"min_preserved_groups": 1, **fields})


def pairs(index: cc.MessageIndex, strategy: cc.CompactionStrategy) -> list[Any]:
    groups = list(strategy.candidates(index))
    return [groups[place : place + 2] for place in range(len(groups))]


def doubled(index: cc.MessageIndex, strategy: cc.CompactionStrategy) -> list[Any]:
    return [group for group in strategy.candidates(index) for _ in range(2)]


SHAPES: dict[str, Callable[[cc.MessageIndex, cc.CompactionStrategy], Iterable[Any]]] = {
    "candidates": lambda index, strategy: strategy.candidates(index),
    "list": lambda index, strategy: list(strategy.candidates(index)),
    "reversed": lambda index, strategy: tuple(strategy.candidates(index))[::-1],
    "deque": lambda index, strategy: deque(strategy.candidates(index)),
    "iterator": lambda index, strategy: iter(strategy.candidates(index)),
    "slice": lambda index, strategy: strategy.candidates(index)[3:],
    "turns": lambda index, strategy: strategy.candidate_turns(index),
    "lists_of_turns": lambda index, strategy: [list(turn) for turn in strategy.candidate_turns(index)],
    "parts": lambda index, strategy: [strategy.candidates(index)[:5], (), strategy.candidates(index)[5:]],
    "iterators": lambda index, strategy: [iter(turn) for turn in strategy.candidate_turns(index)],
    "pairs": pairs,
    "doubled": doubled,
}

of_every_shape = pytest.mark.parametrize("units", SHAPES.values(), ids=SHAPES)


@of_every_shape
def test_every_shape_of_units_leaves_one_by_one(units: Callable[..., Iterable[Any]]) -> None:
    """K3: also where a group is in several units; totals and report say what is true."""
    index, slow = index_of(LONG), index_of(LONG)
    report = evicting(units).compact(index, hooks=())
    told = evicting(lambda index, strategy: iter(units(index, strategy))).compact(slow, hooks=())
    assert index.snapshot() == slow.snapshot()
    assert report.excluded == told.excluded
    assert metrics(index) == recounted(index)
    assert report.messages_after == len(index.included_messages())


@of_every_shape
def test_what_left_comes_back_when_a_strategy_fails(units: Callable[..., Iterable[Any]]) -> None:
    """K9."""
    index = index_of(LONG)
    before = index.snapshot(), metrics(index)
    with pytest.raises(OSError, match="gone"):
        evicting(units, raises=True).compact(index, hooks=())
    assert (index.snapshot(), metrics(index)) == before


@pytest.mark.parametrize("reason", ["", None, 7])
@of_every_shape
def test_a_reason_says_why(reason: Any, units: Callable[..., Iterable[Any]]) -> None:
    """As in ``exclude``."""
    strategy = evicting(units, reason=reason)
    index = index_of(LONG)
    with pytest.raises(ValueError, match="reason must be a text that says why"):
        strategy.compact(index, hooks=())
    assert len(index.included_messages()) == len(LONG)


def test_candidates_of_another_floor_are_checked() -> None:
    """K4: what was asked for ahead of the pass may not leave now."""
    index = index_of(LONG)
    loose = cc.TruncationStrategy(trigger=cc.always, min_preserved_groups=1).candidates(index)
    strict = evicting(lambda *_: loose, min_preserved_groups=35, target=cc.messages <= 1)
    with pytest.raises(cc.ProtectedGroupError):
        strict.compact(index, hooks=())
    assert len(index.included_messages()) == len(LONG)


@pytest.mark.parametrize("of", ["candidates", "candidate_turns"])
def test_candidates_of_another_index_do_not_touch_it(of: str) -> None:
    """They are groups by their positions, as snapshots are."""
    index, other = index_of(LONG), index_of(LONG)
    evicting(lambda _, strategy: getattr(strategy, of)(other)).compact(index, hooks=())
    assert len(other.included_messages()) == len(LONG)
    assert metrics(other) == recounted(other)
    assert metrics(index) == recounted(index)
    assert len(index.included_messages()) <= 12


def test_the_first_reason_stays() -> None:
    """As in ``exclude``: what is out already is not asked again."""

    class Twice(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            groups = self.candidates(index)
            for group in groups[:3]:
                index.exclude(group, "first")
            self.evict(index, groups, "second")

    report = Twice(trigger=cc.messages > 5, target=cc.messages <= 2, min_preserved_groups=1).compact(
        index_of([*CHAT, user("seven"), said("eight")]), hooks=()
    )
    assert [gone.reason for gone in report.excluded] == ["first"] * 3 + ["second"] * 3


def test_candidates_are_a_sequence() -> None:
    index = index_of([user("task"), *step("a"), said(), user("more"), said("done")])
    strategy = cc.TruncationStrategy(trigger=cc.always, min_preserved_groups=1)
    groups = strategy.candidates(index)
    assert groups == list(groups) == groups[:]
    assert groups != list(groups)[1:]
    assert repr(groups) == repr(tuple(groups))
    assert [group.positions for group in groups] == [(0,), (1, 2), (3,)]
    assert groups[-1].positions == (3,)


class OnlyTools(cc.TokenBudgetStrategy):
    """Lets nothing leave but tool calls."""

    def candidates(self, index: cc.MessageIndex) -> Sequence[cc.MessageGroup]:
        return [group for group in super().candidates(index) if group.kind is cc.GroupKind.TOOL_CALL]


def test_a_subclass_chooses_its_candidates() -> None:
    """Turns, too, are made of these: one that holds anything else does not leave whole."""
    history = [m for n in range(9) for m in (user(f"task {n}"), *step(f"c{n}"), said("done"))]
    index = index_of(history)
    report = OnlyTools(40).compact(index, hooks=())
    assert {gone.kind for gone in report.excluded} == {cc.GroupKind.TOOL_CALL}
    assert OnlyTools(40).candidate_turns(index_of(history)) == []


def test_a_strategy_whose_reached_is_its_own() -> None:
    """On the class or on the object: then every unit is asked for."""
    strategy = cc.TruncationStrategy(trigger=cc.always, target=cc.messages <= 1, min_preserved_groups=1)
    object.__setattr__(strategy, "reached", lambda index: index.value(cc.messages) <= 25)
    index = index_of(LONG)
    strategy.compact(index, hooks=())
    assert len(index.included_messages()) == 25
