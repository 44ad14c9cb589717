"""Effects: a core is written once, and answered by a plain driver or an async one (rule K9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import said, user

HISTORY = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]


def index_of() -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(HISTORY, counter=characters_counter())


@attrs.frozen(kw_only=True)
class Asking(cc.CompactionStrategy):
    """Excludes a group, asks a function, and excludes as many more as it says."""

    trigger: cc.Predicate = cc.always
    target: cc.Predicate = cc.never
    min_preserved_groups: int = 1
    function: Callable[..., Any] = attrs.field(kw_only=False)
    args: tuple[Any, ...] = attrs.field(default=(), kw_only=False)
    forgives: bool = False

    def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
        first, *others = self.candidates(index)
        index.exclude(first, "before asking")
        try:
            answer = yield cc.Effect(self.function, self.args)
        except OSError:
            if not self.forgives:
                raise
            answer = 0
        for group in others[:answer]:
            index.exclude(group, "as answered")


def compact(strategy: cc.CompactionStrategy, index: cc.MessageIndex, is_async: bool) -> cc.CompactionReport:
    """Through one of the two drivers."""
    if is_async:
        return asyncio.run(strategy.acompact(index, hooks=()))
    return strategy.compact(index, hooks=())


both = pytest.mark.parametrize("is_async", [False, True], ids=["compact", "acompact"])


async def answer_later(number: int) -> int:
    await asyncio.sleep(0)
    return number


async def fail_later() -> int:
    await asyncio.sleep(0)
    raise OSError("no network")


def fail() -> int:
    raise OSError("no network")


@both
def test_the_answer_comes_back_at_the_yield(is_async: bool) -> None:
    """A plain function is called with its arguments, in a plain call and in an async one."""
    index = index_of()
    compact(Asking(max, (1, 2)), index, is_async)
    assert index.included_positions() == [3, 4, 5]


def test_an_async_function_is_awaited() -> None:
    """In ``acompact``; anything awaitable will do."""
    index = index_of()
    compact(Asking(answer_later, (2,)), index, is_async=True)
    assert index.included_positions() == [3, 4, 5]

    class Later:
        def __await__(self) -> Generator[Any, None, int]:
            return answer_later(1).__await__()

    other = index_of()
    compact(Asking(Later), other, is_async=True)
    assert other.included_positions() == [2, 3, 4, 5]


def test_an_async_function_in_a_plain_call_is_refused() -> None:
    """The error says what to call instead; the coroutine is closed, and the index is as it was."""
    index = index_of()
    before = index.snapshot()
    with pytest.raises(
        cc.StrategyError, match=r"answer_later.* is async: use acompact or areduce, not compact or reduce"
    ):
        compact(Asking(answer_later, (2,)), index, is_async=False)
    assert index.snapshot() == before


@both
def test_what_the_function_raises_is_raised_at_the_yield(is_async: bool) -> None:
    """The core may go on without the answer ..."""
    index = index_of()
    report = compact(Asking(fail_later if is_async else fail, forgives=True), index, is_async)
    assert index.included_positions() == [1, 2, 3, 4, 5]
    assert report.changed


@both
def test_what_the_core_does_not_forgive_undoes_the_pass(is_async: bool) -> None:
    """... or not: K9, all or nothing."""
    index = index_of()
    before = index.snapshot()
    with pytest.raises(OSError, match="no network"):
        compact(Asking(fail_later if is_async else fail), index, is_async)
    assert index.snapshot() == before
    # And the index is free for the next pass.
    assert compact(Asking(max, (1, 2)), index, is_async).changed


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@both
def test_an_interruption_undoes_the_pass(error: type[BaseException], is_async: bool) -> None:
    """K9: also what is no Exception; the core cannot forgive it."""

    def interrupt() -> None:
        raise error

    index = index_of()
    before = index.snapshot()
    with pytest.raises(error):
        compact(Asking(interrupt, forgives=True), index, is_async)
    assert index.snapshot() == before
    assert compact(Asking(max, (1, 2)), index, is_async).changed


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration], ids=lambda error: error.__name__)
def test_a_function_that_raises_stop_iteration_does_not_end_the_core(error: type[Exception]) -> None:
    """It would look like a return; it must be an error."""

    def stop() -> None:
        raise error

    index = index_of()
    before = index.snapshot()
    with pytest.raises((RuntimeError, error)):
        compact(Asking(stop), index, is_async=False)
    assert index.snapshot() == before


def test_a_cancellation_undoes_the_pass() -> None:
    """K9: in the middle of an effect, the index is as it was, and the cancellation goes on to the caller."""
    index = index_of()
    before = index.snapshot()

    async def main() -> None:
        begun = asyncio.Event()

        async def forever() -> int:
            begun.set()
            await asyncio.sleep(3600)
            return 0

        task = asyncio.ensure_future(Asking(forever, forgives=True).acompact(index, hooks=()))
        await begun.wait()
        assert index.included_positions() == [1, 2, 3, 4, 5]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert index.snapshot() == before
    assert compact(Asking(max, (1, 2)), index, is_async=False).changed


def test_an_index_is_compacted_once_at_a_time() -> None:
    """While a pass waits for an answer, nobody may pull the ground from under it."""
    index = index_of()

    async def meddle() -> int:
        for method in (index.extend, index.update):
            with pytest.raises(cc.CompactionError, match="the index is being compacted and cannot be"):
                method([*HISTORY, user("six")])
        with pytest.raises(cc.CompactionError, match="the index is being compacted"):
            index.refresh()
        with pytest.raises(cc.CompactionError, match="the index is being compacted"):
            await Asking(max, (1, 2)).acompact(index, hooks=())
        return 1

    assert compact(Asking(meddle), index, is_async=True).changed
    assert index.included_positions() == [2, 3, 4, 5]


@pytest.mark.parametrize("effect", [None, 7, len, "effect"], ids=str)
def test_a_core_yields_effects_and_nothing_else(effect: Any) -> None:
    """The error shows what was yielded; the index is as it was."""

    class Yielding(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[Any, Any, None]:
            index.exclude(self.candidates(index)[0], "before")
            yield effect

    index = index_of()
    before = index.snapshot()
    with pytest.raises(cc.StrategyError) as caught:
        Yielding(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert str(caught.value) == f"compact_core must yield effects, got {effect!r}"
    assert index.snapshot() == before


def test_a_core_that_ignores_its_end_is_still_undone() -> None:
    """K9: a core that goes on after a cancellation is an error, and its changes go all the same."""

    class Stubborn(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
            index.exclude(self.candidates(index)[0], "before")
            try:
                yield cc.Effect(interrupt)
            except BaseException:
                yield cc.Effect(max, (1, 2))

    def interrupt() -> None:
        raise KeyboardInterrupt

    index = index_of()
    before = index.snapshot()
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        Stubborn(trigger=cc.always, target=cc.never, min_preserved_groups=1).compact(index, hooks=())
    assert index.snapshot() == before


@pytest.mark.parametrize("function", [None, 7, "len"], ids=str)
def test_an_effect_calls_something(function: Any) -> None:
    with pytest.raises(TypeError, match=rf"^function must be callable, got {function!r}$"):
        cc.Effect(function)


def test_an_effect_is_a_value() -> None:
    """Frozen and equal to its equal; calling it calls the function."""
    effect = cc.Effect(max, (1, 2))
    assert effect == cc.Effect(max, (1, 2))
    assert effect() == 2
    with pytest.raises(AttributeError):
        effect.args = ()  # type: ignore[misc]


def test_an_async_reducer_answers_areduce() -> None:
    """The same through a reducer."""

    async def later(messages: list[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return messages[-2:]

    strategy = cc.ReducerStrategy(later, cc.messages > 2, min_preserved_groups=1)
    reducer = cc.as_chat_reducer(strategy, hooks=())
    assert asyncio.run(reducer.areduce(HISTORY)) == HISTORY[-2:]
    with pytest.raises(cc.StrategyError, match="use acompact or areduce"):
        reducer.reduce(HISTORY)


def test_awaitables_that_are_no_coroutines_are_refused_in_a_plain_call() -> None:
    class Later:
        def __await__(self) -> Any: ...

    later: Callable[[], Awaitable[Any]] = Later
    with pytest.raises(cc.StrategyError, match="is async"):
        compact(Asking(later), index_of(), is_async=False)
