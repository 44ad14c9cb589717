"""LangChain and LangGraph messages: ``langchain_core``'s own objects, and the dicts that they are stored as.

Three forms of dict: flat with a ``type`` (a LangGraph state), ``{"type": ..., "data": {...}}``
(``messages_to_dict``), and ``{"lc": 1, "type": "constructor", "kwargs": {...}}`` (``dumpd``). Nothing of
LangChain is imported. Content is a string or blocks, of the provider's or of LangChain's own kinds. A call
stands in ``tool_calls`` (or, with arguments that did not parse, in ``invalid_tool_calls``, which is sent, too),
and often a second time as a block of the content or in ``additional_kwargs``: it counts once. A ``remove`` message
is an order to a LangGraph state, never sent: it counts nothing.

Which provider the messages go to is the model's business; 4 tokens a message are our estimate for the frame.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import Message, PartKind, Role
from .._text import shown
from ._base import MAPPINGS, PAIRS, Format, changed, get, identity, is_list, is_object, module_of, string, wrong
from ._langchain import CALL_LISTS, blocks_of, call_id_of, extra_without, located, named, said_instead
from ._parts import merged
from ._writing import content_like, read_back
from .rules import NotAdjacent, Rule

_KINDS = {
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "tool": Role.TOOL,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
    "remove": Role.ASSISTANT,
}
_SPEAKERS = {
    Role.USER: ("human", "HumanMessage"),
    Role.ASSISTANT: ("ai", "AIMessage"),
    Role.SYSTEM: ("system", "SystemMessage"),
}
_ALIASES = {"user": "human", "assistant": "ai"}


@attrs.frozen(repr=False)
class LangChainFormat(Format):
    """Messages of LangChain and LangGraph."""

    name: ClassVar[str] = "langchain"
    overhead: ClassVar[int] = 4
    default_rules: ClassVar[tuple[Rule, ...]] = (*PAIRS, NotAdjacent())

    def claims(self, raw: Any) -> bool:
        """An object of LangChain's, a stored one, or a dict with one of its types and no role."""
        if module_of(raw) in ("langchain_core", "langchain"):
            return True
        if not isinstance(raw, MAPPINGS):
            return False
        if raw.get("type") == "constructor":
            return raw.get("lc") is not None and is_object(raw.get("kwargs"))
        if "role" in raw and raw.get("type") != "chat":
            return False
        return _is_kind(raw.get("type")) and ("content" in raw or "data" in raw)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here, body = (position,), _body(raw)
        kind = _kind(raw, body)
        if kind not in _KINDS:
            what = f"must be one of {', '.join(_KINDS)}, got {shown(kind)}" if kind else "is missing"
            raise wrong((*here, "type"), f"{what} (read as {self.name!r}; format= names another)")
        if kind == "remove":
            return Message(Role.ASSISTANT)
        name = string(get(body, "name"), here, "name")
        parts = [part for part, _, _ in located(kind, body, here)]
        if kind == "tool":
            call_id = identity(get(body, "tool_call_id"), here, "tool_call_id")
            return Message(Role.TOOL, (merged(PartKind.TOOL_RESULT, parts, call_id=call_id),))
        if kind == "function":  # It has a name and no id; the name is sent with the result.
            return Message(Role.TOOL, (merged(PartKind.TOOL_RESULT, parts, name=name),))
        return Message(_KINDS[kind], tuple(parts), name)

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a call leaves the list of calls and the content."""
        body = _body(raw)
        kind = _kind(raw, body)
        if kind in ("tool", "function"):
            return None
        places = located(kind, body, (0,))
        gone = [places[number] for number in parts]
        fields: dict[str, Any] = {}
        calls = {part.call_id for part, _, _ in gone if part.kind is PartKind.TOOL_CALL} - {None}
        numbers = {number for _, field, number in gone if field == "content"}
        content = get(body, "content")
        if is_list(content):
            numbers |= {n for n, block in enumerate(content) if call_id_of(block) in calls}
            fields["content"] = [block for n, block in enumerate(content) if n not in numbers]
        elif numbers:
            fields["content"] = ""
        for key in CALL_LISTS:
            dropped = {number for _, field, number in gone if field == key}
            if dropped:
                fields[key] = [call for n, call in enumerate(get(body, key)) if n not in dropped]
        extra = extra_without(get(body, "additional_kwargs"), {field for _, field, _ in gone}, calls)
        if extra is not None:
            fields["additional_kwargs"] = extra
        kept = _rewritten(raw, **fields)
        return kept if located(kind, _body(kept), (0,)) else None

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a call changes everywhere it stands, its artifact stays."""
        body = _body(raw)
        kind = _kind(raw, body)
        if kind in ("tool", "function"):
            return _rewritten(raw, content=content_like(get(body, "content"), texts[0]))
        fields = said_instead(kind, body, texts)
        return None if fields is None else _rewritten(raw, **fields)

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        kind, name = _SPEAKERS.get(role, ("", ""))
        body = {"type": kind, "content": text}
        if not kind:
            return None
        if not isinstance(raw, MAPPINGS):  # Whoever has an object of LangChain's has its classes, too.
            return getattr(sys.modules["langchain_core.messages"], name)(content=text)
        if raw.get("type") == "constructor":
            path = ["langchain", "schema", "messages", name]
            return {"lc": 1, "type": "constructor", "id": path, "kwargs": body}
        return {"type": kind, "data": body} if _body(raw) is not raw else body

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        body = _body(raw)
        kind = _kind(raw, body)
        if kind == "tool":
            return _rewritten(raw, tool_call_id=call_id)
        found, field, number = located(kind, body, (0,))[part]
        content = get(body, "content")
        fields: dict[str, Any] = {}
        if field in CALL_LISTS:
            calls = list(get(body, field))
            calls[number] = changed(calls[number], id=call_id)
            fields[field] = calls
        elif field != "content":
            return None
        if is_list(content):
            fields["content"] = [
                named(block, call_id)
                if (
                    n == number
                    if field == "content"
                    else found.call_id is not None and call_id_of(block) == found.call_id
                )
                else block
                for n, block in enumerate(content)
            ]
        return _rewritten(raw, **fields)

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; two messages of a user or of the system become one."""
        bodies = (_body(first), _body(second))
        kinds = {_kind(raw, body) for raw, body in zip((first, second), bodies, strict=True)}
        if kinds not in ({"human"}, {"system"}):
            return None
        return _rewritten(first, content=[block for body in bodies for block in blocks_of(get(body, "content"))])


# -- the forms of a message ----------------------------------------------------------------------


def _is_kind(kind: Any) -> bool:
    return isinstance(kind, str) and kind.removesuffix("MessageChunk").lower() in (*_KINDS, "chat")


def _body(raw: Any) -> Any:
    """What holds the fields: the message itself, its ``data`` or its ``kwargs``."""
    if isinstance(raw, MAPPINGS):
        inner = raw.get("kwargs") if raw.get("type") == "constructor" else raw.get("data")
        if is_object(inner):
            return inner
    return raw


def _kind(raw: Any, body: Any) -> str:
    """The type of a message, whatever its form; that of a ``chat`` message is its role."""
    kind = get(body, "type") or get(raw, "type")
    if kind == "constructor":  # The id is the path of the class.
        path = get(raw, "id")
        last = path[-1] if is_list(path) and path else ""
        kind = last.removesuffix("Chunk").removesuffix("Message").lower() if isinstance(last, str) else ""
    elif isinstance(kind, str):
        kind = kind.removesuffix("MessageChunk").lower() if kind.endswith("MessageChunk") else kind
    if kind in (None, "", "chat"):
        kind = get(body, "role")
    return _ALIASES.get(kind, kind) if isinstance(kind, str) else ""


def _rewritten(raw: Any, **fields: Any) -> Any:
    body = _body(raw)
    if body is raw:
        return changed(raw, **fields)
    return {**raw, "kwargs" if raw.get("type") == "constructor" else "data": changed(body, **fields)}
