"""An index as it would be after a change: what a target is asked about before there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ._predicates import Metric

if TYPE_CHECKING:
    from ._index import MessageIndex


@attrs.frozen
class AsIf:
    """An index with so much more of some metrics, or less; everything else is the index itself."""

    index: MessageIndex
    more: Mapping[Metric, int]

    def value(self, metric: Metric) -> int:
        """See :meth:`MessageIndex.value`."""
        return self.index.value(metric) + self.more.get(metric, 0)

    def exceeds(self, metric: Metric, limit: int) -> bool:
        """See :meth:`MessageIndex.exceeds`."""
        return self.index.exceeds(metric, limit - self.more.get(metric, 0))

    def known(self, metric: Metric) -> tuple[int, bool]:
        """See :meth:`MessageIndex.known`."""
        known, exact = self.index.known(metric)
        return known + self.more.get(metric, 0), exact

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)
