"""Cutting a text to head and tail around a marker, so that the whole has at most so many tokens.

Counts of an arbitrary counter don't add up: what is counted is always a whole result, marker included. Where to cut is
searched with few counts of texts that are about as long as the result; the long text itself is counted once.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import isqrt

import attrs

Count = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of texts, such as :meth:`MessageIndex.count_texts`."""

MARKER = "[... {tokens:,} tokens clipped ...]"
"""What stands in place of the middle; ``{tokens}`` is how many are gone."""

_DEAR = 8
"""A cut gives up at most this part of a side for the end of a line; dearer, it takes the end of a word."""
_WORD = 24
"""Characters that are given up for the end of a word."""
_COUNTS = 16
"""Counts of one search."""
_NEAR = 500
"""A result is near enough to the limit by this part of it."""
_ROUNDS = 6


@attrs.frozen
class Clipping:
    """How texts are clipped: by which counter, how much of what is kept is head, and around which marker."""

    count: Count
    head_share: float = 0.5
    marker: str = MARKER

    def text(self, text: str, limit: int) -> str | None:
        """Head and tail of the text in at most ``limit`` tokens; None where not even the marker fits.

        A text within the limit is given back as it is. What an earlier marker in the part that is cut away says is
        added to the number.
        """
        (total,) = self.count([text])
        return text if total <= limit else _Search(self, text, total, limit).result()

    def json(self, text: str, limit: int) -> str | None:
        """The JSON of an object in at most ``limit`` tokens, by clipping the longest strings in it.

        Keys, numbers, the order and the short values stay as they are written, at every level. None where the text is
        no JSON of an object, or where its strings can't give up enough.
        """
        (total,) = self.count([text])
        if total <= limit:
            return text
        if not is_object(text):
            return None
        places = [match.span() for match in _STRING.finditer(text) if match[1] is None]
        sizes = self.count([text[start + 1 : end - 1] for start, end in places])
        need = total - limit
        for _ in range(_ROUNDS):
            level = water_level(sizes, need)
            cut = {place: level for place, size in zip(places, sizes, strict=True) if size > level}
            written = self._with_strings(text, cut)
            if written is None:
                return None
            (size,) = self.count([written])
            if size <= limit:
                return written
            need += size - limit
        return None

    def shortest_json(self, text: str) -> str | None:
        """The JSON of an object with its strings as short as they can be written; None where none can be shorter."""
        places = [match.span() for match in _STRING.finditer(text) if match[1] is None] if is_object(text) else []
        sizes = self.count([text[start + 1 : end - 1] for start, end in places])
        shortest, level, most = None, 0, max(sizes, default=0)
        while level < most:
            middle = (level + most) // 2
            cut = {place: middle for place, size in zip(places, sizes, strict=True) if size > middle}
            written = self._with_strings(text, cut)
            if written is None:
                level = middle + 1
            else:
                shortest, most = written, middle
        return shortest

    def _with_strings(self, text: str, limits: dict[tuple[int, int], int]) -> str | None:
        """The JSON with these strings clipped; None where one can't be."""
        pieces, done = [], 0
        for (start, end), limit in limits.items():
            quoted = text[start:end]
            write = partial(_inner, ascii_only=quoted.isascii())
            how = attrs.evolve(self, count=partial(_count_written, self.count, write))
            clipped = how.text(json.loads(quoted), limit)
            if clipped is None:
                return None
            pieces += [text[done : start + 1], write(clipped)]
            done = end - 1
        return "".join([*pieces, text[done:]])


def check_marker(marker: object) -> None:
    """Refuse what is no template of a marker."""
    expected = "marker must be a text that may have the field {tokens}"
    if not isinstance(marker, str):
        raise TypeError(f"{expected}, got {marker!r}")
    try:
        written = marker.format(tokens=1_000)
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ValueError(f"{expected}, got {marker!r}") from None
    if not written.strip():
        raise ValueError(f"{expected} and says something, got {marker!r}")


def water_level(sizes: Sequence[int], need: int) -> int:
    """The greatest length to which all that is longer is cut, so that at least ``need`` is gone; 0 where none is."""
    ordered = [*sorted(sizes, reverse=True), 0]
    for number, (size, below) in enumerate(pairwise(ordered), 1):
        need -= number * (size - below)
        if need <= 0:
            return below + -need // number
    return 0


# -- searching for the cut -------------------------------------------------------------------------------


@attrs.define
class _Search:
    """The search for the longest head and tail that fit, in one text."""

    how: Clipping
    text: str
    total: int
    limit: int
    counted: dict[tuple[int, int], int] = attrs.field(init=False, factory=dict)
    guess: int = attrs.field(init=False)
    """What the marker says before it is known how much is gone: a number of as many digits."""

    @guess.default
    def _guess(self) -> int:
        return self.total - self.limit + sum(numbers_in(self.text, self.how.marker))

    def result(self) -> str | None:
        """What is left of the text."""
        nothing = self.cut(0)
        if self.size(nothing) > self.limit:
            return None
        cut = self.longest()
        # What is gone is now known; a number of more digits may be a token too many.
        gone = self.total - self.size(cut) + self.size(nothing) + self._gone_before(cut)
        written = self.written(cut, gone)
        (size,) = self.how.count([written])
        return written if size <= self.limit else self.written(cut, self.guess)

    def longest(self) -> tuple[int, int]:
        """The cut that keeps most: by the secant of the two nearest guesses, by halves where that gets nowhere."""
        kept, most = 0, len(self.text)
        below = self.size(self.cut(0))
        guesses = [(most, self.total), (kept, below)]
        slow = 0
        while most - kept > 1 and self.limit - below > self.limit // _NEAR and len(self.counted) < _COUNTS:
            width = most - kept
            guess = _halfway(kept, most) if slow > 1 else _secant(guesses, self.limit)
            middle = min(max(guess, kept + 1), most - 1)
            size = self.size(self.cut(middle))
            if size <= self.limit:
                kept, below = middle, size
            else:
                most = middle
            slow = 0 if most - kept <= width // 2 else slow + 1
            # The next secant goes through this guess and the nearest of those before.
            guesses = [min(guesses, key=lambda known: abs(known[1] - self.limit)), (middle, size)]
        return self.cut(kept)

    def cut(self, kept: int) -> tuple[int, int]:
        """Where the head ends and the tail starts if so many characters are kept at the most."""
        head = round(kept * self.how.head_share)
        return head_end(self.text, head), tail_start(self.text, len(self.text) - (kept - head))

    def size(self, cut: tuple[int, int]) -> int:
        """The tokens of what is left."""
        if cut not in self.counted:
            (self.counted[cut],) = self.how.count([self.written(cut, self.guess)])
        return self.counted[cut]

    def written(self, cut: tuple[int, int], gone: int) -> str:
        """Head, marker and tail; the marker has a line of its own in a text of lines."""
        head, tail = self.text[: cut[0]], self.text[cut[1] :]
        end = "\r\n" if "\r\n" in self.text else "\n" if "\n" in self.text else ""
        before = "" if not head or head.endswith("\n") else end
        after = "" if not tail or tail.startswith(("\n", "\r\n")) else end
        return f"{head}{before}{self.how.marker.format(tokens=gone)}{after}{tail}"

    def _gone_before(self, cut: tuple[int, int]) -> int:
        """What earlier markers in the part that is cut away say."""
        return sum(numbers_in(self.text[cut[0] : cut[1]], self.how.marker))


def numbers_in(text: str, marker: str) -> Iterator[int]:
    """What the markers in a text say: how many tokens are gone."""
    before, *after = _PROBED.split(marker.format(tokens=_PROBE), maxsplit=1)
    if after and (before or after[0]):
        number = re.compile(f"{re.escape(before)}([0-9](?:[0-9]|[,_](?=[0-9])){{0,24}}){re.escape(after[0])}")
        for found in number.finditer(text):
            yield int(re.sub("[,_]", "", found[1]))


_PROBE = 8_642_097_531
_PROBED = re.compile("8[,_]?642[,_]?097[,_]?531")
"""A number that occurs in no template, as the field writes it."""


def _secant(guesses: list[tuple[int, int]], limit: int) -> int:
    """Where the line through two guesses is at the limit."""
    (one, first), (other, second) = guesses
    return other + round((limit - second) * (other - one) / (second - first)) if first != second else other


def _halfway(kept: int, most: int) -> int:
    """Between the two by their difference, or by their ratio where they are far apart: a long guess costs much."""
    return isqrt(kept * most) if 0 < 4 * kept < most else (kept + most) // 2


# -- where one may cut -----------------------------------------------------------------------------------


def head_end(text: str, at: int) -> int:
    """The end of the longest head up to ``at`` that ends with a line, if that costs little, else with a word."""
    if at <= 0 or at >= len(text):
        return max(0, min(at, len(text)))
    least = at - at // _DEAR
    line = text.rfind("\n", max(0, least - 1), at) + 1
    if line:
        return line
    for place in range(at, max(least, at - _WORD, 1) - 1, -1):
        if _between_words(text, place):
            return place
    return next((place for place in range(at, 0, -1) if between_characters(text, place)), 0)


def tail_start(text: str, at: int) -> int:
    """The start of the longest tail from ``at`` on that starts with a line, if that costs little, else with a word."""
    size = len(text)
    if at <= 0 or at >= size:
        return max(0, min(at, size))
    most = at + (size - at) // _DEAR
    line = text.find("\n", at - 1, most) + 1
    if line:
        return line
    for place in range(at, min(most, at + _WORD, size - 1) + 1):
        if _between_words(text, place):
            return place
    return next((place for place in range(at, size) if between_characters(text, place)), size)


def _between_words(text: str, at: int) -> bool:
    return not (text[at - 1].isalnum() and text[at].isalnum()) and between_characters(text, at)


_JOINERS = "\u200c\u200d"
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def between_characters(text: str, at: int) -> bool:
    """Whether what a reader takes for one character stays whole: no CRLF, mark, surrogate pair or emoji is parted."""
    before, after = text[at - 1], text[at]
    if before in "\r\n" or (before < "\u0300" and after < "\u0300"):
        return not (before == "\r" and after == "\n")
    if unicodedata.category(after)[0] == "M" or after in _JOINERS or before == "\u200d":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":  # Skin tones, and tags of flags.
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if after in _FLAGS:  # Two letters are one flag.
        return (at - len(text[:at].rstrip(_FLAGS))) % 2 == 0
    return not (_is_hangul(before) and ("\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb"))


def _is_hangul(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97c" or "\uac00" <= character <= "\ud7fb"


# -- JSON ------------------------------------------------------------------------------------------------

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?', re.DOTALL)
"""A string in valid JSON; one with a colon behind it is a key. Other than in strings there is no quote."""


def is_object(text: str) -> bool:
    """Whether a text is the JSON of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _inner(text: str, *, ascii_only: bool) -> str:
    """What stands between the quotes."""
    # A lone surrogate can be sent as an escape alone.
    plain = not ascii_only and not _SURROGATE.search(text)
    return json.dumps(text, ensure_ascii=not plain)[1:-1]


_SURROGATE = re.compile("[\ud800-\udfff]")


def _count_written(count: Count, write: Callable[[str], str], texts: Sequence[str]) -> Sequence[int]:
    return count(list(map(write, texts)))
