"""What a compaction did, and why it stopped or did nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ._groups import GroupKind
from ._problems import Problem, Repair
from ._text import some, spans


@attrs.frozen
class Exclusion:
    """A group that was excluded: its positions in the caller's list, its kind, why, and its tokens if counted."""

    positions: tuple[int, ...]
    kind: GroupKind
    reason: str
    tokens: int | None = None


@attrs.frozen
class Blocker:
    """A group that stands in the way of the target: why it may not leave, and its tokens if counted.

    ``reason`` is ``"system"``, ``"pinned"``, ``"pending"``, ``"compaction"`` (the provider's newest), ``"floor"``,
    ``"last_user"``, the name of a rule of the format (``"first_user"``), or ``"strategy"`` for one that the strategy
    did not choose.
    """

    positions: tuple[int, ...]
    kind: GroupKind
    reason: str
    tokens: int | None = None


@attrs.frozen
class Replacement:
    """Groups that other messages stand for now (rule S1).

    ``positions`` are those of all their messages in the caller's list, and ``written`` those at which this pass put
    messages of ours. ``kind`` is what stands there now: ``SUMMARY``, or the kind of the group whose content was
    shortened. ``tokens_before`` and ``tokens_after`` are None where they are not counted.
    """

    positions: tuple[int, ...]
    written: tuple[int, ...]
    kind: GroupKind
    reason: str
    tokens_before: int | None = None
    tokens_after: int | None = None


@attrs.frozen
class Failure:
    """Something outside of the index that failed while the compaction went on.

    ``what`` it was (``"summary"``), and the ``error``: its type and what it says, never the text of a message.
    """

    what: str
    error: str


@attrs.frozen(kw_only=True)
class CompactionReport:
    """What one compaction did. It never holds the text of a message.

    ``changed``: some group was excluded or ``replaced``, or came back (``restored``). ``fits``: the trigger no longer
    holds, or the target does.
    ``skipped``: ``"trigger"`` (it did not fire), ``"target"`` (it held already), ``"floor"`` (nothing
    may leave), or None. ``stopped_by``: ``"target"`` (reached), ``"floor"`` (what is kept may not
    leave), ``"exhausted"`` (the strategy had no more to offer), ``"effect"`` (a plan ended where an answer from outside
    would have been needed), or None when skipped. ``trigger``: the
    trigger explained, with the numbers.

    Tokens include what is reserved; they are lower bounds where ``tokens_exact`` is false, because
    nothing more had to be counted (rule C4). ``over_by``: the tokens above the target's smallest token
    limit after a pass, None where there is none or it is kept. ``blocked_by``: the groups that stand in
    the way. ``first_changed``: the first position of the caller's list that changed, and
    ``stable_prefix_tokens`` the tokens ahead of it, which a provider's prompt cache still knows.
    ``bound_reasoning``: positions of kept messages with signed reasoning behind the first position that is out,
    which the provider may refuse unless the request has the ``request_options`` (empty where the format knows
    none); ``dropped_reasoning``: positions of
    those that are sent without it (``bound_reasoning="drop"``). ``repairs``: what was mended before the
    compaction (``on_invalid="repair"``), and ``problems`` what is still wrong.
    ``stages`` are the reports of the strategies that this one ran, in order; one that was ``undone`` changed nothing
    in the end. ``failures``: what failed on the way, those of the stages among them.
    ``format``: the name of the format in which the messages were read.
    """

    strategy: str
    changed: bool
    fits: bool
    skipped: str | None
    stopped_by: str | None
    trigger: str
    target: str
    tokens_before: int
    tokens_after: int
    tokens_exact: bool
    messages_before: int
    messages_after: int
    groups_before: int
    groups_after: int
    turns_before: int
    turns_after: int
    excluded: tuple[Exclusion, ...] = ()
    restored: tuple[Exclusion, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    over_by: int | None = None
    blocked_by: tuple[Blocker, ...] = ()
    first_changed: int | None = None
    stable_prefix_tokens: int | None = None
    bound_reasoning: tuple[int, ...] = ()
    dropped_reasoning: tuple[int, ...] = ()
    request_options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    problems: tuple[Problem, ...] = ()
    repairs: tuple[Repair, ...] = ()
    stages: tuple[CompactionReport, ...] = ()
    undone: bool = False
    failures: tuple[Failure, ...] = ()
    duration_ms: float = attrs.field(default=0.0, eq=False)
    counter: str = ""
    counter_exact: bool = False
    format: str = ""

    def __str__(self) -> str:
        """One line for people."""
        # A lower bound of what there was would read as if nothing had been saved.
        before = f"{self.tokens_before:,} -> " if self.tokens_exact else "" if self.changed else "at least "
        sizes = f"{self.messages_before} -> {self.messages_after} messages, {before}{self.tokens_after:,} tokens"
        ended = f"skipped by the {self.skipped}" if self.skipped else f"stopped by: {self.stopped_by}"
        failed = f", {some(len(self.failures), 'failure')}" if self.failures else ""
        return f"{self.strategy}: {sizes}, {ended}, {'fits' if self.fits else 'does not fit'}{failed}"

    @property
    def event(self) -> str:
        """The name under which hooks log it."""
        return "compaction.skipped" if self.skipped else "compaction.completed"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return attrs.asdict(self, value_serializer=_plain)

    def metrics(self) -> dict[str, Any]:
        """The flat part, for a log line or a metrics system: numbers, names and reasons, no lists."""
        flat = {name: value for name, value in self.to_dict().items() if not isinstance(value, list | tuple | dict)}
        counts = {
            "excluded_groups": len(self.excluded),
            "replacements": len(self.replaced),
            "failures": len(self.failures),
            "problems": len(self.problems),
            "repairs": len(self.repairs),
        }
        return flat | counts

    def overflow_text(self) -> str:
        """In one sentence, why the history does not fit: the target, the smallest size, what is biggest."""
        # A pass that changed something counted what it left, so that number is exact.
        at_least = "" if self.tokens_exact or self.changed else "at least "
        size = f"{at_least}{self.tokens_after:,} tokens in {some(self.messages_after, 'message')}"
        chosen = self.stopped_by == "exhausted"
        text = f"the history does not fit the target {self.target}: " + (
            f"the strategy kept {size}" if chosen else f"the smallest it gets is {size}"
        )
        if self.over_by:
            text += f", {self.over_by:,} too many"
        biggest = max(self.blocked_by, key=lambda blocker: blocker.tokens or 0, default=None)
        if biggest is None:
            return text
        tokens = "" if biggest.tokens is None else f", {biggest.tokens:,} tokens"
        where = f"message{'s' if len(biggest.positions) > 1 else ''} {spans(biggest.positions)}"
        return (
            f"{text}; the biggest of what {'it kept' if chosen else 'may not leave'} is the {biggest.kind.value} "
            f"group of {where} ({biggest.reason}{tokens})"
        )


def _plain(_: Any, __: Any, value: Any) -> Any:
    return value.value if isinstance(value, GroupKind) else value
