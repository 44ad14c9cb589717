"""Writing lines as OpenAI has them: chat completions, what others make of those, and Responses items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._lines import Call, Line

Raw = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel."""


def openai_chat(line: Line) -> Iterator[Raw]:
    """Each result is a message of its own; calls without an id are Ollama's."""
    if line.calls or not line.results:
        message: Raw = {"role": _role(line), "content": _content(line)}
        if message["role"] == "assistant":
            message |= _reasoning(line)
        if _is_legacy(line, line.calls):
            message["function_call"] = {"name": line.calls[0].name, "arguments": "{}"}
        elif line.calls:
            message["tool_calls"] = [_chat_call(call, line) for call in line.calls]
        yield message
    for call in line.results:
        if _is_legacy(line, line.results):
            yield {"role": "function", "name": call.name, "content": line.text}
        elif call.id:
            yield {"role": "tool", "tool_call_id": call.id, "content": _content(line)}
        else:
            yield {"role": "tool", "tool_name": call.name, "content": line.text}


def _role(line: Line) -> str:
    if line.calls:
        return "assistant"  # No other role has a field for calls.
    return str(line.pick("system", "system", "developer")) if line.role == "system" else line.role


def _is_legacy(line: Line, calls: tuple[Call, ...]) -> bool:
    """The deprecated form: one call, known by its name."""
    return len(calls) == 1 and bool(calls[0].id) and bool(line.also(0, 0, 0, 1))


def _chat_call(call: Call, line: Line) -> Raw:
    if not call.id:
        return {"function": {"name": call.name, "arguments": {}}}
    if line.pick(0, 0, 1):
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": "now"}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{}"}}


def _content(line: Line) -> Any:
    if line.text is None or not (line.media or line.pick(0, 0, 0, 1)):
        return line.text
    texts: list[Raw] = [{"type": "text", "text": line.text}] if line.text else []
    media = line.also(
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file_1"}},
    )
    return [*texts, media] if line.media and line.role == "user" and not line.results else texts or line.text


def _reasoning(line: Line) -> Raw:
    if line.reasoning is None:
        return {}
    text = line.reasoning
    given: Raw = line.pick(
        {"reasoning_content": text},
        {"reasoning": text},
        {"thinking": text},
        {"reasoning_details": [{"type": "reasoning.text", "text": text, "signature": "c2ln"}], "reasoning": text},
        {"thinking_blocks": [{"type": "thinking", "thinking": text, "signature": "c2ln"}]},
    )
    return given


def mistral(line: Line) -> Iterator[Raw]:
    """Reasoning is a part of the content."""
    if line.calls or not line.results:
        said: Any = line.text or ""
        if line.reasoning is not None:
            texts = [{"type": "text", "text": said}] if said else []
            said = [{"type": "thinking", "thinking": [{"type": "text", "text": line.reasoning}]}, *texts]
        elif line.media and line.role == "user":
            said = [
                {"type": "text", "text": said},
                {"type": "image_url", "image_url": f"data:image/png;base64,{PIXEL}"},
            ]
        message: Raw = {"role": "assistant" if line.calls else line.role, "content": said}
        if line.calls:
            message["tool_calls"] = [_mistral_call(call) for call in line.calls]
        yield message
    for call in line.results:
        yield {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": line.text or ""}


def _mistral_call(call: Call) -> Raw:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{}"}}


# -- Responses -------------------------------------------------------------------------------------


def openai_responses(line: Line) -> Iterator[Raw]:
    """Each thing is an item of its own, reasoning ahead of what it led to."""
    if line.role == "server":
        yield from line.pick([], [{"type": "item_reference", "id": "msg_0"}, {"id": "fc_0"}])
        yield {"type": "function_call_output", "call_id": "server", "output": line.text or ""}
        return
    if line.role == "system":
        yield _setting(line)
        return
    if line.reasoning is not None:
        summary = line.pick([], [{"type": "summary_text", "text": line.reasoning}])
        yield {"type": "reasoning", "id": f"rs_{line.number}", "summary": summary, "encrypted_content": "gAAAAA"}
    if line.role == "assistant" and not line.calls and line.also(0, 0, 1):
        yield _hosted(line)
    if line.text and not line.results:
        yield _item(line)
    for call in line.calls:
        yield _item_call(call, line)
    for call in line.results:
        yield _item_output(call, line)


def _setting(line: Line) -> Raw:
    item: Raw = line.pick(
        {"role": "developer", "content": line.text or ""},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": line.text or ""}]},
        {"type": "compaction", "encrypted_content": "gAAAAB"},
    )
    return item


def _item(line: Line) -> Raw:
    if line.role == "assistant":
        part: Raw = {"type": "output_text", "text": line.text, "annotations": []}
        whole = {
            "type": "message",
            "id": f"msg_{line.number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        return dict(line.pick(whole, {"role": "assistant", "content": line.text}))
    media: Raw = line.also(
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
        {"type": "input_file", "file_id": "file_1"},
    )
    parts = [{"type": "input_text", "text": line.text}, *([media] if line.media else ())]
    return {"role": "user", "content": parts if line.media else line.text}


def _hosted(line: Line) -> Raw:
    """The use of a tool that OpenAI runs."""
    item: Raw = line.pick(
        {
            "type": "web_search_call",
            "id": f"ws_{line.number}",
            "status": "completed",
            "action": {"type": "search", "query": "Oslo"},
        },
        {
            "type": "mcp_call",
            "id": f"mcp_{line.number}",
            "server_label": "docs",
            "name": "find",
            "arguments": "{}",
            "output": "found",
        },
        {"type": "file_search_call", "id": f"fs_{line.number}", "status": "completed", "queries": ["Oslo"]},
        {
            "type": "code_interpreter_call",
            "id": f"ci_{line.number}",
            "status": "completed",
            "code": "1 + 1",
            "container_id": "cntr_1",
            "outputs": [{"type": "logs", "logs": "2"}],
        },
    )
    return item


def _item_call(call: Call, line: Line) -> Raw:
    own: Raw = {"call_id": call.id, "id": f"fc_{call.id}", "status": "completed"}
    item: Raw = line.pick(
        own | {"type": "function_call", "name": call.name, "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": "now"},
        own | {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        own | {"type": "shell_call", "action": {"commands": ["ls"]}},
        own | {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a.txt"}},
        own | {"type": "computer_call", "action": {"type": "wait"}, "pending_safety_checks": []},
        {
            "type": "mcp_approval_request",
            "id": call.id,
            "server_label": "docs",
            "name": call.name,
            "arguments": "{}",
        },
    )
    return item


def _item_output(call: Call, line: Line) -> Raw:
    said = line.text or "ok"
    shell = {"stdout": said, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    screen = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
    item: Raw = line.pick(
        {"type": "function_call_output", "call_id": call.id, "output": said},
        {"type": "custom_tool_call_output", "call_id": call.id, "output": said},
        {"type": "local_shell_call_output", "call_id": call.id, "id": call.id, "output": said},
        {"type": "shell_call_output", "call_id": call.id, "output": [shell]},
        {"type": "apply_patch_call_output", "call_id": call.id, "status": "completed", "output": said},
        {"type": "computer_call_output", "call_id": call.id, "output": screen},
        {"type": "mcp_approval_response", "approval_request_id": call.id, "approve": True},
    )
    return item
