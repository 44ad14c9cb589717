"""Formats: how to read one kind of message, by name or detected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._errors import FormatError
from .._messages import Message, Part, PartKind, Role
from ._base import Format
from .anthropic import AnthropicFormat
from .openai_chat import OpenAIChatFormat

__all__ = [
    "FORMATS",
    "AnthropicFormat",
    "Format",
    "Message",
    "OpenAIChatFormat",
    "Part",
    "PartKind",
    "Role",
    "detect",
    "resolve_format",
]

_ALL: tuple[Format, ...] = (OpenAIChatFormat(), AnthropicFormat())
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""The formats by name, in the order in which detection asks them."""


def detect(messages: Iterable[Any]) -> Format | None:
    """The format of the first message that only one format can have; None where none tells.

    Plain text with ``role`` and ``content`` alone does not tell. Never raises.
    """
    for message in messages:
        for candidate in FORMATS.values():
            if _claims(candidate, message):
                return candidate
    return None


def _claims(candidate: Format, message: Any) -> bool:
    try:
        return candidate.claims(message)
    except Exception:  # An object that fails when it is looked at: reading it says what is wrong.
        return False


def resolve_format(format: str | Format) -> Format | None:
    """The format for a ``format=`` argument: a name, a format of your own, or None for ``"auto"``."""
    if not isinstance(format, str):
        fields = ("name", "overhead", "first_user", "read", "claims")
        if not isinstance(format, type) and all(hasattr(format, field) for field in fields):
            return format
        raise TypeError(f"format must be 'auto', a name or a Format, got {format!r}")
    if format == "auto":
        return None
    if format not in FORMATS:
        raise FormatError(f"format must be one of 'auto', {', '.join(map(repr, FORMATS))}, got {format!r}")
    return FORMATS[format]
