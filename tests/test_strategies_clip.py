"""Clipping: huge texts are cut, the largest first, and nothing leaves (K3, K4, K6, K7, K8, K10, K13)."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction._clipping import MARKER
from chat_compaction.strategies.clip import ClipStrategy
from chat_compaction.testing import RecordingCounter, histories
from tests.build import call, index_of, result, said, signed, system, user
from tests.conformance import shapes
from tests.legality import FORMATS, faults, links
from tests.test_growth import MOST, growth

MARK = "<{tokens}>"
EVERY: Any = ("tool_result", "tool_call", "assistant", "user")


def clip(trigger: cc.Predicate = cc.always, target: cc.Predicate | None = None, **arguments: Any) -> ClipStrategy:
    """A short marker, so that a text can be checked by eye."""
    return ClipStrategy(trigger=trigger, target=target, **{"max_tokens": 20, "marker": MARK, **arguments})


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any], **arguments: Any
) -> tuple[list[Any], cc.CompactionReport]:
    index = index_of(messages, **arguments)
    report = strategy.compact(index, hooks=())
    return index.included_messages(), report


def sizes(messages: Sequence[Any]) -> list[int]:
    """The characters of each message's text."""
    return [len(message["content"] or "") for message in messages]


def long(size: int, letter: str = "x") -> str:
    return letter * size


HISTORY = [
    user("task"),
    call("a"),
    result("a", long(100, "a")),
    call("b"),
    result("b", long(300, "b")),
    call("c"),
    result("c", long(200, "c")),
]


# -- the cases from other projects ---------------------------------------------------------------------


def shape_of(case: str) -> shapes.Shape:
    (shape,) = (shape for shape in shapes.load() if shape.id == case)
    return shape


def json_size(messages: Sequence[Any]) -> int:
    """The estimate of the shapes: a token for four characters of the JSON."""
    return len(json.dumps(messages)) // 4


def run_shape(case: str, limit: int, **arguments: Any) -> tuple[list[Any], list[Any], cc.CompactionReport]:
    """The frame of the JSON is reserved, so that the limit is that of the shape; a little of it is for escapes."""
    messages = shape_of(case).messages
    counter = cc.FunctionCounter(lambda text: len(json.dumps(text)) // 4, name="json")
    reserved = json_size(messages) - shapes.count(messages, counter) + 10
    strategy = ClipStrategy(trigger=cc.tokens > limit, max_tokens=50, **arguments)
    after, report = compact(strategy, messages, counter=counter, reserved=reserved)
    assert json_size(after) <= limit  # under_target
    assert report.fits
    assert links(after, "openai_chat") == links(messages, "openai_chat")  # pairs_intact
    assert faults(after, "openai_chat") == []
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    assert after[last] is messages[last]  # last_user_kept
    return messages, after, report


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_shrinks_largest(clip_to: Any) -> None:
    """c44: the largest result is shortened before any message is dropped."""
    before, after, report = run_shape("c44", 600, clip_to=clip_to)
    changed = [place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0] is not pair[1]]
    assert changed == [max(range(len(before)), key=lambda place: len(before[place]["content"] or ""))]
    assert report.excluded == ()
    lines = set(before[4]["content"].split("\n"))
    assert sum(line not in lines for line in after[4]["content"].split("\n")) == 1


@pytest.mark.parametrize(("case", "limit"), [("c46", 1500), ("c47", 1200)])
@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_args_json_valid(case: str, limit: int, clip_to: Any) -> None:
    """c46, c47: shortened arguments still parse and keep their keys, and a pass over arguments alone is a change."""
    before, after, report = run_shape(case, limit, clip_to=clip_to, kinds=["tool_call"])
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] is not pair[1]]
    assert changed
    assert report.changed
    assert len(report.replaced) == len(changed)
    assert report.tokens_after <= limit
    for was, now in changed:
        (one,), (other,) = was["tool_calls"], now["tool_calls"]
        given_arguments, clipped = (json.loads(c["function"]["arguments"]) for c in (one, other))
        assert list(given_arguments) == list(clipped)
        assert given_arguments["path"] == clipped["path"]
        assert len(clipped["content"]) < len(given_arguments["content"])


# -- what is clipped, and how much ---------------------------------------------------------------------


def test_the_largest_are_cut_to_one_length_as_the_target_needs() -> None:
    """``clip_to="target"``: and not to less; what is smaller stays."""
    after, report = compact(clip(cc.tokens > 400), HISTORY)
    assert sizes(after)[2] == 100
    assert sizes(after)[4] + sizes(after)[6] + 100 + 4 in (399, 400)
    assert abs(sizes(after)[4] - sizes(after)[6]) <= 1
    assert (report.stopped_by, report.fits, report.excluded) == ("target", True, ())
    assert [replaced.positions for replaced in report.replaced] == [(3, 4), (5, 6)]


def test_each_is_cut_to_the_least_the_largest_first() -> None:
    """``clip_to="min_tokens"``: the target is asked after each one (K3)."""
    after, _ = compact(clip(cc.tokens > 400, clip_to="min_tokens"), HISTORY)
    assert sizes(after) == [4, 0, 100, 0, 20, 0, 200]
    after, _ = compact(clip(cc.tokens > 300, clip_to="min_tokens"), HISTORY)
    assert sizes(after) == [4, 0, 100, 0, 20, 0, 20]


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_no_text_is_cut_below_the_least(clip_to: Any) -> None:
    """K5: the report says that it does not fit, and what is in the way."""
    after, report = compact(clip(cc.tokens > 10, clip_to=clip_to, max_tokens=150, min_tokens=30), HISTORY)
    assert sizes(after) == [4, 0, 100, 0, 30, 0, 30]
    assert (report.fits, report.stopped_by) == (False, "exhausted")


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_what_is_not_huge_stays(clip_to: Any) -> None:
    after, report = compact(clip(cc.tokens > 10, clip_to=clip_to, max_tokens=300), HISTORY)
    assert all(one is other for one, other in zip(after, HISTORY, strict=True))
    assert not report.changed


def test_nothing_happens_where_nothing_has_to() -> None:
    """K1 and K3: the trigger does not fire, or the target holds."""
    assert compact(clip(cc.tokens > 10_000), HISTORY)[1].skipped == "trigger"
    after, report = compact(clip(cc.messages > 1, cc.tokens < 10_000), HISTORY)
    assert report.skipped == "target"
    assert after == HISTORY


def test_a_target_of_another_kind() -> None:
    """One that clipping can't reach: all that is huge is cut to the least."""
    after, report = compact(clip(cc.messages > 2, cc.messages <= 2), HISTORY)
    assert sizes(after) == [4, 0, 20, 0, 20, 0, 20]
    assert not report.fits


@pytest.mark.parametrize(
    ("target", "size"),
    [
        ((cc.tokens <= 500) & (cc.tokens <= 400), 400),
        ((cc.tokens <= 500) | (cc.tokens <= 400), 500),
        ((cc.tokens <= 500) & (cc.messages <= 100), 500),
        ((cc.tokens < 501) | (cc.messages <= 2), 500),
    ],
)
def test_the_loosest_limit_that_is_enough(target: cc.Predicate, size: int) -> None:
    after, report = compact(clip(cc.always, target), HISTORY)
    assert size - 2 <= sum(sizes(after)) <= size
    assert report.stopped_by == "target"


def test_the_newest_result_can_be_clipped_and_the_users_newest_message_not() -> None:
    """K4: the floor is empty; a single result of 200,000 tokens is the common case."""
    messages = [user("task"), call("a"), result("a", long(90))]
    assert sizes(compact(clip(cc.tokens > 30), messages)[0])[2] <= 26
    messages = [user(long(90))]
    assert compact(clip(cc.tokens > 30), messages)[1].changed is False
    after, report = compact(clip(cc.tokens > 30, keep_last_user=False), messages)
    assert report.fits
    assert len(after[0]["content"]) == 30


def test_a_floor_may_be_set() -> None:
    """K4: ``min_preserved_groups`` and ``min_preserved_messages``."""
    floors: list[dict[str, Any]] = [{"min_preserved_groups": 1}, {"min_preserved_messages": 1}]
    for floor in floors:
        after, _ = compact(clip(cc.tokens > 10, **floor), HISTORY)
        assert sizes(after) == [4, 0, 20, 0, 20, 0, 200]


def test_the_kinds() -> None:
    arguments = json.dumps({"text": long(90, "t")})
    caller = call("a")
    caller["tool_calls"][0]["function"]["arguments"] = arguments
    messages = [user(long(91, "u")), said(long(92, "s")), caller, result("a", long(93, "r")), user("next")]
    changes = {"user": [0], "assistant": [1], "tool_call": [2], "tool_result": [3]}
    for kind, expected in changes.items():
        after, _ = compact(clip(cc.tokens > 10, kinds=[kind]), messages)
        assert [place for place in range(5) if after[place] is not messages[place]] == expected, kind
    after, _ = compact(clip(cc.tokens > 10), messages)
    assert [place for place in range(5) if after[place] is not messages[place]] == [0, 1, 3]


def test_arguments_that_can_not_be_so_short_are_as_short_as_they_can_be() -> None:
    """K10: once and for all, where the least can't be written with all keys and short values in place."""
    todos = {"todos": [{"content": f"{n} {'word ' * 25}", "status": "pending"} for n in range(6)]}
    messages = [user(), call("a"), result("a", "done")]
    messages[1]["tool_calls"][0]["function"]["arguments"] = json.dumps(todos)
    total = index_of(messages, counter=len).value(cc.tokens)
    for limit, clipped, fits in [(total, 0, True), (600, 6, True), (450, 6, True), (200, 6, False)]:
        arguments: Any = {
            "max_tokens": 300,
            "min_tokens": 100,
            "kinds": ["tool_call"],
            "marker": "<... {tokens} gone ...>",
        }
        strategy = clip(cc.tokens > limit, **arguments)
        after, report = compact(strategy, messages, counter=len)
        written = json.loads(after[1]["tool_calls"][0]["function"]["arguments"])["todos"]
        assert [todo["status"] for todo in written] == ["pending"] * 6
        assert sum("<" in todo["content"] for todo in written) == clipped
        assert report.fits is fits
        if not fits:
            assert {todo["content"] for todo in written} == {"<... 127 gone ...>"}
        assert not compact(strategy, after, counter=len)[1].changed


def test_arguments_that_are_no_json_stay() -> None:
    """They would not parse afterwards either; other text takes their place nowhere."""
    caller = call("a")
    caller["tool_calls"][0]["function"]["arguments"] = '{"broken": "' + long(90)
    messages = [user(), caller, result("a")]
    after, report = compact(clip(cc.tokens > 10, kinds=["tool_call"]), messages, counter=RecordingCounter(framing=True))
    assert after == messages
    assert not report.changed


def test_what_a_custom_tool_takes_is_text() -> None:
    custom = {"type": "custom", "id": "a", "custom": {"name": "patch", "input": long(90)}}
    messages = [user(), {"role": "assistant", "content": None, "tool_calls": [custom]}, result("a"), user("next")]
    counter = RecordingCounter(framing=True)
    after, _ = compact(clip(cc.tokens > 10, kinds=["tool_call"]), messages, counter=counter)
    assert len(after[1]["tool_calls"][0]["custom"]["input"]) == 20


def test_the_share_of_the_head_and_the_marker() -> None:
    after, _ = compact(clip(cc.tokens > 10, head_share=0.0, marker="[cut]"), [user(), said(long(90)), user("next")])
    assert after[1]["content"] == "[cut]" + long(15)
    after, _ = compact(clip(cc.tokens > 10, max_tokens=60, marker=MARKER), [user(), said(long(990)), user("next")])
    assert after[1]["content"] == long(16) + "[... 958 tokens clipped ...]" + long(16)


# -- what is never touched -----------------------------------------------------------------------------


def picture(call_id: str, text: str) -> dict[str, Any]:
    """A result with an image beside its text, in Anthropic's format."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    content = [{"type": "text", "text": text}, {"type": "image", "source": source}]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content}]}


def test_never_beside_signed_reasoning_and_never_media() -> None:
    """K6: the signature would be refused, and an image can't be cut."""
    messages = [
        user("task"),
        signed(text=long(90)),
        user("more"),
        call("a", format="anthropic"),
        picture("a", long(90)),
        user("next"),
    ]
    after, report = compact(clip(cc.tokens > 10), messages, format="anthropic")
    assert after == messages
    assert not report.changed


def test_never_a_system_pinned_or_pending_message() -> None:
    """K4 and G3."""
    messages = [system(long(90)), user(long(91)), said(long(92)), user("next"), call("a", text=long(93))]
    after, report = compact(clip(cc.tokens > 10), messages, pinned=[messages[1]])
    assert [place for place in range(5) if after[place] is not messages[place]] == [2]
    assert {blocker.reason for blocker in report.blocked_by} >= {"pinned", "pending"}


def test_never_a_summary() -> None:
    """S1: its mark holds a digest of its words."""

    class Sum(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            assert index.summarize(self.candidates(index)[:2], long(90), "summary")

    index = index_of([user("one"), said(long(200)), user("two"), said("three")])
    Sum(trigger=cc.always, target=cc.tokens < 1, min_preserved_groups=1).compact(index, hooks=())
    before = index.included_messages()
    assert not clip(cc.tokens > 10).compact(index, hooks=()).changed
    assert index.included_messages() == before


@pytest.mark.parametrize("keep", ["K-17", re.compile(r"(?m)^KEY: .*$"), lambda message: "KEY" in str(message)])
@pytest.mark.parametrize("format_name", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_never_a_text_with_what_must_be_kept(keep: Any, format_name: str, clip_to: Any) -> None:
    """S4: the others are cut for it."""
    key = f"{long(150)}\nKEY: K-17\n{long(150)}"
    messages = [user(), said(key), user(), said(long(200)), user(), said(long(200)), user()]
    after, report = compact(clip(cc.tokens > 450, must_keep=keep, clip_to=clip_to), messages, format=format_name)
    assert after[1] is messages[1]
    assert report.fits
    assert report.tokens_after <= 450


def test_what_was_replaced_by_nothing_does_not_come_back() -> None:
    """A group may have lost a message to another strategy; where it stood, nothing is written."""

    class Collapse(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            assert index.rewrite(index.groups[1], {1: said("looked"), 2: None}, "collapse")

    index = index_of([user("task"), call("a"), result("a", long(90)), user("next")])
    Collapse(trigger=cc.always, target=cc.tokens < 1, min_preserved_groups=0).compact(index, hooks=())
    clip(cc.tokens > 1).compact(index, hooks=())
    assert [message["content"] for message in index.included_messages()] == ["task", "looked", "next"]


def test_the_messages_of_the_caller_stay_as_they_were() -> None:
    """K8: a clipped message is a copy; every other one is the caller's own object."""
    pristine = copy.deepcopy(HISTORY)
    after, _ = compact(clip(cc.tokens > 10), HISTORY)
    assert pristine == HISTORY
    kept = [one is other for one, other in zip(after, HISTORY, strict=True)]
    assert (
        kept
        == [True, True, False] * 1
        + [
            True,
            False,
        ]
        * 2
    )


def test_all_or_nothing() -> None:
    """K9: a counter that fails on the way leaves the index as it was."""

    def fails(text: str) -> int:
        if "<" in text:
            raise RuntimeError("no more")
        return len(text)

    index = index_of(HISTORY, counter=cc.FunctionCounter(fails, framing=False))
    before = index.snapshot()
    with pytest.raises(RuntimeError, match="no more"):
        clip(cc.tokens > 400).compact(index, hooks=())
    assert index.snapshot() == before
    assert index.included_messages() == HISTORY


def test_it_can_be_undone() -> None:
    """A replacement is linked to what it replaced."""
    index = index_of(HISTORY)
    clip(cc.tokens > 400).compact(index, hooks=())
    for group in index.groups:
        if group.replaced:
            assert group.replaced == "clip"
            index.restore(group)
    assert all(one is other for one, other in zip(index.included_messages(), HISTORY, strict=True))


# -- several texts in a message, and other formats ------------------------------------------------------


def test_several_texts_in_one_message() -> None:
    """Results of parallel calls in one message of Anthropic's: each is clipped from what it was."""
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": long(90, name)} for name in "abc"]
    messages = [user("task"), call("a", "b", "c", format="anthropic"), {"role": "user", "content": blocks}]
    after, report = compact(clip(cc.tokens > 94), messages, format="anthropic")
    texts = [block["content"] for block in after[2]["content"]]
    assert [len(text) for text in texts] == [30, 30, 30]
    assert [{*text} - {*"<>0123456789"} for text in texts] == [{"a"}, {"b"}, {"c"}]
    assert report.fits


RESULTS: list[tuple[str, list[Any]]] = [
    (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "task"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": long(90)}}}]},
        ],
    ),
    (
        "bedrock_converse",
        [
            {"role": "user", "content": [{"text": "task"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": long(90)}]}}]},
        ],
    ),
    (
        "openai_responses",
        [
            {"role": "user", "content": "task"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": long(90)},
        ],
    ),
    (
        "langchain",
        [
            {"type": "human", "content": "task"},
            {"type": "ai", "content": "", "tool_calls": [{"id": "a", "name": "look", "args": {}, "type": "tool_call"}]},
            {"type": "tool", "tool_call_id": "a", "content": long(90)},
        ],
    ),
]


@pytest.mark.parametrize(("format_name", "messages"), RESULTS, ids=[name for name, _ in RESULTS])
def test_results_of_other_formats(format_name: str, messages: list[Any]) -> None:
    """K7: written as the format has them, and no longer than they may be."""
    index = index_of(messages, format=format_name)
    report = clip(cc.tokens > 40).compact(index, hooks=())
    assert report.fits
    view = index.format.read(index.included_messages()[2], 2)
    assert len(view.parts[0].text) == 36
    assert "<" in view.parts[0].text
    assert faults(index.included_messages(), format_name) == []


def test_a_format_of_ones_own_that_writes_more_than_it_is_given() -> None:
    """K10: what would come out longer than the limit is not written, so that it is not clipped for ever."""

    @attrs.frozen(repr=False)
    class Chatty(type(FORMAT)):  # type: ignore[misc]
        def with_texts(self, raw: Any, texts: Any) -> Any | None:
            return super().with_texts(raw, {number: f"Clipped: {text}" for number, text in texts.items()})

    after, report = compact(clip(cc.tokens > 10), HISTORY, format=Chatty())
    assert after == HISTORY
    assert not report.changed


FORMAT = index_of(HISTORY, format="openai_chat").format


def huge(messages: list[Any]) -> list[Any]:
    """The same history with longer texts: what histories draw is short."""
    return json.loads(json.dumps(messages).replace('"ok"', f'"{long(40)}"'))  # type: ignore[no-any-return]


ANY = {name: histories(name) | histories(name, hostile=True) for name in FORMATS}


@pytest.mark.parametrize("format_name", FORMATS)
@settings(max_examples=12)
@given(data=st.data())
def test_valid_stays_valid_and_again_changes_nothing(format_name: str, data: st.DataObject) -> None:
    """K7, K8, K10, in every format, whatever the history."""
    messages = huge(data.draw(ANY[format_name]))
    strategy = clip(
        cc.tokens > data.draw(st.integers(0, 80)),
        max_tokens=data.draw(st.integers(0, 12)),
        clip_to=data.draw(st.sampled_from(["target", "min_tokens"])),
        kinds=EVERY,
        keep_last_user=data.draw(st.booleans()),
    )
    pristine = copy.deepcopy(messages)
    counter = cc.FunctionCounter(len, name="characters")
    after, _ = compact(strategy, messages, format=format_name, counter=counter, validate=True)
    assert messages == pristine
    assert len(after) == len(messages)
    assert index_of(after, format=format_name).value(cc.tokens) <= index_of(messages, format=format_name).value(
        cc.tokens
    )
    known = {(fault.kind, fault.position, fault.call_id) for fault in faults(messages, format_name)}
    assert {(fault.kind, fault.position, fault.call_id) for fault in faults(after, format_name)} <= known
    assert links(after, format_name) == links(messages, format_name)
    again, second = compact(strategy, after, format=format_name, counter=counter)
    assert not second.changed
    assert all(one is other for one, other in zip(again, after, strict=True))


# -- what it costs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_growth(clip_to: Any) -> None:
    """K13: eight times as many huge results are eight times the work, a sort aside."""

    def prepare(n: int) -> Any:
        messages = [user("task"), *(m for i in range(n) for m in [call(f"c{i}"), result(f"c{i}", long(60 + i % 7))])]
        index = index_of(messages)
        strategy = clip(cc.tokens > 30 * n, clip_to=clip_to)
        return lambda: strategy.compact(index, hooks=())

    assert growth(prepare) < MOST


def parallel(n: int) -> list[Any]:
    """One response with many calls, and their huge results."""
    ids = [f"c{i}" for i in range(n)]
    return [user("task"), call(*ids), *(result(name, long(60 + i % 7)) for i, name in enumerate(ids))]


def parallel_anthropic(n: int) -> list[Any]:
    ids = [f"c{i}" for i in range(n)]
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": long(60 + i % 7)} for i, name in enumerate(ids)]
    return [user("task"), call(*ids, format="anthropic"), {"role": "user", "content": blocks}]


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
@pytest.mark.parametrize("shape", [parallel, parallel_anthropic])
def test_growth_of_one_group(shape: Any, clip_to: Any) -> None:
    """K13: to rewrite a group is linear in it, so its texts are not written one by one."""

    def prepare(n: int) -> Any:
        index = index_of(shape(n), format="anthropic" if shape is parallel_anthropic else "openai_chat")
        strategy = clip(cc.tokens > 30 * n, clip_to=clip_to)
        return lambda: strategy.compact(index, hooks=())

    assert growth(prepare) < MOST


@pytest.mark.parametrize("clip_to", ["target", "min_tokens"])
def test_a_target_that_looks_at_the_messages_sees_each_cut(clip_to: Any) -> None:
    """K3: nothing is cut once it holds, whatever it asks."""

    @cc.predicate
    def one_is_cut(index: Any) -> bool:
        return any("<" in str(message["content"]) for message in index.included_messages())

    after, report = compact(clip(cc.always, one_is_cut, clip_to=clip_to), parallel(4))
    assert sizes(after)[2:] == [60, 61, 62, 20]
    assert report.stopped_by == "target"


def test_one_that_can_not_be_written_keeps_no_other() -> None:
    """K7: of several cuts in one group, and in one message."""

    @attrs.frozen(repr=False)
    class Picky(type(ANTHROPIC)):  # type: ignore[misc]
        def with_texts(self, raw: Any, texts: Any) -> Any | None:
            return None if 2 in texts else super().with_texts(raw, texts)

    for limit, size in [(1, 20), (150, 29), (200, 39)]:
        strategy = clip(cc.tokens > limit + 60 + 4)
        after, report = compact(strategy, parallel_anthropic(6), format=Picky())
        lengths = [len(block["content"]) for block in after[2]["content"]]
        assert lengths.pop(2) == 62
        assert max(lengths) - min(lengths) <= 1
        assert (report.fits, min(lengths)) == (limit > 1, size)


ANTHROPIC = index_of(parallel_anthropic(1), format="anthropic").format


def test_a_huge_result_is_counted_once() -> None:
    """C4: beyond that, a handful of texts of the size of the result."""
    counter = RecordingCounter()
    text = "\n".join(f"row {number:06}: reading {number * 37 % 101}" for number in range(20_000))
    strategy = ClipStrategy(trigger=cc.tokens > 5_000)
    after, report = compact(strategy, [user(), call("a"), result("a", text)], counter=counter)
    assert report.fits
    assert len(after[2]["content"]) > 4_900
    assert sum(map(len, counter.counted)) < len(text) + 20 * 8_000


# -- a value -------------------------------------------------------------------------------------------


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    strategy = ClipStrategy(
        trigger=cc.tokens > 8_000, max_tokens=500, kinds=["user"], head_share=0.7, clip_to="min_tokens"
    )
    names = {"ClipStrategy": ClipStrategy, "tokens": cc.tokens}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != ClipStrategy(trigger=cc.tokens > 8_000)
    assert repr(ClipStrategy(trigger=cc.tokens > 8_000)) == "ClipStrategy(trigger=tokens > 8000)"


KINDS = "kinds must be some of 'tool_result', 'tool_call', 'assistant', 'user', got"
SHARE = "head_share must be a number from 0 to 1, got"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"max_tokens": -1}, ValueError, "max_tokens must be an int of 0 or more, got -1"),
        ({"min_tokens": 1.5}, TypeError, "min_tokens must be an int of 0 or more, got 1.5"),
        ({"max_tokens": 10, "min_tokens": 11}, ValueError, "min_tokens must be at most max_tokens (10), got 11"),
        ({"clip_to": "max"}, ValueError, "clip_to must be one of 'target', 'min_tokens', got 'max'"),
        ({"kinds": "user"}, TypeError, f"{KINDS} 'user'"),
        ({"kinds": ["media"]}, ValueError, f"{KINDS} ('media',)"),
        ({"kinds": []}, ValueError, f"{KINDS} ()"),
        ({"head_share": 1.1}, ValueError, f"{SHARE} 1.1"),
        ({"head_share": True}, TypeError, f"{SHARE} True"),
        ({"marker": "{lines}"}, ValueError, "marker must be a text that may have the field {tokens}, got '{lines}'"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        ClipStrategy(trigger=cc.always, **arguments)
    assert str(caught.value) == text
