"""Shared calls: the same request is made once, in threads and in tasks, and nobody waits for what was cancelled."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chat_compaction._summarizing import SummaryRequest
from chat_compaction._summarizing._memory import Memory
from chat_compaction._summarizing._sharing import SharedCalls

ONE, OTHER = (SummaryRequest(instructions="", text=text, max_tokens=9) for text in ("one", "other"))


class Gate:
    """A summarizer that answers when the gate is opened, and knows how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, request: SummaryRequest) -> str:
        self.asked.append(request.text)
        self.reached.set()
        assert self.opened.wait(10)
        return f"summary of {request.text}"


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_threads_share_one_call() -> None:
    """Another request is another call."""
    gate, calls = Gate(), SharedCalls()
    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(calls.ask, gate, ONE, None)
        assert gate.reached.wait(10)
        others = [pool.submit(calls.ask, gate, ONE, None) for _ in range(3)]
        other = pool.submit(calls.ask, gate, OTHER, None)
        gate.opened.set()
        assert {future.result(10) for future in (first, *others)} == {"summary of one"}
        assert other.result(10) == "summary of other"
    assert sorted(gate.asked) == ["one", "other"]


def test_an_answer_is_remembered_until_it_was_of_no_use() -> None:
    asked: list[str] = []
    calls = SharedCalls()

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request.text)
        return f"{request.text} {len(asked)}"

    assert [calls.ask(summarizer, ONE, None) for _ in range(2)] == ["one 1", "one 1"]
    calls.forget(ONE)
    calls.forget(OTHER)
    assert calls.ask(summarizer, ONE, None) == "one 2"


def test_few_answers_are_remembered() -> None:
    """The oldest one that nobody asked for is forgotten."""
    asked: list[str] = []
    calls = SharedCalls()

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request.text)
        return ""

    def ask(text: str) -> None:
        calls.ask(summarizer, SummaryRequest(instructions="", text=text, max_tokens=9), None)

    for number in range(16):
        ask(str(number))
    ask("0")
    ask("new")
    ask("0")
    assert asked == [*map(str, range(16)), "new"]
    ask("1")
    assert asked[-1] == "1"


def test_an_error_is_everybodys_and_is_not_remembered() -> None:
    gate, calls = Gate(), SharedCalls()

    def broken(request: SummaryRequest) -> str:
        gate(request)
        raise OSError("no connection")

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(calls.ask, broken, ONE, None)]
        assert gate.reached.wait(10)
        futures.append(pool.submit(calls.ask, broken, ONE, None))
        gate.opened.set()
        for future in futures:
            with pytest.raises(OSError, match="no connection"):
                future.result(10)
    assert calls.ask(lambda _: "fine", ONE, None) == "fine"


def test_who_waits_for_an_interrupted_call_makes_it_anew() -> None:
    """A keyboard interrupt is that of one caller."""
    gate, calls = Gate(), SharedCalls()

    def interrupted(request: SummaryRequest) -> str:
        gate(request)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(calls.ask, interrupted, ONE, None)
        assert gate.reached.wait(10)
        second = pool.submit(calls.ask, lambda _: "fine", ONE, None)
        gate.opened.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(10)
        assert second.result(10) == "fine"


# -- tasks -----------------------------------------------------------------------------------------------


class AsyncGate:
    """The same for tasks."""

    def __init__(self) -> None:
        self.asked = 0
        self.opened = asyncio.Event()

    async def __call__(self, request: SummaryRequest) -> str:
        self.asked += 1
        await self.opened.wait()
        return f"summary of {request.text}"


async def ask(calls: SharedCalls, summarizer: Callable[..., Any], timeout: float | None = None) -> Any:
    answer = calls.ask(summarizer, ONE, timeout)
    return await answer if isinstance(answer, Awaitable) else answer


def test_tasks_share_one_call() -> None:
    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        tasks = [asyncio.create_task(ask(calls, gate)) for _ in range(4)]
        await until(lambda: gate.asked)
        gate.opened.set()
        assert await asyncio.gather(*tasks) == ["summary of one"] * 4
        assert gate.asked == 1
        assert await ask(calls, gate) == "summary of one"
        assert gate.asked == 1

    asyncio.run(main())


@pytest.mark.parametrize("cancelled", [0, 2])
def test_a_cancelled_task_takes_nobody_along(cancelled: int) -> None:
    """Who made the call is cancelled: one of those who wait makes it anew. Who waits: the call goes on."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        tasks = [asyncio.create_task(ask(calls, gate)) for _ in range(4)]
        await until(lambda: gate.asked)
        await asyncio.sleep(0)
        tasks[cancelled].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[cancelled]
        gate.opened.set()
        others = [task for place, task in enumerate(tasks) if place != cancelled]
        assert await asyncio.gather(*others) == ["summary of one"] * 3
        assert gate.asked == (2 if cancelled == 0 else 1)

    asyncio.run(main())


def test_an_error_in_a_task_is_everybodys() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def broken(_: SummaryRequest) -> str:
            await started.wait()
            raise OSError("no connection")

        calls = SharedCalls()
        tasks = [asyncio.create_task(ask(calls, broken)) for _ in range(3)]
        await asyncio.sleep(0)
        started.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [OSError] * 3

    asyncio.run(main())


def test_an_async_answer_that_nobody_awaits_blocks_nobody() -> None:
    """A plain call refuses an async summarizer, and drops what it returned: others must not wait for that."""

    async def summarizer(_: SummaryRequest) -> str:
        return "fine"

    calls = SharedCalls()
    calls.ask(summarizer, ONE, None).close()
    assert asyncio.run(ask(calls, summarizer)) == "fine"


def test_two_that_were_called_before_either_was_awaited() -> None:
    """The second finds the call of the first under way, or its answer, and makes none."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        first, second, third = (calls.ask(gate, ONE, None) for _ in range(3))
        tasks = [asyncio.create_task(awaitable) for awaitable in (first, second)]
        await until(lambda: gate.asked)
        gate.opened.set()
        assert await asyncio.gather(*tasks) == ["summary of one"] * 2
        assert await third == "summary of one"
        assert gate.asked == 1

    asyncio.run(main())


def test_a_plain_function_that_returns_an_awaitable() -> None:
    """What a lambda over an async client does: the call is shared just the same, by tasks and by a later thread."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        summarizer = lambda request: gate(request)  # noqa: E731
        tasks = [asyncio.create_task(ask(calls, summarizer)) for _ in range(3)]
        await until(lambda: gate.asked)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        gate.opened.set()
        assert await asyncio.gather(*tasks[1:]) == ["summary of one"] * 2
        assert gate.asked == 2
        assert calls.ask(summarizer, ONE, None) == "summary of one"

    asyncio.run(main())


def test_a_function_that_is_async_now_and_then() -> None:
    """Who takes over from a cancelled call takes what it gets."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        tasks = [
            asyncio.create_task(ask(calls, lambda request: "plain" if gate.asked else gate(request))) for _ in "12"
        ]
        await until(lambda: gate.asked)
        tasks[0].cancel()
        assert await tasks[1] == "plain"

    asyncio.run(main())


def test_two_lambdas_that_were_called_before_either_was_awaited() -> None:
    """The one that is not needed is closed, not forgotten."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        gate.opened.set()
        first, second = (calls.ask(lambda request: gate(request), ONE, None) for _ in range(2))
        assert [await first, await second] == ["summary of one"] * 2
        assert gate.asked == 1

    asyncio.run(main())


def test_an_async_call_may_give_a_task() -> None:
    """Any awaitable will do; one that is not needed and no coroutine goes on by itself."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        gate.opened.set()
        started = [calls.ask(lambda request: asyncio.ensure_future(gate(request)), ONE, None) for _ in range(2)]
        assert [await awaitable for awaitable in started] == ["summary of one"] * 2

    asyncio.run(main())


def test_a_thread_waits_for_a_task_of_another_thread() -> None:
    """By the time it finds the call it is async, so it gets an awaitable, which its own loop awaits."""
    gate, calls = Gate(), SharedCalls()
    made: list[str] = []

    async def summarizer(request: SummaryRequest) -> str:
        made.append(request.text)
        return await asyncio.to_thread(gate, request)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: asyncio.run(ask(calls, summarizer)))
        assert gate.reached.wait(10)
        second = pool.submit(lambda: asyncio.run(ask(calls, summarizer)))
        time.sleep(0.01)
        gate.opened.set()
        assert {first.result(10), second.result(10)} == {"summary of one"}
    assert made == ["one"]


# -- time ------------------------------------------------------------------------------------------------


def test_a_time_limit_of_a_plain_call() -> None:
    """The call is left to itself in its thread; the next one is a new call."""
    gate, calls = Gate(), SharedCalls()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        calls.ask(gate, ONE, 0.01)
    gate.opened.set()
    assert calls.ask(gate, ONE, 10) == "summary of one"
    assert gate.asked == ["one", "one"]


def test_a_time_limit_of_an_async_call() -> None:
    """The call is cancelled; everybody who waits for it is told."""

    async def main() -> None:
        gate, calls = AsyncGate(), SharedCalls()
        results = await asyncio.gather(*(ask(calls, gate, 0.01) for _ in range(2)), return_exceptions=True)
        assert list(map(str, results)) == ["the summarizer gave no answer within 0.01 s"] * 2
        gate.opened.set()
        assert await ask(calls, gate, 10) == "summary of one"

    asyncio.run(main())


@pytest.mark.parametrize("is_async", [False, True])
def test_a_time_out_of_the_summarizers_own_is_its_own_error(is_async: bool) -> None:
    def plain(_: SummaryRequest) -> str:
        raise TimeoutError("the server says so")

    async def later(request: SummaryRequest) -> str:
        return plain(request)

    with pytest.raises(TimeoutError, match="the server says so"):
        asyncio.run(ask(SharedCalls(), later if is_async else plain, 10))


# -- failures in a row -----------------------------------------------------------------------------------


def test_failures_in_a_row_make_longer_and_longer_pauses() -> None:
    """From the third on, twice as long each, up to 32 times; a success forgets them all."""
    memory = Memory()
    waits = []
    for _ in range(10):
        memory.failed(100.0, max_failures=3, backoff=60)
        waits.append(memory.failures_and_wait(100.0)[1])
    assert waits == [0, 0, 60, 120, 240, 480, 960, 1920, 1920, 1920]
    assert memory.failures_and_wait(1_000.0) == (10, 1_020.0)
    assert memory.failures_and_wait(2_020.0) == (10, 0.0)
    memory.succeeded()
    assert memory.failures_and_wait(100.0) == (0, 0.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])  # noqa: S301
def test_a_copy_begins_with_nothing(copied: Callable[[Memory], Memory]) -> None:
    """A lock can't be copied, and calls under way can't either."""
    memory = Memory()
    memory.failed(0.0, max_failures=1, backoff=60)
    assert copied(memory).failures_and_wait(0.0) == (0, 0.0)
