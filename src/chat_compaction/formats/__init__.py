"""Formats: how to read one kind of message, by name or detected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._errors import FormatError
from .._loading import LazyMapping, lazy
from .._messages import Media, Message, Part, PartKind, Role
from . import rules
from ._base import Format

if TYPE_CHECKING:
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

# What only few messages can be comes first: the order in which detection asks.
_CLASSES = {
    "langchain": "LangChainFormat",
    "pi_session": "PiSessionFormat",
    "gemini_cli": "GeminiCLIFormat",
    "sharegpt": "ShareGPTFormat",
    "mistral": "MistralFormat",
    "openai_chat": "OpenAIChatFormat",
    "openai_responses": "OpenAIResponsesFormat",
    "anthropic": "AnthropicFormat",
    "gemini": "GeminiFormat",
    "bedrock_converse": "BedrockConverseFormat",
}

if not TYPE_CHECKING:
    __getattr__ = lazy(
        __name__, {"_sessions": ("Session", "read_session"), **{name: (kind,) for name, kind in _CLASSES.items()}}
    )

    def __dir__():
        return sorted({*globals(), *__all__})


def _made(name: str) -> Format:
    made: Format = getattr(import_module(f"{__name__}.{name}"), _CLASSES[name])()
    return made


FORMATS: Mapping[str, Format] = LazyMapping(_CLASSES, _made)
"""The formats by name, in the order in which detection asks them: what only few messages can be comes first."""


def detect(messages: Iterable[Any]) -> Format | None:
    """The format of the first message that only one format can have; else of the first that is likely of one.

    Plain text with ``role`` and ``content`` alone does not tell: then None. Never raises.
    """
    return detected(messages)[0]


def detected(messages: Iterable[Any]) -> tuple[Format | None, bool]:
    """:func:`detect`, and whether it is sure."""
    likely = None
    candidates = tuple(FORMATS.values())
    for message in messages:
        if _tells_nothing(message):
            continue
        for candidate in candidates:
            if _says(candidate.claims, message):
                return candidate, True
        likely = likely or next((one for one in candidates if _says(one.hints, message)), None)
    return likely, False


def _tells_nothing(message: Any) -> bool:
    """Words and who speaks them: nearly all of a chat, and all formats alike."""
    if type(message) is not dict or len(message) != 2 or type(message.get("content")) is not str:
        return False
    return message.get("role") in ("user", "assistant", "system")


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
