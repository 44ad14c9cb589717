"""What stands at each position: the caller's message, or another in its place."""

from __future__ import annotations

import attrs

from ._counting import Counting
from ._groups import Bundle, Grouping
from ._messages import Message, Tie
from ._rewriting import Original, Written
from ._totals import NOTHING, UNKNOWN, Known


@attrs.define(eq=False)
class Words:
    """The caller's messages beside those that stand in their place. ``views`` are what stands there now."""

    views: list[Message]
    grouping: Grouping
    counting: Counting
    rewritten: dict[Bundle, None] = attrs.field(init=False, factory=dict)
    """The groups that were replaced."""
    _originals: dict[int, Original] = attrs.field(init=False, factory=dict)
    """By position, the caller's message where another stands, or none."""

    def original(self, position: int) -> Message:
        """The caller's message at a position, whatever stands there."""
        known = self._originals.get(position)
        return self.views[position] if known is None else known.view

    def originals(self) -> list[Message]:
        """The caller's messages."""
        views = list(self.views) if self._originals else self.views
        for position, original in self._originals.items():
            views[position] = original.view
        return views

    def known_of_original(self, position: int) -> Known:
        """What is known of the tokens of the caller's message at a position."""
        original = self._originals.get(position)
        return self.counting.known[position] if original is None else original.known

    def written(self, position: int) -> Written | None:
        """What stands at a position in place of the caller's message."""
        rewritten = self.grouping.of[position].rewritten
        return None if rewritten is None else rewritten.messages.get(position)

    def gone(self, tie: Tie) -> bool:
        """Whether the call of a result was in the caller's message, and is not in what stands there now."""
        if tie.call is None or tie.call not in self._originals:
            return False
        if tie.call in self.grouping.of[tie.call].absent:
            return True
        was, now = self.original(tie.call), self.views[tie.call]
        return tie.call_id not in now.call_ids if tie.call_id in was.call_ids else not now.calls

    def is_callers(self, position: int) -> bool:
        """Whether the caller's own message stands at a position."""
        return position not in self._originals

    def write(self, position: int, written: Written | None) -> None:
        """Let another message stand at a position, or none; totals are the ledger's business."""
        if position not in self._originals:
            view = self.views[position]
            # Whether it is sent with its signed reasoning may be another matter by then.
            known = UNKNOWN if view.signed else self.counting.known[position]
            self._originals[position] = Original(view, known)
        if written is not None:
            self.views[position] = written.view
        self.counting.put(position, NOTHING if written is None else UNKNOWN)

    def restore(self, position: int) -> None:
        """Let the caller's message stand at its position again."""
        original = self._originals.pop(position)
        self.views[position] = original.view
        self.counting.put(position, original.known)
