"""``chat-compaction compact`` on many sessions: each result as it comes, and their sum at the end."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import attrs

from .._batch import Plan, SessionResult
from .._batch._find import folder_of, is_read
from .._batch._worker import Orders, Settings, pins_of
from .._strategy import CompactionStrategy
from ..counters import EstimateCounter
from ._click import arguments_are_options, for_people, tell, usage_error
from ._counting import counter_of
from ._files import check_output, same_file, shown, writing
from ._tally import Tally

_ARGUMENTS = {"sessions": "SESSION", "output": "--output", "path": "--tokenizer", "force=True": "--force"}
_SETTINGS = ("format", "reserved", "on_invalid", "on_overflow", "bound_reasoning")


def compact_many(
    sessions: Sequence[str], strategy: CompactionStrategy, output: str, report: str | None, options: dict[str, Any]
) -> bool:
    """Compact them all; whether all went well, and fit."""
    plan = _plan(sessions, strategy, output, options)
    if report is not None:
        _check_report(report, plan, Path(output))
    tally = Tally()
    with (
        _ended_in_order(),
        arguments_are_options(_names(options)),
        closing(plan.run()) as results,
        nullcontext(_nowhere) if report is None else writing(report) as write,
        _progress(len(plan.tasks)) if _is_watched(options) else nullcontext(_nothing) as advance,
    ):
        for result in results:
            write(f"{json.dumps(_line(result), ensure_ascii=False)}\n")
            tally.add(_reworded(result))
            advance()
    for line in (*tally.failures, *tally.troubles):
        tell(line)
    if not options["quiet"]:
        for line in tally.unfit:
            tell(line)
        tell(tally.summary())
    return tally.ok


def _plan(sessions: Sequence[str], strategy: CompactionStrategy, output: str, options: dict[str, Any]) -> Plan:
    for name in ("sidechain", "table", "dry_run"):
        if options[name]:
            usage_error(f"--{name.replace('_', '-')} is for a single session, got {' '.join(map(shown, sessions))}")
    if "-" in sessions:
        usage_error("standard input (-) must be the only session, got more beside it")
    if output == "-":
        usage_error("--output must be a folder for many sessions, got standard output")
    settings = Settings(**{name: options[name] for name in _SETTINGS})
    with arguments_are_options(_names(options)):
        pins, folder = pins_of(options["pin"]), folder_of(output)
        orders = Orders(strategy, _counter(options), pins, settings, folder, options["force"])
        return Plan.of(sessions, orders, _processes(options["jobs"]))


def _names(options: dict[str, Any]) -> dict[str, str]:
    """The options that the arguments of the library stand for."""
    return _ARGUMENTS | {"counter": "--counter" if options["tokenizer"] is None else "--tokenizer"}


def _processes(asked: int | None) -> int | None:
    """As the library has it: 1 is this process alone, None one for each core, which is 0 here."""
    if asked is None:
        return 1
    return None if asked == 0 else asked


def _counter(options: dict[str, Any]) -> Any:
    """What each process makes a counter of, once."""
    tokenizer, name = options["tokenizer"], options["counter"]
    if tokenizer is None:
        return EstimateCounter() if name == "estimate" else None if name == "auto" else name
    if name is None and Path(tokenizer).is_file():
        return tokenizer
    return counter_of(name, tokenizer)  # It is no plain file, or says what is wrong.


def _check_report(report: str, plan: Plan, output: Path) -> None:
    check_output(report)
    for task in plan.tasks:
        if same_file(report, str(task.path), 0):
            usage_error(f"--report must be another file than the sessions, got {shown(report)}, which is one")
        if same_file(report, str(output / task.name), 1):
            usage_error(f"--report must be another file than what is written, got {shown(report)}, which is an output")
    if is_read(Path(report), plan.sources, output):
        usage_error(
            "--report must be outside of the sessions' folder, or have another ending, "
            f"got {shown(report)}, which the next run would read as a session"
        )


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """End on SIGTERM and SIGHUP as on Ctrl-C: the other processes first, and with the status that shells give."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Ignored, as under nohup, it stays so; and only a main thread may ask for signals.
    mine = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in numbers if mine}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, _end)
        yield
    except _Ended as end:
        tell("chat-compaction: terminated")
        sys.exit(128 + end.args[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Ended(BaseException):
    """The number of a signal that ends the command; no error of a session."""


def _end(number: int, _: object) -> NoReturn:
    raise _Ended(number)


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
