"""Several processes, each with a session at a time; results in order, and no more than a few of them waiting."""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context

from .._errors import CompactionError
from ._find import Task
from ._result import SessionResult
from ._worker import Orders, Worker, failed

_AHEAD = 4  # sessions for each process, handed over ahead of the one whose result is due
_DIED = "the process that worked on it died: it may have taken too much memory"
_INSTEAD = {
    "counter": "the path of a tokenizer.json, or a function that stands at the top of a module",
    "pinned": "message ids or positions, or a function that stands at the top of a module",
    "strategy": "one whose class and functions stand at the top of a module",
}


def pickled(orders: Orders) -> bytes:
    """The orders as another process gets them; raises TypeError for what cannot be handed over, by its argument."""
    parts = {"strategy": orders.strategy, "counter": orders.counter, "pinned": orders.pins, **orders.settings}
    for name, value in parts.items():
        try:
            pickle.dumps(value)
        except Exception as error:
            instead = _INSTEAD.get(name, "one that does")
            # Its own words may hold its address, and no more.
            raise TypeError(
                f"{name} must pickle where jobs is more than 1, got a value of type {type(value).__name__}: "
                f"{error}; pass {instead}, or jobs=1"
            ) from error
    return pickle.dumps(orders)


def in_processes(orders: bytes, jobs: int, tasks: Iterable[Task]) -> Generator[SessionResult, None, None]:
    """What came of each session, in order.

    However it ends, sessions that are in work are finished, and no more are begun.
    """
    with _Pool(orders, jobs) as pool:
        pool.start()
        yield from _in_order(pool, iter(tasks), jobs * _AHEAD)


def _in_order(pool: _Pool, tasks: Iterator[Task], ahead: int) -> Iterator[SessionResult]:
    waiting: deque[tuple[Task, Future[SessionResult]]] = deque()
    while True:
        while len(waiting) < ahead and (task := next(tasks, None)) is not None:
            waiting.append((task, pool.submit(task)))
        if not waiting:
            return
        task, future = waiting.popleft()
        if not _died(future):
            yield _taken(task, future)
            continue
        pool.restart()
        if ahead == 1:
            yield failed(task, _DIED)
            continue
        # Nobody knows which of those in work it was: each by itself, and so does its death name it.
        waiting.appendleft((task, future))
        suspects = _in_order(pool, iter([one for one, its in waiting if _died(its)]), 1)
        for one, its in waiting:
            yield next(suspects) if _died(its) else _taken(one, its)
        waiting.clear()


def _died(future: Future[SessionResult]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _taken(task: Task, future: Future[SessionResult]) -> SessionResult:
    error = future.exception()
    if isinstance(error, Exception):  # A result that does not pickle, for one.
        return failed(task, f"{type(error).__name__}: {error}")
    return future.result()


class _Pool:
    """Processes that can be started anew when one of them died."""

    def __init__(self, orders: bytes, jobs: int) -> None:
        self._orders = orders
        self._jobs = jobs
        self._pool = self._new()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def restart(self) -> None:
        """Go on with other processes."""
        self._pool.shutdown(cancel_futures=True)
        self._pool = self._new()

    def start(self) -> None:
        """Start the first process, with all that it needs; what is wrong with that is wrong for every session."""
        try:
            with _uninterrupted():
                started = self._pool.submit(_start)
            started.result()
        except BrokenProcessPool as error:
            raise CompactionError(
                "the processes of jobs cannot start: a script that is run by itself must make the call below "
                'if __name__ == "__main__":; or pass jobs=1'
            ) from error

    def submit(self, task: Task) -> Future[SessionResult]:
        """Hand a session over; a pool that has died meanwhile shows in the result."""
        try:
            with _uninterrupted():
                return self._pool.submit(_do, task)
        except BrokenProcessPool as error:
            future: Future[SessionResult] = Future()
            future.set_exception(error)
            return future

    def _new(self) -> ProcessPoolExecutor:
        # Started anew, not forked: a fork of a process with threads, as tokenizers has, may hang.
        return ProcessPoolExecutor(self._jobs, get_context("spawn"), _begin, (self._orders,))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold an interruption back: a process that is being started inherits this, and has no use for one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the other process -----------------------------------------------------------------------

_orders = b""


def _begin(orders: bytes) -> None:
    global _orders
    # An interruption at the terminal goes to all processes: the first one decides, and the session is finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # Each process is one of several; threads of its own would only be in the way.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _orders = orders


@cache
def _worker() -> Worker:
    return Worker(pickle.loads(_orders))  # noqa: S301  # our own bytes


def _start() -> None:
    _worker()


def _do(task: Task) -> SessionResult:
    return _worker().do(task)
