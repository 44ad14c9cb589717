"""Which groups may leave, and how many of them leave at once.

A target is asked before the first exclusion and after each one (rule K3). While what is in is above a bound of the
target whatever is held back, the answer is known: those units leave together, and the target is asked from there on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import accumulate, chain
from operator import attrgetter
from typing import overload

from ._groups import Bundle, GroupKind, MessageGroup
from ._index import MessageIndex
from ._ledger import Ledger
from ._predicates import AllOf, AnyOf, Comparison, Metric, Predicate, groups, messages, tokens, tool_groups
from ._totals import SUMMARY_GROUP

Unit = MessageGroup | Iterable[MessageGroup]
_Size = Callable[[Bundle], int]
_Sizes = Callable[[_Size], Iterable[int]]


class Candidates(Sequence[MessageGroup]):
    """Groups that may leave, as snapshots that are made where somebody looks: most are never looked at.

    ``protected`` is what may not leave beside them; within one pass they need no second check.
    """

    __slots__ = ("_ledger", "_protected", "bundles")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ledger: Ledger, protected: Mapping[int, str], bundles: Sequence[Bundle]) -> None:
        self._ledger = ledger
        self._protected = protected
        self.bundles = bundles

    def checked_in(self, ledger: Ledger) -> bool:
        """Whether they were chosen in the pass that is under way on this ledger."""
        return self._ledger is ledger and self._protected is ledger.protected and ledger.current is not None

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __len__(self) -> int:
        return len(self.bundles)

    @overload
    def __getitem__(self, place: int) -> MessageGroup: ...

    @overload
    def __getitem__(self, place: slice) -> Candidates: ...

    def __getitem__(self, place: int | slice) -> MessageGroup | Candidates:
        if isinstance(place, slice):
            return Candidates(self._ledger, self._protected, self.bundles[place])
        return self._ledger.snapshot(self.bundles[place])

    def __iter__(self) -> Iterator[MessageGroup]:
        return map(self._ledger.snapshot, self.bundles)

    def __repr__(self) -> str:
        return repr(tuple(self))


def turns_that_may_leave(
    ledger: Ledger, protected: Mapping[int, str], candidates: Sequence[MessageGroup], *, preserve_system: bool
) -> list[Candidates]:
    """The groups of each turn that may leave whole, the turns by their newest message."""
    bundles = ledger.grouping.bundles
    if isinstance(candidates, Candidates):
        free, stays = candidates.bundles, [bundles[first] for first in protected]
    else:  # A subclass chose among them.
        free = [bundles[group.positions[0]] for group in candidates]
        stays = list(set(bundles.values()).difference(free))
    stuck = {
        bundle.turn
        for bundle in stays
        if bundle.excluded is None and not bundle.pinned and not (preserve_system and bundle.kind is GroupKind.SYSTEM)
    }
    by_turn: dict[int, list[Bundle]] = {}
    if ledger.words.rewritten or ledger.places.summaries:
        # A summary stands for more than the turn in which it stands.
        free = [bundle for bundle in free if bundle.kind is not SUMMARY_GROUP]
    for bundle in free:
        by_turn.setdefault(bundle.turn, []).append(bundle)
    turns = [bundles for turn, bundles in by_turn.items() if turn not in stuck]
    turns.sort(key=lambda bundles: bundles[-1].newest)
    return [Candidates(ledger, protected, bundles) for bundles in turns]


def evict_certain(index: MessageIndex, target: Predicate, units: Sequence[Unit], reason: str) -> int:
    """Exclude at once the first units without which the target can't hold, and say how many these are."""
    ledger = index._ledger
    if ledger.settings.drops_reasoning:
        return 0  # There, what leaves makes what stays smaller.
    if isinstance(units, Candidates) and units.checked_in(ledger):
        certain = _certain(index, target, units.bundles, lambda size: map(size, units.bundles))
        leaving: Iterable[Bundle] = units.bundles[:certain]
    else:
        free = list(_free(index, units))
        certain = _certain(index, target, free, lambda size: (sum(map(size, unit)) for unit in free))
        leaving = chain.from_iterable(free[:certain])
    ledger.set_excluded([bundle for bundle in leaving if bundle.excluded is None], reason)
    return certain


def _free(index: MessageIndex, units: Sequence[Unit]) -> Iterator[Sequence[Bundle]]:
    """The groups of each unit, up to the first unit that may not leave."""
    for unit in units:
        if type(unit) is Candidates and unit.checked_in(index._ledger):
            yield unit.bundles
            continue
        of_unit = (unit,) if isinstance(unit, MessageGroup) else unit
        bundles = index._leaving(of_unit) if isinstance(of_unit, Sequence) else None
        if bundles is None:
            return
        yield bundles


def _certain(index: MessageIndex, target: Predicate, units: Sized, sizes: _Sizes) -> int:
    """How many units have to leave, in this order, before the target can hold."""
    if type(target) is AllOf:
        return max(_certain(index, operand, units, sizes) for operand in target.operands)
    if type(target) is AnyOf:
        return min(_certain(index, operand, units, sizes) for operand in target.operands)
    if type(target) is not Comparison or target.upper is None or target.metric not in _SIZES:
        return 0
    size = _SIZES[target.metric]
    # What is held back may be let go on the way.
    held = sum(size(bundle) for bundle, _ in index._ledger.cuts.held())
    excess = index.known(target.metric)[0] - held - target.upper
    left = list(accumulate(sizes(size), initial=0))
    return min(bisect_left(left, excess), len(units))


_SIZES: dict[Metric, _Size] = {
    tokens: attrgetter("least"),
    messages: lambda bundle: len(bundle.positions) - len(bundle.absent),
    groups: lambda bundle: 1,
    tool_groups: lambda bundle: bundle.kind is GroupKind.TOOL_CALL,
}
"""By how much a metric falls at the most when a group leaves, as far as it is known."""
