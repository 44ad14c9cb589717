"""Arguments of old calls without their bulk: they still parse, as an object with the same keys."""

from __future__ import annotations

import json
from typing import Any

from .._index import MessageIndex

CLEARED = "[removed]"
SHORT = 32
"""Values of so many tokens stay: a path or a query says what was called."""


def parsed(arguments: str) -> Any:
    """What the arguments hold; as they are where they are no JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def without_bulk(index: MessageIndex, arguments: str) -> str | None:
    """The arguments with long values taken out; None where that is nothing, or where they are no object."""
    values = parsed(arguments)
    if not isinstance(values, dict) or not values:
        return None
    try:
        texts = [value if isinstance(value, str) else _json(value) for value in values.values()]
        sizes = index.count_texts(texts)
        long = [key for key, size in zip(values, sizes, strict=True) if size > SHORT]
        return _json({**values, **dict.fromkeys(long, CLEARED)}) if long else None
    except RecursionError:
        return None


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which no provider takes but as an escape.
        return json.dumps(value, separators=(",", ":"))
    return text
