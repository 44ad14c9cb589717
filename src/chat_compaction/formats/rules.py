"""What providers ask of a list of messages: one small class a rule (rule K7).

A rule judges something small, so that a list that grows is judged as it grows: a message by itself, two
neighbours, a result and its call. What it says of two neighbours is also where a history may not be cut.
And it can repair what it found.

A format names its rules; :meth:`~chat_compaction.formats.Format.with_rules` and
:meth:`~chat_compaction.formats.Format.without_rules` change them. The source of each rule stands in the
page of the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from .._messages import Message, Part, PartKind, Role, Seam, Tie, TieKind
from .._validators import one_of

if TYPE_CHECKING:
    from .._repair import Draft

__all__ = [
    "Alternation",
    "CallAfterUser",
    "DuplicateResult",
    "EmptyContent",
    "FirstUser",
    "LastRole",
    "NotAdjacent",
    "OrphanResult",
    "ReasoningAlone",
    "RepeatedId",
    "ResultsFirst",
    "Rule",
    "Seam",
    "SystemAfterUser",
    "SystemPlace",
    "Tie",
    "TieKind",
    "UnansweredCall",
    "UserAfterTool",
]


@attrs.frozen
class Rule:
    """One thing that a provider asks. Subclass it, and override what your rule has something to say of.

    ``name`` is what a :class:`~chat_compaction.Problem` and a report call it. A check returns what is
    wrong, as the end of a sentence about the message, or None.
    """

    name: ClassVar[str] = "rule"

    def check_message(self, message: Message) -> str | None:
        """What is wrong with a message by itself."""
        return None

    def check_seam(self, seam: Seam) -> str | None:
        """Why ``seam.after`` may not stand right behind ``seam.before``: no cut may bring the two together."""
        return None

    def check_tie(self, tie: Tie) -> str | None:
        """What is wrong with how a result and its call belong together."""
        return None

    def check_last(self, message: Message) -> str | None:
        """What is wrong with a message being the last."""
        return None

    def repair(self, draft: Draft) -> None:
        """Mend in the draft what this rule finds wrong there, as far as it can be mended."""


# -- calls and results --------------------------------------------------------------------------


@attrs.frozen
class OrphanResult(Rule):
    """A result answers a call that was made before. Repair: the result leaves."""

    name: ClassVar[str] = "orphan_result"

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        if tie.kind is not TieKind.ORPHAN:
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
        if tie.kind is not TieKind.SECOND:
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
        return f"the call {tie.call_id!r} never got a result" if tie.kind is TieKind.OPEN else None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            action = f"removed the call {tie.call_id!r}, which never got a result"
            if any(part.kind is PartKind.REASONING for part in draft.views[tie.position].parts):
                draft.drop(self, tie.position, f"{action}, with its message: its reasoning may not be altered")
            else:
                draft.cut(self, tie.position, {tie.part}, action)


@attrs.frozen
class NotAdjacent(Rule):
    """Results follow their call at once: with ``turns=0`` nothing but results stands between.

    With ``turns=1`` they stand in the next turn of the other side, where messages of one side in a row
    are one turn, and ahead of what the user says there. Results in a message of the assistant's, of tools
    that the provider runs itself, may stand anywhere behind the call. Repair: the result moves there, out
    of its message if that holds more.
    """

    name: ClassVar[str] = "not_adjacent"

    turns: int = 0

    def check_tie(self, tie: Tie) -> str | None:
        """See :class:`Rule`."""
        late = tie.turns > 1 or tie.said_between > 0 if self.turns else tie.between > 0
        if tie.kind is not TieKind.ANSWER or tie.same_side or not late:
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
        return f"the call id {tie.call_id!r} is that of an earlier call" if tie.kind is TieKind.REPEATED else None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for tie in draft.wrong_ties(self):
            draft.rename(self, tie, f"gave a call another id than {tie.call_id!r}, which an earlier call has")


# -- who speaks after whom ----------------------------------------------------------------------


@attrs.frozen
class FirstUser(Rule):
    """The first message that is not a system message is a user's.

    It costs one message: the user message that opened the oldest kept turn stays. Repair: what stands
    ahead of the first words of the user leaves.
    """

    name: ClassVar[str] = "first_user"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if not seam.at_head or seam.after.role in (Role.USER, Role.SYSTEM):
            return None
        return "the first message after system messages must be a user's"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        # One that only answers calls would lose its results, since the calls leave.
        speaking = (position for position, view in enumerate(draft.views) if view.speaks_for_user)
        for position in range(next(speaking, 0)):
            if draft.views[position].role is not Role.SYSTEM:
                draft.drop(self, position, "removed, since the first message must be a user's")


@attrs.frozen
class Alternation(Rule):
    """The user's side and the assistant speak in turns; tools speak on the user's side, several in a row.

    Repair: two messages of one side in a row become one, where the format can join them.
    """

    name: ClassVar[str] = "alternation"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before, after = seam.before, seam.after
        if before is None or Role.SYSTEM in (before.role, after.role):
            return None
        parallel = before.role is after.role is Role.TOOL
        if parallel or (before.role is Role.ASSISTANT) is not (after.role is Role.ASSISTANT):
            return None
        who = "assistant" if after.role is Role.ASSISTANT else "user"
        return f"follows another message of the {who}; the two sides must alternate"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in reversed(draft.wrong_seams(self)):
            draft.join(self, position, "joined to the message ahead of it, which is of the same side")


@attrs.frozen
class UserAfterTool(Rule):
    """A user's message does not follow a tool's at once: the assistant speaks in between."""

    name: ClassVar[str] = "user_after_tool"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.before is None or seam.before.role is not Role.TOOL or seam.after.role is not Role.USER:
            return None
        return "a user's message follows a tool's at once"


@attrs.frozen
class SystemAfterUser(Rule):
    """A system message comes first, or behind the user or another system message."""

    name: ClassVar[str] = "system_after_user"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.after.role is not Role.SYSTEM or seam.before is None:
            return None
        if seam.before.role in (Role.USER, Role.SYSTEM):
            return None
        return "a system message follows the assistant's or a tool's"


@attrs.frozen
class CallAfterUser(Rule):
    """A message with calls comes right behind the user, behind results, or behind another one with calls."""

    name: ClassVar[str] = "call_after_user"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before = seam.before
        if not seam.after.calls or before is None or before.role is not Role.ASSISTANT or before.calls:
            return None
        return "calls a tool right behind another message of the model"


@attrs.frozen
class SystemPlace(Rule):
    """A system message in the list stands behind the user and ahead of the assistant, or at the end; never first.

    Several in a row count as one, and behind a tool that the provider runs it may stand, too. One that
    holds nothing that we can read is no such message: a directive, or what the provider made of older ones.
    Repair: one that stands elsewhere moves behind the next user message; a leading one can't be mended, since
    the system prompt belongs into a field of its own.
    """

    name: ClassVar[str] = "system_place"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        before, after = seam.before, seam.after
        if _instructs(after):
            if before is None:
                return "a system message comes first; the system prompt belongs into a field of its own"
            provider_ran = before.parts and before.parts[-1].kind is PartKind.TOOL_RESULT
            if before.role is Role.ASSISTANT and not provider_ran:
                return "a system message follows the assistant's, not the user's"
        elif before is not None and _instructs(before) and after.role is not Role.ASSISTANT:
            return "follows a system message, which must come right ahead of the assistant's"
        return None

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in reversed(draft.wrong_seams(self)):
            view = draft.views[position]
            behind = range(position + 1, len(draft.views))
            users = (p for p in behind if draft.views[p].role is Role.USER)
            next_user = next(users, None)
            if _instructs(view) and position and next_user is not None:
                draft.move(self, position, next_user, "moved behind the next message of the user")
            elif not _instructs(view) and view.role is Role.USER:
                draft.move(self, position - 1, position, "moved behind the next message of the user")


def _instructs(message: Message) -> bool:
    opaque = bool(message.parts) and all(part.kind is PartKind.OPAQUE for part in message.parts)
    return message.role is Role.SYSTEM and not opaque


@attrs.frozen
class LastRole(Rule):
    """The last message is not the assistant's, as a request asks that is to be answered.

    No format has this rule by itself: a history at rest ends with the assistant.
    """

    name: ClassVar[str] = "last_role"

    def check_last(self, message: Message) -> str | None:
        """See :class:`Rule`."""
        return "the last message is the assistant's" if message.role is Role.ASSISTANT else None


# -- what is in a message -----------------------------------------------------------------------


@attrs.frozen
class EmptyContent(Rule):
    """A message holds something, and no text in it is empty.

    ``spaces`` is what becomes of a text that is nothing but white space: ``"refused"`` as an empty one,
    ``"alone"`` where nothing else is in the message, ``"allowed"``. Repair: such texts leave, and a message in which
    nothing else is.
    """

    name: ClassVar[str] = "empty_content"

    spaces: Literal["refused", "alone", "allowed"] = attrs.field(
        default="refused", validator=one_of(("refused", "alone", "allowed"))
    )

    def check_message(self, message: Message) -> str | None:
        """See :class:`Rule`."""
        if not message.parts:
            return "the message is empty"
        return "a text in the message is empty" if self._blank(message) else None

    def _blank(self, message: Message) -> set[int]:
        """The numbers of the texts that may not be there."""
        blank = {number for number, part in enumerate(message.parts) if _is_blank(part)}
        if self.spaces == "refused" or (self.spaces == "alone" and len(blank) == len(message.parts)):
            return blank
        return {number for number in blank if not message.parts[number].text}

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in draft.wrong_messages(self):
            view = draft.views[position]
            blank = self._blank(view)
            if len(blank) == len(view.parts):
                draft.drop(self, position, "removed, since it is empty")
            else:
                draft.cut(self, position, blank, "removed an empty text")


def _is_blank(part: Part) -> bool:
    return part.kind is PartKind.TEXT and not part.media and not part.text.strip()


@attrs.frozen
class ResultsFirst(Rule):
    """Results stand ahead of everything else in a message of the user's. Repair: they move there."""

    name: ClassVar[str] = "results_first"

    def check_message(self, message: Message) -> str | None:
        """See :class:`Rule`."""
        kinds = [part.kind is PartKind.TOOL_RESULT for part in message.parts]
        if message.role is not Role.USER or kinds == sorted(kinds, reverse=True):
            return None
        return "a result stands behind other content"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in draft.wrong_messages(self):
            parts = draft.views[position].parts
            order = sorted(range(len(parts)), key=lambda number: parts[number].kind is not PartKind.TOOL_RESULT)
            draft.reorder(self, position, order, "moved the results ahead of the other content")


@attrs.frozen
class ReasoningAlone(Rule):
    """Reasoning is followed by what it led to. Repair: reasoning that is not leaves."""

    name: ClassVar[str] = "reasoning_alone"

    def check_seam(self, seam: Seam) -> str | None:
        """See :class:`Rule`."""
        if seam.before is None or not seam.before.reasoning_only or seam.after.role is Role.ASSISTANT:
            return None
        return "the reasoning ahead of it led to nothing"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in reversed(draft.wrong_seams(self)):
            draft.drop(self, position - 1, "removed reasoning that led to nothing")
