"""Effects: what a strategy's core asks of the world, and the two drivers that answer.

A core that needs something from outside yields an :class:`Effect` and gets the answer back. It is
written once; :func:`run` answers in a plain call, :func:`arun` in an async one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

import attrs

from ._errors import StrategyError
from ._validators import a_callable

T = TypeVar("T")


@attrs.frozen
class Effect:
    """Call this function and give the result back: ``answer = yield Effect(function, (argument,))``.

    The function may be async where the strategy is run by ``acompact``. What it raises is raised at
    the ``yield``.
    """

    function: Callable[..., Any] = attrs.field(validator=a_callable)
    args: tuple[Any, ...] = ()

    def __call__(self) -> Any:
        """Call it."""
        return self.function(*self.args)


Core = Generator[Effect, Any, T]


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
    resume = partial(core.send, None)
    try:
        while True:
            effect = _checked(resume())
            try:
                answer = effect()
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
