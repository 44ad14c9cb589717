"""Every recorded session: all that was said counts, and nothing but that; messages come back as they were."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from openai.types.chat import ChatCompletionMessage

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Message
from tests._shared import load_session, recorded_sessions

# What counts in the other formats is tested where they are.
BOTH = ("openai_chat", "anthropic")

# Fields of recorded messages that hold text for the model, by the format's documentation; taken without a reader.
SPOKEN = {"content", "text", "thinking", "reasoning_content", "reasoning", "name", "tool_name", "arguments", "stdout"}
SPOKEN |= {"stderr", "title", "url", "page_age", "error_code"}
SILENT = {"cache_control", "citations", "image_url", "input_audio", "signature", "encrypted_content", "audio", "caller"}
MEDIA = {"image", "image_url", "input_audio"}
HIDDEN = {"redacted_thinking", "web_search_result"}


def spoken(value: Any, key: str = "") -> Iterator[str]:
    """The texts in a recorded message, to the last one."""
    if isinstance(value, str):
        if value and key in SPOKEN:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from spoken(item, key)
    elif isinstance(value, dict):
        in_document = value.get("type") == "text" and "data" in value
        for name, item in value.items():
            if name == "input":
                yield from strings(item)
            elif name not in SILENT:
                yield from spoken(item, "text" if in_document and name == "data" else name)


def strings(value: Any) -> Iterator[str]:
    """The strings in the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def flat_in(value: Any) -> int:
    """How many parts in a recorded message are counted flat."""
    if isinstance(value, list):
        return sum(map(flat_in, value))
    if not isinstance(value, dict):
        return 0
    omitted = value.get("type") == "thinking" and not value["thinking"]
    return (value.get("type") in MEDIA | HIDDEN or omitted) + sum(map(flat_in, value.values()))


def counted(view: Message) -> str:
    """All that a counter sees of a message; what is JSON, without its escapes too."""
    texts = [view.name, *(text for part in view.parts for text in (part.name, part.text))]
    return "\n".join([*texts, *(words for text in texts for line in text.splitlines() for words in _in_json(line))])


def _in_json(line: str) -> Iterator[str]:
    try:
        yield from strings(json.loads(line))
    except ValueError:
        return


@pytest.mark.parametrize("format", BOTH)
def test_all_that_was_said_counts(format: str) -> None:
    """C1: each text of each message is in what a counter sees, and no base64: media and the like count flat."""
    for path in recorded_sessions(format):
        for position, raw in enumerate(load_session(path)):
            view = FORMATS[format].read(raw, position)
            seen, said = counted(view), list(spoken(raw))
            assert [text for text in said if text not in seen] == [], (path.name, position)
            assert sum(len(part.media) for part in view.parts) == flat_in(raw.get("content")), (path.name, position)
            # Beside what was said there is little: the names and braces of JSON.
            assert len(seen) <= 3 * sum(map(len, said)) + 30 * str(raw).count("':"), (path.name, position)


# Nobody recorded a session of Mistral's.
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "mistral"])
def test_messages_are_given_back_as_they_were(format: str) -> None:
    """K8: reading and projecting a recorded session changes nothing and copies nothing."""
    for path in recorded_sessions(format):
        history = load_session(path)
        before = copy.deepcopy(history)
        index = cc.MessageIndex.from_messages(history, format=format)
        assert all(ours is theirs for ours, theirs in zip(index.included_messages(), history, strict=True))
        assert history == before


def _sdk_message(format: str, raw: dict[str, Any]) -> Any:
    return ChatCompletionMessage.construct(**raw) if format == "openai_chat" else BetaMessage.construct(**raw)


@pytest.mark.parametrize("format", BOTH)
def test_the_sdks_objects_read_alike(format: str) -> None:
    """What a model answered in a recorded session is one view as a dict, as the SDK's object and as its dump."""
    read = FORMATS[format].read
    for path in recorded_sessions(format):
        for raw in load_session(path):
            if raw["role"] == "assistant":
                own = _sdk_message(format, raw)
                dump = own.model_dump(exclude_none=True, warnings=False)
                assert read(own, 0) == read(dump, 0) == read(raw, 0), path.name


def test_the_folders_hold_what_these_tests_rest_on(shared_dir: Path) -> None:
    """The recorded sessions have the parts that are hard to count, so that the tests above are not empty."""
    assert shared_dir.is_dir()
    kinds = {
        block["type"]
        for format in BOTH
        for path in recorded_sessions(format)
        for raw in load_session(path)
        for block in raw.get("content") or ()
        if isinstance(block, dict)
    }
    assert kinds >= {"text", "thinking", "tool_use", "tool_result", "web_search_tool_result", "web_fetch_tool_result"}
    assert kinds >= {"mcp_tool_result", "compaction", "container_upload", "tool_addition", "image_url", "input_audio"}
