"""Anthropic Messages: content blocks, calls in ``tool_use``, results in ``tool_result`` inside user messages.

Reads dicts as sent and the ``anthropic`` package's own objects. Server tools (``server_tool_use``,
``mcp_tool_use`` and their results) pair by id like the caller's own. The first message must be the
user's (Messages API reference; rule K7). The ``system`` prompt and the tool schemas travel apart
from the list: give them as ``reserved`` tokens.

Anthropic does not publish the frame of a message; 4 tokens are our estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from ._base import Cursor, get, is_object, json_text, kind_of, module_of, opaque_text

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_MEDIA = {"image": "image", "document": "document"}
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_OWN_BLOCKS = frozenset({"thinking", "redacted_thinking", "tool_result", "search_result", "container_upload"}) | _CALLS


def _is_result(kind: str) -> bool:
    return kind == "tool_result" or kind.endswith("_tool_result")


@attrs.frozen
class AnthropicFormat:
    """Messages of Anthropic's Messages API."""

    name: ClassVar[str] = "anthropic"
    overhead: ClassVar[int] = 4
    first_user: ClassVar[bool] = True

    def claims(self, raw: Any) -> bool:
        """A block type that only this format has; or an ``anthropic`` object, alone or in the content."""
        content = get(raw, "content")
        if module_of(raw) == "anthropic":
            return True
        return isinstance(content, list) and any(map(self._owns, content))

    def _owns(self, block: Any) -> bool:
        kind = kind_of(block)
        if module_of(block) == "anthropic":
            return True
        return kind in _OWN_BLOCKS or _is_result(kind) or (kind in _MEDIA and get(block, "source") is not None)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = Cursor(position)
        role = get(raw, "role")
        if not isinstance(role, str) or role not in _ROLES:
            raise here.at(".role").error(f"must be one of {', '.join(_ROLES)}, got {role!r}" if role else "is missing")
        content = get(raw, "content")
        if isinstance(content, str):
            return Message(_ROLES[role], (Part(PartKind.TEXT, content),) if content else ())
        blocks = here.items(content, "content")
        return Message(_ROLES[role], tuple(part for block, inner in blocks for part in self._parts(block, inner)))

    def _parts(self, block: Any, here: Cursor) -> Iterator[Part]:
        kind = kind_of(block)
        if kind == "text":
            yield Part(PartKind.TEXT, here.text(get(block, "text"), "text"))
        elif kind in _CALLS:
            arguments, name = json_text(get(block, "input") or ""), here.text(get(block, "name"), "name")
            yield Part(PartKind.TOOL_CALL, arguments, name, here.identity(get(block, "id"), "id"))
        elif _is_result(kind):
            yield self._result(block, here)
        elif kind == "thinking":
            yield self._thinking(block, here)
        elif kind == "redacted_thinking":
            yield Part(PartKind.REASONING, flat=("encrypted_reasoning",), signed=True)
        elif kind in _MEDIA:
            yield Part(PartKind.MEDIA, self._document_text(block), flat=self._flat(kind, block))
        else:
            yield Part(PartKind.OPAQUE, opaque_text(block))

    def _thinking(self, block: Any, here: Cursor) -> Part:
        text = here.text(get(block, "thinking"), "thinking")
        signed = bool(get(block, "signature"))
        # Thinking whose display is omitted has no text; what is sent back then is the encrypted form.
        flat = ("encrypted_reasoning",) if signed and not text else ()
        return Part(PartKind.REASONING, text, flat=flat, signed=signed)

    def _result(self, block: Any, here: Cursor) -> Part:
        call_id = here.identity(get(block, "tool_use_id"), "tool_use_id")
        content = get(block, "content")
        if content is None or isinstance(content, str):
            return Part(PartKind.TOOL_RESULT, content or "", call_id=call_id)
        if is_object(content):
            return Part(PartKind.TOOL_RESULT, opaque_text(content), call_id=call_id)
        texts: list[str] = []
        flat: list[str] = []
        for item, inner in here.items(content, "content"):
            readable = kind_of(item) == "text" or kind_of(item) in _MEDIA
            for part in self._parts(item, inner) if readable else (Part(PartKind.OPAQUE, opaque_text(item)),):
                texts.append(part.text)
                flat.extend(part.flat)
        return Part(PartKind.TOOL_RESULT, "\n".join(filter(None, texts)), call_id=call_id, flat=tuple(flat))

    def _document_text(self, block: Any) -> str:
        """A plain-text document is sent as its text; any other is counted flat."""
        source = get(block, "source")
        text = get(source, "data") if get(source, "type") == "text" else None
        return text if isinstance(text, str) else ""

    def _flat(self, kind: str, block: Any) -> tuple[str, ...]:
        return () if self._document_text(block) else (_MEDIA[kind],)
