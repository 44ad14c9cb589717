"""The caller's list, read and grouped, and kept in step with what the caller makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import attrs

from ._edits import edits, equal, outline
from ._errors import FormatError, StrategyError
from ._groups import Bundle
from ._ledger import Ledger
from ._messages import Message, PartKind
from ._outgoing import NOTHING_ELSE
from ._reader import Reader, checked_list
from ._rewriting import Rewriting
from ._settings import IndexSettings
from ._totals import UNKNOWN
from .formats import Format


@attrs.frozen
class IndexUpdate:
    """What :meth:`MessageIndex.update` found.

    ``read`` is how many messages it read. ``first_changed`` is the first position, among those
    already known, whose message is no longer what it was; None while the list only grew.
    ``shortened`` says that known messages are gone from the end.
    """

    read: int
    first_changed: int | None = None
    shortened: bool = False


class Conversation:
    """The messages of one conversation beside the ledger of their groups.

    A message may be edited in place behind our back (rule C2). So at each compaction that fires it is compared with
    the outline that was taken when it was read, and read anew where they differ, or where there is none. Nobody
    edits while a call of a reducer lasts (``undisturbed``): what that call looked at itself needs neither.
    """

    def __init__(self, settings: IndexSettings, *, undisturbed: bool = False) -> None:
        self.settings = settings
        self.reader = Reader.of(settings)
        self.raw: list[Any] = []
        self.ledger = Ledger(settings, self.reader.format)
        self.undisturbed = undisturbed
        """Whether nobody can have edited a message since :meth:`update` or :meth:`extend` looked at it."""
        self._looked_from = 0
        """From here on they looked at every message."""
        self._outlines: list[Any | None] = []
        """By position, from the first on, what shows whether a message was edited in place since it was read."""
        self._bare: dict[int, Any] = {}
        """By position, the copy of a message without reasoning that was sent last."""

    def extend(self, messages: Sequence[Any]) -> None:
        """See :meth:`MessageIndex.extend`."""
        new = checked_list(messages)
        self.ledger.refuse_in_pass("extended")
        self.refresh_newest()
        self._looked_from = len(self.raw)
        self._extend(new)

    def _extend(self, new: list[Any]) -> None:
        reader = self.reader.settled_by(new)
        if reader.format is not self.reader.format:
            raw = [*self.raw, *new]
            self._take(reader, raw, *reader.read(raw))
            return
        views, pins = reader.read(new, len(self.raw))
        self.reader = reader
        for view, pin in zip(views, pins, strict=True):
            self.ledger.append(view, pinned=pin)
        if not self.undisturbed and len(self._outlines) == len(self.raw):
            self._outlines += map(outline, new)
        self.raw.extend(new)

    def update(self, history: Sequence[Any]) -> IndexUpdate:
        """See :meth:`MessageIndex.update`."""
        history = checked_list(history, "history")
        self.ledger.refuse_in_pass("updated")
        known = len(self.raw)
        reader = self.reader.settled_by(history)
        if reader.format is not self.reader.format:
            return self._in_another_format(reader, history)
        changed, equal = self._first_difference(history)
        self._looked_from = max(0, known - 1)
        if changed is None:
            self._extend(history[known:])
            for position in equal:
                self.raw[position] = history[position]
            return IndexUpdate(len(history) - known)
        # What the old past told of the format says nothing of another one.
        reader = Reader.of(self.settings).settled_by(history)
        kept = changed if reader.format is self.reader.format else 0
        views, pins = reader.read(history[kept:], kept)
        self._looked_from = kept
        self._take(reader, history, self.ledger.words.originals()[:kept] + views, self.ledger.pins[:kept] + pins)
        return IndexUpdate(len(history) - kept, changed, shortened=len(history) < known)

    def _in_another_format(self, reader: Reader, history: list[Any]) -> IndexUpdate:
        """Take the whole list, which tells only now what format it has: all of it is read anew."""
        known, shared = self.raw, zip(self.raw, history, strict=False)
        differ = (
            place for place, (ours, theirs) in enumerate(shared) if ours is not theirs and not equal(ours, theirs)
        )
        shortened = len(history) < len(known)
        first_changed = next(differ, len(history) if shortened else None)
        views = reader.read(history)
        self._looked_from = 0
        self._take(reader, history, *views)
        return IndexUpdate(len(history), first_changed, shortened)

    def refresh(self) -> tuple[int, ...]:
        """See :meth:`MessageIndex.refresh`."""
        self.ledger.refuse_in_pass("refreshed")
        edited, pins = self._edited(), self.reader.pinned(self.raw)
        differ = self._read_anew(edited, pins) if edited or pins != self.ledger.pins else ()
        if self._outlines or self._fresh_from:  # Of a list that is read for one call only, nobody asks again.
            for position in edited:
                if position < len(self._outlines):
                    self._outlines[position] = outline(self.raw[position])
            self._outlines += map(outline, self.raw[len(self._outlines) :])
        return differ

    def _edited(self) -> list[int]:
        """Where a message may have been edited in place since it was read."""
        return [*edits(self._outlines, self.raw), *range(len(self._outlines), self._fresh_from)]

    @property
    def _fresh_from(self) -> int:
        """Nobody can have edited a message from this position on since it was read."""
        return self._looked_from if self.undisturbed else len(self.raw)

    def _read_anew(self, positions: list[int], pins: list[bool]) -> tuple[int, ...]:
        reader = self.reader.settled_by(self.raw)
        if reader.format is not self.reader.format:
            return self._take(reader, self.raw, *reader.read(self.raw))
        views = list(self.ledger.words.originals())
        for position in positions:
            views[position : position + 1] = reader.views(self.raw[position : position + 1], position)
        return self._take(reader, self.raw, views, pins)

    def go_back_to(self, ledger: Ledger, reader: Reader) -> None:
        """Undo what :meth:`refresh` found: the edits are there to be found again."""
        if ledger is not self.ledger:
            self.ledger, self.reader = ledger, reader
            self._outlines.clear()

    def refresh_newest(self) -> None:
        """See whether the newest message grew in place, as one that is being streamed does (rule C2)."""
        if self._fresh_from < len(self.raw) or not self.raw:
            return
        newest = self.raw[-1:]
        if self.reader.settled_by(newest).format is not self.reader.format:
            self.refresh()
            return
        views, pins = self.reader.read(newest, len(self.raw) - 1)
        if views[0] != self.ledger.words.original(len(self.raw) - 1) or pins != self.ledger.pins[-1:]:
            before = self.ledger.words.originals()[:-1], self.ledger.pins[:-1]
            self._take(self.reader, self.raw, before[0] + views, before[1] + pins)

    def _first_difference(self, history: list[Any]) -> tuple[int | None, list[int]]:
        """The first known position that the history contradicts; None where it only goes on.

        And where it has an equal message in another object: the caller's current object is the one to give back.
        """
        newest = max(0, len(self.raw) - 1)
        equal: list[int] = []
        found = len(history) if len(history) < len(self.raw) else None
        same = all(map(is_, self.raw[:newest], history))
        for position in range(newest if same else 0, min(len(self.raw), len(history))):
            theirs = history[position]
            if self.raw[position] is theirs and position < newest:
                continue
            (view,), (pin,) = self.reader.read([theirs], position)
            if view != self.ledger.words.original(position) or pin != self.ledger.pins[position]:
                return position, equal
            equal.append(position)
        return found, equal

    def _take(self, reader: Reader, raw: list[Any], views: list[Message], pins: list[bool]) -> tuple[int, ...]:
        """Take other readings of the list; gives the known positions that differ.

        Where nothing changed that grouping depends on, as in a message that is being streamed, only
        the counts of those messages are forgotten.
        """
        old = self.ledger
        known = old.words.originals()
        differ = [
            position
            for position, (ours, theirs) in enumerate(zip(known, views, strict=False))
            if (ours is not theirs and ours != theirs) or old.pins[position] != pins[position]
        ]
        for position in differ:
            if position < len(self._outlines):
                self._outlines[position] = None  # It may become again what it was.
        alike = len(views) == len(known) and pins == old.pins and reader.format is self.reader.format
        # What stood in the place of one that differs stood for another message: that comes to an end.
        alike = alike and all(old.grouping.of[position].rewritten is None for position in differ)
        if alike and all(views[position].shape == known[position].shape for position in differ):
            for position in differ:
                old.replace(position, views[position])
        else:
            self.ledger = self._regrouped(reader.format, views, pins, min([*differ, len(known), len(views)]))
        self.reader, self.raw = reader, raw
        del self._outlines[len(raw) :]
        if self.ledger.newest_included() is None:
            self.ledger.include_all()  # What is left of the list may all have left it: a rewind takes the newest.
        return tuple(differ)

    def _regrouped(self, format: Format, views: list[Message], pins: list[bool], known: int) -> Ledger:
        """A ledger made anew; up to the position ``known`` all is as it was, and keeps counts and exclusions."""
        old, new = self.ledger, Ledger(self.settings, format)
        # Without reasoning a message counts less; whether it is sent so is to be seen anew.
        told = range(known if format is old.format else 0)
        counted = [
            UNKNOWN if was.uncounted or old.outgoing.lost_reasoning(place) else was
            for place, was in enumerate(map(old.words.known_of_original, told))
        ]
        counted += [UNKNOWN] * (len(views) - len(counted))
        for view, pin, was in zip(views, pins, counted, strict=True):
            new.append(view, pinned=pin, known=was)
        new.delivered = {position for position in old.delivered if position < known}
        same: dict[Bundle, Bundle] = {}
        for bundle in old.grouping.bundles.values():
            there = new.grouping.bundles.get(bundle.first)
            if there is not None and there.positions == bundle.positions and bundle.newest < known:
                same[bundle] = there
        rewritings: dict[Rewriting, Rewriting | None] = {}
        for bundle, there in same.items():
            rewritten = bundle.rewritten
            if rewritten is None:
                new.set_excluded((there,), bundle.excluded)
                continue
            if rewritten.rewriting not in rewritings:
                _carry(rewritten.rewriting, same, rewritings)
            rewriting = rewritings[rewritten.rewriting]
            if rewriting is not None:
                new.rewrite(there, rewritten.messages, rewriting, rewritten.kind)
                new.set_excluded((there,), bundle.excluded)
        return new

    def check_rules(self) -> None:
        """Hold what would be sent against the rules of the format: no rule may be broken more often than it was.

        Raises :class:`StrategyError`: a rule says something else of two neighbours than of the whole list.
        """
        ledger = Ledger(self.settings, self.reader.format)
        for position, bundle in enumerate(self.ledger.grouping.of):
            if bundle.included and position not in bundle.absent:
                ledger.append(self.ledger.outgoing.message(position), pinned=self.ledger.pins[position])
        before = Counter(problem.rule for problem in self.ledger.problems())
        worse = Counter(problem.rule for problem in ledger.problems()) - before
        if worse:
            raise StrategyError(f"compaction would break rules of the format: {', '.join(sorted(worse))}")

    def project(self) -> list[Any]:
        """The messages to send: the caller's own, or copies without bound reasoning."""
        of = self.ledger.grouping.of
        if self.ledger.outgoing.changed_from is None and not self.ledger.words.rewritten:
            return [raw for raw, bundle in zip(self.raw, of, strict=True) if bundle.included]
        return [self._sent(place) for place, bundle in enumerate(of) if bundle.included and place not in bundle.absent]

    def message(self, position: int) -> Any:
        """What stands at a position: the caller's own object, or what was written in its place."""
        written = self.ledger.words.written(position)
        return self.raw[position] if written is None else written.raw

    def _sent(self, position: int) -> Any:
        if not self.ledger.outgoing.lost_reasoning(position):
            return self.message(position)
        bare = self._without_reasoning(position)
        known = self._bare.get(position)
        # The same copy every time, so that what is sent keeps its identity (rule K11): but not of what it is no more.
        if known is None or not equal(known, bare):
            known = self._bare[position] = bare
        return known

    def _without_reasoning(self, position: int) -> Any:
        """A copy of a message without any reasoning, or one that says that it held nothing else."""
        format, view, raw = self.reader.format, self.ledger.views[position], self.message(position)
        if self.ledger.outgoing.message(position) is NOTHING_ELSE:
            bare = format.saying(raw, NOTHING_ELSE.parts[0].text)
        else:
            bare = format.without(raw, {n for n, part in enumerate(view.parts) if part.kind is PartKind.REASONING})
        if bare is None:
            raise FormatError(
                f"format must write a message without its reasoning for bound_reasoning='drop', got {format!r}"
            )
        return bare

    def precedes(self, history: Sequence[Any]) -> bool:
        """Whether the history seems to go on from this one: a glance at its ends, by identity."""
        shared = min(len(self.raw), len(history))
        return shared > 0 and all(self.raw[place] is history[place] for place in (0, shared - 1))


def _carry(rewriting: Rewriting, same: Mapping[Bundle, Bundle], made: dict[Rewriting, Rewriting | None]) -> None:
    """Make a replacement, and all that hang together with it, anew over other bundles of the same groups.

    None of them where one group is another now.
    """
    bundles, rewritings = rewriting.together()
    if not all(bundle in same for bundle in bundles):
        made.update(dict.fromkeys(rewritings, None))
        return
    for each in reversed(rewritings):  # What one took over comes before it.
        over = tuple(same[bundle] for bundle in each.bundles)
        inner = tuple(new for old in each.inner if (new := made[old]) is not None)
        made[each] = attrs.evolve(each, bundles=over, inner=inner)
