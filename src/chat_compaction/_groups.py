"""Grouping: which messages stay or leave together (rules G1 to G6).

The only place that knows about atomicity. :class:`Grouping` takes messages one by one and keeps
the groups as mutable bundles; everybody else sees :class:`MessageGroup`, a frozen snapshot, since a
late result makes a group grow.
"""

from __future__ import annotations

import enum
from bisect import insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from ._messages import ASSISTANT, SYSTEM, USER, Message, Role, Tie
from ._pairing import Pairing

if TYPE_CHECKING:
    from ._report import Exclusion
    from ._rewriting import Rewritten


class GroupKind(enum.Enum):
    """What a group is.

    An ``ORPHAN`` holds a result whose call was never made (rule G4). A ``SUMMARY`` stands for groups that it
    replaced: it belongs to no turn, and is the last to leave (rule S1).
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_CALL = "tool_call"
    ORPHAN = "orphan"
    SUMMARY = "summary"

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen
class MessageGroup:
    """A snapshot of a group: messages that stay or leave together.

    ``positions`` are indices into the caller's list, ascending. ``turn`` is the turn of the first
    message (0: before the first turn). ``excluded`` is the reason for which the group is out, or
    None while it is in. ``replaced`` is the reason for which other messages stand in the place of the caller's,
    or None. ``tokens`` is None as long as the group has not been counted; it is no part of what makes two
    snapshots equal.
    """

    positions: tuple[int, ...]
    kind: GroupKind
    turn: int
    pinned: bool = False
    pending: bool = False
    excluded: str | None = None
    tokens: int | None = attrs.field(default=None, eq=False)
    replaced: str | None = None

    @property
    def newest(self) -> int:
        """The position of the newest message: a group is as new as that (rule K4)."""
        return self.positions[-1]


@attrs.define(eq=False)
class Bundle:
    """One group as it grows; ``least``, ``most`` and ``uncounted`` are the index's running totals of its tokens."""

    positions: list[int]
    first: int
    """The position of the first message, by which the group is known."""
    newest: int
    """The position of the newest message: a group is as new as that (rule K4)."""
    kind: GroupKind
    turn: int
    pinned: bool
    excluded: str | None = None
    held: bool = False
    """Asked to leave, and kept back because a rule of the format needs it (rule K7)."""
    included: bool = True
    """Whether the group is in the projection: not asked to leave, or held back."""
    least: int = 0
    """At least so many tokens: what is counted, and lower bounds of what is not."""
    most: int = 0
    """At most so many, where upper bounds of what is not counted were asked for."""
    uncounted: int = 0
    rewritten: Rewritten | None = None
    """What stands in the place of the caller's messages, where something does."""
    absent: frozenset[int] = frozenset()
    """The positions at which no message stands any more, although the group is in."""
    told: Exclusion | None = None
    """How a report told last that the group left: it is told so again as long as it is true."""

    @property
    def shown(self) -> list[int]:
        """The positions at which a message stands while the group is in."""
        absent = self.absent
        return [position for position in self.positions if position not in absent] if absent else self.positions

    @property
    def tokens(self) -> int | None:
        """The tokens, where all of its messages are counted."""
        return None if self.uncounted else self.least


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

    def place(self, message: Message) -> tuple[Sequence[Bundle], Sequence[Tie]]:
        """Where the next message will go: the bundles it joins, oldest first, and how its results and calls are tied.

        :meth:`append` follows.
        """
        ties = self._pairing.take(message)
        joined: dict[int, Bundle] = {}
        for tie in ties:
            if tie.result is not None and tie.call is not None and tie.call < len(self.of):
                bundle = self.of[tie.call]
                joined[bundle.first] = bundle
        if message.role is ASSISTANT:
            goes_on = self.of[-1] if self.runs and self._speaker is ASSISTANT else self.loose
            if goes_on is not None:
                joined[goes_on.first] = goes_on
        return [joined[first] for first in sorted(joined)] if joined else (), ties

    def append(self, message: Message, joined: Sequence[Bundle], *, pinned: bool) -> Bundle:
        """Put the next message where :meth:`place` said."""
        position = len(self.of)
        if not pinned and message.opens_turn:
            self.openers.append(position)
        turn = self.newest_turn
        self.turn_at.append(turn)
        if joined:
            bundle = self._merge(joined)
            bundle.positions.append(position)
            bundle.newest = position
            bundle.pinned = bundle.pinned or pinned
            if message.calls:
                bundle.kind = GroupKind.TOOL_CALL
        else:
            bundle = self.bundles[position] = Bundle([position], position, position, _kind_of(message), turn, pinned)
            if message.role is USER and self.openers == [-1]:
                self.openers[0] = position
        self.of.append(bundle)
        self.loose = bundle if message.reasoning_only and bundle.kind is GroupKind.ASSISTANT else None
        self._speaker = message.role
        return bundle

    def pending(self, pending_turns: int) -> Iterator[Bundle]:
        """The bundles for which :meth:`is_pending` holds; one may come twice."""
        if self.loose is not None:
            yield self.loose
        for tie in self._pairing.open():
            if tie.call is not None and self._may_wait(tie.call, pending_turns):
                yield self.of[tie.call]

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

    def _merge(self, joined: Sequence[Bundle]) -> Bundle:
        """One bundle of several (rule G2): the largest takes the others in, at the place of the oldest."""
        oldest = joined[0]
        if len(joined) == 1:
            return oldest
        largest = max(joined, key=lambda bundle: len(bundle.positions))
        for bundle in joined[1:]:
            del self.bundles[bundle.first]
        self.bundles[oldest.first] = largest
        largest.first, largest.turn = oldest.first, oldest.turn
        for other in joined:
            if other is not largest:
                self._absorb(largest, other)
        return largest

    def _absorb(self, bundle: Bundle, other: Bundle) -> None:
        for position in other.positions:
            self.of[position] = bundle
            insort(bundle.positions, position)
        bundle.pinned = bundle.pinned or other.pinned
        bundle.least += other.least
        bundle.most += other.most
        bundle.uncounted += other.uncounted
        if other.kind is GroupKind.TOOL_CALL:
            bundle.kind = other.kind


def _kind_of(message: Message) -> GroupKind:
    """The kind of a group that begins with this message."""
    if message.role is SYSTEM:
        return GroupKind.SYSTEM
    if message.summary:
        return GroupKind.SUMMARY
    if message.calls:
        return GroupKind.TOOL_CALL
    if message.answers:
        return GroupKind.ORPHAN
    return GroupKind.USER if message.role is USER else GroupKind.ASSISTANT
