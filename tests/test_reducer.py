"""Any strategy as a chat reducer: it keeps what it read, never a decision (K1, K8, K9, K13)."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Generator, Sequence
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import RecordingFormat, anthropic_step, call, result, said, step, user

CHAT = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]
STRATEGY = cc.TruncationStrategy(trigger=cc.messages > 2, min_preserved_groups=1)


def reducer_of(strategy: cc.CompactionStrategy = STRATEGY, **arguments: Any) -> cc.ChatReducer:
    return cc.as_chat_reducer(strategy, **{"counter": characters_counter(), "hooks": (), **arguments})


def same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return [id(message) for message in ours] == [id(message) for message in theirs]


# -- calls ------------------------------------------------------------------------------------------


def test_every_way_to_call_it() -> None:
    """``reduce``, a plain call, with the report, and the same for async code."""
    reducer = reducer_of()
    expected = CHAT[4:]
    assert same(reducer(CHAT), expected)
    assert same(reducer.reduce(CHAT), expected)
    assert same(asyncio.run(reducer.areduce(CHAT)), expected)
    kept, report = reducer.reduce_with_report(CHAT)
    later, other = asyncio.run(reducer.areduce_with_report(CHAT))
    assert same(kept, expected)
    assert same(later, expected)
    assert report == other == reducer.last_report


def test_the_last_report_is_of_the_latest_call_that_ended() -> None:
    reducer = reducer_of()
    assert reducer.last_report is None
    reducer(CHAT)
    assert reducer.last_report is not None
    assert reducer.last_report.changed
    reducer(CHAT[:1])
    assert reducer.last_report.skipped == "trigger"


def test_a_list_that_is_left_alone_is_still_another_list() -> None:
    """K1 and K8: the very same objects, in a list that the caller may change."""
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99))
    kept = reducer(CHAT)
    assert same(kept, CHAT)
    kept.append(user("more"))
    assert same(reducer(CHAT), CHAT)


def test_an_empty_list() -> None:
    assert reducer_of()([]) == []


def test_sequences_that_are_no_lists() -> None:
    """A tuple will do; the answer is a list."""
    assert reducer_of()(tuple(CHAT)) == CHAT[4:]


def test_the_callers_messages_are_not_touched() -> None:
    """K8."""
    before = copy.deepcopy(CHAT)
    reducer_of()(CHAT)
    assert before == CHAT


# -- what it keeps, and what it does not ------------------------------------------------------------


def test_a_longer_list_is_read_from_where_it_was() -> None:
    """K13 and C2: by identity; the newest message that is known is looked at again."""
    format = RecordingFormat()
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99), format=format)
    history = list(CHAT)
    reducer(history)
    assert len(format.since()) == 6
    reducer(history)
    assert len(format.since()) == 1
    history += [user("more"), said("yes")]
    reducer(history)
    assert len(format.since()) == 1 + 2


def test_a_call_that_fires_looks_at_every_message_that_it_did_not_read_itself() -> None:
    """C2: edits in place are looked for before anything leaves; counts of what did not change are remembered."""
    format, counter = RecordingFormat(), RecordingCounter()
    reducer = reducer_of(format=format, counter=counter)
    reducer(CHAT)
    format.since()
    counter.counted.clear()
    reducer([*CHAT, user("seven")])
    assert format.since() == [5, 6, 0, 1, 2, 3, 4]
    # What left was never counted, and what stays counts once.
    assert counter.counted == ["seven"]


def test_what_was_looked_at_once_is_compared_from_then_on() -> None:
    """C2 and K13: a message is read a second time only where it was edited, and that is seen at every call."""
    format, counter = RecordingFormat(), RecordingCounter()
    reducer = reducer_of(format=format, counter=counter)
    history = copy.deepcopy(CHAT)
    reducer(history)
    reducer(history)
    format.since()
    reducer(history)
    assert format.since() == [5]
    counter.counted.clear()
    for text in ("edited", "edited again", CHAT[4]["content"]):
        history[4]["content"] = text
        assert reducer(history)[0] is history[4]
        assert format.since() == [5, 4]
    assert counter.counted == ["edited", "edited again"]


def test_it_decides_anew_at_every_call() -> None:
    """Never a decision: the next call sees the whole list, and keeps what fits now."""
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 4, min_preserved_groups=1))
    assert same(reducer(CHAT), CHAT[2:])
    assert same(reducer(CHAT[:4]), CHAT[:4])
    assert same(reducer(CHAT), CHAT[2:])


def test_several_conversations_take_turns() -> None:
    """Each goes on from where it was, also when they share their first message."""
    format = RecordingFormat()
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99), format=format)
    first = user("shared")
    conversations = [[first, said(f"answer {number}"), user(f"more {number}")] for number in range(3)]
    for conversation in conversations:
        assert same(reducer(conversation), conversation)
    format.since()
    for _ in range(3):
        for conversation in conversations:
            conversation.append(said("next"))
            assert same(reducer(conversation), conversation)
    assert len(format.since()) == 3 * 3 * 2


def test_conversations_of_two_formats_that_share_a_message() -> None:
    """Never a decision: what one list told of its format says nothing of another."""
    first = user("shared")
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99))
    for history in ([first, *anthropic_step("a")], [first], [first, *step("b")], [first, *anthropic_step("c")]):
        assert same(reducer(history), history)


def test_of_very_many_conversations_it_forgets_the_oldest() -> None:
    """What it keeps is bounded; a forgotten conversation is read anew, with the same answer."""
    format = RecordingFormat()
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99), format=format)
    conversations = [[user(f"question {number}"), said()] for number in range(100)]
    for conversation in conversations:
        reducer(conversation)
    format.since()
    reducer(conversations[-1])
    assert len(format.since()) == 1
    assert same(reducer(conversations[0]), conversations[0])
    assert len(format.since()) == 2


def test_a_list_that_goes_on_from_the_reduced_one() -> None:
    """A caller who stores what he got back and appends to it: valid again and again."""
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 4, min_preserved_groups=1))
    history: list[Any] = []
    for number in range(20):
        history += [user(f"question {number}"), *step(f"c{number}"), said("done")]
        history = reducer(history)
        assert history[0]["role"] == "user"
        assert len(history) == 4


def test_an_edited_past_is_read_anew() -> None:
    """C2: a replaced object behind equal ends is noticed, and the counts of the others stay."""
    counter = RecordingCounter()
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.tokens > 20, min_preserved_groups=1), counter=counter)
    reducer(CHAT)
    counter.counted.clear()
    history = [CHAT[0], said("a long answer, put in later"), *CHAT[2:]]
    kept, report = reducer.reduce_with_report(history)
    assert same(kept, CHAT[2:])
    assert report.tokens_before == 19 + 27
    assert counter.counted == ["a long answer, put in later"]


def test_the_newest_message_grows_while_it_is_streamed() -> None:
    """C2: its values are looked at in every call."""
    newest = said("I")
    history = [user("one"), said("two"), newest]
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.tokens > 12, min_preserved_groups=1))
    assert reducer.reduce_with_report(history)[1].tokens_before == 7
    newest["content"] = "I think so, yes"
    kept, report = reducer.reduce_with_report(history)
    assert report.tokens_before == 21
    assert same(kept, [history[0], newest])


def test_equal_messages_in_other_objects_are_given_back_as_they_came() -> None:
    """K8: a caller who builds his list anew for each call gets his newest objects."""
    reducer = reducer_of()
    reducer(CHAT)
    copies = copy.deepcopy(CHAT)
    assert same(reducer(copies), copies[4:])
    mixed = [CHAT[0], *copies[1:5], CHAT[5]]
    assert same(reducer(mixed), mixed[4:])


def test_a_result_that_comes_late_to_a_call_that_left() -> None:
    """G2: decided anew each time, so a call that left once may be back with its result, and never half of it."""
    history = [user("one"), call("a"), user("two"), said("x"), user("three"), said("y")]
    reducer = reducer_of()
    assert same(reducer(history), history[4:])
    history.append(result("a"))
    kept = reducer(history)
    assert (history[1] in kept) == (history[6] in kept)
    assert history[1] in kept


# -- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [None, "text", {"role": "user"}, 7, iter([])], ids=lambda h: type(h).__name__)
def test_a_history_must_be_a_list(history: Any) -> None:
    reducer = reducer_of()
    with pytest.raises(TypeError, match=r"^history must be a list of messages, got "):
        reducer(history)


def test_a_message_that_cannot_be_read_names_its_position() -> None:
    """And the next call works, on a list that went on from a good one."""
    reducer = reducer_of()
    reducer(CHAT)
    with pytest.raises(cc.MessageError, match=r"^messages\[6\]"):
        reducer([*CHAT, {"role": "narrator"}])
    assert reducer([*CHAT, user("seven")]) == [said("six"), user("seven")]


def test_a_pass_that_fails_is_no_memory() -> None:
    """K9: after an error of the strategy, the next call decides from the whole list."""
    failing = True

    class Sometimes(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            self.evict(index, self.candidates(index), "sometimes")
            if failing:
                raise ZeroDivisionError

    reducer = reducer_of(Sometimes(trigger=cc.messages > 2, min_preserved_groups=1))
    with pytest.raises(ZeroDivisionError):
        reducer(CHAT)
    assert reducer.last_report is None
    failing = False
    assert same(reducer(CHAT), CHAT[4:])


def test_on_overflow_raise() -> None:
    """K5: the error carries the report; the next call is as good as the first."""
    reducer = reducer_of(cc.TruncationStrategy(trigger=cc.tokens > 3, min_preserved_groups=1), on_overflow="raise")
    for _ in range(2):
        with pytest.raises(cc.ContextOverflowError, match=r"^the history does not fit the target tokens <= 3: "):
            reducer(CHAT)
    assert reducer([user("one")]) == [user("one")]


BROKEN = [user("one"), result("nobody"), user("two"), result("nobody either"), said("x")]


def test_an_invalid_history_is_kept_by_default() -> None:
    """K7: invalid in, never worse out, and the report lists the problems."""
    kept, report = reducer_of(cc.TruncationStrategy(trigger=cc.messages > 99)).reduce_with_report(BROKEN)
    assert same(kept, BROKEN)
    assert [(problem.position, problem.rule) for problem in report.problems] == [
        (1, "orphan_result"),
        (3, "orphan_result"),
    ]


def test_an_invalid_history_raises_if_asked() -> None:
    """``on_invalid="raise"``: before anything is done; a valid one passes."""
    reducer = reducer_of(on_invalid="raise")
    with pytest.raises(cc.InvalidHistoryError):
        reducer(BROKEN)
    with pytest.raises(cc.InvalidHistoryError) as caught:
        reducer(BROKEN)
    assert len(caught.value.problems) == 2
    assert str(caught.value) == (
        "the history has 2 problems: messages[1]: a result for the call 'nobody', which was never made before; "
        "messages[3]: a result for the call 'nobody either', which was never made before"
    )
    assert same(reducer(CHAT), CHAT[4:])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"strategy": len}, TypeError, "strategy must be a CompactionStrategy, got a builtin_function_or_method"),
        ({"on_invalid": "fix"}, ValueError, "on_invalid must be one of 'keep', 'repair', 'raise', got 'fix'"),
        ({"on_overflow": True}, ValueError, "on_overflow must be one of 'report', 'raise', got True"),
        ({"hooks": print}, TypeError, "hooks must be None or a list of callables that take a report, got "),
        ({"hooks": ["log"]}, TypeError, "hooks must be None or a list of callables that take a report, got ['log']"),
        ({"reserved": -1}, ValueError, "reserved must be"),
        ({"format": "morse"}, cc.FormatError, "format must be one of 'auto', "),
        ({"counter": 7}, TypeError, "counter must be "),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails when the reducer is made, by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        cc.as_chat_reducer(**{"strategy": STRATEGY, **arguments})
    assert str(caught.value).startswith(text)


# -- settings ---------------------------------------------------------------------------------------


def test_the_arguments_of_an_index_reach_it() -> None:
    """Pins, reserved tokens, pending turns: as :meth:`MessageIndex.from_messages` has them."""
    pinned = reducer_of(pinned=lambda message: message["content"] == "two")
    assert same(pinned(CHAT), [CHAT[1], *CHAT[4:]])
    reserved = reducer_of(cc.TruncationStrategy(trigger=cc.tokens > 22, min_preserved_groups=1), reserved=1)
    assert same(reserved(CHAT), CHAT[1:])
    waiting = [*CHAT[:1], call("a"), *CHAT[2:]]
    assert same(reducer_of(pending_turns=3)(waiting), [waiting[1], *waiting[4:]])
    assert same(reducer_of()(waiting), waiting[4:])


def test_validate_finds_edits_before_the_trigger_is_asked() -> None:
    """C2."""
    for validate in (False, True):
        history = [dict(message) for message in CHAT]
        reducer = reducer_of(cc.TruncationStrategy(trigger=cc.tokens > 30, min_preserved_groups=1), validate=validate)
        reducer(history)
        history[1]["content"] = "long " * 10
        assert reducer.reduce_with_report(history)[1].changed is validate


def test_it_prints_its_strategy() -> None:
    """And no settings that are large."""
    assert repr(reducer_of(on_overflow="raise")) == (
        "ChatReducer(strategy=TruncationStrategy(trigger=messages > 2, min_preserved_groups=1), "
        "on_invalid='keep', on_overflow='raise')"
    )


# -- sharing ----------------------------------------------------------------------------------------


def test_threads_may_share_one_reducer() -> None:
    """Each call decides for itself, on lists of several conversations at once, and on one list at once."""
    reducer = reducer_of(cc.TokenBudgetStrategy(40))
    wrong: list[str] = []

    def chat(number: int, shared: list[Any]) -> None:
        own: list[Any] = []
        for turn in range(30):
            own += [user(f"{number} asks {turn}"), *step(f"c{turn}"), said("done")]
            for history in (own, shared):
                fresh = reducer_of(cc.TokenBudgetStrategy(40))
                if not same(reducer(history), fresh(history)):
                    wrong.append(f"thread {number}, turn {turn}")

    shared = [m for turn in range(20) for m in (user(f"shared {turn}"), *step(f"s{turn}"))]
    threads = [threading.Thread(target=chat, args=(number, shared)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_async_calls_may_overlap() -> None:
    """While one call waits for an answer, another on the same list has an index of its own."""

    class Slow(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
            yield cc.Effect(asyncio.sleep, (0.001,))
            self.evict(index, self.candidates(index), "slow")

    reducer = reducer_of(Slow(trigger=cc.messages > 2, min_preserved_groups=1))

    async def main() -> list[list[Any]]:
        return await asyncio.gather(*(reducer.areduce(CHAT) for _ in range(5)))

    assert all(same(kept, CHAT[4:]) for kept in asyncio.run(main()))


def test_a_cancelled_call_leaves_a_reducer_that_works() -> None:
    """K9: nothing of it is remembered."""

    class Forever(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
            index.exclude(self.candidates(index)[0], "before")
            yield cc.Effect(asyncio.sleep, (wait,))

    wait = 3600.0
    reducer = reducer_of(Forever(trigger=cc.messages > 2, min_preserved_groups=1))

    async def main() -> list[Any]:
        nonlocal wait
        task = asyncio.ensure_future(reducer.areduce(CHAT))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        wait = 0.0
        return await reducer.areduce(CHAT)

    assert same(asyncio.run(main()), CHAT[1:])


def test_anthropic_histories() -> None:
    """K7, through a reducer, as the list grows: the first message is a user's at every call."""
    reducer = reducer_of(cc.TokenBudgetStrategy(30, keep_last_user=False, evict="groups"))
    history: list[Any] = []
    for number in range(12):
        history += [user(f"task {number}"), *anthropic_step(f"a{number}"), *anthropic_step(f"b{number}"), said("done")]
        kept, report = reducer.reduce_with_report(history)
        assert kept[0]["role"] == "user"
        assert isinstance(kept[0]["content"], str)
        assert report.problems == ()


def test_a_copy_has_the_arguments_and_reads_anew() -> None:
    """Settings of agents are copied, and sent to other processes; what a reducer read so far is not."""
    reducer = cc.as_chat_reducer(
        cc.TruncationStrategy(trigger=cc.messages > 4, min_preserved_groups=1), counter=cc.EstimateCounter(), hooks=()
    )
    kept = reducer(CHAT)
    for other in (copy.copy(reducer), copy.deepcopy(reducer), pickle.loads(pickle.dumps(reducer))):  # noqa: S301
        assert other.strategy == reducer.strategy
        assert other.last_report is None
        assert same(other(CHAT), kept)


def test_an_index_can_be_copied() -> None:
    """A copy goes its own way; the caller's messages in a deep copy are copies, too."""
    index = cc.MessageIndex.from_messages(CHAT, counter=cc.EstimateCounter())
    other = copy.deepcopy(index)
    assert other.snapshot() == index.snapshot()
    other.exclude(other.groups[0], "by hand")
    assert other.snapshot() != index.snapshot()
