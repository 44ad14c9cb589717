"""Plans: what a compaction would report, without doing anything; and stages, compactions within one."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from tests.build import CHAT, drop, index_of, said, user

ARGUMENTS: dict[str, Any] = {"trigger": cc.messages > 4, "min_preserved_groups": 1}


class Asks(cc.CompactionStrategy):
    """Excludes the oldest, asks, and excludes as many more as the answer says."""

    def __init__(self, function: Any, planned: Any = ..., **arguments: Any) -> None:
        super().__init__(**{**ARGUMENTS, **arguments})
        self.effect = cc.Effect(function) if planned is ... else cc.Effect(function, planned=planned)

    def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
        candidates = list(self.candidates(index))
        index.exclude(candidates[0], "at once")
        answer = yield self.effect
        for group in candidates[1 : 1 + answer]:
            index.exclude(group, "asked")


def never_called() -> int:
    raise AssertionError("a plan calls nothing")


# -- plans -----------------------------------------------------------------------------------------


def test_a_plan_reports_what_compact_would_and_does_nothing() -> None:
    """For any strategy, a user's own included; no hook is told."""
    index = index_of()
    before = index.snapshot()
    planned = drop(cc.messages > 4).plan(index)
    assert index.snapshot() == before
    done = drop(cc.messages > 4).compact(index, hooks=())
    assert planned == done
    assert done.changed


def test_a_plan_of_a_list() -> None:
    """With the arguments of an index."""
    report = drop(cc.tokens > 10).plan(CHAT, counter=len, reserved=3)
    assert report.tokens_after == sum(len(message["content"]) for message in CHAT[-2:]) + 2 * 4 + 3
    with pytest.raises(TypeError, match="settings must be given with a list of messages, got counter"):
        drop(cc.tokens > 10).plan(index_of(), counter=len)


@pytest.mark.parametrize("trigger", [cc.messages > 40, cc.messages > 4])
def test_a_plan_says_why_nothing_would_happen(trigger: cc.Predicate) -> None:
    report = drop(trigger, min_preserved_groups=6).plan(CHAT, counter=len)
    assert report.skipped == ("trigger" if trigger == (cc.messages > 40) else "floor")


def test_an_answer_that_is_planned_stands_for_the_effect() -> None:
    """Nothing outside is called, in a plan; in a compaction it is."""
    assert len(Asks(never_called, planned=2).plan(index_of()).excluded) == 3
    assert len(Asks(lambda: 1, planned=2).compact(index_of(), hooks=()).excluded) == 2


def test_without_one_the_plan_ends_there() -> None:
    """What was done so far is told, and why there is no more."""
    report = Asks(never_called).plan(index_of())
    assert (len(report.excluded), report.stopped_by) == (1, "effect")
    assert Asks(never_called, planned=None, trigger=cc.never).plan(index_of()).skipped == "trigger"


def test_a_plan_that_fails_leaves_the_index_as_it_was() -> None:
    index = index_of()
    before = index.snapshot()
    with pytest.raises(TypeError):
        Asks(never_called, planned="two").plan(index)
    assert index.snapshot() == before


# -- stages ----------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Runs(cc.CompactionStrategy):
    """Runs other strategies; keeps what they did where ``keep`` says so."""

    stages: tuple[cc.CompactionStrategy, ...]
    keep: Any = None
    fails: bool = False

    def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
        for stage in self.stages:
            report = yield from self.run_stage(index, stage, self.keep)
            assert isinstance(report, cc.CompactionReport)
        if self.fails:
            raise LookupError("in the end")


def runs(*stages: cc.CompactionStrategy, **arguments: Any) -> Runs:
    return Runs(stages=stages, **{"trigger": cc.messages > 2, "min_preserved_groups": 1, **arguments})


def test_stages_report_within_the_report() -> None:
    """Each asks its own trigger and target, and what all did together is what the whole reports."""
    index = index_of()
    report = runs(drop(cc.messages > 9), drop(cc.messages > 4), drop(cc.messages > 3)).compact(index, hooks=())
    assert [(stage.skipped, len(stage.excluded)) for stage in report.stages] == [("trigger", 0), (None, 2), (None, 1)]
    assert len(report.excluded) == 3
    assert [stage.messages_before for stage in report.stages] == [6, 6, 4]
    assert report.tokens_after == index.value(cc.tokens)


def test_a_stage_keeps_to_both_floors() -> None:
    """Its own, and that of what runs it."""
    for outer, inner in ((4, 1), (1, 4)):
        index = index_of()
        runs(drop(cc.always, cc.never, min_preserved_groups=inner), min_preserved_groups=outer).compact(index, hooks=())
        assert index.included_positions() == [2, 3, 4, 5]


def test_a_stage_that_is_not_kept_is_undone() -> None:
    """Only what it did itself; its report says so."""
    index = index_of()
    report = runs(drop(cc.messages > 5), drop(cc.messages > 3), keep=lambda told: told.messages_after > 4).compact(
        index, hooks=()
    )
    assert [stage.undone for stage in report.stages] == [False, True]
    assert report.messages_after == 5
    assert index.included_positions() == [1, 2, 3, 4, 5]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,)]


def test_all_stages_or_nothing() -> None:
    """Rule K9: what fails in the end undoes what stages did."""
    index = index_of()
    before = index.snapshot()
    with pytest.raises(LookupError):
        runs(drop(cc.messages > 4), fails=True).compact(index, hooks=())
    assert index.snapshot() == before


class Forgets(cc.CompactionStrategy):
    """Calls ``run_stage`` and does not go through with it."""

    def __init__(self, steps: int, **arguments: Any) -> None:
        super().__init__(**{**ARGUMENTS, **arguments})
        self.steps = steps
        self.kept: list[Any] = []

    def compact_core(self, index: cc.MessageIndex) -> None:
        stage = self.run_stage(index, Asks(lambda: 1, trigger=cc.always))
        self.kept.append(stage)
        for _ in range(self.steps):
            next(stage)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_stage_that_is_not_run_to_its_end_is_an_error(steps: int) -> None:
    """Without ``yield from`` nothing would happen, or half of it: everything is undone, and the index goes on."""
    index, strategy = index_of(), Forgets(steps)
    before = index.snapshot()
    with pytest.raises(cc.StrategyError, match=r"Forgets\.compact_core must run each stage to its end: yield from"):
        strategy.compact(index, hooks=())
    assert index.snapshot() == before
    assert drop(cc.messages > 4).compact(index, hooks=()).changed
    after = index.snapshot()
    strategy.kept[0].close()  # Whenever the interpreter gets to it.
    assert index.snapshot() == after
    assert not drop(cc.messages > 4).compact(index, hooks=()).changed


def test_undoing_a_pass_undoes_its_stages() -> None:
    """The report says of each that it changed nothing in the end."""

    class Undoes(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
            yield from self.run_stage(index, drop(cc.messages > 4))
            self.undo(index)

    report = Undoes(trigger=cc.messages > 2, min_preserved_groups=1).compact(index_of(), hooks=())
    assert (report.changed, [stage.undone for stage in report.stages]) == (False, [True])


def test_a_stage_outside_of_a_pass_is_refused() -> None:
    strategy = runs(drop(cc.messages > 4))
    with pytest.raises(cc.CompactionError, match="run_stage must be called by compact_core"):
        next(strategy.run_stage(index_of(), drop(cc.messages > 4)))
    with pytest.raises(TypeError, match="stage must be a CompactionStrategy, got 3"):
        next(strategy.run_stage(index_of(), 3))  # type: ignore[arg-type]


class Tells(cc.CompactionStrategy):
    def compact_core(self, index: cc.MessageIndex) -> None:
        index.report_failure("summary", TimeoutError("after 3 s"))
        index.report_failure("store", "full")


def test_failures_show_in_the_report_and_in_that_of_the_whole() -> None:
    """A failure after which a pass goes on is said: in the report, in its text, in the metrics."""
    report = runs(Tells(trigger=cc.always, min_preserved_groups=1)).compact(index_of([*CHAT, user(), said()]), hooks=())
    told = (cc.Failure("summary", "TimeoutError: after 3 s"), cc.Failure("store", "full"))
    assert report.failures == report.stages[0].failures == told
    assert str(report).endswith("2 failures")
    assert report.metrics()["failures"] == 2
    with pytest.raises(cc.CompactionError, match="a compaction that is under way"):
        index_of().report_failure("summary", "late")


def test_a_plan_ends_within_a_stage_too() -> None:
    """Nobody knows what would follow: the stage says so, and so does the whole."""
    report = runs(runs(Asks(never_called)), drop(cc.messages > 3)).plan(index_of())
    assert [stage.stopped_by for stage in report.stages] == ["effect"]
    assert [stage.stopped_by for stage in report.stages[0].stages] == ["effect"]
    assert (len(report.excluded), report.stopped_by) == (1, "effect")
