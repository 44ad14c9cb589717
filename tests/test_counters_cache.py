"""The cache of counts."""

import gc
import pickle
import threading
import tracemalloc
import weakref
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.counters import CountCache, CounterError, EstimateCounter, FunctionCounter, shared_cache


@attrs.define
class Recorder:
    """Counts characters and remembers each batch that it was asked."""

    name: str = "recorder"
    exact: bool = False
    batches: list[list[str]] = attrs.field(factory=list)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        self.batches.append(list(texts))
        return list(map(len, texts))


@attrs.define
class Returns:
    """Returns what it was told to."""

    value: Any
    name: str = "odd"
    exact: bool = False

    def count_many(self, texts: Sequence[str]) -> Any:
        return self.value


class Index:
    """An int of another library, such as numpy's."""

    def __index__(self) -> int:
        return 7


def test_no_text_is_counted_twice() -> None:
    """C2: a count is remembered by content; a text that stands twice in a batch is asked once."""
    counter = Recorder()
    cache = CountCache(counter)
    assert cache.count_many(["aa", "b", "aa", ""]) == [2, 1, 2, 0]
    assert cache.count_many(["b", "ccc", "".join(["a", "a"])]) == [1, 3, 2]
    assert counter.batches == [["aa", "b", ""], ["ccc"]]
    assert cache.asked == 4


def test_nothing_new_asks_nothing() -> None:
    """The counter is not called at all for what is known, nor for nothing."""
    counter = Recorder()
    cache = CountCache(counter)
    assert cache.count_many([]) == []
    cache.count_many(["a"])
    cache.count_many(["a", "a"])
    assert counter.batches == [["a"]]


def test_a_count_of_zero_is_remembered() -> None:
    """Zero is a count, not a gap."""
    counter = Recorder()
    cache = CountCache(counter)
    assert [cache.count_many([""]), cache.count_many([""])] == [[0], [0]]
    assert cache.asked == 1


def test_each_cache_has_its_counter() -> None:
    """C2: counters never share counts."""
    one, two = CountCache(FunctionCounter(len)), CountCache(FunctionCounter(lambda text: 2 * len(text)))
    assert one.count_many(["ab"]) == [2]
    assert two.count_many(["ab"]) == [4]
    assert one.counter == FunctionCounter(len)


ENTRY = 300
"""About what a short text takes in the memory of a cache; a bound of ten of them holds five to ten."""


def test_what_was_not_asked_for_longest_is_forgotten() -> None:
    """Memory is bounded: old texts go, unless they are asked for again and again."""
    counter = Recorder()
    cache = CountCache(counter, max_bytes=10 * ENTRY)
    for number in range(100):
        cache.count_many(["often", f"once {number}"])
    assert sum(batch.count("often") for batch in counter.batches) == 1
    asked = cache.asked
    cache.count_many(["often", "once 99"])
    assert cache.asked == asked
    cache.count_many(["once 0"])
    assert cache.asked == asked + 1


@pytest.mark.parametrize(
    ("size", "letter"), [(8, "x"), (100, "\u00e9"), (512, "\u4e2d"), (512, "\U0001f600"), (513, "x"), (5_000, "\u4e2d")]
)
def test_the_bound_is_one_of_memory(size: int, letter: str) -> None:
    """Keys, numbers and tables: all that a cache takes stays below its bound, at its peak, however long texts are."""
    bound = 200_000
    cache = CountCache(FunctionCounter(lambda text: 1_000 + len(text)), max_bytes=bound)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3_000):
            cache.count_many([f"{number:06d}".ljust(size, letter)])
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert bound / 10 < after - before < bound


def test_long_texts_are_not_kept_alive() -> None:
    """A cache knows a long text by its digest: what the caller drops is gone, and is known when it comes again."""
    cache = CountCache(Recorder())
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache.count_many(["x" * 5_000_000])
        cache.counter.batches.clear()  # type: ignore[attr-defined]
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
    assert cache.count_many(["x" * 5_000_000]) == [5_000_000]
    assert cache.asked == 1


def test_texts_that_differ_little_are_told_apart() -> None:
    """C2: by the whole content, surrogates included; the digest of a text is no text."""
    counter = FunctionCounter(lambda text: sum(map(ord, text)))
    cache = CountCache(counter)
    long = "a" * 1_000
    texts = [long, long + "b", long + "\ud83d\ude00", long + "\U0001f600", long + "\ufffd", long + "\ud800", "", "a"]
    expected = counter.count_many(texts)
    assert cache.count_many(texts) == cache.count_many(texts) == expected
    assert cache.asked == len(texts)


def test_a_batch_larger_than_the_bound_is_counted_right() -> None:
    """Answers come from the batch, not from what is still held of it."""
    cache = CountCache(Recorder(), max_bytes=2 * ENTRY)
    assert cache.count_many(["a", "bb", "c", "a", "dd", "e"]) == [1, 2, 1, 1, 2, 1]


def test_zero_turns_remembering_off() -> None:
    """A bound of 0 is legal, and what has no room is counted anew."""
    cache = CountCache(Recorder(), max_bytes=0)
    assert cache.count_many(["a"]) == cache.count_many(["a"]) == [1]
    assert cache.asked == 2


@given(st.lists(st.lists(st.text(max_size=4), max_size=6), max_size=8), st.integers(0, 12))
def test_counts_are_those_of_the_counter(batches: list[list[str]], entries: int) -> None:
    """Whatever is remembered or forgotten, the counts are the counter's own, and no text is asked twice in a batch."""
    counter = Recorder()
    cache = CountCache(counter, max_bytes=entries * ENTRY)
    for batch in batches:
        assert cache.count_many(batch) == list(map(len, batch))
    assert cache.asked == sum(map(len, counter.batches))
    assert all(batch and len(set(batch)) == len(batch) for batch in counter.batches)


@pytest.mark.parametrize("returned", [(7, 7), iter([7, 7]), {7: "a", 8: "b"}.keys(), [Index(), 7]])
def test_any_iterable_of_integers_will_do(returned: Any) -> None:
    """A counter may return what it likes, if it holds integers, such as an array of numpy."""
    counts = CountCache(Returns(returned)).count_many(["a", "b"])
    assert counts[0] == 7
    assert {type(count) for count in counts} == {int}


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ([1], "counter 'odd' must return 2 counts for as many texts, got 1"),
        ([1, 2, 3], "counter 'odd' must return 2 counts for as many texts, got 3"),
        (None, "counter 'odd' must return a sequence of counts, got a value of type NoneType"),
        (3, "counter 'odd' must return a sequence of counts, got a value of type int"),
        ([1, -2], "counter 'odd' must return an int of 0 or more for each text, got -2 for a text of 3 characters"),
        ([True, 2], "counter 'odd' must return an int of 0 or more for each text, got True for a text of 1 characters"),
        ([1, 2.0], "counter 'odd' must return an int of 0 or more for each text, got 2.0 for a text of 3 characters"),
    ],
)
def test_what_is_no_count_is_refused(returned: Any, text: str) -> None:
    """A counter that returns something else is named, with what it returned; nothing of it is remembered."""
    counter = Returns(returned)
    cache = CountCache(counter)
    with pytest.raises(CounterError) as caught:
        cache.count_many(["a", "bcd"])
    assert str(caught.value) == text
    counter.value = [1, 3]
    assert cache.count_many(["a", "bcd"]) == [1, 3]


def test_what_the_counter_raises_passes_through() -> None:
    """The caller sees the counter's own error, and may try again."""

    class Down(Recorder):
        def count_many(self, texts: Sequence[str]) -> list[int]:
            if not self.batches:
                self.batches.append([])
                raise ConnectionError("down")
            return super().count_many(texts)

    cache = CountCache(Down())
    with pytest.raises(ConnectionError, match="down"):
        cache.count_many(["a"])
    assert cache.asked == 0
    assert cache.count_many(["a"]) == [1]


@pytest.mark.parametrize(
    ("bound", "error", "text"),
    [
        (-1, ValueError, "max_bytes must be 0 or more, got -1"),
        (True, TypeError, "max_bytes must be an int of 0 or more, got True"),
        (1.5, TypeError, "max_bytes must be an int of 0 or more, got 1.5"),
    ],
)
def test_wrong_bounds(bound: Any, error: type[Exception], text: str) -> None:
    """Wrong arguments fail at construction."""
    with pytest.raises(error) as caught:
        CountCache(EstimateCounter(), bound)
    assert str(caught.value) == text


def test_repr() -> None:
    """The repr shows the counter and the bound, no texts."""
    cache = CountCache(EstimateCounter(), 10)
    cache.count_many(["private"])
    assert repr(cache) == "CountCache(EstimateCounter(), max_bytes=10)"


def test_counting_does_not_hold_the_lock() -> None:
    """While one thread counts, another gets what is known: only the bookkeeping is locked."""
    entered, release = threading.Event(), threading.Event()

    def slow(text: str) -> int:
        if text == "slow":
            entered.set()
            assert release.wait(30)
        return len(text)

    cache = CountCache(FunctionCounter(slow))
    cache.count_many(["known"])
    thread = threading.Thread(target=cache.count_many, args=(["slow"],))
    thread.start()
    try:
        assert entered.wait(30)
        assert cache.count_many(["known"]) == [5]
    finally:
        release.set()
        thread.join()
    assert cache.asked == 2


def test_threads_share_a_cache() -> None:
    """Many threads, a small bound, constant eviction: every answer is right."""
    cache = CountCache(FunctionCounter(len), max_bytes=10 * ENTRY)
    texts = ["x" * size for size in range(12)]
    wrong: list[list[int]] = []

    def work(offset: int) -> None:
        for step in range(200):
            batch = [texts[(offset * 5 + step * stride) % 12] for stride in (1, 2, 3)]
            counts = cache.count_many(batch)
            if counts != list(map(len, batch)):
                wrong.append(counts)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("size", [500, 4_000])
def test_growth(size: int) -> None:
    """K13: a session that grows text by text asks the counter once for each, however long it is."""
    counter = Recorder()
    cache = CountCache(counter)
    texts: list[str] = []
    for position in range(size):
        texts.append(str(position))
        cache.count_many(texts[-3:])
    assert cache.asked == size
    assert len(counter.batches) == size


class TestShared:
    def test_the_same_or_an_equal_counter_has_one_cache(self) -> None:
        """C2: sessions share what one counter said, whoever asked."""
        cache = shared_cache(FunctionCounter(len))
        assert shared_cache(FunctionCounter(len)) is cache
        assert shared_cache(FunctionCounter(len, name="other")) is not cache
        assert shared_cache(EstimateCounter()) is shared_cache(EstimateCounter())

    def test_counters_that_cannot_be_hashed(self) -> None:
        """By the object then: two that are equal now may differ later."""
        one, two = Recorder(), Recorder()
        cache = shared_cache(one)
        assert shared_cache(one) is cache
        assert shared_cache(two) is not cache

    def test_counters_of_two_classes_never_share(self) -> None:
        """C2, even where a counter says that it is equal to another."""

        class Same:
            name, exact = "same", False

            def __init__(self, factor: int) -> None:
                self.factor = factor

            def count_many(self, texts: Sequence[str]) -> list[int]:
                return [self.factor * len(text) for text in texts]

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 1

        class Other(Same):
            pass

        one, two = shared_cache(Same(1)), shared_cache(Other(2))
        assert one.count_many(["ab"]) == [2]
        assert two.count_many(["ab"]) == [4]

    def test_nothing_is_kept_of_a_callers_counter(self) -> None:
        """A cache and its counter go with the last session that held them."""

        def count(text: str) -> int:
            return len(text)

        function = weakref.ref(count)
        cache = shared_cache(FunctionCounter(count))
        cache.count_many(["text"])
        del count, cache
        gc.collect()
        assert function() is None

    def test_the_librarys_own_counters_keep_theirs(self) -> None:
        """A second session finds what the first has counted, though that is gone."""
        text = "A text that no other test counts by the estimate."
        shared_cache(EstimateCounter()).count_many([text])
        gc.collect()
        asked = shared_cache(EstimateCounter()).asked
        shared_cache(EstimateCounter()).count_many([text])
        assert shared_cache(EstimateCounter()).asked == asked

    def test_however_many_there_are(self) -> None:
        """Counters that differ in a setting are bounded in number, each of them in memory."""
        first = weakref.ref(shared_cache(EstimateCounter(scale=2.0)))
        for number in range(20):
            shared_cache(EstimateCounter(scale=3.0 + number))
        gc.collect()
        assert first() is None

    def test_a_copy_is_the_shared_one(self) -> None:
        """In another process, too, there is one for all; a cache of one's own comes back empty, with its bound."""
        shared = shared_cache(EstimateCounter())
        assert pickle.loads(pickle.dumps(shared)) is shared  # noqa: S301
        own = CountCache(EstimateCounter(), 1_000)
        own.count_many(["text"])
        copied = pickle.loads(pickle.dumps(own))  # noqa: S301
        assert repr(copied) == repr(own)
        assert copied.asked == 0

    def test_threads_get_one(self) -> None:
        """Whoever comes first makes it."""
        counter = FunctionCounter(len, name="threads")
        start, found = threading.Barrier(8), []

        def work() -> None:
            start.wait(30)
            found.append(shared_cache(counter))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(map(id, found))) == 1


class Tripled(FunctionCounter):
    """Has a field more, which equality does not know."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [3 * count for count in super().count_many(texts)]


class Doubled(EstimateCounter):
    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [2 * count for count in super().count_many(texts)]


class Touchy:
    """Raises when it is compared or put into a dict."""

    name, exact = "touchy", False

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")

    def __call__(self, text: str) -> int:
        return len(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return list(map(self, texts))


def test_only_what_surely_counts_alike_shares() -> None:
    """C2: a subclass may count otherwise, and equality may compare too little, or raise."""
    caches = [shared_cache(counter) for counter in (FunctionCounter(len), Tripled(len), Tripled(len))]
    assert len({id(cache) for cache in caches}) == 3
    assert shared_cache(Doubled()) is not shared_cache(EstimateCounter())
    assert shared_cache(Doubled()).count_many(["a few words"]) == [2 * EstimateCounter().count_many(["a few words"])[0]]
    touchy = Touchy()
    first = shared_cache(touchy)
    assert shared_cache(touchy) is first
    of_function = shared_cache(FunctionCounter(touchy))
    assert shared_cache(FunctionCounter(touchy)) is of_function
    assert of_function is not first


class Length:
    def of(self, text: str) -> int:
        return len(text)


def test_a_method_is_one_counter() -> None:
    """It is another object each time one looks at it, and another one for another owner."""
    one, other = Length(), Length()
    cache = shared_cache(FunctionCounter(one.of))
    assert shared_cache(FunctionCounter(one.of)) is cache
    assert shared_cache(FunctionCounter(other.of)) is not cache


@pytest.mark.parametrize("counter", [5, len, "o200k_base", None])
def test_a_cache_is_of_a_counter(counter: Any) -> None:
    with pytest.raises(TypeError, match="counter must be a Counter"):
        CountCache(counter)
