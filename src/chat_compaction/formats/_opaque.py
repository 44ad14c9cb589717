"""What counts of data whose meaning a format does not know (rule C1).

Arguments, and parts of an unknown type, are counted by their compact JSON. Media and what is encrypted
in there are counted by rules of their own, never by their length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .._messages import Media, Part, PartKind
from ._base import MAPPINGS
from ._media import media

# Fields that are no text for the model: ids, framing, caching, citations (never billed), signatures.
_UNSENT = frozenset(
    {"type", "id", "tool_use_id", "file_id", "cache_control", "caller", "citations", "signature", "encrypted_index"}
)

# What the model reads, and we cannot: the text of a search result, the output of a program. In a recorded session a
# search result comes to about 650 tokens, as encrypted reasoning does, so one figure serves both.
_ENCRYPTED = frozenset({"encrypted_content", "encrypted_stdout"})

# What a program printed is text to the model, even where it is base64.
_TEXT = frozenset({"text", "stdout", "stderr"})

_DATA_URL = re.compile(r"data:(\w*)[^,]{0,100};base64,")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{76}\r?\n)*[A-Za-z0-9+/_-]+=*\s*")  # In one line, or in lines of 76.


def opaque(raw: Any) -> Part:
    """A part of unknown type; what nests deeper than the interpreter goes, or in a circle, counts nothing."""
    found: list[Media] = []
    try:
        kept = _legible(raw, found)
    except RecursionError:
        return Part(PartKind.OPAQUE)
    return Part(PartKind.OPAQUE, json_text(kept or None), media=tuple(found))


def json_text(value: Any) -> str:
    """Compact JSON; a string as it is, null as nothing, and nothing for what no provider would take."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return _encode(value)
    except Exception:  # Circular, too deep, a key that is no string, an object that fails: reading never does.
        return ""


def _plain(value: Any) -> Any:
    """An object as plain data, for counting only."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump"):  # Pydantic's. The dump itself may warn, and quote what the model holds.
        return {key: item for key, item in value if item is not None}
    return str(value)


# What goes in a circle goes too deep, which costs no check of every value.
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), default=_plain).encode


def _legible(value: Any, found: list[Media]) -> Any:
    """The value with what is text in it, or None; media are appended to ``found``."""
    if isinstance(value, str | bytes):
        kind = _media_kind(value)
        if kind is None:
            return value
        found.append(media(kind, value))
        return None
    if isinstance(value, MAPPINGS):
        found.extend(Media("encrypted_reasoning") for key in value if key in _ENCRYPTED and value[key])
        sent = {k: v for k, v in value.items() if k not in _UNSENT and k not in _ENCRYPTED}
        kept = {k: v if k in _TEXT and isinstance(v, str) else _legible(v, found) for k, v in sent.items()}
        return {k: v for k, v in kept.items() if v is not None}
    if isinstance(value, list | tuple):
        return [kept for item in value if (kept := _legible(item, found)) is not None]
    return _legible(_plain(value), found) if hasattr(value, "model_dump") else value


def _media_kind(value: str | bytes) -> str | None:
    """The kind of media that a value is; None for text."""
    if isinstance(value, bytes):
        return "other"
    url = _DATA_URL.match(value)
    if url:
        return url[1] if url[1] in ("image", "audio", "video") else "document"
    return "other" if len(value) > 256 and _BASE64.fullmatch(value) else None
