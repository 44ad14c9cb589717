"""The SDKs' own objects, from the real packages: they read as their own dump, alone and inside of dicts."""

from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types.beta import BetaMessage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

import chat_compaction as cc
from chat_compaction.formats import FORMATS, AnthropicFormat, Media, OpenAIChatFormat, Part, PartKind

BASE64 = "iVBORw0KGgo" * 400
FUNCTION = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CUSTOM = {"id": "b", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
CITATION = {"end_index": 1, "start_index": 0, "title": "t", "url": "u"}

OPENAI: dict[str, dict[str, Any]] = {
    "text": {"content": "words", "annotations": [], "refusal": None},
    "calls": {"content": None, "tool_calls": [FUNCTION, CUSTOM]},
    "refusal": {"content": None, "refusal": "I will not"},
    "audio": {"content": None, "audio": {"id": "au", "data": BASE64, "expires_at": 1, "transcript": "words"}},
    "annotations": {"content": "words", "annotations": [{"type": "url_citation", "url_citation": CITATION}]},
    "extras": {"content": "words", "reasoning_content": "hm", "server_note": {"a": [None, 1]}},
    "details": {"content": "", "reasoning_details": [{"type": "reasoning.encrypted", "data": BASE64}]},
    "legacy": {"content": None, "function_call": {"name": "weather", "arguments": "{}"}},
}

SEARCH = {"type": "web_search_result", "title": "t", "url": "u", "page_age": None, "encrypted_content": BASE64}
PAGE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "t"}
FETCHED = {"type": "web_fetch_result", "url": "u", "content": PAGE, "retrieved_at": None}
SHELL = {"type": "bash_code_execution_result", "content": [], "return_code": 0, "stderr": "", "stdout": "1"}

ANTHROPIC: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "words", "citations": None},
    "thinking": {"type": "thinking", "thinking": "hm", "signature": BASE64},
    "omitted thinking": {"type": "thinking", "thinking": "", "signature": BASE64},
    "redacted": {"type": "redacted_thinking", "data": BASE64},
    "call": {"type": "tool_use", "id": "a", "name": "look", "input": {"q": None, "n": [1, {"deep": "é"}]}},
    "browser": {
        "type": "tool_use",
        "id": "a",
        "name": "navigate",
        "toolset_name": "browser",
        "input": {"tab_id": 1, "url": "u"},
    },
    "server call": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    "search": {"type": "web_search_tool_result", "tool_use_id": "s", "content": [SEARCH, SEARCH]},
    "search error": {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
    },
    "fetch": {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": FETCHED},
    "shell": {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": SHELL},
    "upload": {"type": "container_upload", "file_id": "f"},
    "newer than the package": {"type": "brand_new", "payload": {"a": None, "b": "words"}, "data": BASE64},
    "mcp call": {"type": "mcp_tool_use", "id": "m", "name": "ask", "server_name": "wiki", "input": {}},
    "mcp result": {
        "type": "mcp_tool_result",
        "tool_use_id": "m",
        "is_error": False,
        "content": [{"type": "text", "text": "words", "citations": None}],
    },
    "compaction": {"type": "compaction", "content": "in short", "encrypted_content": None},
}


@pytest.mark.parametrize("name", OPENAI)
def test_openai_messages(name: str) -> None:
    """The object, its dump, the wire's dict, and a dict that holds SDK objects give one view."""
    raw = {"role": "assistant", **OPENAI[name]}
    message = ChatCompletionMessage.model_validate(raw)
    read = OpenAIChatFormat().read
    view = read(message, 0)
    assert view == read(message.model_dump(exclude_none=True), 0) == read(message.model_dump(), 0) == read(raw, 0)
    assert view == read({key: getattr(message, key) for key in raw}, 0)
    assert view.parts


@pytest.mark.parametrize("name", ANTHROPIC)
@pytest.mark.parametrize("sdk", [AnthropicMessage, BetaMessage])
def test_anthropic_messages(sdk: type[AnthropicMessage] | type[BetaMessage], name: str) -> None:
    """The object, its dump, the wire's dict, and the usual ``{"role": ..., "content": response.content}``."""
    block = ANTHROPIC[name]
    # As the SDK reads a response: what it does not know is kept, and nothing is refused.
    message = sdk.construct(None, role="assistant", type="message", content=[block])
    (own,) = message.content
    read = AnthropicFormat().read
    view = read(message, 0)
    assert view == read({"role": "assistant", "content": message.content}, 0)
    assert view == read({"role": "assistant", "content": [own.model_dump(exclude_none=True, warnings=False)]}, 0)
    assert view == read({"role": "assistant", "content": [block]}, 0)
    assert BASE64[:200] not in repr(view)


def test_a_block_newer_than_the_package_is_silent() -> None:
    """A dump of such a block warns, and quotes what it holds; reading does neither (warnings are errors here)."""
    block = ANTHROPIC["newer than the package"]
    message = AnthropicMessage.construct(None, role="assistant", content=[block])
    (part,) = AnthropicFormat().read(message, 0).parts
    assert part == Part(PartKind.OPAQUE, '{"payload":{"b":"words"}}', media=(Media("other"),))


def test_a_loop_with_sdk_objects() -> None:
    """A history as loops build it, SDK objects among dicts: one group for call and result, the same objects back."""
    asked = AnthropicMessage.construct(None, role="assistant", content=[ANTHROPIC["thinking"], ANTHROPIC["call"]])
    history: list[Any] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": asked.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "seen"}]},
        AnthropicMessage.construct(None, role="assistant", content=[ANTHROPIC["text"]]),
    ]
    index = cc.MessageIndex.from_messages(history)
    assert index.format is FORMATS["anthropic"]
    assert [(group.kind.value, group.positions) for group in index.groups] == [
        ("user", (0,)),
        ("tool_call", (1, 2)),
        ("assistant", (3,)),
    ]
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), history, strict=True))


_texts = st.none() | st.text()
_inputs = st.dictionaries(st.text(), st.none() | st.text() | st.lists(st.none() | st.integers()), max_size=3)
_calls = st.builds(
    lambda call, name, text: {"id": call, "type": "function", "function": {"name": name, "arguments": text}},
    st.text(),
    st.text(),
    st.text(),
)


@given(_texts, _texts, _texts, st.none() | st.lists(_calls, max_size=3))
def test_any_openai_message_reads_as_its_dump(content: Any, refusal: Any, reasoning: Any, calls: Any) -> None:
    """The SDK object gives the same view as its own dump, whatever it holds."""
    raw = {"role": "assistant", "content": content, "refusal": refusal, "reasoning_content": reasoning}
    message = ChatCompletionMessage.model_validate({**raw, "tool_calls": calls})
    read = OpenAIChatFormat().read
    assert read(message, 0) == read(message.model_dump(exclude_none=True), 0) == read({**raw, "tool_calls": calls}, 0)


@given(
    st.lists(
        st.builds(lambda text: {"type": "text", "text": text}, st.text())
        | st.builds(lambda text, by: {"type": "thinking", "thinking": text, "signature": by}, st.text(), st.text())
        | st.builds(lambda given: {"type": "tool_use", "id": "a", "name": "n", "input": given}, _inputs)
        | st.builds(lambda fields: {**fields, "type": "brand_new"}, _inputs),
        max_size=4,
    )
)
def test_any_anthropic_message_reads_as_its_dump(blocks: list[dict[str, Any]]) -> None:
    """The SDK object gives the same view as its own dump, whatever it holds."""
    message = AnthropicMessage.construct(None, role="assistant", content=blocks)
    read = AnthropicFormat().read
    assert read(message, 0) == read(message.model_dump(exclude_none=True, warnings=False), 0)
