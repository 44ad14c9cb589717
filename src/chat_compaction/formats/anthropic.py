"""Anthropic Messages: content blocks, calls in ``tool_use``, results in ``tool_result`` inside user messages.

Reads dicts as sent and the ``anthropic`` package's own objects. Server tools (``server_tool_use``,
``mcp_tool_use`` and their results) pair by id like the caller's own. The first message must be the
user's (Messages API reference; rule K7). The ``system`` prompt and the tool schemas travel apart
from the list: give them as ``reserved`` tokens.

Anthropic does not publish the frame of a message; 4 tokens are our estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from .._messages import (
    ASSISTANT,
    MEDIA,
    OPAQUE,
    REASONING,
    SYSTEM,
    TEXT,
    TOOL_CALL,
    TOOL_RESULT,
    USER,
    Media,
    Message,
    Part,
    Role,
)
from ..counters import AnthropicMediaCosts, MediaCosts
from ._base import (
    PAIRS,
    Format,
    Place,
    changed,
    cut_list,
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
from ._media import media
from ._opaque import json_text, opaque
from ._parts import compaction, merged
from ._writing import content_like, json_object, read_back, replaced
from .rules import EmptyContent, FirstUser, NotAdjacent, RepeatedId, ResultsFirst, Rule, SystemPlace

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}
_MEDIA = frozenset({"image", "document"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_OWN_BLOCKS = _CALLS | {"redacted_thinking", "search_result", "container_upload", "compaction"}
_OWN_BLOCKS |= {"tool_addition", "tool_removal", "fallback"}


def _is_result(kind: str) -> bool:
    return kind == "tool_result" or kind.endswith("_tool_result")


@attrs.frozen(repr=False)
class AnthropicFormat(Format):
    """Messages of Anthropic's Messages API."""

    name: ClassVar[str] = "anthropic"
    overhead: ClassVar[int] = 4
    media_costs: ClassVar[MediaCosts] = AnthropicMediaCosts()
    default_rules: ClassVar[tuple[Rule, ...]] = (
        *PAIRS,
        NotAdjacent(turns=1),
        RepeatedId(),
        FirstUser(),
        SystemPlace(),
        ResultsFirst(),
        EmptyContent(spaces="alone"),
    )
    request_options: ClassVar[Mapping[str, Any]] = {
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        "betas": ["thinking-binding-controls-2026-08-01"],
    }

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
        return kind in _OWN_BLOCKS or _is_result(kind) or (kind in _MEDIA and get(block, "source") is not None)

    def hints(self, raw: Any) -> bool:
        """A block of thinking, which Claude behind a gateway writes, too; Mistral's has a list of parts in there."""
        content = get(raw, "content")
        return is_list(content) and any(
            kind_of(block) == "thinking" and isinstance(get(block, "thinking"), str) for block in content
        )

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = _ROLES[role_of(raw, _ROLES, here, self.name)]
        content = get(raw, "content")
        if isinstance(content, str):
            return Message(role, (Part(TEXT, content),) if content else ())
        blocks = items(content, here, "content", "a string or a list")
        parts = [self._part(part_kind(block, at, self.name), block, at) for block, at in blocks]
        if not parts and role is SYSTEM and get(raw, "output_config"):
            parts = [Part(OPAQUE)]  # It sets the effort from here on, and says nothing.
        return Message(role, tuple(parts))

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        if is_list(get(raw, "content")):
            return cut_list(raw, "content", parts)
        return None if parts else changed(raw)

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what Anthropic's own tools were asked and found stays."""
        content = get(raw, "content")
        if isinstance(content, str):
            return changed(raw, content=texts.get(0, content))
        written = {number: _saying_instead(content[number], text) for number, text in texts.items()}
        return None if None in written.values() else changed(raw, content=replaced(content or (), written))

    def saying(self, raw: Any, text: str, role: Role = ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return {"role": role.value, "content": text} if role in _ROLES.values() else None

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; the ids of Anthropic's own tools can't be chosen."""
        blocks = list(get(raw, "content"))
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind_of(blocks[part]))
        if key is None:
            return None
        blocks[part] = changed(blocks[part], **{key: call_id})
        return changed(raw, content=blocks)

    def reordered(self, raw: Any, order: Sequence[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return changed(raw, content=[get(raw, "content")[number] for number in order])

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a user's results come first, as the API asks."""
        role = get(first, "role")
        if role != get(second, "role") or role == "system":
            return None
        blocks = [block for raw in (first, second) for block in _blocks(get(raw, "content"))]
        if role == "user":
            blocks.sort(key=lambda block: not _is_result(kind_of(block)))
        return changed(first, content=blocks)

    # -- reading -------------------------------------------------------------------------------

    def _part(self, kind: str, block: Any, here: Place) -> Part:
        if kind == "text":
            return Part(TEXT, string(get(block, "text"), here, "text"))
        if kind in _CALLS:
            name, call_id = string(get(block, "name"), here, "name"), identity(get(block, "id"), here, "id")
            return Part(TOOL_CALL, json_text(get(block, "input")), name, call_id)
        if _is_result(kind):
            call_id, content = identity(get(block, "tool_use_id"), here, "tool_use_id"), get(block, "content")
            if is_list(content) and len(content) == 1 and kind_of(content[0]) == "text":
                content = string(get(content[0], "text"), (here, "content", 0), "text")
            if isinstance(content, str):
                return Part(TOOL_RESULT, content, "", call_id)
            return merged(TOOL_RESULT, self._result_parts(content, here), call_id=call_id)
        if kind == "thinking":
            return self._thinking(block, here)
        if kind == "compaction":
            return compaction(block)
        if kind == "redacted_thinking":
            return Part(REASONING, media=(Media("encrypted_reasoning"),), signed=True)
        return self._media_or_opaque(kind, block, here)

    def _media_or_opaque(self, kind: str, block: Any, here: Place) -> Part:
        if kind == "image":
            return Part(MEDIA, media=(media("image", get(block, "source")),))
        return self._document(block, here) if kind == "document" else opaque(block)

    def _thinking(self, block: Any, here: Place) -> Part:
        text = string(get(block, "thinking"), here, "thinking")
        signed = bool(get(block, "signature"))
        # Thinking whose display is omitted has no text; what is sent back then is the encrypted form.
        hidden = (Media("encrypted_reasoning"),) if signed and not text else ()
        return Part(REASONING, text, media=hidden, signed=signed)

    def _result_parts(self, content: Any, here: Place) -> list[Part]:
        """What a result holds: text, a list of blocks, or the one object of a server tool's result."""
        if content is None or isinstance(content, str):
            return [Part(TEXT, content or "")]
        if is_list(content) or not is_object(content):
            return [self._nested(block, at) for block, at in items(content, here, "content", "a string or a list")]
        if kind_of(content) == "web_fetch_result" and kind_of(get(content, "content")) == "document":
            url = get(content, "url")
            page = self._document(get(content, "content"), (*here, "content", "content"))
            return [Part(TEXT, url if isinstance(url, str) else ""), page]
        return [opaque(content)]

    def _nested(self, block: Any, here: Place) -> Part:
        """A block in a result or a document: calls and results are none in there."""
        kind = kind_of(block)
        if kind == "text":
            return Part(TEXT, string(get(block, "text"), here, "text"))
        return self._media_or_opaque(kind, block, here)

    def _document(self, block: Any, here: Place) -> Part:
        """Plain text, and content given as blocks, are sent as they are; any other document is counted flat."""
        source = get(block, "source")
        parts = [Part(TEXT, text) for key in ("title", "context") if isinstance(text := get(block, key), str)]
        if kind_of(source) == "text":
            parts.append(Part(TEXT, string(get(source, "data"), (*here, "source"), "data")))
        elif kind_of(source) == "content":
            parts += self._result_parts(get(source, "content"), (*here, "source"))
        else:
            parts.append(Part(MEDIA, media=(media("document", source),)))
        return merged(MEDIA, parts)


def _saying_instead(block: Any, text: str) -> Any | None:
    """The block with another text; None for those that only the provider writes, and for a result that loads tools."""
    kind, content = kind_of(block), get(block, "content")
    if kind == "text":
        return changed(block, text=text)
    if kind in ("tool_use", "mcp_tool_use"):
        arguments = json_object(text)
        return None if arguments is None else changed(block, input=arguments)
    if kind not in ("tool_result", "mcp_tool_result"):
        return None
    if is_list(content) and any(kind_of(inner) == "tool_reference" for inner in content):
        return None
    return changed(block, content=content_like(content, text))


def _blocks(content: Any) -> list[Any]:
    """Content as blocks: a string is short for one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())
