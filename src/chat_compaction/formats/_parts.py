"""Parts made of other parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._messages import COMPACTION, OPAQUE, TEXT, Part, PartKind
from ._base import get
from ._opaque import opaque

_HELD = ("encrypted_content", "tool_changes")


def merged(kind: PartKind, parts: Sequence[Part], *, name: str = "", call_id: str | None = None) -> Part:
    """One part that counts as these together."""
    if len(parts) == 1:
        return Part(kind, parts[0].text, name, call_id, parts[0].media)
    text = "\n".join([part.text for part in parts if part.text])
    return Part(kind, text, name, call_id, tuple([media for part in parts for media in part.media]))


def compaction(block: Any) -> Part:
    """What a provider made of all that stands ahead: a summary, or something encrypted.

    One that holds neither failed, and stands for nothing (``BetaCompactionBlock`` of the ``anthropic`` package).
    """
    said = get(block, "content")
    beside = opaque({key: value for key in _HELD if (value := get(block, key))})
    if not isinstance(said, str) or not said:
        return merged(COMPACTION if beside.media else OPAQUE, [beside])
    return merged(COMPACTION, [Part(TEXT, said), beside])
