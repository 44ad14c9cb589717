"""Running a strategy: one compaction from the question of the trigger to the report, a plan of one, a stage of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

import attrs

from ._departures import deliver
from ._effects import Core, Effect, run_planned
from ._errors import ContextOverflowError, StrategyError
from ._index import MessageIndex
from ._ledger import Ledger
from ._pass import Pass
from ._report import CompactionReport
from ._reporting import Measure, Reporter
from ._text import shown
from ._validators import check_choice
from .instrumentation import Hook, check_hooks, emit

if TYPE_CHECKING:
    from ._strategy import CompactionStrategy

OnOverflow = Literal["report", "raise"]
ON_OVERFLOW = ("report", "raise")


def compacted(
    strategy: CompactionStrategy, index: MessageIndex, on_overflow: OnOverflow, hooks: Sequence[Hook] | None
) -> Core[CompactionReport]:
    """See :meth:`CompactionStrategy.compact`."""
    check_choice("on_overflow", on_overflow, ON_OVERFLOW)
    check_hooks(hooks)
    if not isinstance(index, MessageIndex):
        raise TypeError(f"index must be a MessageIndex (MessageIndex.from_messages(history)), got {shown(index)}")
    strategy._check()  # A class whose own constructor made no checks is checked here.
    started = perf_counter()
    conversation = index._conversation
    before = conversation.ledger, conversation.reader
    try:
        report = yield from _asked(strategy, index, on_overflow, started)
    except BaseException as error:
        # Edits in place that were found on the way may have grouped everything anew (rule K9).
        conversation.go_back_to(*before)
        if isinstance(error, ContextOverflowError):
            emit(error.report, hooks)
        raise
    receiver = index._settings.on_excluded
    if receiver is not None and report.changed:
        deliver(conversation, receiver)
    emit(report, hooks)
    return report


def planned(strategy: CompactionStrategy, index: MessageIndex) -> Core[CompactionReport]:
    """See :meth:`CompactionStrategy.plan`."""
    strategy._check()
    conversation = index._conversation
    before = conversation.ledger, conversation.reader
    try:
        return (yield from _asked(strategy, index, "report", perf_counter(), planning=True))
    except _UndoneError as undone:
        return undone.report
    finally:
        conversation.go_back_to(*before)


def compact_stage(
    stage: CompactionStrategy, index: MessageIndex, keep: Callable[[CompactionReport], bool] | None, outer: Pass
) -> Core[CompactionReport]:
    """See :meth:`CompactionStrategy.run_stage`."""
    try:
        report = yield from _staged(stage, index, keep)
    except _UndoneError as undone:
        report = attrs.evolve(undone.report, undone=True)
    outer.stages.append(report)
    outer.failures += report.failures
    if report.stopped_by == "effect":
        yield Effect(_unanswered)  # The plan that runs the stage ends here, too: nobody knows what would follow.
    return report


def _unanswered() -> None:
    """What a plan has no answer for."""


def _asked(
    strategy: CompactionStrategy,
    index: MessageIndex,
    on_overflow: OnOverflow,
    started: float,
    *,
    planning: bool = False,
) -> Core[CompactionReport]:
    """Ask the trigger, then work in a transaction."""
    index._ledger.refuse_in_pass("compacted")
    if index._settings.validate:
        index.refresh()
    else:
        index._conversation.refresh_newest()
    reporter = _reporter(strategy, index, started)
    # Edits in place are looked for where they can matter: when a compaction fires (rule C2).
    if reporter.explanation.holds and index.refresh():
        reporter = _reporter(strategy, index, started)
    declined = _declined(strategy, reporter)
    if declined is not None:
        return declined
    with index._ledger.transaction(planning=planning):
        report = yield from _pass(strategy, reporter)
        if planning:
            raise _UndoneError(report)
        if on_overflow == "raise" and not report.fits:
            raise ContextOverflowError(report)
    return report


def _staged(
    stage: CompactionStrategy, index: MessageIndex, keep: Callable[[CompactionReport], bool] | None
) -> Core[CompactionReport]:
    reporter = _reporter(stage, index, perf_counter())
    declined = _declined(stage, reporter)
    if declined is not None:
        return declined
    with index._ledger.stage():
        report = yield from _pass(stage, reporter)
        if keep is not None and not keep(report):
            raise _UndoneError(report)
    return report


def _reporter(strategy: CompactionStrategy, index: MessageIndex, started: float) -> Reporter:
    return Reporter(strategy, index, strategy.trigger.explain(index), started)


def _declined(strategy: CompactionStrategy, reporter: Reporter) -> CompactionReport | None:
    """The report of a compaction that has nothing to do; None where it has."""
    if not reporter.explanation.holds:
        return reporter.declined("trigger")
    return reporter.declined("target") if strategy.reached(reporter.index) else None


def _pass(strategy: CompactionStrategy, reporter: Reporter) -> Core[CompactionReport]:
    index = reporter.index
    ledger = index._ledger
    current = _begun(strategy, ledger)
    if not _may_work(strategy, ledger, current):
        return reporter.declined("floor")
    before = Measure.of(index)
    core = strategy.compact_core(index)
    if inspect.isgenerator(core):
        if current.planning:
            current.interrupted = run_planned(cast("Core[Any]", core))
        else:
            yield from core
    elif core is not None and not isinstance(core, bool):  # ``return self.evict(...)`` is natural.
        raise StrategyError(f"{type(strategy).__name__}.compact_core must {_core_hint(core)}")
    if current.begun != len(current.stages) and not current.interrupted:
        ledger.leave_behind(current)
        how = "run each stage to its end: yield from self.run_stage(index, stage)"
        raise StrategyError(f"{type(strategy).__name__}.compact_core must {how}")
    ledger.settle()
    if index._settings.validate:
        index._conversation.check_rules()
    return reporter.completed(before, more=_may_work(strategy, ledger, current))


def _begun(strategy: CompactionStrategy, ledger: Ledger) -> Pass:
    """The pass under way, as it begins: what a rule holds back is in for good, and what may not be touched is known."""
    current, floor = ledger.current or Pass(), strategy.floor
    ledger.adopt_held()
    current.protected, current.worded = floor.protect(ledger), floor.keep_words(ledger)
    if current.outer is not None:
        current.protected |= current.outer.protected
        current.worded |= current.outer.worded
    return current


def _may_work(strategy: CompactionStrategy, ledger: Ledger, current: Pass) -> bool:
    """Whether there is a group that may leave, or one whose content may be replaced if the strategy does that."""
    return any(ledger.free(current.protected)) or (strategy.shortens and any(ledger.free(current.worded)))


class _UndoneError(Exception):
    """Ends a plan, or a stage that is not kept: what was done is undone, and what it was is told."""

    def __init__(self, report: CompactionReport) -> None:
        super().__init__(report)
        self.report = report


def _core_hint(core: object) -> str:
    if inspect.iscoroutine(core) or inspect.isasyncgen(core):
        if inspect.iscoroutine(core):
            core.close()
        return "not be async: make it a generator, and yield an Effect for what must be awaited"
    return f"exclude what should leave and return nothing, or be a generator of effects; got {shown(core)}"
