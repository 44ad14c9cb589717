"""Parity with ``SlidingWindowCompactionStrategy`` of the Microsoft Agent Framework for .NET.

The expected results follow from what its documentation and its tests say of its behaviour: system messages and turn 0
never leave, neither do the newest ``minimumPreservedTurns`` turns (1 by default); other turns leave whole, oldest
first, and the target, by default the inverse of the trigger, is asked after each. Nothing happens while at most one
group is included that is no system group.
"""

from collections.abc import Callable, Sequence

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.strategies.sliding_window import SlidingWindowStrategy
from tests.build import Raw, call, index_of, result, said, step, system, user

INVERSE = None


def history(groups: str) -> list[Raw]:
    """A group a letter: a system message, a user's, an assistant's, or a tool call with its result."""
    made: dict[str, Callable[[int], list[Raw]]] = {
        "S": lambda _: [system()],
        "U": lambda _: [user()],
        "A": lambda _: [said()],
        "T": lambda number: step(f"call_{number}"),
    }
    return [message for number, letter in enumerate(groups) for message in made[letter](number)]


def kept(strategy: cc.CompactionStrategy, groups: str, out: Sequence[int] = ()) -> list[int]:
    """The numbers of the groups that are included in the end; some were out before."""
    index = index_of(history(groups))
    for number in out:
        index.exclude(index.groups[number], "before")
    strategy.compact(index)
    return [number for number, group in enumerate(index.groups) if group.excluded is None]


@attrs.frozen
class Case:
    """A history, the arguments as the .NET class takes them, and the groups that it keeps."""

    groups: str
    turns_exceed: int
    kept: list[int]
    minimum_preserved_turns: int = 1
    target: cc.Predicate | None = INVERSE
    out: tuple[int, ...] = ()

    def strategy(self) -> SlidingWindowStrategy:
        return SlidingWindowStrategy(
            trigger=cc.turns > self.turns_exceed, target=self.target, min_preserved_turns=self.minimum_preserved_turns
        )


SAME = [
    # The trigger does not fire.
    Case("UAUA", 3, [0, 1, 2, 3]),
    Case("UUU", 99, [0, 1, 2]),
    Case("SU", 1, [0, 1]),
    # Whole turns, oldest first, until it no longer does.
    Case("UAUAUA", 2, [2, 3, 4, 5]),
    Case("UAUAUA", 1, [4, 5]),
    Case("UUUU", 2, [2, 3]),
    Case("UATTUAUT", 2, [4, 5, 6, 7]),
    # System messages stay, wherever they stand.
    Case("SUAU", 1, [0, 3]),
    Case("SUAUA", 1, [0, 3, 4]),
    Case("SUASUASUA", 1, [0, 3, 6, 7, 8]),
    # A kept turn keeps its tool calls.
    Case("UAUT", 1, [2, 3]),
    Case("UTAUTA", 1, [3, 4, 5]),
    # A target of its own: it stops after one turn, or goes on below the trigger.
    Case("UAUAUAU", 1, [2, 3, 4, 5, 6], minimum_preserved_turns=0, target=cc.groups <= 5),
    Case("UAUAUAUA", 3, [6, 7], target=cc.turns <= 1),
    # The floor holds, whatever the target says.
    Case("UAUAUA", 1, [2, 3, 4, 5], minimum_preserved_turns=2, target=cc.never),
    Case("UAUAUA", 0, [0, 1, 2, 3, 4, 5], minimum_preserved_turns=3, target=cc.never),
    Case("UAUAUA", 0, [0, 1, 2, 3, 4, 5], minimum_preserved_turns=9, target=cc.never),
    Case("UAUAUA", 1, [4, 5], target=cc.never),
    # What is out already stays out; the rest of its turn leaves with it.
    Case("SUAU", 1, [0, 3], minimum_preserved_turns=0, out=(1,)),
    # One group that is no system group is left alone.
    Case("SU", 0, [0, 1], minimum_preserved_turns=0),
]


@pytest.mark.parametrize("case", SAME, ids=str)
def test_the_same_groups_stay(case: Case) -> None:
    """Where no difference is listed below, both keep the same."""
    assert kept(case.strategy(), case.groups, case.out) == case.kept


DIFFERENT = [
    # Turn 0 may leave, and leaves first.
    (Case("AUAUA", 1, [0, 3, 4]), [3, 4]),
    (Case("AUAUA", 2, [0, 1, 2, 3, 4]), [0, 1, 2, 3, 4]),
    (Case("AUAUAUA", 2, [0, 3, 4, 5, 6], target=cc.groups <= 6), [1, 2, 3, 4, 5, 6]),
    # The newest group and the newest user message never leave (rules K2 and K4).
    (Case("AUAUA", 1, [0], minimum_preserved_turns=0, target=cc.never), [3, 4]),
    (Case("SUA", 0, [0], minimum_preserved_turns=0, target=cc.never), [0, 1, 2]),
    # The target is asked before the first turn leaves (rule K3).
    (Case("UAUAUA", 1, [2, 3, 4, 5], target=cc.groups <= 6), [0, 1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize(("case", "ours"), DIFFERENT, ids=str)
def test_deliberate_differences(case: Case, ours: list[int]) -> None:
    """What is listed in the documentation, and nothing else."""
    assert kept(case.strategy(), case.groups) == ours


def test_turn_zero_stays_with_an_anchor() -> None:
    """``keep_first_groups`` gives back what theirs does."""
    strategy = SlidingWindowStrategy(trigger=cc.turns > 1, keep_first_groups=1)
    assert kept(strategy, "AUAUA") == [0, 3, 4]


def test_a_result_far_from_its_call_leaves_with_it() -> None:
    """Theirs groups by what stands side by side, and keeps a result whose call has left."""
    messages = [user(), call("a"), user(), said(), user(), result("a"), said()]
    index = index_of(messages)
    SlidingWindowStrategy(trigger=cc.turns > 1).compact(index)
    assert index.included_messages() == [messages[4], messages[6]]


def test_a_negative_floor_is_an_error() -> None:
    """Theirs takes it for 0."""
    with pytest.raises(ValueError, match="min_preserved_turns must be an int of 0 or more, got -1"):
        SlidingWindowStrategy(trigger=cc.turns > 1, min_preserved_turns=-1)
