"""Running totals over groups, so that reading a metric is O(1) (rule K13)."""

from __future__ import annotations

from collections import Counter as Tally
from typing import NamedTuple

import attrs

from ._groups import Bundle, GroupKind
from ._predicates import Metric


class Known(NamedTuple):
    """What is known of the tokens of one message: the count twice, or bounds; ``uncounted`` is 0 or 1."""

    least: int
    most: int
    uncounted: int


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
    """How many groups count towards each turn: unpinned ones that are no system groups."""

    def add(self, bundle: Bundle, sign: int = 1) -> None:
        """Add a bundle to the totals, or take it out with ``sign=-1``."""
        self.groups += sign
        self.messages += sign * len(bundle.positions)
        self.tool_groups += sign * (bundle.kind is GroupKind.TOOL_CALL)
        self.least += sign * bundle.least
        self.most += sign * bundle.most
        self.uncounted += sign * bundle.uncounted
        if bundle.turn and not bundle.pinned and bundle.kind is not GroupKind.SYSTEM:
            self.by_turn[bundle.turn] += sign
            if not self.by_turn[bundle.turn]:
                del self.by_turn[bundle.turn]

    def value(self, metric: Metric) -> int:
        """A metric that needs no counting of tokens."""
        return len(self.by_turn) if metric.name == "turns" else int(getattr(self, metric.name))
