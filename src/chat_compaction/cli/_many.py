"""``chat-compaction compact`` on many sessions: each result as it comes, and their sum at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import attrs

from .._batch import Plan, SessionResult
from .._batch._worker import Orders, SessionPins
from .._strategy import CompactionStrategy
from ..counters import EstimateCounter
from ._click import arguments_are_options, for_people, tell, usage_error
from ._counting import counter_of
from ._files import check_output, same_file, shown, writing
from ._tally import Tally

_ARGUMENTS = {"sessions": "SESSION", "output": "--output", "path": "--tokenizer"}
_SETTINGS = ("format", "reserved", "on_invalid", "on_overflow", "bound_reasoning")


def compact_many(
    sessions: Sequence[str], strategy: CompactionStrategy, output: str, report: str | None, options: dict[str, Any]
) -> bool:
    """Compact them all; whether all went well, and fit."""
    plan = _plan(sessions, strategy, output, options)
    if report is not None:
        _check_report(report, plan)
    tally = Tally()
    with (
        arguments_are_options(_ARGUMENTS),
        closing(plan.run()) as results,
        nullcontext(_nowhere) if report is None else writing(report) as write,
        _progress(len(plan.tasks)) if _is_watched(options) else nullcontext(_nothing) as advance,
    ):
        for result in results:
            write(f"{json.dumps(_line(result), ensure_ascii=False)}\n")
            tally.add(_reworded(result))
            advance()
    for line in tally.failures:
        tell(line)
    if not options["quiet"]:
        for line in tally.unfit:
            tell(line)
        tell(tally.summary())
    return tally.ok


def _plan(sessions: Sequence[str], strategy: CompactionStrategy, output: str, options: dict[str, Any]) -> Plan:
    for name in ("sidechain", "table"):
        if options[name]:
            usage_error(f"--{name} is for a single session, got {' '.join(map(shown, sessions))}")
    if "-" in sessions:
        usage_error("standard input (-) must be the only session, got more beside it")
    if output == "-":
        usage_error("--output must be a folder for many sessions, got standard output")
    settings = {
        **{name: options[name] for name in _SETTINGS},
        "pending_turns": 1,
        "media_costs": None,
        "validate": False,
    }
    pins = SessionPins(positions=tuple(sorted(options["pin"])))
    counter = "--counter" if options["tokenizer"] is None else "--tokenizer"
    with arguments_are_options(_ARGUMENTS | {"counter": counter}):
        orders = Orders(strategy, _counter(options), pins, settings, Path(output), options["force"])
        return Plan.of(sessions, orders, options["jobs"] or (None if options["jobs"] == 0 else 1))


def _counter(options: dict[str, Any]) -> Any:
    """What each process makes a counter of, once."""
    tokenizer, name = options["tokenizer"], options["counter"]
    if tokenizer is None:
        return EstimateCounter() if name == "estimate" else None if name == "auto" else name
    if name is None and Path(tokenizer).is_file():
        return tokenizer
    return counter_of(name, tokenizer)  # It is no plain file, or says what is wrong.


def _check_report(report: str, plan: Plan) -> None:
    check_output(report)
    for task in plan.tasks:
        if same_file(report, str(task.path), 0):
            usage_error(f"--report must be another file than the sessions, got {shown(report)}, which is one")


def _line(result: SessionResult) -> dict[str, Any]:
    """A line of the report."""
    return {
        "session": shown(str(result.path)),
        "output": None if result.output is None else shown(str(result.output)),
        "error": result.error,
        "resumed": result.resumed,
        "notes": result.notes,
        "report": None if result.report is None else result.report.to_dict(),
    }


def _reworded(result: SessionResult) -> SessionResult:
    """The library speaks of its argument, the user knows the option."""
    error = None if result.error is None else result.error.replace("; format= names", "; --format names")
    return attrs.evolve(result, error=error)


# -- progress -----------------------------------------------------------------------------------


def _nowhere(_: str) -> None:
    """Where nothing is written."""


def _nothing() -> None:
    """Where nobody looks."""


def _is_watched(options: dict[str, Any]) -> bool:
    # With --verbose, events would run through the bar.
    return not options["quiet"] and not options["verbose"] and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error; gives the function that moves it on by a session."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("Compacting sessions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # Without a thread of its own: it moves when a session is done, and then only.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=total)

        def advance() -> None:
            with for_people():
                progress.update(task, advance=1, refresh=True)

        yield advance
