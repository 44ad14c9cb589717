"""Calls to a summarizer that are shared: the same request is made once, by whoever is first.

Others who want the same meanwhile wait for that answer, in threads and in tasks alike, and the last few answers
are remembered. Who waits for a call that was cancelled makes it anew.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from functools import partial
from threading import Lock, Thread
from typing import Any

import attrs

from ._request import SummaryRequest

_REMEMBERED = 16
"""How many answers are remembered."""
_Summarizer = Callable[[SummaryRequest], Any]


@attrs.frozen
class _Landed:
    """How a call ended: with an answer, with an error, or (neither) because whoever made it was cancelled."""

    answer: Any = None
    error: Exception | None = None
    abandoned: bool = False

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


@attrs.define(eq=False)
class _Flight:
    """A call under way."""

    is_async: bool = False
    landed: Future[_Landed] = attrs.field(init=False, factory=Future)

    def __attrs_post_init__(self) -> None:
        # Who waits may be cancelled; what runs is not cancelled with it.
        self.landed.set_running_or_notify_cancel()


def is_async(summarizer: _Summarizer) -> bool:
    """Whether calling it gives a coroutine."""
    call = getattr(summarizer, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(call)


class SharedCalls:
    """The calls of one strategy under way, and the last answers; safe in threads and in tasks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flights: dict[str, _Flight] = {}
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def ask(self, summarizer: _Summarizer, request: SummaryRequest, timeout: float | None) -> Any:
        """The answer, or an awaitable of it where the summarizer is async or another task is asking it."""
        if is_async(summarizer):
            return self._fly(partial(summarizer, request), request, timeout)
        while True:
            known, flight, mine = self._claim(request)
            if known:
                return known[0]
            if mine:
                return self._lead(flight, summarizer, request, timeout)
            if flight.is_async:
                return self._fly(partial(summarizer, request), request, timeout)
            landed = flight.landed.result()
            if not landed.abandoned:
                return landed.result()

    def forget(self, request: SummaryRequest) -> None:
        """Ask anew the next time: the answer was of no use."""
        with self._lock:
            self._answers.pop(request.digest, None)

    def _claim(self, request: SummaryRequest, *, is_async: bool = False) -> tuple[tuple[Any, ...], _Flight, bool]:
        """What is known, in a tuple; else the call under way, and whether it is the caller's to make."""
        digest = request.digest
        with self._lock:
            if digest in self._answers:
                self._answers.move_to_end(digest)
                return (self._answers[digest],), _Flight(), False
            flight = self._flights.get(digest)
            if flight is not None:
                return (), flight, False
            flight = self._flights[digest] = _Flight(is_async=is_async)
            return (), flight, True

    def _land(self, request: SummaryRequest, flight: _Flight, landed: _Landed) -> None:
        with self._lock:
            del self._flights[request.digest]
            if landed.error is None and not landed.abandoned:
                self._answers[request.digest] = landed.answer
                while len(self._answers) > _REMEMBERED:
                    self._answers.popitem(last=False)
        flight.landed.set_result(landed)

    def _lead(self, flight: _Flight, summarizer: _Summarizer, request: SummaryRequest, timeout: float | None) -> Any:
        try:
            answer = _called(summarizer, request, timeout)
        except BaseException as error:
            self._land(request, flight, _ended(error))
            raise
        if inspect.isawaitable(answer):
            # Nobody may ever await it, so nobody shall wait for it before somebody does.
            self._land(request, flight, _Landed(abandoned=True))
            return self._fly(lambda: answer, request, timeout, made=answer)
        self._land(request, flight, _Landed(answer))
        return answer

    async def _fly(
        self, make: Callable[[], Any], request: SummaryRequest, timeout: float | None, made: Any = None
    ) -> Any:
        """Make an async call for all who want its answer, or wait for that of another; ``made`` may be it already."""
        while True:
            known, flight, mine = self._claim(request, is_async=True)
            if mine:
                break
            landed = _Landed(known[0]) if known else await _waited(flight)
            if not landed.abandoned:
                if inspect.iscoroutine(made):
                    made.close()
                return landed.result()
        try:
            answer = make()
            if inspect.isawaitable(answer):
                answer = await (answer if timeout is None else _in_time(answer, timeout))
        except BaseException as error:
            self._land(request, flight, _ended(error))
            raise
        self._land(request, flight, _Landed(answer))
        return answer


async def _waited(flight: _Flight) -> _Landed:
    return await asyncio.wrap_future(flight.landed)


async def _in_time(awaitable: Awaitable[Any], timeout: float) -> Any:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await awaitable
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _too_late(timeout) from error


def _too_late(timeout: float) -> TimeoutError:
    return TimeoutError(f"the summarizer gave no answer within {timeout:g} s")


def _ended(error: BaseException) -> _Landed:
    """An error is everybody's; a cancellation or an interrupt is only that of whoever made the call."""
    return _Landed(error=error) if isinstance(error, Exception) else _Landed(abandoned=True)


def _called(summarizer: _Summarizer, request: SummaryRequest, timeout: float | None) -> Any:
    """Call it; where there is a time limit, in a thread of its own, which is left to itself when the time is over."""
    if timeout is None:
        return summarizer(request)
    landed: Future[Any] = Future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            landed.set_result(context.run(summarizer, request))
        except BaseException as error:
            landed.set_exception(error)

    Thread(target=call, name="summarizer", daemon=True).start()
    wait([landed], timeout)
    if not landed.done():
        raise _too_late(timeout)
    return landed.result()
