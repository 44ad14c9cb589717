"""Running totals over groups, so that reading a metric is O(1) (rule K13)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from typing import NamedTuple

import attrs

from ._groups import Bundle, GroupKind
from ._predicates import Metric

# As names of the module: looking up a member of an enum takes as long as the rest of a step.
TOOL_GROUP, SYSTEM_GROUP = GroupKind.TOOL_CALL, GroupKind.SYSTEM
SUMMARY_GROUP = GroupKind.SUMMARY


class Known(NamedTuple):
    """What is known of the tokens of one message: the count twice, or bounds; ``uncounted`` is 0 or 1."""

    least: int
    most: int
    uncounted: int


NOTHING = Known(0, 0, 0)
"""No message, no tokens."""
UNKNOWN = Known(0, 0, 1)
"""Nobody has asked yet. ``most`` means nothing until bounds are asked for."""


@attrs.define
class Totals:
    """Running totals over some of the groups; ``least`` and ``most`` are bounds of their tokens."""

    groups: int = 0
    messages: int = 0
    tool_groups: int = 0
    least: int = 0
    most: int = 0
    uncounted: int = 0
    by_turn: Tally[int] = attrs.field(factory=Tally)
    """How many groups count towards each turn: unpinned ones that are neither system groups nor summaries."""

    def add(self, bundles: Iterable[Bundle], sign: int = 1) -> None:
        """Add bundles to the totals, or take them out with ``sign=-1``."""
        groups = messages = tool_groups = least = most = uncounted = 0
        turns: list[int] = []
        for bundle in bundles:
            groups += 1
            messages += len(bundle.positions) - len(bundle.absent)
            least += bundle.least
            most += bundle.most
            uncounted += bundle.uncounted
            kind = bundle.kind
            if kind is TOOL_GROUP:
                tool_groups += 1
            if bundle.turn and not bundle.pinned and kind is not SYSTEM_GROUP and kind is not SUMMARY_GROUP:
                turns.append(bundle.turn)
        self.groups += sign * groups
        self.messages += sign * messages
        self.tool_groups += sign * tool_groups
        self.least += sign * least
        self.most += sign * most
        self.uncounted += sign * uncounted
        for turn, number in Tally(turns).items():
            self.by_turn[turn] += sign * number
            if not self.by_turn[turn]:
                del self.by_turn[turn]

    def become(self, totals: Totals) -> None:
        """Take the values of other totals."""
        self.groups, self.messages, self.tool_groups = totals.groups, totals.messages, totals.tool_groups
        self.least, self.most, self.uncounted = totals.least, totals.most, totals.uncounted
        self.by_turn = totals.by_turn.copy()

    def append(self, bundle: Bundle, known: Known, was: GroupKind | None) -> None:
        """A message more in a bundle that was of this kind, and is else what it was; None for a new one."""
        least, most, uncounted = known
        self.messages += 1
        self.least += least
        self.most += most
        self.uncounted += uncounted
        if was is None:
            self.groups += 1
            if bundle.kind is TOOL_GROUP:
                self.tool_groups += 1
            kind = bundle.kind
            if bundle.turn and not bundle.pinned and kind is not SYSTEM_GROUP and kind is not SUMMARY_GROUP:
                self.by_turn[bundle.turn] += 1
        elif bundle.kind is not was:
            self.tool_groups += 1  # It calls a tool now.

    def value(self, metric: Metric) -> int:
        """A metric that needs no counting of tokens."""
        return len(self.by_turn) if metric.name == "turns" else int(getattr(self, metric.name))
