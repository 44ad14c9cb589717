"""What becomes of reasoning that is bound to everything ahead of it, where something ahead of it changed."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ._counting import Counting
from ._groups import Bundle
from ._outgoing import Outgoing
from ._places import Places
from ._words import Words


@attrs.define(eq=False)
class Binding:
    """The first change of a list; with ``drops``, messages behind it are sent and counted without their reasoning."""

    drops: bool
    places: Places
    words: Words
    outgoing: Outgoing
    counting: Counting
    repaired_from: int | None = attrs.field(init=False, default=None)
    """The first position behind which the list is another than the one that the provider saw."""

    def first_change(self) -> int | None:
        """The first position that is out or shows another message, or behind which the list was repaired.

        What a provider made of all that stands ahead of it takes its place: reasoning is bound to that, and to nothing
        ahead of it.
        """
        return self._first_from(self._bound_to())

    def _first_from(self, start: int) -> int | None:
        """The first change, where there is none ahead of this position."""
        of, stands = self.places.grouping.of, self.words.is_callers
        if self.counting.included.groups == self.counting.all.groups and not self.words.rewritten:
            return self.repaired_from
        changed = (place for place in range(start, len(of)) if not (of[place].included and stands(place)))
        found = next(changed, None), self.repaired_from
        return min((position for position in found if position is not None), default=None)

    def moved(self, bundles: Iterable[Bundle], *, in_pass: bool) -> None:
        """Groups left or came back."""
        if not self.drops:
            return
        for bundle in bundles:
            if not bundle.included:
                self._changed(bundle.positions)
                continue
            for position in bundle.shown:
                if self.places.views[position].signed:
                    self.counting.forget(position)
            if not in_pass:
                self._changed_no_more(bundle)

    def rewritten(self, bundle: Bundle, positions: Iterable[int], *, in_pass: bool) -> None:
        """Other messages stand at these positions of a group now, or the caller's own again."""
        if not self.drops or not bundle.included:
            return
        self._changed(position for position in positions if not self.words.is_callers(position))
        if not in_pass:
            self._changed_no_more(bundle)

    def _changed(self, positions: Iterable[int]) -> None:
        start, before = self._bound_to(), self.outgoing.changed_from
        first = min((position for position in positions if position >= start), default=None)
        if first is not None and (before is None or first < before):
            self._change_from(first)

    def _changed_no_more(self, bundle: Bundle) -> None:
        """A group may have been what changed first: then the next change is behind it."""
        before = self.outgoing.changed_from
        if before is not None and self.places.grouping.of[before] is bundle:
            self._change_from(self._first_from(before))

    def look(self) -> None:
        """Look for the first change, where it matters."""
        if self.drops:
            self._change_from(self.first_change())

    def _bound_to(self) -> int:
        """Reasoning is bound to nothing ahead of this position."""
        return self.places.newest_compaction() or 0

    def _change_from(self, position: int | None) -> None:
        """Reasoning is dropped from here on: what that makes of a message is counted when somebody asks."""
        of = self.places.grouping.of
        old, new = (len(of) if place is None else place for place in (self.outgoing.changed_from, position))
        self.outgoing.changed_from = position
        for place in self.places.signed(min(old, new), max(old, new)):
            if of[place].included:
                self.counting.forget(place)
