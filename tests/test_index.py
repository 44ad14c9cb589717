"""The index: what is in and what is out, and the totals of both (G1, G2, C1 to C4, K2, K7, K8)."""

from __future__ import annotations

from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter
from tests.build import anthropic_step, call, index_of, result, results, said, step, system, thought, user

METRICS = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
AGENT = [system(), user("one"), *step("a", "b"), said(), user("two"), *step("c"), said("done")]


def values(index: cc.MessageIndex) -> list[int]:
    return [index.value(metric) for metric in METRICS]


def totals(index: cc.MessageIndex) -> list[int]:
    return [index.total(metric) for metric in METRICS]


# -- metrics ----------------------------------------------------------------------------------------


def test_metrics() -> None:
    """Each counts what is included, system messages too; ``tokens`` also what is reserved."""
    index = index_of(AGENT, reserved=100)
    assert values(index) == [100 + 5 + 3 + 8 + 6 + 3 + 4 + 4, 10, 7, 2, 2]
    assert totals(index) == values(index)
    assert len(index) == 10


def test_totals_follow_what_is_in_and_out() -> None:
    """An exclusion changes what is included and never the whole; ``include`` undoes it."""
    index = index_of(AGENT)
    before = values(index)
    _, first, tools, *_ = index.groups
    assert index.exclude(tools, "by hand") is True
    assert values(index) == [33 - 8, 7, 6, 2, 1]
    index.exclude(first, "by hand")
    # "answer" still stands in turn 1.
    assert values(index) == [33 - 11, 6, 5, 2, 1]
    index.exclude(index.groups[3], "by hand")
    assert values(index) == [16, 5, 4, 1, 1]
    assert totals(index) == before
    index.include(tools)
    assert index.included_positions() == [0, 2, 3, 4, 6, 7, 8, 9]
    index.include_all()
    assert values(index) == before
    assert [group.excluded for group in index.groups] == [None] * 7


def test_pinned_groups_count_but_towards_no_turn() -> None:
    """A turn counts while one of its unpinned groups is included."""
    index = index_of([user(), said(), user("pinned")], pinned=lambda message: message["content"] == "pinned")
    assert values(index) == [8 + 6 + 6, 3, 3, 1, 0]


def test_turn_zero_is_not_counted() -> None:
    """What comes before the first turn may leave, and ``turns`` does not count it."""
    assert index_of([said(), said(), user()]).value(cc.turns) == 1


@pytest.mark.parametrize("method", ["value", "total", "known"])
def test_a_metric_must_be_one(method: str) -> None:
    """The error names the argument and what was expected."""
    with pytest.raises(TypeError, match=r"^metric must be one of the metrics .*, got 'tokens'$"):
        getattr(index_of([]), method)("tokens")


# -- C1: what is counted ----------------------------------------------------------------------------


def test_what_is_sent_counts() -> None:
    """C1: text, names, arguments, results, reasoning, and the format's overhead; null content is zero."""
    messages = [{**user("hi"), "name": "Ann"}, {**call("a"), "reasoning_content": "why"}, result("a", "ok"), said("")]
    index = index_of(messages, counter=len)
    index.total(cc.tokens)
    # 4 a message; "hi" and "Ann"; "look", "{}" and "why"; "ok"; nothing.
    assert [group.tokens for group in index.groups] == [4 + 5, 4 + 9 + 4 + 2, 4]


def test_media_count_flat() -> None:
    """C1: by a rule that can be set, never by the length of the base64."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    message = {"role": "user", "content": [image, {"type": "text", "text": "look"}]}
    assert index_of([message], counter=len).value(cc.tokens) == 4 + 4 + cc.counters.OpenAIMediaCosts().image
    assert index_of([message], counter=len, media_costs=cc.MediaCosts(image=7)).value(cc.tokens) == 4 + 4 + 7


# -- C4: counting late ------------------------------------------------------------------------------


def test_nothing_is_counted_until_somebody_asks() -> None:
    """C4: neither reading, nor grouping, nor excluding, nor looking counts."""
    counter = RecordingCounter()
    index = index_of(AGENT, counter=counter)
    index.exclude(index.groups[1], "by hand")
    index.extend([user("more")])
    assert (index.groups, index.problems, index.snapshot(), repr(index)) is not None
    assert [index.value(metric) for metric in METRICS[1:]] == [10, 7, 3, 2]
    assert index.exceeds(cc.messages, 3)
    assert index.known(cc.tokens) == (0, False)
    assert counter.counted == []


def test_only_what_is_included_is_counted_and_once() -> None:
    """C2 and C4: what left uncounted stays uncounted; what was counted is remembered, by content."""
    counter = RecordingCounter()
    index = index_of([user("one"), said("same"), user("two"), said("same")], counter=counter)
    index.exclude(index.groups[0], "by hand")
    assert index.value(cc.tokens) == 11
    assert index.value(cc.tokens) == 11
    assert sorted(counter.counted) == ["same", "two"]
    assert index.known(cc.tokens) == (11, True)
    assert index.groups[0].tokens is None
    assert index.total(cc.tokens) == 14
    assert sorted(counter.counted) == ["one", "same", "two"]


def test_what_comes_back_uncounted_is_counted_then() -> None:
    """C4: an included group that was never counted makes the number a lower bound until somebody asks."""
    index = index_of([user("one"), said("answer"), user("two")])
    index.exclude(index.groups[0], "by hand")
    index.value(cc.tokens)
    index.include(index.groups[0])
    assert index.known(cc.tokens) == (9, False)
    assert index.value(cc.tokens) == 12


def test_a_limit_that_is_exceeded_already_needs_no_counting() -> None:
    """C4: counts are not negative, so a lower bound may decide."""
    counter = RecordingCounter()
    index = index_of([user("one"), said("answer")], counter=counter, reserved=50)
    assert index.exceeds(cc.tokens, 49)
    assert counter.counted == []
    assert not index.exceeds(cc.tokens, 59)
    assert counter.counted == ["answer", "one"]


def test_a_counter_that_fails_leaves_the_index_as_it_was() -> None:
    """C4 and K9: the error passes through, and the next question is asked anew."""
    numbers = iter([3, -1, 3, 6])
    index = index_of([user("one"), said("answer")], counter=lambda text: next(numbers))
    with pytest.raises(cc.CounterError):
        index.value(cc.tokens)
    assert index.known(cc.tokens) == (0, False)
    assert index.value(cc.tokens) == 4 + 3 + 4 + 6


def test_the_tokens_of_one_group() -> None:
    """C4: counted when somebody asks, and nothing else with it."""
    counter = RecordingCounter()
    index = index_of([user("one"), *step("a"), said("answer")], counter=counter)
    assert index.tokens_of(index.groups[1]) == index.tokens_of(index.groups[1]) == 4
    assert counter.counted == ["seen"]
    assert [group.tokens for group in index.groups] == [None, 4, None]
    index.exclude(index.groups[0], "by hand")
    assert index.tokens_of(index.groups[0]) == 3
    assert (index.value(cc.tokens), index.total(cc.tokens)) == (10, 13)


def test_counters_never_share() -> None:
    """C2: two indexes of one list, each with its own counter."""
    long, short = index_of(AGENT), index_of(AGENT, counter=lambda text: 1)
    assert long.value(cc.tokens) == 33
    assert short.value(cc.tokens) != 33
    assert long.counter.name == "characters"


# -- excluding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "why"), [(0, "system"), (2, "pinned"), (5, "pending"), (6, "newest")], ids=lambda value: str(value)
)
def test_what_must_stay_is_refused(place: int, why: str) -> None:
    """K2 and K4: also by hand, system, pinned and pending groups and the newest one stay."""
    messages = [system(), user(), said("pin"), said(), user(), call("a"), said()]
    index = index_of(messages, pinned=[messages[2]])
    before = index.snapshot()
    with pytest.raises(cc.ProtectedGroupError, match=rf"^group must be one that may leave, .*: {why}$"):
        index.exclude(index.groups[place], "by hand")
    assert index.snapshot() == before


def test_the_newest_is_the_newest_that_is_included() -> None:
    """K2: one after the other, everything may leave but the last."""
    index = index_of([user(), said(), system()])
    index.exclude(index.groups[0], "by hand")
    with pytest.raises(cc.ProtectedGroupError, match="newest"):
        index.exclude(index.groups[1], "by hand")


@pytest.mark.parametrize("reason", ["", None, 7])
def test_a_reason_is_a_text(reason: Any) -> None:
    """The report shows why each group left."""
    index = index_of(AGENT)
    with pytest.raises(ValueError, match=r"^reason must be a text that says why, got "):
        index.exclude(index.groups[1], reason)


def test_the_first_reason_stands() -> None:
    """A group that is out already left for the reason it left for."""
    index = index_of(AGENT)
    index.exclude(index.groups[1], "first")
    assert index.exclude(index.groups[1], "second") is True
    assert index.groups[1].excluded == "first"


@pytest.mark.parametrize("group", [None, 3, "group", user()], ids=str)
def test_a_group_must_be_one(group: Any) -> None:
    index = index_of(AGENT)
    for method in (index.include, index.messages_of, lambda g: index.exclude(g, "why")):
        with pytest.raises(TypeError, match=r"^group must be a MessageGroup of this index, got "):
            method(group)


def test_a_group_of_a_longer_history_is_refused() -> None:
    """A snapshot of another index is refused where that can be seen."""
    group = index_of(AGENT).groups[-1]
    with pytest.raises(ValueError, match=r"^group must be a MessageGroup of this index as it is now, got "):
        index_of(AGENT[:3]).include(group)


def test_the_caller_gets_his_own_objects() -> None:
    """G1 and K8: in their order, in a list of his own."""
    index = index_of(AGENT)
    index.exclude(index.groups[2], "by hand")
    projected = index.included_messages()
    assert [id(message) for message in projected] == [id(AGENT[p]) for p in index.included_positions()]
    projected.clear()
    assert len(index.included_messages()) == 7
    assert index.messages_of(index.groups[2]) == AGENT[2:5]


# -- G2: results of what left -----------------------------------------------------------------------


def test_a_result_of_an_excluded_call_is_excluded_with_it() -> None:
    """G2: it arrives, belongs to a group that is out, and stays out."""
    index = index_of([user(), call("a"), user(), said()])
    index.exclude(index.groups[1], "by hand")
    index.extend([result("a"), said("more")])
    assert index.included_positions() == [0, 2, 3, 5]
    assert index.groups[1].positions == (1, 4)
    assert index.groups[1].excluded == "by hand"
    assert values(index) == [8 + 8 + 6 + 4, 4, 4, 2, 0]


def test_a_message_between_an_excluded_call_and_an_included_one_brings_both_back() -> None:
    """G2: the included side wins, the other comes back, and the report shows it."""
    messages = [user(), call("a", format="anthropic"), user(), call("b", format="anthropic"), user(), said()]
    index = index_of(messages, pending_turns=0)
    index.exclude(index.groups[1], "by hand")
    index.extend([results("a", "b")])
    assert index.included_positions() == list(range(7))
    # Results that stand so far from their calls are a problem of their own.
    assert [(p.position, p.rule) for p in index.problems if p.rule != "not_adjacent"] == [(6, "rejoined")]


def test_two_excluded_calls_answered_at_once_stay_out() -> None:
    """G2: nothing of it is included, so nothing comes back."""
    messages = [user(), call("a", format="anthropic"), user(), call("b", format="anthropic"), user(), said()]
    index = index_of(messages, pending_turns=0)
    index.exclude(index.groups[1], "first")
    index.exclude(index.groups[3], "second")
    index.extend([results("a", "b"), said("more")])
    assert index.included_positions() == [0, 2, 4, 5, 7]
    assert index.groups[1].excluded == "first"
    assert {problem.rule for problem in index.problems} == {"not_adjacent"}


# -- K7: the first message --------------------------------------------------------------------------


def test_the_opener_is_held_back_until_what_needs_it_has_left() -> None:
    """K7: in Anthropic's format a list begins with a user's message, also while it is cut by hand."""
    index = index_of([user(), *anthropic_step("a"), *anthropic_step("b"), user("two"), said()])
    opener, first, second, *_ = index.groups
    assert index.exclude(opener, "by hand") is False
    assert index.exclude(first, "by hand") is True
    assert index.included_positions() == [0, 3, 4, 5, 6]
    assert index.groups[0].excluded is None
    assert index.exclude(second, "by hand") is True
    assert index.included_positions() == [5, 6]
    assert index.groups[0].excluded == "by hand"
    # And back it comes with what needs it.
    index.include(second)
    assert index.included_positions() == [0, 3, 4, 5, 6]
    assert values(index) == [8 + 4 + 3 + 6, 5, 4, 2, 1]


def test_a_held_opener_that_is_included_again_is_there_for_good() -> None:
    """K7: asking for it ends the holding."""
    index = index_of([user(), *anthropic_step("a"), user("two"), said()])
    opener, first, *_ = index.groups
    index.exclude(opener, "by hand")
    index.include(opener)
    index.exclude(first, "by hand")
    assert index.included_positions() == [0, 3, 4]


def test_a_held_opener_that_becomes_part_of_a_group() -> None:
    """K7 and G2: a user's message with a call in it, which no provider takes, is counted like any other."""
    odd = {"role": "user", "content": [*user_text("do it"), *call("u", format="anthropic")["content"]]}
    index = index_of([odd, said("a"), said("b"), user(), said()], format="anthropic", pending_turns=0)
    assert index.exclude(index.groups[0], "by hand") is False
    index.extend([call("v", format="anthropic"), results("u", "v")])
    assert len(index.included_messages()) == index.value(cc.messages) == 7
    assert index.value(cc.groups) == len([group for group in index.groups if group.excluded is None])
    assert index.value(cc.tool_groups) == 1


def user_text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


# -- for people -------------------------------------------------------------------------------------


def test_repr_is_one_line_and_counts_nothing() -> None:
    counter = RecordingCounter()
    index = index_of([user("one"), said("two"), user("three")], counter=counter)
    index.exclude(index.groups[0], "by hand")
    assert repr(index) == "<MessageIndex openai_chat: 2 of 3 messages in 2 of 3 groups, at least 0 tokens>"
    assert counter.counted == []
    index.value(cc.tokens)
    assert repr(index) == "<MessageIndex openai_chat: 2 of 3 messages in 2 of 3 groups, 8 tokens>"


def test_the_table_shows_every_group() -> None:
    messages = [system("s" * 1200), user("one"), *step("a", "b"), user("two"), said("pin"), call("c")]
    index = index_of(messages, pinned=[messages[6]])
    index.exclude(index.groups[1], "by hand")
    assert index.table().splitlines() == [
        "messages  kind       turn  tokens  state",
        "0         system        0   1,200",
        "1         user          1       3  excluded: by hand",
        "2-4       tool_call     1       8",
        "5         user          2       3",
        "6         assistant     2       3  pinned",
        "7         tool_call     2       0  pending",
    ]


def test_a_snapshot_is_a_value() -> None:
    """Equal states are equal, counted or not; another state is another value."""
    one, other = index_of(AGENT), index_of(AGENT)
    one.total(cc.tokens)
    before = one.snapshot()
    assert before == other.snapshot()
    one.exclude(one.groups[1], "by hand")
    assert one.snapshot() != before
    one.include_all()
    assert one.snapshot() == before
    assert before.format == "openai_chat"
    assert index_of(AGENT, reserved=1).snapshot() != before


def test_reasoning_that_is_tied_later_keeps_the_totals() -> None:
    """G2: a group that grows is counted in its new size."""
    index = index_of([user("one"), thought("hm")])
    assert values(index) == [5, 2, 2, 1, 0]
    index.extend([call("a")])
    assert values(index) == [5, 3, 2, 1, 1]


def test_a_group_of_another_state_is_refused() -> None:
    """A snapshot of what is grouped otherwise now would exclude something that nobody meant."""
    index = index_of([user("one"), said("two"), user("three"), said("four")])
    old = cc.MessageGroup(positions=(1, 2), kind=cc.GroupKind.TOOL_CALL, turn=1)
    for group in (old, cc.MessageGroup((), old.kind, 1), cc.MessageGroup((-3,), old.kind, 1)):
        with pytest.raises(ValueError, match=r"^group must be a MessageGroup of this index as it is now, got "):
            index.exclude(group, "by hand")
    assert index.included_positions() == [0, 1, 2, 3]
