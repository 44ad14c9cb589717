"""Any reducer as a strategy: a callable from a list of messages to the list that should stay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs

from .._effects import Effect
from .._errors import StrategyError
from .._index import MessageIndex
from .._predicates import Predicate
from .._strategy import CompactionStrategy, a_predicate
from .._validators import a_callable


@attrs.frozen(kw_only=True, repr=False)
class ReducerStrategy(CompactionStrategy):
    """Let a list-to-list callable choose, and keep the promises that it does not.

    ``reducer`` gets the included messages and returns those that should stay: the same objects, or
    equal ones, in their order. What it drops leaves group by group; a group of which it kept a part
    stays whole, and so does the floor. The target is its own business: it is not asked in between.
    An async reducer works with ``acompact`` and ``areduce``.

    >>> import chat_compaction as cc
    >>> cc.ReducerStrategy(lambda messages: messages[-20:], cc.messages > 40).trigger
    messages > 40
    """

    reducer: Callable[[list[Any]], Any] = attrs.field(kw_only=False, validator=a_callable)
    trigger: Predicate = attrs.field(kw_only=False, validator=a_predicate)

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        positions = index.included_positions()
        messages = index.included_messages()
        answer = yield Effect(self.reducer, (list(messages),))
        kept = {positions[place] for place in _places(answer, messages)}
        for group in self.candidates(index):
            if kept.isdisjoint(group.positions):
                index.exclude(group, "reducer")


def _places(answer: object, messages: Sequence[Any]) -> list[int]:
    """Where in the list each message of the answer stands: by identity, else by equality, in order."""
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence):
        raise StrategyError(f"the reducer must return a list of messages, got {type(answer).__name__}")
    same: dict[int, list[int]] = {}
    for place, message in enumerate(messages):
        same.setdefault(id(message), []).append(place)
    places: list[int] = []
    # From the end: of several equal messages, a reducer keeps the newest.
    for number in range(len(answer) - 1, -1, -1):
        before = places[-1] if places else len(messages)
        found = _last(same.get(id(answer[number]), []), before)
        if found is None:
            found = next((p for p in range(before - 1, -1, -1) if messages[p] == answer[number]), None)
        if found is None:
            raise StrategyError(
                "the reducer must return messages that it was given, in their order: "
                f"item {number} of its list is new, or out of order"
            )
        places.append(found)
    return places


def _last(places: list[int], before: int) -> int | None:
    """The last of these ascending places that stands before another."""
    count = bisect_left(places, before)
    return places[count - 1] if count else None
