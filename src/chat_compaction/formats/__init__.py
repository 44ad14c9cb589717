"""Formats: how to read one kind of message, by name or detected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._errors import FormatError
from .._messages import Media, Message, Part, PartKind, Role
from . import rules
from ._base import Format
from ._sessions import Session, read_session
from .anthropic import AnthropicFormat
from .bedrock_converse import BedrockConverseFormat
from .gemini import GeminiFormat
from .gemini_cli import GeminiCLIFormat
from .langchain import LangChainFormat
from .mistral import MistralFormat
from .openai_chat import OpenAIChatFormat
from .openai_responses import OpenAIResponsesFormat
from .pi_session import PiSessionFormat
from .sharegpt import ShareGPTFormat

__all__ = [
    "FORMATS",
    "AnthropicFormat",
    "BedrockConverseFormat",
    "Format",
    "GeminiCLIFormat",
    "GeminiFormat",
    "LangChainFormat",
    "Media",
    "Message",
    "MistralFormat",
    "OpenAIChatFormat",
    "OpenAIResponsesFormat",
    "Part",
    "PartKind",
    "PiSessionFormat",
    "Role",
    "Session",
    "ShareGPTFormat",
    "detect",
    "read_session",
    "resolve_format",
    "rules",
]

_ALL: tuple[Format, ...] = (
    LangChainFormat(),
    PiSessionFormat(),
    GeminiCLIFormat(),
    ShareGPTFormat(),
    MistralFormat(),
    OpenAIChatFormat(),
    OpenAIResponsesFormat(),
    AnthropicFormat(),
    GeminiFormat(),
    BedrockConverseFormat(),
)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""The formats by name, in the order in which detection asks them: what only few messages can be comes first."""


def detect(messages: Iterable[Any]) -> Format | None:
    """The format of the first message that only one format can have; else of the first that is likely of one.

    Plain text with ``role`` and ``content`` alone does not tell: then None. Never raises.
    """
    return detected(messages)[0]


def detected(messages: Iterable[Any]) -> tuple[Format | None, bool]:
    """:func:`detect`, and whether it is sure."""
    likely = None
    for message in messages:
        for candidate in FORMATS.values():
            if _says(candidate.claims, message):
                return candidate, True
        likely = likely or next((one for one in FORMATS.values() if _says(one.hints, message)), None)
    return likely, False


def _says(question: Callable[[Any], bool], message: Any) -> bool:
    try:
        return question(message)
    except Exception:  # An object that fails when it is looked at: reading it says what is wrong.
        return False


def resolve_format(format: str | Format) -> Format | None:
    """The format for a ``format=`` argument: a name, a format of your own, or None for ``"auto"``."""
    if not isinstance(format, str):
        if isinstance(format, Format):
            return format
        raise TypeError(f"format must be 'auto', a name or a Format, got {format!r}")
    if format == "auto":
        return None
    if format not in FORMATS:
        raise FormatError(f"format must be one of 'auto', {', '.join(map(repr, FORMATS))}, got {format!r}")
    return FORMATS[format]
