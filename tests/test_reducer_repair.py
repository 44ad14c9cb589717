"""A reducer that repairs first (``on_invalid="repair"``), and one that holds its result against the rules (K7, K9)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Message, rules
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import CHAT, Raw, anthropic_step, call, drop, result, results, said, signed, step, system, user
from tests.strict_provider import StrictProvider


def reducer_of(strategy: cc.CompactionStrategy, **arguments: Any) -> cc.ChatReducer:
    given = {"counter": characters_counter(), "hooks": (), "on_invalid": "repair", **arguments}
    return cc.as_chat_reducer(strategy, **given)


def newest(most: int) -> cc.TruncationStrategy:
    return cc.TruncationStrategy(trigger=cc.messages > most, min_preserved_groups=1)


NEVER = newest(10**6)


def same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return [id(message) for message in ours] == [id(message) for message in theirs]


def broken() -> list[Raw]:
    """Two orphans, a lost call and a late result; position 8 is a turn that is in order."""
    return [
        *(user("one"), result("nobody"), call("lost"), said("two")),
        *(user("three"), call("a"), said("wait"), result("a")),
        *(user("five"), *step("b"), result("nobody either"), said("six")),
    ]


# -- what is repaired -------------------------------------------------------------------------------


def test_what_is_wrong_is_mended_before_anything_leaves() -> None:
    """K7: the list is sound whether or not a compaction fires, and the report says what was done."""
    history = broken()
    before = copy.deepcopy(history)
    kept, report = reducer_of(NEVER).reduce_with_report(history)
    assert same(kept, [history[place] for place in (0, 3, 4, 5, 7, 6, 8, 9, 10, 12)])
    assert [(repair.position, repair.rule) for repair in report.repairs] == [
        (1, "orphan_result"),
        (11, "orphan_result"),
        (2, "unanswered_call"),
        (7, "not_adjacent"),
    ]
    assert (report.problems, report.changed, report.skipped) == ((), False, "trigger")
    assert (report.messages_before, report.messages_after) == (10, 10)
    assert history == before


def test_every_position_of_the_report_is_the_callers() -> None:
    """Exclusions, blockers, problems and the first change are told in the list that the caller has."""
    history = [
        *(result("nobody"), user("one"), said("two"), result("nobody"), user("three"), *step("a"), result("a")),
        *(user("at once"), said("four"), user("five"), said("six")),
    ]
    strategy = cc.TruncationStrategy(trigger=cc.messages > 1, min_preserved_groups=1)
    kept, report = reducer_of(strategy, format="mistral", pinned=[history[8]]).reduce_with_report(history)
    left = {position for exclusion in report.excluded for position in exclusion.positions}
    mended = {repair.position for repair in report.repairs}
    assert mended == {0, 3, 7}
    assert same(kept, [message for place, message in enumerate(history) if place not in left | mended])
    assert sorted(position for blocker in report.blocked_by for position in blocker.positions) == [8, 10, 11]
    assert [(problem.position, problem.rule) for problem in report.problems] == [(8, "user_after_tool")]
    assert report.first_changed == 0


def test_what_a_strategy_brings_back_is_told_in_the_callers_positions() -> None:
    """What left and came back in one pass is no change; the others are, by where the caller has them."""

    class Undecided(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            for group in self.candidates(index):
                index.exclude(group, "undecided")
            index.include(index.groups[1])

    history = [result("nobody"), *CHAT]
    kept, report = reducer_of(Undecided(trigger=cc.messages > 2, min_preserved_groups=1)).reduce_with_report(history)
    assert same(kept, [history[2], *history[5:]])
    assert [exclusion.positions for exclusion in report.excluded] == [(1,), (3,), (4,)]
    assert report.restored == ()


def test_the_first_change_is_the_earlier_one() -> None:
    """Of a repair and of what left: a provider's cache knows what stands ahead of both."""
    late = [*CHAT, result("nobody"), user("seven")]
    assert reducer_of(NEVER).reduce_with_report(late)[1].first_changed == 6
    assert reducer_of(newest(2)).reduce_with_report(late)[1].first_changed == 0
    early = [user("one"), result("nobody"), *CHAT]
    report = reducer_of(newest(3), pinned=early[:1]).reduce_with_report(early)[1]
    assert report.first_changed == 1


def test_a_result_that_moves_changes_what_it_moves_behind() -> None:
    """The first place of the list that has another message, not the one that it came from."""
    history = [user("q"), call("a"), user("x"), said("y"), result("a"), user("z")]
    kept, report = reducer_of(NEVER).reduce_with_report(history)
    assert same(kept, [history[place] for place in (0, 1, 4, 2, 3, 5)])
    assert report.first_changed == 2


def test_the_stable_prefix_ends_at_the_first_repair() -> None:
    """``stable_prefix_tokens`` counts what stands ahead of ``first_changed``."""
    history = [user("12345"), result("nobody"), said("67890"), *CHAT]
    # Either counts, and one of them lets something leave.
    for strategy in (cc.TruncationStrategy(trigger=cc.tokens > 10**6), newest(3)):
        kept, report = reducer_of(strategy, pinned=[history[0], history[2]]).reduce_with_report(history)
        assert same(kept[:2], [history[0], history[2]])
        assert (report.first_changed, report.stable_prefix_tokens) == (1, 5)


def test_what_cannot_be_mended_is_a_problem() -> None:
    """Nothing is invented: it stays, and compaction makes it no worse."""
    history = [*(user("one"), *step("a"), user("at once"), said("two")), result("nobody")]
    kept, report = reducer_of(NEVER, format="mistral").reduce_with_report(history)
    assert same(kept, history[:5])
    assert [(problem.position, problem.rule) for problem in report.problems] == [(3, "user_after_tool")]
    assert [repair.position for repair in report.repairs] == [5]


def test_pins_hold_through_a_repair() -> None:
    """G6: what is pinned may not leave, be it what a rule would have out; a copy is as pinned as its model."""
    spoken = results("nobody", text="remember")
    ordered = {"role": "user", "content": [{"type": "text", "text": "look"}, *results("a")["content"]]}
    history = [user("one"), spoken, said("two"), user("go"), call("a", format="anthropic"), ordered, *CHAT]
    kept, report = reducer_of(newest(3), format="anthropic", pinned=[spoken, ordered]).reduce_with_report(history)
    assert spoken in kept
    assert {"role": "user", "content": ordered["content"][::-1]} in kept
    assert [(problem.position, problem.rule) for problem in report.problems] == [(1, "orphan_result")]


def test_pins_of_joined_messages() -> None:
    """G6: where one of two that are joined is pinned, what they became is."""
    chat = FORMATS["openai_chat"].with_rules(rules.Alternation())
    for number in (0, 1):
        history = [user("first"), user("second"), *CHAT[1:]]
        kept, _ = reducer_of(newest(2), format=chat, pinned=[history[number]]).reduce_with_report(history)
        assert kept[0] == user("first\n\nsecond")


# -- what it costs ----------------------------------------------------------------------------------


def test_a_sound_history_takes_the_short_way() -> None:
    """K1, K8 and K13: nothing is read, counted or copied for a repair that is not needed."""

    def cost(**arguments: Any) -> tuple[list[str], cc.CompactionReport]:
        counter = RecordingCounter()
        reducer = reducer_of(newest(4), counter=counter, **arguments)
        kept, report = reducer.reduce_with_report(CHAT)
        assert same(kept, CHAT[2:])
        assert same(reducer(CHAT), CHAT[2:])
        return counter.counted, report

    assert cost() == cost(on_invalid="keep")


def test_a_reader_that_counts_its_work() -> None:
    """K13: on a sound list that grew by one message, that one is read, and the newest ones looked at again."""
    read: list[int] = []

    class Reading(type(FORMATS["openai_chat"])):  # type: ignore[misc]
        def read(self, raw: Any, position: int) -> Message:
            read.append(position)
            message: Message = super().read(raw, position)
            return message

    reducer = reducer_of(NEVER, format=Reading())
    reducer(CHAT)
    read.clear()
    reducer([*CHAT, user("seven")])
    assert set(read) <= {5, 6}
    read.clear()
    reducer([*CHAT, result("nobody")])
    assert set(read) >= set(range(6))  # Mended, it is another list, and read as one.


def test_nothing_of_a_repair_is_remembered() -> None:
    """A reducer keeps what it read, never a decision: the next call on a longer list mends all of it again."""
    reducer = reducer_of(newest(4))
    history: list[Any] = []
    for number in range(8):
        history += [user(f"question {number}"), result("nobody"), *step(f"c{number}"), said("done")]
        kept, report = reducer.reduce_with_report(history)
        assert len(report.repairs) == number + 1
        assert same(kept, [message for message in history[-5:] if message is not history[-4]])
        assert report.problems == ()


# -- hooks, errors, async ---------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, 99], ids=["fires", "declines"])
def test_hooks_get_the_report_that_the_caller_gets(most: int) -> None:
    """In the caller's positions, with the repairs; a hook that fails harms nobody."""
    seen: list[cc.CompactionReport] = []

    def failing(_: cc.CompactionReport) -> None:
        raise ZeroDivisionError

    history = broken()
    report = reducer_of(newest(most), hooks=[failing, seen.append]).reduce_with_report(history)[1]
    assert seen == [report]
    assert len(report.repairs) == 4
    assert report.metrics()["repairs"] == 4


def test_an_overflow_raises_with_the_same_report() -> None:
    """K5: the error, the hooks and ``last_report`` tell one story, in the caller's positions; the next call works."""
    seen: list[cc.CompactionReport] = []
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 3, min_preserved_groups=1)
    reducer = reducer_of(strategy, on_overflow="raise", hooks=[seen.append])
    history = [result("nobody"), *CHAT]
    for _ in range(2):
        with pytest.raises(cc.ContextOverflowError) as caught:
            reducer(history)
        report = caught.value.report
        assert seen.pop() == report == reducer.last_report
        assert [repair.position for repair in report.repairs] == [0]
        assert [blocker.positions for blocker in report.blocked_by] == [(5,), (6,)]
        assert report.first_changed == 0
    assert reducer([user("one")]) == [user("one")]


def test_async_is_the_same() -> None:
    """``areduce``: the same messages and the same report."""
    history = broken()
    reducer = reducer_of(newest(4))
    kept, report = reducer.reduce_with_report(history)
    later, other = asyncio.run(reducer.areduce_with_report(history))
    assert same(later, kept)
    assert same(asyncio.run(reducer.areduce(history)), kept)
    assert other == report


def test_raise_names_what_repair_would_mend() -> None:
    """``on_invalid="raise"`` stays what it was; what ``"repair"`` gives back passes it."""
    history = broken()
    with pytest.raises(cc.InvalidHistoryError) as caught:
        reducer_of(NEVER, on_invalid="raise")(history)
    assert len(caught.value.problems) == 4
    mended = reducer_of(NEVER)(history)
    assert same(reducer_of(NEVER, on_invalid="raise")(mended), mended)


# -- bound reasoning --------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["keep", "drop"])
def test_thinking_behind_a_repair(setting: Any) -> None:
    """What is signed behind the first repair is bound to what was there, although nothing left."""
    four = {"role": "assistant", "content": [{**signed()["content"][0], "signature": "4"}, signed()["content"][1]]}
    history = [user("one"), signed("two"), user("three"), results("nobody"), four, user("five")]
    provider = StrictProvider()
    provider.issue(history)
    kept, report = reducer_of(NEVER, format="anthropic", bound_reasoning=setting).reduce_with_report(history)
    assert kept[1] is history[1]
    assert (report.bound_reasoning, report.dropped_reasoning) == (((4,), ()) if setting == "keep" else ((), (4,)))
    provider.receive(kept, **report.request_options)
    assert provider.signed(kept[3]) is (setting == "keep")


# -- validate=True ----------------------------------------------------------------------------------


@attrs.frozen
class Fickle(rules.Rule):
    """What it says of two neighbours changes from one time to the next."""

    name: ClassVar[str] = "fickle"
    answers: Callable[[], str | None]

    def check_seam(self, seam: rules.Seam) -> str | None:
        return self.answers() if seam.before is None else None


def test_a_rule_that_contradicts_itself_is_an_error_under_validate() -> None:
    """K7 and K9: where the result breaks a rule more often than the list did, the index is as it was."""
    wrong = False
    format = FORMATS["openai_chat"].with_rules(Fickle(lambda: "says no" if wrong else None))

    class Switching(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            nonlocal wrong
            self.evict(index, self.candidates(index), "switching")
            wrong = True

    strategy = Switching(trigger=cc.messages > 2, min_preserved_groups=1)
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter(), format=format, validate=True)
    before, problems = index.snapshot(), index.problems
    with pytest.raises(cc.StrategyError, match=r"^compaction would break rules of the format: fickle$"):
        strategy.compact(index, hooks=())
    assert (index.snapshot(), index.problems) == (before, problems)
    assert same(index.included_messages(), CHAT)
    wrong = False
    lenient = cc.MessageIndex.from_messages(CHAT, counter=characters_counter(), format=format)
    assert strategy.compact(lenient, hooks=()).changed


def test_validate_through_a_reducer() -> None:
    """K9: after the error the reducer decides anew, from the whole list."""
    wrong = True
    format = FORMATS["openai_chat"].with_rules(Fickle(lambda: "says no" if wrong and len(asked) > 6 else None))
    asked: list[int] = []

    class Counting(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            self.evict(index, self.candidates(index), "counting")
            asked.extend(range(10))

    reducer = reducer_of(
        Counting(trigger=cc.messages > 2, min_preserved_groups=1), format=format, validate=True, on_invalid="keep"
    )
    with pytest.raises(cc.StrategyError):
        reducer(CHAT)
    assert reducer.last_report is None
    wrong = False
    assert same(reducer(CHAT), CHAT[4:])


@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
def test_validate_has_nothing_to_say_of_our_own_rules(name: str) -> None:
    """K7 by construction: sound or not, what goes in broken comes out no worse."""
    steps = step("a") if name == "openai_chat" else anthropic_step("a")
    orphan = result("nobody") if name == "openai_chat" else results("nobody")
    history = [user("one"), orphan, said("two"), user("three"), *steps, said("four"), user("five"), said("six")]
    for most in range(1, len(history)):
        index = cc.MessageIndex.from_messages(history, counter=characters_counter(), format=name, validate=True)
        assert drop(cc.messages > most).compact(index, hooks=()).messages_after <= len(history)


def test_a_rule_of_the_last_message() -> None:
    """K2: the newest message never leaves, so what a rule says of it is the same before and after."""
    format = FORMATS["openai_chat"].with_rules(rules.LastRole())
    index = cc.MessageIndex.from_messages([system(), *CHAT], counter=characters_counter(), format=format, validate=True)
    report = newest(3).compact(index, hooks=())
    assert report.changed
    assert [(problem.position, problem.rule) for problem in report.problems] == [(6, "last_role")]


@pytest.mark.parametrize("on_invalid", ["repair", "raise"])
def test_an_edit_in_place_that_breaks_a_rule(on_invalid: Any) -> None:
    """C2: with ``validate=True`` it is seen at every call, ahead of the question whether the history is valid."""
    history = [user("task"), *step("a"), said("done")]
    reducer = cc.as_chat_reducer(
        cc.TruncationStrategy(trigger=cc.messages > 99), on_invalid=on_invalid, validate=True, hooks=()
    )
    assert reducer(history) == history
    history[2]["tool_call_id"] = "never called"
    if on_invalid == "raise":
        with pytest.raises(cc.InvalidHistoryError):
            reducer(history)
    else:
        assert history[2] not in reducer(history)
