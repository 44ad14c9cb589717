"""Where in a list something stands that is looked for again and again."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import attrs

from ._groups import Bundle, Grouping
from ._messages import COMPACTION, Message, Role, SummaryMark
from ._totals import SYSTEM_GROUP


@attrs.define(eq=False)
class Places:
    """The positions of what stays wherever it stands, of the user's words, of signed reasoning."""

    views: list[Message]
    grouping: Grouping
    _standing: list[int] = attrs.field(init=False, factory=list)
    """The positions of pinned and of system messages."""
    _speaking: list[int] = attrs.field(init=False, factory=list)
    """The positions of the user's messages that are not pinned (rule K4)."""
    _claimed: list[int] = attrs.field(init=False, factory=list)
    """The positions of messages in the user's role with an open mark: the user may have written them (rule S1)."""
    _signed: list[int] = attrs.field(init=False, factory=list)
    """The positions of messages with signed reasoning, and of those that had some."""
    _compacted: list[int] = attrs.field(init=False, factory=list)
    """The positions of what a provider made of all that stands ahead of it."""
    summaries: bool = attrs.field(init=False, default=False)
    """Whether the caller's list holds a summary."""

    def note(self, position: int, bundle: Bundle, *, pinned: bool) -> None:
        """Note the next message."""
        view = self.views[position]
        if view.summary is not None:
            self.summaries = True
        compacts = view.kinds & COMPACTION.bit
        if compacts:
            self._compacted.append(position)
        if pinned or (bundle.kind is SYSTEM_GROUP and not compacts):
            self._standing.append(position)
        elif view.speaks_for_user:
            self._speaking.append(position)
        elif view.summary is SummaryMark.OPEN and view.role is Role.USER:
            self._claimed.append(position)
        if view.signed:
            self._signed.append(position)

    def note_signed(self, position: int) -> None:
        """Note that another message at a position has signed reasoning."""
        if position not in self.signed(position, position + 1):
            insort(self._signed, position)

    def shows(self, position: int) -> bool:
        """Whether a message stands at a position while its group is in."""
        return position not in self.grouping.of[position].absent

    def standing(self) -> Iterator[Bundle]:
        """The groups that are pinned or hold a system message of the caller's; one may come twice."""
        return (self.grouping.of[position] for position in self._standing)

    def signed(self, start: int, end: int | None = None) -> Iterator[int]:
        """The positions from one to another of messages with signed reasoning."""
        place = bisect_left(self._signed, start)
        within = takewhile(lambda position: end is None or position < end, islice(self._signed, place, None))
        return (position for position in within if self.views[position].signed and self.shows(position))

    def newest_compaction(self) -> int | None:
        """The position of the newest of what a provider made of all that stands ahead of it, among what is in."""
        return self._newest_of(self._compacted) if self._compacted else None

    def last_users(self) -> Iterator[Bundle]:
        """The included group with the newest words of the user that are not pinned (rule K4).

        And one with an open mark that is newer: a mark that anybody could write frees nothing (rule S1).
        """
        said, claimed = self._newest_of(self._speaking), self._newest_of(self._claimed)
        if said is not None:
            yield self.grouping.of[said]
        if claimed is not None and (said is None or claimed > said):
            yield self.grouping.of[claimed]

    def _newest_of(self, positions: Sequence[int]) -> int | None:
        of = self.grouping.of
        found = (p for p in reversed(positions) if of[p].included and self.views[p].summary is not SummaryMark.KNOWN)
        return next((position for position in found if position not in of[position].absent), None)
