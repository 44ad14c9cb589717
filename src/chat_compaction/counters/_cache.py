"""The counts of one counter, remembered by content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

from ._protocol import Counter, CounterError, checked_count


class CountCache:
    """Remembers what its one counter said of each text (rule C2), and hands it no text twice while it remembers.

    ``max_characters`` bounds the texts held, by their total length; the oldest go first, and a longer text is counted
    but not held. Threads may share a cache: they never wait for each other's counting, and may count the same text.

    Raises:
        TypeError, ValueError: on construction, if ``max_characters`` is not an int of 0 or more.
    """

    def __init__(self, counter: Counter, max_characters: int = 64_000_000) -> None:
        if isinstance(max_characters, bool) or not isinstance(max_characters, int):
            raise TypeError(f"max_characters must be an int of 0 or more, got {max_characters!r}")
        if max_characters < 0:
            raise ValueError(f"max_characters must be 0 or more, got {max_characters!r}")
        self._counter = counter
        self._max_characters = max_characters
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._characters = 0
        self._asked = 0
        self._lock = Lock()

    @property
    def counter(self) -> Counter:
        """The counter that it asks."""
        return self._counter

    @property
    def asked(self) -> int:
        """How many texts it has handed to the counter so far."""
        return self._asked

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, in order.

        Raises:
            CounterError: if the counter returns anything but one int of 0 or more for each text; nothing is
                remembered then.
        """
        with self._lock:
            known = [self._counts.get(text) for text in texts]
        missing = list(dict.fromkeys(text for text, count in zip(texts, known, strict=True) if count is None))
        new = self._ask(missing) if missing else {}
        return [new[text] if count is None else count for text, count in zip(texts, known, strict=True)]

    def _ask(self, texts: list[str]) -> dict[str, int]:
        """Counts of texts that are not held; what the counter raises passes through."""
        counts = dict(zip(texts, self._checked(texts, self._counter.count_many(texts)), strict=True))
        with self._lock:
            self._asked += len(texts)
            for text, count in counts.items():
                self._hold(text, count)
        return counts

    def _checked(self, texts: list[str], returned: Any) -> list[int]:
        name = self._counter.name
        try:
            values = list(returned)
        except TypeError:
            raise CounterError(
                f"counter {name!r} must return a sequence of counts, got a value of type {type(returned).__name__}"
            ) from None
        if len(values) != len(texts):
            raise CounterError(f"counter {name!r} must return {len(texts)} counts for as many texts, got {len(values)}")
        return [checked_count(value, name, text) for value, text in zip(values, texts, strict=True)]

    def _hold(self, text: str, count: int) -> None:
        if len(text) > self._max_characters or text in self._counts:
            return
        self._counts[text] = count
        self._characters += len(text)
        while self._characters > self._max_characters:
            oldest, _ = self._counts.popitem(last=False)
            self._characters -= len(oldest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or one in another process, starts empty: a lock cannot be copied.
        return CountCache, (self._counter, self._max_characters)

    def __repr__(self) -> str:
        return f"CountCache({self._counter!r}, max_characters={self._max_characters})"
