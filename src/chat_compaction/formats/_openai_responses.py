"""The items of OpenAI's Responses API: what each type is, and the parts that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from .._messages import MEDIA, OPAQUE, REASONING, REFERENCE, TEXT, TOOL_CALL, TOOL_RESULT, Media, Part, PartKind, Role
from ._base import MAPPINGS, Place, get, is_list, kind_of, string
from ._media import media
from ._opaque import json_text, opaque
from ._parts import compaction, merged

TEXTS = {
    **dict.fromkeys(("input_text", "output_text", "text", "summary_text", "reasoning_text"), "text"),
    "refusal": "refusal",
    "logs": "logs",
}
_MEDIA = {
    "input_image": "image",
    "computer_screenshot": "image",
    "image": "image",
    "input_file": "document",
    "input_audio": "audio",
}
OWN_PARTS = frozenset({*TEXTS, *_MEDIA}) - {"text", "refusal", "logs", "image", "input_audio"}

Fields = tuple[str, ...]

_CALLS: dict[str, Fields] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "computer_call": ("action", "actions"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
    "program": ("code",),
    "multi_agent_call": ("action", "arguments"),
}
"""What a call says, and which fields say it."""

_RESULTS: dict[str, Fields] = {
    "function_call_output": ("output",),
    "custom_tool_call_output": ("output",),
    "computer_call_output": ("output",),
    "local_shell_call_output": ("output",),
    "shell_call_output": ("output",),
    "apply_patch_call_output": ("output",),
    "tool_search_output": ("tools",),
    "mcp_approval_response": ("approve", "reason"),
    "program_output": ("result",),
    "multi_agent_call_output": ("output",),
}

_COMPLETE: dict[str, tuple[Fields, Fields]] = {
    "mcp_call": (("arguments",), ("output", "error")),
    "web_search_call": (("action",), ()),
    "file_search_call": (("queries",), ("results",)),
    "code_interpreter_call": (("code",), ("outputs",)),
    "image_generation_call": (("revised_prompt",), ()),
}
"""Items that hold a call and its result: the fields of the one and of the other."""

_SETTINGS: dict[str, Fields] = {
    "additional_tools": ("tools",),
    "configuration_update": ("reasoning", "text"),
    "mcp_list_tools": ("server_label", "tools", "error"),
}
"""Items that say what the model may do, and how."""

_COMPACTIONS = frozenset({"compaction", "compaction_summary"})
"""What the server made of all before it; ``compaction_summary`` is Codex's other name for it."""

_FIXED = _COMPACTIONS | {"compaction_trigger", "additional_tools", "configuration_update"}
"""What has to stay where it is: it stands for all before it, or sets up all behind it."""

_OTHERS = frozenset({"message", "agent_message", "reasoning", "item_reference"})
KINDS = _OTHERS.union(_CALLS, _RESULTS, _COMPLETE, _SETTINGS, _FIXED)

_ENCRYPTED = Part(REASONING, media=(Media("encrypted_reasoning"),))

_CONTENT = frozenset({"output", "outputs", "summary", "content"})
"""Fields that may hold content parts. What the others hold is data, and a ``type`` in there part of what they say."""

IDS: dict[str, Fields] = {
    **dict.fromkeys(_COMPLETE, ("id",)),
    "mcp_approval_request": ("id",),
    "mcp_approval_response": ("approval_request_id",),
    "tool_search_call": ("call_id",),  # Null where the server searched; the item's own id is not its output's.
    "local_shell_call_output": ("call_id", "id"),  # The package's type has ``id``, the server wants ``call_id``.
}
"""Which field ties a call and its result, where it is another one than usual."""


def role_of_item(kind: str, raw: Any) -> Role:
    if kind in _FIXED:
        return Role.SYSTEM
    # Some outputs are the server's, and stand in the model's response.
    if kind in ("program_output", "multi_agent_call_output") or get(raw, "execution") == "server":
        return Role.ASSISTANT
    return Role.TOOL if kind in _RESULTS or kind.endswith("_output") else Role.ASSISTANT


def parts_of(kind: str, raw: Any, here: Place) -> tuple[Part, ...]:
    if kind in _CALLS:
        return (_call(kind, _CALLS[kind], raw, here),)
    if kind in _RESULTS:
        return _results(kind, raw, here)
    if kind in _COMPLETE:
        asked, answered = _COMPLETE[kind]
        found = _drawn(raw) if kind == "image_generation_call" else _read(answered, raw, here)
        call = _call(kind, asked, raw, here)
        return call, merged(TOOL_RESULT, found, call_id=call.call_id)
    if kind == "reasoning":
        return (_reasoning(raw, here),)
    if kind == "item_reference":
        return (Part(REFERENCE),)
    if kind in _SETTINGS:
        return (_all_of(OPAQUE, _SETTINGS[kind], raw, here),)
    return (_unknown(kind, raw, here),)


def _call(kind: str, fields: Fields, raw: Any, here: Place) -> Part:
    name = _tool_name(raw, here) or kind.removesuffix("_call")
    return _all_of(TOOL_CALL, fields, raw, here, name=name, call_id=_call_id(kind, raw, here))


def _results(kind: str, raw: Any, here: Place) -> tuple[Part, ...]:
    """A result; one that names its tool and no call was asked for by no model, and is complete in itself."""
    call_id = _call_id(kind, raw, here)
    result = _all_of(TOOL_RESULT, _RESULTS[kind], raw, here, call_id=call_id)
    name = _tool_name(raw, here) if call_id is None else ""
    return (Part(TOOL_CALL, name=name), result) if name else (result,)


def _drawn(raw: Any) -> list[Part]:
    """The image that was made, which is bare base64."""
    image = get(raw, "result")
    return [Part(MEDIA, media=(media("image", image),))] if image else []


def _reasoning(raw: Any, here: Place) -> Part:
    """Summary and text, each once where they say the same; what is encrypted counts flat."""
    found = _read(("summary", "content"), raw, here)
    said = list(dict.fromkeys(found)) if len(found) > 1 else found
    return merged(REASONING, [*said, _ENCRYPTED] if get(raw, "encrypted_content") else said)


def _unknown(kind: str, raw: Any, here: Place) -> Part:
    """An item of unknown type; with a ``call_id`` it is a call or a result, which would be refused alone."""
    if kind in _COMPACTIONS:
        return compaction(raw)
    part = opaque(raw)
    call_id = get(raw, "call_id")
    if not isinstance(call_id, str) or not call_id or kind in _FIXED:
        return part
    paired = TOOL_RESULT if kind.endswith("_output") else TOOL_CALL
    return attrs.evolve(part, kind=paired, call_id=call_id)


def _call_id(kind: str, raw: Any, here: Place) -> str | None:
    for key in IDS.get(kind, ("call_id",) if kind in _RESULTS else ("call_id", "id")):
        found = string(get(raw, key), here, key)
        if found:
            return found
    return None


def _tool_name(raw: Any, here: Place) -> str:
    """The tool's name as the model writes it, with the namespace or the server ahead; empty where there is none."""
    name = string(get(raw, "name"), here, "name")
    spaces = [get(raw, key) for key in ("namespace", "server_label")] if name else ()
    return ".".join([*(space for space in spaces if isinstance(space, str) and space), name])


# -- what stands in the fields of an item --------------------------------------------------------


def _all_of(
    kind: PartKind, fields: Fields, raw: Any, here: Place, *, name: str = "", call_id: str | None = None
) -> Part:
    """One part of all that these fields hold: nearly always one text."""
    if len(fields) == 1 and isinstance(text := get(raw, fields[0]), str):
        return Part(kind, text, name, call_id)
    return merged(kind, _read(fields, raw, here), name=name, call_id=call_id)


def _read(fields: Fields, raw: Any, here: Place) -> list[Part]:
    return [part for key in fields for part in _values(key, get(raw, key), (*here, key))]


def _values(key: str, value: Any, here: Place) -> Iterable[Part]:
    """What a field holds: text, content parts, or data, which counts as its JSON."""
    if value is None or value == "":
        return ()
    if isinstance(value, str) or key not in _CONTENT:
        return (Part(TEXT, _json(value)),)
    if is_list(value) and any(map(kind_of, value)):
        return [part_of(kind_of(item), item, (*here, number)) for number, item in enumerate(value)]
    return (part_of(kind_of(value), value, here),)


def part_of(kind: str, item: Any, here: Place) -> Part:
    if kind in TEXTS:
        return Part(TEXT, string(get(item, TEXTS[kind]), here, TEXTS[kind]))
    return Part(MEDIA, media=(media(_MEDIA[kind], item),)) if kind in _MEDIA else opaque(item)


def _json(value: Any) -> str:
    try:
        return json_text(_sent(value))
    except RecursionError:  # In a circle, or too deep.
        return ""


def _sent(value: Any) -> Any:
    """Plain data without what is null, which the package's objects hold and do not send."""
    if isinstance(value, MAPPINGS):
        return {key: _sent(item) for key, item in value.items() if item is not None}
    if is_list(value):
        return [_sent(item) for item in value]
    return {key: _sent(item) for key, item in value if item is not None} if hasattr(value, "model_dump") else value
