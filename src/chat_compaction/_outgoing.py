"""How each message is sent: as it is, or without reasoning that is bound to what is gone."""

from __future__ import annotations

import attrs

from ._messages import Message, Part, PartKind, Role
from ._rulebook import RuleBook

NOTHING_ELSE = Message(Role.ASSISTANT, (Part(PartKind.TEXT, "(This message held reasoning only.)"),))
"""What is sent in place of a message that is left with nothing: the conversation goes on with who spoke when."""


@attrs.define(eq=False)
class Outgoing:
    """The messages of one list as they are sent."""

    views: list[Message]
    book: RuleBook
    changed_from: int | None = attrs.field(init=False, default=None)
    """Where reasoning is dropped behind a change: the first position that left (``bound_reasoning="drop"``)."""

    def lost_reasoning(self, position: int) -> bool:
        """Whether this message is sent without its reasoning, which is bound to what is gone."""
        return self.changed_from is not None and position >= self.changed_from and self.views[position].signed

    def message(self, position: int) -> Message:
        """The message as it is sent."""
        view = self.views[position]
        if not self.lost_reasoning(position):
            return view
        bare = view.without_reasoning()
        # A provider may refuse what is left: nothing, or white space.
        return bare if bare.parts and not self.book.of_message(position, bare) else NOTHING_ELSE
