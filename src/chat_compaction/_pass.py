"""A compaction under way: how everything stood before, what may not be touched, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs

from ._groups import Bundle
from ._rewriting import Rewritten

if TYPE_CHECKING:
    from ._report import CompactionReport, Failure


class Standing(NamedTuple):
    """How a group stood: why it was asked to leave, whether it was in all the same, what stood in its place.

    ``tokens`` are what it had, and how many of its messages were not counted, if it was rewritten since.
    """

    excluded: str | None
    included: bool
    rewritten: Rewritten | None = None
    tokens: tuple[int, int] | None = None


IN = Standing(None, True)
"""How nearly every group stood."""


@attrs.define(eq=False)
class Pass:
    """A compaction under way, or one stage of it: its undo log, what may not leave, what happened on the way."""

    changes: dict[Bundle, Standing] = attrs.field(factory=dict)
    """How each group that it touched stood before."""
    protected: dict[int, str] = attrs.field(factory=dict)
    """Why a group, by its first position, may not leave."""
    worded: dict[int, str] = attrs.field(factory=dict)
    """Why the words of a group, by its first position, must stay as they are."""
    stages: list[CompactionReport] = attrs.field(factory=list)
    failures: list[Failure] = attrs.field(factory=list)
    outer: Pass | None = None
    """The compaction of which this is a stage."""
    reworded: bool = False
    """Whether other messages were put in the place of some, or the caller's again."""
    begun: int = 0
    """How many stages it was asked to run; each must end."""
    planning: bool = False
    """Nothing outside of the index may be asked or changed."""
    interrupted: bool = False
    """A plan ended where an answer would have been needed."""
