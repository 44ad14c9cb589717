"""A sliding window: whole turns leave, oldest first, around an anchor at the head."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._strategy import CompactionStrategy
from .._validators import non_negative


@attrs.frozen(kw_only=True, repr=False)
class SlidingWindowStrategy(CompactionStrategy):
    """Exclude whole turns, oldest first, until the target holds.

    The newest ``min_preserved_turns`` turns stay. ``keep_first_turns`` and ``keep_first_groups`` are an
    anchor that stays, too: the first turns with what stands ahead of them, or the first groups that are no
    system groups. Of a turn that leaves, anchored groups stay behind, as pinned and system groups do. A turn
    that reaches into the floor is skipped.

    A port of ``SlidingWindowCompactionStrategy`` of the Microsoft Agent Framework for .NET, where what comes before
    the first turn never leaves; here it is the first to leave.

    >>> import chat_compaction as cc
    >>> cc.SlidingWindowStrategy(trigger=cc.turns > 20, keep_first_turns=1).effective_target
    turns <= 20
    """

    min_preserved_turns: int = attrs.field(default=1, validator=non_negative)
    keep_first_turns: int = attrs.field(default=0, validator=non_negative)
    keep_first_groups: int = attrs.field(default=0, validator=non_negative)
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        included = [group for group in index.groups if group.excluded is None and group.kind is not GroupKind.SYSTEM]
        turns, anchor = self._kept_turns(included), self._anchor(included)
        leaving = (
            [group for group in turn if group.positions[0] not in anchor]
            for turn in self.candidate_turns(index)
            if turn[0].turn not in turns
        )
        self.evict(index, list(filter(None, leaving)), "sliding window")

    def _kept_turns(self, included: Sequence[MessageGroup]) -> set[int]:
        """The numbers of the turns that stay whole."""
        numbers = sorted({group.turn for group in included if group.turn and not group.pinned})
        first = numbers[: self.keep_first_turns]
        newest = numbers[max(0, len(numbers) - self.min_preserved_turns) :]
        return {*first, *newest, *([0] if first else ())}

    def _anchor(self, included: Sequence[MessageGroup]) -> set[int]:
        """The first positions of the groups that stay although their turn may leave."""
        return {group.positions[0] for group in included[: self.keep_first_groups]}
