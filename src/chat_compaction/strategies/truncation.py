"""Truncation: the oldest groups leave until the target holds."""

from __future__ import annotations

import attrs

from .._index import MessageIndex
from .._strategy import CompactionStrategy


@attrs.frozen(kw_only=True, repr=False)
class TruncationStrategy(CompactionStrategy):
    """Exclude the oldest groups, one by one, until the target holds.

    A port of ``TruncationCompactionStrategy`` of the Microsoft Agent Framework for .NET. The floor
    is 8 groups by default where .NET has 32: of 31 recorded sessions above 32,000 tokens, the newest
    32 groups alone exceed 16,000 in 23.

    >>> import chat_compaction as cc
    >>> cc.TruncationStrategy(trigger=cc.tokens > 8_000, target=cc.tokens <= 4_000).min_preserved_groups
    8
    """

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        self.evict(index, self.candidates(index), "truncation")
