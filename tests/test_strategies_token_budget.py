"""A token budget: whole turns, then single groups of the turns that had to stay (K3, K4, K5, K7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, result, said, step, system, user

# Turns 1 to 3 of ten characters each.
TURNS = [m for n in "123" for m in (user(f"user{n}"), said(f"asst{n}"))]
# One user message and many calls, four characters a result.
GIANT = [user("task"), *step("a"), *step("b"), *step("c"), *step("d")]


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any] = TURNS, **arguments: Any
) -> tuple[list[int], cc.CompactionReport]:
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter(), **arguments)
    report = strategy.compact(index, hooks=())
    return index.included_positions(), report


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(30, [0, 1, 2, 3, 4, 5]), (29, [2, 3, 4, 5]), (20, [2, 3, 4, 5]), (19, [4, 5]), (10, [4, 5]), (9, [4, 5])],
)
@pytest.mark.parametrize("evict", ["turns", "turns-then-groups"])
def test_whole_turns_leave_oldest_first(limit: int, kept: list[int], evict: Any) -> None:
    """An answer never stays without its question."""
    positions, report = compact(cc.TokenBudgetStrategy(limit, evict=evict))
    assert positions == kept
    assert report.fits is (limit >= 10)
    assert {exclusion.reason for exclusion in report.excluded} <= {"token budget: turn"}


@pytest.mark.parametrize(
    ("limit", "kept"), [(29, [1, 2, 3, 4, 5]), (24, [2, 3, 4, 5]), (16, [3, 4, 5]), (10, [4, 5]), (0, [4, 5])]
)
def test_single_groups_leave_oldest_first(limit: int, kept: list[int]) -> None:
    """``evict="groups"``: as truncation does."""
    positions, report = compact(cc.TokenBudgetStrategy(limit, evict="groups"))
    assert positions == kept
    assert {exclusion.reason for exclusion in report.excluded} == {"token budget"}


@pytest.mark.parametrize(
    ("evict", "kept", "stopped_by"),
    [
        ("turns", list(range(9)), "exhausted"),
        ("groups", [0, 5, 6, 7, 8], "target"),
        ("turns-then-groups", [0, 5, 6, 7, 8], "target"),
    ],
)
def test_one_giant_turn(evict: Any, kept: list[int], stopped_by: str) -> None:
    """The common case of an agent: the turn must stay, so its calls leave, and the task never does."""
    positions, report = compact(cc.TokenBudgetStrategy(12, evict=evict), GIANT)
    assert positions == kept
    assert (report.stopped_by, report.fits) == (stopped_by, stopped_by == "target")
    assert {exclusion.reason for exclusion in report.excluded} <= {"token budget", "token budget: group"}


def test_turns_go_before_groups() -> None:
    """``"turns-then-groups"``: an old turn leaves whole before anything of the newest does."""
    positions, report = compact(cc.TokenBudgetStrategy(12), [*TURNS[:4], *GIANT])
    assert positions == [4, 9, 10, 11, 12]
    assert [(e.positions, e.reason) for e in report.excluded] == [
        ((0,), "token budget: turn"),
        ((1,), "token budget: turn"),
        ((2,), "token budget: turn"),
        ((3,), "token budget: turn"),
        ((5, 6), "token budget: group"),
        ((7, 8), "token budget: group"),
    ]


OLD_AND_GIANT = [*GIANT, user("more"), said("done")]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (28, list(range(11))),
        (27, [0, *range(3, 11)]),
        (20, [0, *range(5, 11)]),
        (16, [0, *range(7, 11)]),
        (15, [9, 10]),
        (8, [9, 10]),
    ],
)
def test_of_a_turn_that_need_not_leave_whole_the_oldest_groups_do(limit: int, kept: list[int]) -> None:
    """``"turns-then-groups"``: dropped whole, a giant turn would take nearly the whole context with it."""
    positions, report = compact(cc.TokenBudgetStrategy(limit), OLD_AND_GIANT)
    assert positions == kept
    assert report.fits
    reason = "token budget: turn" if 0 not in kept else "token budget: group"
    assert {exclusion.reason for exclusion in report.excluded} <= {reason}
    # The other orders know no such mercy.
    assert compact(cc.TokenBudgetStrategy(27, evict="turns"), OLD_AND_GIANT)[0] == [9, 10]


def test_a_spared_turn_stays_a_turn() -> None:
    """Where turns are too many, whole ones must leave, and none is spared."""
    assert compact(cc.TokenBudgetStrategy(10**9, max_turns=1), OLD_AND_GIANT)[0] == [9, 10]


def test_a_question_is_never_left_without_any_answer() -> None:
    """Of a spared turn at least the newest group stays with the user's words; else it leaves whole."""
    messages = [user("question"), said("long " * 10), user("two"), said("x")]
    assert compact(cc.TokenBudgetStrategy(20), messages)[0] == [2, 3]


def test_a_users_message_never_leaves_as_a_single_group() -> None:
    """``"turns-then-groups"``: of a turn that had to stay, the user's words do."""
    messages = [user("question"), *step("a"), call("b"), user("more"), result("b"), said("done")]
    positions, report = compact(cc.TokenBudgetStrategy(0), messages)
    # The call of turn 1 reaches into the floor of two messages.
    assert positions == [0, 3, 4, 5, 6]
    assert [exclusion.positions for exclusion in report.excluded] == [(1, 2)]
    assert report.stopped_by == "exhausted"


def test_a_turn_that_reaches_into_the_floor_is_skipped_and_no_stop() -> None:
    """A later turn that may leave whole leaves."""
    messages = [user("one"), call("a"), user("two"), said("answer"), user("three"), result("a"), said("x")]
    positions, _ = compact(cc.TokenBudgetStrategy(20, evict="turns"), messages)
    assert positions == [0, 1, 4, 5, 6]


def test_turn_zero_leaves_first() -> None:
    """What comes before the first turn may leave, and goes as one."""
    messages = [said("hello"), said("there"), *TURNS]
    positions, report = compact(cc.TokenBudgetStrategy(39, evict="turns"), messages)
    assert positions == [2, 3, 4, 5, 6, 7]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1,)]


def test_pinned_and_system_groups_of_a_turn_stay_behind() -> None:
    """K4: the turn leaves around them."""
    messages = [user("one"), system("mid"), said("keep"), said("x"), *TURNS]
    positions, _ = compact(cc.TokenBudgetStrategy(20, evict="turns"), messages, pinned=[messages[2]])
    assert positions == [1, 2, 8, 9]


def test_a_pending_call_keeps_its_turn() -> None:
    """K4 and G3: a turn with a call that may still be answered reaches into the floor."""
    messages = [user("one"), said("x"), call("a"), user("two"), said("answer"), user("three"), said("y")]
    positions, _ = compact(cc.TokenBudgetStrategy(8, evict="turns"), messages, pending_turns=3)
    assert positions == [0, 1, 2, 5, 6]


def test_system_messages_leave_with_their_turn_where_they_may() -> None:
    """G5: with ``preserve_system=False`` they belong to the turn where they stand."""
    messages = [system("rules"), *TURNS[:2], system("mid"), *TURNS[2:]]
    positions, report = compact(cc.TokenBudgetStrategy(25, evict="turns", preserve_system=False), messages)
    assert positions == [4, 5, 6, 7]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("newest", "kept"), [(0, [4, 5]), (1, [4, 5]), (2, [4, 5]), (3, [2, 3, 4, 5]), (5, [0, 1, 2, 3, 4, 5])]
)
def test_the_newest_messages_stay(newest: int, kept: list[int]) -> None:
    """K4: ``min_preserved_messages``, and whole turns around them."""
    assert compact(cc.TokenBudgetStrategy(0, min_preserved_messages=newest, evict="turns"))[0] == kept


def test_without_any_floor_the_newest_group_stays() -> None:
    """K2: and with it, since it answers a question, nothing that it could do without."""
    strategy = cc.TokenBudgetStrategy(
        0, min_preserved_messages=0, min_preserved_groups=0, keep_last_user=False, evict="groups"
    )
    assert compact(strategy)[0] == [5]


def test_hysteresis() -> None:
    """``max_tokens`` fires, ``target_tokens`` is where it stops."""
    strategy = cc.TokenBudgetStrategy(29, target_tokens=15)
    assert compact(strategy)[0] == [4, 5]
    assert compact(cc.TokenBudgetStrategy(30, target_tokens=15))[1].skipped == "trigger"


@pytest.mark.parametrize(("turns", "kept"), [(3, 6), (2, 4), (1, 2), (0, 2)])
def test_max_turns_binds_although_the_budget_does_not(turns: int, kept: int) -> None:
    """Either limit fires, and both must hold to stop."""
    positions, report = compact(cc.TokenBudgetStrategy(10**9, max_turns=turns))
    assert len(positions) == kept
    assert report.fits is (turns > 0)


def test_max_turns_does_not_stop_before_the_budget_holds() -> None:
    positions, _ = compact(cc.TokenBudgetStrategy(15, max_turns=2))
    assert positions == [4, 5]


def test_reserved_tokens_count() -> None:
    """What travels apart from the list takes its share of the budget."""
    assert compact(cc.TokenBudgetStrategy(30), reserved=1)[0] == [2, 3, 4, 5]


@pytest.mark.parametrize("evict", ["turns-then-groups", "groups"])
def test_anthropic_keeps_the_opener_of_the_turn_it_cuts(evict: Any) -> None:
    """K7: the first message stays a user's, with any order of leaving."""
    messages = [user("task"), *(m for name in "abcd" for m in anthropic_step(name))]
    positions, report = compact(cc.TokenBudgetStrategy(12, evict=evict, keep_last_user=False), messages)
    assert positions == [0, 5, 6, 7, 8]
    assert report.fits


def test_trigger_and_target_follow_from_the_limits() -> None:
    strategy = cc.TokenBudgetStrategy(8_000, target_tokens=4_000, max_turns=40)
    assert strategy.trigger == (cc.tokens > 8_000) | (cc.turns > 40)
    assert strategy.target == (cc.tokens <= 4_000) & (cc.turns <= 40)
    assert cc.TokenBudgetStrategy(8_000).target == (cc.tokens <= 8_000)
    evolved = attrs.evolve(strategy, max_tokens=9_000)
    assert evolved.trigger == (cc.tokens > 9_000) | (cc.turns > 40)
    with pytest.raises(TypeError):
        cc.TokenBudgetStrategy(8_000, trigger=cc.always)  # type: ignore[call-arg]


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    strategy = cc.TokenBudgetStrategy(8_000, target_tokens=4_000, evict="turns", min_preserved_messages=4)
    assert eval(repr(strategy), {"TokenBudgetStrategy": cc.TokenBudgetStrategy}) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != cc.TokenBudgetStrategy(8_000)
    with pytest.raises(AttributeError):
        strategy.max_tokens = 1  # type: ignore[misc]


NOT_A_NUMBER = "must be an int of 0 or more, got"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"max_tokens": -1}, ValueError, f"max_tokens {NOT_A_NUMBER} -1"),
        ({"max_tokens": True}, TypeError, f"max_tokens {NOT_A_NUMBER} True"),
        ({"max_tokens": "8000"}, TypeError, f"max_tokens {NOT_A_NUMBER} '8000'"),
        ({"max_tokens": 8e3}, TypeError, f"max_tokens {NOT_A_NUMBER} 8000.0"),
        ({"target_tokens": -1}, ValueError, f"target_tokens {NOT_A_NUMBER} -1"),
        ({"target_tokens": 101}, ValueError, "target_tokens must be at most max_tokens (100), got 101"),
        ({"max_turns": False}, TypeError, f"max_turns {NOT_A_NUMBER} False"),
        ({"min_preserved_messages": None}, TypeError, f"min_preserved_messages {NOT_A_NUMBER} None"),
        ({"evict": "oldest"}, ValueError, "evict must be one of 'turns-then-groups', 'turns', 'groups', got 'oldest'"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        cc.TokenBudgetStrategy(**{"max_tokens": 100, **arguments})
    assert str(caught.value) == text
