"""What images cost by their pixels: the arithmetic of each provider, and which model goes by which numbers.

The numbers and the rounding are those of the providers' own pages; ``counters._media`` names them.
"""

from __future__ import annotations

import re
from math import ceil, floor, sqrt

import attrs

from .._messages import Media


def sides(media: Media) -> tuple[int, int] | None:
    """The longer and the shorter side of an image, None where they are not known."""
    width, height = media.width or 0, media.height or 0
    return (max(width, height), min(width, height)) if min(width, height) > 0 else None


def _cover(long: int, short: int, patch: int) -> int:
    """The squares that it takes to cover a rectangle."""
    return -(-long // patch) * -(-short // patch)


# -- OpenAI --------------------------------------------------------------------------------------


@attrs.frozen
class Tiles:
    """A base and so much for each square of 512 pixels, once the image fits 2048 x 2048, its short side 768."""

    base: int
    tile: int

    def tokens(self, media: Media) -> int:
        """Of an image whose size is not known: the most that one can cost."""
        if media.detail == "low":
            return self.base
        long, short = sides(media) or (2048, 768)
        if long > 2048:
            long, short = 2048, max(1, round(short * 2048 / long))
        if short > 768:
            long, short = long * 768 // short, 768
        return self.base + self.tile * _cover(long, short, 512)


Limits = tuple[int, int]
"""The longest side in pixels, and the most patches."""


@attrs.frozen
class Patches:
    """So much for each square of 32 pixels, once the image is within the limits of its detail."""

    multiplier: float
    low: Limits
    high: Limits
    original: Limits
    auto: Limits

    def tokens(self, media: Media) -> int:
        """Of an image whose size is not known: the most that one can cost."""
        limits = {"low": self.low, "high": self.high, "original": self.original}.get(media.detail, self.auto)
        known = sides(media)
        count = self._patches(*known, *limits) if known else limits[1]
        return ceil(round(count * self.multiplier, 6))

    @staticmethod
    def _patches(long: int, short: int, edge: int, most: int) -> int:
        if long > edge:
            long, short = edge, max(1, round(short * edge / long))
        if _cover(long, short, 32) > most:
            scale = sqrt(32 * 32 * most / (long * short))
            across, down = long * scale / 32, short * scale / 32
            scale *= min(floor(across) / across, floor(down) / down)
            long, short = max(1, floor(long * scale)), max(1, floor(short * scale))
        return min(_cover(long, short, 32), most)


_LOW: Limits = (512, 256)
_NARROW: Limits = (2048, 2_500)
_WIDE: Limits = (6000, 10_000)
_FULL: Limits = (65_535, 30_000)
_EARLY: Limits = (2048, 6_144)


def _early(multiplier: float) -> Patches:
    return Patches(multiplier, low=_EARLY, high=_EARLY, original=_EARLY, auto=_EARLY)


_OPENAI: dict[str, Tiles | Patches] = {
    "gpt-6": Patches(1.2, low=_LOW, high=(65_535, 2_500), original=_FULL, auto=_FULL),
    "gpt-5.6": Patches(1.2, low=_LOW, high=_NARROW, original=_FULL, auto=_FULL),
    "gpt-5.5": Patches(1.2, low=_LOW, high=_NARROW, original=_WIDE, auto=_WIDE),
    "gpt-5.4": Patches(1.2, low=_EARLY, high=_NARROW, original=_WIDE, auto=_NARROW),
    "gpt-5.3": _early(1.2),
    "gpt-5.2": _early(1.2),
    "gpt-5.1-codex-mini": _early(1.2),
    "gpt-5-codex-mini": _early(1.2),
    "gpt-5-mini": _early(1.2),
    "gpt-5-nano": _early(1.5),
    "gpt-4.1-mini": _early(1.62),
    "gpt-4.1-nano": _early(2.46),
    "o4-mini": _early(1.72),
    "gpt-5.1": Tiles(70, 140),
    "gpt-5": Tiles(70, 140),
    "gpt-4.5": Tiles(85, 170),
    "gpt-4.1": Tiles(85, 170),
    "gpt-4o": Tiles(85, 170),
    "chatgpt-4o": Tiles(85, 170),
    "gpt-4": Tiles(85, 170),
    "gpt-4o-mini": Tiles(2833, 5667),
    "o1": Tiles(75, 150),
    "o3": Tiles(75, 150),
    "computer-use-preview": Tiles(65, 129),
}
_ANY_OPENAI = (_OPENAI["gpt-6"], _OPENAI["gpt-4o"])


def openai_tokens(media: Media, model: str) -> int:
    """By the model, its longest name first; by the dearer of the newest and the most used where it is not listed."""
    name = model.rpartition("/")[2].removeprefix("ft:")
    listed = [known for known in _OPENAI if re.match(rf"{re.escape(known)}(?![\w.])", name)]
    rules = (_OPENAI[max(listed, key=len)],) if listed else _ANY_OPENAI
    return max(rule.tokens(media) for rule in rules)


# -- Anthropic -----------------------------------------------------------------------------------


def anthropic_tokens(media: Media, model: str) -> int:
    """One for each square of 28 pixels of the largest image of the same shape that is within the model's limits."""
    version = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?", model)
    early = version is not None and (int(version[1]), int(version[2] or 0)) < (4, 7)
    edge, most = (1568, 1568) if early else (2576, 4784)
    known = sides(media)
    return _largest(*known, edge, most) if known else most


def _largest(long: int, short: int, edge: int, most: int) -> int:
    """The patches of an image scaled down, never up, until both limits hold."""

    def patches(side: int) -> int:
        return _cover(side, max(1, round(short * side / long)), 28)

    # The edge is a multiple of the patch, so the padded image is within it where the image is.
    low, high = 1, min(long, edge)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if patches(middle) <= most else (low, middle - 1)
    return patches(low)


# -- Gemini --------------------------------------------------------------------------------------


def gemini_tiles(long: int, short: int) -> int:
    """The tiles of an image before Gemini 3: one where it is small; else as wide as two thirds of the short side."""
    if long <= 384:
        return 1
    return _cover(long, short, min(768, max(256, short * 2 // 3)))
