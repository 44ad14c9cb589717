"""Summarisation: the oldest groups make room for one message that says what was in them (rules S1 to S4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs

from .._effects import Core, Effect
from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._marks import mark
from .._predicates import tokens
from .._strategy import CompactionStrategy
from .._summarizing import SECTIONS, TASK, Summarizer, SummaryRequest
from .._summarizing._answers import SummaryRefusedError
from .._summarizing._asking import Asking
from .._summarizing._choosing import choose
from .._summarizing._cutting import CUT, cut_to
from .._summarizing._fields import as_sections, seconds, some_words, time_limit
from .._summarizing._memory import Memory
from .._summarizing._must_keep import Keep, as_must_keep, facts_in, with_facts
from .._summarizing._rendering import entries_of, shown_positions
from .._summarizing._sharing import is_async
from .._text import some
from .._validators import a_bool, a_callable, non_negative, positive
from ..counters import framing_of

DEFAULT_WINDOW = 32_000
_REASON = _WHAT = "summary"
_LEAST_BODY = 8
"""A summary of fewer tokens says nothing."""


@attrs.frozen(kw_only=True, repr=False)
class SummarizationStrategy(CompactionStrategy):
    """Let one summary stand for the oldest groups, written by whatever can write one.

    ``summarizer`` is a callable, or an async callable, from a :class:`SummaryRequest` to text: a model behind a
    client, or a function (``chat_compaction.summarizers`` has ready ones). It is asked to summarise the oldest groups
    that may leave, as many as it takes for the target to hold with a summary of ``max_summary_tokens``; what is new
    among them must have ``min_gain`` tokens (by default a quarter of ``max_summary_tokens``), or nothing is done. An
    earlier summary is always among them, so that there is one at any time.

    The request always fits into ``window``, the tokens that the summarizer takes, its answer included (by default its
    own attribute ``window``, or 32,000): a long conversation goes in chunks, whose summaries are merged, in at most
    ``max_calls`` calls. It has no tools in it; calls and results are told in words, and reasoning only with
    ``include_reasoning=True``. ``instructions`` say what a summary is for, ``sections`` what it should have.

    What ``must_keep`` finds in the messages that are replaced stands in the summary word for word: texts, compiled
    patterns, or functions from a message to the texts in it that must stay (True: all of its words).

    An error, an answer that is empty, no smaller than what it replaces, or the conversation itself leaves the history
    as it was, shows in ``report.failures``, and the pass goes on. After ``max_failures`` in a row the summarizer is
    not asked for ``backoff`` seconds, and twice as long after each further one. ``timeout`` is in seconds, for each
    call. ``clock`` gives the seconds, for tests.

    >>> import chat_compaction as cc
    >>> def summarizer(request):
    ...     return "The user wants tea."
    >>> cc.SummarizationStrategy(summarizer, trigger=cc.tokens > 8_000, target=cc.tokens <= 4_000).max_summary_tokens
    2000
    """

    summarizer: Summarizer = attrs.field(kw_only=False, validator=a_callable)
    max_summary_tokens: int = attrs.field(default=2_000, validator=positive)
    min_gain: int | None = attrs.field(default=None, validator=attrs.validators.optional(non_negative))
    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    max_calls: int = attrs.field(default=16, validator=positive)
    instructions: str = attrs.field(default=TASK, validator=some_words)
    sections: tuple[str, ...] = attrs.field(default=SECTIONS, converter=as_sections)
    must_keep: tuple[Keep, ...] = attrs.field(default=(), converter=as_must_keep)
    include_reasoning: bool = attrs.field(default=False, validator=a_bool)
    max_failures: int = attrs.field(default=3, validator=positive)
    backoff: float = attrs.field(default=60.0, validator=seconds)
    timeout: float | None = attrs.field(default=None, validator=time_limit)
    clock: Callable[[], float] = attrs.field(default=time.monotonic, eq=False, validator=a_callable)
    _memory: Memory = attrs.field(init=False, eq=False, factory=Memory)

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        chosen = self._chosen(index)
        if not chosen:
            return
        failures, wait = self._memory.failures_and_wait(self.clock())
        if wait:
            index.report_failure(_WHAT, f"not asked after {some(failures, 'failure')} in a row, for {wait:.0f} s more")
            return
        asked: list[SummaryRequest] = []
        try:
            yield from self._replaced(index, chosen, asked)
        except SummaryRefusedError as error:
            index.report_failure(_WHAT, error.__cause__ or str(error))
            if asked:
                self._memory.calls.forget(asked[-1])
                self._memory.failed(self.clock(), max_failures=self.max_failures, backoff=self.backoff)
        else:
            if asked:
                self._memory.succeeded()

    def _chosen(self, index: MessageIndex) -> list[MessageGroup]:
        """What a summary is to stand for; nothing where it would not be worth a call."""
        gain = self.max_summary_tokens // 4 if self.min_gain is None else self.min_gain
        free, overhead = self.candidates(index), _overhead(index)
        # With a floor of 0 the newest group may be replaced, though not leave: a summary may be.
        summaries = [group for group in self.rewritable(index) if group.kind is GroupKind.SUMMARY]
        may_leave = {group.positions[0] for group in free}
        newest = [group for group in summaries if group.positions[0] not in may_leave]
        sizes = {"allowed": self.max_summary_tokens, "overhead": overhead, "gain": max(1, gain)}
        chosen = choose(index, free, newest, self.effective_target, **sizes)
        return chosen if chosen and self._room(index, chosen) >= _LEAST_BODY else []

    def _room(self, index: MessageIndex, chosen: Sequence[MessageGroup]) -> int:
        """The tokens that the words of a summary may have: within the bound, and smaller than what it replaces."""
        smaller = sum(map(index.tokens_of, chosen)) - _overhead(index) - 1
        return min(self.max_summary_tokens, smaller) - index.count_texts([mark("")])[0]

    def _replaced(self, index: MessageIndex, chosen: Sequence[MessageGroup], asked: list[SummaryRequest]) -> Core[None]:
        """Ask, and let what comes back take the place of the groups, or raise."""
        facts = facts_in(index, shown_positions(index, chosen), self.must_keep)
        room = self._room(index, chosen)
        if facts and with_facts("", facts, room - _LEAST_BODY, index.count_texts)[1] and self._is_little(index, chosen):
            raise SummaryRefusedError("not asked, since what must be kept is as much as would be replaced")
        asking = Asking(
            count=index.count_texts,
            effect=lambda request: self._effect(request, index, asked),
            window=self._window(),
            max_tokens=room,
            max_calls=self.max_calls,
            task=self.instructions,
            sections=self.sections,
            facts=facts,
        )
        body = yield from asking.summary(entries_of(index, chosen, reasoning=self.include_reasoning))
        self._put(index, chosen, body, facts, room)

    def _is_little(self, index: MessageIndex, chosen: Sequence[MessageGroup]) -> bool:
        """Whether what is replaced is no more than a summary may have: with more of it there would be more room."""
        return sum(map(index.tokens_of, chosen)) <= self.max_summary_tokens

    def _put(
        self, index: MessageIndex, chosen: Sequence[MessageGroup], body: str, facts: Sequence[str], room: int
    ) -> None:
        """Let a summary stand for the groups; refuse one that is no smaller (rule S3)."""
        replaced = sum(map(index.tokens_of, chosen))
        (size,) = index.count_texts([body])
        if size >= replaced:
            raise SummaryRefusedError(
                f"the summary is no smaller than what it replaces: {size:,} of {replaced:,} tokens"
            )
        text, left_out = with_facts(body, facts, room, index.count_texts)
        if not text:
            raise SummaryRefusedError(f"the summary of {size:,} tokens cannot be cut to {room:,}")
        chosen_firsts = {group.positions[0] for group in chosen}
        protected = {first: why for first, why in index._ledger.protected.items() if first not in chosen_firsts}
        with index._ledger.stage() as current:  # So that one that is refused leaves an earlier summary as it was.
            current.protected = protected
            before = index.value(tokens)
            if not index.summarize(chosen, text, _REASON):
                raise SummaryRefusedError("the rules of the format leave no place for a summary")
            after = index.value(tokens)
            if after >= before:
                raise SummaryRefusedError(f"the summary would make {after:,} tokens of {before:,}")
        if size > room:
            index.report_failure(_WHAT, f"cut, since it had {size:,} tokens and may have {room:,}")
        if left_out:
            index.report_failure("must_keep", f"no room in the summary for {left_out:,} of {some(len(facts), 'text')}")

    # -- asking --------------------------------------------------------------------------------

    def _window(self) -> int:
        own = getattr(self.summarizer, "window", None)
        return self.window or (own if isinstance(own, int) and own > 0 else DEFAULT_WINDOW)

    def _effect(self, request: SummaryRequest, index: MessageIndex, asked: list[SummaryRequest]) -> Effect:
        question, blocking = _Question(self, asked), not is_async(self.summarizer)
        current = index._ledger.current
        if current is None or not current.planning:
            return Effect(question, (request,), blocking=blocking)
        return Effect(question, (request,), planned=_stand_in(request.max_tokens, index))


@attrs.frozen(repr=False)
class _Question:
    """What a pass asks; it notes that it really was asked, which a plan never does."""

    strategy: SummarizationStrategy
    asked: list[SummaryRequest]

    def __call__(self, request: SummaryRequest) -> Any:
        self.asked.append(request)
        return self.strategy._memory.calls.ask(self.strategy.summarizer, request, self.strategy.timeout)

    def __repr__(self) -> str:
        # It stands in the error that says that the summarizer is async.
        return repr(self.strategy.summarizer)


def _overhead(index: MessageIndex) -> int:
    """What a message counts beside its text."""
    return index.format.overhead if framing_of(index.counter) else 0


def _stand_in(size: int, index: MessageIndex) -> str:
    """What a plan takes for a summary: a text of the allowed length."""
    return cut_to("and so on " * (size + 1), size, index.count_texts) or CUT
