"""Many sessions: files in, shorter files out, one after the other or in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from .._reducer import as_chat_reducer
from .._running import OnOverflow
from .._settings import BoundReasoning
from .._strategy import CompactionStrategy
from .._work import OnInvalid
from ..counters import Counter, EstimateCounter, MediaCosts
from ..formats import Format
from ..instrumentation import Hook, emit
from ._find import Task, folder_of, sources_of, tasks_of
from ._pool import in_processes, pickled
from ._result import SessionResult
from ._worker import Orders, Settings, Worker, pins_of

__all__ = ["SessionResult", "compact_sessions"]


def compact_sessions(
    sessions: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    strategy: CompactionStrategy,
    *,
    output: str | os.PathLike[str] | None = None,
    jobs: int | None = 1,
    force: bool = False,
    counter: Counter | Callable[[str], int] | Any = None,
    format: str | Format = "auto",
    pinned: Callable[[Any], object] | Iterable[str | int] | None = None,
    reserved: int = 0,
    on_invalid: OnInvalid = "keep",
    on_overflow: OnOverflow = "report",
    hooks: Sequence[Hook] | None = None,
    pending_turns: int = 1,
    media_costs: MediaCosts | None = None,
    bound_reasoning: BoundReasoning = "keep",
    validate: bool = False,
) -> Iterator[SessionResult]:
    """Compact many session files, and give what came of each, in their order, as soon as it is there.

    Nothing is done until the results are asked for.

    ``sessions`` is a file, a folder (every ``*.json`` and ``*.jsonl`` below it, sorted), a pattern such as
    ``"logs/**/*.jsonl"``, or several of these. ``output`` is a folder: each session is written there under its
    path below the folder that was named, or that the pattern begins with, and a file under its name. Without
    one nothing is written. No session is ever overwritten: ``output`` must be another folder. Nor is any file in it
    that no earlier run wrote, but with ``force``.

    ``jobs`` is how many processes work, 1 for this one alone, None for as many as there are cores. What they
    need must pickle: a counter given as the path of a ``tokenizer.json`` always does, and is loaded once in each.
    A script needs ``if __name__ == "__main__":`` around the call, as with everything that starts processes.

    A session that fails is a result with an ``error``, and the others go on. One that an earlier run with the
    same settings has written is not done again (``resumed``), unless its file or the written one has changed
    since, or with ``force``. ``pinned`` may also name positions, which hold in every session; ``hooks`` run in
    this process. The other arguments are those of :func:`as_chat_reducer`.

    At the call, an argument that is wrong, or does not pickle where ``jobs`` needs it, is a :class:`TypeError` or
    :class:`ValueError`, and so it is where no session is found, or a file would be overwritten. Processes that
    cannot start are a :class:`CompactionError` at the first result that needs one.
    """
    settings = Settings(
        format=format,
        reserved=reserved,
        on_invalid=on_invalid,
        on_overflow=on_overflow,
        pending_turns=pending_turns,
        media_costs=media_costs,
        bound_reasoning=bound_reasoning,
        validate=validate,
    )
    orders = Orders(strategy, counter, pins_of(pinned), settings, folder_of(output), force)
    return Plan.of(sessions, orders, jobs, hooks).run()


@attrs.frozen
class Plan:
    """What is to be done, checked."""

    sources: list[Path]
    tasks: list[Task]
    orders: Orders
    jobs: int
    hooks: Sequence[Hook] | None

    @classmethod
    def of(cls, sessions: object, orders: Orders, jobs: int | None = 1, hooks: Sequence[Hook] | None = None) -> Plan:
        """Check the arguments of :func:`compact_sessions`."""
        # The counter may take a while to load: it is checked when it is.
        pinned = orders.pins.predicate or orders.pins.ids or None
        as_chat_reducer(
            orders.strategy, counter=EstimateCounter(), pinned=pinned, hooks=hooks, **orders.settings.arguments
        )
        if not isinstance(orders.force, bool):
            raise TypeError(f"force must be True or False, got {orders.force!r}")
        processes, sources = _processes(jobs), sources_of(sessions)
        return cls(sources, tasks_of(sources, orders.output, orders.force), orders, processes, hooks)

    def run(self) -> Generator[SessionResult, None, None]:
        """What comes of each session, as :func:`compact_sessions` gives it."""
        # Here, so that what does not pickle, and a counter that does not load, is an error of the call.
        orders = pickled(self.orders) if self.jobs > 1 else b""
        worker = Worker(self.orders)
        known = worker.earlier.known
        if self.jobs > 1:
            return self._told(in_processes(orders, min(self.jobs, len(self.tasks)), self.tasks, known))
        return self._told(known(task) or worker.do(task) for task in self.tasks)

    def _told(self, results: Generator[SessionResult, None, None]) -> Generator[SessionResult, None, None]:
        """The results; the hooks get each report first, but for what an earlier run did."""
        with closing(results):
            for result in results:
                if result.report is not None and not result.resumed:
                    emit(result.report, self.hooks)
                yield result


def _processes(jobs: int | None) -> int:
    if jobs is None:
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        return len(cores)
    if isinstance(jobs, bool) or not isinstance(jobs, int):
        raise TypeError(f"jobs must be an int of 1 or more, or None for as many as there are cores, got {jobs!r}")
    if jobs < 1:
        raise ValueError(f"jobs must be an int of 1 or more, or None for as many as there are cores, got {jobs!r}")
    return jobs
