"""What should stay, by a plain reading of the rules: slow, without an index, a ledger or running totals.

For the history shapes only: chat completions, a floor of one group, no summaries, no reasoning that stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from tests.legality import SYSTEM, links

FORMAT = "openai_chat"


@dataclass(frozen=True)
class Answer:
    """The positions that stay, and those that stay whatever the target says."""

    kept: frozenset[int]
    must_stay: frozenset[int]


def groups(messages: Sequence[Any]) -> list[frozenset[int]]:
    """The positions of each message with what it answers, and so on (rule G2)."""
    group_of = {position: frozenset({position}) for position in range(len(messages))}
    for link in links(messages, FORMAT):
        if link.call is not None and link.result is not None:
            both = group_of[link.call] | group_of[link.result]
            group_of.update(dict.fromkeys(both, both))
    return list(dict.fromkeys(group_of.values()))


def ask(
    messages: Sequence[Any],
    sizes: Sequence[int],
    limit: int,
    *,
    evict: str,
    min_messages: int,
    pinned: frozenset[int],
) -> Answer:
    """Let units leave, oldest first, until the sizes of what stays add up to no more than the limit (rules K3, K4)."""
    rules = _Rules(messages, sizes, limit, pinned, min_messages)
    everything = frozenset(range(len(messages)))
    turns = [frozenset[int]().union(*turn) for turn in rules.free_turns()]
    if evict == "turns-then-groups":
        may_leave = [*turns, *rules.answers(rules.free_groups())]
        return Answer(rules.turns_then_groups(everything), everything.difference(*may_leave))
    units = rules.free_groups() if evict == "groups" else turns
    return Answer(rules.leave(everything, units), everything.difference(*units))


@dataclass(frozen=True)
class _Rules:
    messages: Sequence[Any]
    sizes: Sequence[int]
    limit: int
    pinned: frozenset[int]
    min_messages: int

    def leave(self, kept: frozenset[int], units: Iterable[frozenset[int]]) -> frozenset[int]:
        """What stays once so many of the units left as must."""
        size = sum(self.sizes[position] for position in kept)
        for unit in units:
            if size <= self.limit:
                break
            kept -= unit
            size -= sum(self.sizes[position] for position in unit)
        return kept

    def turns_then_groups(self, kept: frozenset[int]) -> frozenset[int]:
        """Whole turns, the last one as far as it must; then groups of those that stayed, never a user's message."""
        for turn in self.free_turns():
            whole = self.leave(kept, [frozenset[int]().union(*turn)])
            if self._fits(whole):
                part = self.leave(kept, self.answers(turn)[:-1])
                return part if self._fits(part) else whole
            kept = whole
        return self.leave(kept, (group for group in self.answers(self.free_groups()) if group <= kept))

    def answers(self, groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
        """Those of the groups that are no user's message."""
        return [group for group in groups if self.messages[min(group)]["role"] != "user"]

    def free_groups(self) -> list[frozenset[int]]:
        """The groups that nothing protects, oldest first: a group is as new as its newest message."""
        return sorted((group for group in self._groups if not self._protected(group)), key=max)

    def free_turns(self) -> list[list[frozenset[int]]]:
        """The turns of which every group may leave, pinned and system ones aside, which stay behind."""
        held = {self._turn(group) for group in self._groups if self._protected(group) and not self._apart(group)}
        turns: dict[int, list[frozenset[int]]] = {}
        for group in self.free_groups():
            if self._turn(group) not in held:
                turns.setdefault(self._turn(group), []).append(group)
        return sorted(turns.values(), key=lambda turn: max(turn[-1]))

    def _fits(self, kept: frozenset[int]) -> bool:
        return sum(self.sizes[position] for position in kept) <= self.limit

    @cached_property
    def _groups(self) -> list[frozenset[int]]:
        return groups(self.messages)

    @cached_property
    def _turns(self) -> list[int]:
        """The turn of each position."""
        opens = [message["role"] == "user" and p not in self.pinned for p, message in enumerate(self.messages)]
        return list(accumulate(opens, initial=0))[1:]

    @cached_property
    def _newest(self) -> frozenset[int]:
        """The newest message that is no system message, the newest of the user's, and the floor's."""
        every = range(len(self.messages))
        said = [position for position in every if not self._system(position)]
        asked = [
            position for position in said if self._turns[position] > (self._turns[position - 1] if position else 0)
        ]
        return frozenset({*said[-1:], *asked[-1:], *every[len(every) - self.min_messages :]})

    @cached_property
    def _waiting(self) -> frozenset[int]:
        """The calls of the newest turn that wait for their result (rule G3)."""
        return frozenset(
            link.call
            for link in links(self.messages, FORMAT)
            if link.result is None and link.call is not None and self._turns[link.call] == self._turns[-1]
        )

    def _turn(self, group: frozenset[int]) -> int:
        return self._turns[min(group)]

    def _system(self, position: int) -> bool:
        return bool(self.messages[position]["role"] in SYSTEM)

    def _apart(self, group: frozenset[int]) -> bool:
        return self._system(min(group)) or bool(group & self.pinned)

    def _protected(self, group: frozenset[int]) -> bool:
        return self._apart(group) or bool(group & (self._newest | self._waiting))
