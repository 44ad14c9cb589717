"""Any list-to-list callable as a strategy: it chooses, and the promises are kept for it (G2, K4, K8, K9)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import anthropic_step, call, result, said, step, system, user

CHAT = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]
Chooser = Callable[[list[Any]], Any]


def strategy_of(reducer: Chooser, **arguments: Any) -> cc.ReducerStrategy:
    return cc.ReducerStrategy(reducer, cc.messages > 2, **{"min_preserved_groups": 1, **arguments})


def compact(
    reducer: Chooser, messages: Sequence[Any] = CHAT, *, pinned: Any = None, format: str = "auto", **arguments: Any
) -> tuple[list[int], cc.CompactionReport]:
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter(), pinned=pinned, format=format)
    report = strategy_of(reducer, **arguments).compact(index, hooks=())
    return index.included_positions(), report


def test_what_it_drops_leaves() -> None:
    """Any callable: a function of the list, here."""
    positions, report = compact(lambda messages: messages[2:])
    assert positions == [2, 3, 4, 5]
    assert {exclusion.reason for exclusion in report.excluded} == {"reducer"}
    assert (report.changed, report.fits, report.stopped_by) == (True, False, "exhausted")


def test_what_it_drops_in_the_middle_leaves() -> None:
    """The order of what stays is all that counts."""
    assert compact(lambda messages: [messages[0], *messages[3:]])[0] == [0, 3, 4, 5]


def test_it_may_keep_everything() -> None:
    """K1: then nothing changed."""
    positions, report = compact(lambda messages: messages)
    assert positions == [0, 1, 2, 3, 4, 5]
    assert not report.changed


def test_the_floor_stays_whatever_it_says() -> None:
    """K2 and K4: it may drop everything, and the newest group, the user's newest message and pins stay."""
    messages = [system(), *CHAT]
    assert compact(lambda messages: [], messages, pinned=[messages[2]])[0] == [0, 2, 5, 6]


def test_a_group_of_which_it_kept_a_part_stays_whole() -> None:
    """G2: no call parts from its results, as a list cut by position would have it."""
    messages = [user("one"), *step("a", "b"), said(), user("two"), said()]
    assert compact(lambda messages: messages[2:], messages)[0] == [1, 2, 3, 4, 5, 6]
    assert compact(lambda messages: messages[-2:], messages)[0] == [5, 6]


def test_the_first_message_stays_a_users() -> None:
    """K7: what it dropped comes back where the format needs it."""
    messages = [user("task"), *anthropic_step("a"), *anthropic_step("b")]
    assert compact(lambda messages: messages[3:], messages, keep_last_user=False)[0] == [0, 3, 4]


def test_equal_messages_are_as_good_as_the_same() -> None:
    """A reducer that copies, or goes through JSON, is understood; what is kept are the caller's objects (K8)."""
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    strategy_of(lambda messages: copy.deepcopy(messages[3:])).compact(index, hooks=())
    assert index.included_positions() == [3, 4, 5]
    assert index.included_messages()[0] is CHAT[3]


def test_one_object_at_several_places() -> None:
    """A message that is used again and again is told apart by its order; of several, the newest is meant."""
    again = user("continue")
    messages = [user("one"), again, said("x"), again, said("y"), again, said("z")]
    assert compact(lambda messages: messages, messages)[0] == list(range(7))
    assert compact(lambda messages: [messages[1], *messages[4:]], messages)[0] == [3, 4, 5, 6]


def test_an_equal_message_is_taken_by_the_object_where_it_is_there() -> None:
    """Identity goes before equality: of two equal answers it kept the second."""
    messages = [user("one"), said("same"), user("two"), said("same"), user("three"), said("z")]
    assert compact(lambda messages: messages[3:], messages)[0] == [3, 4, 5]


def test_it_sees_what_is_included_in_a_list_of_its_own() -> None:
    """K8: what it does to its list is its own business."""
    seen: list[list[Any]] = []

    def reducer(messages: list[Any]) -> list[Any]:
        seen.append(list(messages))
        kept = messages[-2:]
        messages.clear()
        return kept

    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    index.exclude(index.groups[0], "by hand")
    strategy_of(reducer).compact(index, hooks=())
    assert seen == [CHAT[1:]]
    assert index.included_positions() == [4, 5]


@pytest.mark.parametrize(
    ("reducer", "text"),
    [
        (lambda messages: None, r"^the reducer must return a list of messages, got NoneType$"),
        (lambda messages: "all of them", r"^the reducer must return a list of messages, got str$"),
        (iter, r"^the reducer must return a list of messages, got list_iterator$"),
        (lambda messages: {"messages": messages}, r"^the reducer must return a list of messages, got dict$"),
        (lambda messages: [*messages, user("new")], r"item 6 of its list is new, or out of order$"),
        (lambda messages: messages[::-1], r"item 4 of its list is new, or out of order$"),
        (lambda messages: [messages[0], messages[0]], r"item 0 of its list is new, or out of order$"),
        (lambda messages: [{**messages[0], "content": "edited"}], r"item 0 of its list is new, or out of order$"),
    ],
    ids=["none", "text", "iterator", "dict", "new", "reversed", "twice", "edited"],
)
def test_an_answer_that_is_no_choice(reducer: Chooser, text: str) -> None:
    """K6 and K9: it chooses whole messages that it was given, in their order; else nothing changes."""
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    before = index.snapshot()
    with pytest.raises(cc.StrategyError, match=text):
        strategy_of(reducer).compact(index, hooks=())
    assert index.snapshot() == before


def test_what_it_raises_passes_through() -> None:
    """K9: and nothing has changed."""
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    before = index.snapshot()
    with pytest.raises(ZeroDivisionError):
        strategy_of(lambda messages: [messages[1 // 0]]).compact(index, hooks=())
    assert index.snapshot() == before


def test_an_async_one() -> None:
    """It works with ``acompact``, and says so in a plain call."""

    async def reducer(messages: list[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return messages[-2:]

    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    with pytest.raises(cc.StrategyError, match="use acompact or areduce"):
        strategy_of(reducer).compact(index, hooks=())
    asyncio.run(strategy_of(reducer).acompact(index, hooks=()))
    assert index.included_positions() == [4, 5]


def test_a_chat_reducer_is_one_too() -> None:
    """Ours into ours: a reducer of one strategy as another strategy."""
    inner = cc.as_chat_reducer(
        cc.TruncationStrategy(trigger=cc.messages > 3, min_preserved_groups=1), counter=characters_counter(), hooks=()
    )
    assert compact(inner)[0] == [3, 4, 5]
    assert compact(inner.reduce)[0] == [3, 4, 5]


def test_a_pending_call_that_it_drops_stays() -> None:
    """K4 and G3: and its result finds it."""
    messages = [*CHAT, call("a"), said("meanwhile")]
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter())
    strategy_of(lambda messages: messages[-1:]).compact(index, hooks=())
    index.extend([result("a")])
    assert index.included_positions() == [4, 6, 7, 8]


def test_a_trigger_on_messages_counts_nothing() -> None:
    """C4: choosing needs no tokens."""
    counter = RecordingCounter()
    index = cc.MessageIndex.from_messages(CHAT, counter=counter)
    strategy_of(lambda messages: messages).compact(index, hooks=())
    assert counter.counted == []


def test_wrong_arguments() -> None:
    """By name, value and expectation."""
    with pytest.raises(TypeError, match=r"^reducer must be callable, got 3$"):
        cc.ReducerStrategy(3, cc.always)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^trigger must be a predicate such as tokens > 8_000, got 3$"):
        cc.ReducerStrategy(len, 3)  # type: ignore[arg-type]


def test_it_is_a_value() -> None:
    strategy = cc.ReducerStrategy(len, cc.messages > 4)
    assert strategy == cc.ReducerStrategy(len, cc.messages > 4)
    assert repr(strategy) == "ReducerStrategy(reducer=<built-in function len>, trigger=messages > 4)"
    assert strategy.effective_target == (cc.messages <= 4)


def test_of_equal_messages_the_newest_are_meant() -> None:
    """A reducer that returns copies of the newest messages, where older ones are equal: calls with a reused id."""
    call = {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": {"name": "look"}}]}
    answers = [{"role": "tool", "tool_call_id": "x", "content": text} for text in ("one", "two")]
    user = {"role": "user", "content": "go"}
    history = [user, dict(call), answers[0], dict(call), answers[1], {"role": "user", "content": "next"}]
    strategy = cc.ReducerStrategy(lambda messages: copy.deepcopy(messages[-3:]), cc.always, min_preserved_groups=1)
    index = cc.MessageIndex.from_messages(history)
    strategy.compact(index, hooks=())
    assert index.included_positions() == [3, 4, 5]
