"""Grouping: which messages stay or leave together (rules G1 to G6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction import GroupKind
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, result, results, said, signed, step, system, thought, user

SERVER = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "found"},
    ],
}


def index_of(messages: Sequence[Any], **arguments: Any) -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(messages, counter=characters_counter(), **arguments)


def grouped(messages: Sequence[Any], **arguments: Any) -> list[tuple[int, ...]]:
    """The positions of each group."""
    return [group.positions for group in index_of(messages, **arguments).groups]


def kinds(messages: Sequence[Any], **arguments: Any) -> list[str]:
    return [group.kind.value for group in index_of(messages, **arguments).groups]


def turns(messages: Sequence[Any], **arguments: Any) -> list[int]:
    return [group.turn for group in index_of(messages, **arguments).groups]


def pending(messages: Sequence[Any], **arguments: Any) -> list[tuple[int, ...]]:
    return [group.positions for group in index_of(messages, **arguments).groups if group.pending]


def problems(messages: Sequence[Any], **arguments: Any) -> list[tuple[int, str]]:
    return [(problem.position, problem.rule) for problem in index_of(messages, **arguments).problems]


# -- G1, G2: groups ---------------------------------------------------------------------------------


def test_an_empty_list_has_no_groups() -> None:
    """G1: nothing is in no group."""
    index = index_of([])
    assert (index.groups, index.included_messages(), index.problems) == ((), [], ())


def test_each_plain_message_is_a_group() -> None:
    """G1: messages that no call ties together are groups of their own."""
    messages = [system(), user(), said(), said(), user()]
    assert grouped(messages) == [(0,), (1,), (2,), (3,), (4,)]
    assert kinds(messages) == ["system", "user", "assistant", "assistant", "user"]


@pytest.mark.parametrize(
    ("messages", "expected", "late"),
    [
        ([user(), *step("a")], [(0,), (1, 2)], []),
        ([user(), *step("a", "b", "c")], [(0,), (1, 2, 3, 4)], []),
        ([user(), call("a", "b"), result("b"), result("a")], [(0,), (1, 2, 3)], []),
        ([user(), call("a", "b"), result("b"), user("quick!"), result("a")], [(0,), (1, 2, 4), (3,)], [4]),
        ([user(), call("a"), call("b"), result("b"), result("a")], [(0,), (1, 4), (2, 3)], [4]),
        (
            [user(), call("a"), *step("b"), *step("c"), user(), said(), result("a")],
            [(0,), (1, 8), (2, 3), (4, 5), (6,), (7,)],
            [8],
        ),
        ([user(), call("a"), system("reminder"), result("a")], [(0,), (1, 3), (2,)], [3]),
    ],
    ids=["one", "parallel", "any order", "a user between", "interleaved", "far away", "a system message between"],
)
def test_a_call_and_its_results_are_one_group(
    messages: list[Any], expected: list[tuple[int, ...]], late: list[int]
) -> None:
    """G2: by id, at any distance, in any order, whatever stands between; the provider refuses what is far, though."""
    assert grouped(messages) == expected
    assert problems(messages) == [(position, "not_adjacent") for position in late]


def test_an_id_that_is_used_again_is_a_new_occurrence() -> None:
    """G2: a result belongs to the newest earlier call of its id that is still open."""
    assert grouped([user(), *step("a"), *step("a"), *step("a")]) == [(0,), (1, 2), (3, 4), (5, 6)]
    # Two calls are open: the first result answers the newer one, the second the older one.
    assert grouped([user(), call("a"), call("a"), result("a"), result("a")]) == [(0,), (1, 4), (2, 3)]


def test_the_same_id_twice_in_one_message() -> None:
    """G2: two occurrences, each with a result of its own, and no duplicate among them."""
    assert grouped([user(), call("a", "a"), result("a"), result("a"), result("a")]) == [(0,), (1, 2, 3, 4)]
    assert problems([user(), call("a", "a"), result("a"), result("a")]) == []
    assert problems([user(), call("a", "a"), result("a"), result("a"), result("a")]) == [(4, "duplicate_result")]
    assert pending([user(), call("a", "a"), result("a")]) == [(1, 2)]


def test_a_call_that_is_answered_in_its_own_message() -> None:
    """G2: what the provider runs itself is called and answered in one message."""
    assert grouped([user(), SERVER, user()]) == [(0,), (1,), (2,)]
    assert kinds([user(), SERVER, user()]) == ["user", "tool_call", "user"]
    assert pending([user(), SERVER]) == []
    assert problems([user(), SERVER, user()]) == []


def test_a_result_of_a_server_tool_ahead_of_its_call_answers_an_older_one() -> None:
    """G2: within a message too, a result looks back."""
    blocks = [SERVER["content"][1], SERVER["content"][0]]
    open_call = {"role": "assistant", "content": [SERVER["content"][0]]}
    backwards = {"role": "assistant", "content": blocks}
    assert grouped([user(), open_call, backwards]) == [(0,), (1, 2)]
    assert pending([user(), open_call, backwards]) == [(1, 2)]
    assert problems([user(), backwards]) == [(1, "orphan_result")]


def test_a_result_before_its_call() -> None:
    """G2 and G4: a result looks back, never ahead; so it is an orphan, and the call waits."""
    messages = [user(), result("a"), call("a"), user(), said()]
    assert grouped(messages) == [(0,), (1,), (2,), (3,), (4,)]
    assert kinds(messages) == ["user", "orphan", "tool_call", "user", "assistant"]
    assert problems(messages) == [(1, "orphan_result"), (2, "unanswered_call")]


def test_a_message_that_answers_calls_of_several_groups_joins_them() -> None:
    """G2: one message cannot leave in parts, so its groups are one, at the place of the oldest."""
    calls = [call("a", format="anthropic"), user("wait"), call("b", format="anthropic")]
    messages = [user(), *calls, said(), results("b", "a")]
    assert grouped(messages) == [(0,), (1, 3, 5), (2,), (4,)]
    assert turns(messages) == [1, 1, 2, 2]


def test_joined_groups_share_pins_and_open_calls() -> None:
    """G2, G3 and G6: what holds one of the groups holds the one that they become."""
    one, other = call("a", "c", format="anthropic"), call("b", format="anthropic")
    (_, joined) = index_of([user(), one, other, results("a", "b")], pinned=[other]).groups
    assert joined.positions == (1, 2, 3)
    assert (joined.pinned, joined.pending, joined.kind) == (True, True, GroupKind.TOOL_CALL)


def test_a_larger_younger_group_is_joined_at_the_place_of_the_older() -> None:
    """G2 and G5: whichever group is larger, the whole belongs to the turn of its first message."""
    many = [call("b", "c", "d", format="anthropic"), results("b"), results("c")]
    messages = [user(), call("a", format="anthropic"), user(), *many, results("a", "d"), said()]
    assert grouped(messages) == [(0,), (1, 3, 4, 5, 6), (2,), (7,)]
    assert turns(messages) == [1, 1, 2, 2]


def test_a_late_result_makes_an_old_group_grow() -> None:
    """G2: groups handed out are frozen; the index knows the group by its first message all the same."""
    index = index_of([user(), call("a", "b"), result("a"), user(), said()], pending_turns=2)
    before = index.groups[1]
    index.extend([result("b")])
    assert before.positions == (1, 2)
    assert index.groups[1].positions == (1, 2, 5)
    assert index.messages_of(before) == index.messages_of(index.groups[1])
    assert before.newest == 2
    assert index.groups[1].newest == 5


# -- G2, G3: reasoning ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user(), thought(), said()], [(0,), (1, 2)]),
        ([user(), thought(), *step("a")], [(0,), (1, 2, 3)]),
        ([user(), thought(), thought(), said(), said()], [(0,), (1, 2, 3), (4,)]),
        ([user(), thought(), user(), said()], [(0,), (1,), (2,), (3,)]),
        ([user(), *step("a"), thought(), *step("b")], [(0,), (1, 2), (3, 4, 5)]),
        ([user(), call("a"), thought(), result("a"), said()], [(0,), (1, 3), (2,), (4,)]),
    ],
    ids=["an answer", "calls", "several", "a user between", "behind results", "before a result"],
)
def test_reasoning_is_tied_to_the_message_that_follows(messages: list[Any], expected: list[tuple[int, ...]]) -> None:
    """G2: a reasoning-only message belongs to the assistant's message directly behind it."""
    assert grouped(messages) == expected


def test_reasoning_at_the_very_end_waits() -> None:
    """G3: until the next message tells whose it is, it is pending; then it is tied, or it stands alone."""
    index = index_of([user(), thought()])
    assert [group.pending for group in index.groups] == [False, True]
    index.extend([call("a")])
    assert [(g.positions, g.kind, g.pending) for g in index.groups[1:]] == [((1, 2), GroupKind.TOOL_CALL, True)]

    other = index_of([user(), thought()])
    other.extend([user("never mind")])
    assert [(group.positions, group.pending) for group in other.groups] == [((0,), False), ((1,), False), ((2,), False)]


def test_reasoning_waits_even_with_no_pending_turns() -> None:
    """G3: ``pending_turns`` is about calls; whose reasoning this is nobody knows yet."""
    assert pending([user(), thought()], pending_turns=0) == [(1,)]


# -- G3: pending ------------------------------------------------------------------------------------

DANGLING = [user(), call("a"), user(), call("b"), said(), user(), call("c", "d"), result("c")]


@pytest.mark.parametrize(
    ("pending_turns", "expected"),
    [(0, []), (1, [(6, 7)]), (2, [(3,), (6, 7)]), (3, [(1,), (3,), (6, 7)]), (9, [(1,), (3,), (6, 7)])],
)
def test_calls_wait_in_the_newest_turns(pending_turns: int, expected: list[tuple[int, ...]]) -> None:
    """G3: a call without a result is pending in so many of the newest turns; later it is an ordinary group."""
    assert pending(DANGLING, pending_turns=pending_turns) == expected


def test_an_unanswered_call_is_a_problem_once_it_no_longer_waits() -> None:
    """G3: what may still come is no problem; what never came is one, by its position."""
    assert problems(DANGLING) == [(1, "unanswered_call"), (3, "unanswered_call")]
    assert problems(DANGLING, pending_turns=0)[-1] == (6, "unanswered_call")
    assert problems(DANGLING, pending_turns=3) == []


def test_a_group_no_longer_waits_once_it_is_answered() -> None:
    """G3: the last result ends it."""
    index = index_of([user(), call("a", "b")])
    for call_id, waits in (("b", True), ("a", False)):
        index.extend([result(call_id)])
        assert index.groups[1].pending is waits


def test_a_bad_call_welds_nothing_together() -> None:
    """G3: the messages behind an unanswered call are groups of their own, and may leave."""
    messages = [user(), call("a"), user(), *step("b"), said(), user(), said()]
    assert grouped(messages) == [(0,), (1,), (2,), (3, 4), (5,), (6,), (7,)]
    index = index_of(messages)
    cc.TruncationStrategy(trigger=cc.messages > 2, min_preserved_groups=1).compact(index, hooks=())
    assert index.included_positions() == [6, 7]


def test_calls_before_the_first_turn_wait_too() -> None:
    """G3: with no turn yet, turn 0 is the newest."""
    assert pending([call("a")]) == [(0,)]
    assert pending([call("a"), user()]) == []


# -- G4: orphans and duplicates ---------------------------------------------------------------------


def test_an_orphan_is_a_group_of_its_own_and_a_problem() -> None:
    """G4: a result whose id was never called."""
    index = index_of([user(), result("nobody"), said()])
    assert [group.kind for group in index.groups] == [GroupKind.USER, GroupKind.ORPHAN, GroupKind.ASSISTANT]
    (problem,) = index.problems
    assert problem == cc.Problem(1, "orphan_result", "a result for the call 'nobody', which was never made before")


def test_orphans_of_one_id_are_groups_of_their_own() -> None:
    """G4: they have no call that could tie them."""
    assert grouped([user(), result("x"), result("x")]) == [(0,), (1,), (2,)]
    assert grouped([user(), results("x", "y")]) == [(0,), (1,)]


def test_an_orphan_beside_an_answer_joins_the_answered_group() -> None:
    """G2 and G4: one message, one group; the orphan in it is reported."""
    messages = [user(), call("a", format="anthropic"), results("a", "x"), said()]
    assert grouped(messages) == [(0,), (1, 2), (3,)]
    assert problems(messages) == [(2, "orphan_result")]


def test_a_second_result_joins_the_newest_call_of_its_id() -> None:
    """G4: it is kept with the call that it is about, and reported."""
    messages = [user(), *step("a"), *step("a"), said(), result("a")]
    assert grouped(messages) == [(0,), (1, 2), (3, 4, 6), (5,)]
    assert problems(messages) == [(6, "duplicate_result")]


def test_a_second_result_finds_an_older_open_call_first() -> None:
    """G2 before G4: as long as one call of the id is open, a result is no duplicate."""
    messages = [user(), call("a"), *step("a"), result("a")]
    assert grouped(messages) == [(0,), (1, 4), (2, 3)]
    assert problems(messages) == [(4, "not_adjacent")]


def test_results_twice_in_one_message() -> None:
    """G4: the second of two results for one call is a duplicate, and stays with the first."""
    messages = [user(), call("a", format="anthropic"), results("a", "a")]
    assert grouped(messages) == [(0,), (1, 2)]
    assert problems(messages) == [(2, "duplicate_result")]


def test_problems_stand_by_position() -> None:
    """The order of problems is that of the messages, whatever found them."""
    messages = [call("a"), result("x"), result("x"), user(), said()]
    assert problems(messages) == [(0, "unanswered_call"), (1, "orphan_result"), (2, "orphan_result")]


# -- G5: turns and system messages ------------------------------------------------------------------


def test_turns_begin_with_a_users_message() -> None:
    """G5: turn 0 is what comes before the first; each message of the user opens one."""
    assert turns([said(), user(), said(), *step("a"), user(), user(), said()]) == [0, 1, 1, 1, 2, 3, 3]


def test_a_group_belongs_to_the_turn_of_its_first_message() -> None:
    """G5: a late result takes no group to another turn."""
    assert turns([user(), call("a"), user(), result("a"), said()]) == [1, 1, 2, 2]


def test_results_inside_a_users_message_open_no_turn() -> None:
    """G5: with text beside them or not, they belong to the call's group."""
    messages = [user(), *anthropic_step("a"), call("b", format="anthropic"), results("b", text="and hurry"), said()]
    assert grouped(messages) == [(0,), (1, 2), (3, 4), (5,)]
    assert turns(messages) == [1, 1, 1, 1]
    assert kinds(messages) == ["user", "tool_call", "tool_call", "assistant"]


def test_an_orphan_in_a_users_message_opens_no_turn() -> None:
    """G5: it carries a result, whoever made the call."""
    assert turns([user(), results("x", text="look"), said()]) == [1, 1, 1]
    assert kinds([user(), results("x", text="look")]) == ["user", "orphan"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_messages_anywhere_are_system_groups(role: str) -> None:
    """G5: ``developer`` is system; one in the middle opens no turn and ends none."""
    messages = [{"role": role, "content": "a"}, user(), {"role": role, "content": "b"}, said(), user()]
    assert kinds(messages) == ["system", "user", "system", "assistant", "user"]
    index = index_of(messages)
    assert index.value(cc.turns) == 2


def test_a_turn_of_system_messages_alone_does_not_count() -> None:
    """G5: system groups belong to no turn, wherever they stand."""
    index = index_of([user(), system(), user(), said()])
    index.exclude(index.groups[0], "by hand")
    assert index.value(cc.turns) == 1


# -- G6: pins ---------------------------------------------------------------------------------------


def test_a_pinned_message_pins_its_group() -> None:
    """G6: the results of a pinned call stay with it, and the call of a pinned result."""
    messages = [user(), *step("a"), *step("b"), said()]
    assert [g.pinned for g in index_of(messages, pinned=[messages[1]]).groups] == [False, True, False, False]
    assert [g.pinned for g in index_of(messages, pinned=[messages[4]]).groups] == [False, False, True, False]


def test_pins_by_id() -> None:
    """G6: ids are those of messages, where a message has one."""
    messages = [{**user(), "id": "m1"}, said(), {**said(), "id": "m2"}]
    assert [g.pinned for g in index_of(messages, pinned={"m2"}).groups] == [False, False, True]


def test_pins_by_predicate() -> None:
    """G6: a predicate sees the caller's own message."""
    messages = [user("KEEP this"), said(), user()]
    index = index_of(messages, pinned=lambda message: "KEEP" in message["content"])
    assert [group.pinned for group in index.groups] == [True, False, False]


def test_a_pinned_users_message_opens_no_turn() -> None:
    """G5 and G6: what follows it belongs to the turn before."""
    messages = [user(), said(), user("pinned"), said(), user(), said()]
    assert turns(messages, pinned=[messages[2]]) == [1, 1, 1, 1, 2, 2]
    index = index_of(messages, pinned=[messages[0], messages[1], messages[2]])
    # Turn 0 is not counted, and pinned groups count towards no turn.
    assert index.value(cc.turns) == 1


# -- the values -------------------------------------------------------------------------------------


def test_groups_are_values() -> None:
    """Frozen, equal whether they are counted or not, printed as the code that makes them."""
    index = index_of([user(), *step("a"), signed()])
    before = index.groups
    index.total(cc.tokens)
    assert index.groups == before
    assert [group.tokens for group in before] == [None, None, None]
    assert [group.tokens for group in index.groups] == [8, 4, 8]
    names = {"MessageGroup": cc.MessageGroup, "GroupKind": cc.GroupKind}
    assert eval(repr(index.groups[1]), names) == index.groups[1]  # noqa: S307
    with pytest.raises(AttributeError):
        index.groups[0].turn = 3  # type: ignore[misc]


def test_a_waiting_call_in_a_group_that_began_in_an_older_turn() -> None:
    """G3: what counts is the turn of the call that waits, not that of the group it was joined to."""

    def use(*ids: str) -> dict[str, Any]:
        calls = [{"type": "tool_use", "id": name, "name": "look", "input": {}} for name in ids]
        return {"role": "assistant", "content": calls}

    answers = [{"type": "tool_result", "tool_use_id": name, "content": "done"} for name in ("slow", "b")]
    history = [
        {"role": "user", "content": "one"},
        use("slow"),
        {"role": "user", "content": "two"},
        use("b", "approval"),
        {"role": "user", "content": answers},
        {"role": "assistant", "content": "waiting"},
    ]
    index = cc.MessageIndex.from_messages(history, format="anthropic")
    assert [group.positions for group in index.groups if group.pending] == [(1, 3, 4)]
    old = cc.MessageIndex.from_messages([*history, {"role": "user", "content": "three"}], format="anthropic")
    assert not any(group.pending for group in old.groups)
