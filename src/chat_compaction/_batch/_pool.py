"""Several processes, each with a session at a time; results in order, and no more than a few of them waiting."""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import TYPE_CHECKING, Any

import attrs

from .._errors import CompactionError
from ._find import Task
from ._result import SessionResult
from ._worker import Orders, Worker, failed

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

_AHEAD = 4  # sessions for each process that are begun ahead of the one whose result is due
_HELD = 2  # sessions that a process has: one in work, and one to go on with while nobody looks
_FINISH = 5.0  # seconds that sessions in work have at the end
_OBEY = 2.0  # seconds that a process has to end when it is told to
_DIED = "the process that worked on it died: it may have taken too much memory"
_CANNOT_START = "the processes of jobs cannot start"
_INSTEAD = {
    "counter": "the path of a tokenizer.json, or a function that stands at the top of a module",
    "pinned": "message ids or positions, or a function that stands at the top of a module",
    "strategy": "one whose class and functions stand at the top of a module",
}
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def pickled(orders: Orders) -> bytes:
    """The orders as another process gets them; raises TypeError for what cannot be handed over, by its argument."""
    parts = {"strategy": orders.strategy, "counter": orders.counter, "pinned": orders.pins}
    for name, value in (parts | orders.settings.arguments).items():
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


def in_processes(
    orders: bytes, jobs: int, tasks: Iterable[Task], known: Callable[[Task], SessionResult | None]
) -> Generator[SessionResult, None, None]:
    """What came of each session, in order; what is known already needs no process, and none is started for it.

    However it ends, sessions that are in work are finished, if that takes no more than seconds, and no more are begun.
    """
    with _Pool(orders, jobs) as pool:
        todo, due = iter(tasks), deque[_Session]()
        while True:
            for task in islice(todo, jobs * _AHEAD - len(due)):
                due.append(_Session(task, known(task)))
                if due[-1].result is None:
                    pool.waiting.append(due[-1])
            if not due:
                return
            pool.turn(None if due[0].result is None else 0)
            if due[0].result is not None:
                yield due.popleft().result  # type: ignore[misc]  # it is there


@attrs.define(eq=False)
class _Session:
    task: Task
    result: SessionResult | None = None


@attrs.define(eq=False)
class _Process:
    process: SpawnProcess
    pipe: Connection
    sessions: deque[_Session] = attrs.field(factory=deque)
    """What was handed to it, in order: the first is in work."""


class _Pool:
    """Processes that are started when there is work for them, and anew when one of them died."""

    def __init__(self, orders: bytes, jobs: int) -> None:
        self._orders = orders
        self._jobs = jobs
        self._processes: list[_Process] = []
        self._could_start = False
        self.waiting: deque[_Session] = deque()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._dismiss()
        finally:  # a second interruption included
            with _uninterrupted():
                self._end()

    def turn(self, seconds: float | None) -> None:
        """Hand out sessions, take what results are there, waiting so long for one, and hand out again."""
        self._hand_out()
        pipes = {process.pipe: process for process in self._processes}
        for pipe in wait(list(pipes), seconds) if pipes else ():
            self._take(pipes[pipe])  # type: ignore[index]  # a connection of ours
        self._hand_out()

    def _hand_out(self) -> None:
        while self.waiting and (process := self._free()):
            process.sessions.append(self.waiting.popleft())
            with suppress(OSError):  # It died; whoever waits for it is told.
                process.pipe.send(process.sessions[-1].task)

    def _free(self) -> _Process | None:
        """Who has least to do, or a new process where each has something to do."""
        least = min(self._processes, key=lambda process: len(process.sessions), default=None)
        if least is not None and not least.sessions:
            return least
        if len(self._processes) < self._jobs:
            return self._start()
        return least if least is not None and len(least.sessions) < _HELD else None

    def _start(self) -> _Process:
        # Started anew, not forked: a fork of a process with threads, as tokenizers has, may hang.
        context = get_context("spawn")
        ours, its = context.Pipe()
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # By itself: it lets interruptions through when it has started.
        with its, _uninterrupted():
            process = context.Process(target=_work, args=(self._orders, its), daemon=True)
            process.start()
            self._processes.append(_Process(process, ours))
        return self._processes[-1]

    def _take(self, process: _Process) -> None:
        try:
            told = process.pipe.recv()
        except (EOFError, OSError):
            self._bury(process)
            return
        except Exception as error:  # a result that cannot be put together here
            told = failed(process.sessions[0].task, f"{type(error).__name__}: {error}")
        if isinstance(told, SessionResult):
            process.sessions.popleft().result = told
        elif told is not None:
            raise CompactionError(f"{_CANNOT_START}: {told}; or pass jobs=1")
        else:
            self._could_start = True

    def _bury(self, process: _Process) -> None:
        """Go on without a process that died: the session that it worked on is lost, those behind it are not."""
        self._processes.remove(process)
        process.pipe.close()
        if not self._could_start:
            raise CompactionError(
                f"{_CANNOT_START}: a script that is run by itself must make the call below "
                'if __name__ == "__main__":; or pass jobs=1'
            )
        if process.sessions:
            lost = process.sessions.popleft()
            lost.result = failed(lost.task, _DIED)
        self.waiting.extendleft(reversed(process.sessions))

    def _dismiss(self) -> None:
        """Let processes end by themselves: each does that when nobody wants its next result."""
        for process in self._processes:
            process.pipe.close()
        self._join(_FINISH)

    def _end(self) -> None:
        """End those that are left, in bounded time."""
        for how in ("terminate", "kill"):
            for process in self._processes:
                if process.process.is_alive():
                    getattr(process.process, how)()
            self._join(_OBEY)

    def _join(self, seconds: float) -> None:
        until = monotonic() + seconds
        for process in self._processes:
            process.process.join(max(0.0, until - monotonic()))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold signals back: while processes are ended, and while one is started, which inherits this."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the other process -----------------------------------------------------------------------


def _work(orders: bytes, pipe: Connection) -> None:
    """Load what is needed, say so, and compact one session after the other until nobody is there any more."""
    _begin()
    try:
        worker = Worker(pickle.loads(orders))  # noqa: S301  # our own bytes
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    with suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            task = pipe.recv()
            _answer(pipe, task, worker.do(task))


def _answer(pipe: Connection, task: Task, result: SessionResult) -> None:
    try:
        pipe.send(result)
    except OSError:
        raise
    except Exception as error:  # It does not pickle.
        pipe.send(failed(task, f"{type(error).__name__}: {error}"))


def _begin() -> None:
    # An interruption at the terminal goes to all processes: the first one decides, and the session is finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    # Each process is one of several; threads of its own would only be in the way.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _leave(number: int, _: Any) -> None:
    """End, and remove what was being written."""
    raise SystemExit(128 + number)
