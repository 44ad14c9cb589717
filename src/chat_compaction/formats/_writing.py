"""Writing a message that says something else: what the formats share for it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .._messages import TEXT, TOOL_CALL, TOOL_RESULT, Message, Part
from ._base import MAPPINGS, Format, changed, get, is_list

F = TypeVar("F", bound=Format)
Texts = Mapping[int, str]

_WRITABLE = TEXT.bit | TOOL_CALL.bit | TOOL_RESULT.bit


def read_back(write: Callable[[F, Any, Texts], Any | None]) -> Callable[[F, Any, Texts], Any | None]:
    """A ``with_texts`` whose copies are read again: what they do not say as it was given is not written.

    So no text turns into something else, as one that a format would take for a call or a command does.
    """

    @functools.wraps(write)
    def with_texts(self: F, raw: Any, texts: Texts) -> Any | None:
        if not texts:
            return changed(raw)
        before = self.read(raw, 0)
        if not all(_is_writable(before.parts[number], text) for number, text in texts.items()):
            return None
        copy = write(self, raw, texts)
        return copy if copy is not None and _says(self.read(copy, 0), before, texts) else None

    return with_texts


def _is_writable(part: Part, text: str) -> bool:
    """An empty text is none: for that there is ``without``."""
    return part.kind.bit & _WRITABLE != 0 and (bool(text) or part.kind is TOOL_RESULT)


def _says(after: Message, before: Message, texts: Texts) -> bool:
    if (after.role, after.name, len(after.parts)) != (before.role, before.name, len(before.parts)):
        return False
    pairs = enumerate(zip(after.parts, before.parts, strict=True))
    return all(_is(now, was, texts[n]) if n in texts else now == was for n, (now, was) in pairs)


def _is(now: Part, was: Part, text: str) -> bool:
    same = (now.kind, now.name, now.call_id, now.media) == (was.kind, was.name, was.call_id, ())
    return same and (now.text == text or (now.kind is TOOL_CALL and json_object(now.text) == json_object(text)))


def json_object(text: str) -> dict[str, Any] | None:
    """What a text of JSON holds, if that is an object which can be written again."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def arguments_like(given: Any, text: str) -> Any | None:
    """Arguments as a message has them, as a text or an object; None where they are no object."""
    value = json_object(text)
    return value if isinstance(given, MAPPINGS) or value is None else text


def content_like(given: Any, text: str) -> Any:
    """The content that is just this text: a string, or a block where one of the given ones is marked to be cached."""
    marks = [mark for block in given if (mark := get(block, "cache_control"))] if is_list(given) else []
    return [{"type": "text", "text": text, "cache_control": marks[-1]}] if marks else text


def own_list(fields: dict[str, Any], raw: Any, key: str) -> list[Any]:
    """A list of the message's as one that may be changed, among the fields of its copy."""
    if key not in fields:
        fields[key] = list(get(raw, key))
    found: list[Any] = fields[key]
    return found


def replaced(items: Sequence[Any], others: Mapping[int, Any]) -> list[Any]:
    """A list with other items at these places."""
    return [others.get(number, item) for number, item in enumerate(items)]
