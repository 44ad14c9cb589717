"""SlidingWindowStrategy: whole turns leave, oldest first, around an anchor."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.strategies.sliding_window import SlidingWindowStrategy
from chat_compaction.testing import histories
from tests.build import anthropic_step, call, index_of, result, said, step, system, user

TURNS = [user("one"), said("1"), user("two"), *step("a"), said("2"), user("three"), said("3"), user("four"), said("4")]
"""Four turns at the positions 0-1, 2-5, 6-7 and 8-9."""
FORMATS = ["openai_chat", "openai_responses", "anthropic", "bedrock_converse"]


def window(**arguments: Any) -> SlidingWindowStrategy:
    """A window whose target is never reached: the floor alone holds."""
    return SlidingWindowStrategy(**{"trigger": cc.always, "target": cc.never, **arguments})


def compact(
    strategy: cc.CompactionStrategy, messages: list[Any] = TURNS, **settings: Any
) -> tuple[list[int], cc.CompactionReport]:
    index = index_of(messages, **settings)
    report = strategy.compact(index)
    return index.included_positions(), report


@pytest.mark.parametrize(
    ("limit", "kept"), [(4, range(10)), (3, range(2, 10)), (2, range(6, 10)), (1, range(8, 10)), (0, range(8, 10))]
)
def test_whole_turns_leave_oldest_first(limit: int, kept: range) -> None:
    """K4: and the target is asked after each of them (rule K3)."""
    positions, report = compact(SlidingWindowStrategy(trigger=cc.turns > limit))
    assert positions == list(kept)
    assert report.fits is (limit > 0)
    assert {exclusion.reason for exclusion in report.excluded} <= {"sliding window"}


def test_a_target_below_the_trigger_leaves_room() -> None:
    """K3: more than three turns fire, and one is left."""
    positions, report = compact(SlidingWindowStrategy(trigger=cc.turns > 3, target=cc.turns <= 1))
    assert (positions, report.stopped_by) == ([8, 9], "target")
    assert compact(SlidingWindowStrategy(trigger=cc.turns > 4, target=cc.turns <= 1))[1].skipped == "trigger"


def test_any_metric_will_do() -> None:
    """Turns leave until the tokens fit."""
    positions, report = compact(SlidingWindowStrategy(trigger=cc.tokens > 16))
    assert (positions, report.tokens_after, report.fits) == ([6, 7, 8, 9], 11, True)


@pytest.mark.parametrize(
    ("newest", "kept"), [(0, [8, 9]), (1, [8, 9]), (2, [6, 7, 8, 9]), (3, list(range(2, 10))), (9, list(range(10)))]
)
def test_the_newest_turns_stay(newest: int, kept: list[int]) -> None:
    """Whatever the target says; and the newest group is never without its turn (rule K2)."""
    positions, report = compact(window(min_preserved_turns=newest))
    assert positions == kept
    assert not report.fits


def test_a_preserved_turn_is_a_users_message_and_what_follows() -> None:
    """Also while the newest message is the user's own: the turn counts at once."""
    assert compact(window(min_preserved_turns=2), [*TURNS, user("five")])[0] == [8, 9, 10]


@pytest.mark.parametrize(
    ("turns", "kept"), [(1, [0, 1, 8, 9]), (2, [*range(6), 8, 9]), (3, list(range(10))), (9, list(range(10)))]
)
def test_the_first_turns_are_an_anchor(turns: int, kept: list[int]) -> None:
    """``keep_first_turns``: they never leave."""
    assert compact(window(keep_first_turns=turns))[0] == kept


@pytest.mark.parametrize(
    ("groups", "kept"),
    [(1, [0, 8, 9]), (2, [0, 1, 8, 9]), (3, [0, 1, 2, 8, 9]), (4, [0, 1, 2, 3, 4, 8, 9]), (99, list(range(10)))],
)
def test_the_first_groups_are_an_anchor(groups: int, kept: list[int]) -> None:
    """``keep_first_groups``: they stay behind when their turn leaves."""
    assert compact(window(keep_first_groups=groups))[0] == kept


def test_the_anchor_does_not_count_system_messages() -> None:
    """They stay anyway, and an anchor of one is the user's first message."""
    assert compact(window(keep_first_groups=1), [system(), *TURNS])[0] == [0, 1, 9, 10]
    assert compact(window(keep_first_turns=1), [system(), *TURNS])[0] == [0, 1, 2, 9, 10]


def test_what_comes_before_the_first_turn_leaves_first() -> None:
    """Turn 0 is no turn that one would keep: elsewhere it never leaves."""
    messages = [said("hello"), said("there"), *TURNS]
    positions, report = compact(SlidingWindowStrategy(trigger=cc.messages > 11), messages)
    assert positions == list(range(2, 12))
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1,)]
    assert compact(window(), messages)[0] == [10, 11]


def test_turn_zero_stays_ahead_of_an_anchor() -> None:
    """The anchor is the head of the list, so that the prompt cache keeps hitting there."""
    messages = [said("hello"), *TURNS]
    assert compact(window(keep_first_turns=1), messages)[0] == [0, 1, 2, 9, 10]
    assert compact(window(keep_first_groups=1), messages)[0] == [0, 9, 10]


def test_a_list_without_any_turn() -> None:
    """All is turn 0; the newest group stays (rule K2)."""
    assert compact(window(keep_first_turns=1), [said("a"), said("b"), said("c")])[0] == [0, 1, 2]
    assert compact(window(), [said("a"), said("b"), said("c")])[0] == [0, 1, 2]


def test_pinned_and_system_groups_of_a_turn_stay_behind() -> None:
    """K4: the turn leaves around them."""
    messages = [user("one"), system("mid"), said("keep"), said("x"), *TURNS]
    positions, _ = compact(window(), messages, pinned=[messages[2]])
    assert positions == [1, 2, 12, 13]


def test_a_pinned_users_message_is_no_turn() -> None:
    """So it takes no place among the newest ones."""
    messages = [*TURNS, user("remember this")]
    assert compact(window(min_preserved_turns=1), messages, pinned=[messages[-1]])[0] == [8, 9, 10]


def test_a_turn_that_reaches_into_the_floor_is_skipped() -> None:
    """A later one that may leave whole leaves: a call of the first turn is answered in the last."""
    messages = [user("one"), call("a"), user("two"), said("answer"), user("three"), result("a"), said("x")]
    assert compact(window(min_preserved_messages=2), messages)[0] == [0, 1, 4, 5, 6]


def test_the_floor_of_every_strategy_holds() -> None:
    """K4: the newest groups and messages, by whole turns."""
    assert compact(window(min_preserved_groups=3))[0] == [6, 7, 8, 9]
    assert compact(window(min_preserved_messages=5))[0] == list(range(2, 10))


def test_a_pending_call_keeps_its_turn() -> None:
    """G3."""
    messages = [user("one"), call("a"), user("two"), said("2"), user("three"), said("3")]
    assert compact(window(), messages, pending_turns=3)[0] == [0, 1, 4, 5]


def test_nothing_may_leave() -> None:
    """The report tells what stands in the way."""
    positions, report = compact(window(min_preserved_turns=2), TURNS[6:])
    assert (positions, report.changed, report.stopped_by, report.fits) == ([0, 1, 2, 3], False, "exhausted", False)
    assert {blocker.positions for blocker in report.blocked_by} == {(0,), (1,), (2,), (3,)}


def test_an_excluded_turn_is_neither_kept_nor_counted() -> None:
    """Anchor and window are over what is included, so that a reduced list read anew gives the same."""
    index = index_of(TURNS)
    for group in index.groups[:2]:
        index.exclude(group, "by hand")
    window(keep_first_turns=1, min_preserved_turns=1).compact(index)
    assert index.included_positions() == [2, 3, 4, 5, 8, 9]


def test_anthropic_begins_with_the_user() -> None:
    """K7: turns begin with a user's message, so nothing is held back."""
    messages = [user("one"), *anthropic_step("a"), said("1"), user("two"), *anthropic_step("b"), said("2")]
    positions, report = compact(window(), messages)
    assert positions == [4, 5, 6, 7]
    assert not report.problems


SHAPES = [
    window(),
    window(min_preserved_turns=3),
    window(keep_first_turns=2, min_preserved_turns=0),
    window(keep_first_groups=3),
    SlidingWindowStrategy(trigger=cc.turns > 2, keep_first_groups=1),
]


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=15)
@given(data=st.data())
def test_valid_in_valid_out_and_idempotent(format: str, data: st.DataObject) -> None:
    """K7 and K10: over random histories of each format."""
    history = data.draw(histories(format))
    strategy = data.draw(st.sampled_from(SHAPES))
    index = cc.MessageIndex.from_messages(history, format=format, validate=True)
    before = {problem.rule for problem in index.problems}
    strategy.compact(index)
    again = cc.MessageIndex.from_messages(index.included_messages(), format=format)
    assert {problem.rule for problem in again.problems} <= before
    assert not strategy.compact(again).changed


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    strategy = SlidingWindowStrategy(trigger=cc.turns > 20, keep_first_turns=1, min_preserved_turns=4)
    names = {"SlidingWindowStrategy": SlidingWindowStrategy, "turns": cc.turns}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != attrs.evolve(strategy, keep_first_turns=0)
    with pytest.raises(AttributeError):
        strategy.keep_first_turns = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["min_preserved_turns", "keep_first_turns", "keep_first_groups", "min_preserved_groups"]
)
@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (True, TypeError), ("1", TypeError), (1.0, TypeError)])
def test_wrong_arguments(name: str, value: Any, error: type[Exception]) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        SlidingWindowStrategy(trigger=cc.turns > 20, **{name: value})
    assert str(caught.value) == f"{name} must be an int of 0 or more, got {value!r}"
