"""Grouping: which messages stay or leave together (rules G1 to G6).

The only place that knows about atomicity. :class:`Grouping` takes messages one by one and keeps
the groups as mutable bundles; everybody else sees :class:`MessageGroup`, a frozen snapshot, since a
late result makes a group grow.
"""

from __future__ import annotations

import enum
from bisect import insort

import attrs

from ._messages import Message, PartKind, Role


class GroupKind(enum.Enum):
    """What a group is. An ``ORPHAN`` holds a result whose call was never made (rule G4)."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_CALL = "tool_call"
    ORPHAN = "orphan"

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen
class Problem:
    """Something in a history that breaks a rule: where, which rule, and what it is."""

    position: int
    rule: str
    message: str


@attrs.frozen
class MessageGroup:
    """A snapshot of a group: messages that stay or leave together.

    ``positions`` are indices into the caller's list, ascending. ``turn`` is the turn of the first
    message (0: before the first turn). ``excluded`` is the reason for which the group is out, or
    None while it is in. ``tokens`` is None as long as the group has not been counted; it is no part
    of what makes two snapshots equal.
    """

    positions: tuple[int, ...]
    kind: GroupKind
    turn: int
    pinned: bool = False
    pending: bool = False
    excluded: str | None = None
    tokens: int | None = attrs.field(default=None, eq=False)

    @property
    def newest(self) -> int:
        """The position of the newest message: a group is as new as that (rule K4)."""
        return self.positions[-1]


@attrs.define(eq=False)
class Bundle:
    """One group as it grows; ``counted`` and ``uncounted`` are the index's running totals of it."""

    positions: list[int]
    kind: GroupKind
    turn: int
    pinned: bool = False
    open_calls: dict[int, int] = attrs.field(factory=dict)
    """How many calls at which position still wait for a result."""
    excluded: str | None = None
    held: bool = False
    """Asked to leave, and kept back because a rule of the format needs it (rule K7)."""
    counted: int = 0
    uncounted: int = 0

    @property
    def included(self) -> bool:
        """Whether the group is in the projection."""
        return self.excluded is None or self.held

    @property
    def first(self) -> int:
        """The position of the first message, by which the group is known."""
        return self.positions[0]

    @property
    def newest(self) -> int:
        """The position of the newest message."""
        return self.positions[-1]


@attrs.frozen
class Placement:
    """Where a message will go: the bundles it joins (oldest first), and what its results answer."""

    joined: tuple[Bundle, ...]
    answers: tuple[tuple[str, int | None], ...]
    """For each result its call id and the position of its call; None for an orphan."""
    duplicates: tuple[str, ...]
    opened: tuple[str, ...]
    """The ids of the calls that the message leaves open, repeated where an id is."""


@attrs.define
class Grouping:
    """The bundles of one conversation, grown message by message in linear time."""

    bundles: dict[int, Bundle] = attrs.field(init=False, factory=dict)
    """By the position of the first message, in that order."""
    of: list[Bundle] = attrs.field(init=False, factory=list)
    """The bundle of each position."""
    turn_at: list[int] = attrs.field(init=False, factory=list)
    """The turn of each position."""
    openers: list[int] = attrs.field(init=False, factory=lambda: [-1])
    """The position of the user message that opened each turn. In turn 0, which none opened, that of the
    first user message that is no turn's: a pinned one, or a result without its call; -1 where there is none."""
    problems: list[Problem] = attrs.field(init=False, factory=list)
    loose: Bundle | None = attrs.field(init=False, default=None)
    """A reasoning-only message at the very end, until the next message tells whose it is (rule G3)."""
    _open_calls: dict[str, list[int]] = attrs.field(init=False, factory=dict)
    """By call id, the positions of calls that still wait for a result, oldest first."""
    _newest_call: dict[str, int] = attrs.field(init=False, factory=dict)

    @property
    def newest_turn(self) -> int:
        """The number of turns that were opened."""
        return len(self.openers) - 1

    def place(self, message: Message) -> Placement:
        """Say where the next message will go, changing nothing.

        A result belongs to the newest earlier call of its id that is still open (rule G2), be it in
        the same message; else to the newest call of its id (rule G4).
        """
        position = len(self.of)
        own: dict[str, int] = {}
        taken: dict[str, int] = {}
        answers: list[tuple[str, int | None]] = []
        duplicates: list[str] = []
        for part in message.parts:
            call_id = part.call_id
            if call_id is None:
                continue
            if part.kind is PartKind.TOOL_CALL:
                own[call_id] = own.get(call_id, 0) + 1
            elif own.get(call_id):
                own[call_id] -= 1
            elif (nth := taken.get(call_id, 0)) < len(waiting := self._open_calls.get(call_id, ())):
                taken[call_id] = nth + 1
                answers.append((call_id, waiting[-1 - nth]))
            elif call_id in own or call_id in self._newest_call:
                duplicates.append(call_id)
                answers.append((call_id, position if call_id in own else self._newest_call[call_id]))
            else:
                answers.append((call_id, None))
        joined = {id(self.of[call]): self.of[call] for _, call in answers if call is not None and call != position}
        if self.loose is not None and message.role is Role.ASSISTANT:
            joined[id(self.loose)] = self.loose
        oldest_first = sorted(joined.values(), key=lambda bundle: bundle.first)
        opened = tuple(call_id for call_id, count in own.items() for _ in range(count))
        return Placement(tuple(oldest_first), tuple(answers), tuple(duplicates), opened)

    def append(self, message: Message, placement: Placement, *, pinned: bool) -> Bundle:
        """Put the next message where :meth:`place` said."""
        position = len(self.of)
        if message.opens_turn and not pinned:
            self.openers.append(position)
        self.turn_at.append(self.newest_turn)
        bundle = self._merge(placement.joined) or Bundle([], _kind_of(message), self.newest_turn)
        bundle.positions.append(position)
        bundle.pinned = bundle.pinned or pinned
        if message.role is Role.USER and bundle.first == position and self.openers == [-1]:
            self.openers[0] = position
        self.of.append(bundle)
        self.bundles.setdefault(bundle.first, bundle)
        self._close(placement, position)
        for call_id in placement.opened:
            self._open_calls.setdefault(call_id, []).append(position)
        if placement.opened:
            bundle.open_calls[position] = len(placement.opened)
        for call_id in message.call_ids:
            self._newest_call[call_id] = position
            bundle.kind = GroupKind.TOOL_CALL
        self.loose = bundle if message.reasoning_only and bundle.kind is GroupKind.ASSISTANT else None
        return bundle

    def is_pending(self, bundle: Bundle, pending_turns: int) -> bool:
        """Whether the bundle waits for a result in the newest turns, or for the next message (rule G3)."""
        return bundle is self.loose or any(self._may_wait(call, pending_turns) for call in bundle.open_calls)

    def _may_wait(self, call: int, pending_turns: int) -> bool:
        """By the turn of the call, which may be a later one than that of the group it was joined to."""
        return self.turn_at[call] > self.newest_turn - pending_turns

    def unanswered(self, pending_turns: int) -> list[Problem]:
        """The calls that never got a result and are not pending."""
        return [
            Problem(position, "unanswered_call", f"the call {call_id!r} never got a result")
            for call_id, positions in self._open_calls.items()
            for position in positions
            if not self._may_wait(position, pending_turns)
        ]

    def _merge(self, joined: tuple[Bundle, ...]) -> Bundle | None:
        """One bundle of several (rule G2): the largest takes the others in, at the place of the oldest."""
        if len(joined) < 2:
            return joined[0] if joined else None
        oldest = joined[0]
        largest = max(joined, key=lambda bundle: len(bundle.positions))
        for bundle in joined[1:]:
            del self.bundles[bundle.first]
        self.bundles[oldest.first] = largest
        largest.turn = oldest.turn
        for other in joined:
            if other is not largest:
                self._absorb(largest, other)
        return largest

    def _absorb(self, bundle: Bundle, other: Bundle) -> None:
        for position in other.positions:
            self.of[position] = bundle
            insort(bundle.positions, position)
        bundle.open_calls.update(other.open_calls)
        bundle.pinned = bundle.pinned or other.pinned
        bundle.counted += other.counted
        bundle.uncounted += other.uncounted
        if other.kind is GroupKind.TOOL_CALL:
            bundle.kind = other.kind

    def _close(self, placement: Placement, position: int) -> None:
        for call_id in placement.duplicates:
            text = f"a second result for the call {call_id!r}, which is answered already"
            self.problems.append(Problem(position, "duplicate_result", text))
        for call_id, call in placement.answers:
            if call is None:
                text = f"a result for the call {call_id!r}, which was never made before"
                self.problems.append(Problem(position, "orphan_result", text))
            elif call_id in self._open_calls and self._open_calls[call_id][-1] == call:
                self._take(call_id)

    def _take(self, call_id: str) -> None:
        waiting = self._open_calls[call_id]
        call = waiting.pop()
        bundle = self.of[call]
        bundle.open_calls[call] -= 1
        if not bundle.open_calls[call]:
            del bundle.open_calls[call]
        if not waiting:
            del self._open_calls[call_id]


def _kind_of(message: Message) -> GroupKind:
    """The kind of a group that begins with this message."""
    if message.role is Role.SYSTEM:
        return GroupKind.SYSTEM
    if message.call_ids:
        return GroupKind.TOOL_CALL
    if message.result_ids or message.role is Role.TOOL:
        return GroupKind.ORPHAN
    return GroupKind.USER if message.role is Role.USER else GroupKind.ASSISTANT
