"""What left, told to those who want to keep it elsewhere: each group once.

An agent with a memory of its own stores what no longer fits. A group is told when it first leaves, or when a summary
first stands for it; what comes back and leaves again is not told again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread, current_thread
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs

from ._groups import GroupKind
from ._validators import a_plain_function, one_of, positive
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
            log_failure("receiver of what left", receiver)


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

    receiver: Callable[[Departure], object] = attrs.field(validator=a_plain_function)
    max_waiting: int = attrs.field(default=1_000, validator=positive, kw_only=True)
    when_full: WhenFull = attrs.field(default="wait", validator=one_of(("wait", "drop")), kw_only=True)
    dropped: int = attrs.field(default=0, init=False)
    """How many were let go because too many waited."""
    _waiting: deque[Departure] = attrs.field(factory=deque, init=False, repr=False)
    _changed: Condition = attrs.field(factory=Condition, init=False, repr=False)
    """Guards all that follows and what waits; notified where any of it changes."""
    _thread: Thread | None = attrs.field(default=None, init=False, repr=False)
    _busy: bool = attrs.field(default=False, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False, repr=False)

    def __call__(self, departure: Departure) -> None:
        """Take a departure; after :meth:`close` it is delivered in line."""
        with self._changed:
            if self.when_full == "wait":
                self._changed.wait_for(lambda: self._closed or len(self._waiting) < self.max_waiting)
            if not self._closed:
                self._take(departure)
                return
        self._deliver(departure)

    def _take(self, departure: Departure) -> None:
        if len(self._waiting) >= self.max_waiting:
            self.dropped += 1
            return
        self._waiting.append(departure)
        self._changed.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._work, name="chat-compaction delivery", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return  # Closed, and nothing can come any more.
                departure, self._busy = self._waiting.popleft(), True
                self._changed.notify_all()
            self._deliver(departure)

    def _deliver(self, departure: Departure) -> None:
        try:
            self.receiver(departure)
        except Exception:
            log_failure("receiver of what left", self.receiver)

    def flush(self) -> None:
        """Wait until everything that was taken is delivered. Not for the receiver: it would wait for itself."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy))

    def close(self) -> None:
        """Deliver what waits, and end the thread. The receiver itself may call it: then nobody waits for the end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
