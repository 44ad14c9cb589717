"""Effects: what a strategy's core asks of the world, and the two drivers that answer.

A core that needs something from outside yields an :class:`Effect` and gets the answer back. It is
written once; :func:`run` answers in a plain call, :func:`arun` in an async one.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

import attrs

from ._errors import StrategyError
from ._validators import a_bool, a_callable

T = TypeVar("T")


class _Unplanned(enum.Enum):
    """Says that nobody gave a planned answer, since None may be one."""

    UNPLANNED = "unplanned"


@attrs.frozen
class Effect:
    """Call this function and give the result back: ``answer = yield Effect(function, (argument,))``.

    The function may be async where the strategy is run by ``acompact``. What it raises is raised at
    the ``yield``. ``planned`` is what stands for the answer in a plan, in which nothing is called; without one a plan
    ends there. ``blocking``: it may take long and is no coroutine, so that in an async run it is called in a thread.
    """

    function: Callable[..., Any] = attrs.field(validator=a_callable)
    args: tuple[Any, ...] = ()
    planned: Any = attrs.field(default=_Unplanned.UNPLANNED, kw_only=True)
    blocking: bool = attrs.field(default=False, kw_only=True, validator=a_bool)

    def __call__(self) -> Any:
        """Call it."""
        return self.function(*self.args)


Core = Generator[Effect, Any, T]


def run_planned(core: Core[Any]) -> bool:
    """Answer a core's effects as a plan does, calling nothing; whether it ended where there is no planned answer."""
    answer: Any = None
    try:
        while True:
            effect = _checked(core.send(answer))
            if effect.planned is _Unplanned.UNPLANNED:
                return True
            answer = effect.planned
    except StopIteration:
        return False
    finally:
        core.close()


def run(core: Core[T]) -> T:
    """Answer a core's effects in a plain call."""
    resume = partial(core.send, None)
    try:
        while True:
            effect = _checked(resume())
            try:
                answer = effect()
            except Exception as error:
                resume = partial(core.throw, error)
                continue
            if inspect.isawaitable(answer):
                if inspect.iscoroutine(answer):
                    answer.close()
                raise StrategyError(f"{effect.function!r} is async: use acompact or areduce, not compact or reduce")
            resume = partial(core.send, answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        core.close()


async def arun(core: Core[T]) -> T:
    """Answer a core's effects in an async call, awaiting what is awaitable."""
    import asyncio  # A program that never calls this need not load it.

    resume = partial(core.send, None)
    try:
        while True:
            effect = _checked(resume())
            try:
                answer = await asyncio.to_thread(effect) if effect.blocking else effect()
                if inspect.isawaitable(answer):
                    answer = await answer
            except Exception as error:
                resume = partial(core.throw, error)
                continue
            resume = partial(core.send, answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        # Also on a cancellation: the core sees it as it unwinds, and undoes what it did (rule K9).
        core.close()


def _checked(effect: object) -> Effect:
    if not isinstance(effect, Effect):
        raise StrategyError(f"compact_core must yield effects, got {effect!r}")
    return effect
