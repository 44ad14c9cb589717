"""What left is told to those who want to keep it elsewhere: each group once, and no receiver fails a pass."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import pytest

import chat_compaction as cc
from tests.build import index_of, result, said, step, system, user

HISTORY = [system(), user("one"), *step("a"), user("two"), said("three"), user("four"), said("five")]
KEEPS_TWO = cc.TruncationStrategy(trigger=cc.groups > 4, target=cc.groups <= 3, min_preserved_groups=1)


def test_each_group_is_told_once_with_its_own_messages() -> None:
    """The caller's objects, where they stand in its list, of what kind they are and why they left."""
    memory: list[cc.Departure] = []
    index = index_of(HISTORY, on_excluded=memory.append)
    KEEPS_TWO.compact(index, hooks=())
    assert [departure.positions for departure in memory] == [(1,), (2, 3), (4,), (5,)]
    assert [departure.kind.value for departure in memory] == ["user", "tool_call", "user", "assistant"]
    assert memory[1].messages[1] is HISTORY[3]
    assert {departure.reason for departure in memory} == {"truncation"}
    assert "seen" not in repr(memory)
    index.include_all()
    KEEPS_TWO.compact(index, hooks=())
    assert len(memory) == 4


def test_a_reducer_tells_what_is_new() -> None:
    """Every call decides from the whole history, and yet a group is told once."""
    memory: list[cc.Departure] = []
    reducer = cc.as_chat_reducer(KEEPS_TWO, counter=len, hooks=(), on_excluded=memory.append)
    reducer(HISTORY)
    reducer([*HISTORY, user("six"), said("seven")])
    assert [departure.positions for departure in memory] == [(1,), (2, 3), (4,), (5,), (6,), (7,)]


def test_a_repaired_history_tells_in_the_callers_positions() -> None:
    """And once, although what a repair makes of a list is made anew at each call."""
    memory: list[cc.Departure] = []
    reducer = cc.as_chat_reducer(
        KEEPS_TWO, counter=len, hooks=(), on_excluded=memory.append, on_invalid="repair", format="openai_chat"
    )
    broken = [HISTORY[0], result("nobody"), *HISTORY[1:]]
    for end in range(8, len(broken) + 1):
        reducer(broken[:end])
    told = [departure.positions for departure in memory]
    assert told[:2] == [(2,), (3, 4)]
    assert len(told) == len(set(told))
    assert all(broken[departure.positions[0]] is departure.messages[0] for departure in memory)


def test_an_edit_of_the_past_does_not_tell_again_what_stands_before_it() -> None:
    memory: list[cc.Departure] = []
    index = index_of(HISTORY, on_excluded=memory.append)
    KEEPS_TWO.compact(index, hooks=())
    index.update([*HISTORY[:5], said("another"), user("x"), said("y"), user("z"), said("w")])
    KEEPS_TWO.compact(index, hooks=())
    assert [departure.positions for departure in memory] == [(1,), (2, 3), (4,), (5,), (5,), (6,), (7,)]


class Summarises(cc.CompactionStrategy):
    def compact_core(self, index: cc.MessageIndex) -> None:
        groups = list(self.candidates(index))
        assert index.summarize(groups[:3], "A summary.", "summary")


def test_what_a_summary_stands_for_has_left() -> None:
    """All of it, in its own kind; a second pass tells what is new, and no summary is told."""
    memory: list[cc.Departure] = []
    index = index_of(HISTORY, on_excluded=memory.append)
    strategy = Summarises(trigger=cc.groups > 4, min_preserved_groups=1)
    strategy.compact(index, hooks=())
    assert [(d.positions, d.kind.value, d.reason) for d in memory] == [
        ((1,), "user", "summary"),
        ((2, 3), "tool_call", "summary"),
        ((4,), "user", "summary"),
    ]


def test_nothing_is_told_where_nothing_happened() -> None:
    """Not by a plan, not by a pass that failed or was refused (rules K5 and K9)."""
    memory: list[cc.Departure] = []
    index = index_of(HISTORY, on_excluded=memory.append)
    KEEPS_TWO.plan(index)
    strategy = cc.TruncationStrategy(trigger=cc.messages > 1, target=cc.messages <= 1, min_preserved_groups=2)
    with pytest.raises(cc.ContextOverflowError):
        strategy.compact(index, hooks=(), on_overflow="raise")
    assert memory == []


def test_a_receiver_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """And the next groups are told all the same."""
    told: list[tuple[int, ...]] = []

    def fails_once(departure: cc.Departure) -> None:
        told.append(departure.positions)
        if len(told) == 1:
            raise LookupError("full")

    index = index_of(HISTORY, on_excluded=fails_once)
    with caplog.at_level(logging.ERROR, "chat_compaction"):
        report = KEEPS_TWO.compact(index, hooks=())
    assert report.changed
    assert len(told) == 4
    assert len(caplog.records) == 1


def test_an_async_receiver_is_refused() -> None:
    async def store(_: cc.Departure) -> None: ...

    with pytest.raises(TypeError, match="on_excluded must be a plain function"):
        index_of(HISTORY, on_excluded=store)
    with pytest.raises(TypeError, match="receiver must be a plain function"):
        cc.BackgroundDelivery(store)


# -- in the background -----------------------------------------------------------------------------


def departure(number: int) -> cc.Departure:
    return cc.Departure((number,), (number,), cc.GroupKind.USER, "test")


def numbers(memory: list[cc.Departure]) -> list[Any]:
    return [departure.messages[0] for departure in memory]


def test_in_the_background_they_come_in_order() -> None:
    memory: list[cc.Departure] = []
    with cc.BackgroundDelivery(memory.append) as delivery:
        for number in range(50):
            delivery(departure(number))
        delivery.flush()
        assert numbers(memory) == list(range(50))
    delivery(departure(50))
    assert numbers(memory) == list(range(51))
    delivery.close()


@pytest.mark.parametrize(
    ("when_full", "delivered", "dropped"), [("drop", [0, 1, 2], 3), ("wait", [0, 1, 2, 3, 4, 5], 0)]
)
def test_a_full_queue_waits_or_drops(when_full: Any, delivered: list[int], dropped: int) -> None:
    """Bounded: one is being delivered, two wait; what is let go is counted."""
    memory: list[cc.Departure] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(departure: cc.Departure) -> None:
        begun.set()
        go_on.wait(10)
        memory.append(departure)

    with cc.BackgroundDelivery(slow, max_waiting=2, when_full=when_full) as delivery:
        delivery(departure(0))
        assert begun.wait(10)
        if when_full == "wait":
            threading.Timer(0.01, go_on.set).start()
        for number in range(1, 6):
            delivery(departure(number))
        go_on.set()
    assert numbers(memory) == delivered
    assert delivery.dropped == dropped


def test_closing_while_others_deliver_loses_nothing() -> None:
    """Whoever comes while it closes delivers in line; nobody waits for ever."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            memory: list[cc.Departure] = []
            delivery = cc.BackgroundDelivery(memory.append, max_waiting=1)
            callers = [threading.Thread(target=delivery, args=(departure(number),)) for number in range(8)]
            closing = threading.Thread(target=delivery.close)
            threads = [*callers[:4], closing, *callers[4:]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert not any(thread.is_alive() for thread in threads)
            assert sorted(numbers(memory)) == list(range(8))
    finally:
        sys.setswitchinterval(interval)


def test_a_receiver_may_close() -> None:
    """What waits is delivered all the same."""
    memory: list[cc.Departure] = []

    def closes(departure: cc.Departure) -> None:
        memory.append(departure)
        delivery.close()

    delivery = cc.BackgroundDelivery(closes)
    delivery(departure(0))
    delivery.close()
    assert numbers(memory) == [0]


def test_a_receiver_that_fails_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: cc.Departure) -> None:
        raise LookupError("full")

    with caplog.at_level(logging.ERROR, "chat_compaction"), cc.BackgroundDelivery(fails) as delivery:
        delivery(departure(0))
        delivery(departure(1))
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"receiver": 3}, "receiver must be callable, got 3"),
        ({"max_waiting": 0}, "max_waiting must be an int of 1 or more, got 0"),
        ({"when_full": "block"}, "when_full must be one of 'wait', 'drop', got 'block'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        cc.BackgroundDelivery(**{"receiver": print, **arguments})


def test_a_late_result_of_what_left_is_told_by_itself() -> None:
    """It is not sent, so nobody else would have it; what was told is not told again."""
    memory: list[cc.Departure] = []
    index = index_of(HISTORY, on_excluded=memory.append)
    KEEPS_TWO.compact(index, hooks=())
    index.extend([result("a", "late"), user("six"), said("seven"), user("eight"), said("nine")])
    KEEPS_TWO.compact(index, hooks=())
    told = [departure.positions for departure in memory]
    assert told[:4] == [(1,), (2, 3), (4,), (5,)]
    assert (8,) in told
    assert (2, 3, 8) not in told
