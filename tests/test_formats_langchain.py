"""LangChain messages: its own objects and the dicts they are stored as, which all read alike."""

import copy
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

import chat_compaction as cc
from chat_compaction.formats import Media, Message, Part, PartKind, Role
from chat_compaction.formats.langchain import LangChainFormat

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
FORMAT = LangChainFormat()
BASE64 = "iVBORw0KGgo" * 400
TOOL_CALL = {"id": "a", "name": "look", "args": {"q": 1}, "type": "tool_call"}
BAD_CALL = {"id": "b", "name": "look", "args": "{broken", "error": "e", "type": "invalid_tool_call"}


def read(raw: Any) -> Message:
    return FORMAT.read(raw, 0)


def ai(content: Any = "", **fields: Any) -> dict[str, Any]:
    return {"type": "ai", "content": content, **fields}


def parts(content: Any, **fields: Any) -> tuple[Part, ...]:
    return read(ai(content, **fields)).parts


OBJECTS: list[tuple[AnyMessage | RemoveMessage, Message]] = [
    (HumanMessage("q", name="Ann"), Message(Role.USER, (Part(TEXT, "q"),), "Ann")),
    (HumanMessage(["a", {"type": "text", "text": "b"}]), Message(Role.USER, (Part(TEXT, "a"), Part(TEXT, "b")))),
    (SystemMessage("s"), Message(Role.SYSTEM, (Part(TEXT, "s"),))),
    (
        AIMessage("a", tool_calls=[TOOL_CALL], invalid_tool_calls=[BAD_CALL]),
        Message(
            Role.ASSISTANT, (Part(TEXT, "a"), Part(CALL, '{"q":1}', "look", "a"), Part(CALL, "{broken", "look", "b"))
        ),
    ),
    (
        AIMessage("a", additional_kwargs={"reasoning_content": "hm"}),
        Message(Role.ASSISTANT, (Part(REASONING, "hm"), Part(TEXT, "a"))),
    ),
    (AIMessageChunk(content="a"), Message(Role.ASSISTANT, (Part(TEXT, "a"),))),
    (
        ToolMessage("out", tool_call_id="a", artifact={"not": "sent"}),
        Message(Role.TOOL, (Part(RESULT, "out", call_id="a"),)),
    ),
    (FunctionMessage(content="out", name="look"), Message(Role.TOOL, (Part(RESULT, "out", "look"),))),
    (ChatMessage(content="c", role="user"), Message(Role.USER, (Part(TEXT, "c"),))),
    (RemoveMessage(id="x"), Message(Role.ASSISTANT)),
]


@pytest.mark.parametrize(("raw", "expected"), OBJECTS)
def test_objects_and_their_stored_forms_read_alike(raw: Any, expected: Message) -> None:
    """The object, its fields as a state holds them, and both forms that LangChain itself writes."""
    forms = [raw, raw.model_dump(), message_to_dict(raw), dumpd(raw)]
    for form in forms:
        assert read(form) == expected
        assert FORMAT.claims(form)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": None}, Part(TEXT)),
        ({"type": "refusal", "refusal": "no"}, Part(TEXT, "no")),
        ({"type": "reasoning", "reasoning": "hm"}, Part(REASONING, "hm")),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, Part(REASONING, "hm", signed=True)),
        (
            {"type": "reasoning", "reasoning": "", "extras": {"signature": "s"}},
            Part(REASONING, media=(Media("encrypted_reasoning"),), signed=True),
        ),
        (
            {"type": "redacted_thinking", "data": "x"},
            Part(REASONING, media=(Media("encrypted_reasoning"),), signed=True),
        ),
        (
            {"type": "reasoning_content", "reasoning_content": {"text": "hm", "signature": "s"}},
            Part(REASONING, "hm", signed=True),
        ),
        (
            {"type": "reasoning", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "x"},
            Part(REASONING, "a\nb", media=(Media("encrypted_reasoning"),)),
        ),
        ({"type": "compaction", "content": "in short"}, Part(PartKind.COMPACTION, "in short")),
        (
            {"type": "compaction", "encrypted_content": "x"},
            Part(PartKind.COMPACTION, media=(Media("encrypted_reasoning"),)),
        ),
        ({"type": "compaction", "content": None}, Part(PartKind.OPAQUE)),
        ({"type": "image_url", "image_url": {"url": "https://a.b"}}, Part(MEDIA, media=(Media("image"),))),
        ({"type": "image_url", "image_url": "https://a.b"}, Part(MEDIA, media=(Media("image"),))),
        ({"type": "image", "base64": BASE64, "mime_type": "image/png"}, Part(MEDIA, media=(Media("image"),))),
        ({"type": "image", "source": {"type": "base64", "data": BASE64}}, Part(MEDIA, media=(Media("image"),))),
        ({"type": "media", "mime_type": "audio/wav", "data": BASE64}, Part(MEDIA, media=(Media("audio"),))),
        ({"type": "file", "file_id": "f"}, Part(MEDIA, media=(Media("document"),))),
        (
            {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"q": 1}},
            Part(CALL, '{"q":1}', "web_search", "s"),
        ),
        (
            {"type": "server_tool_result", "tool_call_id": "s", "output": "x"},
            Part(RESULT, '{"output":"x"}', call_id="s"),
        ),
        (
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            Part(RESULT, '{"content":[]}', call_id="s"),
        ),
        ({"type": "brand_new", "x": 1}, Part(OPAQUE, '{"x":1}')),
    ],
)
def test_blocks(block: dict[str, Any], expected: Part) -> None:
    """C1: blocks of the providers and of LangChain's own; media and what is encrypted never by their length."""
    (found,) = parts([block])
    media = tuple(Media(media.kind) for media in found.media)
    assert Part(found.kind, found.text, found.name, found.call_id, media, found.signed) == expected


def test_google_binds_no_signature() -> None:
    """A signature of Gemini's belongs to its part, not to what stands ahead."""
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert parts([block], response_metadata={"model_provider": "google_genai"}) == (Part(REASONING, "hm"),)


CALL_BLOCKS = [
    {"type": "tool_use", "id": "a", "name": "look", "input": {"q": 1}},
    {"type": "tool_call", "id": "a", "name": "look", "args": {"q": 1}},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": '{"q":1}'},
]


@pytest.mark.parametrize("block", CALL_BLOCKS, ids=lambda block: str(block["type"]))
def test_a_call_counts_once(block: dict[str, Any]) -> None:
    """C1: a call in ``tool_calls`` often stands in the content, too; without the list, the block is the call."""
    one = Part(CALL, '{"q":1}', "look", "a")
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    raw = ai([{"type": "text", "text": "x"}, block, delta], tool_calls=[TOOL_CALL])
    assert read(raw).parts == (Part(TEXT, "x"), one)
    assert parts([block]) == (one,)
    assert FORMAT.without(raw, {1}) == {**raw, "content": [raw["content"][0], delta], "tool_calls": []}
    renamed: Any = FORMAT.renamed(raw, 1, "new")
    assert read(renamed).parts == (Part(TEXT, "x"), Part(CALL, '{"q":1}', "look", "new"))
    assert "new" in renamed["content"][1].values()
    assert read(FORMAT.renamed(ai([block]), 0, "new")).call_ids == ["new"]


def test_calls_in_additional_kwargs() -> None:
    """As older versions store them; with the parsed list beside, they are not counted again."""
    raw_call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}}
    extra = {"tool_calls": [raw_call]}
    assert parts("", additional_kwargs=extra) == (Part(CALL, '{"q":1}', "look", "a"),)
    both = ai("", tool_calls=[TOOL_CALL], additional_kwargs=extra)
    assert read(both).call_ids == ["a"]
    assert FORMAT.without({**both, "content": "x"}, {1}) == ai("x", tool_calls=[], additional_kwargs={"tool_calls": []})
    assert FORMAT.renamed(ai("", additional_kwargs=extra), 0, "new") is None
    legacy = {"function_call": {"name": "look", "arguments": "{}"}}
    assert parts("", additional_kwargs=legacy) == (Part(CALL, "{}", "look"),)


def test_reasoning_in_additional_kwargs() -> None:
    """An item of the Responses API there; where the content has reasoning, it stands for it."""
    item = {"reasoning": {"id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}}
    assert parts("a", additional_kwargs=item) == (Part(REASONING, "hm"), Part(TEXT, "a"))
    thinking = {"type": "thinking", "thinking": "hm"}
    assert parts([thinking], additional_kwargs={"reasoning_content": "hm"}) == (Part(REASONING, "hm"),)
    raw = ai("a", additional_kwargs={"reasoning_content": "hm", "other": 1})
    assert FORMAT.without(raw, {0}) == ai("a", additional_kwargs={"other": 1})


def test_groups_of_a_thread() -> None:
    """G2: calls and results tie by id; results follow their call at once (K7)."""
    history = [
        HumanMessage("q"),
        AIMessage("", tool_calls=[TOOL_CALL]),
        ToolMessage("out", tool_call_id="a"),
        AIMessage("done"),
    ]
    index = cc.MessageIndex.from_messages(history, format=FORMAT)
    assert [group.positions for group in index.groups] == [(0,), (1, 2), (3,)]
    assert index.problems == ()
    moved = [history[0], history[1], HumanMessage("wait"), *history[2:]]
    found = cc.MessageIndex.from_messages(moved, format=FORMAT).problems
    assert [problem.rule for problem in found] == ["not_adjacent"]


@pytest.mark.parametrize("form", [lambda raw: raw, message_to_dict, dumpd], ids=["object", "data", "constructor"])
def test_writing(form: Any) -> None:
    """K8: a changed copy of the same form, which LangChain itself accepts; the caller's stays as it is."""
    raw = form(AIMessage("a", tool_calls=[TOOL_CALL, {**TOOL_CALL, "id": "b"}]))
    before = copy.deepcopy(raw)
    cut: Any = FORMAT.without(raw, {1})
    renamed: Any = FORMAT.renamed(raw, 2, "new")
    assert type(cut) is type(renamed) is type(raw)
    assert (read(cut).call_ids, read(renamed).call_ids) == (["b"], ["a", "new"])
    assert [part.text for part in read(FORMAT.without(raw, {0})).parts] == ['{"q":1}', '{"q":1}']
    assert FORMAT.without(raw, {0, 1, 2}) is None
    assert raw == before
    if form is message_to_dict:
        loaded: Any = messages_from_dict([cut])[0]
        assert [call["id"] for call in loaded.tool_calls] == ["b"]
    answer = form(ToolMessage("out", tool_call_id="a"))
    assert read(FORMAT.renamed(answer, 0, "new")).result_ids == ["new"]
    assert FORMAT.without(answer, {0}) is None
    joined = FORMAT.joined(form(HumanMessage("a")), form(HumanMessage(["b", ""])))
    assert [part.text for part in read(joined).parts] == ["a", "b", ""]
    assert FORMAT.joined(raw, raw) is None


def test_without_blocks() -> None:
    """Blocks leave by their number, also where others of the content are no part."""
    blocks = [CALL_BLOCKS[0], {"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    raw = ai(blocks, tool_calls=[TOOL_CALL])
    assert FORMAT.without(raw, {0}) == ai([blocks[0], blocks[2]], tool_calls=[TOOL_CALL])


def test_detection() -> None:
    """Other formats have a role, other types, or neither content nor data."""
    others: list[Any] = [
        {"role": "user", "content": "a"},
        {"role": "tool", "type": "tool", "content": "a"},
        {"type": "message", "content": []},
        {"type": "gemini", "content": "a"},
        {"type": "human"},
        {"type": "constructor", "lc": 1},
        "human",
    ]
    assert not any(map(FORMAT.claims, others))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"type": "alien", "content": ""}, ".type must be one of human, ai, tool, "),
        ({"content": ""}, ".type is missing"),
        ({"type": "constructor", "lc": 1, "id": [], "kwargs": {"content": ""}}, ".type is missing"),
        (ai(7), ".content must be a string or a list, got 7"),
        (ai([7]), ".content[0] must be an object, got 7"),
        (ai([{"type": "text", "text": 7}]), ".content[0].text must be a string, got 7"),
        (ai(tool_calls={}), ".tool_calls must be a list, got a dict"),
        (ai(tool_calls=[{"id": 7, "name": "x"}]), ".tool_calls[0].id must be a string, got 7"),
        (ai(invalid_tool_calls=[{"name": 7}]), ".invalid_tool_calls[0].name must be a string, got 7"),
        ({"type": "tool", "content": "x"}, ".tool_call_id must be a string, got None"),
        (ai("", name=7), ".name must be a string, got 7"),
    ],
)
def test_what_cannot_be_read(raw: Any, message: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        FORMAT.read(raw, 5)
    assert str(caught.value).startswith(f"messages[5]{message}")
