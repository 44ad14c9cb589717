"""The index: the ledger over the groups of one conversation, beside the caller's own messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ._conversation import Conversation, IndexUpdate
from ._departures import Departure
from ._errors import CompactionError, ProtectedGroupError
from ._groups import Bundle, GroupKind, MessageGroup
from ._ledger import Ledger
from ._messages import Message
from ._predicates import Metric, tokens
from ._problems import Problem
from ._replacing import is_summarised, rewrite, summarize
from ._report import Failure
from ._settings import BoundReasoning, IndexSettings
from ._text import shown, spans, text_table
from ._tool_uses import ToolUse, tool_uses
from .counters import Counter, MediaCosts
from .formats import Format


@attrs.frozen
class IndexSnapshot:
    """The state of an index at one moment, as a value: equal snapshots are equal states."""

    format: str
    groups: tuple[MessageGroup, ...]
    reserved: int = 0


class MessageIndex:
    """The ledger over the groups of one conversation; make it with :meth:`from_messages`.

    The caller's messages are never copied or changed (rule K8): :meth:`included_messages` gives the
    caller's own objects back, in their order. Reading a metric is O(1) once it is counted, and
    only ``tokens`` is ever counted, when somebody asks for it (rules C4 and K13).
    """

    def __init__(self, messages: Sequence[Any], settings: IndexSettings, *, undisturbed: bool = False) -> None:
        self._settings = settings
        self._conversation = Conversation(settings, undisturbed=undisturbed)
        self.extend(messages)

    @property
    def _ledger(self) -> Ledger:
        """Groups, counts and exclusions: what a compaction works on. Another one after each regrouping."""
        return self._conversation.ledger

    @classmethod
    def from_messages(
        cls,
        messages: Sequence[Any],
        *,
        counter: Counter | Callable[[str], int] | Any = None,
        format: str | Format = "auto",
        pinned: Callable[[Any], object] | Iterable[Any] | None = None,
        reserved: int = 0,
        pending_turns: int = 1,
        media_costs: MediaCosts | None = None,
        bound_reasoning: BoundReasoning = "keep",
        validate: bool = False,
        summary_key: str | bytes | None = None,
        on_excluded: Callable[[Departure], object] | None = None,
    ) -> MessageIndex:
        """Read and group a list of messages; nothing is counted yet.

        ``counter`` is a :class:`Counter`, a function from text to a count, a ``tokenizers``
        tokenizer or a path to one; None takes what is installed, else an estimate. ``format`` is a
        name or ``"auto"``. ``pinned`` is a predicate over messages, or an iterable of message ids
        and message objects (rule G6). ``reserved`` is tokens that the caller sends apart from the
        list (a system prompt, tool schemas, room for the answer); the metric ``tokens`` includes
        them. ``pending_turns``: in how many of the newest turns a call without a result waits for
        it (rule G3). ``media_costs`` says how to count what has no text; by default as the provider of
        the format does (rule C1). ``bound_reasoning="drop"`` sends messages behind a change without their
        signed reasoning, where ``"keep"`` reports it. ``validate`` looks for edits in place at every
        compaction, fired or not (rule C2), and holds its result against the rules of the format (rule K7).
        ``summary_key`` keys the marks of summaries: only those with that key are then known for summaries
        when a history is loaded again (rule S1). ``on_excluded`` is told what left, each group once, with its messages:
        for a long-term memory.

        Raises :class:`MessageError` with the position of a message that cannot be read.
        """
        settings = IndexSettings(
            counter,
            format,
            pinned,
            reserved,
            pending_turns,
            media_costs,
            validate,
            bound_reasoning,
            summary_key,
            on_excluded,
        )
        return cls(messages, settings)

    # -- reading -------------------------------------------------------------------------------

    def extend(self, messages: Sequence[Any]) -> None:
        """Append messages. A result of an excluded call is excluded with it (rule G2).

        All or nothing: where one message cannot be read, none is appended.
        """
        self._conversation.extend(messages)

    def update(self, history: Sequence[Any]) -> IndexUpdate:
        """Take the whole list as it stands now, reading only what is new.

        Identity settles what is known, but for the newest message, which may have grown in place
        while it was streamed (rule C2). Where the past changed or got shorter, the list is read and
        grouped anew from there: exclusions of groups that stand wholly before the change stay,
        others come back. Where only words changed, and so no group, every exclusion stays.
        """
        return self._conversation.update(history)

    def refresh(self) -> tuple[int, ...]:
        """Look for edits in place; gives the positions that changed (rule C2).

        Messages are compared with what was read. What no comparison sees: a number that became an equal one of
        another type (1, 1.0, True), and another order of keys.
        """
        return self._conversation.refresh()

    # -- metrics -------------------------------------------------------------------------------

    def value(self, metric: Metric) -> int:
        """A metric over what is included; ``tokens`` counts what is not counted yet."""
        if _checked(metric) == tokens:
            self._ledger.counting.count_included()
            return self._ledger.included.least + self._settings.reserved
        return self._ledger.included.value(metric)

    def tokens_of(self, group: MessageGroup) -> int:
        """The tokens of one group, counted if nobody has counted them yet.

        ``group.tokens`` is None until somebody asks, and a trigger may be decided without it.
        """
        return self._ledger.counting.count_of(self._bundle(group))

    def total(self, metric: Metric) -> int:
        """A metric over everything, excluded groups too; ``tokens`` counts what is not counted yet."""
        if _checked(metric) == tokens:
            self._ledger.counting.count_all()
            return self._ledger.all.least + self._settings.reserved
        return self._ledger.all.value(metric)

    def exceeds(self, metric: Metric, limit: int) -> bool:
        """Whether a metric over what is included is above a limit; counts no more than that needs."""
        if _checked(metric) == tokens:
            return self._ledger.counting.exceeds(limit - self._settings.reserved)
        return self._ledger.included.value(metric) > limit

    def known(self, metric: Metric) -> tuple[int, bool]:
        """What is known of a metric without counting: the number, and whether it is exact or a lower bound."""
        if _checked(metric) == tokens:
            return self._ledger.included.least + self._settings.reserved, not self._ledger.included.uncounted
        return self._ledger.included.value(metric), True

    # -- groups and messages -------------------------------------------------------------------

    @property
    def groups(self) -> tuple[MessageGroup, ...]:
        """All groups, included or not, in the order of their first messages."""
        return self._ledger.snapshots(self._ledger.grouping.bundles.values())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the history, excluded groups included, by position (rules G3 and G4)."""
        return self._ledger.problems()

    @property
    def format(self) -> Format:
        """The format in which the messages are read."""
        return self._conversation.reader.format

    @property
    def counter(self) -> Counter:
        """The counter that serves trigger, target, floor and report (rule C2)."""
        return self._settings.counter

    def __len__(self) -> int:
        """How many messages the index knows, included or not."""
        return len(self._conversation.raw)

    def messages_of(self, group: MessageGroup) -> list[Any]:
        """The caller's own objects of a group, in order, also where others stand for them."""
        return [self._conversation.raw[position] for position in self._bundle(group).positions]

    def included_messages(self) -> list[Any]:
        """The projection: the caller's own objects that are included, in their original order (rule G1).

        With ``bound_reasoning="drop"``, behind the first group that is out, messages with signed reasoning
        are copies without it.
        """
        ledger = self._ledger
        everything = ledger.included.messages == ledger.all.messages and not ledger.words.rewritten
        if everything and ledger.outgoing.changed_from is None:
            return list(self._conversation.raw)
        return self._conversation.project()

    def included_positions(self) -> list[int]:
        """The positions of :meth:`included_messages` in the caller's list."""
        of = self._ledger.grouping.of
        return [place for place, bundle in enumerate(of) if bundle.included and place not in bundle.absent]

    def positions_of(self, group: MessageGroup) -> tuple[int, ...]:
        """The positions at which a message of this group stands: all of them, but for those that were replaced by none.

        Of a group that is out, those at which one would stand.
        """
        return tuple(self._bundle(group).shown)

    def view(self, position: int) -> Message:
        """Our view of what stands at a position: the caller's message, or what was written in its place."""
        return self._ledger.views[self._checked_position(position)]

    def raw(self, position: int) -> Any:
        """What stands at a position: the caller's own object, or what was written in its place."""
        return self._conversation.message(self._checked_position(position))

    def tool_uses(self, group: MessageGroup) -> tuple[ToolUse, ...]:
        """The calls of a group as it stands now, each with its result, in order."""
        bundle = self._bundle(group)
        return tool_uses({position: self._ledger.views[position] for position in bundle.shown})

    def count_texts(self, texts: Iterable[str]) -> list[int]:
        """The tokens of texts by themselves, each counted once and remembered (rule C2)."""
        return self._settings.counts.count_many(list(texts))

    def size_of(self, position: int, message: Any) -> int:
        """The tokens that a message would have at a position, as it is sent."""
        (view,) = self._conversation.reader.views([message], self._checked_position(position))
        return self._settings.flat(view, self.format) + sum(self.count_texts(self._settings.texts(view)))

    def _checked_position(self, position: int) -> int:
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(self):
            raise IndexError(f"position must be one of 0 to {len(self) - 1}, got {position!r}")
        return position

    # -- excluding -----------------------------------------------------------------------------

    def exclude(self, group: MessageGroup, reason: str) -> bool:
        """Take a group out of the projection, for a reason that the report will show.

        Refuses what must stay with :class:`ProtectedGroupError`: in a compaction the whole floor
        (rule K4); outside of one system, pinned and pending groups, and the newest group that is no
        system group (rule K2). Where the provider needs the group at the head of the list, it is held
        back until what needs it has left too, and the answer is False (rule K7).
        """
        check_reason(reason)
        bundle = self._bundle(group)
        why = self._why_protected(bundle)
        if why is not None:
            raise ProtectedGroupError(f"group must be one that may leave, got messages {bundle.positions}: {why}")
        if bundle.excluded is None:
            self._ledger.set_excluded((bundle,), reason)
        return not bundle.included

    def include(self, *groups: MessageGroup) -> None:
        """Bring excluded groups back; where a summary stands for one, all that it stands for (:meth:`restore`)."""
        bundles = list(map(self._bundle, groups))
        for bundle in bundles:
            if is_summarised(bundle):
                self._ledger.restore(bundle)
        self._ledger.set_excluded(bundles, None)

    def include_all(self) -> None:
        """Bring every excluded group back."""
        self._ledger.include_all()

    # -- replacing -----------------------------------------------------------------------------

    def rewrite(self, group: MessageGroup, messages: Mapping[int, Any | None], reason: str) -> bool:
        """Put other messages in the place of some of a group's, in the caller's format (rule S1).

        ``messages`` are by position; None: no message stands there any more. What is not named stays as it is. Refuses
        what must stay as it is with :class:`ProtectedGroupError`: in a compaction the floor, outside of one
        system, pinned and pending groups. Where a rule of the format would be broken nothing is changed, and the
        answer is False (rule K7); so it is for a summary, which another summary may stand for.
        """
        check_reason(reason)
        bundle = self._bundle(group)
        why = "summarised" if is_summarised(bundle) else self._why_worded(bundle)
        if why is not None:
            raise ProtectedGroupError(f"group must be one that may change, got messages {bundle.positions}: {why}")
        return rewrite(self._conversation, bundle, messages, reason)

    def summarize(self, groups: Iterable[MessageGroup], text: str, reason: str) -> bool:
        """Let one message with this text stand for whole groups (rule S1).

        It is marked, and in a role that the format allows. Summaries may be among the groups: the new one stands for
        all that they stood for. What must stay is refused with :class:`ProtectedGroupError`. Where no place for it
        keeps to the rules of the format, nothing is changed, and the answer is False (rule K7).
        """
        check_reason(reason)
        if not isinstance(text, str) or not text.strip():
            raise ValueError("text must be a text that says something, got an empty one")
        bundles = list(dict.fromkeys(map(self._bundle, groups)))
        if not bundles:
            raise ValueError("groups must be those to summarise, got none")
        for bundle in bundles:
            why = self._why_protected(bundle)
            if why is not None or bundle.excluded is not None:
                why = why or f"excluded: {bundle.excluded}"
                raise ProtectedGroupError(f"groups must be such as may leave, got messages {bundle.positions}: {why}")
        return summarize(self._conversation, bundles, text, reason)

    def restore(self, group: MessageGroup) -> None:
        """Undo an exclusion, or a replacement: of all groups that were replaced together with this one."""
        bundle = self._bundle(group)
        self._ledger.restore(bundle)
        self._ledger.set_excluded((bundle,), None)

    def report_failure(self, what: str, error: BaseException | str) -> None:
        """Say in the report that something failed while the compaction goes on: what it was, and the error."""
        current = self._ledger.current
        if current is None:
            raise CompactionError("a failure is reported by a compaction that is under way")
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}".removesuffix(": ")
        current.failures.append(Failure(what, text))

    def _bundle(self, group: object) -> Bundle:
        if not isinstance(group, MessageGroup):
            raise TypeError(f"group must be a MessageGroup of this index, got {shown(group)}")
        of = self._ledger.grouping.of
        positions = group.positions
        known = bool(positions) and 0 <= min(positions) <= max(positions) < len(of)
        # A snapshot may be smaller than the group is now, since a late result made it grow; never part of another.
        if not known or any(of[position] is not of[positions[0]] for position in positions):
            raise ValueError(f"group must be a MessageGroup of this index as it is now, got {group!r}")
        return of[positions[0]]

    def _leaving(self, groups: Iterable[object]) -> list[Bundle] | None:
        """What :meth:`exclude` would take, one after the other; None where it would refuse one."""
        try:
            bundles = list(map(self._bundle, groups))
        except (TypeError, ValueError):
            return None
        return bundles if all(self._why_protected(bundle) is None for bundle in bundles) else None

    def _why_protected(self, bundle: Bundle) -> str | None:
        ledger = self._ledger
        if ledger.current is not None:
            return ledger.current.protected.get(bundle.first)
        why = self._why_worded(bundle)
        return "newest" if why is None and bundle is ledger.newest_included() else why

    def _why_worded(self, bundle: Bundle) -> str | None:
        """Why the words of a group must stay as they are."""
        ledger = self._ledger
        if ledger.current is not None:
            return ledger.current.worded.get(bundle.first)
        if bundle.pinned:
            return "pinned"
        if bundle.kind is GroupKind.SYSTEM and ledger.is_system(bundle):
            return "system"
        if ledger.is_pending(bundle):
            return "pending"
        return "compaction" if ledger.places.newest_compaction() in bundle.positions else None

    # -- for people ----------------------------------------------------------------------------

    def snapshot(self) -> IndexSnapshot:
        """The state as a value, without counting: compare two, or keep one to look at."""
        return IndexSnapshot(self.format.name, self.groups, self._settings.reserved)

    def table(self) -> str:
        """The groups as a plain-text table, one a line; counts what is not counted yet."""
        self._ledger.counting.count_all()
        rows = [
            (
                spans(group.positions),
                group.kind.value,
                str(group.turn),
                f"{group.tokens:,}",
                _state(group),
            )
            for group in self.groups
        ]
        return text_table(("messages", "kind", "turn", "tokens", "state"), rows)

    def __repr__(self) -> str:
        included, everything = self._ledger.included, self._ledger.all
        known, exact = self.known(tokens)
        return (
            f"<MessageIndex {self.format.name}: {included.messages} of {everything.messages} messages in "
            f"{included.groups} of {everything.groups} groups, {'' if exact else 'at least '}{known:,} tokens>"
        )


def check_reason(reason: object) -> None:
    """Refuse what does not say why a group leaves."""
    if not isinstance(reason, str) or not reason:
        raise ValueError(f"reason must be a text that says why, got {reason!r}")


def _checked(metric: Metric) -> Metric:
    if not isinstance(metric, Metric):
        raise TypeError(f"metric must be one of the metrics (chat_compaction.tokens, ...), got {metric!r}")
    return metric


def _state(group: MessageGroup) -> str:
    if group.excluded or group.replaced:
        return f"excluded: {group.excluded}" if group.excluded else f"replaced: {group.replaced}"
    return "pinned" if group.pinned else "pending" if group.pending else ""
