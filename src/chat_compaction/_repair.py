"""Repairing a history that breaks the rules of its format: a new list, the caller's messages unchanged (rule K8).

Rules repair, each what it judges; this is what they work on. One rule at a time changes a draft, which is read anew
before the next one looks, until nothing is wrong or nobody can mend more. Nothing is ever invented: messages and
parts leave, move or are joined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import attrs

from ._groups import Problem, Repair
from ._ledger import Ledger
from ._messages import Message, Role, Seam, Tie, TieKind
from ._pairing import Pairing
from ._reader import Reader, checked_list
from ._report import CompactionReport
from ._settings import IndexSettings
from .counters import EstimateCounter
from .formats import Format
from .formats.rules import Rule

_MOST_ROUNDS = 20
"""One round of all rules is nearly always enough; what leaves may leave another result alone."""


@attrs.frozen
class Repaired:
    """A history after its repair.

    ``messages`` are the caller's own objects, and changed copies where a part had to leave. ``positions``
    tell where in the caller's list each of them stood. ``problems`` are those that nobody could mend, by their
    position in ``messages``. ``first_changed`` is the first place in ``messages`` that has another message than the
    caller's list has there; None where there is none.
    """

    messages: list[Any] = attrs.field(repr=False)
    positions: tuple[int, ...]
    repairs: tuple[Repair, ...]
    problems: tuple[Problem, ...]
    first_changed: int | None = attrs.field(repr=False)

    def in_callers_list(self, report: CompactionReport) -> CompactionReport:
        """A report on ``messages`` as one on the caller's list, with the repairs."""

        def moved(items: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(attrs.evolve(item, positions=self._at(item.positions)) for item in items)

        # Up to the first place that changed, places and positions are the same.
        firsts = [*(repair.position for repair in self.repairs), *self._at([report.first_changed])]
        firsts += [] if self.first_changed is None else [self.first_changed]
        return attrs.evolve(
            report,
            excluded=moved(report.excluded),
            restored=moved(report.restored),
            blocked_by=moved(report.blocked_by),
            first_changed=min(firsts, default=None),
            bound_reasoning=self._at(report.bound_reasoning),
            dropped_reasoning=self._at(report.dropped_reasoning),
            problems=tuple(attrs.evolve(p, position=self.positions[p.position]) for p in report.problems),
            repairs=self.repairs,
        )

    def _at(self, places: Iterable[int | None]) -> tuple[int, ...]:
        return tuple(self.positions[place] for place in places if place is not None)


@attrs.define(eq=False)
class _Item:
    """A message on its way: where it stood in the caller's list, and how we read it now."""

    raw: Any
    position: int
    view: Message
    pinned: bool = False


@attrs.define(eq=False)
class Draft:
    """A history while a rule repairs it. Positions are those of :attr:`views`, until the rule has ended."""

    format: Format
    _items: list[_Item]
    ties: list[Tie]
    """Its results and calls; calls that wait for a result are none of them."""
    repairs: list[Repair] = attrs.field(init=False, factory=list)
    _dropped: set[int] = attrs.field(init=False, factory=set)
    _cut: dict[int, set[int]] = attrs.field(init=False, factory=dict)
    _behind: dict[int, list[_Item]] = attrs.field(init=False, factory=dict)
    """By position, what moves behind the message there."""
    _moved: set[int] = attrs.field(init=False, factory=set)
    _joined: set[int] = attrs.field(init=False, factory=set)
    _ids: set[str | None] = attrs.field(init=False)
    _numbers: dict[str, int] = attrs.field(init=False, factory=dict)
    _answers: dict[tuple[int | None, str], list[Tie]] = attrs.field(init=False)

    @_ids.default
    def _all_ids(self) -> set[str | None]:
        return {part.call_id for item in self._items for part in item.view.parts}

    @_answers.default
    def _by_call(self) -> dict[tuple[int | None, str], list[Tie]]:
        answers: dict[tuple[int | None, str], list[Tie]] = {}
        for tie in self.ties:
            if tie.result is not None:
                answers.setdefault((tie.call, tie.call_id), []).append(tie)
        return answers

    @property
    def views(self) -> list[Message]:
        """The messages as they are read."""
        return [item.view for item in self._items]

    # -- what a rule asks ------------------------------------------------------------------------

    def wrong_messages(self, rule: Rule) -> list[int]:
        """The positions of the messages that the rule finds wrong."""
        found = [position for position, view in enumerate(self.views) if rule.check_message(view) is not None]
        # The assistant's newest message may be just being written.
        newest = len(self.views) - 1
        return found[:-1] if found[-1:] == [newest] and self.views[newest].role is Role.ASSISTANT else found

    def wrong_seams(self, rule: Rule) -> list[int]:
        """The positions of the messages that may not stand where they do."""
        return [position for position, seam in enumerate(_seams(self.views)) if rule.check_seam(seam) is not None]

    def wrong_ties(self, rule: Rule) -> list[Tie]:
        """The results and calls that the rule finds wrong."""
        return [tie for tie in self.ties if rule.check_tie(tie) is not None]

    # -- what a rule does ------------------------------------------------------------------------

    def drop(self, rule: Rule, position: int, action: str) -> None:
        """Let a message leave."""
        if position not in self._dropped:
            self._dropped.add(position)
            self._note(rule, position, action)

    def cut(self, rule: Rule, position: int, parts: Collection[int], action: str) -> None:
        """Let parts of a message leave, and the message with them if nothing else is in it."""
        self._cut.setdefault(position, set()).update(parts)
        self._note(rule, position, action)

    def move(self, rule: Rule, position: int, behind: int, action: str, *, part: int | None = None) -> None:
        """Let a message, or one part of it, stand behind another message, and behind what moved there before."""
        if {position, behind} & self._moved or position in self._behind:
            return  # Another round will see to it.
        if behind == position - 1 and part is None:
            return  # There it is.
        item = self._items[position]
        others = set(range(len(item.view.parts))) - {part}
        if part is None or not others:
            self._moved.add(position)
            moved = item
        else:
            alone = self.format.without(item.raw, others)
            if alone is None:
                return
            moved = self._read(alone, item)
            self._cut.setdefault(position, set()).add(part)
        self._behind.setdefault(behind, []).append(moved)
        self._note(rule, position, action)

    def join(self, rule: Rule, position: int, action: str) -> None:
        """Make one message of this one and the one ahead of it, where the format can write that."""
        if self.format.joined(self._items[position - 1].raw, self._items[position].raw) is not None:
            self._joined.add(position)
            self._note(rule, position, action)

    def reorder(self, rule: Rule, position: int, order: Sequence[int], action: str) -> None:
        """Let the parts of a message stand in another order, where the format can write that."""
        raw = self.format.reordered(self._items[position].raw, order)
        if raw is not None:
            self._items[position] = self._read(raw, self._items[position])
            self._note(rule, position, action)

    def rename(self, rule: Rule, tie: Tie, action: str) -> None:
        """Give a call and what answers it another id, one that no call has."""
        new = self._new_id(tie.call_id)
        answers = self._answers.get((tie.call, tie.call_id), [])
        changes = [(tie.position, tie.part), *((answer.position, answer.part) for answer in answers)]
        renamed: dict[int, _Item] = {}
        for place, part in changes:
            item = renamed.get(place, self._items[place])
            raw = self.format.renamed(item.raw, part, new)
            if raw is None:
                return  # All of them or none.
            renamed[place] = self._read(raw, item)
        for place, item in renamed.items():
            self._items[place] = item
        self._note(rule, tie.position, action)

    def _new_id(self, call_id: str) -> str:
        number = self._numbers.get(call_id, 1) + 1
        # Providers take ids of up to 64 characters.
        while (new := f"{call_id[:56]}_{number}") in self._ids:
            number += 1
        self._numbers[call_id] = number
        self._ids.add(new)
        return new

    def _note(self, rule: Rule, position: int, action: str) -> None:
        self.repairs.append(Repair(self._items[position].position, rule.name, action))

    # -- what comes of it ------------------------------------------------------------------------

    def result(self) -> list[_Item]:
        """The messages as they are now."""
        gone = self._dropped | self._moved
        items: list[_Item] = []
        for place in range(len(self._items)):
            item = None if place in gone else self._written(place)
            if item is not None and place in self._joined and items:
                first = items.pop()
                item = self._read(self.format.joined(first.raw, item.raw), first)
            items += [item] if item is not None else []
            items += self._behind.get(place, ())
        return items

    def _written(self, position: int) -> _Item | None:
        item = self._items[position]
        if position not in self._cut:
            return item
        raw = self.format.without(item.raw, self._cut[position])
        return None if raw is None else self._read(raw, item)

    def _read(self, raw: Any, item: _Item) -> _Item:
        return _Item(raw, item.position, self.format.read(raw, item.position), item.pinned)


def _seams(views: Sequence[Message]) -> Iterator[Seam]:
    at_head, before = True, None
    for view in views:
        yield Seam(before, view, at_head)
        at_head, before = at_head and view.role is Role.SYSTEM, view


def repair(messages: Sequence[Any], *, format: str | Format = "auto", pending_turns: int = 1) -> Repaired:
    """Mend what breaks a rule of the format, and say what was done.

    A result without its call and a second result leave; a call that never got a result leaves, with its message if
    that has reasoning; results move behind their call; what stands ahead of the first user message, empty texts and
    reasoning that led to nothing leave, where the format asks for that; messages of one side are joined where the two
    must alternate. Calls of the newest turn may still get their result, and stay (rule G3). A history without
    problems comes back as it is.

    >>> repair([{"role": "user", "content": "Hi."}, {"role": "tool", "tool_call_id": "a", "content": "left over"}])
    Repaired(positions=(0,), repairs=(Repair(position=1, rule='orphan_result', \
action="removed the result of the call 'a', never made"),), problems=())
    """
    history = checked_list(messages)
    settings = IndexSettings(EstimateCounter(), format, None, 0, pending_turns)
    reader = Reader.of(settings.format, settings.pins).settled_by(history)
    return repair_read(history, *reader.read(history), reader.format, settings)


def repair_read(
    history: Sequence[Any], views: Sequence[Message], pins: Sequence[bool], format: Format, settings: IndexSettings
) -> Repaired:
    """:func:`repair` for messages that are read already."""
    read = zip(history, views, pins, strict=True)
    items = [_Item(raw, position, view, pin) for position, (raw, view, pin) in enumerate(read)]
    ledger = _judged(items, format, settings)
    repairs: list[Repair] = []
    for _ in range(_MOST_ROUNDS):
        before = len(repairs)
        for rule in format.rules:
            if any(problem.rule == rule.name for problem in ledger.problems()):
                draft = Draft(format, items, _ties(ledger))
                rule.repair(draft)
                items = draft.result()
                repairs += draft.repairs
                ledger = _judged(items, format, settings)
        if len(repairs) == before:
            break
    positions = tuple(item.position for item in items)
    changed = (place for place, item in enumerate(items) if item.raw is not history[place])
    return Repaired([item.raw for item in items], positions, tuple(repairs), ledger.problems(), next(changed, None))


def _judged(items: Sequence[_Item], format: Format, settings: IndexSettings) -> Ledger:
    ledger = Ledger(settings, format)
    for item in items:
        ledger.append(item.view, pinned=item.pinned)
    return ledger


def _ties(ledger: Ledger) -> list[Tie]:
    """How the calls and results of a list belong together, and the calls that never got a result."""
    pairing = Pairing()
    ties = [tie for view in ledger.views for tie in pairing.take(view)]
    known = [tie for tie in ties if ledger.judge.complete or tie.kind is not TieKind.ORPHAN]
    return [*known, *ledger.grouping.unanswered(ledger.settings.pending_turns)]
