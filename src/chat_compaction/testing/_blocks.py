"""Writing lines as those have them whose messages are made of blocks: Anthropic, Bedrock, Gemini, pi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._lines import Line
from ._openai import PIXEL, Raw


def anthropic(line: Line) -> Iterator[Raw]:
    """One message, blocks where text alone does not do; results in one message or in several, ahead of the text."""
    if line.role == "system" and not line.calls and not line.results and line.pick(0, 0, 1):
        yield {"role": "system", "content": [], "output_config": {"effort": "low"}}
        return
    apart = len(line.results) if line.follows and line.also(0, 1) else 1
    for number in range(max(1, apart)):
        results = line.results[number : number + 1] if apart > 1 else line.results
        blocks = [_thinking(line)] if line.reasoning is not None else []
        blocks += _hosted(line) if line.role == "assistant" and not line.calls and line.also(0, 0, 1) else []
        said: list[Raw] = [{"type": "text", "text": line.text}] if line.text and number == max(1, apart) - 1 else []
        seen = [_picture(line)] if line.media and line.role == "user" and not line.results else []
        calls = [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in line.calls]
        found = [{"type": "tool_result", "tool_use_id": call.id, "content": _found(line)} for call in results]
        # The text stands ahead of calls, and behind results.
        content = [*blocks, *seen, *(said if line.calls else ()), *calls, *found, *(() if line.calls else said)]
        plain = line.text and content == said and line.pick(1, 1, 0)
        yield {"role": line.role, "content": line.text if plain else content}


def _thinking(line: Line) -> Raw:
    block: Raw = line.pick(
        {"type": "thinking", "thinking": line.reasoning, "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "thinking", "thinking": line.reasoning, "signature": ""},
    )
    return block


def _hosted(line: Line) -> list[Raw]:
    """The use of a tool that Anthropic runs, its call and its result."""
    call_id = f"srvtoolu_{line.number:02}"
    kind = "mcp_tool" if line.pick(0, 1) else "web_search_tool"
    use = {"type": "mcp_tool_use", "server_name": "docs"} if line.pick(0, 1) else {"type": "server_tool_use"}
    return [
        {**use, "id": call_id, "name": "web_search", "input": {"query": "Oslo"}},
        {"type": f"{kind}_result", "tool_use_id": call_id, "content": []},
    ]


def _picture(line: Line) -> Raw:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    text = {"type": "text", "media_type": "text/plain", "data": "A page."}
    block: Raw = line.pick({"type": "image", "source": source}, {"type": "document", "source": text})
    return block


def _found(line: Line) -> Any:
    return line.pick(line.text, line.text, [_picture(line)] if line.text else [])


def bedrock_converse(line: Line) -> Iterator[Raw]:
    """One message; all results in one, ahead of the text."""
    thinking = [{"reasoningContent": _reasoning(line)}] if line.reasoning is not None else []
    said = [{"text": line.text}] if line.text is not None and (line.text or not line.calls) else []
    seen = [_medium(line)] if line.media and line.role == "user" and not line.results else []
    calls = [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": {}}} for call in line.calls]
    found = [
        {"toolResult": {"toolUseId": call.id, "content": [line.pick({"json": {"said": line.text}}, {"text": "ok"})]}}
        for call in line.results
    ]
    said = [] if line.follows else said
    cached = (
        [{"cachePoint": {"type": "default"}}] if line.role == "user" and line.also(0, 0, 1) and (said or found) else []
    )
    content = [*thinking, *seen, *(said if line.calls else ()), *calls, *found, *(() if line.calls else said), *cached]
    yield {"role": line.role, "content": content}


def _reasoning(line: Line) -> Raw:
    content: Raw = line.pick(
        {"reasoningText": {"text": line.reasoning, "signature": "c2ln"}},
        {"reasoningText": {"text": line.reasoning}},
        {"redactedContent": "c2VjcmV0"},
    )
    return content


def _medium(line: Line) -> Raw:
    block: Raw = line.pick(
        {"image": {"format": "png", "source": {"bytes": PIXEL}}},
        {"document": {"format": "txt", "name": "page", "source": {"text": "A page."}}},
    )
    return block


def gemini(line: Line) -> Iterator[Raw]:
    """One content; calls and results with or without an id, keys in either spelling."""
    parts: list[Raw] = [] if line.reasoning is None else [{"text": line.reasoning, "thought": True}]
    snake = line.pick(0, 0, 1)
    if line.role == "assistant" and not line.calls and line.also(0, 0, 1):
        code, output = {"code": "1 + 1", "language": "PYTHON"}, {"outcome": "OUTCOME_OK", "output": "2"}
        parts += [{"executableCode": code}, {"codeExecutionResult": output}]
    if line.media and line.role == "user" and not line.results:
        kind = {"mime_type" if snake else "mimeType": "image/png", "data": PIXEL}
        parts.append({"inline_data" if snake else "inlineData": kind})
    if line.text is not None and not line.follows and (line.text or not line.calls):
        parts.append({"text": line.text})
    for nth, call in enumerate(line.calls):
        part: Raw = {"function_call" if snake else "functionCall": {**_id(call.id), "name": call.name, "args": {}}}
        # With parallel calls only the first is signed.
        parts.append(part if nth else {**part, "thought_signature" if snake else "thoughtSignature": "c2ln"})
    for call in line.results:
        body = {**_id(call.id), "name": call.name, "response": {"output": line.text}}
        parts.append({"function_response" if snake else "functionResponse": body})
    role = {"role": "model" if line.role == "assistant" else "user"}
    yield {**({} if role["role"] == "user" and line.also(0, 0, 0, 1) else role), "parts": parts}


def _id(call_id: str) -> Raw:
    return {"id": call_id} if call_id else {}


def pi_session(line: Line) -> Iterator[Raw]:
    """Results are messages; what the user ran and what was summed up is sent as the user's."""
    if line.calls or not line.results:
        yield _pi_message(line)
    for call in line.results:
        content = [{"type": "text", "text": line.text or ""}]
        yield {"role": "toolResult", "toolCallId": call.id, "toolName": call.name, "content": content, "isError": False}


def _pi_message(line: Line) -> Raw:
    text = line.text or ""
    if line.role != "assistant" and not line.calls:
        message: Raw = line.pick(
            {"role": "user", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}]},
            {"role": "user", "content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
            {"role": "bashExecution", "command": "ls", "output": text, "exitCode": 0},
            {"role": "bashExecution", "command": "ls", "output": text, "exitCode": 0, "excludeFromContext": True},
            {"role": "compactionSummary", "summary": text, "tokensBefore": 9},
            {"role": "custom", "customType": "note", "content": text, "display": True},
        )
        return message
    blocks: list[Raw] = [{"type": "text", "text": text}] if text else []
    if line.reasoning is not None:
        blocks.insert(0, {"type": "thinking", "thinking": line.reasoning, "thinkingSignature": "c2ln"})
    blocks += [{"type": "toolCall", "id": call.id, "name": call.name, "arguments": {}} for call in line.calls]
    api = line.pick("anthropic-messages", "openai-responses")
    return {"role": "assistant", "content": blocks, "api": api, "stopReason": "toolUse" if line.calls else "stop"}
