"""A conversation as sentences, each with its words: what an extractive summary is chosen from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from .._summarizing import SummaryEntry
from ..counters._adapters import encodable
from ._values import needed

SUMMARY = "summary"
# How much a sentence of a speaker weighs, and how many characters of one entry are looked at, at either end: what the
# user said is what the rest is for, and of a long result the middle is the least.
_SPEAKERS: dict[str, tuple[float, int]] = {
    "user": (2.0, 20_000),
    "assistant": (1.0, 20_000),
    "system": (1.0, 20_000),
    "tool": (0.3, 2_000),
}
_OTHERS = _SPEAKERS["assistant"]
# Unpaired quotation marks cost the segmenter the square of the text that it is given at once.
_PIECE = 2_000
_LETTERS = re.compile(r"[^\W_]+")
# Scripts without spaces between words: Chinese and Japanese, Thai, Lao, Burmese, Khmer.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]+")


@attrs.frozen(repr=False)
class Sentence:
    """One line of a summary: how it would be written, what it speaks of, how much that weighs, and where it stood.

    ``earlier``: it is a line of the summary of what came before.
    """

    line: str
    words: tuple[str, ...]
    weight: float
    earlier: bool
    place: int


@attrs.frozen
class Segmenter:
    """Cuts text into sentences by the rules of a language; ``longest`` is how many characters of one are kept."""

    language: str
    longest: int

    def sentences(self, entries: Iterable[SummaryEntry]) -> list[Sentence]:
        """Every sentence of a conversation that has a word in it, in order; each once."""
        found: dict[str, Sentence] = {}
        for entry in entries:
            weight, edge = _SPEAKERS.get(entry.speaker.partition(" ")[0], _OTHERS)
            earlier = entry.speaker == SUMMARY
            lines = entry.text.splitlines() if earlier else self._spoken(_edges(entry.text, edge))
            for line in lines:
                words = words_of(line)
                written = line.rstrip() if earlier else f"- {entry.speaker}: {line}"
                if words and written not in found:
                    found[written] = Sentence(written, words, weight, earlier, len(found))
        return list(found.values())

    def _spoken(self, text: str) -> Iterator[str]:
        segment: Any = needed("sentencex", "ExtractiveSummarizer", "extractive").segment
        for line in encodable(text).splitlines():
            for start in range(0, len(line), _PIECE):
                for sentence in segment(self.language, line[start : start + _PIECE]):
                    yield self._shortened(" ".join(sentence.split()))

    def _shortened(self, sentence: str) -> str:
        if len(sentence) <= self.longest:
            return sentence
        cut = sentence[: self.longest - 1]
        space = cut.rfind(" ", self.longest // 2)
        return f"{cut[:space] if space > 0 else cut}…"


def _edges(text: str, edge: int) -> str:
    """A long text without its middle, and without the lines that a cut would break."""
    if len(text) <= 2 * edge:
        return text
    head, tail = text[:edge], text[-edge:]
    return f"{head.rpartition(chr(10))[0] or head}\n{tail.partition(chr(10))[2] or tail}"


def words_of(text: str) -> tuple[str, ...]:
    """The different words of a text, in order; pairs of characters where a script has no spaces.

    >>> words_of("Read src/app.py, then read it again.")
    ('read', 'src', 'app', 'py', 'then', 'it', 'again')
    >>> words_of("今天天气")
    ('今天', '天天', '天气')
    """
    words: dict[str, None] = {}
    for run in _LETTERS.findall(text.casefold()):
        spaced = _UNSPACED.sub(" ", run)
        words.update(dict.fromkeys(spaced.split()))
        if spaced != run:
            for part in _UNSPACED.findall(run):
                words.update(dict.fromkeys(part[at : at + 2] for at in range(max(1, len(part) - 1))))
    return tuple(words)
