"""What a format is, and the few helpers that readers share.

A format is one module with one class: it reads a message of the caller's (a dict as sent over the
wire, or an SDK's own object, or a mixture) into our :class:`~chat_compaction.formats.Message`, and
says which rules the provider holds a list to. It never changes what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from .._errors import MessageError
from .._messages import Message


class Format(Protocol):
    """How to read one kind of message, and what its provider asks of a list.

    ``name`` is the same in code, on the command line and in the docs. ``overhead`` is the tokens a
    message costs beyond its text (rule C1). ``first_user`` says that the first message that is
    not a system message must be a user's (rule K7).
    """

    @property
    def name(self) -> str: ...

    @property
    def overhead(self) -> int: ...

    @property
    def first_user(self) -> bool: ...

    def read(self, raw: Any, position: int) -> Message:
        """Our view of one message; raises :class:`~chat_compaction.MessageError` at ``position``."""

    def claims(self, raw: Any) -> bool:
        """Whether the message can only be of this format; never raises."""


def get(raw: Any, key: str) -> Any:
    """A field of a dict or of an SDK's object; None where there is none."""
    if isinstance(raw, Mapping):
        return raw.get(key)
    return getattr(raw, key, None)


def is_object(raw: Any) -> bool:
    """A dict, or an object with fields: not a scalar, a list or None."""
    return isinstance(raw, Mapping) or (hasattr(raw, "__dict__") and not isinstance(raw, type | str | bytes | Sequence))


def kind_of(part: Any) -> str:
    """The ``type`` of a part; empty where there is none or it is no string."""
    kind = get(part, "type")
    return kind if isinstance(kind, str) else ""


def module_of(raw: Any) -> str:
    """The top-level package that defines an object's type (``openai``, ``anthropic``, ``builtins``)."""
    return type(raw).__module__.partition(".")[0]


class Cursor:
    """Where we read: it turns "what is wrong" into an error that names the position and the path."""

    __slots__ = ("path", "position")

    def __init__(self, position: int, path: str = "") -> None:
        self.position = position
        self.path = path

    def at(self, path: str) -> Cursor:
        """The same message, one step further in."""
        return Cursor(self.position, self.path + path)

    def error(self, message: str) -> MessageError:
        """The error to raise here."""
        return MessageError(self.position, f"{self.path} {message}")

    def text(self, value: Any, key: str) -> str:
        """A field that must be a string; null and absent are empty."""
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.at(f".{key}").error(f"must be a string, got {shown(value)}")
        return value

    def identity(self, value: Any, key: str) -> str:
        """A field that must be a string and be there."""
        if not isinstance(value, str):
            raise self.at(f".{key}").error(f"must be a string, got {shown(value)}")
        return value

    def items(self, value: Any, key: str) -> Iterator[tuple[Any, Cursor]]:
        """The elements of a field that must be a list of objects; null and absent are empty."""
        if value is None:
            return
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
            raise self.at(f".{key}").error(f"must be a list, got {shown(value)}")
        for number, item in enumerate(value):
            inner = self.at(f".{key}[{number}]")
            if not is_object(item):
                raise inner.error(f"must be an object, got {shown(item)}")
            yield item, inner


def shown(value: Any) -> str:
    """A value in an error: short, and never the text of a conversation."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


# Fields that carry no text for the model: ids, framing, caching, and what is encoded or encrypted.
_UNSENT = frozenset(
    {"type", "id", "tool_use_id", "cache_control", "citations", "caller", "data", "signature"}
    | {"encrypted_content", "encrypted_index", "encrypted_stdout", "file_data", "file_id", "index"}
)


def json_text(value: Any) -> str:
    """Compact JSON of arguments or of a part we do not know; what is no JSON counts as its ``str``."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (ValueError, RecursionError):
        # Circular, or deeper than the interpreter goes: no provider takes it, but reading never fails on it.
        return ""


def _plain(value: Any) -> Any:
    """An SDK's nested object as plain data, for counting only."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else str(value)


def opaque_text(raw: Any) -> str:
    """The countable text of a part of unknown type: its JSON without encoded or encrypted fields (rule C1)."""
    return json_text(_without_unsent(raw if isinstance(raw, Mapping) else _plain(raw), 0))


def _without_unsent(value: Any, depth: int) -> Any:
    if depth > 50:
        return None
    if isinstance(value, Mapping):
        return {k: _without_unsent(v, depth + 1) for k, v in value.items() if k not in _UNSENT and v is not None}
    if isinstance(value, list | tuple):
        return [_without_unsent(item, depth + 1) for item in value]
    return value
