"""What ``with_texts`` and ``saying`` write: each shape of each format, and the SDKs' own objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from google.genai import types
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

from chat_compaction.formats import FORMATS, Format, Message, Part, PartKind, Role

Raw = dict[str, Any]
GONE = object()
ARGUMENTS = '{"q": "b"}'
CACHED: Raw = {"cache_control": {"type": "ephemeral"}}


def changes(raw: Raw, *path: Any, to: Any) -> Raw:
    """A copy of a message with another value at a place; GONE takes a key out."""
    twin = copy.deepcopy(raw)
    inner: Any = twin
    for step in path[:-1]:
        inner = inner[step]
    if to is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return twin


CHAT_CALL: Raw = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q":"a"}'}},
        {"id": "b", "type": "custom", "custom": {"name": "run", "input": "now"}},
    ],
}
OLLAMA: Raw = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "look", "arguments": {"q": "a"}}}],
}
ITEM: Raw = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
OUTPUT: Raw = {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "long"}]}
BLOCKS: Raw = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look.", **CACHED},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"q": "a"}, **CACHED},
    ],
}
RESULT: Raw = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": [{"type": "image"}], **CACHED},
        {"type": "text", "text": "Go on."},
    ],
}
CONVERSE: Raw = {
    "role": "user",
    "content": [
        {"cachePoint": {"type": "default"}},
        {"toolResult": {"toolUseId": "a", "status": "error", "content": [{"json": {"a": 1}}, {"text": "b"}]}},
        {"guardContent": {"text": {"text": "guarded", "qualifiers": ["query"]}}},
    ],
}
CITED: Raw = {"role": "assistant", "content": [{"citationsContent": {"content": [{"text": "a"}], "citations": []}}]}
USE: Raw = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]}
RESPONSE: Raw = {
    "role": "user",
    "parts": [{"functionResponse": {"id": "a", "name": "look", "response": {"error": "long"}}}],
}
SEEN: Raw = {
    "role": "user",
    "parts": [
        {
            "function_response": {
                "name": "look",
                "response": {"a": 1},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}],
            }
        }
    ],
}
ASKED: Raw = {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "look", "args": {"q": "a"}}}]}
CLI: Raw = {
    "type": "gemini",
    "content": "I look.",
    "toolCalls": [
        {
            "id": "a",
            "name": "look",
            "args": {"q": "a"},
            "result": [{"functionResponse": {"id": "a", "name": "look", "response": {"output": "long"}}}],
            "resultDisplay": "long",
        },
        {"id": "b", "name": "look", "args": {}, "result": "long"},
        {"id": "c", "name": "look", "args": {}, "result": [{"text": "long"}]},
    ],
}
CLI_WHOLE: Raw = {"type": "gemini", "content": [{"functionCall": {"id": "a", "name": "look", "args": {}}}]}
CALL: Raw = {"name": "look", "args": {"q": "a"}, "id": "a", "type": "tool_call"}
TWICE: Raw = {
    "type": "ai",
    "content": [
        {"type": "text", "text": "I look.", "index": 0},
        "and",
        {"type": "tool_use", "id": "a", "name": "look", "input": {"q": "a"}, "partial_json": '{"q":"a"}'},
        {"type": "function_call", "call_id": "a", "id": "fc", "name": "look", "arguments": '{"q":"a"}'},
    ],
    "tool_calls": [CALL],
    "additional_kwargs": {"tool_calls": [{"id": "a", "function": {"name": "look", "arguments": '{"q":"a"}'}}]},
}
TOOL: Raw = {
    "type": "tool",
    "content": [{"type": "text", "text": "long", **CACHED}],
    "tool_call_id": "a",
    "id": "m",
    "status": "error",
    "artifact": [1],
}
PI: Raw = {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "look", "arguments": {}}]}
PI_RESULT: Raw = {
    "role": "toolResult",
    "toolCallId": "a",
    "toolName": "look",
    "content": [{"type": "image", "data": "x", "mimeType": "image/png"}],
    "isError": True,
}
BASH: Raw = {"role": "bashExecution", "command": "ls", "output": "long", "exitCode": 0}


@pytest.mark.parametrize(
    ("format", "raw", "texts", "expected"),
    [
        ("openai_chat", {"role": "user", "content": "long"}, {0: "b"}, ("content", "b")),
        ("openai_chat", CHAT_CALL, {0: ARGUMENTS}, ("tool_calls", 0, "function", "arguments", ARGUMENTS)),
        ("openai_chat", CHAT_CALL, {1: "then"}, ("tool_calls", 1, "custom", "input", "then")),
        ("openai_chat", OLLAMA, {0: ARGUMENTS}, ("tool_calls", 0, "function", "arguments", {"q": "b"})),
        (
            "openai_chat",
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {0: ARGUMENTS},
            ("function_call", "arguments", ARGUMENTS),
        ),
        ("openai_chat", {"role": "function", "name": "look", "content": "long"}, {0: "b"}, ("content", "b")),
        (
            "openai_chat",
            {"role": "user", "content": [{"type": "text", "text": "a", **CACHED}, {"type": "image_url"}]},
            {0: "b"},
            ("content", 0, "text", "b"),
        ),
        (
            "openai_chat",
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "a", **CACHED}]},
            {0: "b"},
            ("content", [{"type": "text", "text": "b", **CACHED}]),
        ),
        (
            "openai_chat",
            {"role": "tool", "tool_name": "look", "content": "a", "images": ["x"]},
            {0: "b"},
            [("content", "b"), ("images", GONE)],
        ),
        ("openai_chat", {"role": "assistant", "refusal": "No, sir."}, {0: "No."}, ("refusal", "No.")),
        ("openai_responses", ITEM, {0: "b"}, ("content", 0, "text", "b")),
        ("openai_responses", OUTPUT, {0: "b"}, ("output", "b")),
        (
            "openai_responses",
            {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "now"},
            {0: "then"},
            ("input", "then"),
        ),
        (
            "openai_responses",
            {"type": "mcp_call", "id": "a", "name": "look", "server_label": "s", "arguments": "{}", "output": "long"},
            {0: ARGUMENTS, 1: "b"},
            [("output", "b"), ("arguments", ARGUMENTS)],
        ),
        ("anthropic", BLOCKS, {0: "b"}, ("content", 0, "text", "b")),
        ("anthropic", BLOCKS, {1: ARGUMENTS}, ("content", 1, "input", {"q": "b"})),
        ("anthropic", RESULT, {0: "b"}, ("content", 0, "content", "b")),
        (
            "anthropic",
            changes(RESULT, "content", 0, "content", to=[{"type": "text", "text": "long", **CACHED}]),
            {0: "b"},
            ("content", 0, "content", [{"type": "text", "text": "b", **CACHED}]),
        ),
        ("bedrock_converse", CONVERSE, {0: "b"}, ("content", 1, "toolResult", "content", [{"text": "b"}])),
        ("bedrock_converse", CONVERSE, {0: ""}, ("content", 1, "toolResult", "content", [])),
        ("bedrock_converse", CONVERSE, {1: "b"}, ("content", 2, "guardContent", "text", "text", "b")),
        ("bedrock_converse", CITED, {0: "b"}, ("content", 0, "citationsContent", "content", [{"text": "b"}])),
        ("bedrock_converse", USE, {0: ARGUMENTS}, ("content", 0, "toolUse", "input", {"q": "b"})),
        ("bedrock_converse", {"role": "user", "content": "long"}, {0: "b"}, ("content", "b")),
        ("gemini", RESPONSE, {0: "b"}, ("parts", 0, "functionResponse", "response", {"error": "b"})),
        (
            "gemini",
            SEEN,
            {0: "b"},
            [
                ("parts", 0, "function_response", "response", {"output": "b"}),
                ("parts", 0, "function_response", "parts", GONE),
            ],
        ),
        ("gemini", ASKED, {1: ARGUMENTS}, ("parts", 1, "functionCall", "args", {"q": "b"})),
        (
            "gemini_cli",
            CLI,
            {2: "b"},
            ("toolCalls", 0, "result", 0, "functionResponse", "response", {"output": "b"}),
        ),
        ("gemini_cli", CLI, {4: "b"}, ("toolCalls", 1, "result", "b")),
        (
            "gemini_cli",
            CLI,
            {6: "b"},
            (
                "toolCalls",
                2,
                "result",
                [{"functionResponse": {"id": "c", "name": "look", "response": {"output": "b"}}}],
            ),
        ),
        ("gemini_cli", CLI, {0: "b", 1: ARGUMENTS}, [("content", "b"), ("toolCalls", 0, "args", {"q": "b"})]),
        ("gemini_cli", CLI_WHOLE, {0: ARGUMENTS}, ("content", 0, "functionCall", "args", {"q": "b"})),
        ("langchain", TOOL, {0: "b"}, ("content", [{"type": "text", "text": "b", **CACHED}])),
        ("langchain", {"type": "tool", "data": TOOL}, {0: "b"}, ("data", "content", 0, "text", "b")),
        ("langchain", TWICE, {1: "b"}, ("content", 1, "b")),
        ("pi_session", PI, {0: ARGUMENTS}, ("content", 0, "arguments", {"q": "b"})),
        ("pi_session", PI_RESULT, {0: "b"}, ("content", [{"type": "text", "text": "b"}])),
        ("pi_session", BASH, {0: "ls\nb"}, ("output", "b")),
        ("pi_session", {"role": "compactionSummary", "summary": "long"}, {0: "b"}, ("summary", "b")),
        ("pi_session", {"role": "user", "content": "long"}, {0: "b"}, ("content", "b")),
        ("sharegpt", {"from": "human", "value": "long"}, {0: "b"}, ("value", "b")),
        ("sharegpt", {"from": "observation", "value": "long"}, {0: "b"}, ("value", "b")),
    ],
)
def test_each_shape(format: str, raw: Raw, texts: dict[int, str], expected: Any) -> None:
    """One place changes, all else stays; an id, an error, a mark for the cache, what only the eye sees."""
    before = copy.deepcopy(raw)
    written = raw
    for *path, value in [expected] if isinstance(expected, tuple) else expected:
        written = changes(written, *path, to=value)
    assert FORMATS[format].with_texts(raw, texts) == written
    assert raw == before


def test_a_langchain_call_changes_wherever_it_stands() -> None:
    """In the list of calls, in blocks of Anthropic's and OpenAI's, and in the form of the provider."""
    written: Any = FORMATS["langchain"].with_texts(TWICE, {2: ARGUMENTS})
    assert written["tool_calls"] == [{**CALL, "args": {"q": "b"}}]
    assert written["content"][2]["input"] == {"q": "b"}
    assert written["content"][2]["partial_json"] == written["content"][3]["arguments"] == ARGUMENTS
    assert written["additional_kwargs"]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    chunk = AIMessageChunk(content="", tool_call_chunks=[{"name": "look", "args": "{}", "id": "a", "index": 0}])
    own: Any = FORMATS["langchain"].with_texts(chunk, {0: ARGUMENTS})
    assert (own.tool_calls[0]["args"], own.tool_call_chunks[0]["args"]) == ({"q": "b"}, ARGUMENTS)


@pytest.mark.parametrize(
    ("format", "raw", "texts"),
    [
        # Arguments are an object, and a text is not empty.
        ("openai_chat", CHAT_CALL, {0: "now"}),
        ("openai_chat", CHAT_CALL, {0: "[]"}),
        ("openai_chat", {"role": "assistant", "content": "a", "function_call": {"name": "f"}}, {1: "now"}),
        ("anthropic", BLOCKS, {1: '{"a": NaN}'}),
        ("gemini", ASKED, {1: "now"}),
        ("gemini_cli", CLI, {1: "now"}),
        ("bedrock_converse", USE, {0: "now"}),
        ("pi_session", PI, {0: "now"}),
        ("langchain", TWICE, {2: "now"}),
        ("langchain", {"type": "ai", "content": "", "tool_calls": [CALL]}, {0: "now"}),
        ("openai_responses", {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}, {0: "now"}),
        ("anthropic", BLOCKS, {0: ""}),
        # What a provider wrote, and what has a form of its own.
        ("openai_chat", {"role": "assistant", "reasoning_content": "hm", "content": "a"}, {0: "b"}),
        ("openai_responses", {"type": "web_search_call", "id": "a", "action": {"type": "search"}}, {0: ARGUMENTS}),
        ("openai_responses", {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "a"}]}, {0: "b"}),
        ("anthropic", {"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}, {0: "b"}),
        ("anthropic", {"role": "assistant", "content": [{"type": "compaction", "content": "a"}]}, {0: "b"}),
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "a", "name": "f", "input": {}}]},
            {0: "{}"},
        ),
        (
            "bedrock_converse",
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "type": "server_tool_use"}}]},
            {0: "{}"},
        ),
        ("gemini", {"role": "model", "parts": [{"toolCall": {"id": "a", "toolType": "X", "args": {}}}]}, {0: "{}"}),
        ("langchain", {"type": "ai", "content": [{"type": "server_tool_use", "id": "a", "input": {}}]}, {0: "{}"}),
        (
            "langchain",
            {"type": "ai", "content": "", "additional_kwargs": {"function_call": {"name": "f", "arguments": "{}"}}},
            {0: ARGUMENTS},
        ),
        # What the text would turn into.
        ("sharegpt", {"from": "gpt", "value": "a"}, {0: "<tool_call>"}),
        ("gemini_cli", {"type": "user", "content": "a"}, {0: "/help"}),
        ("pi_session", BASH, {0: "b"}),
    ],
)
def test_what_cannot_be_written(format: str, raw: Raw, texts: dict[int, str]) -> None:
    """None, where the provider would refuse the copy, or where it would say something else."""
    assert FORMATS[format].with_texts(raw, texts) is None


def own_messages() -> list[tuple[str, Any, dict[int, str]]]:
    """Objects of the SDKs, and what they are to say."""
    said = {**CHAT_CALL, "content": "I look."}
    answer = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": BLOCKS["content"]}
    return [
        ("openai_chat", ChatCompletionMessage.model_validate(said), {0: "b", 1: ARGUMENTS}),
        (
            "openai_responses",
            ResponseFunctionToolCall(type="function_call", call_id="a", name="look", arguments="{}"),
            {0: ARGUMENTS},
        ),
        ("anthropic", BetaMessage.construct(**{**answer, "usage": None}), {0: "b", 1: ARGUMENTS}),
        ("gemini", types.Content.model_validate(ASKED), {0: "b", 1: ARGUMENTS}),
        ("gemini", types.Content.model_validate(SEEN), {0: "b"}),
        ("langchain", AIMessage("I look.", tool_calls=[CALL]), {0: "b", 1: ARGUMENTS}),
        ("langchain", ToolMessage("long", tool_call_id="a", artifact=[1], status="error", id="m"), {0: "b"}),
    ]


@pytest.mark.parametrize(("format", "own", "texts"), own_messages())
def test_the_sdks_own_objects(format: str, own: Any, texts: dict[int, str]) -> None:
    """The copy is an object of the same class that can be sent; the caller's own stays as it is (rule K8)."""
    before = own.model_copy(deep=True)
    written: Any = FORMATS[format].with_texts(own, texts)
    assert type(written) is type(own)
    assert own == before
    read = FORMATS[format].read(written, 0)
    assert [read.parts[number].text.replace(" ", "") for number in texts] == [
        text.replace(" ", "") for text in texts.values()
    ]
    written.model_dump()  # A field of a wrong type would warn, which is an error here.
    if isinstance(own, ToolMessage):
        assert (written.artifact, written.status, written.id) == ([1], "error", "m")


# -- messages that say just one thing ------------------------------------------------------------

LANGCHAIN: Format = FORMATS["langchain"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_saying(format: str, role: Role) -> None:
    """Each format has a message of the user's and one of the assistant's that says just that."""
    written = FORMATS[format].saying({}, "In short.", role)
    assert FORMATS[format].read(written, 0) == Message(role, (Part(PartKind.TEXT, "In short."),))
    assert FORMATS[format].saying({}, "In short.") == FORMATS[format].saying({}, "In short.", Role.ASSISTANT)
    assert FORMATS[format].saying({}, "In short.", Role.TOOL) is None


@pytest.mark.parametrize(
    ("format", "raw", "role", "expected"),
    [
        ("sharegpt", {"role": "user", "content": "a"}, Role.ASSISTANT, {"role": "assistant", "content": "b"}),
        ("sharegpt", {"role": "system", "content": "a"}, Role.USER, {"role": "human", "content": "b"}),
        ("gemini", {"role": "user", "parts": []}, Role.SYSTEM, None),
        ("gemini_cli", {"id": "1", "type": "info"}, Role.SYSTEM, None),
        ("pi_session", {"role": "user"}, Role.SYSTEM, None),
        (
            "gemini_cli",
            {"id": "1", "timestamp": "t", "type": "info", "content": "a"},
            Role.USER,
            {"id": "1", "timestamp": "t", "type": "user", "content": "b"},
        ),
        (
            "pi_session",
            {"role": "assistant", "api": "x", "stopReason": "toolUse", "content": PI["content"]},
            Role.ASSISTANT,
            {"role": "assistant", "api": "x", "stopReason": "stop", "content": [{"type": "text", "text": "b"}]},
        ),
        (
            "pi_session",
            {**BASH, "timestamp": 7},
            Role.USER,
            {"role": "user", "content": [{"type": "text", "text": "b"}], "timestamp": 7},
        ),
        (
            "langchain",
            {"type": "tool", "data": TOOL},
            Role.SYSTEM,
            {"type": "system", "data": {"type": "system", "content": "b"}},
        ),
        (
            "langchain",
            {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": TOOL},
            Role.USER,
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": {"type": "human", "content": "b"},
            },
        ),
    ],
)
def test_saying_it_as_the_list_has_it(format: str, raw: Raw, role: Role, expected: Raw | None) -> None:
    """A new message has the form of the message that it is made from."""
    assert FORMATS[format].saying(raw, "b", role) == expected


def test_what_cannot_be_said() -> None:
    """A text that would be taken for a call or a command is not written."""
    assert FORMATS["sharegpt"].saying({"from": "human"}, "<tool_call>") is None
    assert FORMATS["gemini_cli"].saying({}, " /help", Role.USER) is None


@pytest.mark.parametrize(
    ("role", "kind"), [(Role.USER, HumanMessage), (Role.ASSISTANT, AIMessage), (Role.SYSTEM, SystemMessage)]
)
def test_among_objects_of_langchain_it_is_one(role: Role, kind: type) -> None:
    """Programs look at the class of a message, and at its attributes."""
    assert LANGCHAIN.saying(ToolMessage("a", tool_call_id="a"), "b", role) == kind("b")


def test_among_objects_of_googles_it_is_one() -> None:
    """Whoever goes through a list of contents asks each for its ``parts``."""
    written = FORMATS["gemini"].saying(types.Content.model_validate(ASKED), "b", Role.USER)
    assert written == types.Content(role="user", parts=[types.Part(text="b")])
