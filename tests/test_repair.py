"""Repairing what breaks a rule already: a new list, nothing invented, the caller's messages unchanged (K7, K8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction import Problem, Repaired, repair
from chat_compaction.formats import FORMATS, Format, rules
from chat_compaction.testing import histories
from tests.build import Raw, anthropic_step, call, result, results, said, signed, step, system, thought, user
from tests.legality import faults
from tests.test_growth import MOST, growth


def blocks(role: str, *content: Raw) -> Raw:
    """A message in Anthropic's format."""
    return {"role": role, "content": list(content)}


def text(words: str) -> Raw:
    return {"type": "text", "text": words}


def use(call_id: str) -> Raw:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}}


def seen(call_id: str) -> Raw:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "seen"}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}


def mended(history: Sequence[Any], format: str | Format = "auto", **arguments: Any) -> Repaired:
    """The repair of a list that it leaves as it was, that tells the truth about itself and needs no other."""
    before = copy.deepcopy(list(history))
    repaired = repair(history, format=format, **arguments)
    assert list(history) == before
    check(history, repaired, format, **arguments)
    return repaired


def check(history: Sequence[Any], repaired: Repaired, format: str | Format, **arguments: Any) -> None:
    """What holds of every repair (K7, K8)."""
    messages = repaired.messages
    assert len(messages) == len(repaired.positions)
    assert all(0 <= position < len(history) for position in repaired.positions)
    assert repaired.problems == problems(messages, format, **arguments)
    touched = {done.position for done in repaired.repairs}
    for message, position in zip(messages, repaired.positions, strict=True):
        assert message is history[position] or position in touched or joined_or_renamed(repaired)
    others = (place for place, message in enumerate(messages) if message is not history[place])
    assert repaired.first_changed == next(others, None)
    if not moves(repaired):
        assert list(repaired.positions) == sorted(set(repaired.positions))
    again = repair(messages, format=format, **arguments)
    assert again.repairs == ()
    assert same(again.messages, messages)


def moves(repaired: Repaired) -> bool:
    return any(done.action.startswith("moved ") for done in repaired.repairs)


def joined_or_renamed(repaired: Repaired) -> bool:
    """Repairs that change a second message beside the one they name: what it is joined to, the results of a call."""
    return any(done.rule in ("alternation", "repeated_id") for done in repaired.repairs)


def problems(history: Sequence[Any], format: str | Format, **arguments: Any) -> tuple[Problem, ...]:
    return cc.MessageIndex.from_messages(history, format=format, counter=cc.EstimateCounter(), **arguments).problems


def same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return [id(message) for message in ours] == [id(message) for message in theirs]


def done(repaired: Repaired) -> list[tuple[int, str]]:
    """Where something was mended, and which rule asked for it."""
    return [(one.position, one.rule) for one in repaired.repairs]


# -- a sound history --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "history",
    [
        [],
        [user()],
        [system(), user(), said(), *step("a", "b"), said()],
        [user(), *anthropic_step("a"), signed()],
        [user(), call("a")],
    ],
    ids=["empty", "user", "openai_chat", "anthropic", "pending"],
)
def test_a_sound_history_comes_back_as_it_is(history: list[Raw]) -> None:
    """K1 and K8: the same objects in another list, and nothing to report."""
    repaired = mended(history)
    assert same(repaired.messages, history)
    assert repaired.messages is not history
    assert (repaired.repairs, repaired.problems, repaired.first_changed) == ((), (), None)


def test_it_prints_what_was_done_but_no_message() -> None:
    """A report never holds the text of a message."""
    repaired = mended([user("secret"), result("a")])
    assert repr(repaired) == (
        "Repaired(positions=(0,), repairs=(Repair(position=1, rule='orphan_result', "
        "action=\"removed the result of the call 'a', never made\"),), problems=())"
    )


@pytest.mark.parametrize("history", [None, "text", {"role": "user"}, iter([])], ids=lambda h: type(h).__name__)
def test_it_takes_a_list(history: Any) -> None:
    with pytest.raises(TypeError, match="must be a list of messages, got"):
        repair(history)


def test_a_message_that_cannot_be_read_names_its_position() -> None:
    """Nothing is repaired that nobody understands."""
    with pytest.raises(cc.MessageError, match=r"^messages\[1\]"):
        repair([user(), {"role": "narrator"}])


# -- calls and results ------------------------------------------------------------------------------


def test_a_result_that_nobody_asked_for_leaves() -> None:
    """``orphan_result``: with its message where nothing else is in it, else alone."""
    history = [user(), result("nobody"), said()]
    repaired = mended(history)
    assert same(repaired.messages, [history[0], history[2]])
    assert repaired.positions == (0, 2)
    assert done(repaired) == [(1, "orphan_result")]
    beside = [user(), said(), results("nobody", text="go on"), said()]
    repaired = mended(beside, "anthropic")
    assert repaired.messages[2] == blocks("user", text("go on"))
    assert same(repaired.messages[:2], beside[:2])
    assert repaired.messages[3] is beside[3]
    assert repaired.first_changed == 2


def test_a_second_result_leaves() -> None:
    """``duplicate_result``: the first one stays."""
    history = [user(), *step("a"), result("a", "again"), said()]
    repaired = mended(history)
    assert same(repaired.messages, [*history[:3], history[4]])
    assert done(repaired) == [(3, "duplicate_result")]
    twice = [user(), call("a", format="anthropic"), results("a", "a"), said()]
    assert mended(twice, "anthropic").messages[2] == results("a")


def test_a_call_without_a_result_leaves() -> None:
    """``unanswered_call``: of parallel calls only that one, and the message where nothing else is in it."""
    history = [user(), call("a", "b"), result("a"), user("more")]
    repaired = mended(history)
    assert repaired.messages[1] == call("a")
    assert done(repaired) == [(1, "unanswered_call")]
    assert same(repaired.messages[2:], history[2:])
    alone = [user(), call("a"), user("more")]
    assert same(mended(alone).messages, [alone[0], alone[2]])
    beside = [user(), call("a", text="I look."), user("more")]
    assert mended(beside).messages[1] == {"role": "assistant", "content": "I look."}


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_reasoning_goes_with_its_unanswered_call(format: str) -> None:
    """``unanswered_call``: reasoning never stands beside altered content; the answers of its sisters go, too."""
    if format == "anthropic":
        thinking = blocks("assistant", THINKING, text("I look."), use("a"), use("b"))
        history = [user(), thinking, results("a"), user("more"), said()]
    else:
        history = [user(), {**call("a", "b"), "reasoning_content": "hm"}, result("a"), user("more"), said()]
    repaired = mended(history, format)
    assert same(repaired.messages, [history[0], *history[3:]])
    assert done(repaired) == [(1, "unanswered_call"), (2, "orphan_result")]
    assert repaired.problems == ()


def test_what_waits_for_a_result_stays() -> None:
    """G3: a call of the newest turn may still get its result; ``pending_turns`` says how many turns that is."""
    history = [user("one"), call("old"), user("two"), call("new")]
    assert same(mended(history).messages, [history[0], *history[2:]])
    assert same(mended(history, pending_turns=2).messages, history)
    assert same(mended(history, pending_turns=0).messages, [history[0], history[2]])
    half = [user(), call("a", "b"), result("a")]
    assert same(mended(half).messages, half)


def test_what_leaves_leaves_another_alone() -> None:
    """Chains: a message that leaves whole takes its other calls with it, whose results are then nobody's."""
    middle = blocks("assistant", THINKING, use("a"), use("b"))
    history = [user(), middle, results("b", text="and"), user("more"), said()]
    repaired = mended(history, "anthropic")
    assert repaired.messages == [user(), blocks("user", text("and")), user("more"), said()]
    assert done(repaired) == [(1, "unanswered_call"), (2, "orphan_result")]
    headless = [said("hello"), *anthropic_step("a"), user(), said()]
    assert same(mended(headless, "anthropic").messages, headless[3:])


def test_a_result_moves_behind_its_call() -> None:
    """``not_adjacent``: with the caller's own object, whatever stood in between."""
    history = [user(), call("a"), user("meanwhile"), said("yes"), result("a"), user("more")]
    repaired = mended(history)
    assert same(repaired.messages, [history[place] for place in (0, 1, 4, 2, 3, 5)])
    assert repaired.positions == (0, 1, 4, 2, 3, 5)
    assert done(repaired) == [(4, "not_adjacent")]
    assert repaired.first_changed == 2


def test_parallel_results_move_in_their_order() -> None:
    """``not_adjacent``: one by one, and those that are there already stay ahead."""
    history = [user(), call("a", "b", "c"), result("b"), user("x"), result("c"), said("y"), result("a")]
    repaired = mended(history)
    assert repaired.problems == ()
    assert same(repaired.messages[:2], history[:2])
    assert {message["tool_call_id"] for message in repaired.messages[2:5]} == {"a", "b", "c"}
    assert same(repaired.messages[5:], [history[3], history[5]])


def test_a_result_moves_out_of_a_message_that_holds_more() -> None:
    """``not_adjacent`` in Anthropic: the words of the user stay where they were said."""
    history = [user(), call("a", format="anthropic"), user("wait"), said("ok"), results("a", text="there"), said()]
    repaired = mended(history, "anthropic")
    assert repaired.problems == ()
    assert repaired.messages == [
        history[0],
        history[1],
        results("a"),
        user("wait"),
        said("ok"),
        *words("there"),
        said(),
    ]
    assert repaired.positions == (0, 1, 4, 2, 3, 4, 5)


def words(*said_by_user: str) -> list[Raw]:
    return [blocks("user", text(one)) for one in said_by_user]


def test_results_come_first_in_a_message() -> None:
    """``results_first``: the other parts keep their order."""
    history = [user(), call("a", "b", format="anthropic"), blocks("user", text("1"), seen("a"), text("2"), seen("b"))]
    repaired = mended(history, "anthropic")
    assert repaired.messages[2] == blocks("user", seen("a"), seen("b"), text("1"), text("2"))
    assert repaired.problems == ()


def test_a_repeated_id_gets_another() -> None:
    """``repeated_id``: the later call and its own result, with an id that nobody has."""
    history = [user(), *anthropic_step("a"), *anthropic_step("a_2"), *anthropic_step("a"), *anthropic_step("a"), said()]
    repaired = mended(history, "anthropic")
    expected = [use_ids(message) for step_ in ("a", "a_2", "a_3", "a_4") for message in anthropic_step(step_)]
    assert [use_ids(message) for message in repaired.messages[1:-1]] == expected
    assert same(repaired.messages[:5], history[:5])
    assert repaired.problems == ()
    assert done(repaired) == [(5, "repeated_id"), (7, "repeated_id")]


def use_ids(message: Raw) -> list[str]:
    return [block.get("id") or block["tool_use_id"] for block in message["content"]]


def test_a_repeated_id_in_one_message() -> None:
    """``repeated_id``: of two calls with one id, each keeps a result: none of them leaves."""
    both = blocks("user", {**seen("a"), "content": "first"}, {**seen("a"), "content": "second"})
    history = [user(), call("a", "a", format="anthropic"), both, user("more"), said()]
    repaired = mended(history, "anthropic")
    assert done(repaired) == [(1, "repeated_id")]
    assert sorted(use_ids(repaired.messages[1])) == sorted(use_ids(repaired.messages[2])) == ["a", "a_2"]


def test_an_id_that_cannot_be_chosen_stays() -> None:
    """``repeated_id``: neither the call nor its result gets another where the format writes only one of them."""
    odd = blocks("assistant", use("a"), {"type": "web_search_tool_result", "tool_use_id": "a", "content": []})
    history = [user(), *anthropic_step("a"), odd, user("more")]
    repaired = mended(history, "anthropic")
    assert same(repaired.messages, history)
    assert [problem.rule for problem in repaired.problems] == ["repeated_id"]


# -- who speaks after whom --------------------------------------------------------------------------


def test_what_stands_ahead_of_the_first_user_leaves() -> None:
    """``first_user``: calls and their results as well; system messages stay."""
    history = [said(), *anthropic_step("a"), user("first"), said()]
    assert same(mended(history, "anthropic").messages, history[3:])
    chat = FORMATS["openai_chat"].with_rules(rules.FirstUser())
    history = [system(), said(), *step("a"), user("first"), said()]
    repaired = mended(history, chat)
    assert same(repaired.messages, [history[0], *history[4:]])
    assert done(repaired) == [(1, "first_user"), (2, "first_user"), (3, "first_user")]


def test_two_of_one_side_are_joined() -> None:
    """``alternation``: from the first on, in order; the message that is joined to is changed in a copy."""
    chat = FORMATS["openai_chat"].with_rules(rules.Alternation())
    history = [user("one"), user("two"), user("three"), said("a"), said("b"), user("four")]
    repaired = mended(history, chat)
    assert repaired.messages == [user("one\n\ntwo\n\nthree"), said("a\n\nb"), user("four")]
    assert repaired.positions == (0, 3, 5)
    assert repaired.messages[2] is history[5]
    assert repaired.first_changed == 0
    assert sorted(done(repaired)) == [(1, "alternation"), (2, "alternation"), (4, "alternation")]


def test_joining_keeps_calls_and_results_together() -> None:
    """``alternation`` in Bedrock: results that were in two messages stand in one, ahead of what the user says."""
    history = [
        blocks("user", {"text": "look"}),
        blocks("assistant", *(bedrock_call(name) for name in "ab")),
        blocks("user", bedrock_result("a"), {"text": "so far"}),
        blocks("user", bedrock_result("b")),
    ]
    repaired = mended(history, "bedrock_converse")
    assert repaired.messages[2] == blocks("user", bedrock_result("a"), bedrock_result("b"), {"text": "so far"})
    assert repaired.problems == ()


def bedrock_call(name: str) -> Raw:
    return {"toolUse": {"toolUseId": name, "name": "look", "input": {}}}


def bedrock_result(name: str) -> Raw:
    return {"toolResult": {"toolUseId": name, "content": [{"text": "seen"}]}}


def test_a_system_message_moves_behind_the_user() -> None:
    """``system_place``: behind the next message of the user; where none comes, it stays, and is a problem."""
    history = [user("one"), said(), system("be brief"), user("two"), said()]
    repaired = mended(history, "anthropic")
    assert same(repaired.messages, [history[place] for place in (0, 1, 3, 2, 4)])
    assert done(repaired) == [(2, "system_place")]
    late = [user("one"), said(), system("be brief"), said()]
    repaired = mended(late, "anthropic")
    assert same(repaired.messages, late)
    assert [problem.rule for problem in repaired.problems] == ["system_place"]


def test_reasoning_that_led_to_nothing_leaves() -> None:
    """``reasoning_alone``: as in Responses, where the item that follows is missing."""
    history: list[Raw] = [
        {"role": "user", "content": "one"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": "two"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
    ]
    repaired = mended(history, "openai_responses")
    assert same(repaired.messages, [history[0], *history[2:]])
    assert done(repaired) == [(1, "reasoning_alone")]
    chat = FORMATS["openai_chat"].with_rules(rules.ReasoningAlone())
    assert mended([user("one"), thought(), user("two")], chat).messages == [user("one"), user("two")]
    waiting = [user("one"), thought()]
    assert same(mended(waiting, chat).messages, waiting)


# -- what is in a message ---------------------------------------------------------------------------


def test_empty_texts_leave() -> None:
    """``empty_content``: by what the format calls empty, and the message where nothing else is in it."""
    history = [user("one"), blocks("user"), blocks("user", text("two"), text("")), said(""), user("three")]
    repaired = mended(history, "anthropic")
    assert repaired.messages == [user("one"), *words("two"), user("three")]
    assert {rule for _, rule in done(repaired)} == {"empty_content"}
    spaces = [user("one"), blocks("user", text("two"), text(" ")), blocks("user", text(" "))]
    assert mended(spaces, "anthropic").messages == spaces[:2]
    refused = FORMATS["anthropic"].with_rules(rules.EmptyContent(spaces="refused"))
    assert mended(spaces, refused).messages == [user("one"), *words("two")]


def test_the_newest_message_of_the_assistant_is_not_judged() -> None:
    """It may be just being written: neither a problem nor mended."""
    history = [user("one"), blocks("assistant")]
    assert same(mended(history, "anthropic").messages, history)


# -- lists that cannot be mended --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "history", "left"),
    [
        ("anthropic", [said("alone")], [(0, "first_user")]),
        ("anthropic", [system("rules")], [(0, "system_place")]),
        ("anthropic", [blocks("user"), said()], [(0, "empty_content")]),
        ("mistral", [user(), *step("a"), user("at once")], [(3, "user_after_tool")]),
        ("sharegpt", [{"from": "gpt", "value": "alone"}], [(0, "first_user")]),
    ],
    ids=["no-user", "leading-system", "nothing-but-empty", "user-after-tool", "sharegpt"],
)
def test_what_nobody_can_mend_stays_and_says_so(format: str, history: list[Raw], left: list[tuple[int, str]]) -> None:
    """Nothing is ever invented: the list stays as it is, and its problems are listed by their place in the result."""
    repaired = mended(history, format)
    assert same(repaired.messages, history)
    assert repaired.repairs == ()
    assert [(problem.position, problem.rule) for problem in repaired.problems if problem.position == left[0][0]] == left


def test_problems_are_told_by_their_place_in_the_result() -> None:
    """What left ahead of them does not count."""
    repaired = mended([user(), result("nobody"), *step("a"), user("at once")], "mistral")
    assert repaired.positions == (0, 2, 3, 4)
    assert [(problem.position, problem.rule) for problem in repaired.problems] == [(3, "user_after_tool")]


def test_a_list_that_goes_on_from_what_the_server_has() -> None:
    """``complete``: where the list may answer calls that it does not hold, no result is taken for an orphan."""
    item = {"type": "function_call_output", "call_id": "stored", "output": "seen"}
    history: list[Raw] = [item, {"role": "user", "content": "go on"}]
    assert same(mended(history, "openai_responses").messages, history)
    whole = attrs.evolve(FORMATS["openai_responses"], complete=True)
    assert same(mended(history, whole).messages, history[1:])


# -- rules of one's own -----------------------------------------------------------------------------


def test_only_the_rules_that_a_format_names() -> None:
    """A user takes rules out, and what they ask is neither found nor mended."""
    history = [user(), call("a"), user("x"), result("a"), result("nobody")]
    lenient = FORMATS["openai_chat"].without_rules("not_adjacent", "orphan_result")
    assert same(mended(history, lenient).messages, history)


@attrs.frozen
class NoWord(rules.Rule):
    """No message says a word."""

    name: ClassVar[str] = "no_word"
    word: str

    def check_message(self, message: cc.formats.Message) -> str | None:
        said_it = any(self.word in part.text for part in message.parts)
        return f"says {self.word!r}" if said_it else None

    def repair(self, draft: Any) -> None:
        for position in draft.wrong_messages(self):
            draft.drop(self, position, "removed, since it says so")


def test_a_rule_of_ones_own_repairs() -> None:
    """And where it takes a call away, the other rules see to the result."""
    format = FORMATS["openai_chat"].with_rules(NoWord("secret"))
    history = [user(), call("a", text="secret"), result("a"), said("secret"), user("more")]
    repaired = mended(history, format)
    assert same(repaired.messages, [history[0], history[4]])
    assert done(repaired) == [(1, "no_word"), (3, "no_word"), (2, "orphan_result")]


@attrs.frozen
class Restless(rules.Rule):
    """Moves the first message to the end, whatever stands there."""

    name: ClassVar[str] = "restless"

    def check_message(self, message: cc.formats.Message) -> str | None:
        return "is never content"

    def repair(self, draft: Any) -> None:
        draft.move(self, 0, len(draft.views) - 1, "moved on")


@attrs.frozen
class Settled(Restless):
    """Moves the second message to where it is."""

    def repair(self, draft: Any) -> None:
        draft.move(self, 1, 0, "moved on")


def test_a_move_that_changes_nothing_is_no_repair() -> None:
    """A report tells what was done."""
    history = [user("one"), said("two")]
    repaired = repair(history, format=FORMATS["openai_chat"].with_rules(Settled()))
    assert same(repaired.messages, history)
    assert repaired.repairs == ()


def test_rules_that_never_agree_come_to_an_end() -> None:
    """A repair that never helps is given up, and the problems stay."""
    repaired = repair([user("one"), said("two"), user("three")], format=FORMATS["openai_chat"].with_rules(Restless()))
    assert sorted(repaired.positions) == [0, 1, 2]
    assert len(repaired.repairs) < 100
    assert {problem.rule for problem in repaired.problems} == {"restless"}


# -- any history ------------------------------------------------------------------------------------

EVERY_RULE = FORMATS["openai_chat"].with_rules(
    rules.Alternation(),
    rules.FirstUser(),
    rules.EmptyContent(),
    rules.RepeatedId(),
    rules.ReasoningAlone(),
    rules.CallAfterUser(),
    rules.UserAfterTool(),
    rules.SystemPlace(),
)
ANY: list[tuple[str, Format]] = [*FORMATS.items(), ("openai_chat", EVERY_RULE)]
any_format = pytest.mark.parametrize(("name", "format"), ANY, ids=[*FORMATS, "every-rule"])


@any_format
@given(data=st.data())
def test_any_hostile_history_is_repaired(name: str, format: Format, data: st.DataObject) -> None:
    """K7 and K8: it never raises, never has more problems than before, leaves the caller's alone, twice is once.

    Nor does an independent judge, who reads the raw dicts, see more faults than before.
    """
    history = data.draw(histories(name, hostile=True))
    repaired = mended(history, format)
    before = problems(history, format)
    assert len(repaired.problems) <= len(before)
    assert before or same(repaired.messages, history)
    assert len(repaired.repairs) <= 10 * len(history)
    if format is not EVERY_RULE:
        everything = repair(history, format=format, pending_turns=0).messages
        assert len(faults(everything, name)) <= len(faults(history, name))


@any_format
@given(data=st.data())
def test_a_sound_history_of_any_format_is_left_alone(name: str, format: Format, data: st.DataObject) -> None:
    """K1: the very same objects."""
    history = data.draw(histories(name))
    if not problems(history, format):
        assert same(mended(history, format).messages, history)


# -- how much work it is ----------------------------------------------------------------------------


def lost_and_found(n: int) -> list[Any]:
    """Everything that is wrong with calls: lost ones, orphans, late and second results."""
    return [
        message
        for i in range(n)
        for message in (
            user(f"task {i}"),
            call(f"a{i}", f"lost{i}"),
            result(f"nobody{i}"),
            said("wait"),
            result(f"a{i}"),
            result(f"a{i}"),
        )
    ]


def wrong_places(n: int) -> list[Any]:
    """In Anthropic's format: system messages, empty texts and mixed results."""
    return [
        message
        for i in range(n)
        for message in (
            system("now"),
            user(f"task {i}"),
            call(f"a{i}", "same", format="anthropic"),
            blocks("user", text("and"), seen(f"a{i}"), text(""), seen("same")),
            said(""),
        )
    ]


def one_side(n: int) -> list[Any]:
    """Bedrock: messages that are to be joined two by two."""
    return [
        blocks(role, {"text": f"{role} {i}"}) for i in range(n) for role in ("user", "user", "assistant", "assistant")
    ]


def late_results(n: int) -> list[Any]:
    """All calls first, all results at the very end, where each moves to its call."""
    return [user(), *(call(f"c{i}") for i in range(n)), user("wait"), *(result(f"c{i}") for i in range(n)), said()]


def one_id(n: int) -> list[Any]:
    """One id for all calls."""
    return [user(), *(message for _ in range(n) for message in anthropic_step("c")), said()]


SHAPES: list[tuple[Callable[[int], list[Any]], str]] = [
    (lost_and_found, "openai_chat"),
    (wrong_places, "anthropic"),
    (one_side, "bedrock_converse"),
    (late_results, "openai_chat"),
    (one_id, "anthropic"),
]


@pytest.mark.parametrize(("shape", "format"), SHAPES, ids=[shape.__name__ for shape, _ in SHAPES])
def test_a_repair_is_linear(shape: Callable[[int], list[Any]], format: str) -> None:
    """K13: the work grows with the list and no faster, whatever has to be mended."""

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)
        return lambda: repair(history, format=format)

    assert repair(shape(16), format=format).repairs != ()
    assert growth(prepare) < MOST
