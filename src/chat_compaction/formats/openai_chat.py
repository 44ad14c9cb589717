"""OpenAI chat completions: ``role`` and ``content``, calls in ``tool_calls``, results in ``tool`` messages.

Reads dicts as sent and the ``openai`` package's own objects. ``developer`` is a system role. The
deprecated ``function_call`` and its ``function`` message are a call and its result, tied by the
function's name. Reasoning that is sent back stands under different names: ``reasoning_content``
(DeepSeek and many servers), ``reasoning`` (Groq, OpenRouter), ``reasoning_details`` (OpenRouter),
``thinking_blocks`` (LiteLLM); where the same is there twice, it counts once. Or it is a part of the
content, ``thinking`` (Mistral; Claude behind a gateway).

The overhead of 4 tokens a message is 3 for the frame and 1 for the role, from OpenAI's cookbook
"How to count tokens with tiktoken" (2023 to 2025, models from gpt-3.5-turbo-0613 on).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from .._text import shown
from ._base import (
    Place,
    get,
    identity,
    is_list,
    is_object,
    items,
    kind_of,
    module_of,
    part_kind,
    role_of,
    string,
    wrong,
)
from ._opaque import json_text, opaque

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "document", "video_url": "video"}
_OWN_ROLES = ("developer", "tool", "function")
_OWN_KEYS = ("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content", "reasoning_details")


@attrs.frozen
class OpenAIChatFormat:
    """Messages of OpenAI's chat completions API, and of the many servers that speak it."""

    name: ClassVar[str] = "openai_chat"
    overhead: ClassVar[int] = 4
    first_user: ClassVar[bool] = False

    def claims(self, raw: Any) -> bool:
        """A role, a key or a part type that no other format has; or an ``openai`` object."""
        if module_of(raw) == "openai" or get(raw, "role") in _OWN_ROLES:
            return True
        if any(get(raw, key) is not None for key in _OWN_KEYS):
            return True
        content = get(raw, "content")
        return is_list(content) and any(kind_of(part) in _MEDIA for part in content)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = role_of(raw, _ROLES, here, self.name)
        name = string(get(raw, "name"), here, "name")
        parts = self._content(raw, here)
        if role == "assistant":
            parts = [*self._reasoning(raw), *parts, *self._calls(raw, here)]
        elif role == "tool":
            parts = [_result(parts, identity(get(raw, "tool_call_id"), here, "tool_call_id"))]
        elif role == "function":
            parts = [_result(parts, f"function:{identity(get(raw, 'name'), here, 'name')}")]
        return Message(_ROLES[role], tuple(parts), name)

    def _content(self, raw: Any, here: Place) -> list[Part]:
        content = get(raw, "content")
        if isinstance(content, str):
            parts = [Part(PartKind.TEXT, content)] if content else []
        else:
            parts = [self._part(item, at) for item, at in items(content, here, "content", "a string or a list")]
        refusal = string(get(raw, "refusal"), here, "refusal")
        if refusal:
            parts.append(Part(PartKind.TEXT, refusal))
        audio = get(raw, "audio")
        if get(audio, "id") or get(audio, "data"):
            parts.append(Part(PartKind.MEDIA, flat=("audio",)))
        return parts

    def _part(self, item: Any, here: Place) -> Part:
        kind = part_kind(item, here, self.name)
        if kind in ("text", "refusal"):
            return Part(PartKind.TEXT, string(get(item, kind), here, kind))
        if kind in ("thinking", "redacted_thinking"):
            return _thought(item)
        return Part(PartKind.MEDIA, flat=(_MEDIA[kind],)) if kind in _MEDIA else opaque(item)

    def _reasoning(self, raw: Any) -> list[Part]:
        for key in ("reasoning_details", "thinking_blocks"):
            details = get(raw, key)
            if is_list(details) and details:
                return [_thought(detail) for detail in details]
        texts = (get(raw, key) for key in ("reasoning_content", "reasoning"))
        return [Part(PartKind.REASONING, text) for text in texts if isinstance(text, str) and text][:1]

    def _calls(self, raw: Any, here: Place) -> Iterator[Part]:
        for call, at in items(get(raw, "tool_calls"), here, "tool_calls"):
            call_id = identity(get(call, "id"), at, "id")
            kind, arguments = ("function", "arguments") if get(call, "custom") is None else ("custom", "input")
            yield self._call(get(call, kind), (*at, kind), call_id, arguments)
        legacy = get(raw, "function_call")
        # Some servers send an empty one along with every answer.
        if legacy is not None and (not is_object(legacy) or get(legacy, "name") or get(legacy, "arguments")):
            yield self._call(legacy, (*here, "function_call"), f"function:{get(legacy, 'name')}", "arguments")

    def _call(self, body: Any, here: Place, call_id: str, arguments: str) -> Part:
        if not is_object(body):
            raise wrong(here, f"must be an object, got {shown(body)}")
        name = string(get(body, "name"), here, "name")
        return Part(PartKind.TOOL_CALL, json_text(get(body, arguments)), name, call_id)


def _result(parts: list[Part], call_id: str) -> Part:
    text = "\n".join([part.text for part in parts if part.text])
    return Part(PartKind.TOOL_RESULT, text, call_id=call_id, flat=tuple([flat for part in parts for flat in part.flat]))


def _thought(detail: Any) -> Part:
    """One piece of reasoning: text (Mistral: a list of parts), a summary, or encrypted ``data``."""
    text = next((text for key in ("text", "summary", "thinking") if (text := get(detail, key)) is not None), "")
    flat = ("encrypted_reasoning",) if get(detail, "data") else ()
    signed = bool(get(detail, "signature")) or kind_of(detail) == "redacted_thinking"
    return Part(PartKind.REASONING, text if isinstance(text, str) else opaque(text).text, flat=flat, signed=signed)
