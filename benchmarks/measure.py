"""How the benchmark measures: one unit, interleaved runs, medians, and a limit on what a slow contender may take.

The unit is the time of counting each message once with the same function, taken right before and right after what is
measured. Ratios hold where seconds do not: the machine may be busy.
"""

from __future__ import annotations

import gc
import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import chat_compaction as cc

from .contenders import Backend, Contender, Limits, Reduce
from .conversations import Message, salted, text_of
from .legality import faults

_FEWEST_SAMPLES = 4
_CHECKED_CALLS = 137


class TooSlowError(BaseException):
    """Time is up; no ``except Exception`` of a contender may catch it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise :class:`TooSlowError` in the block when the time is up."""

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    started = perf_counter()
    work()
    return perf_counter() - started


@dataclass(frozen=True)
class Figure:
    """A measured number; ``sign`` tells how it came about: nothing, ``≈`` from a sample of calls, ``>`` at least."""

    value: float
    sign: str = ""

    def __str__(self) -> str:
        if self.value >= 100:
            return f"{self.sign}{self.value:,.0f}"
        return f"{self.sign}{self.value:.{1 if self.value >= 10 else 2 if self.value >= 0.1 else 3}f}"


@dataclass
class Row:
    """What is known of one contender on one conversation."""

    growing: dict[str, Figure] = field(default_factory=dict)
    cold: dict[str, Figure] = field(default_factory=dict)
    noop_ms: Figure | None = None
    illegal: Counter[str] = field(default_factory=Counter)
    illegal_calls: int = 0
    checked_calls: int = 0


@dataclass(frozen=True)
class Effort:
    """How much to spend."""

    runs: int = 3
    seconds: float = 2.5
    """At most this much for a peer's single call, and some more for its growing conversation."""


# -- against the unit ----------------------------------------------------------------------------------


def unit(backend: Backend, history: Sequence[Message]) -> float:
    """Seconds to count each message once."""
    texts = list(map(text_of, history))
    return timed(lambda: [backend.count(text) for text in texts])


@dataclass
class Ratios:
    """Interleaves contenders with the unit."""

    backend: Backend
    history: Sequence[Message]
    effort: Effort
    salts: Iterator[int] = field(default_factory=count)
    found: dict[str, list[Figure]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def run(self, contenders: Sequence[Contender], measure: Callable[[Contender, Sequence[Message]], Figure]) -> None:
        """Measure each contender as often as told, slow ones once, each run on texts of its own."""
        for _ in range(self.effort.runs):
            before = unit(self.backend, self._fresh())
            for contender in contenders:
                if self._has_enough(contender):
                    continue
                gc.collect()
                figure = measure(contender, self._fresh())
                self.seconds[contender.name] += figure.value
                after = unit(self.backend, self._fresh())
                self.found[contender.name].append(Figure(2 * figure.value / (before + after), figure.sign))
                before = after

    def _fresh(self) -> list[Message]:
        """The conversation in texts that nobody has met, of one length."""
        return salted(self.history, f"{next(self.salts):06}")

    def _has_enough(self, contender: Contender) -> bool:
        """A peer is not measured again where its runs took long, or one is an estimate."""
        slow = self.seconds[contender.name] > self.effort.seconds / 2
        return any(one.sign for one in self.found[contender.name]) or (slow and not contender.ours)

    def medians(self) -> dict[str, Figure]:
        """For each contender the median of its runs; a figure that is an estimate stays the only one."""
        return {
            name: next((one for one in figures if one.sign), None) or Figure(median(one.value for one in figures))
            for name, figures in self.found.items()
        }


def against_unit(
    contenders: Sequence[Contender], backend: Backend, history: Sequence[Message], limits: Limits, effort: Effort
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """The growing conversation and the cold cut, as multiples of counting each message once."""
    able = [contender for contender in contenders if backend.name in contender.tokenizers]
    growing, cold = Ratios(backend, history, effort, salts := count()), Ratios(backend, history, effort, salts)
    calls: dict[str, float] = {}

    def cut(contender: Contender, fresh: Sequence[Message]) -> Figure:
        figure = cold_cut(contender, backend, limits, fresh, effort.seconds)
        calls[contender.name] = figure.value
        return figure

    cold.run(able, cut)
    growing.run(
        able, lambda contender, fresh: grown(contender, backend, limits, fresh, effort.seconds, calls[contender.name])
    )
    return growing.medians(), cold.medians()


def warmed(contenders: Sequence[Contender], backend: Backend, history: Sequence[Message]) -> None:
    """Let everybody import and load what they need, which is not timed."""
    for contender in contenders:
        if backend.name in contender.tokenizers:
            limits = Limits(1, 1)  # So that they cut.
            _quiet(contender, contender.make(backend, limits), contender.convert(history[:6]))


def cold_cut(
    contender: Contender, backend: Backend, limits: Limits, history: Sequence[Message], seconds: float
) -> Figure:
    """Seconds of one call on the whole list by a contender that has seen nothing."""
    messages = contender.convert(history)
    return _call(contender, contender.make(backend, limits), messages, seconds)


def grown(
    contender: Contender,
    backend: Backend,
    limits: Limits,
    history: Sequence[Message],
    seconds: float,
    longest: float,
) -> Figure:
    """Seconds of one call for each message, each on the whole list so far.

    A peer that keeps nothing and would take longer than it may is asked at some lengths only, evenly spread: the
    longest call, whose seconds are given, tells how many. One that keeps something is stopped when time is up.
    """
    messages = contender.convert(history)
    reduce = contender.make(backend, limits)
    samples = len(messages)
    if not (contender.ours or contender.keeps):
        # Most calls take time in proportion to the length, so the mean is half of the longest.
        samples = min(samples, max(_FEWEST_SAMPLES, int(2 * seconds / longest)))
    lengths = [int(len(messages) * (number + 0.5) / samples) + (samples == len(messages)) for number in range(samples)]
    return _until(contender, reduce, messages, lengths, seconds * (4 if contender.keeps else 2))


def _until(contender: Contender, reduce: Reduce, messages: list[Any], lengths: Sequence[int], seconds: float) -> Figure:
    """Seconds of a call at every length, from calls at these; at least that, if time runs out.

    What was not reached is taken to be like the median of the last quarter of what was: calls get no faster.
    """
    share = len(messages) / len(lengths)
    spent: list[float] = []
    total = 0.0
    for length in lengths:
        figure = _call(contender, reduce, messages[:length], seconds - total)
        spent.append(figure.value)
        total += figure.value
        if figure.sign:
            missing = len(lengths) - len(spent)
            return Figure(share * (total + missing * median(spent[-max(1, len(spent) // 4) :])), ">")
    return Figure(share * total, "" if share == 1 else "≈")


def _call(contender: Contender, reduce: Reduce, messages: list[Any], seconds: float) -> Figure:
    """Seconds of one call; what is stopped took at least so long. Ours are not stopped."""
    if contender.ours:
        return Figure(timed(lambda: reduce(messages)))
    started = perf_counter()
    try:
        with deadline(max(seconds, 0.001)):
            _quiet(contender, reduce, messages)
    except TooSlowError:
        return Figure(perf_counter() - started, ">")
    return Figure(perf_counter() - started)


def _quiet(contender: Contender, reduce: Reduce, messages: list[Any]) -> object:
    """The result; a peer's error is one, too, and the legality tells of it."""
    try:
        return reduce(messages)
    except Exception as error:
        if contender.ours:
            raise
        return error


# -- other figures -------------------------------------------------------------------------------------


def noop_ms(contender: Contender, backend: Backend, history: Sequence[Message], seconds: float) -> Figure:
    """Milliseconds of a call that has nothing to do, by a contender that has met the whole list before."""
    messages = contender.convert(history)
    reduce = contender.make(backend, Limits.of(10**9))
    if _call(contender, reduce, list(messages), seconds).sign:
        return Figure(seconds * 1000, ">")
    times: list[float] = []
    while len(times) < 3 or (len(times) < 50 and sum(times) < 0.1):
        times.append(_call(contender, reduce, list(messages), seconds).value)
    return Figure(1000 * median(times))


def firing_ms(contender: Contender, history: Sequence[Message], effort: Effort) -> Figure:
    """Milliseconds of a cold call that cuts the list to half, where counting costs nothing."""
    limits = half_of(history)
    runs: list[Figure] = []
    for _ in range(effort.runs):
        runs.append(cold_cut(contender, FREE, limits, history, effort.seconds))
        if runs[-1].sign:
            return Figure(runs[-1].value * 1000, ">")
    return Figure(1000 * median(run.value for run in runs))


FREE = Backend("free", lambda text: len(text) >> 2, lambda: cc.FunctionCounter(lambda text: len(text) >> 2))
"""Characters / 4: what is left is the contender's own work."""


def half_of(history: Sequence[Message]) -> Limits:
    """Half of what a conversation costs when counting is free."""
    total = sum(FREE.count(text_of(message)) for message in history)
    return Limits(total // 2, total // 2)


def check(
    contender: Contender, backend: Backend, history: Sequence[Message], limits: Limits, row: Row, seconds: float
) -> None:
    """Look at what a contender makes of many lengths of the conversation, with counts that are remembered.

    One that keeps decisions sees every length, another one lengths at random, until its time is up.
    """
    remembering = Backend(backend.name, cache(backend.count), backend.counter)
    messages = contender.convert(history)
    origin = {id(ours): message for ours, message in zip(messages, history, strict=True)}
    reduce = contender.make(remembering, limits)
    until = perf_counter() + (3_600 if contender.ours else seconds)
    for end in _lengths(contender, len(messages)):
        try:
            with deadline(max(until - perf_counter(), 0.001)):
                output = _quiet(contender, reduce, messages[:end])
        except TooSlowError:
            break
        found = {"error"}
        if isinstance(output, list):
            plain = output if contender.copies else [origin[id(message)] for message in output]
            found = faults(history[:end], plain, limits.budget, lambda message: remembering.count(text_of(message)))
        row.checked_calls += 1
        row.illegal_calls += bool(found)
        row.illegal.update(found)


def _lengths(contender: Contender, longest: int) -> list[int]:
    everything = list(range(1, longest + 1))
    if contender.keeps or contender.ours:
        return everything
    return random.Random(0).sample(everything, min(_CHECKED_CALLS, longest))


# -- what ours promise beside ---------------------------------------------------------------------------


def against_parsing(history: Sequence[Message], read: Callable[[list[Message]], object], runs: int) -> float:
    """Reading a list, as a multiple of what json.loads takes for the same messages."""
    text = json.dumps(list(history))
    ratios = []
    for _ in range(runs):
        gc.collect()
        started = perf_counter()
        fresh = json.loads(text)
        parsed = perf_counter()
        kept = read(fresh)
        ratios.append((perf_counter() - parsed) / (parsed - started))
        del kept
    return median(ratios)


def truncation_ms(history: Sequence[Message], runs: int) -> float:
    """Milliseconds of a truncation to half, where everything is read and counted."""
    limits = half_of(history)
    truncation = cc.TruncationStrategy(trigger=cc.tokens > limits.budget, target=cc.tokens <= limits.target)
    times = []
    for _ in range(runs):
        index = cc.MessageIndex.from_messages(history, counter=cc.FunctionCounter(FREE.count), format="openai_chat")
        index.value(cc.tokens)
        gc.collect()
        times.append(timed(lambda index=index: truncation.compact(index)))  # type: ignore[misc]
    return 1000 * median(times)
