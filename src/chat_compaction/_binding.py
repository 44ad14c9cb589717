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
        start, of = self._bound_to(), self.places.grouping.of
        gone = next((position for position in range(start, len(of)) if not of[position].included), None)
        found = gone, self.words.first_rewritten(start), self.repaired_from
        return min((position for position in found if position is not None), default=None)

    def moved(self, bundles: Iterable[Bundle], *, in_pass: bool) -> None:
        """Groups left or came back."""
        if not self.drops:
            return
        for bundle in bundles:
            before = self.outgoing.changed_from
            if not bundle.included:
                if bundle.newest >= self._bound_to():
                    self._change_from(bundle.first if before is None else min(before, bundle.first))
                continue
            for position in bundle.shown:
                if self.places.views[position].signed:
                    self.counting.forget(position)
            if not in_pass and bundle.first == before:
                self.look()

    def rewritten(self, positions: Iterable[int]) -> None:
        """Other messages stand at these positions."""
        first = min(positions, default=None)
        if self.drops and first is not None:
            before = self.outgoing.changed_from
            self._change_from(first if before is None else min(before, first))

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
