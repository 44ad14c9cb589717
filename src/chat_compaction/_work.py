"""What a call works on: the history as it came, or what a repair made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from ._errors import InvalidHistoryError
from ._index import MessageIndex
from ._report import CompactionReport
from .instrumentation import Hook, emit

if TYPE_CHECKING:
    from ._departures import Departure
    from ._repair import Repaired

OnInvalid = Literal["keep", "repair", "raise"]
ON_INVALID = ("keep", "repair", "raise")


@attrs.frozen
class Work:
    """An index of the history, or of what a repair made of it."""

    index: MessageIndex
    repaired: Repaired | None = None

    @classmethod
    def on(cls, index: MessageIndex, on_invalid: OnInvalid) -> Work:
        """What to do with a history that breaks a rule: keep it, repair it, or raise :class:`InvalidHistoryError`."""
        if on_invalid == "keep":
            return cls(index)
        if index._settings.validate:
            index.refresh()
        if not index.problems:
            return cls(index)
        if on_invalid == "raise":
            raise InvalidHistoryError(index.problems)
        from ._repair import repair_read  # Loaded where it is needed: most never do.

        ledger, settings = index._ledger, attrs.evolve(index._settings, format=index.format)
        repaired = repair_read(index._conversation.raw, ledger.views, ledger.pins, index.format, settings)
        # A copy of a pinned message is pinned, too.
        pinned = [raw for raw, is_pinned in zip(repaired.messages, repaired.pinned, strict=True) if is_pinned]
        settings = attrs.evolve(settings, pins=pinned, on_excluded=_receiver(index, repaired))
        mended = MessageIndex(repaired.messages, settings, undisturbed=True)
        told = index._ledger.delivered
        mended._ledger.delivered |= {place for place, position in enumerate(repaired.positions) if position in told}
        mended._ledger.binding.repaired_from = repaired.first_changed
        mended._ledger.binding.look()
        return cls(mended, repaired)

    def told(self, report: CompactionReport) -> CompactionReport:
        """The report in positions of the caller's list."""
        return report if self.repaired is None else self.repaired.in_callers_list(report)

    def hooks(self, hooks: Sequence[Hook] | None) -> Sequence[Hook] | None:
        """The hooks, which get that report, too."""
        if self.repaired is None or hooks == ():
            return hooks
        return (lambda report: emit(self.told(report), hooks),)


def _receiver(index: MessageIndex, repaired: Repaired) -> Callable[[Departure], object] | None:
    """Tells what left in positions of the caller's list, whose index remembers it: the mended one is made anew."""
    receiver = index._settings.on_excluded
    if receiver is None:
        return None

    def receive(departure: Departure) -> object:
        positions = tuple(repaired.positions[place] for place in departure.positions)
        index._ledger.delivered.update(positions)
        return receiver(attrs.evolve(departure, positions=positions))

    return receive
