"""Messages of the pi coding agent's sessions (its ``AgentMessage``): ``role`` and ``content`` blocks.

Beside ``user``, ``assistant`` and ``toolResult`` there are messages that pi sends as a user's:
``bashExecution`` (a command that the user ran), ``compactionSummary``, ``branchSummary`` and ``custom`` (an
extension's; ``hookMessage`` in older files). pi writes a sentence around these when it sends them, which is not
counted. A command with ``excludeFromContext`` is not sent: it counts nothing and opens no turn.

Which provider the messages go to is a setting of pi's; 4 tokens a message are our estimate for the frame.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import Media, Message, Part, PartKind, Role
from ._base import Format, Place, changed, cut_list, get, identity, is_list, items, kind_of, part_kind, role_of, string
from ._media import media
from ._opaque import json_text, opaque
from ._parts import merged
from ._writing import json_object, read_back, replaced

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "toolResult": Role.TOOL,
    "bashExecution": Role.USER,
    "compactionSummary": Role.USER,
    "branchSummary": Role.USER,
    "custom": Role.USER,
    "hookMessage": Role.USER,
}
_OWN_ROLES = frozenset(_ROLES) - {"user", "assistant"}
_FLAT_FIELDS = {
    "bashExecution": ("command", "output"),
    "compactionSummary": ("summary",),
    "branchSummary": ("summary",),
}
_BINDING = ("anthropic-messages", "bedrock-converse-stream")


@attrs.frozen(repr=False)
class PiSessionFormat(Format):
    """Messages of a session of the pi coding agent."""

    name: ClassVar[str] = "pi_session"
    overhead: ClassVar[int] = 4

    def claims(self, raw: Any) -> bool:
        """A role that only pi has, a ``toolCall`` block, or an assistant's message with ``api`` and ``stopReason``."""
        role, content = get(raw, "role"), get(raw, "content")
        if role in _OWN_ROLES or (get(raw, "api") is not None and get(raw, "stopReason") is not None):
            return True
        return is_list(content) and any(kind_of(block) == "toolCall" for block in content)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = role_of(raw, _ROLES, here, self.name)
        if role in _FLAT_FIELDS:
            if get(raw, "excludeFromContext"):
                return Message(Role.ASSISTANT)
            texts = (string(get(raw, key), here, key) for key in _FLAT_FIELDS[role])
            return Message(_ROLES[role], (Part(PartKind.TEXT, "\n".join(text for text in texts if text)),))
        parts = self._content(raw, here)
        if role == "toolResult":
            call_id = identity(get(raw, "toolCallId"), here, "toolCallId")
            parts = [merged(PartKind.TOOL_RESULT, parts, call_id=call_id)]
        return Message(_ROLES[role], tuple(parts))

    def _content(self, raw: Any, here: Place) -> list[Part]:
        content = get(raw, "content")
        if isinstance(content, str):
            return [Part(PartKind.TEXT, content)] if content else []
        return [self._part(raw, block, at) for block, at in items(content, here, "content", "a string or a list")]

    def _part(self, raw: Any, block: Any, here: Place) -> Part:
        kind = part_kind(block, here, self.name)
        if kind == "text":
            return Part(PartKind.TEXT, string(get(block, "text"), here, "text"))
        if kind == "thinking":
            return self._thinking(raw, block, here)
        if kind == "toolCall":
            name, call_id = string(get(block, "name"), here, "name"), identity(get(block, "id"), here, "id")
            return Part(PartKind.TOOL_CALL, json_text(get(block, "arguments")), name, call_id)
        return Part(PartKind.MEDIA, media=(media("image", block),)) if kind == "image" else opaque(block)

    def _thinking(self, raw: Any, block: Any, here: Place) -> Part:
        """Thinking; its signature is Anthropic's, or an encrypted item of the Responses API, or another's."""
        text = string(get(block, "thinking"), here, "thinking")
        signature, api = get(block, "thinkingSignature"), get(raw, "api")
        encrypted = bool(signature) and (not text or "encrypted_content" in str(signature))
        flat = (Media("encrypted_reasoning"),) if encrypted else ()
        return Part(PartKind.REASONING, text, media=flat, signed=bool(signature) and api in _BINDING)

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a result is a message, and leaves whole."""
        if get(raw, "role") == "toolResult" or not is_list(get(raw, "content")):
            return None
        return cut_list(raw, "content", parts)

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; of a command that the user ran, the output."""
        role, content = get(raw, "role"), get(raw, "content")
        if role in _FLAT_FIELDS:
            first = get(raw, "command") if role == "bashExecution" else ""
            said = texts[0].removeprefix(f"{first}\n") if first else texts[0]
            return changed(raw, **{_FLAT_FIELDS[role][-1]: said})
        if role == "toolResult":
            return changed(raw, content=[{"type": "text", "text": texts[0]}])
        if isinstance(content, str):
            return changed(raw, content=texts[0])
        written = {number: _saying_instead(content[number], text) for number, text in texts.items()}
        return None if None in written.values() else changed(raw, content=replaced(content, written))

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        content = [{"type": "text", "text": text}]
        if role is Role.ASSISTANT and get(raw, "role") == "assistant":
            return changed(raw, content=content, **({"stopReason": "stop"} if get(raw, "stopReason") else {}))
        if role not in (Role.ASSISTANT, Role.USER):
            return None
        time = get(raw, "timestamp")
        return {"role": role.value, "content": content, **({} if time is None else {"timestamp": time})}

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        if get(raw, "role") == "toolResult":
            return changed(raw, toolCallId=call_id)
        blocks = list(get(raw, "content"))
        blocks[part] = changed(blocks[part], id=call_id)
        return changed(raw, content=blocks)

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; only two of a user's own messages become one."""
        if get(first, "role") != "user" or get(second, "role") != "user":
            return None
        return changed(first, content=[*_blocks(first), *_blocks(second)])


def _saying_instead(block: Any, text: str) -> Any | None:
    if kind_of(block) == "text":
        return changed(block, text=text)
    arguments = json_object(text)
    return None if arguments is None else changed(block, arguments=arguments)


def _blocks(raw: Any) -> list[Any]:
    content = get(raw, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())
