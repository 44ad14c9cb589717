"""A plain function as a strategy: ``@strategy(trigger=...)``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator
from functools import wraps
from importlib import import_module
from typing import Any, ClassVar, ParamSpec, TypeVar

import attrs

from .._effects import Effect
from .._index import MessageIndex
from .._predicates import Predicate
from .._strategy import CompactionStrategy

Function = Callable[[CompactionStrategy, MessageIndex], Generator[Effect, Any, Any] | bool | None]
"""What :meth:`CompactionStrategy.compact_core` is, with the strategy in the place of ``self``."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_EXPECTED = "function must be a plain function of two arguments, as in def oldest_first(strategy, index)"
_NEEDS_ARGUMENTS = "strategy needs its arguments, as in @cc.strategy(trigger=cc.tokens > 8_000)"


def _takes_two(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: something that the strategy and the index can be handed to, in a plain call."""
    if not callable(value):
        raise TypeError(f"{_EXPECTED}, got {value!r}")
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        raise TypeError(
            f"{_EXPECTED}: make it a generator, and yield an Effect for what must be awaited; got {value!r}"
        )
    try:
        inspect.signature(value).bind(None, None)
    except TypeError:
        raise TypeError(f"{_EXPECTED}, got {value!r}") from None
    except ValueError:
        pass  # A callable of C may not tell what it takes.


@attrs.frozen(kw_only=True, repr=False)
class FunctionStrategy(CompactionStrategy):
    """Let a plain function choose what leaves; made by :func:`strategy`.

    ``function`` gets this strategy and the index, and does what a method
    :meth:`~CompactionStrategy.compact_core` would do, with the strategy in the place of ``self``: it asks
    ``strategy.candidates(index)`` and excludes, or ``strategy.rewritable(index)`` and rewrites. It may be a generator
    that yields :class:`Effect`.
    """

    shortens: ClassVar[bool] = True
    """It may: nobody can tell what a function does."""

    function: Function = attrs.field(kw_only=False, validator=_takes_two)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        # As the code that makes it, where a function stands by its name.
        function = self.name if hasattr(self.function, "__name__") else repr(self.function)
        given = (f", {f.name}={getattr(self, f.name)!r}" for f in _fields() if getattr(self, f.name) != f.default)
        return f"FunctionStrategy({function}{''.join(given)})"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {field.name: getattr(self, field.name) for field in _fields()}
        module, name = getattr(self.function, "__module__", None), getattr(self.function, "__qualname__", None)
        # Where a decorated function would be looked for, its module holds the strategy.
        if _is_decorated(self.function, module, name):
            return _decorated, (module, name, fields)
        return _made, (self.function, fields)

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, Any] | bool | None:
        """See :class:`CompactionStrategy`."""
        return self.function(self, index)


def _in_parentheses(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Tell whoever forgot the parentheses of a decorator what stands in them."""

    @wraps(function)
    def called(*args: _P.args, **arguments: _P.kwargs) -> _R:
        if args:
            raise TypeError(f"{_NEEDS_ARGUMENTS}, got {args[0]!r}")
        return function(*args, **arguments)

    return called


@_in_parentheses
def strategy(
    *,
    trigger: Predicate,
    target: Predicate | None = None,
    min_preserved_groups: int = 8,
    min_preserved_messages: int = 0,
    keep_last_user: bool = True,
    preserve_system: bool = True,
) -> Callable[[Function], FunctionStrategy]:
    """Make a strategy of a plain function that takes the strategy and the index (a decorator).

    The arguments are those of every strategy; :func:`attrs.evolve` makes a copy with others.

    >>> import chat_compaction as cc
    >>> @strategy(trigger=cc.tokens > 8_000)
    ... def oldest_first(strategy, index):
    ...     strategy.evict(index, strategy.candidates(index), "oldest")
    >>> oldest_first
    FunctionStrategy(oldest_first, trigger=tokens > 8000)
    """
    if not isinstance(trigger, Predicate) and callable(trigger):
        raise TypeError(f"{_NEEDS_ARGUMENTS}, got {trigger!r}")

    def decorate(function: Function) -> FunctionStrategy:
        return FunctionStrategy(
            function,
            trigger=trigger,
            target=target,
            min_preserved_groups=min_preserved_groups,
            min_preserved_messages=min_preserved_messages,
            keep_last_user=keep_last_user,
            preserve_system=preserve_system,
        )

    return decorate


def _fields() -> list[attrs.Attribute[Any]]:
    return [field for field in attrs.fields(FunctionStrategy) if field.init and field.name != "function"]


def _found(module: Any, name: Any) -> Any:
    """What stands under this name in a module that is loaded."""
    found: Any = sys.modules.get(module)
    for part in name.split(".") if isinstance(name, str) else [""]:
        found = getattr(found, part, None)
    return found


def _is_decorated(function: Function, module: Any, name: Any) -> bool:
    found = _found(module, name)
    return isinstance(found, FunctionStrategy) and found.function is function


def _made(function: Function, fields: dict[str, Any]) -> FunctionStrategy:
    return FunctionStrategy(function, **fields)


def _decorated(module: str, name: str, fields: dict[str, Any]) -> FunctionStrategy:
    """The strategy of a function that was decorated in its module."""
    import_module(module)
    return FunctionStrategy(_found(module, name).function, **fields)
