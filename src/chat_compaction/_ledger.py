"""What is in and what is out, with running totals: the state that a compaction works on.

The ledger knows views and groups, not the caller's messages. Every change goes through
:meth:`Ledger.set_excluded`, so totals, the undo log and the rule of the first message cannot
disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import attrs

from ._counting import Counting
from ._cuts import Cuts
from ._errors import CompactionError
from ._groups import Bundle, Grouping, GroupKind, MessageGroup
from ._judge import Judge
from ._messages import Message
from ._outgoing import Outgoing
from ._problems import Problem
from ._rulebook import RuleBook
from ._settings import IndexSettings
from ._totals import UNKNOWN, Known, Totals
from .formats import Format

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
    grouping: Grouping = attrs.field(init=False)
    cuts: Cuts = attrs.field(init=False)
    judge: Judge = attrs.field(init=False)
    all: Totals = attrs.field(init=False, factory=Totals)
    included: Totals = attrs.field(init=False, factory=Totals)
    changes: dict[int, Change] | None = attrs.field(init=False, default=None)
    """The undo log of the compaction under way; None outside of one."""
    protected: dict[int, str] = attrs.field(init=False, factory=dict)
    """In a compaction: why a group, by its first position, may not leave."""
    repaired_from: int | None = attrs.field(init=False, default=None)
    """The first position behind which the list is another than the one that the provider saw."""
    outgoing: Outgoing = attrs.field(init=False)
    counting: Counting = attrs.field(init=False)

    @grouping.default
    def _new_grouping(self) -> Grouping:
        return Grouping(runs=self.format.runs)

    @cuts.default
    def _new_cuts(self) -> Cuts:
        return Cuts(RuleBook.of(self.format), self.views, self.grouping)

    @judge.default
    def _new_judge(self) -> Judge:
        return Judge(self.cuts.book, self.format.complete)

    @outgoing.default
    def _new_outgoing(self) -> Outgoing:
        return Outgoing(self.views, self.cuts.book)

    @counting.default
    def _new_counting(self) -> Counting:
        return Counting(self.settings, self.format, self.grouping, self.outgoing, self.all, self.included)

    # -- growing -------------------------------------------------------------------------------

    def append(self, view: Message, *, pinned: bool, known: Known = UNKNOWN) -> None:
        """Place the next message; a result of an excluded call is excluded with it (rule G2).

        But not one that must stay: a pinned message, or new words of the user beside the result.
        """
        placement = self.grouping.place(view)
        reasons = [bundle.excluded for bundle in placement.joined]
        gone = [place for bundle in placement.joined if bundle.excluded for place in bundle.positions]
        held = any(bundle.held for bundle in placement.joined)
        for joined in placement.joined:
            self._total(joined, -1)
            joined.held = False
        bundle = self.grouping.append(view, placement, pinned=pinned)
        must_stay = pinned or (bool(gone) and view.speaks_for_user)
        bundle.excluded = reasons[0] if reasons and not must_stay and None not in reasons else None
        self.views.append(view)
        self.pins.append(pinned)
        self.counting.append(bundle, known)
        self._total(bundle, 1)
        self.judge.take(len(self.views) - 1, view, placement.ties)
        self.judge.note(self.cuts.append(stays=bundle.excluded is None))
        if gone and bundle.excluded is None:
            self._rejoined(bundle, must_stay)
            self._fill(self.cuts.set_staying(gone, True))
        if held:
            self._hold(*self.cuts.refill_all())
        elif self.cuts.book.seams and self.included.groups < self.all.groups:
            self._fill({len(self.views) - 1})

    def _rejoined(self, bundle: Bundle, must_stay: bool) -> None:
        what = "is pinned, or has words of the user," if must_stay else "answers a call of an included group, too,"
        text = f"{what} and answers a call of an excluded group, which came back"
        self.judge.note([Problem(bundle.newest, "rejoined", text)])

    def replace(self, position: int, view: Message) -> None:
        """Take another view of equal shape for a message; it is counted anew when somebody asks."""
        self.counting.forget(position)
        self.views[position] = view
        self.judge.look_at(position, view)

    def _total(self, bundle: Bundle, sign: int) -> None:
        self.all.add(bundle, sign)
        if bundle.included:
            self.included.add(bundle, sign)

    # -- excluding -----------------------------------------------------------------------------

    def set_excluded(self, bundle: Bundle, reason: str | None) -> None:
        """Ask a group to leave, or (None) bring it back."""
        if bundle.excluded == reason:
            return
        self._log(bundle)
        if bundle.included:
            self.included.add(bundle, -1)
        bundle.excluded, bundle.held = reason, False
        if reason is None:
            self.included.add(bundle)
        self._fill(self.cuts.set_staying(bundle.positions, reason is None))
        self._moved(bundle)

    def _log(self, bundle: Bundle) -> None:
        """Remember in a compaction how a group stood before its first change."""
        if self.changes is not None:
            self.changes.setdefault(bundle.first, Change(bundle, bundle.excluded, bundle.included))

    def include_all(self) -> None:
        """Bring back everything that was asked to leave."""
        if self.included.groups < self.all.groups or self.cuts.held():
            for bundle in self.grouping.bundles.values():
                self.set_excluded(bundle, None)

    def _fill(self, ends: set[int]) -> None:
        """Hold back what the rules of the format need in these gaps (rule K7)."""
        if ends:
            self._hold(*self.cuts.refill(ends))

    def _hold(self, released: Iterable[Bundle], held: Iterable[Bundle]) -> None:
        """Let go of the one and hold back the other; what is in both stays as it is."""
        wanted = {id(bundle): bundle for bundle in held}
        for bundle in released:
            if bundle.held and id(bundle) not in wanted:
                self._set_held(bundle, False)
        for bundle in wanted.values():
            if not bundle.held:
                self._set_held(bundle, True)

    def _set_held(self, bundle: Bundle, held: bool) -> None:
        self._log(bundle)
        bundle.held = held
        self.included.add(bundle, 1 if held else -1)
        self._moved(bundle)

    def adopt_held(self) -> None:
        """Begin a pass: what a rule holds back from before is in for good, so that the floor counts on it."""
        for bundle, _ in self.cuts.held():
            self.set_excluded(bundle, None)

    def settle(self) -> None:
        """End a pass: what a rule held back stays for good, and the list begins as the format asks (rule K7)."""
        for bundle, rule in self.cuts.held():
            self.protected[bundle.first] = rule
            self.set_excluded(bundle, None)
        if any(not change.bundle.included for change in (self.changes or {}).values()):
            leading, rule = self.cuts.leading(lambda bundle: bundle.first in self.protected)
            for bundle in leading:
                self.set_excluded(bundle, rule)
        self.see_changes()

    # -- reasoning behind a change ----------------------------------------------------------------

    def _moved(self, bundle: Bundle) -> None:
        """A group left or came back."""
        if not self.settings.drops_reasoning:
            return
        if not bundle.included:
            earlier = self.outgoing.changed_from is None or bundle.first < self.outgoing.changed_from
            self._change_from(bundle.first if earlier else self.outgoing.changed_from)
            return
        self._forget_signed(bundle.positions)
        if self.changes is None and bundle.first == self.outgoing.changed_from:
            self.see_changes()

    def see_changes(self) -> None:
        """Look for the first position that left, or was repaired."""
        if self.settings.drops_reasoning:
            self._change_from(self.first_change())

    def first_change(self) -> int | None:
        """The first position that is out, or behind which the list was repaired."""
        out = self.included.groups < self.all.groups
        gone = next((p for p, bundle in enumerate(self.grouping.of) if not bundle.included), None) if out else None
        return min((p for p in (gone, self.repaired_from) if p is not None), default=None)

    def _change_from(self, position: int | None) -> None:
        """Reasoning is dropped from here on: what that makes of a message is counted when somebody asks."""
        old, new = (len(self.views) if place is None else place for place in (self.outgoing.changed_from, position))
        self.outgoing.changed_from = position
        self._forget_signed(place for place in range(min(old, new), max(old, new)) if self.grouping.of[place].included)

    def _forget_signed(self, positions: Iterable[int]) -> None:
        """Messages that may be sent with or without their reasoning now are counted anew."""
        for position in positions:
            if self.views[position].signed:
                self.counting.forget(position)

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
            self.see_changes()
            raise
        finally:
            self.changes, self.protected = None, {}

    def refuse_in_pass(self, what: str) -> None:
        """Refuse what would pull the ground from under a compaction that is under way."""
        if self.changes is not None:
            raise CompactionError(f"the index is being compacted and cannot be {what} until that has ended")

    # -- looking -------------------------------------------------------------------------------

    def is_pending(self, bundle: Bundle) -> bool:
        """Rule G3, with the setting of this conversation; also a result whose call the provider has."""
        if self.judge.server_has_calls and (bundle.kind is GroupKind.ORPHAN or self.judge.refers_in(bundle.positions)):
            return True
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
            bundle.tokens,
        )

    def snapshots(self, bundles: Iterable[Bundle]) -> tuple[MessageGroup, ...]:
        """Groups as values."""
        return tuple(map(self.snapshot, bundles))

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the history, by position."""
        return self.judge.problems(self.views, self.grouping.unanswered(self.settings.pending_turns))
