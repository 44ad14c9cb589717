"""Rules of what is in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from ..._messages import SYSTEM, TEXT, TOOL_RESULT, USER, Message
from ..._validators import one_of
from ._rule import Rule

if TYPE_CHECKING:
    from ._draft import Draft


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
        return "a text in the message is empty" if message.kinds & TEXT.bit and self._blank(message) else None

    def _blank(self, message: Message) -> set[int]:
        """The numbers of the texts that may not be there."""
        blank = {
            number
            for number, part in enumerate(message.parts)
            if part.kind is TEXT and (not part.text or part.text.isspace()) and not part.media
        }
        if not blank:
            return blank
        if self.spaces == "refused" or (self.spaces == "alone" and len(blank) == len(message.parts)):
            return blank
        return {number for number in blank if not message.parts[number].text}

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in draft.wrong_messages(self):
            view = draft.views[position]
            blank = self._blank(view)
            if len(blank) < len(view.parts):
                draft.cut(self, position, blank, "removed an empty text")
            elif not _opens(draft, position):
                draft.drop(self, position, "removed, since it is empty")


def _opens(draft: Draft, position: int) -> bool:
    """Whether a message is the user's that comes first: without it, the assistant would, which nobody could mend."""
    views = draft.views
    return views[position].role is USER and all(view.role is SYSTEM for view in views[:position])


@attrs.frozen
class ResultsFirst(Rule):
    """Results stand ahead of everything else in a message of the user's. Repair: they move there."""

    name: ClassVar[str] = "results_first"

    def check_message(self, message: Message) -> str | None:
        """See :class:`Rule`."""
        if message.role is not USER or not message.kinds & TOOL_RESULT.bit or message.kinds == TOOL_RESULT.bit:
            return None
        results = [part.kind is TOOL_RESULT for part in message.parts]
        if results == sorted(results, reverse=True):
            return None
        return "a result stands behind other content"

    def repair(self, draft: Draft) -> None:
        """See :class:`Rule`."""
        for position in draft.wrong_messages(self):
            parts = draft.views[position].parts
            order = sorted(range(len(parts)), key=lambda number: parts[number].kind is not TOOL_RESULT)
            draft.reorder(self, position, order, "moved the results ahead of the other content")
