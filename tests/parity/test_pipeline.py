"""Parity with ``PipelineCompactionStrategy`` of the Microsoft Agent Framework for .NET.

The expected results follow from what its documentation and its tests say of its behaviour: it always runs, each
strategy asks its own trigger and works on what the one ahead of it left, all of them run, and it has compacted where
one of them has.
"""

from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.strategies.pipeline import PipelineStrategy
from tests.build import index_of, said, step, system, user

HELLO = [user("Hello"), said("Hi!")]
LONG = [system(), user("1"), said("2"), user("3"), *step("a"), said("4"), user("5")]
"""Groups: system, user, assistant, user, tool call (4-5), assistant, user."""


@attrs.frozen(kw_only=True, repr=False)
class OldestTwo(cc.CompactionStrategy):
    """Excludes the two oldest groups that may leave, whatever the target says."""

    log: list[str] = attrs.field(factory=list, eq=False)
    name: str = "oldest two"

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.log.append(self.name)
        for group in self.candidates(index)[:2]:
            index.exclude(group, self.name)


@attrs.frozen(kw_only=True, repr=False)
class Idle(OldestTwo):
    """Does nothing."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.log.append(self.name)


def stages(log: list[str], *kinds: Any) -> list[cc.CompactionStrategy]:
    """Strategies that always fire and note that they ran."""
    return [
        kind(trigger=cc.always, min_preserved_groups=1, log=log, name=f"stage {number}")
        for number, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "changed", "kept"),
    [
        ((Idle,), False, [0, 1, 2, 3, 4, 5, 6, 7]),
        ((Idle, Idle), False, [0, 1, 2, 3, 4, 5, 6, 7]),
        ((OldestTwo, Idle), True, [0, 3, 4, 5, 6, 7]),
        ((Idle, OldestTwo), True, [0, 3, 4, 5, 6, 7]),
        ((OldestTwo, OldestTwo), True, [0, 6, 7]),
    ],
)
def test_all_run_in_order_on_what_is_left(kinds: tuple[Any, ...], changed: bool, kept: list[int]) -> None:
    """And the pipeline has changed something where one of them has."""
    log: list[str] = []
    index = index_of(LONG)
    report = PipelineStrategy(*stages(log, *kinds)).compact(index)
    assert log == [f"stage {number}" for number in range(len(kinds))]
    assert (report.changed, index.included_positions()) == (changed, kept)


def test_each_asks_its_own_trigger() -> None:
    """One that does not fire is passed over."""
    log: list[str] = []
    first = OldestTwo(trigger=cc.groups > 99, log=log, name="first")
    second = OldestTwo(trigger=cc.groups > 2, log=log, name="second", min_preserved_groups=1)
    index = index_of(LONG)
    PipelineStrategy(first, second).compact(index)
    assert log == ["second"]
    assert index.included_positions() == [0, 3, 4, 5, 6, 7]


def test_difference_it_runs_where_it_may_do_something() -> None:
    """Theirs always runs; ours fires where a stage would, so that a call without work costs nothing (rule K1)."""
    log: list[str] = []
    stage = OldestTwo(trigger=cc.groups > 99, log=log)
    report = PipelineStrategy(stage).compact(index_of(LONG))
    assert (report.skipped, report.stages, log) == ("trigger", (), [])


def test_difference_it_stops_once_its_target_holds() -> None:
    """Theirs runs all stages, and so loses more than it must; ours asks in between (rule K3)."""
    log: list[str] = []
    both = stages(log, OldestTwo, OldestTwo)
    index = index_of(LONG)
    PipelineStrategy(*both, trigger=cc.groups > 5, target=cc.groups <= 5).compact(index)
    assert log == ["stage 0"]
    assert index.included_positions() == [0, 3, 4, 5, 6, 7]


def test_difference_an_empty_pipeline_is_an_error() -> None:
    """Theirs does nothing."""
    with pytest.raises(ValueError, match="stages must be one strategy or more, got none"):
        PipelineStrategy()


def test_difference_the_newest_group_stays() -> None:
    """Rule K2 holds in every stage: theirs, in its own tests, lets the last user message be all that is left."""
    log: list[str] = []
    index = index_of(HELLO)
    PipelineStrategy(*stages(log, OldestTwo, OldestTwo)).compact(index)
    assert index.included_positions() == [0, 1]
