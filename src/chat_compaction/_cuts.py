"""Where a list may be cut, by what the rules of its format say of two neighbours (rule K7).

Groups are asked to leave. Where two messages that stay would then stand next to each other and a rule
forbids it, something that was asked to leave in the gap between them is held back: the user message that
opened the turn of the later one, else what stood right ahead of it. Every gap is filled by itself, and the
same gap always in the same way, so what is held back never depends on the order in which groups were asked.

What may come first is asked of the first message that is no system message. Where system messages that stay
stand right ahead of it, the user message that opened its turn is not in the gap ahead of it, but further ahead:
the *anchor*.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

import attrs

from ._groups import Bundle, Grouping, GroupKind
from ._messages import SYSTEM, Message
from ._problems import Problem
from ._rulebook import RuleBook

_NOTHING: frozenset[str] = frozenset()
_HEAD = -1
"""Stands ahead of the first position."""


@attrs.frozen
class Anchor:
    """A user's message that is held back to come first, ahead of system messages, and the rule that asks for it."""

    position: int
    rule: str


@attrs.frozen
class Fill:
    """The groups that are held back in one gap, and the rule that asks for it."""

    bundles: tuple[Bundle, ...]
    rule: str

    def needed(self) -> Iterator[tuple[Bundle, str]]:
        """Each of the groups, with the rule."""
        return ((bundle, self.rule) for bundle in self.bundles)


def _is_in(bundle: Bundle) -> bool:
    return bundle.included


def _lowest(bits: int) -> int:
    """The place of the lowest bit that is set, from 1 on."""
    return (bits & -bits).bit_length()


def _ones(start: int, end: int) -> int:
    """A bit for each position from one to another."""
    return (1 << end) - (1 << start)


def _bits(positions: Iterable[int]) -> int:
    """A bit for each of these positions, run by run: the number is copied for each run."""
    bits = start = end = 0
    for position in positions:
        if position != end:
            bits |= _ones(start, end)
            start = position
        end = position + 1
    return bits | _ones(start, end)


def _next(out: int, position: int) -> int:
    """The next position that is not out; behind the last, the length of the list."""
    return position + _lowest(~(out >> (position + 1)))


def _previous(out: int, position: int) -> int:
    """The position before this one that is not out, or the head."""
    return (~out & ((1 << position) - 1)).bit_length() - 1


def _places(bits: int) -> Iterator[int]:
    """The positions whose bits are set."""
    while bits:
        yield _lowest(bits) - 1
        bits &= bits - 1


@attrs.define(eq=False)
class Cuts:
    """The messages that nobody asked to leave, and what is held back in the gaps between them.

    Positions are kept as the bits of one number: finding the next one that stays is a few operations of the
    interpreter, whatever left and came back in between.
    """

    book: RuleBook
    views: list[Message]
    grouping: Grouping
    _out: int = attrs.field(init=False, default=0)
    """A bit for each position that was asked to leave. What stays has none: a list that grows costs nothing."""
    _system: int = attrs.field(init=False, default=0)
    """A bit for each position that is a system message."""
    _spoken: bool = attrs.field(init=False, default=False)
    """Whether there is a message that is no system message."""
    _wrong: dict[int, frozenset[str]] = attrs.field(init=False, factory=dict)
    """By position, the rules that the list as it came breaks there."""
    _wrong_at_head: frozenset[str] = attrs.field(init=False, default=frozenset())
    """The rules that the first message broke, system messages aside."""
    _fills: dict[int, Fill] = attrs.field(init=False, factory=dict)
    """By the position at which a gap ends."""
    _filled: int = attrs.field(init=False, default=0)
    """A bit for each position at which a gap ends in which something is held back."""
    _holds: Tally[int] = attrs.field(init=False, factory=Tally)
    """By the first position of a group, in how many gaps it is held back: it may reach over several."""
    _first: int | None = attrs.field(init=False, default=None)
    """What came first when gaps were filled last, system messages aside."""
    _anchor: Anchor | None = attrs.field(init=False, default=None)

    # -- growing, leaving and coming back --------------------------------------------------------

    def append(self, *, stays: bool, before: Message | None) -> list[Problem]:
        """Take the next message, and say what is wrong with where it stands, behind the one that came before it."""
        if not self.book.seams:
            return []
        position = len(self.views) - 1
        view = self.views[position]
        found = self.book.of_seam(position, before, view, not self._spoken)
        if found:
            self._wrong[position] = frozenset([problem.rule for problem in found])
        if view.role is SYSTEM:
            self._system |= 1 << position
        elif not self._spoken:
            self._spoken, self._wrong_at_head = True, self._wrong.get(position, _NOTHING)
        if not stays:
            self._out |= 1 << position
        return found

    def set_staying(self, positions: Iterable[int], stays: bool) -> set[int]:
        """These messages were asked to leave, or stay after all; gives where gaps end that are to be filled anew."""
        if not self.book.seams:
            return set()
        bits = _bits(positions)
        self._out = self._out & ~bits if stays else self._out | bits
        ends: set[int] = set()
        while bits:
            start = _lowest(bits) - 1
            # A run of messages that stay now, or that are out, and the first one behind it that stays.
            end = self._next(self._next_out(start) if stays else start)
            ends.update((start, end) if stays else (end,), _places(self._filled & _ones(start, end + 1)))
            bits = bits >> end << end
        return ends

    def rewritten(self, positions: Iterable[int]) -> set[int]:
        """Other messages stand at these positions now; gives where gaps end that are to be filled anew."""
        if not self.book.seams:
            return set()
        ends: set[int] = set()
        for position in positions:
            bit = 1 << position
            self._system = self._system | bit if self.views[position].role is SYSTEM else self._system & ~bit
            ends.update((position, self._next(position)))
        return ends

    def broken_at(self, positions: Iterable[int]) -> Tally[str]:
        """How often each rule is broken where a message stands at one of these positions, or right behind one."""
        out = self._out
        for fill in self._fills.values():
            for bundle in fill.bundles:
                out &= ~_bits(bundle.shown)  # What is held back stands there.
        length, first = len(self.views), _lowest(~(out | self._system)) - 1
        ends = {end for place in positions for end in (place, _next(out, place)) if end < length and not out >> end & 1}
        broken: Tally[str] = Tally()
        for end in ends:
            before = _previous(out, end)
            broken.update(self._broken(None if before == _HEAD else self.views[before], end, end <= first))
        return broken

    def _next_out(self, position: int) -> int:
        """The next position from this one on that was asked to leave; behind all, the length of the list."""
        rest = self._out >> position
        return position + _lowest(rest) - 1 if rest else len(self.views)

    def _next(self, position: int) -> int:
        """The next position that stays; behind the last, the length of the list."""
        return _next(self._out, position)

    def _previous(self, position: int) -> int:
        """The position before this one that stays, or the head."""
        return _previous(self._out, position)

    def _stays(self, position: int) -> bool:
        return position < len(self.views) and not self._out >> position & 1

    def first(self) -> int | None:
        """The first message that nobody asked to leave, system messages aside."""
        first = _lowest(~(self._out | self._system)) - 1
        return first if first < len(self.views) else None

    # -- holding back --------------------------------------------------------------------------

    def refill(self, ends: Iterable[int]) -> tuple[list[Bundle], list[Bundle]]:
        """Fill these gaps anew: the groups that are held back no more, and those that now are."""
        touched: dict[int, Bundle] = {}
        # What comes first is judged by all that is ahead of it, so those gaps come before it.
        before = self._first, *(() if self._anchor is None else (self._next(self._anchor.position),))
        self._first, self._anchor = self.first(), None
        first = self._first
        places = sorted({place for place in (*ends, *before, first) if place is not None})
        for end in places:
            if end == first and first is not None:
                self._set_anchor(first, touched)
            self._put(end, self._fill_of(end) if self._stays(end) else None, touched)
        held = [bundle for bundle in touched.values() if self._holds[bundle.first]]
        return [bundle for bundle in touched.values() if not self._holds[bundle.first]], held

    def _fill_of(self, end: int) -> Fill | None:
        return self._fill(self._previous(end), end, self._at_head(end), lambda _: True)

    def _put(self, end: int, fill: Fill | None, touched: dict[int, Bundle]) -> None:
        """Hold back what fills the gap that ends here, and no more what did."""
        old = self._fills.pop(end, None)
        self._filled = self._filled & ~(1 << end) | (fill is not None) << end
        if fill is not None:
            self._fills[end] = fill
        for one, sign in ((old, -1), (fill, 1)):
            for bundle in () if one is None else one.bundles:
                self._holds[bundle.first] += sign
                touched[bundle.first] = bundle

    def _at_head(self, end: int) -> bool:
        """Whether nothing that speaks stays or is held back ahead of this position."""
        return (self._first is None or end <= self._first) and not self._filled & ((1 << end) - 1)

    def _set_anchor(self, first: int, touched: dict[int, Bundle]) -> None:
        """Hold back an anchor where the first message needs one."""
        before = self._previous(first)
        self._anchor = self._anchor_of(before, first) if self._at_head(first) else None
        if self._anchor is not None:
            place = self._anchor.position
            start, end = self._previous(place), self._next(place)
            self._put(end, self._fill_around(start, end, self._anchor, lambda _: True), touched)

    def _anchor_of(self, before: int, first: int) -> Anchor | None:
        """What has to come first where the first message that speaks may not, right behind a system message."""
        if before == _HEAD or self.book.broken_by(self.views[before], self.views[first], False) is not None:
            return None
        opener = self.grouping.openers[self.grouping.turn_at[first]]
        if not 0 <= opener < before or self.grouping.of[opener].shown != [opener]:
            return None
        rule = self.book.broken_by(self.views[before], self.views[first], True)
        return None if rule is None else Anchor(opener, rule)

    def refill_all(self) -> tuple[list[Bundle], list[Bundle]]:
        """Fill every gap anew: a group in one of them has grown."""
        fills, self._fills, self._filled, self._first, self._anchor = self._fills, {}, 0, None, None
        self._holds.clear()
        released, held = self.refill(range(len(self.views)))
        return [*released, *(bundle for fill in fills.values() for bundle in fill.bundles)], held

    def held(self) -> list[tuple[Bundle, str]]:
        """What is held back, and the rule that asks for it."""
        found = {bundle.first: (bundle, fill.rule) for fill in self._fills.values() for bundle in fill.bundles}
        return list(found.values())

    def needed_by(self, stay: Iterable[Bundle]) -> Iterator[tuple[Bundle, str]]:
        """What else must stay where only these groups do, and the rule that asks for it. Linear in these."""
        if not self.book.seams:
            return
        kept = sorted(position for bundle in stay for position in bundle.shown)
        at_head = True
        for number, (before, position) in enumerate(zip([_HEAD, *kept], kept, strict=False)):
            speaks = self.views[position].role is not SYSTEM
            anchor = self._anchor_of(before, position) if at_head and speaks else None
            if anchor is not None and self.grouping.of[anchor.position].included:
                nth = bisect_left(kept, anchor.position, hi=number)
                yield from self._fill_around(kept[nth - 1] if nth else _HEAD, kept[nth], anchor, _is_in).needed()
                at_head = False
            fill = self._fill(before, position, at_head, _is_in)
            yield from () if fill is None else fill.needed()
            at_head = at_head and not speaks and fill is None

    def _fill(self, start: int, end: int, at_head: bool, usable: Callable[[Bundle], bool]) -> Fill | None:
        """What to hold back between two positions that stay; None where nothing need be, or nothing can."""
        if end - start < 2:
            return None
        before = None if start == _HEAD else self.views[start]
        broken = first_broken = self._broken(before, end, at_head)
        bundles: list[Bundle] = []
        after = end
        # Where nothing is left in between, the two are neighbours as they came.
        while broken and after - start > 1:
            bundle = self._ahead_of(start, after, worse=bool(broken - self._broken_before(after, at_head)))
            if bundle is None or not usable(bundle):
                break
            bundles.append(bundle)
            after = next(place for place in bundle.shown if place > start)
            broken = self._broken(before, after, at_head)
        return Fill(tuple(bundles), min(first_broken)) if bundles else None

    def _broken(self, before: Message | None, position: int, at_head: bool) -> frozenset[str]:
        """The rules that forbid a message right behind another one."""
        return self.book.broken(before, self.views[position], at_head)

    def _broken_before(self, position: int, at_head: bool) -> frozenset[str]:
        """The rules that were broken there when the list came: to break them again is no worse."""
        wrong = self._wrong.get(position, _NOTHING)
        return wrong | self._wrong_at_head if at_head else wrong

    def _fill_around(self, start: int, end: int, anchor: Anchor, usable: Callable[[Bundle], bool]) -> Fill:
        """What to hold back where the anchor is one of it: also what it needs on either side."""
        ahead = self._fill(start, anchor.position, True, usable)
        behind = self._fill(anchor.position, end, False, usable)
        others = [other for fill in (ahead, behind) if fill is not None for other in fill.bundles]
        return Fill((self.grouping.of[anchor.position], *others), anchor.rule)

    def _ahead_of(self, start: int, after: int, *, worse: bool) -> Bundle | None:
        """The group to hold back ahead of a message: the one that opened its turn, else what stood right there.

        The latter only where the seam would be worse than any was, so that a list which never kept to
        a rule can still be cut.
        """
        opener = self.grouping.openers[self.grouping.turn_at[after]]
        if start < opener < after and self.book.broken_by(self.views[opener], self.views[after], False) is None:
            bundle = self.grouping.of[opener]
            if start < bundle.first and bundle.newest < after and opener not in bundle.absent:
                return bundle
        return self._right_ahead_of(start, after) if worse else None

    def _right_ahead_of(self, start: int, after: int) -> Bundle | None:
        """The group of the last message between two positions, where any stands there or could be held back."""
        of = self.grouping.of
        return next((of[place] for place in range(after - 1, start, -1) if place not in of[place].absent), None)

    # -- the head of a list that never began as it should --------------------------------------

    def leading(self, is_fixed: Callable[[Bundle], bool]) -> tuple[list[Bundle], str]:
        """The groups ahead of the first message that may come first, and the rule that asks for it.

        None of them where one is fixed: then the list stays as it was.
        """
        if not self.book.seams:
            return [], ""
        first = self.first()
        rule, leading = "", dict[int, Bundle]()
        for position in range(len(self.views) if first is None else first, len(self.views)):
            bundle = self.grouping.of[position]
            if bundle.excluded is not None or bundle.kind is GroupKind.SYSTEM or bundle.first in leading:
                continue
            if position in bundle.absent:
                continue
            broken = self.book.broken_by(None, self.views[position], True)
            if broken is None:
                return list(leading.values()), rule
            if is_fixed(bundle):
                break
            rule = rule or broken
            leading[bundle.first] = bundle
        return [], rule
