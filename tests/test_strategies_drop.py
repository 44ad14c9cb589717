"""Old reasoning and old media leave; what was said and done stays (K3, K4, K6, K7, K8, K10, K13)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.strategies.drop_media import DropMediaStrategy
from chat_compaction.strategies.drop_reasoning import DropReasoningStrategy
from chat_compaction.testing import histories
from tests.build import call, index_of, result, results, said, signed, system, user
from tests.legality import FORMATS, faults, links
from tests.test_growth import MOST, growth

NEVER = cc.tokens < 0
ANY = {name: histories(name) | histories(name, hostile=True) for name in FORMATS}
PNG = "iVBORw0KGgo="


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any], format: str = "anthropic", **arguments: Any
) -> tuple[list[Any], cc.CompactionReport]:
    index = index_of(messages, format=format, **arguments)
    report = strategy.compact(index, hooks=())
    return index.included_messages(), report


def changed(before: Sequence[Any], after: Sequence[Any]) -> list[int]:
    """The positions at which other messages stand now."""
    return [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one is not other]


# -- reasoning -----------------------------------------------------------------------------------------


def drop(
    trigger: cc.Predicate = cc.always, target: cc.Predicate | None = None, **arguments: Any
) -> cc.CompactionStrategy:
    """By default a target that nothing reaches, so that all leaves that may."""
    unreachable = cc.messages < 1 if target is None and trigger == cc.always else target
    return DropReasoningStrategy(trigger=trigger, target=unreachable, **arguments)


def thinking(text: str = "hm", signature: str = "s") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def thinking_step(call_id: str, **block: str) -> list[Any]:
    """A call with thinking ahead of it, and its result."""
    caller = call(call_id, format="anthropic")
    return [{**caller, "content": [thinking(**block), *caller["content"]]}, results(call_id)]


THREE = [m for n in "123" for m in (user(f"task {n}"), *thinking_step(n), signed(f"done {n}", f"thought {n}"))]


def holds(message: Any) -> bool:
    """Whether a message of Anthropic's format holds thinking."""
    blocks = message["content"] if isinstance(message["content"], list) else []
    return any(block["type"] in ("thinking", "redacted_thinking") for block in blocks)


@pytest.mark.parametrize(("keep", "turns"), [(0, [3]), (1, [3]), (2, [2, 3]), (3, [1, 2, 3]), (9, [1, 2, 3])])
def test_the_newest_turns_keep_their_reasoning(keep: int, turns: list[int]) -> None:
    """K4: all of it, in every message, calls too; as ``keep`` of ``clear_thinking_20251015`` does."""
    after, report = compact(drop(keep_turns=keep), THREE)
    kept = [place // 4 + 1 for place, message in enumerate(after) if holds(message)]
    assert kept == [turn for turn in turns for _ in range(2)]
    assert len(after) == len(THREE)
    assert report.excluded == ()
    assert faults(after, "anthropic") == []


def test_what_was_said_and_done_stays() -> None:
    """K6: the blocks beside the thinking, and every other message, are the very same."""
    after, _ = compact(drop(), THREE)
    assert changed(THREE, after) == [1, 3, 5, 7]
    for place in (1, 3, 5, 7):
        assert after[place]["content"] == THREE[place]["content"][1:]


def test_the_turn_under_way_keeps_its_reasoning() -> None:
    """In a tool loop the provider wants it back, however little is to be kept; turns without any are none to keep."""
    messages = [*THREE, user("more"), *thinking_step("x")]
    after, _ = compact(drop(keep_turns=0), messages)
    assert [place for place, message in enumerate(after) if holds(message)] == [13]
    messages = [*THREE, user("more")]
    after, _ = compact(drop(keep_turns=1), messages)
    assert [place for place, message in enumerate(after) if holds(message)] == [9, 11]
    assert not any(map(holds, compact(drop(keep_turns=0), messages)[0]))


def test_turns_leave_oldest_first_until_the_target_holds() -> None:
    """K3: asked before the first turn, and after each one."""
    index = index_of(THREE, format="anthropic")
    size = index.value(cc.tokens)
    after, report = compact(drop(cc.tokens > size - 1), THREE)
    assert changed(THREE, after) == [1, 3]
    assert (report.stopped_by, report.fits) == ("target", True)
    assert [replaced.positions for replaced in report.replaced] == [(1, 2), (3,)]
    assert compact(drop(cc.tokens > size), THREE)[1].skipped == "trigger"
    assert compact(drop(cc.always, cc.tokens <= size), THREE)[1].skipped == "target"


def test_a_turn_loses_all_of_its_reasoning_or_none() -> None:
    """Where one message may not change, since it is pinned, none of its turn does; and no newer signed one."""
    after, _ = compact(drop(), THREE, pinned=[THREE[3]])
    assert changed(THREE, after) == []
    after, _ = compact(drop(), THREE, pinned=[THREE[7]])
    assert changed(THREE, after) == [1, 3]


def test_signed_reasoning_leaves_from_the_start_alone() -> None:
    """What is bound to a prefix may not lose some from the middle; what has no signature may."""
    plain = [user("a"), thinking_step("p", signature="")[0], results("p"), said("b")]
    messages = [*THREE[:4], *plain, *THREE[4:]]
    after, _ = compact(drop(keep_tool_turns=False), messages, pinned=[messages[1]])
    assert changed(messages, after) == [5]


def test_a_message_of_reasoning_alone_says_so() -> None:
    """K7: an empty message would be refused, and none would weld two of the user's together."""
    alone = {"role": "assistant", "content": [thinking()]}
    redacted = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}
    blank = {"role": "assistant", "content": [thinking(), {"type": "text", "text": " "}]}
    messages = [user("1"), alone, user("2"), redacted, user("3"), blank, user("4"), said("end")]
    after, _ = compact(drop(keep_turns=0), messages)
    assert [after[place]["content"] for place in (1, 3, 5)] == ["(This message held reasoning only.)"] * 3
    assert faults(after, "anthropic") == []


def test_unsigned_reasoning_of_tool_turns() -> None:
    """DeepSeek's models refuse a list without it; what led to no call they ignore."""
    caller = {**call("a"), "reasoning_content": "must look"}
    answer = {**said("done"), "reasoning_content": "looked"}
    messages = [
        user("1"),
        caller,
        result("a"),
        answer,
        user("2"),
        {**said("4"), "reasoning_content": "2 + 2"},
        user("3"),
    ]
    after, _ = compact(drop(keep_turns=0), messages, "openai_chat")
    assert changed(messages, after) == [5]
    assert after[5] == said("4")
    after, _ = compact(drop(keep_turns=0, keep_tool_turns=False), messages, "openai_chat")
    assert changed(messages, after) == [1, 3, 5]
    after, _ = compact(drop(keep_turns=0, keep_tool_turns=True), messages, "openai_chat")
    assert changed(messages, after) == [5]


def test_signed_reasoning_of_tool_turns_leaves_whatever_is_asked_of_the_rest() -> None:
    after, _ = compact(drop(keep_tool_turns=True), THREE)
    assert changed(THREE, after) == [1, 3, 5, 7]


def test_in_responses_reasoning_stays_with_what_it_came_with() -> None:
    """K7, ``reasoning_alone``: a call asks for the reasoning item that it came with."""
    messages = [
        {"role": "user", "content": "1"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seen"},
        {"role": "user", "content": "2"},
        {"role": "user", "content": "3"},
    ]
    after, report = compact(drop(keep_turns=0), messages, "openai_responses")
    assert changed(messages, after) == []
    assert (report.changed, report.stopped_by) == (False, "exhausted")


def test_pi_sessions_keep_what_may_be_an_item_of_responses() -> None:
    """Thinking with another signature than Anthropic's may be one, which what follows it asks for."""
    blocks = [{"type": "thinking", "thinking": "hm", "thinkingSignature": "rs"}, {"type": "text", "text": "done"}]
    answer = {"role": "assistant", "content": blocks, "stopReason": "stop"}
    messages = [
        {"role": "user", "content": "1"},
        {**answer, "api": "anthropic-messages"},
        {"role": "user", "content": "2"},
        {**answer, "api": "openai-responses"},
        {"role": "user", "content": "3"},
    ]
    after, _ = compact(drop(keep_turns=0, keep_tool_turns=False), messages, "pi_session")
    assert changed(messages, after) == [1]


def test_what_can_not_be_written_stays_and_its_turn_with_it() -> None:
    """K9: half a turn is never left behind, also where another strategy had its hand in it before."""

    class Reword(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            index.rewrite(index.groups[2], {2: {**said("reworded"), "reasoning_content": "hm"}}, "reword")

    class Stubborn(type(index_of([user()], format="openai_chat").format)):  # type: ignore[misc]
        def without(self, raw: Any, parts: Any) -> Any | None:
            return None if raw["content"] == "last" else super().without(raw, parts)

        def saying(self, raw: Any, text: str, role: Any = None) -> Any | None:
            return None

    thoughts = [{**said(text), "reasoning_content": "hm"} for text in ("first", "second", "last")]
    messages = [user("1"), *thoughts, user("2"), said("end")]
    index = index_of(messages, format=Stubborn())
    Reword(trigger=cc.always, target=cc.messages < 1, min_preserved_groups=0).compact(index, hooks=())
    before = index.included_messages()
    report = drop(keep_turns=0).compact(index, hooks=())
    assert index.included_messages() == before
    assert not report.changed


def test_a_rewrite_that_is_refused_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """K7 and K9: a rule of the format that one message would break keeps the whole turn as it was."""

    class Reword(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            index.rewrite(index.groups[1], {1: signed("reworded")}, "reword")

    messages = [user("1"), signed("a"), signed("b"), signed("c"), user("2"), said("end")]
    index = index_of(messages, format="anthropic")
    Reword(trigger=cc.always, target=cc.messages < 1, min_preserved_groups=0).compact(index, hooks=())
    before = index.included_messages()
    rewrite = cc.MessageIndex.rewrite

    monkeypatch.setattr(cc.MessageIndex, "rewrite", lambda *arguments: 3 not in arguments[2] and rewrite(*arguments))
    drop(keep_turns=0).compact(index, hooks=())
    assert index.included_messages() == before
    assert [group.replaced for group in index.groups] == [None, "reword", None, None, None, None]


@pytest.mark.parametrize("format_name", FORMATS)
@settings(max_examples=12)
@given(data=st.data())
def test_without_reasoning_valid_stays_valid(format_name: str, data: st.DataObject) -> None:
    """K7, K8, K10, in every format, whatever the history."""
    check(
        drop(keep_turns=data.draw(st.integers(0, 2)), keep_tool_turns=data.draw(st.sampled_from([None, False]))),
        data,
        format_name,
    )


def check(strategy: cc.CompactionStrategy, data: st.DataObject, format_name: str) -> None:
    messages = data.draw(ANY[format_name])
    pristine = copy.deepcopy(messages)
    after, report = compact(strategy, messages, format_name, validate=True)
    assert messages == pristine
    assert len(after) == len(messages)
    assert report.excluded == ()
    known = {(fault.kind, fault.position, fault.call_id) for fault in faults(messages, format_name)}
    assert {(fault.kind, fault.position, fault.call_id) for fault in faults(after, format_name)} <= known
    assert links(after, format_name) == links(messages, format_name)
    again, second = compact(strategy, after, format_name)
    assert not second.changed
    assert changed(after, again) == []


def test_growth_of_dropping_reasoning() -> None:
    """K13: eight times as many turns are eight times the work."""

    def prepare(n: int) -> Any:
        index = index_of(
            [m for i in range(n) for m in (user(f"task {i}"), *thinking_step(f"c{i}"))], format="anthropic"
        )
        return lambda: drop().compact(index, hooks=())

    assert growth(prepare) < MOST


def test_reasoning_strategy_is_a_value() -> None:
    strategy = DropReasoningStrategy(trigger=cc.tokens > 8_000, keep_turns=2, keep_tool_turns=False)
    names = {"DropReasoningStrategy": DropReasoningStrategy, "tokens": cc.tokens}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert repr(DropReasoningStrategy(trigger=cc.always)) == "DropReasoningStrategy(trigger=always)"


# -- media ---------------------------------------------------------------------------------------------


def drop_media(**arguments: Any) -> DropMediaStrategy:
    return DropMediaStrategy(**{"trigger": cc.always, "target": cc.messages < 1, "keep": 0, **arguments})


def image() -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def document(text: str = "") -> dict[str, Any]:
    source = (
        {"type": "text", "media_type": "text/plain", "data": text}
        if text
        else {"type": "url", "url": "https://x.org/a.pdf"}
    )
    return {"type": "document", "source": source}


def shows(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def screenshot(call_id: str, *blocks: Any) -> dict[str, Any]:
    """A result that holds blocks."""
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content}]}


def shots(count: int) -> list[Any]:
    """A loop of an agent that looks at its screen."""
    steps = (m for n in range(count) for m in (call(f"c{n}", format="anthropic"), screenshot(f"c{n}", "ok", image())))
    return [user("task"), *steps]


def test_the_newest_media_stay() -> None:
    """K4: the newest ``keep`` of them; the words of a result stay, and a text says what was there."""
    messages = shots(5)
    after, report = compact(drop_media(keep=3), messages)
    assert changed(messages, after) == [2, 4]
    assert after[2]["content"] == [{"type": "tool_result", "tool_use_id": "c0", "content": "ok\n[image removed]"}]
    assert report.excluded == ()
    assert [replaced.reason for replaced in report.replaced] == ["media", "media"]
    assert changed(messages, compact(drop_media(), messages)[0]) == [2, 4, 6, 8, 10]
    assert compact(drop_media(keep=5), messages)[1].changed is False


def test_media_leave_oldest_first_until_the_target_holds() -> None:
    """K3."""
    messages = shots(5)
    counter = cc.FunctionCounter(len, name="characters")
    size = index_of(messages, format="anthropic", counter=counter).value(cc.tokens)
    strategy = DropMediaStrategy(trigger=cc.tokens > size - 1, keep=1)
    after, report = compact(strategy, messages, counter=counter)
    assert changed(messages, after) == [2]
    assert report.fits
    assert report.tokens_after < size


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([image()], "[image removed]"),
        ([image(), document()], "[image removed]\n[document removed]"),
        (["Look: ", image()], ["Look: \n[image removed]"]),
        ([image(), "What is it?", image()], ["[image removed]\n[image removed]\nWhat is it?"]),
        ([document("A page."), "Read it."], ["[document removed]\nRead it."]),
    ],
    ids=str,
)
def test_what_takes_the_place_of_media(blocks: list[Any], expected: Any) -> None:
    """A short text that says what was there: beside the words of the message, or in place of it."""
    messages = [shows(*blocks), said("I see."), user("next")]
    after, _ = compact(drop_media(), messages)
    wanted = expected if isinstance(expected, str) else [{"type": "text", "text": text} for text in expected]
    assert after == [{"role": "user", "content": wanted}, said("I see."), user("next")]


def test_beside_a_result() -> None:
    """Without any words in the message, the last result that keeps no media tells of it."""
    found = results("a", "b")
    messages = [
        user("1"),
        call("a", "b", format="anthropic"),
        {**found, "content": [*found["content"], image()]},
        user("2"),
    ]
    after, _ = compact(drop_media(), messages)
    assert [block["content"] for block in after[2]["content"]] == ["seen", "seen\n[image removed]"]


def test_of_other_kinds() -> None:
    """``kinds`` are those that leave and those that are counted; a result that holds others too keeps them all."""
    messages = [
        shows("a", image()),
        said("1"),
        shows("b", document()),
        said("2"),
        user("task"),
        call("c", format="anthropic"),
        screenshot("c", image(), document()),
        user("next"),
    ]
    assert changed(messages, compact(drop_media(kinds=["image"]), messages)[0]) == [0]
    assert changed(messages, compact(drop_media(kinds=["document"]), messages)[0]) == [2]
    assert changed(messages, compact(drop_media(kinds=["image", "document"]), messages)[0]) == [0, 2, 6]
    assert changed(messages, compact(drop_media(kinds=["image", "document"], keep=2), messages)[0]) == [0, 2]
    # The result holds two, and one of them is to stay.
    assert changed(messages, compact(drop_media(kinds=["image", "document"], keep=1), messages)[0]) == [0, 2]


def test_the_placeholder() -> None:
    messages = [shows("a", image()), said("1"), user("next")]
    after, _ = compact(drop_media(placeholder="(an {kind} was here)"), messages)
    assert after[0]["content"] == [{"type": "text", "text": "a\n(an image was here)"}]


def test_never_the_users_newest_nor_what_is_pinned_pending_or_signed() -> None:
    """K4, and K6: a message with signed reasoning stays whole."""
    pinned, newest = shows("pinned", image()), shows("newest", image())
    beside = {"role": "assistant", "content": [thinking(), *shows("drawn", image())["content"]]}
    messages = [system(), pinned, beside, newest]
    after, _ = compact(drop_media(), messages, pinned=[pinned])
    assert changed(messages, after) == []
    after, _ = compact(drop_media(keep_last_user=False), messages, pinned=[pinned])
    assert changed(messages, after) == [3]


OTHERS: list[tuple[str, list[Any], Any]] = [
    (
        "openai_chat",
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
                ],
            },
            {"role": "user", "content": "next"},
        ],
        [{"type": "text", "text": "see\n[image removed]"}],
    ),
    (
        "gemini",
        [
            {"role": "user", "parts": [{"inlineData": {"mimeType": "audio/wav", "data": PNG}}]},
            {"role": "model", "parts": [{"text": "I hear."}]},
            {"role": "user", "parts": [{"text": "next"}]},
        ],
        [{"text": "[audio removed]"}],
    ),
    (
        "bedrock_converse",
        [
            {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": PNG}}}, {"text": "see"}]},
            {"role": "assistant", "content": [{"text": "I see."}]},
            {"role": "user", "content": [{"text": "next"}]},
        ],
        [{"text": "[image removed]\nsee"}],
    ),
    (
        "openai_responses",
        [
            {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.org/a.png"}]},
            {"role": "user", "content": "next"},
        ],
        "[image removed]",
    ),
]


@pytest.mark.parametrize(("format_name", "messages", "expected"), OTHERS, ids=[name for name, _, _ in OTHERS])
def test_other_formats(format_name: str, messages: list[Any], expected: Any) -> None:
    """K7: written as the format has it."""
    after, _ = compact(drop_media(), messages, format_name)
    assert changed(messages, after) == [0]
    assert after[0].get("content", after[0].get("parts")) == expected
    assert after[0]["role"] == "user"


@pytest.mark.parametrize("format_name", FORMATS)
@settings(max_examples=12)
@given(data=st.data())
def test_without_media_valid_stays_valid(format_name: str, data: st.DataObject) -> None:
    """K7, K8, K10, in every format, whatever the history."""
    check(drop_media(keep=data.draw(st.integers(0, 2)), keep_last_user=data.draw(st.booleans())), data, format_name)


def test_growth_of_dropping_media() -> None:
    """K13: eight times as many screenshots are eight times the work."""

    def prepare(n: int) -> Any:
        index = index_of(shots(n), format="anthropic")
        return lambda: drop_media().compact(index, hooks=())

    assert growth(prepare) < MOST


def parallel_shots(count: int) -> list[Any]:
    """Screenshots of one response."""
    ids = [f"c{n}" for n in range(count)]
    return [user("task"), call(*ids, format="anthropic"), *(screenshot(name, "ok", image()) for name in ids), said()]


def test_growth_of_dropping_media_of_one_group() -> None:
    """K13: to rewrite a group is linear in it, so its messages are not rewritten one by one."""

    def prepare(n: int) -> Any:
        index = index_of(parallel_shots(n), format="anthropic")
        return lambda: drop_media().compact(index, hooks=())

    assert growth(prepare) < MOST


@pytest.mark.parametrize("at_least", [1, 3, 9])
def test_a_target_that_looks_at_the_messages_sees_each(at_least: int) -> None:
    """K3: nothing more leaves once it holds, whatever it asks."""

    @cc.predicate
    def some_are_gone(index: Any) -> bool:
        return sum("[image removed]" in str(message) for message in index.included_messages()) >= at_least

    after, report = compact(drop_media(target=some_are_gone), parallel_shots(5), "anthropic")
    assert sum("[image removed]" in str(message) for message in after) == min(at_least, 5)
    assert report.fits is (at_least <= 5)


def test_media_strategy_is_a_value() -> None:
    strategy = DropMediaStrategy(trigger=cc.tokens > 8_000, keep=2, kinds=["image"], placeholder="[gone]")
    names = {"DropMediaStrategy": DropMediaStrategy, "tokens": cc.tokens}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert repr(DropMediaStrategy(trigger=cc.always)) == "DropMediaStrategy(trigger=always)"


KINDS = "kinds must be some of 'image', 'audio', 'document', 'video', 'other', got"
TEMPLATE = "placeholder must be a text that may have the field {kind}"


@pytest.mark.parametrize(
    ("strategy", "arguments", "error", "text"),
    [
        (DropReasoningStrategy, {"keep_turns": -1}, ValueError, "keep_turns must be an int of 0 or more, got -1"),
        (DropReasoningStrategy, {"keep_tool_turns": 1}, TypeError, "keep_tool_turns must be True or False, got 1"),
        (DropMediaStrategy, {"keep": True}, TypeError, "keep must be an int of 0 or more, got True"),
        (DropMediaStrategy, {"kinds": "image"}, TypeError, f"{KINDS} 'image'"),
        (DropMediaStrategy, {"kinds": ["images"]}, ValueError, f"{KINDS} ('images',)"),
        (DropMediaStrategy, {"placeholder": None}, TypeError, f"{TEMPLATE}, got None"),
        (DropMediaStrategy, {"placeholder": "{what}"}, ValueError, f"{TEMPLATE}, got '{{what}}'"),
        (DropMediaStrategy, {"placeholder": " "}, ValueError, f"{TEMPLATE} and says something, got ' '"),
    ],
    ids=str,
)
def test_wrong_arguments(strategy: Any, arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        strategy(trigger=cc.always, **arguments)
    assert str(caught.value) == text
