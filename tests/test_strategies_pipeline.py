"""PipelineStrategy and FirstOf: strategies made of strategies."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.strategies.pipeline import FirstOf, PipelineStrategy
from chat_compaction.strategies.sliding_window import SlidingWindowStrategy
from chat_compaction.testing import histories
from tests.build import CHAT, drop, index_of, said, step, system, user

LONG = [*CHAT, user("seven"), said("eight"), user("nine"), said("ten")]
"""Ten messages of 39 characters."""
TOOLS = [user("task"), *step("a"), said("1"), *step("b"), said("2"), *step("c"), said("done")]
"""Three tool groups at 1-2, 4-5 and 7-8."""


def up_to(number: int, **arguments: Any) -> cc.CompactionStrategy:
    """Drops from the head until so many messages are left."""
    return drop(cc.messages > number, **arguments)


@attrs.frozen(kw_only=True, repr=False)
class DropTools(cc.CompactionStrategy):
    """Drops tool groups, oldest first."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.evict(index, [g for g in self.candidates(index) if g.kind is cc.GroupKind.TOOL_CALL], "tools")


def tools(limit: int, **arguments: Any) -> DropTools:
    return DropTools(**{"trigger": cc.tool_groups > limit, "min_preserved_groups": 1, **arguments})


class Calls(cc.CompactionStrategy):
    """Calls a function as an effect, and drops one group before and one after."""

    def __init__(self, function: Callable[[], Any], trigger: cc.Predicate = cc.always) -> None:
        self.function, self.trigger, self.min_preserved_groups = function, trigger, 1

    def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
        index.exclude(self.candidates(index)[0], "before")
        yield cc.Effect(self.function)
        index.exclude(self.candidates(index)[0], "after")


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any] = LONG, **settings: Any
) -> tuple[list[int], cc.CompactionReport]:
    index = index_of(messages, **settings)
    report = strategy.compact(index)
    return index.included_positions(), report


# -- the pipeline --------------------------------------------------------------------------------


def test_each_stage_works_on_what_the_one_ahead_of_it_left() -> None:
    """In the order they were given, each by its own trigger and target."""
    pipeline = PipelineStrategy(tools(1), up_to(6), up_to(4))
    positions, report = compact(pipeline, TOOLS)
    assert positions == [0, 7, 8, 9]
    assert [(stage.strategy, stage.messages_before, stage.messages_after) for stage in report.stages] == [
        ("DropTools", 10, 6),
        ("Drop", 6, 6),
        ("Drop", 6, 4),
    ]
    assert [(e.positions, e.reason) for e in report.excluded] == [
        ((1, 2), "tools"),
        ((3,), "drop"),
        ((4, 5), "tools"),
        ((6,), "drop"),
    ]


def test_a_stage_whose_trigger_does_not_fire_is_skipped() -> None:
    """And its report says so."""
    _, report = compact(PipelineStrategy(up_to(20), up_to(4)))
    assert [stage.skipped for stage in report.stages] == ["trigger", None]


def test_it_stops_once_its_target_holds() -> None:
    """Later stages would cost more: they are not even asked."""
    pipeline = PipelineStrategy(up_to(6), up_to(2), target=cc.messages <= 6, trigger=cc.messages > 8)
    positions, report = compact(pipeline)
    assert positions == [4, 5, 6, 7, 8, 9]
    assert ([stage.strategy for stage in report.stages], report.stopped_by) == (["Drop"], "target")


def test_without_a_trigger_it_fires_where_a_stage_would() -> None:
    """The target is the inverse (rule K3): nothing is left to do then."""
    pipeline = PipelineStrategy(tools(2), up_to(8))
    assert pipeline.trigger == (cc.tool_groups > 2) | (cc.messages > 8)
    assert pipeline.effective_target == (cc.tool_groups <= 2) & (cc.messages <= 8)
    assert compact(pipeline, LONG[:8])[1].skipped == "trigger"
    assert compact(pipeline, LONG)[1].changed


def test_an_explicit_trigger_decides_alone() -> None:
    """The stages are not asked before it fires."""
    pipeline = PipelineStrategy(up_to(4), trigger=cc.messages > 10)
    assert compact(pipeline)[1].skipped == "trigger"
    assert compact(pipeline, [*LONG, user("eleven")])[0] == [7, 8, 9, 10]


def test_a_stage_keeps_to_its_own_target() -> None:
    """It may go further than the pipeline asks for."""
    pipeline = PipelineStrategy(drop(cc.messages > 8, cc.messages <= 3), trigger=cc.messages > 8)
    assert compact(pipeline)[0] == [7, 8, 9]


def test_an_explicit_trigger_whose_target_holds_already() -> None:
    """K3: nothing is done, although a stage would fire."""
    pipeline = PipelineStrategy(up_to(4), trigger=cc.messages > 8, target=cc.tokens <= 1_000)
    assert compact(pipeline)[1].skipped == "target"


def test_without_a_trigger_the_last_stage_says_whether_it_fits() -> None:
    """An early stage may want more than it gets; what counts is the last resort."""
    stuck = tools(0, min_preserved_groups=99)
    _, report = compact(PipelineStrategy(stuck, up_to(8)), TOOLS)
    assert (report.fits, report.stages[0].fits) == (True, False)
    _, report = compact(PipelineStrategy(up_to(8), stuck), TOOLS)
    assert not report.fits
    # By a trigger of its own it is the trigger and the target, as everywhere.
    pipeline = PipelineStrategy(stuck, up_to(8), trigger=(cc.tool_groups > 0) | (cc.messages > 8))
    assert not compact(pipeline, TOOLS)[1].fits


def test_what_does_not_fit_may_raise() -> None:
    """K5: nothing is done then."""
    index = index_of(LONG)
    pipeline = PipelineStrategy(up_to(6), drop(cc.messages > 2, min_preserved_groups=4))
    with pytest.raises(cc.ContextOverflowError) as caught:
        pipeline.compact(index, on_overflow="raise")
    assert [stage.messages_after for stage in caught.value.report.stages] == [6, 4]
    assert len(index.included_positions()) == len(LONG)


def test_pipelines_nest() -> None:
    """A pipeline is a strategy, and its report has the reports of its stages."""
    inner = PipelineStrategy(tools(1), up_to(5))
    positions, report = compact(PipelineStrategy(inner, up_to(3)), TOOLS)
    assert positions == [0, 9]
    assert [stage.strategy for stage in report.stages] == ["PipelineStrategy", "Drop"]
    assert [stage.strategy for stage in report.stages[0].stages] == ["DropTools", "Drop"]


def test_the_floor_is_what_all_stages_keep() -> None:
    """A stage that keeps less may do so; what the pipeline asks for besides binds all of them."""
    wide, narrow = up_to(0, min_preserved_groups=6), up_to(0, min_preserved_groups=2)
    assert compact(PipelineStrategy(wide, narrow))[0] == [8, 9]
    assert compact(PipelineStrategy(wide, narrow, min_preserved_groups=4))[0] == [6, 7, 8, 9]
    assert compact(PipelineStrategy(narrow, min_preserved_messages=3))[0] == [7, 8, 9]
    assert compact(PipelineStrategy(wide, narrow))[1].stopped_by == "floor"


def test_system_and_user_stay_unless_some_stage_lets_them_go() -> None:
    """The defaults of the stages hold; a stage may loosen them, and the pipeline may refuse that."""
    messages = [system(), *LONG, *step("a")]
    loose = {"keep_last_user": False, "preserve_system": False}
    assert compact(PipelineStrategy(up_to(0)), messages)[0] == [0, 9, 11, 12]
    assert compact(PipelineStrategy(up_to(0), up_to(0, **loose)), messages)[0] == [11, 12]
    assert compact(PipelineStrategy(up_to(0, **loose), preserve_system=True), messages)[0] == [0, 11, 12]
    assert compact(PipelineStrategy(up_to(0, **loose), keep_last_user=True), messages)[0] == [9, 11, 12]


def test_nothing_may_leave() -> None:
    """The report is as that of any strategy."""
    _, report = compact(PipelineStrategy(up_to(1)), LONG[-2:])
    assert (report.changed, report.fits) == (False, False)
    assert {blocker.reason for blocker in report.blocked_by} == {"floor", "last_user"}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_stage_that_raises_undoes_everything(error: BaseException) -> None:
    """K9: also what earlier stages did; the error is the caller's."""

    def fail() -> None:
        raise error

    index = index_of(LONG)
    before = index.snapshot()
    with pytest.raises(type(error)):
        PipelineStrategy(up_to(6), Calls(fail), up_to(2)).compact(index)
    assert index.snapshot() == before


def test_effects_of_stages_are_awaited() -> None:
    """Written once for sync and async, at any depth."""
    asked: list[str] = []

    async def ask() -> None:
        await asyncio.sleep(0)
        asked.append("asked")

    index = index_of(LONG)
    report = asyncio.run(PipelineStrategy(PipelineStrategy(Calls(ask)), up_to(4)).acompact(index))
    assert asked == ["asked"]
    assert index.included_positions() == [6, 7, 8, 9]
    assert [exclusion.reason for exclusion in report.excluded] == ["before", "after", *["drop"] * 4]


def test_a_cancelled_stage_undoes_everything() -> None:
    """K9: a cancellation in the middle of an effect."""

    async def cancelled() -> cc.MessageIndex:
        index = index_of(LONG)
        task = asyncio.create_task(PipelineStrategy(up_to(6), Calls(asyncio.Event().wait)).acompact(index))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return index

    assert asyncio.run(cancelled()).snapshot() == index_of(LONG).snapshot()


def test_hooks_hear_of_the_whole() -> None:
    """One compaction is one report."""
    told: list[cc.CompactionReport] = []
    PipelineStrategy(up_to(6), up_to(4)).compact(index_of(LONG), hooks=[told.append])
    assert [report.strategy for report in told] == ["PipelineStrategy"]


def test_a_plan_changes_nothing() -> None:
    """And tells what every stage would do."""
    index = index_of(LONG)
    pipeline = PipelineStrategy(up_to(6), up_to(4))
    planned = pipeline.plan(index)
    assert len(index.included_positions()) == len(LONG)
    assert planned == pipeline.compact(index)


# -- the first of several ------------------------------------------------------------------------


def test_the_first_that_reaches_the_target_is_kept() -> None:
    """The others did nothing in the end."""
    few = tools(0, min_preserved_groups=4, trigger=cc.messages > 4)
    positions, report = compact(FirstOf(few, up_to(4), drop(cc.messages > 4, cc.messages <= 1)), TOOLS)
    assert positions == [0, 7, 8, 9]
    assert [(stage.strategy, stage.undone) for stage in report.stages] == [("DropTools", True), ("Drop", False)]
    assert {exclusion.reason for exclusion in report.excluded} == {"drop"}
    assert report.fits


def test_the_first_one_may_do() -> None:
    """Then no other is tried."""
    positions, report = compact(FirstOf(tools(0, trigger=cc.messages > 4), up_to(4)), TOOLS)
    assert positions == [0, 3, 6, 9]
    assert len(report.stages) == 1


def test_where_none_reaches_the_target_the_last_one_stays() -> None:
    """It is the last resort."""
    positions, report = compact(FirstOf(up_to(1, min_preserved_groups=8), up_to(1, min_preserved_groups=3)))
    assert positions == [7, 8, 9]
    assert [stage.undone for stage in report.stages] == [True, False]
    assert not report.fits


def test_a_target_of_its_own_says_what_is_good_enough() -> None:
    """Although the first one would be content with less."""
    trigger = cc.messages > 8
    alternatives = FirstOf(up_to(8), up_to(6), up_to(2), trigger=trigger, target=cc.messages <= 6)
    positions, report = compact(alternatives)
    assert positions == [4, 5, 6, 7, 8, 9]
    assert [stage.undone for stage in report.stages] == [True, False]


def test_one_that_does_not_fire_is_no_alternative() -> None:
    """The next one is tried."""
    positions, report = compact(FirstOf(up_to(20), up_to(4)))
    assert positions == [6, 7, 8, 9]
    assert [(stage.skipped, stage.undone) for stage in report.stages] == [("trigger", False), (None, False)]


def test_an_alternative_that_raises_undoes_everything() -> None:
    """K9: an error is no reason to try the next one; a strategy that expects failures reports them."""

    def fail() -> None:
        raise ValueError("no")

    index = index_of(LONG)
    with pytest.raises(ValueError, match="no"):
        FirstOf(up_to(9, min_preserved_groups=10), Calls(fail), up_to(2), trigger=cc.messages > 4).compact(index)
    assert index.snapshot() == index_of(LONG).snapshot()


def test_alternatives_in_a_pipeline() -> None:
    """Strategies of strategies compose."""
    either = FirstOf(tools(0, trigger=cc.messages > 6, min_preserved_groups=4), up_to(6))
    positions, report = compact(PipelineStrategy(either, up_to(4)), TOOLS)
    assert positions == [0, 7, 8, 9]
    assert [stage.strategy for stage in report.stages] == ["FirstOf", "Drop"]


# -- both ----------------------------------------------------------------------------------------

SHAPES = [
    PipelineStrategy(tools(1), SlidingWindowStrategy(trigger=cc.turns > 2), up_to(6)),
    PipelineStrategy(PipelineStrategy(tools(0), trigger=cc.messages > 4), up_to(3), target=cc.messages <= 2),
    FirstOf(tools(0, trigger=cc.messages > 3), SlidingWindowStrategy(trigger=cc.messages > 3), up_to(3)),
]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
@settings(max_examples=15)
@given(data=st.data())
def test_valid_in_valid_out_and_idempotent(format: str, data: st.DataObject) -> None:
    """K7 and K10: over random histories of each format."""
    history = data.draw(histories(format))
    strategy = data.draw(st.sampled_from(SHAPES))
    index = cc.MessageIndex.from_messages(history, format=format, validate=True)
    before = {problem.rule for problem in index.problems}
    strategy.compact(index)
    again = cc.MessageIndex.from_messages(index.included_messages(), format=format)
    assert {problem.rule for problem in again.problems} <= before
    assert not strategy.compact(again).changed


@pytest.mark.parametrize("kind", [PipelineStrategy, FirstOf])
def test_it_is_a_value(kind: Any) -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    window, cut = SlidingWindowStrategy(trigger=cc.turns > 20), cc.TruncationStrategy(trigger=cc.tokens > 8_000)
    strategy = kind(window, cut, target=cc.tokens <= 4_000, min_preserved_messages=2)
    assert strategy == kind(stages=[window, cut], target=cc.tokens <= 4_000, min_preserved_messages=2)
    names = {**vars(cc), kind.__name__: kind, "SlidingWindowStrategy": SlidingWindowStrategy}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != kind(cut, window)
    with pytest.raises(AttributeError):
        strategy.stages = ()


def test_the_trigger_follows_the_stages() -> None:
    """Also in a changed copy; one that was given stays."""
    pipeline = PipelineStrategy(up_to(4))
    assert attrs.evolve(pipeline, stages=[up_to(6)]).trigger == (cc.messages > 6)
    given = PipelineStrategy(up_to(4), trigger=cc.messages > 8)
    assert attrs.evolve(given, stages=[up_to(6)]).trigger == (cc.messages > 8)


@pytest.mark.parametrize("kind", [PipelineStrategy, FirstOf])
@pytest.mark.parametrize(
    ("stages", "arguments", "error", "text"),
    [
        ((), {}, ValueError, "stages must be one strategy or more, got none"),
        (([],), {}, TypeError, "stages must be strategies, each an argument of its own, got a list"),
        (("truncation",), {}, TypeError, "stages must be strategies, each an argument of its own, got a str"),
        ((), {"stages": 3}, TypeError, "stages must be a list of strategies, got 3"),
        ((up_to(4),), {"trigger": 3}, TypeError, "trigger must be a predicate such as tokens > 8_000, got 3"),
        (
            (up_to(4),),
            {"trigger": cc.messages > 4, "target": cc.messages <= 5},
            ValueError,
            "target must not be looser than the trigger: expected messages <= 4 or less, got messages <= 5",
        ),
        (
            (up_to(4),),
            {"min_preserved_groups": -1},
            ValueError,
            "min_preserved_groups must be an int of 0 or more, got -1",
        ),
        ((up_to(4),), {"keep_last_user": None}, TypeError, "keep_last_user must be True or False, got None"),
    ],
    ids=str,
)
def test_wrong_arguments(
    kind: Any, stages: tuple[Any, ...], arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        kind(*stages, **arguments)
    assert str(caught.value) == text
