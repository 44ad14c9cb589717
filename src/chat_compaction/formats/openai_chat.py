"""OpenAI chat completions: ``role`` and ``content``, calls in ``tool_calls``, results in ``tool`` messages.

Reads dicts as sent and the ``openai`` package's own objects. ``developer`` is a system role. The
deprecated ``function_call`` and its ``function`` message are a call and its result, tied by the
function's name. ``reasoning_content`` (or ``reasoning``) is counted as reasoning that is sent back.

The overhead of 4 tokens a message is 3 for the frame and 1 for the role, from OpenAI's cookbook
"How to count tokens with tiktoken" (2023 to 2025, models from gpt-3.5-turbo-0613 on).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from ._base import Cursor, get, is_object, json_text, kind_of, module_of, opaque_text, shown

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "document", "video_url": "video"}
_OWN_ROLES = frozenset({"developer", "tool", "function"})
_OWN_KEYS = ("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content")


@attrs.frozen
class OpenAIChatFormat:
    """Messages of OpenAI's chat completions API, and of the many servers that speak it."""

    name: ClassVar[str] = "openai_chat"
    overhead: ClassVar[int] = 4
    first_user: ClassVar[bool] = False

    def claims(self, raw: Any) -> bool:
        """A role, a key or a part type that no other format has; or an ``openai`` object."""
        if module_of(raw) == "openai":
            return True
        if get(raw, "role") in ("developer", "tool", "function"):
            return True
        if any(get(raw, key) is not None for key in _OWN_KEYS):
            return True
        content = get(raw, "content")
        return isinstance(content, list) and any(kind_of(part) in _MEDIA for part in content)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = Cursor(position)
        role = get(raw, "role")
        if not isinstance(role, str) or role not in _ROLES:
            raise here.at(".role").error(f"must be one of {', '.join(_ROLES)}, got {role!r}" if role else "is missing")
        name = here.text(get(raw, "name"), "name")
        if role == "tool":
            call_id = here.identity(get(raw, "tool_call_id"), "tool_call_id")
            return Message(Role.TOOL, (self._result(raw, here, call_id),), name)
        if role == "function":
            return Message(Role.TOOL, (self._result(raw, here, f"function:{name}"),), name)
        parts = [*self._content(raw, here)]
        if role == "assistant":
            parts = [*self._reasoning(raw, here), *parts, *self._calls(raw, here)]
        return Message(_ROLES[role], tuple(parts), name)

    def _content(self, raw: Any, here: Cursor) -> Iterator[Part]:
        content = get(raw, "content")
        if isinstance(content, str):
            if content:
                yield Part(PartKind.TEXT, content)
        else:
            for item, inner in here.items(content, "content"):
                yield self._part(item, inner)
        refusal = here.text(get(raw, "refusal"), "refusal")
        if refusal:
            yield Part(PartKind.TEXT, refusal)
        if get(raw, "audio") is not None:
            yield Part(PartKind.MEDIA, flat=("audio",))

    def _part(self, item: Any, here: Cursor) -> Part:
        kind = kind_of(item)
        if kind in ("text", "refusal"):
            return Part(PartKind.TEXT, here.text(get(item, kind), kind))
        if kind in _MEDIA:
            return Part(PartKind.MEDIA, flat=(_MEDIA[kind],))
        return Part(PartKind.OPAQUE, opaque_text(item))

    def _result(self, raw: Any, here: Cursor, call_id: str) -> Part:
        parts = [*self._content(raw, here)]
        text = "\n".join(part.text for part in parts if part.text)
        return Part(PartKind.TOOL_RESULT, text, call_id=call_id, flat=tuple(f for part in parts for f in part.flat))

    def _reasoning(self, raw: Any, here: Cursor) -> Iterator[Part]:
        for key in ("reasoning_content", "reasoning"):
            value = get(raw, key)
            if isinstance(value, str) and value:
                yield Part(PartKind.REASONING, value)
                return

    def _calls(self, raw: Any, here: Cursor) -> Iterator[Part]:
        for call, inner in here.items(get(raw, "tool_calls"), "tool_calls"):
            call_id = inner.identity(get(call, "id"), "id")
            kind = "custom" if get(call, "custom") is not None else "function"
            body = get(call, kind)
            if not is_object(body):
                raise inner.at(f".{kind}").error(f"must be an object, got {shown(body)}")
            yield self._call(body, inner.at(f".{kind}"), call_id, "input" if kind == "custom" else "arguments")
        legacy = get(raw, "function_call")
        if is_object(legacy):
            name = here.text(get(legacy, "name"), "function_call.name")
            yield self._call(legacy, here.at(".function_call"), f"function:{name}", "arguments")

    def _call(self, body: Any, here: Cursor, call_id: str, arguments: str) -> Part:
        name = here.text(get(body, "name"), "name")
        return Part(PartKind.TOOL_CALL, json_text(get(body, arguments) or ""), name, call_id)
