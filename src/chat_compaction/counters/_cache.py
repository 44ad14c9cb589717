"""The counts of one counter, remembered by content."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from threading import Lock
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

from ._adapters import FunctionCounter
from ._backends import BackendCounter
from ._estimate import EstimateCounter
from ._protocol import Counter, CounterError, checked_count

# Characters. A longer text is known by its digest of 49 bytes, so that the cache keeps it not alive; a shorter one is
# found in a tenth of the time.
_SHORT = 512
# Bytes that an entry takes beside its key: the number, and its share of a table while that grows.
_ENTRY = 128

_Key = str | bytes


def _key(text: str) -> _Key:
    return text if len(text) <= _SHORT else blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class CountCache:
    """Remembers what its one counter said of each text (rule C2), and hands it no text twice while it remembers.

    ``max_bytes`` bounds the memory that it takes, keys and tables included; what was not asked for longest goes first.
    Threads may share a cache: they never wait for each other's counting, and may count the same text.
    :func:`shared_cache` gives the one that all share.

    Raises:
        TypeError, ValueError: on construction, if ``max_bytes`` is not an int of 0 or more.
    """

    def __init__(self, counter: Counter, max_bytes: int = 32_000_000) -> None:
        if not isinstance(counter, Counter):
            raise TypeError(f"counter must be a Counter (see resolve_counter), got {counter!r}")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
            raise TypeError(f"max_bytes must be an int of 0 or more, got {max_bytes!r}")
        if max_bytes < 0:
            raise ValueError(f"max_bytes must be 0 or more, got {max_bytes!r}")
        self._counter = counter
        self._max_bytes = max_bytes
        # Two generations: when the new one has half of the memory, it becomes the old one, which is forgotten. What is
        # asked for in the old one moves to the new one. So a hit needs neither a lock nor a list of uses.
        self._new: dict[_Key, int] = {}
        self._old: dict[_Key, int] = {}
        self._bytes = 0
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
        keys = [_key(text) for text in texts]
        new, old = self._new, self._old
        known = [new.get(key) for key in keys]
        if None not in known:
            return known  # type: ignore[return-value]
        found = {key: old[key] for key, count in zip(keys, known, strict=True) if count is None and key in old}
        missing = {
            key: text for key, text, count in zip(keys, texts, known, strict=True) if count is None and key not in found
        }
        if missing:
            found.update(zip(missing, self._ask(list(missing.values())), strict=True))
        self._hold(found, len(missing))
        return [found[key] if count is None else count for key, count in zip(keys, known, strict=True)]

    def _ask(self, texts: list[str]) -> list[int]:
        """Counts of texts that are not held; what the counter raises passes through."""
        name, returned = self._counter.name, self._counter.count_many(texts)
        try:
            values = list(returned)
        except TypeError:
            raise CounterError(
                f"counter {name!r} must return a sequence of counts, got a value of type {type(returned).__name__}"
            ) from None
        if len(values) != len(texts):
            raise CounterError(f"counter {name!r} must return {len(texts)} counts for as many texts, got {len(values)}")
        return [checked_count(value, name, text) for value, text in zip(values, texts, strict=True)]

    def _hold(self, counts: dict[_Key, int], asked: int) -> None:
        most = self._max_bytes // 2
        with self._lock:
            self._asked += asked
            for key, count in counts.items():
                size = sys.getsizeof(key) + _ENTRY
                if size > most or key in self._new:
                    continue
                if self._bytes + size > most:
                    self._new, self._old, self._bytes = {}, self._new, 0
                self._new[key] = count
                self._bytes += size

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or one in another process, starts empty or is the one that is shared there: a lock cannot be copied.
        if _shared.get(_identity(self._counter)) is self:
            return shared_cache, (self._counter,)
        return CountCache, (self._counter, self._max_bytes)

    def __repr__(self) -> str:
        return f"CountCache({self._counter!r}, max_bytes={self._max_bytes})"


_shared: WeakValueDictionary[Hashable, CountCache] = WeakValueDictionary()
# The library's own counters hold nothing of a caller's, so their caches outlive a session: the last of them.
_kept: dict[Hashable, CountCache] = {}
_KEPT = 8
_sharing = Lock()


def shared_cache(counter: Counter) -> CountCache:
    """The cache that sessions and threads share for this counter, or one equal to it.

    Caches of the library's own counters stay, the last eight; that of another lives as long as somebody holds it.
    """
    identity = _identity(counter)
    with _sharing:
        cache = _shared.get(identity)
        if cache is None:
            cache = _shared[identity] = CountCache(counter)
            if isinstance(counter, BackendCounter | EstimateCounter):
                _kept[identity] = cache
                if len(_kept) > _KEPT:
                    del _kept[next(iter(_kept))]
        return cache


def _identity(counter: Counter) -> Hashable:
    """What counters have in common that surely count alike: ours by their values, any other is like itself alone.

    A cache holds its counter, so that no other object has the id of that, or of its function, meanwhile.
    """
    kind = type(counter)
    if kind is FunctionCounter and isinstance(counter, FunctionCounter):
        function = counter.function
        of: Hashable = id(function)
        # A method is another object each time one looks at it.
        if isinstance(function, MethodType):
            of = id(function.__self__), id(function.__func__)
        return kind, of, counter.name, counter.exact, counter.framing, id(counter.bounds)
    return (kind, counter) if kind in (BackendCounter, EstimateCounter) else id(counter)
