"""What OpenAI's chat format writes: fields of a message with something else in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ._base import MAPPINGS, changed, get, kind_of
from ._writing import arguments_like, content_like

THOUGHT_LISTS = ("reasoning_details", "thinking_blocks")
THOUGHT_TEXTS = ("reasoning_content", "reasoning", "thinking")


def given(raw: Any, key: str) -> Any:
    """A field; one that is empty, or that the ``mistralai`` package marks as unset, is as absent."""
    return get(raw, key) or None


def kept(value: Any, gone: Collection[int | None]) -> list[Any] | None:
    """What stays of a field; None for nothing."""
    if None in gone:
        return None
    return [item for number, item in enumerate(value) if number not in gone] or None


def rewritten(raw: Any, fields: dict[str, Any]) -> Any:
    """A copy with other fields: None takes a field out, since servers refuse null there; content becomes null."""
    absent = {key for key, value in fields.items() if value is None and key != "content"}
    if isinstance(raw, MAPPINGS):
        return {key: value for key, value in {**raw, **fields}.items() if key not in absent}
    twin = changed(raw, **{key: value for key, value in fields.items() if key not in absent or hasattr(raw, key)})
    for key in absent:  # What is not set in a model is not sent.
        getattr(twin, "model_fields_set", set()).discard(key)
        (getattr(twin, "model_extra", None) or {}).pop(key, None)
    return twin


def answering(raw: Any, text: str) -> Any:
    """A copy of a result that is just this text."""
    beside = {key: None for key in ("images", "refusal", "audio") if given(raw, key) is not None}
    return rewritten(raw, {"content": content_like(get(raw, "content"), text), **beside})


def saying_instead(key: str, value: Any, text: str) -> Any | None:
    """What stands in a field, or in one place of it, with another text."""
    if isinstance(value, str):
        return text
    if key == "content":
        return changed(value, **{kind_of(value): text})
    if key == "tool_calls" and get(value, "custom") is not None:
        return changed(value, custom=changed(get(value, "custom"), input=text))
    body = value if key == "function_call" else get(value, "function")
    arguments = arguments_like(get(body, "arguments"), text)
    if arguments is None:
        return None
    written = changed(body, arguments=arguments)
    return written if key == "function_call" else changed(value, function=written)


def joined_content(first: Any, second: Any) -> Any:
    """The content of two messages as that of one."""
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [
        part
        for content in (first, second)
        for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]
