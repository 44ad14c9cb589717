"""Rules of who speaks after whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from ..._messages import ASSISTANT, COMPACTION, OPAQUE, SYSTEM, TOOL, TOOL_RESULT, USER, Message, Seam
from ._rule import Rule, asked_where

if TYPE_CHECKING:
    from ._draft import Draft


@attrs.frozen
class FirstUser(Rule):
    """The first message that is not a system message is a user's, or holds what the provider made of what was ahead.

    It costs one message: the user message that opened the oldest kept turn stays. Repair: what stands
    ahead of the first words of the user leaves.
    """

    name: ClassVar[str] = "first_user"

    @asked_where(lambda before, after, at_head: at_head and after not in (USER, SYSTEM))
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if not seam.at_head or seam.after.role in (USER, SYSTEM) or seam.after.kinds & COMPACTION.bit:
            return None
        return "the first message after system messages must be a user's"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        # One that only answers calls would lose its results, since the calls leave.
        speaking = (position for position, view in enumerate(draft.views) if view.speaks_for_user)
        ahead = [place for place in range(next(speaking, 0)) if draft.views[place].role is not SYSTEM]
        if all(map(draft.may_leave, ahead)):  # What stays would be first.
            for place in ahead:
                draft.drop(self, place, "removed, since the first message must be a user's")


@attrs.frozen
class Alternation(Rule):
    """The user's side and the assistant speak in turns; tools speak on the user's side, several in a row.

    Repair: two messages of one side in a row become one, where the format can join them.
    """

    name: ClassVar[str] = "alternation"

    @asked_where(lambda before, after, at_head: before is not None and (before is ASSISTANT) is (after is ASSISTANT))
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before, after = seam.before, seam.after
        if before is None or SYSTEM in (before.role, after.role):
            return None
        parallel = before.role is after.role is TOOL
        if parallel or (before.role is ASSISTANT) is not (after.role is ASSISTANT):
            return None
        who = "assistant" if after.role is ASSISTANT else "user"
        return f"follows another message of the {who}; the two sides must alternate"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in reversed(draft.wrong_seams(self)):
            draft.join(self, position, "joined to the message ahead of it, which is of the same side")


@attrs.frozen
class UserAfterTool(Rule):
    """A user's message does not follow a tool's at once: the assistant speaks in between."""

    name: ClassVar[str] = "user_after_tool"

    @asked_where(lambda before, after, at_head: before is TOOL and after is USER)
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.before is None or seam.before.role is not TOOL or seam.after.role is not USER:
            return None
        return "a user's message follows a tool's at once"


@attrs.frozen
class SystemAfterUser(Rule):
    """A system message comes first, or behind the user or another system message."""

    name: ClassVar[str] = "system_after_user"

    @asked_where(lambda before, after, at_head: after is SYSTEM)
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.after.role is not SYSTEM or seam.before is None:
            return None
        if seam.before.role in (USER, SYSTEM):
            return None
        return "a system message follows the assistant's or a tool's"


@attrs.frozen
class CallAfterUser(Rule):
    """A message with calls comes right behind the user, behind results, or behind another one with calls."""

    name: ClassVar[str] = "call_after_user"

    @asked_where(lambda before, after, at_head: before is ASSISTANT)
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before = seam.before
        if not seam.after.calls or before is None or before.role is not ASSISTANT or before.calls:
            return None
        return "calls a tool right behind another message of the model"


@attrs.frozen
class SystemPlace(Rule):
    """A system message in the list stands behind the user and ahead of the assistant, or at the end; never first.

    Several in a row count as one, and behind a tool that the provider runs it may stand, too. One that
    holds nothing that we can read is no such message: a directive, or what the provider made of older ones.
    Repair: one that stands elsewhere moves behind the next user message that the assistant answers; a leading one
    can't be mended, since the system prompt belongs into a field of its own.
    """

    name: ClassVar[str] = "system_place"

    @asked_where(lambda before, after, at_head: SYSTEM in (before, after))
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before, after = seam.before, seam.after
        if _instructs(after):
            if before is None:
                return "a system message comes first; the system prompt belongs into a field of its own"
            provider_ran = before.parts and before.parts[-1].kind is TOOL_RESULT
            if before.role is ASSISTANT and not provider_ran:
                return "a system message follows the assistant's, not the user's"
        elif before is not None and not seam.at_head and _instructs(before) and after.role is not ASSISTANT:
            return "follows a system message, which must come right ahead of the assistant's"
        return None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        views = draft.views
        to_move: set[int] = set()
        for position in draft.wrong_seams(self):
            place = position
            if not _instructs(views[position]):  # What stands ahead of it is in the wrong place.
                place -= 1
                while place > 0 and _instructs(views[place - 1]):
                    place -= 1
            while place < len(views) and _instructs(views[place]):
                to_move.add(place)
                place += 1
        behind = self._places(views)
        for position in sorted(to_move):
            place_behind = behind[position]
            if position and place_behind is not None:
                draft.move(self, position, place_behind, "moved to where a system message may stand")

    def _places(self, views: Sequence[Message]) -> list[int | None]:
        """For each position, the next one behind which a system message may stand; None where there is none."""
        places: list[int | None] = [None] * len(views)
        found: int | None = None
        for position in range(len(views) - 1, -1, -1):
            places[position] = found
            last = position == len(views) - 1
            if views[position].role is USER and (last or views[position + 1].role is ASSISTANT):
                found = position
        return places


def _instructs(message: Message) -> bool:
    return message.role is SYSTEM and message.kinds != OPAQUE.bit


@attrs.frozen
class LastRole(Rule):
    """The last message is not the assistant's, as a request asks that is to be answered.

    No format has this rule by itself: a history at rest ends with the assistant.
    """

    name: ClassVar[str] = "last_role"

    def check_last(self, message: Message) -> str | None:
        """See :class:`Rule`."""
        return "the last message is the assistant's" if message.role is ASSISTANT else None


@attrs.frozen
class ReasoningAlone(Rule):
    """Reasoning is followed by what it led to. Repair: reasoning that is not leaves."""

    name: ClassVar[str] = "reasoning_alone"

    @asked_where(lambda before, after, at_head: before is ASSISTANT and after is not ASSISTANT)
    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.before is None or not seam.before.reasoning_only or seam.after.role is ASSISTANT:
            return None
        return "the reasoning ahead of it led to nothing"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in reversed(draft.wrong_seams(self)):
            draft.drop(self, position - 1, "removed reasoning that led to nothing")
