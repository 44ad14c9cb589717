"""How the judge reads a raw message: who speaks, what is called, what is answered, what is thought.

Plain dicts only, one short function a format, and nothing of the package's own reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SYSTEM = ("system", "developer")


@dataclass(frozen=True)
class Piece:
    """A piece of a message: a ``call``, a ``result``, a ``thought``, ``text``, or something ``other``.

    ``key`` ties a result to its call; empty where there is none, and the order does it.
    """

    kind: str
    key: str = ""
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class Said:
    """A message: whose side it is on, and its pieces.

    ``side`` is ``system``, ``user``, ``assistant`` or ``tool``; ``mark`` for what takes no part in the order of
    speakers, such as OpenAI's own summary; ``unsent`` for what only the eye sees. ``refers``: a call may
    stand behind it, which the server knows.
    """

    side: str
    pieces: tuple[Piece, ...] = ()
    refers: bool = False

    def has(self, kind: str) -> bool:
        """Whether there is a piece of this kind."""
        return any(piece.kind == kind for piece in self.pieces)

    def only(self, kind: str) -> bool:
        """Whether there is nothing but pieces of this kind."""
        return bool(self.pieces) and all(piece.kind == kind for piece in self.pieces)

    def count(self, kind: str) -> int:
        """How many pieces there are of this kind."""
        return sum(piece.kind == kind for piece in self.pieces)


def said(messages: Sequence[Any], format_name: str) -> list[Said]:
    """What the messages say."""
    return [_READERS[format_name](message) for message in messages]


def _content(content: Any, thoughts: Sequence[str] = ()) -> Iterator[Piece]:
    """A string, or parts that have a type and perhaps a text."""
    if isinstance(content, str):
        yield Piece("text", text=content)
        return
    for part in content or ():
        if isinstance(part, str):
            yield Piece("text", text=part)
        elif part.get("type") in thoughts:
            yield Piece("thought")
        else:
            yield Piece("text", text=part["text"]) if isinstance(part.get("text"), str) else Piece("other")


def _openai_chat(message: Any) -> Said:
    role = message["role"]
    if role in ("tool", "function"):
        key = message.get("tool_call_id") or "" if role == "tool" else f"function {message['name']}"
        name = message.get("tool_name") or message.get("name") or ""
        return Said("tool", (Piece("result", "" if key == "null" else key, name),))
    pieces = list(_content(message.get("content"), ("thinking", "redacted_thinking")))
    if role == "assistant":
        thoughts = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
        pieces = [piece for piece in pieces if piece.text or piece.kind != "text"]
        pieces += [Piece("thought") for key in thoughts if message.get(key)]
        if message.get("refusal"):
            pieces.append(Piece("text", text=message["refusal"]))
        for call in message.get("tool_calls") or ():
            body = call.get("function") or call.get("custom") or {}
            key = call.get("id") or ""
            pieces.append(Piece("call", "" if key == "null" else key, body.get("name") or ""))
        legacy = message.get("function_call")
        if legacy and legacy.get("name"):
            pieces.append(Piece("call", f"function {legacy['name']}", legacy["name"]))
    return Said("system" if role in SYSTEM else role, tuple(pieces))


_RUN_BY_OPENAI = ("mcp_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
_KEYS = {
    "mcp_approval_request": ("id",),
    "mcp_approval_response": ("approval_request_id",),
    "tool_search_call": ("call_id",),
    "local_shell_call_output": ("call_id", "id"),
}
"""What ties a call and its result, where it is not the ``call_id`` (of a call, else its ``id``)."""
_MARKS = ("compaction", "compaction_trigger", "additional_tools", "configuration_update")


def _openai_responses(item: Any) -> Said:
    kind = item.get("type") or ("message" if item.get("role") else "item_reference")
    if kind == "message":
        role = item["role"]
        return Said("system" if role in SYSTEM else role, tuple(_content(item.get("content"))))
    if kind in _MARKS:
        return Said("mark", (Piece("other"),))
    if kind == "reasoning":
        return Said("assistant", (Piece("thought"),))
    if kind == "item_reference":
        return Said("assistant", (Piece("other"),), refers=True)
    if kind in _RUN_BY_OPENAI or (kind.endswith("_output") and item.get("name") and not item.get("call_id")):
        return Said("assistant" if kind in _RUN_BY_OPENAI else "tool", (Piece("other"),))
    if kind.endswith("_output") or kind == "mcp_approval_response":
        by_server = kind in ("program_output", "multi_agent_call_output") or item.get("execution") == "server"
        key = _first_of(item, _KEYS.get(kind, ("call_id",)))
        return Said("assistant" if by_server else "tool", (Piece("result", key),))
    if kind.endswith("_call") or kind in ("mcp_approval_request", "program"):
        key = _first_of(item, _KEYS.get(kind, ("call_id", "id")))
        return Said("assistant", (Piece("call", key, item.get("name") or ""),))
    return Said("assistant", (Piece("other"),))


def _first_of(item: Any, keys: Sequence[str]) -> str:
    return next((item[key] for key in keys if item.get(key)), "")


def _anthropic(message: Any) -> Said:
    content = message["content"]
    pieces = [_anthropic_block(block) for block in content] if isinstance(content, list) else list(_content(content))
    directive = message["role"] == "system" and not pieces and message.get("output_config")
    return Said("mark" if directive else message["role"], tuple(pieces))


def _anthropic_block(block: Any) -> Piece:
    kind = block["type"]
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return Piece("call", block["id"], block["name"])
    if kind.endswith("tool_result"):
        return Piece("result", block["tool_use_id"])
    if kind == "text":
        return Piece("text", text=block["text"] or "")
    if kind == "compaction" and block.get("content"):
        return Piece("compaction")
    return Piece("thought" if kind in ("thinking", "redacted_thinking") else "other")


def _gemini(content: Any) -> Said:
    side = {"model": "assistant", "function": "tool"}.get(content.get("role") or "", "user")
    return Said(side, tuple(_gemini_part(part) for part in content.get("parts") or ()))


def _gemini_part(part: Any) -> Piece:
    for kind, names in {
        "call": ("functionCall", "function_call", "toolCall", "tool_call"),
        "result": ("functionResponse", "function_response", "toolResponse", "tool_response"),
    }.items():
        for name in names:
            if part.get(name) is not None:
                body = part[name]
                tool = body.get("toolType") or body.get("tool_type") or body.get("name") or ""
                return Piece(kind, body.get("id") or "", tool)
    if part.get("thought"):
        return Piece("thought")
    signature = part.get("thoughtSignature") or part.get("thought_signature")
    return Piece("text", text=part.get("text") or "") if "text" in part and not signature else Piece("other")


def _bedrock(message: Any) -> Said:
    content = message["content"]
    blocks = [block for block in content if "cachePoint" not in block] if isinstance(content, list) else []
    pieces = map(_bedrock_block, blocks) if isinstance(content, list) else _content(content)
    return Said(message["role"], tuple(pieces))


def _bedrock_block(block: Any) -> Piece:
    if "toolUse" in block:
        return Piece("call", block["toolUse"]["toolUseId"], block["toolUse"].get("name") or "")
    if "toolResult" in block:
        return Piece("result", block["toolResult"]["toolUseId"])
    if "text" in block:
        return Piece("text", text=block["text"] or "")
    return Piece("thought" if "reasoningContent" in block else "other")


_LANGCHAIN = {"human": "user", "ai": "assistant", "tool": "tool", "function": "tool", "remove": "unsent"}


def _langchain(message: Any) -> Said:
    body = message.get("data") or message.get("kwargs") or message
    kind = body.get("type") or message.get("type") or ""
    if kind == "constructor":
        kind = message["id"][-1]
    kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
    side = _LANGCHAIN.get(kind, "system")
    if side == "tool":
        return Said(side, (Piece("result", body.get("tool_call_id") or "", body.get("name") or ""),))
    pieces = list(_content(body.get("content"), ("thinking", "reasoning", "redacted_thinking", "reasoning_content")))
    extra = body.get("additional_kwargs") or {}
    if extra.get("reasoning_content"):
        pieces.append(Piece("thought"))
    calls = [*(body.get("tool_calls") or ()), *(body.get("invalid_tool_calls") or ())]
    if side == "assistant":
        made = calls or extra.get("tool_calls") or ()
        pieces += [Piece("call", c.get("id") or "", (c.get("function") or c).get("name") or "") for c in made]
    return Said(side, tuple(pieces))


def _sharegpt(message: Any) -> Said:
    speaker = message.get("from") or message["role"]
    text = message.get("value") or message.get("content") or ""
    if speaker in ("observation", "tool", "function_response", "tool_response"):
        return Said("tool", (Piece("result", text=text),))
    if speaker in ("human", "user", "system"):
        return Said("user" if speaker != "system" else "system", (Piece("text", text=text),))
    calls = speaker == "function_call" or "<tool_call>" in text
    return Said("assistant", (Piece("call" if calls else "text", text=text),))


def _gemini_cli(message: Any) -> Said:
    if message["type"] not in ("user", "gemini"):
        return Said("unsent")
    pieces = list(_content(message.get("content")))
    if message["type"] == "user":
        seen_only = ("/", "?", "<session_context>", "<hook_context>")
        unsent = bool(pieces) and pieces[0].text.lstrip().startswith(seen_only)
        return Said("unsent" if unsent else "user", tuple(pieces))
    for call in message.get("toolCalls") or ():
        pieces.append(Piece("call", call.get("id") or "", call["name"]))
        if call.get("result"):
            pieces.append(Piece("result", call.get("id") or "", call["name"]))
    return Said("assistant", tuple(pieces))


def _pi_session(message: Any) -> Said:
    role = message["role"]
    if role == "toolResult":
        return Said("tool", (Piece("result", message["toolCallId"], message.get("toolName") or ""),))
    if role != "assistant":
        return Said("unsent" if message.get("excludeFromContext") else "user", (Piece("text", text="text"),))
    pieces = [
        Piece("call", block["id"], block["name"]) if block["type"] == "toolCall" else piece
        for block, piece in zip(message["content"], _content(message["content"], ("thinking",)), strict=True)
    ]
    return Said("assistant", tuple(pieces))


_READERS: dict[str, Callable[[Any], Said]] = {
    "openai_chat": _openai_chat,
    "mistral": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock_converse": _bedrock,
    "langchain": _langchain,
    "sharegpt": _sharegpt,
    "gemini_cli": _gemini_cli,
    "pi_session": _pi_session,
}
FORMATS = tuple(_READERS)
"""The formats that the judge knows."""
