"""Predicates: conditions over the metrics of an index, as values.

``tokens > 8_000`` is a frozen value. ``&``, ``|`` and ``~`` compose, equal predicates are equal,
and ``eval(repr(p)) == p`` wherever the names of :mod:`chat_compaction.triggers` are in scope.
A *trigger* is a predicate that says when to compact, a *target* one that says when to stop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn, Protocol

import attrs

from ._validators import a_plain_function, one_of

_HINT = (
    "a predicate has no truth value of its own: combine predicates with &, | and ~ "
    "(not 'and', 'or', 'not' or a chained comparison), and ask one with predicate(index)"
)


class Measured(Protocol):
    """What a predicate is asked about: a :class:`~chat_compaction.MessageIndex`, say."""

    def value(self, metric: Metric) -> int:
        """The metric over what is included."""

    def exceeds(self, metric: Metric, limit: int) -> bool:
        """Whether the metric is above the limit; may count less than :meth:`value` (rule C4)."""

    def known(self, metric: Metric) -> tuple[int, bool]:
        """What is known of the metric without counting: the number, and whether it is exact."""


@attrs.frozen(eq=False, order=False, repr=False)
class Metric:
    """A number that an index keeps; comparing it with an int makes a predicate.

    The metrics are ``tokens``, ``messages``, ``groups``, ``turns`` and ``tool_groups``. Each counts
    what is included, system and pinned messages too; ``tokens`` also counts what is reserved.
    """

    name: str = attrs.field(validator=one_of(("tokens", "messages", "groups", "turns", "tool_groups")))

    def __gt__(self, limit: int) -> Comparison:
        return _compare(self, ">", limit)

    def __ge__(self, limit: int) -> Comparison:
        return _compare(self, ">=", limit)

    def __lt__(self, limit: int) -> Comparison:
        return _compare(self, "<", limit)

    def __le__(self, limit: int) -> Comparison:
        return _compare(self, "<=", limit)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Metric):
            return self.name == other.name
        if isinstance(other, int | float):
            raise TypeError(
                f"{self.name} == {other!r} is not a predicate: "
                f"write ({self.name} >= {other!r}) & ({self.name} <= {other!r})"
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def _unparenthesised(self, _: object) -> NoReturn:
        raise TypeError("put parentheses around each comparison, as in (tokens > 8_000) | (turns > 40)")

    # & and | bind tighter than a comparison, so that tokens > 5 | turns > 4 asks for 5 | turns.
    __and__ = __rand__ = __or__ = __ror__ = _unparenthesised

    def __repr__(self) -> str:
        return self.name


tokens = Metric("tokens")
messages = Metric("messages")
groups = Metric("groups")
turns = Metric("turns")
tool_groups = Metric("tool_groups")

METRICS = {metric.name: metric for metric in (tokens, messages, groups, turns, tool_groups)}


@attrs.frozen
class Explanation:
    """Whether a predicate holds, and which part of it decided, with the numbers."""

    holds: bool
    text: str

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.text


class Predicate(ABC):
    """A condition over an index. Call it with the index to ask it."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, index: Measured) -> bool:
        """Whether the condition holds; operands are asked in order, and only until it is decided."""

    @abstractmethod
    def explain(self, index: Measured) -> Explanation:
        """The answer with its reasons. It asks, and so counts, exactly what a call would."""

    @abstractmethod
    def __invert__(self) -> Predicate: ...

    def __and__(self, other: Predicate) -> Predicate:
        return all_of(self, other) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: Predicate) -> Predicate:
        return any_of(self, other) if isinstance(other, Predicate) else NotImplemented

    def __bool__(self) -> NoReturn:
        raise TypeError(_HINT)


_FLIPPED = {">": "<=", "<=": ">", ">=": "<", "<": ">="}


def _compare(metric: Metric, operator: str, limit: object) -> Comparison:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"{metric.name} {operator} {limit!r}: the limit must be an int")
    return Comparison(metric, operator, limit)


@attrs.frozen(order=False, repr=False)
class Comparison(Predicate):
    """``metric operator limit``; made by comparing a metric, and never negative in its limit."""

    metric: Metric = attrs.field(validator=attrs.validators.instance_of(Metric))
    operator: str = attrs.field(validator=attrs.validators.in_(_FLIPPED))
    limit: int = attrs.field()

    @limit.validator
    def _check_limit(self, _: object, limit: object) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise TypeError(f"limit must be an int, got {limit!r}")
        if limit < 0:
            raise ValueError(f"limit must not be negative, got {self.metric.name} {self.operator} {limit}")

    @property
    def upper(self) -> int | None:
        """For ``<`` and ``<=``: the largest value that holds. Else None."""
        return {"<=": self.limit, "<": self.limit - 1}.get(self.operator)

    @property
    def lower(self) -> int | None:
        """For ``>`` and ``>=``: the smallest value that holds. Else None."""
        return {">": self.limit + 1, ">=": self.limit}.get(self.operator)

    def __call__(self, index: Measured) -> bool:
        # Every comparison is one question, so that an index may answer it without an exact count.
        above = index.exceeds(self.metric, self.limit if self.operator in (">", "<=") else self.limit - 1)
        return above if self.operator in (">", ">=") else not above

    def explain(self, index: Measured) -> Explanation:
        holds = self(index)
        value, exact = index.known(self.metric)
        found = f"{value:,}" if exact else f"at least {value:,}"
        return Explanation(holds, f"{self!r} is {str(holds).lower()} ({self.metric.name}: {found})")

    def __invert__(self) -> Comparison:
        return Comparison(self.metric, _FLIPPED[self.operator], self.limit)

    def __repr__(self) -> str:
        return f"{self.metric.name} {self.operator} {self.limit}"


def _flatten(kind: type[AllOf | AnyOf], operands: Iterable[object]) -> Iterator[Predicate]:
    for operand in operands:
        if isinstance(operand, kind):
            yield from operand.operands
        elif isinstance(operand, Predicate):
            yield operand
        else:
            raise TypeError(f"{kind.__name__} takes predicates, got {operand!r}")


@attrs.frozen(order=False, repr=False, init=False)
class _Compound(Predicate):
    """Two operands or more, flattened and without duplicates, in the order they were given."""

    operands: tuple[Predicate, ...]

    _symbol: ClassVar[str]
    _word: ClassVar[str]
    _decisive: ClassVar[bool]
    """An operand with this answer decides, and no further operand is asked."""

    def __init__(self, *operands: Predicate) -> None:
        distinct = tuple(dict.fromkeys(_flatten(type(self), operands)))  # type: ignore[arg-type]
        if len(distinct) < 2:
            raise ValueError(f"{type(self).__name__} takes two distinct predicates or more, got {distinct!r}")
        self.__attrs_init__(distinct)

    def __call__(self, index: Measured) -> bool:
        for operand in self.operands:
            if operand(index) is self._decisive:
                return self._decisive
        return not self._decisive

    def explain(self, index: Measured) -> Explanation:
        parts = []
        for operand in self.operands:
            parts.append(operand.explain(index))
            if parts[-1].holds is self._decisive:
                break
        holds = parts[-1].holds
        if holds is self._decisive:
            return Explanation(holds, parts[-1].text)
        return Explanation(holds, f" {self._word} ".join(part.text for part in parts))

    def __repr__(self) -> str:
        return f" {self._symbol} ".join(f"({operand!r})" for operand in self.operands)


class AllOf(_Compound):
    """Holds when every operand does. Made by ``a & b`` or :func:`all_of`."""

    __slots__ = ()
    _symbol, _word, _decisive = "&", "and", False

    def __invert__(self) -> Predicate:
        return any_of(*(~operand for operand in self.operands))


class AnyOf(_Compound):
    """Holds when at least one operand does. Made by ``a | b`` or :func:`any_of`."""

    __slots__ = ()
    _symbol, _word, _decisive = "|", "and", True

    def __invert__(self) -> Predicate:
        return all_of(*(~operand for operand in self.operands))


@attrs.frozen(order=False, repr=False)
class _Constant(Predicate):
    """``always`` or ``never``."""

    holds: bool

    def __call__(self, index: Measured) -> bool:
        return self.holds

    def explain(self, index: Measured) -> Explanation:
        return Explanation(self.holds, repr(self))

    def __invert__(self) -> Predicate:
        return never if self.holds else always

    def __repr__(self) -> str:
        return "always" if self.holds else "never"


always = _Constant(True)
never = _Constant(False)


@attrs.frozen(order=False, repr=False)
class FunctionPredicate(Predicate):
    """A function of the index that joined through :func:`predicate`; equal where the function is."""

    function: Callable[[Any], object] = attrs.field(validator=a_plain_function)
    negated: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, index: Measured) -> bool:
        return bool(self.function(index)) is not self.negated

    def explain(self, index: Measured) -> Explanation:
        holds = self(index)
        return Explanation(holds, f"{self!r} is {str(holds).lower()}")

    def __invert__(self) -> Predicate:
        return attrs.evolve(self, negated=not self.negated)

    def __repr__(self) -> str:
        return f"~{self.name}" if self.negated else self.name


def predicate(function: Callable[[Any], object]) -> FunctionPredicate:
    """Make a predicate of a plain function that takes the index (a decorator).

    >>> import chat_compaction as cc
    >>> @cc.predicate
    ... def odd(index):
    ...     return index.value(cc.messages) % 2
    >>> odd | (cc.tokens > 8_000)
    (odd) | (tokens > 8000)
    """
    return FunctionPredicate(function)


def all_of(*predicates: Predicate) -> Predicate:
    """Every one of the predicates; a single one stands for itself."""
    return _combine(AllOf, predicates)


def any_of(*predicates: Predicate) -> Predicate:
    """At least one of the predicates; a single one stands for itself."""
    return _combine(AnyOf, predicates)


def _combine(kind: type[AllOf | AnyOf], predicates: tuple[Predicate, ...]) -> Predicate:
    distinct = tuple(dict.fromkeys(_flatten(kind, predicates)))
    if not distinct:
        raise ValueError(f"{kind.__name__} takes at least one predicate, got none")
    return distinct[0] if len(distinct) == 1 else kind(*distinct)
