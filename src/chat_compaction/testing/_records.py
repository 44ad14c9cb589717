"""Writing lines as frameworks, data sets and agents store them: LangChain, ShareGPT, Gemini CLI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._lines import Call, Line
from ._openai import PIXEL, Raw

_CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}


def langchain(line: Line) -> Iterator[Raw]:
    """Messages in one of the three forms in which they are stored."""
    if line.calls or not line.results:
        yield _stored(line, *_message(line))
    for call in line.results:
        yield _stored(line, "tool", {"content": line.text or "", "tool_call_id": call.id, "name": call.name})


def _stored(line: Line, kind: str, fields: Raw) -> Raw:
    body = {"additional_kwargs": {}, "response_metadata": {}, **fields, "id": None}
    path = ["langchain", "schema", "messages", _CLASSES[kind]]
    message: Raw = line.pick(
        {**body, "type": kind},
        {"type": kind, "data": {**body, "type": kind}},
        {"lc": 1, "type": "constructor", "id": path, "kwargs": {**body, "type": kind}},
    )
    return message


def _message(line: Line) -> tuple[str, Raw]:
    text = line.text or ""
    if line.role != "assistant" and not line.calls:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        content = [{"type": "text", "text": text}, image] if line.media and line.role == "user" else text
        return "human" if line.role == "user" else "system", {"content": content}
    calls = [{"name": c.name, "args": {}, "id": c.id, "type": "tool_call"} for c in line.calls]
    blocks: list[Any] = [{"type": "text", "text": text}] if text else []
    extra: Raw = {}
    if line.reasoning is not None:
        blocks = [{"type": "thinking", "thinking": line.reasoning, "signature": "c2ln"}, *blocks]
        extra = {"reasoning_content": line.reasoning} if line.also(0, 0, 1) else {}
    # Anthropic's calls stand in the content, too.
    blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": {}} for c in line.calls if line.also(0, 1)]
    plain = extra or (line.reasoning is None and line.also(1, 0))
    return "ai", {"content": text if plain else blocks, "tool_calls": calls, "additional_kwargs": extra}


def sharegpt(line: Line) -> Iterator[Raw]:
    """A call is the whole text of a message, and so is a result."""
    text = line.text or ""
    if line.calls:
        call = '{"name": "tool", "arguments": {}}'
        speaker, said = line.pick(("function_call", call), ("gpt", f"<tool_call>\n{call}\n</tool_call>"))
        yield _turn(line, speaker, said)
    elif not line.results:
        speaker = {"user": "human", "assistant": "gpt"}.get(line.role, line.role)
        yield _turn(line, speaker, text)
    for _ in line.results:
        yield _turn(line, "observation", text)


def _turn(line: Line, speaker: str, text: str) -> Raw:
    return {"role": speaker, "content": text} if line.also(0, 0, 0, 1) else {"from": speaker, "value": text}


def gemini_cli(line: Line) -> Iterator[Raw]:
    """A message of the model's holds its calls and their results; what only the eye sees stands between."""
    if line.follows:
        return
    own: Raw = {"id": "1", "timestamp": "2026-11-01T00:00:00.000Z", "content": line.text or ""}
    if line.role == "user" and not line.calls:
        if line.also(0, 0, 0, 1):
            yield {**own, "type": "info", "content": "Update available."}
        parts = [{"text": line.text or ""}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
        yield {**own, "type": "user", "content": parts if line.media else line.text or ""}
        return
    if line.role == "system" and not line.calls:
        yield {**own, "type": "info"}
        return
    message = {**own, "type": "gemini"}
    if line.reasoning is not None:
        message["thoughts"] = [{"subject": "", "description": line.reasoning}]
    if line.calls:
        message["toolCalls"] = [_call(call, line) for call in line.calls]
    yield message


def _call(call: Call, line: Line) -> Raw:
    answered = bool(line.order) or call in line.results
    response = {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": line.text}}}
    return {"id": call.id, "name": call.name, "args": {}, "result": [response] if answered else None}
