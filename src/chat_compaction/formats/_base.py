"""What a format is, and the few helpers that readers share.

A format is one module with one class: it reads a message of the caller's (a dict as sent over the
wire, or an SDK's own object, or a mixture) into our :class:`~chat_compaction.formats.Message`, and
says which rules the provider holds a list to. It never changes what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from .._errors import MessageError
from .._messages import Message, Role
from .._text import shown

Place = tuple[Any, ...]
"""Where a value stands: the position of its message, then keys and numbers, the outermost first."""


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
        """Whether the message can only be of this format; an exception counts as no."""


# -- looking at what the caller gave -------------------------------------------------------------

# The concrete type stands first: it is nearly always the one, and an ABC takes eight times as long to ask.
MAPPINGS = (dict, Mapping)
_TEXTS = (str, bytes, bytearray, memoryview)
_NO_OBJECTS = (*_TEXTS, int, float, complex, Sequence, Set, type(None))


def get(raw: Any, key: str) -> Any:
    """A field of a dict or of an SDK's object; None where there is none."""
    return raw.get(key) if isinstance(raw, MAPPINGS) else getattr(raw, key, None)


def is_object(raw: Any) -> bool:
    """A dict, or an object with fields: not a scalar, a list, a class, a function or None."""
    return isinstance(raw, MAPPINGS) or not (isinstance(raw, _NO_OBJECTS) or callable(raw))


def is_list(raw: Any) -> bool:
    """A list, a tuple or another sequence that is no text."""
    return isinstance(raw, list) or (isinstance(raw, Sequence) and not isinstance(raw, _TEXTS))


def kind_of(part: Any) -> str:
    """The ``type`` of a part; empty where there is none or it is no string."""
    kind = get(part, "type")
    return kind if isinstance(kind, str) else ""


def module_of(raw: Any) -> str:
    """The top-level package that defines an object's type (``openai``, ``anthropic``, ``builtins``)."""
    return type(raw).__module__.partition(".")[0]


# -- reading it, with an error that names the place ----------------------------------------------


def wrong(here: Place, message: str) -> MessageError:
    """The error to raise for what stands here."""
    position, *steps = here
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return MessageError(position, f"{path} {message}")


def role_of(raw: Any, roles: Mapping[str, Role], here: Place, format: str) -> str:
    """The role of a message: one of those that the format has."""
    role = get(raw, "role")
    if isinstance(role, str) and role in roles:
        return role
    # The role names the format that was meant ("model"); a longer text is none, and may be private.
    got = repr(role) if isinstance(role, str) and role.isidentifier() and len(role) <= 20 else shown(role)
    what = f"must be one of {', '.join(roles)}, got {got}" if role else "is missing"
    raise wrong((*here, "role"), f"{what} {_read_as(format)}")


def part_kind(part: Any, here: Place, format: str) -> str:
    """The ``type`` of a content part, which every part has; what type it is does not matter."""
    kind = get(part, "type")
    if isinstance(kind, str) and kind:
        return kind
    what = f"must be a string, got {shown(kind)}" if kind else "is missing"
    raise wrong((*here, "type"), f"{what} {_read_as(format)}")


def _read_as(format: str) -> str:
    return f"(read as {format!r}; format= names another)"


def string(value: Any, here: Place, key: str) -> str:
    """A field that must be a string; null and absent are empty."""
    return "" if value is None else identity(value, here, key)


def identity(value: Any, here: Place, key: str) -> str:
    """A field that must be a string and be there."""
    if not isinstance(value, str):
        raise wrong((*here, key), f"must be a string, got {shown(value)}")
    return value


def items(value: Any, here: Place, key: str, expected: str = "a list") -> Iterator[tuple[Any, Place]]:
    """The elements of a field that must be a list of objects; null and absent are empty."""
    if value is None:
        return
    if not is_list(value):
        raise wrong((*here, key), f"must be {expected}, got {shown(value)}")
    for number, item in enumerate(value):
        place = (*here, key, number)
        if not is_object(item):
            raise wrong(place, f"must be an object, got {shown(item)}")
        yield item, place
