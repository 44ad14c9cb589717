"""Any strategy as a chat reducer: a list of messages in, a list of messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import attrs

from ._departures import Departure
from ._errors import ContextOverflowError
from ._index import MessageIndex
from ._reader import checked_list
from ._report import CompactionReport
from ._running import ON_OVERFLOW, OnOverflow
from ._settings import BoundReasoning, IndexSettings
from ._strategy import CompactionStrategy
from ._text import shown
from ._validators import check_choice
from ._work import ON_INVALID, OnInvalid, Work
from .counters import Counter, MediaCosts
from .formats import Format
from .instrumentation import Hook, check_hooks

_MOST_INDEXES = 8


@attrs.define(eq=False)
class ChatReducer:
    """A strategy as a function of a list; make it with :func:`as_chat_reducer`.

    ``reduce(history)`` (or a plain call) and ``areduce`` give a new list with the caller's own message
    objects. Every call decides from the whole history it is given: a reducer keeps what it read and
    counted (of its last few conversations, by identity), never a decision. So it can be shared between
    conversations and threads.
    """

    strategy: CompactionStrategy
    settings: IndexSettings = attrs.field(repr=False)
    on_invalid: OnInvalid = "keep"
    on_overflow: OnOverflow = "report"
    hooks: Sequence[Hook] | None = attrs.field(default=None, repr=False)
    last_report: CompactionReport | None = attrs.field(default=None, init=False, repr=False)
    """The report of the latest call that ended; with several threads, of one of them."""
    _indexes: list[MessageIndex] = attrs.field(factory=list, init=False, repr=False)
    _lock: Lock = attrs.field(factory=Lock, init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or one in another process, has the arguments and reads anew: a lock cannot be copied.
        return ChatReducer, (self.strategy, self.settings, self.on_invalid, self.on_overflow, self.hooks)

    def __call__(self, history: Sequence[Any]) -> list[Any]:
        """The same as :meth:`reduce`."""
        return self.reduce(history)

    def reduce(self, history: Sequence[Any]) -> list[Any]:
        """The messages to send: the caller's own objects, in their order."""
        return self.reduce_with_report(history)[0]

    async def areduce(self, history: Sequence[Any]) -> list[Any]:
        """:meth:`reduce` for async code."""
        return (await self.areduce_with_report(history))[0]

    def reduce_with_report(self, history: Sequence[Any]) -> tuple[list[Any], CompactionReport]:
        """The messages to send, and what was done."""
        with self._work(history) as work:
            report = self.strategy.compact(work.index, on_overflow=self.on_overflow, hooks=work.hooks(self.hooks))
            return self._result(work, report)

    async def areduce_with_report(self, history: Sequence[Any]) -> tuple[list[Any], CompactionReport]:
        """:meth:`reduce_with_report` for async code."""
        with self._work(history) as work:
            report = await self.strategy.acompact(
                work.index, on_overflow=self.on_overflow, hooks=work.hooks(self.hooks)
            )
            return self._result(work, report)

    def _result(self, work: Work, report: CompactionReport) -> tuple[list[Any], CompactionReport]:
        report = work.told(report)
        self.last_report = report
        return work.index.included_messages(), report

    @contextmanager
    def _work(self, history: Sequence[Any]) -> Iterator[Work]:
        """An index of the history that nobody else has meanwhile, with everything included."""
        checked_list(history, "history")
        index = self._taken(history)
        if index is None:
            index = MessageIndex(history, self.settings, undisturbed=True)
        else:
            index.include_all()
            index.update(history)
            index._conversation.undisturbed = True
        work = Work.on(index, self.on_invalid)
        try:
            yield work
        except ContextOverflowError as overflow:
            self.last_report = work.told(overflow.report)
            if work.repaired is None:
                raise
            raise ContextOverflowError(self.last_report) from overflow
        index._conversation.undisturbed = False
        with self._lock:
            # One that failed is not put back: it is made anew where it is needed again.
            self._indexes = [index, *self._indexes[: _MOST_INDEXES - 1]]

    def _taken(self, history: Sequence[Any]) -> MessageIndex | None:
        """Take out the index of an earlier call that this history goes on from, if there is one."""
        with self._lock:
            for place, index in enumerate(self._indexes):
                if index._conversation.precedes(history):
                    return self._indexes.pop(place)
        return None


def as_chat_reducer(
    strategy: CompactionStrategy,
    *,
    counter: Counter | Callable[[str], int] | Any = None,
    format: str | Format = "auto",
    pinned: Callable[[Any], object] | Iterable[Any] | None = None,
    reserved: int = 0,
    on_invalid: OnInvalid = "keep",
    on_overflow: OnOverflow = "report",
    hooks: Sequence[Hook] | None = None,
    pending_turns: int = 1,
    media_costs: MediaCosts | None = None,
    bound_reasoning: BoundReasoning = "keep",
    validate: bool = False,
    summary_key: str | bytes | None = None,
    on_excluded: Callable[[Departure], object] | None = None,
) -> ChatReducer:
    """Turn any strategy into a reducer that can be called on a list of messages.

    The arguments are those of :meth:`MessageIndex.from_messages`, and: ``on_invalid`` for a history that breaks a
    rule already: ``"keep"`` reports it, ``"repair"`` mends it first and reports what was done
    (:func:`chat_compaction.repair`), ``"raise"`` raises :class:`InvalidHistoryError`;
    ``on_overflow="raise"`` raises :class:`ContextOverflowError` where the report would say ``fits=False``;
    ``hooks`` get the report of every call (None: log through structlog; ``()``: none).

    >>> import chat_compaction as cc
    >>> reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(max_tokens=8_000), hooks=())
    >>> reducer([{"role": "user", "content": "Hello."}])
    [{'role': 'user', 'content': 'Hello.'}]
    """
    if not isinstance(strategy, CompactionStrategy):
        raise TypeError(f"strategy must be a CompactionStrategy, got {shown(strategy)}")
    check_choice("on_invalid", on_invalid, ON_INVALID)
    check_choice("on_overflow", on_overflow, ON_OVERFLOW)
    check_hooks(hooks)
    settings = IndexSettings(
        counter,
        format,
        pinned,
        reserved,
        pending_turns,
        media_costs,
        validate,
        bound_reasoning,
        summary_key,
        on_excluded,
    )
    return ChatReducer(strategy, settings, on_invalid, on_overflow, hooks)
