"""What a rule works on while it repairs a history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..._messages import Message, Role, Seam, Tie
from ..._problems import Repair
from ._rule import Rule

if TYPE_CHECKING:
    from .._base import Format


@attrs.define(eq=False)
class Item:
    """A message on its way: where it stood in the caller's list, and how we read it now."""

    raw: Any
    position: int
    view: Message
    pinned: bool = False


@attrs.define(eq=False)
class Draft:
    """A history while a rule repairs it. Positions are those of :attr:`views`, until the rule has ended."""

    format: Format
    items: list[Item]
    ties: list[Tie]
    """Its results and calls; calls that wait for a result are none of them."""
    views: list[Message] = attrs.field(init=False)
    """The messages as they are read."""
    repairs: list[Repair] = attrs.field(init=False, factory=list)
    _dropped: set[int] = attrs.field(init=False, factory=set)
    _cut: dict[int, set[int]] = attrs.field(init=False, factory=dict)
    _behind: dict[int, list[Item]] = attrs.field(init=False, factory=dict)
    """By position, what moves behind the message there."""
    _moved: set[int] = attrs.field(init=False, factory=set)
    _joined: set[int] = attrs.field(init=False, factory=set)
    _ids: set[str | None] = attrs.field(init=False)
    _numbers: dict[str, int] = attrs.field(init=False, factory=dict)
    _answers: dict[tuple[int | None, int | None], list[Tie]] = attrs.field(init=False)

    @views.default
    def _views_of_items(self) -> list[Message]:
        return [item.view for item in self.items]

    @_ids.default
    def _all_ids(self) -> set[str | None]:
        return {part.call_id for item in self.items for part in item.view.parts}

    @_answers.default
    def _by_call(self) -> dict[tuple[int | None, int | None], list[Tie]]:
        answers: dict[tuple[int | None, int | None], list[Tie]] = {}
        for tie in self.ties:
            if tie.result is not None:
                answers.setdefault((tie.call, tie.call_part), []).append(tie)
        return answers

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

    def may_leave(self, position: int) -> bool:
        """Whether a message, or a part of it, may leave: what is pinned may not (rule G6)."""
        return not self.items[position].pinned

    def drop(self, rule: Rule, position: int, action: str) -> None:
        """Let a message leave, if it may."""
        if position not in self._dropped and self.may_leave(position):
            self._dropped.add(position)
            self._note(rule, position, action)

    def cut(self, rule: Rule, position: int, parts: Collection[int], action: str) -> None:
        """Let parts of a message leave, if it may, and the message with them if nothing else is in it."""
        if self.may_leave(position):
            self._cut.setdefault(position, set()).update(parts)
            self._note(rule, position, action)

    def move(self, rule: Rule, position: int, behind: int, action: str, *, part: int | None = None) -> None:
        """Let a message, or one part of it, stand behind another message, and behind what moved there before."""
        if {position, behind} & self._moved or position in self._behind:
            return  # Another round will see to it.
        if behind == position - 1 and part is None:
            return  # There it is.
        item = self.items[position]
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
        if self.format.joined(self.items[position - 1].raw, self.items[position].raw) is not None:
            self._joined.add(position)
            self._note(rule, position, action)

    def reorder(self, rule: Rule, position: int, order: Sequence[int], action: str) -> None:
        """Let the parts of a message stand in another order, where the format can write that."""
        raw = self.format.reordered(self.items[position].raw, order)
        if raw is not None:
            self._take(position, self._read(raw, self.items[position]))
            self._note(rule, position, action)

    def rename(self, rule: Rule, tie: Tie, action: str) -> None:
        """Give a call and what answers it another id, one that no call has."""
        new = self._new_id(tie.call_id)
        answers = self._answers.get((tie.call, tie.part), [])
        changes = [(tie.position, tie.part), *((answer.position, answer.part) for answer in answers)]
        renamed: dict[int, Item] = {}
        for place, part in changes:
            item = renamed.get(place, self.items[place])
            raw = self.format.renamed(item.raw, part, new)
            if raw is None:
                return  # All of them or none.
            renamed[place] = self._read(raw, item)
        for place, item in renamed.items():
            self._take(place, item)
        self._note(rule, tie.position, action)

    def _new_id(self, call_id: str) -> str:
        number = self._numbers.get(call_id, 1) + 1
        # Providers take ids of up to 64 characters.
        while (new := f"{call_id[:56]}_{number}") in self._ids:
            number += 1
        self._numbers[call_id] = number
        self._ids.add(new)
        return new

    def _take(self, position: int, item: Item) -> None:
        self.items[position], self.views[position] = item, item.view

    def _note(self, rule: Rule, position: int, action: str) -> None:
        self.repairs.append(Repair(self.items[position].position, rule.name, action))

    # -- what comes of it ------------------------------------------------------------------------

    def result(self) -> list[Item]:
        """The messages as they are now."""
        gone = self._dropped | self._moved
        runs: list[list[Item]] = []
        for place in range(len(self.items)):
            item = None if place in gone else self._written(place)
            if item is not None and place in self._joined and runs:
                runs[-1].append(item)
            elif item is not None:
                runs.append([item])
            runs += [[moved] for moved in self._behind.get(place, ())]
        return [item for run in runs for item in self._one_of(run)]

    def _one_of(self, run: list[Item]) -> list[Item]:
        """The messages of a run as one; as they are, where the format can't write that."""
        if len(run) == 1:
            return run
        raws: list[Any] = [item.raw for item in run]
        # Neighbours first, then what came of them: so a long run takes no more than a few times its length.
        while len(raws) > 1:
            pairs = [raws[n : n + 2] for n in range(0, len(raws), 2)]
            raws = [self.format.joined(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
            if None in raws:
                return run
        first = attrs.evolve(run[0], pinned=any(item.pinned for item in run))
        return [self._read(raws[0], first)]

    def _written(self, position: int) -> Item | None:
        item = self.items[position]
        if position not in self._cut:
            return item
        raw = self.format.without(item.raw, self._cut[position])
        return None if raw is None else self._read(raw, item)

    def _read(self, raw: Any, item: Item) -> Item:
        return Item(raw, item.position, self.format.read(raw, item.position), item.pinned)


def _seams(views: Sequence[Message]) -> Iterator[Seam]:
    at_head, before = True, None
    for view in views:
        yield Seam(before, view, at_head)
        at_head, before = at_head and view.role is Role.SYSTEM, view
