"""The index: the ledger over the groups of one conversation, beside the caller's own messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import attrs

from ._errors import ProtectedGroupError
from ._groups import Bundle, GroupKind, MessageGroup, Problem
from ._ledger import Ledger
from ._messages import Message
from ._predicates import Metric, tokens
from ._settings import IndexSettings
from ._text import shown, spans, text_table
from ._transcript import Reader, checked_list
from .counters import Counter, MediaCosts
from .formats import Format


@attrs.frozen
class IndexUpdate:
    """What :meth:`MessageIndex.update` found.

    ``read`` is how many messages it read. ``first_changed`` is the first position, among those
    already known, whose message is no longer what it was; None while the list only grew.
    ``shortened`` says that known messages are gone from the end.
    """

    read: int
    first_changed: int | None = None
    shortened: bool = False


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

    def __init__(self, messages: Sequence[Any], settings: IndexSettings) -> None:
        self._settings = settings
        self._reader = Reader.of(settings.format, settings.pins)
        self._raw: list[Any] = []
        self._ledger = Ledger(settings, self._reader.format)
        self.extend(messages)

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
        validate: bool = False,
    ) -> MessageIndex:
        """Read and group a list of messages; nothing is counted yet.

        ``counter`` is a :class:`Counter`, a function from text to a count, a ``tokenizers``
        tokenizer or a path to one; None takes what is installed, else an estimate. ``format`` is a
        name or ``"auto"``. ``pinned`` is a predicate over messages, or an iterable of message ids
        and message objects (rule G6). ``reserved`` is tokens that the caller sends apart from the
        list (a system prompt, tool schemas, room for the answer); the metric ``tokens`` includes
        them. ``pending_turns``: in how many of the newest turns a call without a result waits for
        it (rule G3). ``media_costs`` are the flat costs of what has no text (rule C1).
        ``validate`` looks for edits in place at every compaction, fired or not (rule C2).

        Raises :class:`MessageError` with the position of a message that cannot be read.
        """
        return cls(messages, IndexSettings(counter, format, pinned, reserved, pending_turns, media_costs, validate))

    # -- reading -------------------------------------------------------------------------------

    def extend(self, messages: Sequence[Any]) -> None:
        """Append messages. A result of an excluded call is excluded with it (rule G2).

        All or nothing: where one message cannot be read, none is appended.
        """
        new = checked_list(messages)
        self._ledger.refuse_in_pass("extended")
        self.refresh_newest()
        self._extend(new)

    def _extend(self, new: list[Any]) -> None:
        reader = self._reader.settled_by(new)
        if reader.format is not self._reader.format:
            raw = [*self._raw, *new]
            self._take(reader, raw, *reader.read(raw))
            return
        views, pins = reader.read(new, len(self._raw))
        self._reader = reader
        for view, pin in zip(views, pins, strict=True):
            self._ledger.append(view, pinned=pin)
        self._raw.extend(new)

    def update(self, history: Sequence[Any]) -> IndexUpdate:
        """Take the whole list as it stands now, reading only what is new.

        Identity settles what is known, but for the newest message, which may have grown in place
        while it was streamed (rule C2). Where the past changed or got shorter, the list is read and
        grouped anew from there: exclusions of groups that stand wholly before the change stay,
        others come back.
        """
        history = checked_list(history, "history")
        self._ledger.refuse_in_pass("updated")
        known = len(self._raw)
        changed = self._first_difference(history)
        if changed is None:
            self._extend(history[known:])
            return IndexUpdate(len(history) - known)
        # What the old past told of the format says nothing of another one.
        reader = Reader.of(self._settings.format, self._settings.pins).settled_by(history)
        kept = changed if reader.format is self._reader.format else 0
        views, pins = reader.read(history[kept:], kept)
        self._take(reader, history, self._ledger.views[:kept] + views, self._ledger.pins[:kept] + pins)
        return IndexUpdate(len(history) - kept, changed, shortened=len(history) < known)

    def refresh(self) -> tuple[int, ...]:
        """Look for edits in place by reading every message anew; gives the positions that changed (rule C2)."""
        self._ledger.refuse_in_pass("refreshed")
        reader = self._reader.settled_by(self._raw)
        return self._take(reader, self._raw, *reader.read(self._raw))

    def refresh_newest(self) -> None:
        """See whether the newest message grew in place, as one that is being streamed does (rule C2)."""
        newest = self._raw[-1:]
        if self._reader.settled_by(newest).format is not self._reader.format:
            self.refresh()
            return
        views, pins = self._reader.read(newest, len(self._raw) - 1)
        if views != self._ledger.views[-1:] or pins != self._ledger.pins[-1:]:
            before = self._ledger.views[:-1], self._ledger.pins[:-1]
            self._take(self._reader, self._raw, before[0] + views, before[1] + pins)

    def _first_difference(self, history: list[Any]) -> int | None:
        """The first known position that the history contradicts; None where it only goes on."""
        newest = len(self._raw) - 1
        equal: dict[int, Any] = {}
        found = len(history) if len(history) <= newest else None
        for position, (ours, theirs) in enumerate(zip(self._raw, history, strict=False)):
            if ours is theirs and position < newest:
                continue
            (view,), (pin,) = self._reader.read([theirs], position)
            if view != self._ledger.views[position] or pin != self._ledger.pins[position]:
                found = position
                break
            equal[position] = theirs
        # Equal messages in other objects: the caller's current objects are those to give back.
        for position, message in equal.items():
            self._raw[position] = message
        return found

    def _take(self, reader: Reader, raw: list[Any], views: list[Message], pins: list[bool]) -> tuple[int, ...]:
        """Take other readings of the list; gives the known positions that differ.

        Where nothing changed that grouping depends on, as in a message that is being streamed, only
        the counts of those messages are forgotten.
        """
        old = self._ledger
        differ = [
            position
            for position, (ours, theirs) in enumerate(zip(old.views, views, strict=False))
            if ours is not theirs and (ours != theirs or old.pins[position] != pins[position])
        ]
        alike = len(views) == len(old.views) and pins == old.pins and reader.format is self._reader.format
        if alike and all(views[position].shape == old.views[position].shape for position in differ):
            for position in differ:
                old.replace(position, views[position])
        else:
            self._ledger = self._regrouped(reader.format, views, pins, min([*differ, len(old.views), len(views)]))
        self._reader, self._raw = reader, raw
        return tuple(differ)

    def _regrouped(self, format: Format, views: list[Message], pins: list[bool], known: int) -> Ledger:
        """A ledger made anew; up to the position ``known`` all is as it was, and keeps counts and exclusions."""
        old, new = self._ledger, Ledger(self._settings, format)
        counts = old.counts[:known] if format is old.format else []
        for view, pin, count in zip_longest(views, pins, counts):
            new.append(view, pinned=pin, count=count)
        for bundle in old.grouping.bundles.values():
            same = new.grouping.bundles.get(bundle.first)
            if same is not None and same.positions == bundle.positions and bundle.newest < known:
                new.set_excluded(same, bundle.excluded)
        return new

    def precedes(self, history: Sequence[Any]) -> bool:
        """Whether the history seems to go on from this one: a glance at its ends, by identity."""
        shared = min(len(self._raw), len(history))
        return shared > 0 and all(self._raw[place] is history[place] for place in (0, shared - 1))

    # -- metrics -------------------------------------------------------------------------------

    def value(self, metric: Metric) -> int:
        """A metric over what is included; ``tokens`` counts what is not counted yet."""
        if _checked(metric) == tokens:
            self._ledger.count_included()
            return self._ledger.included.counted + self._settings.reserved
        return self._ledger.included.value(metric)

    def tokens_of(self, group: MessageGroup) -> int:
        """The tokens of one group, counted if nobody has counted them yet.

        ``group.tokens`` is None until somebody asks, and a trigger may be decided without it.
        """
        return self._ledger.count_of(self._bundle(group))

    def total(self, metric: Metric) -> int:
        """A metric over everything, excluded groups too; ``tokens`` counts what is not counted yet."""
        if _checked(metric) == tokens:
            self._ledger.count_all()
            return self._ledger.all.counted + self._settings.reserved
        return self._ledger.all.value(metric)

    def exceeds(self, metric: Metric, limit: int) -> bool:
        """Whether a metric over what is included is above a limit; counts no more than that needs."""
        known, exact = self.known(metric)
        # Counts are never negative, so what is known is a lower bound.
        return known > limit if exact or known > limit else self.value(metric) > limit

    def known(self, metric: Metric) -> tuple[int, bool]:
        """What is known of a metric without counting: the number, and whether it is exact or a lower bound."""
        if _checked(metric) == tokens:
            return self._ledger.included.counted + self._settings.reserved, not self._ledger.included.uncounted
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
        return self._reader.format

    @property
    def counter(self) -> Counter:
        """The counter that serves trigger, target, floor and report (rule C2)."""
        return self._settings.counter

    def __len__(self) -> int:
        """How many messages the index knows, included or not."""
        return len(self._raw)

    def messages_of(self, group: MessageGroup) -> list[Any]:
        """The caller's own objects of a group, in order."""
        return [self._raw[position] for position in self._bundle(group).positions]

    def included_messages(self) -> list[Any]:
        """The projection: the caller's own objects that are included, in their original order (rule G1)."""
        ledger = self._ledger
        if ledger.included.messages == ledger.all.messages:
            return list(self._raw)
        of = ledger.grouping.of
        return [message for message, bundle in zip(self._raw, of, strict=True) if bundle.included]

    def included_positions(self) -> list[int]:
        """The positions of :meth:`included_messages` in the caller's list."""
        return [position for position, bundle in enumerate(self._ledger.grouping.of) if bundle.included]

    # -- excluding -----------------------------------------------------------------------------

    def exclude(self, group: MessageGroup, reason: str) -> bool:
        """Take a group out of the projection, for a reason that the report will show.

        Refuses what must stay with :class:`ProtectedGroupError`: in a compaction the whole floor
        (rule K4); outside of one system, pinned and pending groups, and the newest group that is no
        system group (rule K2). Where the provider needs the group at the head of the list, it is held
        back until what needs it has left too, and the answer is False (rule K7).
        """
        if not isinstance(reason, str) or not reason:
            raise ValueError(f"reason must be a text that says why, got {reason!r}")
        bundle = self._bundle(group)
        why = self._why_protected(bundle)
        if why is not None:
            raise ProtectedGroupError(f"group must be one that may leave, got messages {bundle.positions}: {why}")
        if bundle.excluded is None:
            self._ledger.set_excluded(bundle, reason)
        return not bundle.included

    def include(self, group: MessageGroup) -> None:
        """Bring an excluded group back."""
        self._ledger.set_excluded(self._bundle(group), None)

    def include_all(self) -> None:
        """Bring every excluded group back."""
        self._ledger.include_all()

    def _bundle(self, group: MessageGroup) -> Bundle:
        if not isinstance(group, MessageGroup):
            raise TypeError(f"group must be a MessageGroup of this index, got {shown(group)}")
        if not (group.positions and 0 <= group.positions[0] <= group.positions[-1] < len(self._raw)):
            raise ValueError(f"group must be a MessageGroup of this index, got {group!r}")
        return self._ledger.grouping.of[group.positions[0]]

    def _why_protected(self, bundle: Bundle) -> str | None:
        ledger = self._ledger
        if ledger.changes is not None:
            return ledger.protected.get(bundle.first)
        if bundle.pinned:
            return "pinned"
        if bundle.kind is GroupKind.SYSTEM:
            return "system"
        if ledger.is_pending(bundle):
            return "pending"
        return "newest" if bundle is ledger.newest_included() else None

    # -- for people ----------------------------------------------------------------------------

    def snapshot(self) -> IndexSnapshot:
        """The state as a value, without counting: compare two, or keep one to look at."""
        return IndexSnapshot(self.format.name, self.groups, self._settings.reserved)

    def table(self) -> str:
        """The groups as a plain-text table, one a line; counts what is not counted yet."""
        self._ledger.count_all()
        rows = [
            (
                spans(group.positions),
                group.kind.value,
                str(group.turn),
                f"{group.tokens:,}",
                f"excluded: {group.excluded}" if group.excluded else _state(group),
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


def _checked(metric: Metric) -> Metric:
    if not isinstance(metric, Metric):
        raise TypeError(f"metric must be one of the metrics (chat_compaction.tokens, ...), got {metric!r}")
    return metric


def _state(group: MessageGroup) -> str:
    return "pinned" if group.pinned else "pending" if group.pending else ""
