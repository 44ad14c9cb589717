"""What one process does: it loads the counter once, and compacts one session after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import attrs

from .._errors import CompactionError, ContextOverflowError, SessionError
from .._reducer import as_chat_reducer
from .._running import OnOverflow
from .._settings import BoundReasoning
from .._strategy import CompactionStrategy
from .._text import some
from .._work import OnInvalid
from ..counters import MediaCosts, resolve_counter, shared_cache
from ..formats import FORMATS, Format
from ..formats._sessions import Session, parse_session
from ._canonical import canonical
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
    positions = sorted({item for item in items if isinstance(item, int)})
    return SessionPins(None, tuple(sorted({item for item in items if isinstance(item, str)})), tuple(positions))


@attrs.frozen(kw_only=True)
class Settings:
    """The arguments of a reducer that are the same for every session; checked by the reducer."""

    format: str | Format = "auto"
    reserved: int = 0
    on_invalid: OnInvalid = "keep"
    on_overflow: OnOverflow = "report"
    pending_turns: int = 1
    media_costs: MediaCosts | None = None
    bound_reasoning: BoundReasoning = "keep"
    validate: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """As a reducer takes them."""
        return attrs.asdict(self, recurse=False)


@attrs.frozen
class Orders:
    """All that is to be done to every session."""

    strategy: CompactionStrategy
    counter: Any
    pins: SessionPins
    settings: Settings
    output: Path | None
    force: bool

    def digest(self, counter_name: str) -> str | None:
        """What tells these orders from others, in another process, too; None where nothing does.

        What does not pickle is known in this process only. Of a function or a class the name is known, not what it
        does.
        """
        counter = self.counter
        if isinstance(counter, str | os.PathLike):
            counter = digest_of(Path(counter))
        what = _version(), self.strategy, self.pins, self.settings.arguments, counter_name, counter
        try:
            return digest(canonical(what).encode("utf-8", "surrogatepass"))
        except Exception:  # whatever an object of the caller's raises
            return None


def _version() -> str:
    try:
        return version("chat-compaction")
    except PackageNotFoundError:  # run from its source
        return ""


@attrs.frozen
class Earlier:
    """What earlier runs did with the same settings, of which the digest is known."""

    records: Records | None
    settings: str | None
    force: bool

    def known(self, task: Task) -> SessionResult | None:
        """What an earlier run made of a session, if that is what this one would make of it."""
        if self.records is None or self.force or self.settings is None:
            return None
        record = self.records.find(task.name)
        if record is None or record.settings != self.settings:
            return None
        output = self.records.output / task.name
        if digest_of(output) != record.output or digest_of(task.path) != record.session:
            return None
        return SessionResult(path=task.path, report=record.report, output=output, resumed=True, notes=record.notes)


class Worker:
    """The orders, with the counter loaded."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        # One cache for all sessions: those of one agent begin alike.
        self._counts = shared_cache(resolve_counter(orders.counter))
        self._records = None if orders.output is None else Records(orders.output)
        self.earlier = Earlier(self._records, orders.digest(self._counts.counter.name), orders.force)

    def do(self, task: Task) -> SessionResult:
        """What comes of one session; whatever goes wrong with it is told in the result."""
        try:
            return self._compacted(task)
        except ContextOverflowError as error:
            return failed(task, str(error), report=error.report)
        except SessionError as error:
            return SessionResult(path=task.path, error=_line(str(error)))  # It names the file.
        except CompactionError as error:
            return failed(task, str(error))
        except OSError as error:
            return failed(task, _reason(error, task))
        except Exception as error:  # a strategy, or another object of the caller's
            return failed(task, f"{type(error).__name__}: {error}")

    def _compacted(self, task: Task) -> SessionResult:
        with task.path.open("rb") as stream:
            source = Digesting(stream)
            session = parse_session(source, str(task.path))
        reducer = as_chat_reducer(
            self._orders.strategy,
            counter=self._counts,
            pinned=self._orders.pins.of(session.messages),
            hooks=(),
            **{**self._orders.settings.arguments, "format": self._format(session)},
        )
        kept, report = reducer.reduce_with_report(session.messages)
        output = None
        if self._records is not None:
            record = partial(
                Record, self.earlier.settings or "", source.hexdigest(), report=report, notes=session.notes
            )
            output = self._records.write(task.name, session.pieces(kept), lambda written: record(output=written))
        return SessionResult(path=task.path, report=report, output=output, notes=session.notes)

    def _format(self, session: Session) -> Any:
        asked = self._orders.settings.format
        return session.format if asked == "auto" and session.format in FORMATS else asked


def failed(task: Task, why: str, **fields: Any) -> SessionResult:
    """The result of a session that could not be compacted."""
    return SessionResult(path=task.path, error=_line(f"{task.path}: {why}"), **fields)


def _reason(error: OSError, task: Task) -> str:
    name = error.filename2 or error.filename
    return f"{error.strerror or error}{f': {name}' if name and str(name) != str(task.path) else ''}"


def _line(text: str) -> str:
    return " ".join(text.split("\n"))
