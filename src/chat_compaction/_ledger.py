"""What is in and what is out, with running totals: the state that a compaction works on.

The ledger knows views and groups, not the caller's messages. Groups leave and come back through
:meth:`Ledger.set_excluded` alone, and what a rule holds back through :meth:`Ledger._set_held`, so totals, the undo
log and the rules of neighbours cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter

import attrs

from ._binding import Binding
from ._counting import Counting
from ._cuts import Cuts
from ._errors import CompactionError
from ._groups import Bundle, Grouping, GroupKind, MessageGroup
from ._judge import Judge
from ._messages import COMPACTION, Message, Tie
from ._outgoing import Outgoing
from ._pass import IN, Pass, Standing
from ._places import Places
from ._problems import Problem
from ._rewriting import Rewriting, Rewritten, Written
from ._rulebook import RuleBook
from ._settings import IndexSettings
from ._totals import SUMMARY_GROUP, SYSTEM_GROUP, UNKNOWN, Known, Totals
from ._words import Words
from .formats import Format


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
    current: Pass | None = attrs.field(init=False, default=None)
    """The compaction under way."""
    delivered: set[int] = attrs.field(init=False, factory=set)
    """The positions of what was told to those who want to know what left."""
    outgoing: Outgoing = attrs.field(init=False)
    counting: Counting = attrs.field(init=False)
    words: Words = attrs.field(init=False)
    places: Places = attrs.field(init=False)
    binding: Binding = attrs.field(init=False)

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

    @words.default
    def _new_words(self) -> Words:
        return Words(self.views, self.grouping, self.counting)

    @places.default
    def _new_places(self) -> Places:
        return Places(self.views, self.grouping)

    @binding.default
    def _new_binding(self) -> Binding:
        return Binding(self.settings.drops_reasoning, self.places, self.words, self.outgoing, self.counting)

    # -- growing -------------------------------------------------------------------------------

    def append(self, view: Message, *, pinned: bool, known: Known = UNKNOWN) -> None:
        """Place the next message; a result of an excluded call is excluded with it (rule G2).

        But not one that must stay: a pinned message, or new words of the user beside the result.
        """
        position = len(self.views)
        joined, ties = self.grouping.place(view)
        stays = pinned or view.speaks_for_user
        late = self._late(joined, ties, stays=stays) if joined and self.words.rewritten else None
        out = [bundle for bundle in joined if bundle.excluded] if joined else ()
        gone = [place for bundle in out for place in bundle.positions] if out else []
        held = bool(out) and any(bundle.held for bundle in out)
        must_stay = pinned or (bool(out) and stays)
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
        self.places.note(position, bundle, pinned=pinned)
        self.counting.append(bundle, known)
        if plain:
            self.all.append(bundle, known, was)
            self.included.append(bundle, known, was)
        else:
            self._total(bundle, 1)
        self.judge.take(position, view, ties)
        before = self.words.original(position - 1) if position else None
        misplaced = self.cuts.append(stays=reason is None, before=before)
        if misplaced:
            self.judge.note(misplaced)
        if late is not None:
            self.rewrite(bundle, {position: None}, late.rewriting, late.kind)
        if gone or self.included.groups < self.all.groups:
            self._fill_behind(bundle, gone, held, must_stay)

    def _fill_behind(self, bundle: Bundle, gone: Sequence[int], held: bool, must_stay: bool) -> None:
        """See to the gaps when a message came behind them, and to groups that it brought back (``gone``)."""
        if gone and bundle.excluded is None:
            self._rejoined(bundle, must_stay)
            self._fill(self.cuts.set_staying(gone, True))
            self.binding.moved((bundle,), in_pass=self.current is not None)
            self.binding.look()
        if held:
            self._hold(*self.cuts.refill_all())
        elif self.cuts.book.seams and self.included.groups < self.all.groups:
            self._fill({len(self.views) - 1})

    def _rejoined(self, bundle: Bundle, must_stay: bool) -> None:
        what = "is pinned, or has words of the user," if must_stay else "answers a call of an included group, too,"
        text = f"{what} and answers a call of an excluded group, which came back"
        self.judge.note([Problem(bundle.newest, "rejoined", text)])

    def _late(self, joined: Sequence[Bundle], ties: Sequence[Tie], *, stays: bool) -> Rewritten | None:
        """What the group of a late result reads as, where its call is gone from it; groups that must take it come back.

        A result of a call that was replaced is gone with it, as one of an excluded call is (rule G2).
        """
        gone = any(self.words.gone(tie) for tie in ties if tie.result is not None)
        out = any(bundle.excluded is not None for bundle in joined)
        if len(joined) > 1 or (stays and (gone or out)):
            for bundle in joined:
                self.restore(bundle)
        return joined[0].rewritten if gone and not out else None

    def replace(self, position: int, view: Message) -> None:
        """Take another view of equal shape for a message that nothing stands for; it is counted when somebody asks."""
        self.counting.forget(position)
        self.views[position] = view
        if view.signed:
            self.places.note_signed(position)
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
        positions = (place for bundle in moved for place in (bundle.shown if bundle.absent else bundle.positions))
        self._fill(self.cuts.set_staying(positions, reason is None))
        self.binding.moved(moved, in_pass=self.current is not None)

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
        if self.current is not None:
            changes = self.current.changes
            new = [bundle for bundle in bundles if bundle not in changes]
            changes.update(dict.fromkeys(new, IN))
            changes.update(
                (b, Standing(b.excluded, b.included, b.rewritten)) for b in new if b.excluded is not None or b.rewritten
            )

    def include_all(self) -> None:
        """Bring back everything as the caller has it."""
        for bundle in list(self.words.rewritten):
            self.restore(bundle)
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
        self.binding.moved((bundle,), in_pass=self.current is not None)

    def adopt_held(self) -> None:
        """Begin a pass: what a rule holds back from before is in for good, so that the floor counts on it."""
        self.set_excluded([bundle for bundle, _ in self.cuts.held()], None)

    def settle(self) -> None:
        """End a pass: what a rule held back stays for good, and the list begins as the format asks (rule K7)."""
        for bundle, rule in self.cuts.held():
            self.protected[bundle.first] = rule
            self.set_excluded((bundle,), None)
        if self.current and any(not bundle.included for bundle in self.current.changes):
            leading, rule = self.cuts.leading(lambda bundle: bundle.first in self.protected)
            self.set_excluded(leading, rule)
        self.binding.look()

    # -- replacing -----------------------------------------------------------------------------

    def rewrite(
        self, bundle: Bundle, messages: Mapping[int, Written | None], rewriting: Rewriting, kind: GroupKind
    ) -> None:
        """Let other messages, or none, stand at some positions of a group, beside what stands there already."""
        old = bundle.rewritten
        was, known = (bundle.kind, {}) if old is None else (old.was, old.messages)
        self._set_rewritten(bundle, Rewritten(rewriting, kind, was, {**known, **messages}))

    def restore(self, bundle: Bundle) -> None:
        """Let the caller's messages stand in a group again, and in all that were replaced together with it."""
        if bundle.rewritten is None:
            return
        together, _ = bundle.rewritten.rewriting.together()
        for other in together:
            self._set_rewritten(other, None)
        self.set_excluded(together, None)

    def _set_rewritten(self, bundle: Bundle, rewritten: Rewritten | None) -> None:
        """The one place where messages change under a group."""
        old = bundle.rewritten
        if old is rewritten:
            return
        self._log_words(bundle)
        before, after = old.messages if old else {}, rewritten.messages if rewritten else {}
        changed = [p for p in before.keys() | after.keys() if before.get(p, self) is not after.get(p, self)]
        self._total(bundle, -1)
        absent = bundle.absent
        bundle.rewritten, bundle.kind = rewritten, rewritten.kind if rewritten else old.was if old else bundle.kind
        bundle.absent = rewritten.absent if rewritten else frozenset()
        for position in changed:
            if position in after:
                self.words.write(position, after[position])
                if self.views[position].signed:
                    self.places.note_signed(position)
            else:
                self.words.restore(position)
        self._total(bundle, 1)
        if rewritten is None:
            self.words.rewritten.pop(bundle, None)
        else:
            self.words.rewritten[bundle] = None
        ends = self.cuts.rewritten(changed)
        if bundle.excluded is None:
            ends |= self.cuts.set_staying(sorted(bundle.absent - absent), False)
            ends |= self.cuts.set_staying(sorted(absent - bundle.absent), True)
        self._fill(ends)
        self.binding.rewritten(bundle, changed, in_pass=self.current is not None)

    def _log_words(self, bundle: Bundle) -> None:
        """Remember in a compaction what a group held before its first change."""
        self._log((bundle,))
        if self.current is not None:
            self.current.reworded = True
            was = self.current.changes[bundle]
            if was.tokens is None:
                self.current.changes[bundle] = was._replace(tokens=(bundle.least, bundle.uncounted))

    # -- compacting ----------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, planning: bool = False) -> Iterator[Pass]:
        """One compaction: all of its changes, or on any exception none (rule K9)."""
        self.refuse_in_pass("compacted")
        with self._pass(Pass(planning=planning)) as current:
            yield current

    @contextmanager
    def stage(self) -> Iterator[Pass]:
        """A compaction within the one under way: on an exception only its own changes are undone."""
        outer = self.current
        if outer is None:
            raise CompactionError("a stage must be run by a compaction that is under way")
        with self._pass(Pass(outer=outer, planning=outer.planning)) as current:
            yield current
        outer.reworded = outer.reworded or current.reworded
        for bundle, was in current.changes.items():
            known = outer.changes.setdefault(bundle, was)
            if known.tokens is None and was.tokens is not None:
                outer.changes[bundle] = known._replace(tokens=was.tokens)

    @contextmanager
    def _pass(self, current: Pass) -> Iterator[Pass]:
        outer, self.current = self.current, current
        try:
            yield current
        except BaseException:
            if self.current is current:  # Else it was left behind, and what ran it has ended.
                self.undo(current)
            raise
        finally:
            if self.current is current:
                self.current = outer

    def leave_behind(self, current: Pass) -> None:
        """Undo the stages of a pass that were begun and not ended."""
        while self.current is not None and self.current is not current:
            self.undo(self.current)
            self.current = self.current.outer

    def undo(self, done: Pass) -> None:
        """Put everything back to where it was before a pass, which is as if it had not begun then."""
        current, self.current = self.current, None
        try:
            for bundle, was in done.changes.items():
                self.put_back(bundle, was.excluded, was.rewritten)
            self.binding.look()
        finally:
            self.current = current
        done.changes.clear()
        done.stages[:] = [attrs.evolve(report, undone=True) for report in done.stages]

    def put_back(self, bundle: Bundle, excluded: str | None, rewritten: Rewritten | None) -> None:
        """Let a group stand as it stood before."""
        self._set_rewritten(bundle, rewritten)
        self.set_excluded((bundle,), excluded)

    @property
    def protected(self) -> dict[int, str]:
        """In a compaction: why a group, by its first position, may not leave."""
        return {} if self.current is None else self.current.protected

    def refuse_in_pass(self, what: str) -> None:
        """Refuse what would pull the ground from under a compaction that is under way."""
        if self.current is not None:
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

    def free(self, protected: Mapping[int, str]) -> Iterator[Bundle]:
        """The groups that may leave and have not been asked to."""
        bundles = self.grouping.bundles.items()
        return (bundle for first, bundle in bundles if bundle.excluded is None and first not in protected)

    def oldest_first(self, protected: Mapping[int, str]) -> list[Bundle]:
        """:meth:`free`, by their newest message (rule K4); summaries last: they are what is left of all before them."""
        free = sorted(self.free(protected), key=attrgetter("newest"))
        if not (self.words.rewritten or self.places.summaries):
            return free
        summaries = [bundle for bundle in free if bundle.kind is SUMMARY_GROUP]
        return [*(bundle for bundle in free if bundle.kind is not SUMMARY_GROUP), *summaries]

    def newest_first(self) -> Iterator[Bundle]:
        """The included groups, by their newest message."""
        of = self.grouping.of
        places = range(len(of) - 1, -1, -1)
        return (of[place] for place in places if of[place].newest == place and of[place].included)

    def newest_included(self) -> Bundle | None:
        """The newest included group that is no system group (rule K2)."""
        return next((bundle for bundle in self.newest_first() if bundle.kind is not GroupKind.SYSTEM), None)

    def is_system(self, bundle: Bundle) -> bool:
        """Whether a group holds a system message of the caller's, and nothing that the provider made."""
        return bundle.kind is SYSTEM_GROUP and not any(self.views[p].kinds & COMPACTION.bit for p in bundle.shown)

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
            None if bundle.rewritten is None else bundle.rewritten.rewriting.reason,
        )

    def snapshots(self, bundles: Iterable[Bundle]) -> tuple[MessageGroup, ...]:
        """Groups as values."""
        return tuple(map(self.snapshot, bundles))

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the history, by position."""
        return self.judge.problems(self.words.originals(), self.grouping.unanswered(self.settings.pending_turns))
