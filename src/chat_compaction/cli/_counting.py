"""The counter that the options name, and the progress bar of a person who waits for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import attrs

from ..counters import Counter, EstimateCounter, TokenizerCounter, bounds_of, framing_of, resolve_counter
from ._click import arguments_are_options, usage_error

_BATCH = 250_000  # characters: about a tenth of a second of counting
_PATIENCE = 0.5  # seconds that nobody minds


def counter_of(name: str | None, tokenizer: str | None) -> Counter:
    """The counter of ``--counter`` and ``--tokenizer``."""
    if tokenizer is None and name == "estimate":
        return EstimateCounter()
    if tokenizer is None:
        with arguments_are_options({"counter": "--counter"}):
            return resolve_counter(None if name == "auto" else name)
    if name is not None:
        usage_error(f"--tokenizer and --counter exclude each other, got --counter {name} and --tokenizer {tokenizer}")
    with arguments_are_options({"path": "--tokenizer"}):
        return TokenizerCounter.from_file(tokenizer)


def with_progress(counter: Counter) -> Counter:
    """The counter, with a bar on standard error where that is a terminal and counting takes its time."""
    return _Watched(counter) if sys.stderr is not None and sys.stderr.isatty() else counter


@attrs.frozen
class _Watched:
    """A counter that is asked in batches, so that something can move meanwhile."""

    counter: Counter

    @property
    def name(self) -> str:
        return self.counter.name

    @property
    def exact(self) -> bool:
        return self.counter.exact

    @property
    def framing(self) -> bool:
        return framing_of(self.counter)

    @property
    def bounds(self) -> Callable[[str], tuple[int, int]] | None:
        return bounds_of(self.counter)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        with _bar(sum(map(len, texts))) as advance:
            for batch in _batches(texts):
                counts.extend(self.counter.count_many(batch))
                advance(sum(map(len, batch)))
        return counts


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    start = held = 0
    for place, text in enumerate(texts):
        held += len(text)
        if held >= _BATCH:
            yield texts[start : place + 1]
            start, held = place + 1, 0
    if start < len(texts):
        yield texts[start:]


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar over so many characters; gives the function that moves it. It shows once it took a while."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("Counting tokens"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    # Without a thread of its own: it moves when a batch is done, and then only.
    progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = progress.add_task("", total=total)
    started = perf_counter()

    def advance(characters: int) -> None:
        progress.advance(task, characters)
        if perf_counter() - started > _PATIENCE:
            progress.start()
            progress.refresh()

    try:
        yield advance
    finally:
        progress.stop()
