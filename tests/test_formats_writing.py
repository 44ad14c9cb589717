"""Messages that say something else: in every format, what was written is read again, and nothing else has changed."""

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_compaction.formats import FORMATS, Format, Part, PartKind
from chat_compaction.testing import histories
from tests._shared import load_session, recorded_sessions

WRITABLE = {PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT}


def instead(part: Part, text: str) -> str:
    """A text of the kind that the part asks for."""
    return json.dumps({"said": text}) if part.kind is PartKind.TOOL_CALL else text


def has_text(now: Part, was: Part, text: str) -> bool:
    """Whether a part has that text, and is the same part; arguments may have come back with other spaces."""
    same = (now.kind, now.call_id, now.name, now.media) == (was.kind, was.call_id, was.name, ())
    given = now.text == text if was.kind is not PartKind.TOOL_CALL else json.loads(now.text) == json.loads(text)
    return same and given


def check_written(format: Format, raw: Any, numbers: set[int], text: str) -> bool:
    """Whether it could be written; then it must be right."""
    before, view = copy.deepcopy(raw), format.read(raw, 0)
    texts = {number: instead(view.parts[number], text) for number in numbers}
    written = format.with_texts(raw, texts)
    assert raw == before
    if written is None:
        return False
    assert written is not raw
    assert type(written) is type(raw)
    now = format.read(written, 0)
    assert (now.role, now.name, len(now.parts)) == (view.role, view.name, len(view.parts))
    for number, (part, was) in enumerate(zip(now.parts, view.parts, strict=True)):
        assert has_text(part, was, texts[number]) if number in texts else part == was
    return True


def keys_of(raw: Any) -> set[str]:
    return set(raw) if isinstance(raw, dict) else set()


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25)
@given(st.data())
def test_what_is_written_is_read_again(format: str, data: st.DataObject) -> None:
    """Any parts of any message; rule K8: the caller's message is never changed."""
    history = data.draw(histories(format, hostile=data.draw(st.booleans())))
    text = data.draw(st.sampled_from(["[cleared]", "two\nlines", '{"a": [1]}', "/help", "<tool_call>", "", "ä\u2028"]))
    mask = data.draw(st.integers(0, 255))
    for raw in history:
        parts = FORMATS[format].read(raw, 0).parts
        check_written(FORMATS[format], raw, {number for number in range(len(parts)) if mask >> number & 1}, text)
        assert FORMATS[format].with_texts(raw, {}) == raw


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "mistral"])
def test_recorded_messages_can_be_written(format: str) -> None:
    """Each text, result and call of the recorded sessions; the rest is what the provider alone writes, or signed."""
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for path in recorded_sessions(format):
        for raw in load_session(path):
            parts = FORMATS[format].read(raw, 0).parts
            numbers = {number for number, part in enumerate(parts) if part.kind in WRITABLE}
            if check_written(FORMATS[format], raw, numbers, "[cleared]"):
                done.update(parts[number].kind.value for number in numbers)
                continue
            for number in numbers:
                if not check_written(FORMATS[format], raw, {number}, "[cleared]"):
                    refused[what(format, raw, number)] += 1
    assert refused == UNWRITTEN.get(format, {})
    assert done["text"]
    assert done["tool_result"] or format == "sharegpt"


def what(format: str, raw: Any, number: int) -> str:
    """What a piece is that can't be written, in a word."""
    if format == "gemini":
        part = raw["parts"][number]
        signed = part.get("thoughtSignature") or part.get("thought_signature")
        return "signed" if signed else next(iter(part))
    if format == "anthropic":
        block = raw["content"][number]
        loads = block["type"] == "tool_result" and block["content"][0]["type"] == "tool_reference"
        return "loads a tool" if loads else str(block["type"])
    return str(raw.get("type") or raw.get("role") or raw.get("from"))


UNWRITTEN: dict[str, dict[str, int]] = {
    "anthropic": {
        "server_tool_use": 24,
        "web_search_tool_result": 17,
        "loads a tool": 4,
        "bash_code_execution_tool_result": 3,
        "tool_search_tool_result": 3,
        "web_fetch_tool_result": 1,
    },
    "gemini": {"signed": 50},
    "openai_responses": {
        "web_search_call": 24,
        "code_interpreter_call": 2,
        "image_generation_call": 2,
        "mcp_call": 2,
        "tool_search_call": 2,
        "tool_search_output": 2,
    },
    "pi_session": {"bashExecution": 3},
    "sharegpt": {"function_call": 3},
}
"""What can't be written in the recorded sessions, and how often it is there."""
