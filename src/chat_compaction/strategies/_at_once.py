"""Changes of one group made at once: to rewrite a group costs as much as the group is long.

A strategy that changes text by text until its target holds plans what it will change, asks the target as if that were
done, and then makes the changes group by group. A target that looks at more than numbers must see each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from .._as_if import AsIf
from .._groups import MessageGroup
from .._index import MessageIndex
from .._predicates import AllOf, AnyOf, Comparison, Predicate, always, never, tokens
from .._strategy import CompactionStrategy

T = TypeVar("T")


def looks_at_numbers(strategy: CompactionStrategy) -> bool:
    """Whether a strategy's target is over metrics alone, so that it can be asked as if something were done."""
    own = getattr(strategy.reached, "__func__", None) is CompactionStrategy.reached
    return own and _is_over_metrics(strategy.effective_target)


def _is_over_metrics(target: Predicate) -> bool:
    if isinstance(target, AllOf | AnyOf):
        return all(map(_is_over_metrics, target.operands))
    return isinstance(target, Comparison) or target in (always, never)


def reached_with(strategy: CompactionStrategy, index: MessageIndex, gain: int) -> bool:
    """Whether the target holds with so many tokens less."""
    return strategy.effective_target(AsIf(index, {tokens: -gain})) if gain else strategy.reached(index)


def make_by_group(changes: Iterable[tuple[MessageGroup, T]], make: Callable[[MessageGroup, list[T]], bool]) -> list[T]:
    """Make all changes of each group at once, and give those that could not be made.

    ``make`` says whether it did; where of several one is in the way, each half is tried by itself.
    """
    by_group: dict[int, tuple[MessageGroup, list[T]]] = {}
    for group, change in changes:
        by_group.setdefault(group.positions[0], (group, []))[1].append(change)
    return [refused for group, some in by_group.values() for refused in _made(group, some, make)]


def _made(group: MessageGroup, changes: list[T], make: Callable[[MessageGroup, list[T]], bool]) -> list[T]:
    if make(group, changes):
        return []
    if len(changes) == 1:
        return changes
    half = len(changes) // 2
    return _made(group, changes[:half], make) + _made(group, changes[half:], make)
