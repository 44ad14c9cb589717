"""What a rule is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from ..._messages import Message, Seam, Tie

if TYPE_CHECKING:
    from ._draft import Draft


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
