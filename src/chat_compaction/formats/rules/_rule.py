"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

import attrs

from ..._messages import Message, Role, Seam, Tie

if TYPE_CHECKING:
    from ._draft import Draft

_Check = TypeVar("_Check", bound=Callable[..., str | None])
Meeting = Callable[[Role | None, Role, bool], bool]
"""Of the roles of two neighbours (None: there is no earlier one), and whether they are at the head."""

_ASKED_WHERE: dict[object, Meeting] = {}


def asked_where(meeting: Meeting) -> Callable[[_Check], _Check]:
    """Marks a ``check_seam`` that has nothing to say but where such roles meet: elsewhere a format need not ask it."""

    def mark(check: _Check) -> _Check:
        _ASKED_WHERE[check] = meeting
        return check

    return mark


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


def may_object(rule: Rule, before: Role | None, after: Role, at_head: bool) -> bool:
    """Whether a rule may say something where these roles meet; one that is not marked may anywhere."""
    meeting = _ASKED_WHERE.get(type(rule).check_seam)
    return meeting is None or meeting(before, after, at_head)
