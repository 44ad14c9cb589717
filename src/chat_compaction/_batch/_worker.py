"""What one process does: it loads the counter once, and compacts one session after the other."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import attrs

from .._errors import CompactionError, ContextOverflowError, SessionError
from .._reducer import as_chat_reducer
from .._strategy import CompactionStrategy
from .._text import some
from ..counters import resolve_counter, shared_cache
from ..formats import FORMATS
from ..formats._sessions import Session, parse_session
from ._find import Task
from ._record import Digesting, Record, Records, digest, digest_of
from ._result import SessionResult


@attrs.frozen
class SessionPins:
    """What is pinned in every session: by a predicate, by message ids, by positions."""

    predicate: Callable[[Any], object] | None = None
    ids: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()

    def of(self, messages: list[Any]) -> Any:
        """What a reducer takes, for one session."""
        if self.positions and self.positions[-1] >= len(messages):
            number = some(len(messages), "message")
            raise CompactionError(f"there is no position {self.positions[-1]} to be pinned among {number}")
        if self.predicate is not None:
            return self.predicate
        return [*self.ids, *(messages[position] for position in self.positions)] or None


def pins_of(pinned: Any) -> SessionPins:
    """What an argument pins, which is for every session, and so cannot be a message object."""
    if pinned is None or callable(pinned):
        return SessionPins(pinned)
    expected = "pinned must be a predicate over messages, or an iterable of message ids and positions"
    if isinstance(pinned, str | bytes | Mapping) or not isinstance(pinned, Iterable):
        raise TypeError(f"{expected}, got a value of type {type(pinned).__name__}")
    items = list(pinned)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise TypeError(f"{expected}, got a value of type {type(item).__name__} in it")
        if isinstance(item, int) and item < 0:
            raise ValueError(f"{expected} of 0 or more, got {item}")
    positions = sorted(item for item in items if isinstance(item, int))
    return SessionPins(None, tuple(sorted(item for item in items if isinstance(item, str))), tuple(positions))


@attrs.frozen
class Orders:
    """All that is to be done to every session."""

    strategy: CompactionStrategy
    counter: Any
    pins: SessionPins
    settings: dict[str, Any]
    output: Path | None
    force: bool

    def digest(self, counter_name: str) -> str | None:
        """What tells these orders from others, in another process, too; None where nothing does.

        What does not pickle is known in this process only. Of a function its name is known, not what it does.
        """
        if isinstance(self.counter, str | os.PathLike):
            counter: Any = digest_of(Path(self.counter))
        else:
            counter = self.counter
        try:
            what = pickle.dumps((_version(), self.strategy, self.pins, self.settings, counter_name, counter))
        except Exception:  # whatever an object of the caller's raises
            return None
        return digest(what)


def _version() -> str:
    try:
        return version("chat-compaction")
    except PackageNotFoundError:  # run from its source
        return ""


class Worker:
    """The orders, with the counter loaded."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        # One cache for all sessions: those of one agent begin alike.
        self._counts = shared_cache(resolve_counter(orders.counter))
        self._records = None if orders.output is None else Records(orders.output)
        self._settings = orders.digest(self._counts.counter.name)

    def do(self, task: Task) -> SessionResult:
        """What comes of one session; whatever goes wrong with it is told in the result."""
        try:
            return self._known(task) or self._compacted(task)
        except ContextOverflowError as error:
            return failed(task, str(error), report=error.report)
        except SessionError as error:
            return SessionResult(path=task.path, error=_line(str(error)))  # It names the file.
        except CompactionError as error:
            return failed(task, str(error))
        except OSError as error:
            return failed(task, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        except Exception as error:  # a strategy, or another object of the caller's
            return failed(task, f"{type(error).__name__}: {error}")

    def _known(self, task: Task) -> SessionResult | None:
        """What an earlier run made of it, if that is what this one would make of it."""
        if self._records is None or self._orders.force or self._settings is None:
            return None
        record = self._records.find(task.name)
        if record is None or record.settings != self._settings:
            return None
        output = self._records.output / task.name
        if digest_of(output) != record.output or digest_of(task.path) != record.session:
            return None
        return SessionResult(path=task.path, report=record.report, output=output, resumed=True, notes=record.notes)

    def _compacted(self, task: Task) -> SessionResult:
        with task.path.open("rb") as stream:
            source = Digesting(stream)
            session = parse_session(source, str(task.path))
        reducer = as_chat_reducer(
            self._orders.strategy,
            counter=self._counts,
            pinned=self._orders.pins.of(session.messages),
            hooks=(),
            **{**self._orders.settings, "format": self._format(session)},
        )
        kept, report = reducer.reduce_with_report(session.messages)
        output = None
        if self._records is not None:
            written = self._records.write(task.name, session.pieces(kept))
            output = self._records.output / task.name
            if self._settings is not None:
                record = Record(self._settings, source.hexdigest(), written, report, session.notes)
                self._records.keep(task.name, record)
        return SessionResult(path=task.path, report=report, output=output, notes=session.notes)

    def _format(self, session: Session) -> Any:
        asked = self._orders.settings["format"]
        return session.format if asked == "auto" and session.format in FORMATS else asked


def failed(task: Task, why: str, **fields: Any) -> SessionResult:
    """The result of a session that could not be compacted."""
    return SessionResult(path=task.path, error=_line(f"{task.path}: {why}"), **fields)


def _line(text: str) -> str:
    return " ".join(text.split("\n"))
