"""What left, told to those who want to keep it elsewhere: each group once.

An agent with a memory of its own stores what no longer fits. A group is told when it first leaves, or when a summary
first stands for it; what comes back and leaves again is not told again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs

from ._groups import GroupKind
from ._validators import a_callable, one_of, positive
from .instrumentation import log_failure

if TYPE_CHECKING:
    from ._conversation import Conversation


@attrs.frozen
class Departure:
    """A group that left the context: the caller's own messages, where they stand in its list, and why they left."""

    messages: tuple[Any, ...] = attrs.field(repr=False)
    positions: tuple[int, ...]
    kind: GroupKind
    reason: str


def departures(conversation: Conversation) -> list[Departure]:
    """The groups that are out, or that a summary stands for, and were never told; they count as told now.

    Of a group that grew since, only what is new.
    """
    found, told = [], conversation.ledger.delivered
    for bundle in conversation.ledger.grouping.bundles.values():
        summarised = bundle.kind is GroupKind.SUMMARY and bundle.rewritten is not None
        if bundle.included and not summarised:
            continue
        positions = tuple(position for position in bundle.positions if position not in told)
        if not positions:
            continue
        told.update(positions)
        rewritten = bundle.rewritten
        kind = bundle.kind if rewritten is None else rewritten.was
        reason = bundle.excluded or (rewritten.rewriting.reason if rewritten else "")
        messages = tuple(conversation.raw[position] for position in positions)
        found.append(Departure(messages, positions, kind, reason))
    return found


def deliver(conversation: Conversation, receiver: Callable[[Departure], object]) -> None:
    """Tell a receiver what left since it was told last; one that fails is logged, and never fails a pass."""
    for departure in departures(conversation):
        try:
            receiver(departure)
        except Exception:
            log_failure(receiver)


WhenFull = Literal["wait", "drop"]


@attrs.define(eq=False)
class BackgroundDelivery:
    """Hand each departure to ``receiver`` from a thread of its own, so that a slow store never holds up a model call.

    ``max_waiting`` departures wait at the most. When as many do, ``when_full="wait"`` holds up the compaction until
    there is room, and ``"drop"`` lets the newest go and counts it in ``dropped``. :meth:`close`, or the end
    of a ``with`` block, waits until all are delivered.

    >>> import chat_compaction as cc
    >>> memory = []
    >>> with cc.BackgroundDelivery(memory.append) as delivery:
    ...     reducer = cc.as_chat_reducer(
    ...         cc.TruncationStrategy(trigger=cc.groups > 1, min_preserved_groups=1), hooks=(), on_excluded=delivery
    ...     )
    ...     kept = reducer([{"role": "assistant", "content": "Old."}, {"role": "user", "content": "New."}])
    >>> memory[0].messages
    ({'role': 'assistant', 'content': 'Old.'},)
    """

    receiver: Callable[[Departure], object] = attrs.field(validator=a_callable)
    max_waiting: int = attrs.field(default=1_000, validator=positive, kw_only=True)
    when_full: WhenFull = attrs.field(default="wait", validator=one_of(("wait", "drop")), kw_only=True)
    dropped: int = attrs.field(default=0, init=False)
    """How many were let go because too many waited."""
    _waiting: queue.Queue[Departure | None] = attrs.field(init=False, repr=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False, repr=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False, repr=False)

    @_waiting.default
    def _new_queue(self) -> queue.Queue[Departure | None]:
        return queue.Queue(self.max_waiting)

    def __call__(self, departure: Departure) -> None:
        """Take a departure; after :meth:`close` it is delivered in line."""
        with self._lock:
            closed = self._closed
            if not closed and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="chat-compaction delivery", daemon=True)
                self._thread.start()
        if closed:
            self.receiver(departure)
            return
        try:
            self._waiting.put(departure, block=self.when_full == "wait")
        except queue.Full:
            with self._lock:
                self.dropped += 1

    def _work(self) -> None:
        while (departure := self._waiting.get()) is not None:
            try:
                self.receiver(departure)
            except Exception:
                log_failure(self.receiver)
            finally:
                self._waiting.task_done()
        self._waiting.task_done()

    def flush(self) -> None:
        """Wait until everything that was taken is delivered."""
        self._waiting.join()

    def close(self) -> None:
        """Deliver what waits, and end the thread."""
        with self._lock:
            closed, self._closed, thread = self._closed, True, self._thread
        if not closed and thread is not None:
            self._waiting.put(None)
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
