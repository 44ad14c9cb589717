"""Replacements: other messages in the place of the caller's, and what they stand for (rule S1).

The caller's messages stay where they are. A group that is *rewritten* shows other messages at some of its positions,
or none; its own are kept beside, so that a replacement can be undone at any time. A summary stands at a position of
one of the groups that it replaces, and the others are out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ._messages import Message
from ._totals import Known

if TYPE_CHECKING:
    from ._groups import Bundle, GroupKind


@attrs.frozen(eq=False)
class Written:
    """A message in the caller's format that stands in the place of one of the caller's, and our view of it."""

    raw: Any
    view: Message


@attrs.frozen(eq=False)
class Original:
    """The caller's message at a position where another stands now, or none: our view of it, and its tokens."""

    view: Message
    known: Known


@attrs.frozen(eq=False)
class Rewriting:
    """Why groups were replaced, and which of them together.

    ``summary``: one of them holds a message that stands for all. ``inner`` are earlier replacements that this one
    took over, with the group that held each.
    """

    reason: str
    bundles: tuple[Bundle, ...]
    summary: bool = False
    inner: tuple[Rewriting, ...] = ()

    def together(self) -> tuple[list[Bundle], list[Rewriting]]:
        """All groups that were replaced together, and the replacements; what one took over comes behind it."""
        bundles: dict[Bundle, None] = {}
        found: dict[Rewriting, None] = {}
        waiting = [self._outermost()]
        while waiting:
            rewriting = waiting.pop()
            found[rewriting] = None
            bundles.update(dict.fromkeys(rewriting.bundles))
            waiting += rewriting.inner
        return list(bundles), list(found)

    def _outermost(self) -> Rewriting:
        """The replacement that took this one over, if any did: the group that held this one knows."""
        rewriting = self
        while True:
            others = (b.rewritten.rewriting for b in rewriting.bundles if b.rewritten is not None)
            outer = next((other for other in others if other is not rewriting and rewriting in other.inner), None)
            if outer is None:
                return rewriting
            rewriting = outer


@attrs.frozen(eq=False)
class Rewritten:
    """How a group reads in place of the caller's messages.

    ``messages``: by position, what stands there; None where nothing does. ``kind`` is what the group is now, and
    ``was`` what it is by the caller's messages. A group that left for a summary has no messages of ours: it
    only knows what it was replaced with.
    """

    rewriting: Rewriting
    kind: GroupKind
    was: GroupKind
    messages: Mapping[int, Written | None]

    @property
    def absent(self) -> frozenset[int]:
        """The positions at which no message stands."""
        return frozenset([position for position, written in self.messages.items() if written is None])
