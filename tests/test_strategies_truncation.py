"""Truncation: the oldest groups leave, one by one, until the target holds (K2, K3, K4, K7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import call, result, said, step, system, user

AGENT = [system("rules"), user("task"), *step("a"), *step("b", "c"), *step("d"), said("done")]


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any] = AGENT, **arguments: Any
) -> tuple[list[int], cc.CompactionReport]:
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter(), **arguments)
    report = strategy.compact(index, hooks=())
    return index.included_positions(), report


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (29, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (28, [0, 1, 4, 5, 6, 7, 8, 9]),
        (25, [0, 1, 4, 5, 6, 7, 8, 9]),
        (24, [0, 1, 7, 8, 9]),
        (16, [0, 1, 9]),
        (0, [0, 1, 9]),
    ],
)
def test_the_oldest_groups_leave_first(limit: int, kept: list[int]) -> None:
    """K3 and K4: one group after the other, never part of one, never the system message or the task."""
    positions, report = compact(cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=1))
    assert positions == kept
    assert report.fits is (limit >= 13)
    assert {exclusion.reason for exclusion in report.excluded} <= {"truncation"}


@pytest.mark.parametrize(
    ("trigger", "kept"),
    [
        (cc.messages > 6, [0, 1, 7, 8, 9]),
        (cc.groups > 4, [0, 1, 7, 8, 9]),
        (cc.tool_groups > 1, [0, 1, 7, 8, 9]),
        (cc.turns > 0, [0, 1, 9]),
        ((cc.messages > 8) | (cc.tokens > 24), [0, 1, 7, 8, 9]),
        ((cc.messages > 8) & (cc.tokens > 24), [0, 1, 4, 5, 6, 7, 8, 9]),
    ],
    ids=str,
)
def test_any_metric_will_do(trigger: cc.Predicate, kept: list[int]) -> None:
    """K3: the target is the inverse of the trigger: of two that may fire both are cured, of two that must, one."""
    assert compact(cc.TruncationStrategy(trigger=trigger, min_preserved_groups=1))[0] == kept


def test_the_default_floor_is_eight_groups() -> None:
    """A departure from .NET, which keeps 32."""
    messages = [said(str(number)) for number in range(20)]
    assert compact(cc.TruncationStrategy(trigger=cc.messages > 3), messages)[0] == list(range(12, 20))


def test_a_call_leaves_with_a_result_far_away() -> None:
    """G2 and K4: the group is as new as its newest message."""
    messages = [user("one"), call("a"), *step("b"), user("two"), result("a"), said("x"), said("y")]
    strategy = cc.TruncationStrategy(trigger=cc.groups > 3, min_preserved_groups=1)
    positions, report = compact(strategy, messages)
    # The user's newest message stays (K4), so the far result goes next.
    assert positions == [4, 6, 7]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1, 5), (2, 3)]


def test_a_function_may_be_the_trigger() -> None:
    @cc.predicate
    def long(index: Any) -> bool:
        return len(index.included_messages()) > 4

    assert compact(cc.TruncationStrategy(trigger=long, min_preserved_groups=1))[0] == [0, 1, 9]


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it; ``evolve`` makes another."""
    strategy = cc.TruncationStrategy(
        trigger=(cc.tokens > 8_000) | (cc.turns > 40),
        target=(cc.tokens <= 4_000) & (cc.turns <= 20),
        min_preserved_groups=3,
        keep_last_user=False,
    )
    names = {"TruncationStrategy": cc.TruncationStrategy, **vars(cc.triggers)}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert attrs.evolve(strategy, min_preserved_groups=8) != strategy
    assert repr(cc.TruncationStrategy(trigger=cc.tokens > 5)) == "TruncationStrategy(trigger=tokens > 5)"
    with pytest.raises(AttributeError):
        strategy.target = None  # type: ignore[misc]


def test_a_default_target_follows_an_evolved_trigger() -> None:
    """K3: the inverse is computed, never stored."""
    strategy = attrs.evolve(cc.TruncationStrategy(trigger=cc.tokens > 10), trigger=cc.turns > 2)
    assert strategy.target is None
    assert strategy.effective_target == (cc.turns <= 2)


def test_arguments_have_names() -> None:
    """Keyword-only: a bare number beside a predicate says nothing."""
    with pytest.raises(TypeError):
        cc.TruncationStrategy(cc.tokens > 5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^trigger must be a predicate such as tokens > 8_000, got 8000$"):
        cc.TruncationStrategy(trigger=8000)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^target must be a predicate such as tokens > 8_000, got 4000$"):
        cc.TruncationStrategy(trigger=cc.tokens > 8000, target=4000)  # type: ignore[arg-type]
