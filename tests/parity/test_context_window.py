"""Parity with ``ContextWindowCompactionStrategy`` of the Microsoft Agent Framework for .NET.

The expected results follow from what its documentation and its tests say of its behaviour: the input budget is
the window without the longest output; above half of it (``toolEvictionThreshold``) old tool groups are collapsed, above
0.8 (``truncationThreshold``) the oldest groups leave that are no system groups, each until its threshold holds; the
newest two groups stay. Thresholds are whole tokens, rounded down.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.strategies.context_window import ContextWindowStrategy
from chat_compaction.strategies.tool_result import ToolResultStrategy
from chat_compaction.strategies.truncation import TruncationStrategy
from tests.build import Raw, call, index_of, result, said, system, user

SIZE = 10
"""Every message has ten tokens, but a result, which has a hundred."""


def like_theirs(window: int, max_output: int, **arguments: Any) -> ContextWindowStrategy:
    """Without what theirs has not: room below a threshold, clipping, tool uses that always stay."""
    return ContextWindowStrategy(
        window,
        max_output,
        **{"room": 0.0, "clip_above": 1.0, "keep_tool_uses": 0, "keep_last_user": False, **arguments},
    )


def history(groups: str) -> list[Raw]:
    """A group a letter: a system message, a user's, an assistant's, or a tool call with its result."""
    made: dict[str, Callable[[int], list[Raw]]] = {
        "S": lambda _: [system("s" * SIZE)],
        "U": lambda _: [user("u" * SIZE)],
        "A": lambda _: [said("a" * SIZE)],
        "T": lambda n: [call(f"call_{n}"), result(f"call_{n}", "t" * 10 * SIZE)],
    }
    return [message for number, letter in enumerate(groups) for message in made[letter](number)]


@attrs.frozen
class Case:
    """A history and the model, and the groups that stay or are collapsed."""

    groups: str
    window: int
    max_output: int
    kept: list[int]
    collapsed: tuple[int, ...] = ()
    tool_eviction: float = 0.5
    truncation: float = 0.8


CASES = [
    # Below both thresholds.
    Case("UA", 1_000, 100, [0, 1]),
    Case("UAUA", 80, 0, [0, 1, 2, 3]),
    Case("UTA", 600, 300, [0, 1, 2]),
    # Above half of the budget without tool calls nothing happens.
    Case("UAUA", 60, 0, [0, 1, 2, 3]),
    # Above 0.8: the oldest groups leave until it holds.
    Case("UAUA", 49, 0, [1, 2, 3]),
    Case("UAUA", 59, 10, [1, 2, 3]),
    Case("UAUAUA", 49, 0, [3, 4, 5]),
    Case("SUAUA", 60, 10, [0, 2, 3, 4]),
    # The newest two groups stay, whatever the size.
    Case("UAUA", 10, 5, [2, 3]),
    Case("SUAUA", 10, 5, [0, 3, 4]),
    Case("UA", 10, 5, [0, 1]),
    # Thresholds of one's own.
    Case("UAUA", 100, 0, [2, 3], tool_eviction=0.2, truncation=0.2),
    Case("UAUA", 50, 10, [0, 1, 2, 3], truncation=1.0),
    # Rounded down: 39.6 is 39, 40.5 is 40.
    Case("UAUA", 44, 0, [1, 2, 3], truncation=0.9),
    Case("UAUA", 45, 0, [0, 1, 2, 3], truncation=0.9),
    # Old tool groups are collapsed above half, oldest first, until it holds.
    Case("UTATA", 400, 0, [0, 1, 2, 3, 4], collapsed=(1,)),
    Case("UTATATA", 600, 0, [0, 1, 2, 3, 4, 5, 6], collapsed=(1,)),
    Case("UTATATA", 420, 0, [0, 1, 2, 3, 4, 5, 6], collapsed=(1, 3)),
    # But not among the newest two groups.
    Case("UTA", 150, 0, [0, 1, 2], truncation=1.0),
    Case("UT", 150, 0, [0, 1], truncation=1.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_groups_stay_and_are_shortened(case: Case) -> None:
    """In the place of a collapsed group ours clears the results: the call and its id stay."""
    strategy = like_theirs(
        case.window, case.max_output, tool_results_at=case.tool_eviction, truncate_at=case.truncation
    )
    index = index_of(history(case.groups))
    strategy.compact(index)
    assert [number for number, group in enumerate(index.groups) if group.excluded is None] == case.kept
    assert tuple(number for number, group in enumerate(index.groups) if group.replaced) == case.collapsed


@pytest.mark.parametrize(
    ("window", "max_output", "tool_eviction", "truncation", "budget", "limits"),
    [
        (1_050_000, 128_000, 0.5, 0.8, 922_000, (461_000, 737_600)),
        (1_000_000, 100_000, 0.3, 0.6, 900_000, (270_000, 540_000)),
        (1_000_000, 0, 0.5, 0.8, 1_000_000, (500_000, 800_000)),
        (1_000, 100, 0.7, 0.7, 900, (630, 630)),
        (10, 5, 0.5, 0.8, 5, (2, 4)),
        (128_000, 8_000, 1.0, 1.0, 120_000, (120_000, 120_000)),
    ],
)
def test_budget_and_thresholds(
    window: int, max_output: int, tool_eviction: float, truncation: float, budget: int, limits: tuple[int, int]
) -> None:
    """The same arithmetic."""
    strategy = ContextWindowStrategy(window, max_output, tool_results_at=tool_eviction, truncate_at=truncation)
    assert strategy.input_budget == budget
    fires = [stage.trigger for stage in strategy.stages if isinstance(stage, ToolResultStrategy | TruncationStrategy)]
    assert fires == [cc.tokens > limit for limit in limits]


@pytest.mark.parametrize(
    "arguments",
    [
        {"window": 0},
        {"window": -1},
        {"max_output": -1},
        {"max_output": 1_000},
        {"max_output": 1_001},
        {"tool_results_at": 0.0},
        {"tool_results_at": -0.1},
        {"tool_results_at": 1.1},
        {"truncate_at": 0.0},
        {"truncate_at": -0.1},
        {"truncate_at": 1.1},
        {"tool_results_at": 0.8, "truncate_at": 0.5},
    ],
    ids=str,
)
def test_what_theirs_refuses(arguments: dict[str, Any]) -> None:
    """Ours refuses, too."""
    with pytest.raises(ValueError, match="must be"):
        ContextWindowStrategy(**{"window": 1_000, "max_output": 100, **arguments})


def test_difference_room() -> None:
    """Theirs stops right below a threshold, so that the next call is above it again."""
    groups = "UA" * 20
    index, other = index_of(history(groups)), index_of(history(groups))
    assert like_theirs(400, 0).compact(index).tokens_after == 320
    assert like_theirs(400, 0, room=0.5).compact(other).tokens_after == 160


def test_difference_a_huge_message_is_clipped() -> None:
    """Theirs has no answer to one that fills the budget alone."""
    messages = [user("look"), call("a"), result("a", "x" * 990)]
    assert like_theirs(1_000, 0).compact(index_of(messages)).tokens_after == 994
    assert ContextWindowStrategy(1_000, 0).compact(index_of(messages)).tokens_after <= 400


def test_difference_the_newest_user_message_stays() -> None:
    """Rule K4: theirs lets it leave when two groups came behind it."""
    messages = history("UTTA")
    index, other = index_of(messages), index_of(messages)
    like_theirs(10, 0).compact(index)
    like_theirs(10, 0, keep_last_user=True).compact(other)
    assert 0 not in index.included_positions()
    assert 0 in other.included_positions()
