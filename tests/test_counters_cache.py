"""The cache of counts."""

import threading
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.counters import CountCache, CounterError, EstimateCounter, FunctionCounter


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


def test_the_oldest_texts_are_forgotten() -> None:
    """What is held is bounded by its total length, oldest out first."""
    counter = Recorder()
    cache = CountCache(counter, max_characters=5)
    cache.count_many(["aa", "bb"])
    cache.count_many(["ccc"])  # makes seven: "aa" goes
    cache.count_many(["bb", "ccc"])
    assert cache.asked == 3
    cache.count_many(["aa"])
    assert counter.batches[-1] == ["aa"]


def test_a_text_above_the_bound_is_counted_and_not_held() -> None:
    """One huge text does not empty the cache."""
    counter = Recorder()
    cache = CountCache(counter, max_characters=3)
    cache.count_many(["ab"])
    assert cache.count_many(["x" * 4, "ab"]) == [4, 2]
    assert cache.count_many(["x" * 4, "ab"]) == [4, 2]
    assert counter.batches == [["ab"], ["xxxx"], ["xxxx"]]


def test_a_batch_larger_than_the_bound_is_counted_right() -> None:
    """Answers come from the batch, not from what is still held of it."""
    cache = CountCache(Recorder(), max_characters=2)
    assert cache.count_many(["a", "bb", "c", "a"]) == [1, 2, 1, 1]


def test_zero_holds_only_the_empty_text() -> None:
    """A bound of 0 is legal, and turns remembering off."""
    cache = CountCache(Recorder(), max_characters=0)
    assert cache.count_many(["a"]) == cache.count_many(["a"]) == [1]
    assert cache.asked == 2


@given(st.lists(st.lists(st.text(max_size=4), max_size=6), max_size=8), st.integers(0, 12))
def test_counts_are_those_of_the_counter(batches: list[list[str]], bound: int) -> None:
    """Whatever is remembered or forgotten, the counts are the counter's own; and no more is held than allowed."""
    counter = Recorder()
    cache = CountCache(counter, max_characters=bound)
    for batch in batches:
        assert cache.count_many(batch) == list(map(len, batch))
        assert sum(map(len, cache._counts)) == cache._characters <= bound
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
        (-1, ValueError, "max_characters must be 0 or more, got -1"),
        (True, TypeError, "max_characters must be an int of 0 or more, got True"),
        (1.5, TypeError, "max_characters must be an int of 0 or more, got 1.5"),
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
    assert repr(cache) == "CountCache(EstimateCounter(), max_characters=10)"


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
    """Many threads, a small bound, constant eviction: every answer is right, and the books balance."""
    cache = CountCache(FunctionCounter(len), max_characters=40)
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
    assert sum(map(len, cache._counts)) == cache._characters <= 40


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
