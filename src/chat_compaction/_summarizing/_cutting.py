"""Texts that are too long: cut to a number of tokens, or split into pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._clipping import Clipping, head_end

Count = Callable[[Sequence[str]], list[int]]
"""Texts to their tokens."""

CUT = "(cut)"
"""What stands behind a text that was cut."""
_LEFT_OUT = "({tokens:,} tokens left out)"
_HEAD_SHARE = 0.7


def cut_to(text: str, limit: int, count: Count) -> str:
    """The beginning of a text in at most so many tokens, with a note that it was cut; empty if nothing fits."""
    cut = Clipping(count, head_share=1.0, marker=CUT).text(text, limit)
    return "" if cut is None or cut.strip() == CUT else cut


def shorten(text: str, limit: int, count: Count) -> str:
    """The head and the tail of a text in about so many tokens, around a note of how much is left out."""
    return Clipping(count, head_share=_HEAD_SHARE, marker=_LEFT_OUT).text(text, limit) or CUT


def split(text: str, limit: int, count: Count) -> list[str]:
    """A text in pieces of at most so many tokens each, at the ends of lines or words where they are near.

    The pieces are the whole text. Only a single character is never split, whatever it counts.
    """
    pieces, split_some = [text], True
    while split_some:
        split_some, found = False, list[str]()
        for piece, tokens in zip(pieces, count(pieces), strict=True):
            if tokens <= limit or len(piece) < 2:
                found.append(piece)
            else:
                # By what a token takes here, and a tenth less, so that few are split again.
                found.extend(_parts(piece, max(2, -(-tokens * 10 // (max(1, limit) * 9)))))
                split_some = True
        pieces = found
    return pieces


def _parts(text: str, pieces: int) -> list[str]:
    """A text in about so many pieces, two at the least and none empty."""
    size = max(1, len(text) // pieces)
    found, start = [], 0
    while len(text) - start > size:
        # A piece with something behind it shows where its last line or word ends.
        end = start + max(1, head_end(text[start : start + size + 1], size))
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]
