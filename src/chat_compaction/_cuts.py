"""Where a list may be cut, by what the rules of its format say of two neighbours (rule K7).

Groups are asked to leave. Where two messages that stay would then stand next to each other and a rule
forbids it, something that was asked to leave in the gap between them is held back: the user message that
opened the turn of the later one, else what stood right ahead of it. Every gap is filled by itself, and the
same gap always in the same way, so what is held back never depends on the order in which groups were asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from ._groups import Bundle, Grouping, GroupKind
from ._messages import Message, Role, Seam
from ._problems import Problem
from ._rulebook import RuleBook

_HEAD = -1
"""Stands ahead of the first position."""


@attrs.frozen
class Fill:
    """The groups that are held back in one gap, and the rule that asks for it."""

    bundles: tuple[Bundle, ...]
    rule: str


@attrs.define(eq=False)
class Cuts:
    """The messages that nobody asked to leave, and what is held back in the gaps between them.

    Positions are kept as the bits of one number: finding the next one that stays is a few operations of the
    interpreter, whatever left and came back in between.
    """

    book: RuleBook
    views: list[Message]
    grouping: Grouping
    _stays: int = attrs.field(init=False, default=0)
    """A bit for each position that nobody asked to leave."""
    _speaks: int = attrs.field(init=False, default=0)
    """A bit for each position that is no system message."""
    _wrong: list[int] = attrs.field(init=False, factory=list)
    """For each position, how many seams of the list as it came were wrong up to there."""
    _fills: dict[int, Fill] = attrs.field(init=False, factory=dict)
    """By the position at which a gap ends."""

    # -- growing, leaving and coming back --------------------------------------------------------

    def append(self, *, stays: bool) -> list[Problem]:
        """Take the next message, and say what is wrong with where it stands."""
        if not self.book.seams:
            return []
        position = len(self._wrong)
        view = self.views[position]
        seam = Seam(self.views[position - 1] if position else None, view, at_head=not self._speaks)
        found = self.book.of_seam(position, seam)
        self._wrong.append((self._wrong[-1] if position else 0) + bool(found))
        self._stays |= stays << position
        self._speaks |= (view.role is not Role.SYSTEM) << position
        return found

    def set_staying(self, positions: Iterable[int], stays: bool) -> set[int]:
        """These messages were asked to leave, or stay after all; gives where gaps end that are to be filled anew."""
        if not self.book.seams:
            return set()
        bits = sum(1 << position for position in positions)
        self._stays = self._stays | bits if stays else self._stays & ~bits
        return {end for position in positions for end in (position, self._next(position))}

    def _next(self, position: int) -> int:
        """The next position that stays; behind the last, the length of the list."""
        rest = self._stays >> (position + 1)
        return position + (rest & -rest).bit_length() if rest else len(self._wrong)

    def _previous(self, position: int) -> int:
        """The position before this one that stays, or the head."""
        return (self._stays & ((1 << position) - 1)).bit_length() - 1

    def first(self) -> int | None:
        """The first message that nobody asked to leave, system messages aside."""
        speaking = self._stays & self._speaks
        return (speaking & -speaking).bit_length() - 1 if speaking else None

    # -- holding back --------------------------------------------------------------------------

    def refill(self, ends: Iterable[int]) -> tuple[list[Bundle], list[Bundle]]:
        """Fill these gaps anew: the groups that were held back in them so far, and those that now are."""
        released: list[Bundle] = []
        held: list[Bundle] = []
        for end in ends:
            old = self._fills.pop(end, None)
            released += old.bundles if old else ()
            if not self._stays >> end & 1:
                continue
            first = self.first()
            fill = self._fill(self._previous(end), end, first is None or end <= first, lambda _: True)
            if fill is not None:
                self._fills[end] = fill
                held += fill.bundles
        return released, held

    def refill_all(self) -> tuple[list[Bundle], list[Bundle]]:
        """Fill every gap anew: a group in one of them has grown."""
        return self.refill(range(len(self._wrong)))

    def held(self) -> list[tuple[Bundle, str]]:
        """What is held back, and the rule that asks for it."""
        return [(bundle, fill.rule) for fill in self._fills.values() for bundle in fill.bundles]

    def needed_by(self, stays: Callable[[Bundle], bool]) -> Iterator[tuple[Bundle, str]]:
        """What else must stay where only these groups do, and the rule that asks for it. Linear."""
        if not self.book.seams:
            return
        before, at_head = _HEAD, True
        for position, bundle in enumerate(self.grouping.of):
            if bundle.included and stays(bundle):
                fill = self._fill(before, position, at_head, lambda needed: needed.included)
                if fill is not None:
                    yield from ((needed, fill.rule) for needed in fill.bundles)
                before, at_head = position, at_head and self.views[position].role is Role.SYSTEM

    def _fill(self, start: int, end: int, at_head: bool, usable: Callable[[Bundle], bool]) -> Fill | None:
        """What to hold back between two positions that stay; None where nothing need be, or nothing can."""
        if end - start < 2:
            return None
        before = None if start == _HEAD else self.views[start]
        rule = self.book.broken_by(before, self.views[end], at_head=at_head)
        if rule is None:
            return None
        # Where the list as it came was legal there, what stood ahead of a message may always stand there.
        sound = self._wrong[end] == (0 if start == _HEAD else self._wrong[start])
        bundles: list[Bundle] = []
        after, broken = end, True
        while broken and (bundle := self._ahead_of(start, after, sound)) is not None and usable(bundle):
            bundles.append(bundle)
            after = bundle.first
            # Where nothing is left in between, the two are neighbours as they came.
            broken = after - start > 1 and self.book.broken_by(before, self.views[after], at_head=at_head) is not None
        return Fill(tuple(bundles), rule) if bundles else None

    def _ahead_of(self, start: int, after: int, sound: bool) -> Bundle | None:
        """The group to hold back ahead of a message, wholly between it and a position that stays."""
        opener = self.grouping.openers[self.grouping.turn_at[after]]
        if start < opener < after and self.book.broken_by(self.views[opener], self.views[after], at_head=False) is None:
            bundle = self.grouping.of[opener]
            if start < bundle.first and bundle.newest < after:
                return bundle
        bundle = self.grouping.of[after - 1]
        return bundle if sound and start < bundle.first and bundle.newest == after - 1 else None

    # -- the head of a list that never began as it should --------------------------------------

    def leading(self, is_fixed: Callable[[Bundle], bool]) -> tuple[list[Bundle], str]:
        """The groups ahead of the first message that may come first, and the rule that asks for it.

        None of them where one is fixed: then the list stays as it was.
        """
        first = self.first()
        rule, leading = "", dict[int, Bundle]()
        for position in range(len(self._wrong) if first is None else first, len(self._wrong)):
            bundle = self.grouping.of[position]
            if bundle.excluded is not None or bundle.kind is GroupKind.SYSTEM or bundle.first in leading:
                continue
            broken = self.book.broken_by(None, self.views[position], at_head=True)
            if broken is None:
                return list(leading.values()), rule
            if is_fixed(bundle):
                break
            rule = rule or broken
            leading[bundle.first] = bundle
        return [], rule
