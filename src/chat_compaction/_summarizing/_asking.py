"""Asking for a summary: in one request where it fits, else chunk by chunk, and then for the merged one (rule S2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from .._effects import Core, Effect
from .._text import some
from ._answers import SummaryRefusedError, checked_answer
from ._chunking import chunks_of, frame_of, most_chunks, shortened, sizes_of
from ._cutting import Count, cut_to
from ._rendering import SUMMARY
from ._request import Purpose, SummaryEntry, SummaryRequest
from ._request_text import make_request

MARGIN = 0.2
"""The share of the window that is left free: the summarizer may count otherwise than the index."""
_LEAST_ROOM = 64
"""Fewer tokens of conversation in a request are not worth one."""
_PARTS = 5
"""The summary of a part has at most this part of a request that merges them."""
_FILLED = 70
"""So many per cent of what chunks can hold they surely do hold."""
_TRIES = 3
_SMALLER = 0.8
_MANY = (999, 999)


@attrs.frozen(kw_only=True)
class Asking:
    """How one pass asks: by which counter, in which words, and within which bounds.

    ``window`` is what the summarizer takes, its answer included; ``max_tokens`` bounds the answer to the whole.
    ``effect`` makes the question of a request.
    """

    count: Count
    effect: Callable[[SummaryRequest], Effect]
    window: int
    max_tokens: int
    max_calls: int
    task: str
    sections: Sequence[str]
    facts: Sequence[str] = ()

    def summary(self, entries: Sequence[SummaryEntry]) -> Core[str]:
        """One summary of all of it."""
        request, nonce = self._request(entries, "summary", self.max_tokens)
        if self._fits(request):
            return (yield from self._ask(request, nonce))
        chunks = self._chunks(entries)
        if len(chunks) == 1:
            request, nonce = self._request(chunks[0], "summary", self.max_tokens)
            return (yield from self._ask(request, nonce))
        answers = []
        for number, chunk in enumerate(chunks, 1):
            request, nonce = self._request(chunk, "chunk", self._part_tokens, part=(number, len(chunks)))
            answers.append((yield from self._part(request, nonce)))
        return (yield from self._merged(answers))

    def _merged(self, answers: Sequence[SummaryEntry]) -> Core[str]:
        """Summaries of parts as one; each round leaves fewer, since several fit into a request."""
        while True:
            request, nonce = self._request(answers, "merge", self.max_tokens)
            if self._fits(request):
                return (yield from self._ask(request, nonce))
            size, merged = self._merged_at_once, list[SummaryEntry]()
            for group in (answers[start : start + size] for start in range(0, len(answers), size)):
                request, nonce = self._request(group, "merge", self._part_tokens)
                merged.append(group[0] if len(group) == 1 else (yield from self._part(request, nonce)))
            answers = merged

    def _ask(self, request: SummaryRequest, nonce: str) -> Core[str]:
        if not self._fits(request):
            raise SummaryRefusedError(self._too_small())
        effect = self.effect(request)
        try:
            answer = yield effect
        except Exception as error:
            raise SummaryRefusedError("the summarizer failed") from error
        return checked_answer(answer, nonce, request)

    def _part(self, request: SummaryRequest, nonce: str) -> Core[SummaryEntry]:
        """The summary of a part, short enough for a merge."""
        text = yield from self._ask(request, nonce)
        return SummaryEntry(SUMMARY, cut_to(text, self._part_tokens, self.count))

    # -- what fits -----------------------------------------------------------------------------

    def _request(
        self, entries: Sequence[SummaryEntry], purpose: Purpose, max_tokens: int, part: tuple[int, int] = (1, 1)
    ) -> tuple[SummaryRequest, str]:
        said = "\n".join(entry.text for entry in entries)
        return make_request(
            entries,
            purpose=purpose,
            max_tokens=max_tokens,
            task=self.task,
            sections=self.sections,
            must_keep=[fact for fact in self.facts if fact in said] if purpose != "merge" else (),
            part=part,
        )

    def _fits(self, request: SummaryRequest) -> bool:
        return self.count([request.prompt])[0] <= self._most(request.max_tokens)

    def _most(self, max_tokens: int) -> int:
        """The most that a request may count, so that it fits together with its answer."""
        return int(self.window * (1 - MARGIN)) - max_tokens

    def _room(self, purpose: Purpose, max_tokens: int) -> int:
        """What is left in a request for the conversation."""
        empty, _ = make_request(
            (), purpose=purpose, max_tokens=max_tokens, task=self.task, sections=self.sections, part=_MANY
        )
        return self._most(max_tokens) - self.count([empty.prompt])[0]

    @property
    def _merge_room(self) -> int:
        return self._room("merge", self.max_tokens)

    @property
    def _part_tokens(self) -> int:
        """The bound of the summary of a part: several of these fit into a request."""
        return max(1, min(self.max_tokens, self._merge_room // _PARTS))

    @property
    def _merged_at_once(self) -> int:
        """How many summaries of parts fit into a request."""
        return max(2, self._merge_room // (self._part_tokens + frame_of(SummaryEntry(SUMMARY, ""), self.count)))

    def _chunks(self, entries: Sequence[SummaryEntry]) -> Sequence[Sequence[SummaryEntry]]:
        """Chunks of which each fits into a request, and which all together take no more calls than allowed."""
        most = most_chunks(self.max_calls, self._merged_at_once)
        purpose: Purpose = "summary" if most == 1 else "chunk"
        tokens = self.max_tokens if most == 1 else self._part_tokens
        room, whole = self._room(purpose, tokens), sum(sizes_of(entries, self.count))
        if most > 1 and whole <= room:
            room = whole * 2 // 3  # It would fit, but for an answer that is longer than those to parts.
        for _ in range(_TRIES):
            if min(room, self._merge_room) < _LEAST_ROOM:
                break
            chunks: Sequence[Sequence[SummaryEntry]] = ()
            if whole <= room * most:
                chunks = chunks_of(entries, room, self.count)
            if not 0 < len(chunks) <= most:
                limit = room * most * _FILLED // 100
                chunks = chunks_of(shortened(entries, limit, self.count), room, self.count)
            if len(chunks) <= most and all(map(self._fits, self._as_asked(chunks, purpose, tokens))):
                return chunks
            room = int(room * _SMALLER)  # The whole counts more than its parts.
        raise SummaryRefusedError(self._too_small())

    def _as_asked(
        self, chunks: Sequence[Sequence[SummaryEntry]], purpose: Purpose, tokens: int
    ) -> Iterator[SummaryRequest]:
        """The requests that the chunks will make, or longer ones."""
        if len(chunks) == 1:
            purpose, tokens = "summary", self.max_tokens
        for chunk in chunks:
            yield self._request(chunk, purpose, tokens, part=_MANY)[0]

    def _too_small(self) -> str:
        calls = some(self.max_calls, "call")
        return f"the conversation does not fit into {calls} of a summarizer with a window of {self.window:,} tokens"
