"""Anthropic Messages: content blocks, calls in ``tool_use``, results in ``tool_result`` inside user messages.

Reads dicts as sent and the ``anthropic`` package's own objects. Server tools (``server_tool_use``,
``mcp_tool_use`` and their results) pair by id like the caller's own. The first message must be the
user's (Messages API reference; rule K7). The ``system`` prompt and the tool schemas travel apart
from the list: give them as ``reserved`` tokens.

Anthropic does not publish the frame of a message; 4 tokens are our estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
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
)
from ._opaque import json_text, opaque

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_MEDIA = frozenset({"image", "document"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_OWN_BLOCKS = frozenset({"redacted_thinking", "search_result", "container_upload", "compaction"}) | _CALLS


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
        if module_of(raw) == "anthropic":
            return True
        content = get(raw, "content")
        return is_list(content) and any(map(self._owns, content))

    def _owns(self, block: Any) -> bool:
        if module_of(block) == "anthropic":
            return True
        kind = kind_of(block)
        if kind == "thinking":  # Mistral's has a list of parts in there.
            return isinstance(get(block, "thinking"), str)
        return kind in _OWN_BLOCKS or _is_result(kind) or (kind in _MEDIA and get(block, "source") is not None)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = _ROLES[role_of(raw, _ROLES, here, self.name)]
        content = get(raw, "content")
        if isinstance(content, str):
            return Message(role, (Part(PartKind.TEXT, content),) if content else ())
        blocks = items(content, here, "content", "a string or a list")
        return Message(role, tuple([self._part(part_kind(block, at, self.name), block, at) for block, at in blocks]))

    def _part(self, kind: str, block: Any, here: Place) -> Part:
        if kind == "text":
            return Part(PartKind.TEXT, string(get(block, "text"), here, "text"))
        if kind in _CALLS:
            name, call_id = string(get(block, "name"), here, "name"), identity(get(block, "id"), here, "id")
            return Part(PartKind.TOOL_CALL, json_text(get(block, "input")), name, call_id)
        if _is_result(kind):
            call_id = identity(get(block, "tool_use_id"), here, "tool_use_id")
            return _joined(PartKind.TOOL_RESULT, self._result_parts(get(block, "content"), here), call_id)
        if kind == "thinking":
            return self._thinking(block, here)
        if kind == "redacted_thinking":
            return Part(PartKind.REASONING, flat=("encrypted_reasoning",), signed=True)
        return self._media_or_opaque(kind, block, here)

    def _media_or_opaque(self, kind: str, block: Any, here: Place) -> Part:
        if kind == "image":
            return Part(PartKind.MEDIA, flat=("image",))
        return self._document(block, here) if kind == "document" else opaque(block)

    def _thinking(self, block: Any, here: Place) -> Part:
        text = string(get(block, "thinking"), here, "thinking")
        signed = bool(get(block, "signature"))
        # Thinking whose display is omitted has no text; what is sent back then is the encrypted form.
        flat = ("encrypted_reasoning",) if signed and not text else ()
        return Part(PartKind.REASONING, text, flat=flat, signed=signed)

    def _result_parts(self, content: Any, here: Place) -> list[Part]:
        """What a result holds: text, a list of blocks, or the one object of a server tool's result."""
        if content is None or isinstance(content, str):
            return [Part(PartKind.TEXT, content or "")]
        if not is_object(content):
            return [self._nested(block, at) for block, at in items(content, here, "content", "a string or a list")]
        if kind_of(content) == "web_fetch_result" and kind_of(get(content, "content")) == "document":
            url = get(content, "url")
            page = self._document(get(content, "content"), (*here, "content", "content"))
            return [Part(PartKind.TEXT, url if isinstance(url, str) else ""), page]
        return [opaque(content)]

    def _nested(self, block: Any, here: Place) -> Part:
        """A block in a result or a document: calls and results are none in there."""
        kind = kind_of(block)
        if kind == "text":
            return Part(PartKind.TEXT, string(get(block, "text"), here, "text"))
        return self._media_or_opaque(kind, block, here)

    def _document(self, block: Any, here: Place) -> Part:
        """Plain text, and content given as blocks, are sent as they are; any other document is counted flat."""
        source = get(block, "source")
        parts = [Part(PartKind.TEXT, text) for key in ("title", "context") if isinstance(text := get(block, key), str)]
        if kind_of(source) == "text":
            parts.append(Part(PartKind.TEXT, string(get(source, "data"), (*here, "source"), "data")))
        elif kind_of(source) == "content":
            parts += self._result_parts(get(source, "content"), (*here, "source"))
        else:
            parts.append(Part(PartKind.MEDIA, flat=("document",)))
        return _joined(PartKind.MEDIA, parts)


def _joined(kind: PartKind, parts: Iterable[Part], call_id: str | None = None) -> Part:
    """One part that counts as these together."""
    text = "\n".join([part.text for part in parts if part.text])
    return Part(kind, text, call_id=call_id, flat=tuple([flat for part in parts for flat in part.flat]))
