"""Parts made of other parts."""

from __future__ import annotations

from collections.abc import Sequence

from .._messages import Part, PartKind


def merged(kind: PartKind, parts: Sequence[Part], *, name: str = "", call_id: str | None = None) -> Part:
    """One part that counts as these together."""
    if len(parts) == 1:
        return Part(kind, parts[0].text, name, call_id, parts[0].media)
    text = "\n".join([part.text for part in parts if part.text])
    return Part(kind, text, name, call_id, tuple([media for part in parts for media in part.media]))
