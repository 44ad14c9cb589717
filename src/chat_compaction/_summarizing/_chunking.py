"""What is too long for one request: divided into chunks that fit, few enough for the calls that are allowed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import attrs

from .._clipping import water_level
from ._cutting import Count, shorten, split
from ._fencing import header
from ._rendering import SUMMARY
from ._request import SummaryEntry

_NONCE = "0" * 8


def sizes_of(entries: Sequence[SummaryEntry], count: Count) -> list[int]:
    """The tokens of entries in a request, each with the line above it."""
    return count([f"{header(entry, _NONCE)}\n{entry.text}\n" for entry in entries])


def chunks_of(entries: Sequence[SummaryEntry], room: int, count: Count) -> list[list[SummaryEntry]]:
    """Consecutive entries in chunks of at most ``room`` tokens, each but the last at least three quarters full."""
    pieces = [(place, piece) for place, entry in enumerate(entries) for piece in _pieces(entry, room // 4, count)]
    chunks: list[list[SummaryEntry]] = []
    left = last = -1
    for (place, piece), size in zip(pieces, sizes_of([piece for _, piece in pieces], count), strict=True):
        if size > left:
            chunks.append([])
            left, last = room, -1
        if place == last:
            chunks[-1][-1] = attrs.evolve(piece, text=chunks[-1][-1].text + piece.text)
        else:
            chunks[-1].append(piece)
        left, last = left - size, place
    return chunks


def _pieces(entry: SummaryEntry, most: int, count: Count) -> list[SummaryEntry]:
    (size,) = sizes_of([entry], count)
    if size <= most:
        return [entry]
    limit = max(1, most - frame_of(entry, count) - 1)
    return [attrs.evolve(entry, text=text) for text in split(entry.text, limit, count)]


def shortened(entries: Sequence[SummaryEntry], limit: int, count: Count) -> list[SummaryEntry]:
    """Entries in about so many tokens: of the longest, the middle is left out. An earlier summary stays if it can."""
    sizes = sizes_of(entries, count)
    earlier = sum(size for entry, size in zip(entries, sizes, strict=True) if entry.speaker == SUMMARY)
    spared = SUMMARY if earlier * 2 <= limit else ""
    free = [size for entry, size in zip(entries, sizes, strict=True) if entry.speaker != spared]
    most = water_level(free, sum(sizes) - limit)
    return [
        entry if size <= most or entry.speaker == spared else _shorter(entry, most, count)
        for entry, size in zip(entries, sizes, strict=True)
    ]


def _shorter(entry: SummaryEntry, size: int, count: Count) -> SummaryEntry:
    return attrs.evolve(entry, text=shorten(entry.text, max(1, size - frame_of(entry, count)), count))


def frame_of(entry: SummaryEntry, count: Count) -> int:
    """The tokens of an entry beside its text."""
    return sizes_of([attrs.evolve(entry, text="")], count)[0]


def calls_for(chunks: int, merged_at_once: int) -> int:
    """How many requests a conversation of so many chunks takes at the most, merges included."""
    calls, left = chunks, chunks
    while left > 1:
        left = -(-left // merged_at_once)
        calls += left
    return calls


def most_chunks(max_calls: int, merged_at_once: int) -> int:
    """The largest number of chunks that so many calls are enough for; one at the least."""
    return 1 + bisect_right(range(2, max_calls + 1), max_calls, key=lambda chunks: calls_for(chunks, merged_at_once))
