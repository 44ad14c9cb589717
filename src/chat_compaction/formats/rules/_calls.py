"""Rules of calls and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from ..._messages import ANSWER, OPEN, ORPHAN, REASONING, REPEATED, SECOND, Tie
from ._rule import Rule

if TYPE_CHECKING:
    from ._draft import Draft


@attrs.frozen
class OrphanResult(Rule):
    """A result answers a call that was made before. Repair: the result leaves."""

    name: ClassVar[str] = "orphan_result"

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        if tie.kind is not ORPHAN:
            return None
        return f"a result for the call {tie.call_id!r}, which was never made before"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            draft.cut(self, tie.position, {tie.part}, f"removed the result of the call {tie.call_id!r}, never made")


@attrs.frozen
class DuplicateResult(Rule):
    """A call is answered once. Repair: the second result leaves."""

    name: ClassVar[str] = "duplicate_result"

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        if tie.kind is not SECOND:
            return None
        return f"a second result for the call {tie.call_id!r}, which is answered already"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            draft.cut(self, tie.position, {tie.part}, f"removed the second result of the call {tie.call_id!r}")


@attrs.frozen
class UnansweredCall(Rule):
    """A call gets a result, unless it still waits for one (rule G3).

    Repair: the call leaves, and its message with it where that has reasoning: reasoning never stands
    beside altered content.
    """

    name: ClassVar[str] = "unanswered_call"

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        return f"the call {tie.call_id!r} never got a result" if tie.kind is OPEN else None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            action = f"removed the call {tie.call_id!r}, which never got a result"
            if draft.views[tie.position].kinds & REASONING.bit:
                draft.drop(self, tie.position, f"{action}, with its message: its reasoning may not be altered")
            else:
                draft.cut(self, tie.position, {tie.part}, action)


def _none_or_one(_: object, __: object, value: object) -> None:
    if type(value) is not int or value not in (0, 1):
        raise ValueError(f"turns must be 0 or 1, got {value!r}")


@attrs.frozen
class NotAdjacent(Rule):
    """Results follow their call at once: with ``turns=0`` nothing but results stands between.

    With ``turns=1`` they stand in the next turn of the other side, where messages of one side in a row
    are one turn, and ahead of what the user says there. Results in a message of the assistant's, of tools
    that the provider runs itself, may stand anywhere behind the call. Repair: the result moves there, out
    of its message if that holds more.
    """

    name: ClassVar[str] = "not_adjacent"

    turns: Literal[0, 1] = attrs.field(default=0, validator=_none_or_one)

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        late = tie.turns > 1 or tie.said_between > 0 if self.turns else tie.between > 0
        if not late or tie.same_side or tie.kind is not ANSWER:
            return None
        return f"the result of the call {tie.call_id!r} does not follow it at once"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            if tie.call is not None:
                action = f"moved the result of the call {tie.call_id!r} behind its call"
                draft.move(self, tie.position, tie.call, action, part=tie.part)


@attrs.frozen
class RepeatedId(Rule):
    """No two calls have the same id. Repair: the later call gets another, and its results with it."""

    name: ClassVar[str] = "repeated_id"

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        return f"the call id {tie.call_id!r} is that of an earlier call" if tie.kind is REPEATED else None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            draft.rename(self, tie, f"gave a call another id than {tie.call_id!r}, which an earlier call has")
