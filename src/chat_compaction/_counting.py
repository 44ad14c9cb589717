"""Counting late, and only what decides (rule C4).

Of each message the count is known, or bounds of it, or nothing yet. Whether a total is above a limit is often
settled by what is known; where it is not, messages are counted in batches, newest first, until it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import attrs

from ._groups import Bundle, Grouping
from ._messages import Message
from ._outgoing import Outgoing
from ._settings import IndexSettings
from ._totals import UNKNOWN, Known, Totals
from .counters import bounds_of
from .counters._protocol import checked_bounds
from .formats import Format

_CHARACTERS_A_TOKEN = 4
"""How much text is likely to hold a token: only the size of a batch depends on it."""


class _Asked(NamedTuple):
    """A message that is to be counted: where it stands, how it is sent, what of it a counter sees."""

    position: int
    message: Message
    texts: list[str]


@attrs.define(eq=False)
class Counting:
    """What is known of the tokens of each message; keeps the totals of its bundle and of the ledger in step.

    What counts is how a message is sent (``outgoing``). ``all`` and ``included`` are the ledger's totals.
    """

    settings: IndexSettings
    format: Format
    grouping: Grouping
    outgoing: Outgoing
    all: Totals
    included: Totals
    known: list[Known] = attrs.field(init=False, factory=list)
    """By position."""
    _uncounted: dict[int, None] = attrs.field(init=False, factory=dict)
    """The positions that are not counted yet."""
    _unbounded: dict[int, None] = attrs.field(init=False, factory=dict)
    """Those of them that no bounds were asked for."""
    _bounds: Callable[[str], tuple[int, int]] | None = attrs.field(init=False)

    @_bounds.default
    def _bounds_of_counter(self) -> Callable[[str], tuple[int, int]] | None:
        return bounds_of(self.settings.counter)

    # -- what is known -------------------------------------------------------------------------

    def append(self, bundle: Bundle, known: Known) -> None:
        """Take the next message, which joined a bundle; the ledger sees to its totals."""
        if known.uncounted:
            self._uncounted[len(self.known)] = self._unbounded[len(self.known)] = None
        self.known.append(known)
        bundle.least += known.least
        bundle.most += known.most
        bundle.uncounted += known.uncounted

    def forget(self, position: int) -> None:
        """Count a message anew when somebody asks: it is another one now."""
        self._learn(position, UNKNOWN)
        self._uncounted[position] = self._unbounded[position] = None

    def put(self, position: int, known: Known) -> None:
        """Know something else of a message, of which a bundle's own sums are told; totals are the ledger's business."""
        old, bundle = self.known[position], self.grouping.of[position]
        self.known[position] = known
        bundle.least += known.least - old.least
        bundle.most += known.most - old.most
        bundle.uncounted += known.uncounted - old.uncounted
        for unknown in (self._uncounted, self._unbounded):
            unknown.pop(position, None)
            if known.uncounted:
                unknown[position] = None

    def _learn(self, position: int, known: Known) -> None:
        """Something else is known of a message now."""
        old, bundle = self.known[position], self.grouping.of[position]
        self.known[position] = known
        for totals in (bundle, self.all, self.included) if bundle.included else (bundle, self.all):
            totals.least += known.least - old.least
            totals.most += known.most - old.most
            totals.uncounted += known.uncounted - old.uncounted

    # -- asking --------------------------------------------------------------------------------

    def exceeds(self, limit: int) -> bool:
        """Whether more than so many tokens are included; counts no more than decides it."""
        included = self.included
        if included.least <= limit and included.uncounted:
            self._bound()
        while included.least <= limit and included.uncounted and not self._at_most(limit):
            self._count(self._newest(limit - included.least))
        return included.least > limit

    def _at_most(self, limit: int) -> bool:
        """Whether upper bounds say that no more than so many tokens are included."""
        return self._bounds is not None and self.included.most <= limit

    def _bound(self) -> None:
        """Ask for bounds of what has none, if the counter knows any."""
        if self._bounds is None:
            return
        for position in self._unbounded:
            message = self.outgoing.message(position)
            least = most = self.settings.flat(message, self.format)
            for text in self.settings.texts(message):
                low, high = checked_bounds(self._bounds(text), self.settings.counter.name, text)
                least, most = least + low, most + high
            self._learn(position, Known(least, most, 1))
        self._unbounded.clear()

    def _newest(self, tokens: int) -> Iterator[_Asked]:
        """Included messages that are not counted yet, enough to hold so many tokens more, likely: the newest first.

        One that changed is as new as the change.
        """
        characters = 0
        for position in reversed(self._uncounted):
            if self.grouping.of[position].included:
                asked = self._ask(position)
                yield asked
                characters += sum(map(len, asked.texts))
                if characters > tokens * _CHARACTERS_A_TOKEN:
                    return

    def _ask(self, position: int) -> _Asked:
        message = self.outgoing.message(position)
        return _Asked(position, message, self.settings.texts(message))

    # -- counting ------------------------------------------------------------------------------

    def count_included(self) -> None:
        """Count what is included and not counted yet, in one batch."""
        if self.included.uncounted:
            self._count(self._ask(position) for position in self._uncounted if self.grouping.of[position].included)

    def count_all(self) -> None:
        """Count everything that is not counted yet, in one batch."""
        self._count(map(self._ask, self._uncounted))

    def count_of(self, bundle: Bundle) -> int:
        """The tokens of one group, counting what is not counted yet."""
        if bundle.uncounted:
            self._count(self._ask(position) for position in bundle.positions if position in self._uncounted)
        return bundle.least

    def _count(self, messages: Iterable[_Asked]) -> None:
        batch = list(messages)
        numbers = iter(self.settings.counts.count_many([text for asked in batch for text in asked.texts]))
        # Only now something changes: a counter that fails leaves everything as it was.
        for position, message, texts in batch:
            count = self.settings.flat(message, self.format) + sum(islice(numbers, len(texts)))
            self._learn(position, Known(count, count, 0))
            del self._uncounted[position]
            self._unbounded.pop(position, None)
