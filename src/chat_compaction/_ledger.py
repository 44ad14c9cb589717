"""What is in and what is out, with running totals: the state that a compaction works on.

The ledger knows views and groups, not the caller's messages. Groups leave and come back through
:meth:`Ledger.set_excluded` alone, and what a rule holds back through :meth:`Ledger._set_held`, so totals, the undo
log and the rules of neighbours cannot disagree.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile
from operator import attrgetter
from typing import NamedTuple

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
from ._totals import SYSTEM_GROUP, UNKNOWN, Known, Totals
from .formats import Format


class Standing(NamedTuple):
    """Why a group was asked to leave, and whether it was in all the same."""

    excluded: str | None
    included: bool


_IN = Standing(None, True)
"""How nearly every group stood."""


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
    changes: dict[Bundle, Standing] | None = attrs.field(init=False, default=None)
    """The undo log of the compaction under way: how each group that it touched stood before. None outside of one."""
    protected: dict[int, str] = attrs.field(init=False, factory=dict)
    """In a compaction: why a group, by its first position, may not leave."""
    repaired_from: int | None = attrs.field(init=False, default=None)
    """The first position behind which the list is another than the one that the provider saw."""
    _standing: list[int] = attrs.field(init=False, factory=list)
    """The positions of pinned and of system messages."""
    _speaking: list[int] = attrs.field(init=False, factory=list)
    """The positions of the user's messages that are not pinned (rule K4)."""
    _signed: list[int] = attrs.field(init=False, factory=list)
    """The positions of messages with signed reasoning, and of those that had some."""
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
        position = len(self.views)
        joined, ties = self.grouping.place(view)
        out = [bundle for bundle in joined if bundle.excluded] if joined else ()
        gone = [place for bundle in out for place in bundle.positions] if out else []
        held = bool(out) and any(bundle.held for bundle in out)
        must_stay = pinned or (bool(out) and view.speaks_for_user)
        reason = out[0].excluded if out and len(out) == len(joined) and not must_stay else None
        # Nearly always a group begins, or gets longer and nothing else.
        was = joined[0].kind if joined else None
        plain = not joined or (len(joined) == 1 and not (out or pinned) and was is not SYSTEM_GROUP)
        if not plain:
            for old in joined:
                self._total(old, -1)
                old.held = False
        bundle = self.grouping.append(view, joined, pinned=pinned)
        bundle.excluded, bundle.included = reason, reason is None
        self.views.append(view)
        self.pins.append(pinned)
        self._note_places(position, view, bundle)
        self.counting.append(bundle, known)
        if plain:
            self.all.append(bundle, known, was)
            self.included.append(bundle, known, was)
        else:
            self._total(bundle, 1)
        self.judge.take(position, view, ties)
        misplaced = self.cuts.append(stays=reason is None)
        if misplaced:
            self.judge.note(misplaced)
        if gone or self.included.groups < self.all.groups:
            self._fill_behind(bundle, gone, held, must_stay)

    def _note_places(self, position: int, view: Message, bundle: Bundle) -> None:
        """Note where something stands that is looked for."""
        if self.pins[position] or bundle.kind is SYSTEM_GROUP:
            self._standing.append(position)
        elif view.speaks_for_user:
            self._speaking.append(position)
        if view.signed:
            self._signed.append(position)

    def _fill_behind(self, bundle: Bundle, gone: Sequence[int], held: bool, must_stay: bool) -> None:
        """See to the gaps when a message came behind them, and to groups that it brought back (``gone``)."""
        if gone and bundle.excluded is None:
            self._rejoined(bundle, must_stay)
            self._fill(self.cuts.set_staying(gone, True))
            self._moved((bundle,))
            self.see_changes()
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
        if view.signed and position not in self.signed(position, position + 1):
            insort(self._signed, position)
        self.judge.look_at(position, view)

    def _total(self, bundle: Bundle, sign: int) -> None:
        self.all.add((bundle,), sign)
        if bundle.included:
            self.included.add((bundle,), sign)

    # -- excluding -----------------------------------------------------------------------------

    def set_excluded(self, bundles: Iterable[Bundle], reason: str | None) -> None:
        """Ask groups to leave, or (None) bring them back: all at once is the same as one by one."""
        moved = list(dict.fromkeys([bundle for bundle in bundles if bundle.excluded != reason]))
        if not moved:
            return
        self._log(moved)
        few = 2 * len(moved) < self.included.groups
        if few:
            self.included.add([bundle for bundle in moved if bundle.included], -1)
        for bundle in moved:
            bundle.excluded, bundle.held, bundle.included = reason, False, reason is None
        if not few:
            self._total_anew()
        elif reason is None:
            self.included.add(moved)
        positions = (position for bundle in moved for position in bundle.positions)
        self._fill(self.cuts.set_staying(positions, reason is None))
        self._moved(moved)

    def _total_anew(self) -> None:
        """Total what is in by the shorter way: one by one, or all without what is out."""
        inside = [bundle for bundle in self.grouping.bundles.values() if bundle.included]
        if 2 * len(inside) < self.all.groups:
            self.included.become(Totals())
            self.included.add(inside)
        else:
            self.included.become(self.all)
            self.included.add([bundle for bundle in self.grouping.bundles.values() if not bundle.included], -1)

    def _log(self, bundles: Iterable[Bundle]) -> None:
        """Remember in a compaction how groups stood before their first change."""
        if self.changes is not None:
            new = [bundle for bundle in bundles if bundle not in self.changes]
            self.changes.update(dict.fromkeys(new, _IN))
            self.changes.update((b, Standing(b.excluded, b.held)) for b in new if b.excluded is not None)

    def include_all(self) -> None:
        """Bring back everything that was asked to leave."""
        if self.included.groups < self.all.groups or self.cuts.held():
            self.set_excluded(self.grouping.bundles.values(), None)

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
        self._log((bundle,))
        bundle.held = bundle.included = held
        self.included.add((bundle,), 1 if held else -1)
        self._moved((bundle,))

    def adopt_held(self) -> None:
        """Begin a pass: what a rule holds back from before is in for good, so that the floor counts on it."""
        self.set_excluded([bundle for bundle, _ in self.cuts.held()], None)

    def settle(self) -> None:
        """End a pass: what a rule held back stays for good, and the list begins as the format asks (rule K7)."""
        for bundle, rule in self.cuts.held():
            self.protected[bundle.first] = rule
            self.set_excluded((bundle,), None)
        if any(not bundle.included for bundle in self.changes or ()):
            leading, rule = self.cuts.leading(lambda bundle: bundle.first in self.protected)
            self.set_excluded(leading, rule)
        self.see_changes()

    # -- reasoning behind a change ----------------------------------------------------------------

    def _moved(self, bundles: Iterable[Bundle]) -> None:
        """Groups left or came back."""
        if not self.settings.drops_reasoning:
            return
        for bundle in bundles:
            before = self.outgoing.changed_from
            if not bundle.included:
                self._change_from(bundle.first if before is None else min(before, bundle.first))
                continue
            self._forget(position for position in bundle.positions if self.views[position].signed)
            if self.changes is None and bundle.first == before:
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
        self._forget(place for place in self.signed(min(old, new), max(old, new)) if self.grouping.of[place].included)

    def signed(self, start: int, end: int | None = None) -> Iterator[int]:
        """The positions from one to another of messages with signed reasoning."""
        place = bisect_left(self._signed, start)
        within = takewhile(lambda position: end is None or position < end, islice(self._signed, place, None))
        return (position for position in within if self.views[position].signed)

    def _forget(self, positions: Iterable[int]) -> None:
        """Messages that may be sent with or without their reasoning now are counted anew."""
        for position in positions:
            self.counting.forget(position)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One compaction: all of its changes, or on any exception none (rule K9)."""
        self.refuse_in_pass("compacted")
        changes: dict[Bundle, Standing] = {}
        self.changes = changes
        try:
            yield
        except BaseException:
            self.changes = None
            for bundle, (excluded, _) in changes.items():
                self.set_excluded((bundle,), excluded)
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
        if self.judge.server_has_calls and self._refers(bundle):
            return True
        return self.grouping.is_pending(bundle, self.settings.pending_turns)

    def _refers(self, bundle: Bundle) -> bool:
        return bundle.kind is GroupKind.ORPHAN or self.judge.refers_in(bundle.positions)

    def pending(self) -> Iterator[Bundle]:
        """The groups for which :meth:`is_pending` holds; one may come twice."""
        if self.judge.server_has_calls:
            yield from filter(self._refers, self.grouping.bundles.values())
        yield from self.grouping.pending(self.settings.pending_turns)

    def standing(self) -> Iterator[Bundle]:
        """The groups that are pinned or hold a system message; one may come twice."""
        return (self.grouping.of[position] for position in self._standing)

    def free(self, protected: Mapping[int, str]) -> Iterator[Bundle]:
        """The groups that may leave and have not been asked to."""
        bundles = self.grouping.bundles.items()
        return (bundle for first, bundle in bundles if bundle.excluded is None and first not in protected)

    def oldest_first(self, protected: Mapping[int, str]) -> list[Bundle]:
        """:meth:`free`, by their newest message (rule K4)."""
        return sorted(self.free(protected), key=attrgetter("newest"))

    def newest_first(self) -> Iterator[Bundle]:
        """The included groups, by their newest message."""
        of = self.grouping.of
        places = range(len(of) - 1, -1, -1)
        return (of[place] for place in places if of[place].newest == place and of[place].included)

    def newest_included(self) -> Bundle | None:
        """The newest included group that is no system group (rule K2)."""
        return next((bundle for bundle in self.newest_first() if bundle.kind is not GroupKind.SYSTEM), None)

    def last_user(self) -> Bundle | None:
        """The included group with the newest words of the user that are not pinned (rule K4)."""
        bundles = (self.grouping.of[position] for position in reversed(self._speaking))
        return next((bundle for bundle in bundles if bundle.included), None)

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
