"""A summariser that needs no model: it chooses sentences of the conversation."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import log
from typing import Any, ClassVar

import attrs

from .._summarizing import SummaryEntry, SummaryRequest
from ..counters import Counter, resolve_counter
from ._errors import SummaryError
from ._sentences import Segmenter, Sentence
from ._values import a_text, at_least, needed, repr_of

# A sentence costs as much as this many characters more than it has: else the shortest always win.
_PER_LINE = 80
# What a word counts that is said once: something, so that there is a choice where nothing is said twice.
_ONCE = 0.1
# A sentence that adds less than this share of what the best one does is noise, and not worth its tokens.
_NOISE = 0.05
# So many sentences in a row that are too long for the room that is left end the search for a shorter one.
_MOST_MISSES = 20


@attrs.frozen(kw_only=True, repr=False)
class ExtractiveSummarizer:
    """Summarises without a model, by choosing sentences: nothing is asked, downloaded or made up.

    Chosen is what covers most of what the conversation speaks of in the fewest characters: a word counts for more
    if it comes back, for less if it is everywhere, and nothing once a chosen sentence has it. What the user said
    weighs most, what tools returned least. The same conversation gives the same summary, in time that grows with its
    length. The lines of an earlier summary are kept, word for word, as far as they fit in half of the room, and in
    all of it where nothing else needs it; what must be kept is kept.

    ``sentences`` bounds how many new ones there are; without it, as many as fit in the request's ``max_tokens``,
    counted by ``counter``. ``language`` (ISO 639, such as ``"de"``) says where a sentence ends; any language is
    summarised, whatever it says. Of a sentence the first ``longest`` characters are kept.

    Needs the package sentencex, which finds the sentences in some 300 languages by rules: the extra ``extractive``.
    """

    sentences: int | None = attrs.field(default=None, validator=attrs.validators.optional(at_least(1)))
    language: str = attrs.field(default="en", validator=a_text)
    longest: int = attrs.field(default=400, validator=at_least(20))
    counter: Any = None

    window: ClassVar[int] = 1_000_000_000
    """It takes any conversation at once: none has to be cut into chunks for it."""

    def __attrs_post_init__(self) -> None:
        needed("sentencex", type(self).__name__, "extractive")
        resolve_counter(self.counter)

    def __call__(self, request: SummaryRequest) -> str:
        """The summary: the lines of the earlier one that stay, sentences with their speaker, and what must be kept."""
        # A request that somebody else made may have the text alone.
        entries = request.entries or (SummaryEntry("user", request.text),)
        every = Segmenter(self.language, self.longest).sentences(entries)
        earlier, new = [line for line in every if line.earlier], [line for line in every if not line.earlier]
        limit, room = request.max_tokens, Room(resolve_counter(self.counter))
        facts = room.facts(request.must_keep, limit // 2)
        chosen = room.choose(earlier, limit // 2 if new else limit)
        chosen += room.choose(new, limit, self.sentences)
        taken = set(chosen)
        chosen += room.choose([line for line in earlier if line not in taken], limit)
        # What lines cost together is nearly, and not for every counter, what they cost one by one.
        while room.size(text := _written(chosen, facts)) > limit and chosen:
            chosen.pop()
        if not text:
            raise SummaryError("empty", f"no sentence of the conversation fits in {limit} tokens")
        return text

    def __repr__(self) -> str:
        return repr_of(self)


def _written(chosen: Sequence[Sentence], facts: Sequence[str]) -> str:
    """The summary, in the order of the conversation, the earlier one first."""
    lines = [line.line for line in sorted(chosen, key=lambda line: (not line.earlier, line.place))]
    text = "\n".join(lines)
    return "\n".join([*lines, *(f"- {fact}" for fact in facts if fact not in text)])


@attrs.define
class Room:
    """The room in a summary, which fills as lines are chosen."""

    counter: Counter
    used: int = 0

    def size(self, text: str) -> int:
        """The tokens of a text."""
        return self.counter.count_many([text])[0]

    def facts(self, facts: Sequence[str], limit: int) -> list[str]:
        """As many of what must be kept as fit in so many tokens, in order."""
        return [fact for fact in facts if self._takes(f"- {fact}", limit)]

    def _takes(self, line: str, limit: int) -> bool:
        size = self.size(f"{line}\n")
        fits = self.used + size <= limit
        self.used += size if fits else 0
        return fits

    @staticmethod
    def adds(line: Sentence, worth: dict[str, float], covered: set[str]) -> float:
        """What a line adds to those chosen, for each character that it takes."""
        gain = sum(worth[word] for word in line.words if word not in covered)
        return line.weight * gain / (len(line.line) + _PER_LINE)

    def choose(self, lines: Sequence[Sentence], limit: int, most: int | None = None) -> list[Sentence]:
        """Lines that cover the most in what is free up to a limit, the best first.

        What a line adds only shrinks as others are chosen; so the best by an old figure that is still the best by
        its new one is the best of all, and few figures are asked again (lazy greedy).
        """
        worth, covered = _worth(lines), set[str]()
        heap = [(-self.adds(line, worth, covered), number) for number, line in enumerate(lines)]
        heapify(heap)
        least = -heap[0][0] * _NOISE if heap else 0
        chosen: list[Sentence] = []
        misses = 0
        while heap and misses < _MOST_MISSES and (most is None or len(chosen) < most):
            _, number = heappop(heap)
            line = lines[number]
            adds = self.adds(line, worth, covered)
            if adds <= least and not line.earlier:
                continue  # Of an earlier summary each line was worth its tokens once; those that add most come first.
            if heap and (-adds, number) > heap[0]:
                heappush(heap, (-adds, number))
            elif self._takes(line.line, limit):
                chosen.append(line)
                covered.update(line.words)
                misses = 0
            else:
                misses += 1
        return chosen


def _worth(lines: Iterable[Sentence]) -> dict[str, float]:
    """What a word is worth: the more the more lines have it, until most have; next to nothing if it never returns."""
    tally = Tally(word for line in lines for word in line.words)
    most = max(tally.values(), default=0) + 1
    return {word: log(count) * log(most / count) + _ONCE for word, count in tally.items()}
