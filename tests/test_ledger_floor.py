"""What a compaction never touches (rules K2, K4), and what the format's first message asks for (K7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._floor import Floor
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, result, results, said, step, system, thought, user


@attrs.frozen(kw_only=True)
class Everything(cc.CompactionStrategy):
    """Excludes all that may leave."""

    trigger: cc.Predicate = cc.always
    target: cc.Predicate = cc.never
    min_preserved_groups: int = 1

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.evict(index, self.candidates(index), "everything")


def index_of(messages: Sequence[Any], **arguments: Any) -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(messages, counter=characters_counter(), **arguments)


def left(messages: Sequence[Any], strategy: cc.CompactionStrategy, **arguments: Any) -> list[int]:
    """The positions that a strategy keeps."""
    index = index_of(messages, **arguments)
    strategy.compact(index, hooks=())
    return index.included_positions()


def reasons(messages: Sequence[Any], floor: Floor | None = None, **arguments: Any) -> dict[int, str]:
    """By the first position of each protected group: why."""
    return (floor or Floor(min_preserved_groups=1)).protect(index_of(messages, **arguments)._ledger)


# -- K2 and K4 --------------------------------------------------------------------------------------


def test_the_newest_group_never_leaves() -> None:
    """K2: no pass empties a conversation, with the smallest floor that can be asked for."""
    smallest = Everything(min_preserved_groups=0, keep_last_user=False, preserve_system=False)
    assert left([system(), user(), said(), *step("a")], smallest) == [3, 4]
    assert left([user()], smallest) == [0]
    # The newest that is no system group.
    assert left([user(), said(), system()], smallest) == [1]


def test_only_system_messages() -> None:
    """K2 and K4: they stay, and even where they may leave the newest one does: no pass empties a conversation."""
    assert left([system(), system()], Everything()) == [0, 1]
    assert left([system(), system()], Everything(preserve_system=False)) == [1]


@pytest.mark.parametrize(
    ("groups", "kept"), [(0, [7]), (1, [7]), (2, [5, 6, 7]), (3, [4, 5, 6, 7]), (99, list(range(8)))]
)
def test_min_preserved_groups(groups: int, kept: list[int]) -> None:
    """K4: so many of the newest groups that are no system groups; a call and its results are one."""
    messages = [user(), said(), user(), said(), said(), *step("a"), said()]
    assert left(messages, Everything(min_preserved_groups=groups, keep_last_user=False)) == kept


def test_min_preserved_groups_counts_pinned_ones_and_passes_system_ones() -> None:
    """K4: pinned groups count towards the floor; system groups do not, even where they may leave."""
    messages = [user(), said("a"), system(), said("pin"), said("b")]
    two = Everything(min_preserved_groups=2, keep_last_user=False, preserve_system=False)
    assert left(messages, two, pinned=[messages[3]]) == [3, 4]
    assert left(messages, two) == [3, 4]


def test_a_group_is_as_new_as_its_newest_message() -> None:
    """K4: a late result makes its group one of the newest, and an old group leaves in that order."""
    messages = [user("one"), call("a"), user("two"), said("x"), result("a")]
    assert left(messages, Everything(keep_last_user=False)) == [1, 4]
    strategy = cc.TruncationStrategy(trigger=cc.groups > 2, min_preserved_groups=1, keep_last_user=False)
    assert left(messages, strategy) == [1, 3, 4]


@pytest.mark.parametrize(
    ("messages_kept", "kept"), [(0, [6]), (1, [6]), (2, [5, 6]), (3, [2, 3, 4, 5, 6]), (6, [1, 2, 3, 4, 5, 6])]
)
def test_min_preserved_messages(messages_kept: int, kept: list[int]) -> None:
    """K4: so many of the newest messages of any kind, and with each the whole of its group."""
    messages = [said(), said(), *step("a", "b"), said(), said()]
    assert left(messages, Everything(min_preserved_messages=messages_kept)) == kept


def test_min_preserved_messages_counts_system_messages() -> None:
    """K4: of any kind."""
    messages = [user(), said("x"), system(), said("y")]
    assert left(messages, Everything(min_preserved_messages=2, keep_last_user=False)) == [2, 3]
    assert left(messages, Everything(min_preserved_messages=3, keep_last_user=False)) == [1, 2, 3]


def test_the_newest_user_message_stays() -> None:
    """K4: by default the newest that is not pinned, however old it is."""
    messages = [user("one"), user("task"), *step("a"), *step("b"), said()]
    assert left(messages, Everything()) == [1, 6]
    assert left(messages, Everything(keep_last_user=False)) == [6]
    assert left(messages, Everything(), pinned=[messages[1]]) == [0, 1, 6]


def test_words_beside_a_result_are_the_users() -> None:
    """G5 and K4: text in a message with tool results counts for ``keep_last_user``, and its whole group stays."""
    with_words = [
        user("task"),
        call("a", format="anthropic"),
        results("a", text="faster"),
        *anthropic_step("b"),
        said(),
    ]
    assert reasons(with_words) == {5: "floor", 1: "last_user", 0: "first_user"}
    without = [user("task"), *anthropic_step("a"), *anthropic_step("b"), said()]
    assert reasons(without) == {5: "floor", 0: "last_user"}


def test_system_messages_stay_wherever_they_stand() -> None:
    """K4: leading ones, ``developer`` ones, and one in the middle, unless ``preserve_system=False``."""
    messages = [system(), user(), {"role": "developer", "content": "d"}, said(), system(), user(), said()]
    assert left(messages, Everything()) == [0, 2, 4, 5, 6]
    assert left(messages, Everything(preserve_system=False)) == [5, 6]


@pytest.mark.parametrize("how", ["predicate", "ids", "objects"])
def test_pinned_groups_stay(how: str) -> None:
    """K4 and G6: whole, however they are pinned."""
    messages = [user(), call("a"), {**result("a"), "id": "r1"}, said(), user(), said()]
    pinned: Any = {"predicate": lambda message: message.get("id") == "r1", "ids": ["r1"], "objects": [messages[2]]}[how]
    assert left(messages, Everything(), pinned=pinned) == [1, 2, 4, 5]


@pytest.mark.parametrize(("pending_turns", "kept"), [(0, [4, 5]), (1, [3, 4, 5]), (2, [1, 3, 4, 5])])
def test_pending_groups_stay(pending_turns: int, kept: list[int]) -> None:
    """K4 and G3: a call that may still be answered is never touched."""
    messages = [user(), call("a"), user("last"), call("b"), said("x"), said("y")]
    strategy = Everything(keep_last_user=False, min_preserved_groups=2)
    assert left(messages, strategy, pending_turns=pending_turns) == kept


def test_reasoning_at_the_very_end_stays() -> None:
    """K4 and G3: nobody knows yet whose it is."""
    assert reasons([user(), said(), thought()]) == {2: "pending", 0: "last_user"}


def test_why_a_group_stays() -> None:
    """K4: the first reason that holds is the one that a report gives."""
    messages = [system(), user("pin"), said(), user(), call("a"), said()]
    assert reasons(messages, pinned=[messages[1]]) == {
        0: "system",
        1: "pinned",
        3: "last_user",
        4: "pending",
        5: "floor",
    }


def test_what_is_out_already_is_no_part_of_the_floor() -> None:
    """K4: the floor is of what is included, so that a second pass keeps as much as the first."""
    index = index_of([user("one"), said("two"), user("three"), said("four")])
    index.exclude(index.groups[2], "by hand")
    assert Floor(min_preserved_groups=2).protect(index._ledger) == {1: "floor", 3: "floor", 0: "last_user"}


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"min_preserved_groups": -1}, ValueError, "min_preserved_groups must be an int of 0 or more, got -1"),
        ({"min_preserved_groups": True}, TypeError, "min_preserved_groups must be an int of 0 or more, got True"),
        ({"min_preserved_messages": 1.5}, TypeError, "min_preserved_messages must be an int of 0 or more, got 1.5"),
        ({"keep_last_user": 1}, TypeError, "keep_last_user must be True or False, got 1"),
        ({"preserve_system": None}, TypeError, "preserve_system must be True or False, got None"),
    ],
    ids=str,
)
def test_a_floor_that_is_none(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Wrong arguments fail at construction, by name, value and expectation; nothing is clamped in silence."""
    with pytest.raises(error) as caught:
        Everything(**arguments)
    assert str(caught.value) == text


# -- K7 ---------------------------------------------------------------------------------------------

TASK = [user("task"), *anthropic_step("a"), *anthropic_step("b"), *anthropic_step("c")]


def test_a_floor_that_cuts_a_turn_keeps_its_opener() -> None:
    """K7: in Anthropic's format the user message that opened the oldest kept turn joins the floor."""
    assert left(TASK, Everything(keep_last_user=False)) == [0, 5, 6]
    openai = [user("task"), *step("a"), *step("b"), *step("c")]
    assert left(openai, Everything(keep_last_user=False)) == [5, 6]


def test_a_floor_that_begins_with_a_user_needs_no_opener() -> None:
    messages = [user("one"), said(), user("two"), *anthropic_step("a")]
    assert left(messages, Everything()) == [2, 3, 4]


def test_a_pinned_assistant_message_keeps_the_opener_of_its_turn() -> None:
    """K7: a pinned message needs its neighbour; turns behind it need none."""
    messages = [user("one"), said("pin"), said(), user("two"), *anthropic_step("a"), user("three"), said()]
    assert left(messages, Everything(), pinned=[messages[1]]) == [0, 1, 6, 7]
    assert reasons(messages, pinned=[messages[1]]) == {1: "pinned", 7: "floor", 6: "last_user", 0: "first_user"}


def test_a_pinned_users_message_in_front_is_opener_enough() -> None:
    """K7: whatever a user says first will do."""
    messages = [user("pin"), *anthropic_step("a"), user("two"), said("pin"), user("three"), said()]
    assert left(messages, Everything(), pinned=[messages[0], messages[4]]) == [0, 4, 5, 6]


def test_a_system_message_in_front_is_not_the_first() -> None:
    """K7: the rule is about the first message that is no system message."""
    messages = [system(), *TASK]
    assert left(messages, Everything(keep_last_user=False)) == [0, 1, 6, 7]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(7, list(range(7))), (6, [0, 3, 4, 5, 6]), (5, [0, 3, 4, 5, 6]), (4, [0, 5, 6]), (3, [0, 5, 6]), (0, [0, 5, 6])],
)
def test_the_target_is_asked_with_what_must_stay_in(limit: int, kept: list[int]) -> None:
    """K7: while the opener is held back it counts, so that the next legal cut is taken."""
    strategy = cc.TruncationStrategy(trigger=cc.messages > limit, min_preserved_groups=1, keep_last_user=False)
    assert left(TASK, strategy) == kept


def test_an_opener_leaves_with_the_last_of_its_turn() -> None:
    """K7: once the next turn comes first, the held message is gone, and the report counts it."""
    messages = [user("one"), *anthropic_step("a"), user("two"), said()]
    index = index_of(messages)
    report = cc.TruncationStrategy(trigger=cc.messages > 2, min_preserved_groups=1).compact(index, hooks=())
    assert index.included_positions() == [3, 4]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1, 2)]


def test_changed_is_the_net_result() -> None:
    """K7: a message that was only asked to leave, and stayed, did not leave."""
    messages = [user("one"), said("pin"), user("two"), said()]
    index = index_of(messages, format="anthropic", pinned=[messages[1]])
    report = cc.TruncationStrategy(trigger=cc.messages > 3, min_preserved_groups=1).compact(index, hooks=())
    assert (report.changed, report.skipped, report.fits) == (False, "floor", False)

    class Opener(cc.CompactionStrategy):
        """Asks the first message alone to leave."""

        def compact_core(self, index: cc.MessageIndex) -> None:
            assert index.exclude(self.candidates(index)[0], "opener") is False

    other = index_of([user("one"), said("b"), user("two"), said()], format="anthropic")
    report = Opener(trigger=cc.messages > 3, min_preserved_groups=1).compact(other, hooks=())
    assert (report.changed, report.excluded, report.stopped_by) == (False, (), "exhausted")
    assert other.included_positions() == [0, 1, 2, 3]
    # What was held back stays for good: the wish has ended with the pass.
    other.exclude(other.groups[1], "by hand")
    assert other.included_positions() == [0, 2, 3]


def test_an_opener_held_since_before_the_pass_is_in_the_report_when_it_leaves() -> None:
    """K7: it was in the projection when the pass began, and no longer when it ended."""
    index = index_of([user("one"), *anthropic_step("a"), user("two"), said()])
    assert index.exclude(index.groups[0], "by hand") is False
    index.value(cc.tokens)
    report = cc.TruncationStrategy(trigger=cc.messages > 2, min_preserved_groups=1).compact(index, hooks=())
    assert index.included_positions() == [3, 4]
    assert [exclusion.positions for exclusion in report.excluded] == [(0,), (1, 2)]
    assert (report.messages_before, report.first_changed) == (5, 0)
    assert report.tokens_before - report.tokens_after == 3 + 4


def test_a_list_that_never_began_with_a_user_begins_with_one_after_a_cut() -> None:
    """K7: invalid in, never worse out; where a cut is made anyway, it is made where the format allows."""
    messages = [*anthropic_step("a"), said("b"), user("two"), said()]
    index = index_of(messages)
    assert [problem.rule for problem in index.problems] == ["first_user"]
    report = cc.TruncationStrategy(trigger=cc.messages > 4, min_preserved_groups=1).compact(index, hooks=())
    assert index.included_positions() == [3, 4]
    assert [exclusion.reason for exclusion in report.excluded] == ["truncation", "first_user"]


def test_a_leading_message_of_the_floor_stays_where_it_is() -> None:
    """K4 goes before K7: what may not leave may not leave for the format's sake either."""
    messages = [said("a"), said("pin"), said("b"), user("two"), said()]
    strategy = cc.TruncationStrategy(trigger=cc.messages > 4, min_preserved_groups=1)
    assert left(messages, strategy, format="anthropic", pinned=[messages[1]]) == [1, 2, 3, 4]


def test_an_untouched_list_is_not_repaired() -> None:
    """K1 and K7: where nothing leaves, a list that breaks the rule is given back as it is, with its problem."""
    messages = [said("a"), user("two"), said()]
    index = index_of(messages, format="anthropic")
    report = cc.TruncationStrategy(trigger=cc.messages > 9).compact(index, hooks=())
    assert index.included_positions() == [0, 1, 2]
    assert [problem.rule for problem in report.problems] == ["first_user"]


def test_a_list_that_began_with_a_users_message_still_does() -> None:
    """K7: an invalid list never gets worse: an orphan in front is a user's message, and what follows it is not."""
    messages = [results("nobody"), said("pin"), user("one"), said(), user("two"), said()]
    kept = left(messages, Everything(), pinned=[messages[1]])
    assert messages[kept[0]]["role"] == "user"
