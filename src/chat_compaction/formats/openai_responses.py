"""OpenAI Responses: a list of items, which are messages, calls, results, reasoning, and what the server keeps.

Reads dicts as sent and the ``openai`` package's own objects. A response of the model is the run of its items:
they stay or leave together (rule G2), so that reasoning stays with what it led to, in both directions.

A call and its result are two items, tied by ``call_id``. The items of the provider's own tools (web and file
search, code interpreter, images, MCP) hold call and result in one, and no other item ever answers them: such an item
is read as a call and its result, so that it counts as the use of a tool and is never waited for.

A ``compaction`` item, and what sets up the conversation from a place on, are read as system messages: they keep
their place. ``instructions`` and the tools travel apart from the list: give them as ``reserved`` tokens.

OpenAI does not publish the frame of an item; 4 tokens are our estimate, taken from the chat API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import TEXT, Message, Part, Role
from .._text import shown
from .._validators import true_false_or_none
from ..counters import MediaCosts, OpenAIMediaCosts
from ._base import (
    PAIRS,
    Format,
    Place,
    changed,
    cut_list,
    get,
    is_list,
    items,
    kind_of,
    part_kind,
    role_of,
    string,
    wrong,
)
from ._openai_responses import IDS, KINDS, OWN_PARTS, TEXTS, Fields, part_of, parts_of, role_of_item
from ._writing import json_object, read_back, replaced
from .rules import ReasoningAlone, Rule

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}

_WRITTEN: dict[str, Fields] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "mcp_call": ("arguments", "output"),
    "function_call_output": ("output",),
    "custom_tool_call_output": ("output",),
    "local_shell_call_output": ("output",),
    "apply_patch_call_output": ("output",),
}
"""The fields that hold any text, by the numbers of the parts; those of other items have a form."""


@attrs.frozen(repr=False)
class OpenAIResponsesFormat(Format):
    """Items of OpenAI's Responses API.

    ``complete`` is None here: a list that holds an item reference or begins with a result may leave the
    call of a result to the server, as one sent with ``previous_response_id`` does.
    """

    name: ClassVar[str] = "openai_responses"
    overhead: ClassVar[int] = 4
    media_costs: ClassVar[MediaCosts] = OpenAIMediaCosts()
    runs: ClassVar[bool] = True
    default_rules: ClassVar[tuple[Rule, ...]] = (*PAIRS, ReasoningAlone())

    complete: bool | None = attrs.field(default=None, kw_only=True, validator=true_false_or_none)

    def claims(self, raw: Any) -> bool:
        """An item or part type that only this format has; or an ``openai`` object of the Responses API."""
        module = type(raw).__module__
        if module.startswith(("openai.types.responses", "openai.types.conversations", "openai.types.beta.beta_resp")):
            return True
        kind = kind_of(raw)
        if kind == "compaction":  # Agents' session files have entries of that name.
            return get(raw, "encrypted_content") is not None
        if kind and kind != "message":
            return kind in KINDS
        content = get(raw, "content")
        return is_list(content) and any(kind_of(part) in OWN_PARTS for part in content)

    def read(self, raw: Any, position: int) -> Message:
        """One item; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        kind = _item_kind(raw, here)
        if kind == "message":
            role = _ROLES[role_of(raw, _ROLES, here, self.name)]
            return Message(role, self._content(raw, here))
        if kind == "agent_message":
            return Message(Role.ASSISTANT, self._content(raw, here), string(get(raw, "author"), here, "author"))
        return Message(role_of_item(kind, raw), parts_of(kind, raw, here))

    def _content(self, raw: Any, here: Place) -> tuple[Part, ...]:
        content = get(raw, "content")
        if isinstance(content, str):
            return (Part(TEXT, content),) if content else ()
        found = items(content, here, "content", "a string or a list")
        return tuple([part_of(part_kind(item, at, self.name), item, at) for item, at in found])

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; any item but a message leaves whole."""
        return cut_list(raw, "content", parts) if is_list(get(raw, "content")) and kind_of(raw) != "reasoning" else None

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what is neither a message nor a text stays as it is.

        What a custom tool takes may be any text.
        """
        kind, content = _item_kind(raw, (0,)), get(raw, "content")
        if kind not in ("message", "agent_message"):
            return _saying_instead(kind, raw, texts)
        if isinstance(content, str):
            return changed(raw, content=texts.get(0, content))
        blocks = {n: changed(content[n], **{TEXTS[kind_of(content[n])]: text}) for n, text in texts.items()}
        return changed(raw, content=replaced(content or (), blocks))

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return {"type": "message", "role": role.value, "content": text} if role is not Role.TOOL else None

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; ids that the server gave stay as they are."""
        return None if IDS.get(kind_of(raw), ("call_id",))[0] != "call_id" else changed(raw, call_id=call_id)


def _saying_instead(kind: str, raw: Any, texts: Mapping[int, str]) -> Any | None:
    """The item with other texts in the fields that hold one."""
    if kind not in _WRITTEN:
        return None
    fields = {_WRITTEN[kind][number]: text for number, text in texts.items()}
    broken = "arguments" in fields and json_object(fields["arguments"]) is None
    return None if broken else changed(raw, **fields)


def _item_kind(raw: Any, here: Place) -> str:
    """The type of an item; a message may be without, and a reference too."""
    kind = get(raw, "type")
    if isinstance(kind, str) and kind:
        return kind
    if kind:
        raise wrong((*here, "type"), f"must be a string, got {shown(kind)}")
    return "item_reference" if get(raw, "role") is None and isinstance(get(raw, "id"), str) else "message"
