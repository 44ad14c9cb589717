"""Grouping: which messages stay or leave together (rules G1 to G6).

The only place that knows about atomicity. :class:`Grouping` takes messages one by one and keeps
the groups as mutable bundles; everybody else sees :class:`MessageGroup`, a frozen snapshot, since a
late result makes a group grow.
"""

from __future__ import annotations

import enum
from bisect import insort

import attrs

from ._messages import Message, Role, Tie
from ._pairing import Pairing


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
    """Where a message will go: the bundles it joins (oldest first), and how its results and calls are tied."""

    joined: tuple[Bundle, ...]
    ties: tuple[Tie, ...]


@attrs.define
class Grouping:
    """The bundles of one conversation, grown message by message in linear time."""

    runs: bool = False
    """Messages of the assistant in a row are one response."""
    bundles: dict[int, Bundle] = attrs.field(init=False, factory=dict)
    """By the position of the first message, in that order."""
    of: list[Bundle] = attrs.field(init=False, factory=list)
    """The bundle of each position."""
    turn_at: list[int] = attrs.field(init=False, factory=list)
    """The turn of each position."""
    openers: list[int] = attrs.field(init=False, factory=lambda: [-1])
    """The position of the user message that opened each turn. In turn 0, which none opened, that of the
    first user message that is no turn's: a pinned one, or a result without its call; -1 where there is none."""
    loose: Bundle | None = attrs.field(init=False, default=None)
    """A reasoning-only message at the very end, until the next message tells whose it is (rule G3)."""
    _pairing: Pairing = attrs.field(init=False, factory=Pairing)
    _speaker: Role | None = attrs.field(init=False, default=None)

    @property
    def newest_turn(self) -> int:
        """The number of turns that were opened."""
        return len(self.openers) - 1

    def place(self, message: Message) -> Placement:
        """Tie the next message's results to their calls, and say which bundles it joins; :meth:`append` follows."""
        ties = self._pairing.take(message)
        calls = (tie.call for tie in ties if tie.result is not None)
        joined = {id(self.of[call]): self.of[call] for call in calls if call is not None and call < len(self.of)}
        goes_on = self._goes_on(message)
        if goes_on is not None:
            joined[id(goes_on)] = goes_on
        oldest_first = sorted(joined.values(), key=lambda bundle: bundle.first) if len(joined) > 1 else joined.values()
        return Placement(tuple(oldest_first), tuple(ties))

    def _goes_on(self, message: Message) -> Bundle | None:
        """The response that a message of the assistant goes on with, if it does."""
        if message.role is not Role.ASSISTANT:
            return None
        return self.of[-1] if self.runs and self._speaker is Role.ASSISTANT else self.loose

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
        if message.calls:
            bundle.kind = GroupKind.TOOL_CALL
        self.loose = bundle if message.reasoning_only and bundle.kind is GroupKind.ASSISTANT else None
        self._speaker = message.role
        return bundle

    def is_pending(self, bundle: Bundle, pending_turns: int) -> bool:
        """Whether the bundle waits for a result in the newest turns, or for the next message (rule G3)."""
        return bundle is self.loose or any(
            self._pairing.waits(position) for position in bundle.positions if self._may_wait(position, pending_turns)
        )

    def _may_wait(self, call: int, pending_turns: int) -> bool:
        """By the turn of the call, which may be a later one than that of the group it was joined to."""
        return self.turn_at[call] > self.newest_turn - pending_turns

    def unanswered(self, pending_turns: int) -> list[Tie]:
        """The calls that never got a result and are not pending."""
        return [
            tie for tie in self._pairing.open() if tie.call is not None and not self._may_wait(tie.call, pending_turns)
        ]

    # -- merging -------------------------------------------------------------------------------

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
        bundle.pinned = bundle.pinned or other.pinned
        bundle.counted += other.counted
        bundle.uncounted += other.uncounted
        if other.kind is GroupKind.TOOL_CALL:
            bundle.kind = other.kind


def _kind_of(message: Message) -> GroupKind:
    """The kind of a group that begins with this message."""
    if message.role is Role.SYSTEM:
        return GroupKind.SYSTEM
    if message.calls:
        return GroupKind.TOOL_CALL
    if message.answers:
        return GroupKind.ORPHAN
    return GroupKind.USER if message.role is Role.USER else GroupKind.ASSISTANT
