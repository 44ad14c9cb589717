"""What is in and what is out, with running totals: the state that a compaction works on.

The ledger knows views and groups, not the caller's messages. Every change goes through
:meth:`Ledger.set_excluded`, so totals, the undo log and the rule of the first message cannot
disagree.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from ._errors import CompactionError
from ._groups import Bundle, Grouping, GroupKind, MessageGroup, Problem
from ._messages import Message, Role
from ._predicates import Metric
from ._settings import IndexSettings
from .formats import Format


@attrs.define
class Totals:
    """Running totals over some of the groups; ``counted`` is the tokens that were counted so far."""

    groups: int = 0
    messages: int = 0
    tool_groups: int = 0
    counted: int = 0
    uncounted: int = 0
    by_turn: Tally[int] = attrs.field(factory=Tally)
    """How many groups count towards each turn: unpinned ones that are no system groups."""

    def add(self, bundle: Bundle, sign: int = 1) -> None:
        """Add a bundle to the totals, or take it out with ``sign=-1``."""
        self.groups += sign
        self.messages += sign * len(bundle.positions)
        self.tool_groups += sign * (bundle.kind is GroupKind.TOOL_CALL)
        self.counted += sign * bundle.counted
        self.uncounted += sign * bundle.uncounted
        if bundle.turn and not bundle.pinned and bundle.kind is not GroupKind.SYSTEM:
            self.by_turn[bundle.turn] += sign
            if not self.by_turn[bundle.turn]:
                del self.by_turn[bundle.turn]

    def value(self, metric: Metric) -> int:
        """A metric that needs no counting of tokens."""
        return len(self.by_turn) if metric.name == "turns" else int(getattr(self, metric.name))


@attrs.frozen
class Change:
    """A group that a compaction touched, and how it stood before."""

    bundle: Bundle
    excluded: str | None
    included: bool


@attrs.define(eq=False)
class Ledger:
    """Groups, counts and exclusions of one conversation."""

    settings: IndexSettings
    format: Format
    views: list[Message] = attrs.field(init=False, factory=list)
    pins: list[bool] = attrs.field(init=False, factory=list)
    counts: list[int | None] = attrs.field(init=False, factory=list)
    """Tokens by position; None where nobody has asked yet."""
    grouping: Grouping = attrs.field(init=False, factory=Grouping)
    all: Totals = attrs.field(init=False, factory=Totals)
    included: Totals = attrs.field(init=False, factory=Totals)
    changes: dict[int, Change] | None = attrs.field(init=False, default=None)
    """The undo log of the compaction under way; None outside of one."""
    protected: dict[int, str] = attrs.field(init=False, factory=dict)
    """In a compaction: why a group, by its first position, may not leave."""
    _uncounted: dict[int, None] = attrs.field(init=False, factory=dict)
    _held: Bundle | None = attrs.field(init=False, default=None)
    _scanned: int = attrs.field(init=False, default=0)
    """No position before this one is of a group that nobody asked to leave, system groups aside."""

    # -- growing -------------------------------------------------------------------------------

    def append(self, view: Message, *, pinned: bool, count: int | None = None) -> None:
        """Place the next message; a result of an excluded call is excluded with it (rule G2).

        But not one that must stay: a pinned message, or new words of the user beside the result.
        """
        placement = self.grouping.place(view)
        if self._held in placement.joined:
            self._hold(None)
        before = [bundle.excluded for bundle in placement.joined]
        for joined in placement.joined:
            self._total(joined, -1)
        bundle = self.grouping.append(view, placement, pinned=pinned)
        must_stay = pinned or view.speaks_for_user
        bundle.excluded = None if must_stay or None in before else next(iter(before), None)
        if bundle.excluded is None and any(before):
            self._rejoined(bundle, must_stay)
        self.views.append(view)
        self.pins.append(pinned)
        self.counts.append(count)
        if count is None:
            self._uncounted[len(self.counts) - 1] = None
        bundle.counted += count or 0
        bundle.uncounted += count is None
        self._total(bundle, 1)
        self.hold_first_user()

    def _rejoined(self, bundle: Bundle, must_stay: bool) -> None:
        what = "is pinned, or has words of the user," if must_stay else "answers a call of an included group, too,"
        text = f"{what} and answers a call of an excluded group, which came back"
        self.grouping.problems.append(Problem(bundle.newest, "rejoined", text))
        self._scanned = min(self._scanned, bundle.first)

    def replace(self, position: int, view: Message) -> None:
        """Take another view of equal shape for a message; it is counted anew when somebody asks."""
        bundle = self.grouping.of[position]
        self._total(bundle, -1)
        count = self.counts[position]
        if count is not None:
            bundle.counted -= count
            bundle.uncounted += 1
            self._uncounted[position] = None
        self.counts[position], self.views[position] = None, view
        self._total(bundle, 1)

    def _total(self, bundle: Bundle, sign: int) -> None:
        self.all.add(bundle, sign)
        if bundle.included:
            self.included.add(bundle, sign)

    # -- counting ------------------------------------------------------------------------------

    def count_included(self) -> None:
        """Count what is included and not counted yet, in one batch."""
        if self.included.uncounted:
            self._count([position for position in self._uncounted if self.grouping.of[position].included])

    def count_all(self) -> None:
        """Count everything that is not counted yet, in one batch."""
        self._count(list(self._uncounted))

    def count_of(self, bundle: Bundle) -> int:
        """The tokens of one group, counting what is not counted yet."""
        if bundle.uncounted:
            self._count([position for position in bundle.positions if position in self._uncounted])
        return bundle.counted

    def _count(self, positions: Sequence[int]) -> None:
        texts = [self.settings.texts(self.views[position]) for position in positions]
        numbers = iter(self.settings.counts.count_many([text for one in texts for text in one]))
        # Only now the ledger changes: a counter that fails leaves it as it was.
        for position, own in zip(positions, texts, strict=True):
            flat = self.settings.flat(self.views[position], self.format.overhead)
            self._counted(position, flat + sum(next(numbers) for _ in own))

    def _counted(self, position: int, count: int) -> None:
        bundle = self.grouping.of[position]
        self.counts[position] = count
        del self._uncounted[position]
        bundle.counted += count
        bundle.uncounted -= 1
        for totals in (self.all, self.included) if bundle.included else (self.all,):
            totals.counted += count
            totals.uncounted -= 1

    # -- excluding -----------------------------------------------------------------------------

    def set_excluded(self, bundle: Bundle, reason: str | None) -> None:
        """Ask a group to leave, or (None) bring it back."""
        if bundle.excluded == reason:
            return
        self._log(bundle)
        if bundle.included:
            self.included.add(bundle, -1)
        if bundle is self._held:
            self._held, bundle.held = None, False
        bundle.excluded = reason
        if reason is None:
            self.included.add(bundle)
            self._scanned = min(self._scanned, bundle.first)
        self.hold_first_user()

    def _log(self, bundle: Bundle) -> None:
        """Remember in a compaction how a group stood before its first change."""
        if self.changes is not None:
            self.changes.setdefault(bundle.first, Change(bundle, bundle.excluded, bundle.included))

    def include_all(self) -> None:
        """Bring back everything that was asked to leave."""
        if self._held is not None or self.included.groups < self.all.groups:
            for bundle in self.grouping.bundles.values():
                self.set_excluded(bundle, None)

    def hold_first_user(self) -> None:
        """Hold back the user message that opened the oldest kept turn, where one must come first (rule K7)."""
        self._hold(self._opener_needed() if self.format.first_user else None)

    def _hold(self, wanted: Bundle | None) -> None:
        """Hold this group back, and no other."""
        if wanted is self._held:
            return
        for bundle, held in ((self._held, False), (wanted, True)):
            if bundle is not None:
                self._log(bundle)
                bundle.held = held
                self.included.add(bundle, 1 if held else -1)
        self._held = wanted

    def _opener_needed(self) -> Bundle | None:
        first = self.first_position()
        if first is None or self.views[first].role is Role.USER:
            return None
        opener = self.grouping.openers[self.grouping.turn_at[first]]
        return self.grouping.of[opener] if 0 <= opener < first else None

    def first_position(self) -> int | None:
        """The first message of a group that nobody asked to leave, system groups aside.

        Amortised O(1): the place is remembered, and moves back only when a group comes back.
        """
        of = self.grouping.of
        while self._scanned < len(of):
            bundle = of[self._scanned]
            if bundle.excluded is None and bundle.kind is not GroupKind.SYSTEM:
                return self._scanned
            self._scanned += 1
        return None

    def settle(self) -> None:
        """End a pass: what a rule held back stays for good, and the list begins as the format asks (rule K7)."""
        if self._held is not None:
            self.protected[self._held.first] = "first_user"
            self.set_excluded(self._held, None)
        elif self.format.first_user and any(not change.bundle.included for change in (self.changes or {}).values()):
            for bundle in self._leading():
                self.set_excluded(bundle, "first_user")

    def _leading(self) -> list[Bundle]:
        """The groups ahead of the first user message, in a list that never began with one.

        None of them where one is of the floor: then the list stays as it was.
        """
        first = self.first_position()
        leading: dict[int, Bundle] = {}
        for position in range(len(self.views) if first is None else first, len(self.views)):
            bundle = self.grouping.of[position]
            if bundle.excluded is not None or bundle.kind is GroupKind.SYSTEM or bundle.first in leading:
                continue
            if self.views[position].role is Role.USER:
                return list(leading.values())
            if bundle.first in self.protected:
                return []
            leading[bundle.first] = bundle
        return []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One compaction: all of its changes, or on any exception none (rule K9)."""
        self.refuse_in_pass("compacted")
        changes: dict[int, Change] = {}
        self.changes = changes
        try:
            yield
        except BaseException:
            self.changes = None
            for change in changes.values():
                self.set_excluded(change.bundle, change.excluded)
            raise
        finally:
            self.changes, self.protected = None, {}

    def refuse_in_pass(self, what: str) -> None:
        """Refuse what would pull the ground from under a compaction that is under way."""
        if self.changes is not None:
            raise CompactionError(f"the index is being compacted and cannot be {what} until that has ended")

    # -- looking -------------------------------------------------------------------------------

    def is_pending(self, bundle: Bundle) -> bool:
        """Rule G3, with the setting of this conversation."""
        return self.grouping.is_pending(bundle, self.settings.pending_turns)

    def free(self, protected: Mapping[int, str]) -> Iterator[Bundle]:
        """The groups that may leave and have not been asked to."""
        return (b for b in self.grouping.bundles.values() if b.excluded is None and b.first not in protected)

    def newest_included(self) -> Bundle | None:
        """The newest included group that is no system group (rule K2)."""
        bundles = (self.grouping.of[position] for position in range(len(self.grouping.of) - 1, -1, -1))
        return next((b for b in bundles if b.included and b.kind is not GroupKind.SYSTEM), None)

    def snapshot(self, bundle: Bundle) -> MessageGroup:
        """A group as a value."""
        return MessageGroup(
            tuple(bundle.positions),
            bundle.kind,
            bundle.turn,
            bundle.pinned,
            self.is_pending(bundle),
            None if bundle.included else bundle.excluded,
            None if bundle.uncounted else bundle.counted,
        )

    def snapshots(self, bundles: Iterable[Bundle]) -> tuple[MessageGroup, ...]:
        """Groups as values."""
        return tuple(map(self.snapshot, bundles))

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the history, by position."""
        found = [*self.grouping.problems, *self.grouping.unanswered(self.settings.pending_turns)]
        first = next((p for p, b in enumerate(self.grouping.of) if b.kind is not GroupKind.SYSTEM), None)
        if self.format.first_user and first is not None and self.views[first].role is not Role.USER:
            text = f"the first message after system messages must be a user's in the format {self.format.name!r}"
            found.append(Problem(first, "first_user", text))
        return tuple(sorted(found, key=lambda problem: problem.position))
