"""Ours among the contenders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chat_compaction as cc

from .contenders import Backend, Contender, Limits, Reduce


def ours() -> list[Contender]:
    """The reducer, the index kept, and the session where it is there."""
    found = [
        Contender(
            "reducer",
            "`as_chat_reducer(TokenBudgetStrategy(max_tokens=budget, target_tokens=target))`, a counter of the package",
            _reducer(_own),
            targets={"tokenizers": 4.0},
            read=_read,
        ),
        Contender(
            "reducer, plain function",
            "the same, `counter=` the plain function",
            _reducer(_plain),
            targets={"tiktoken": 16.0},
        ),
        Contender(
            "index",
            "`MessageIndex.update`, `strategy.compact`, `included_messages`, the plain function",
            _index,
            keeps=True,
        ),
    ]
    if hasattr(cc, "Compactor"):
        found += [
            Contender(
                "session",
                "`Compactor`, a counter of the package",
                _session(_own),
                keeps=True,
                targets={"tokenizers": 0.8},
            ),
            Contender(
                "session, plain function",
                "`Compactor`, `counter=` the plain function",
                _session(_plain),
                keeps=True,
                targets={"tokenizers": 1.15, "tiktoken": 1.5},
            ),
        ]
    return found


def _read(messages: list[Any]) -> cc.MessageIndex:
    index = cc.MessageIndex.from_messages(messages, counter=cc.EstimateCounter())
    index.value(cc.groups)  # Nothing may be put off.
    return index


def _own(backend: Backend) -> Any:
    return backend.counter()


def _plain(backend: Backend) -> Any:
    # A function of its own for each run: counts are remembered by counter.
    return cc.FunctionCounter(lambda text: backend.count(text))


def strategy(limits: Limits) -> cc.TokenBudgetStrategy:
    """What ours run."""
    return cc.TokenBudgetStrategy(limits.budget, target_tokens=limits.target)


def _reducer(counter: Callable[[Backend], Any]) -> Callable[[Backend, Limits], Reduce]:
    return lambda backend, limits: cc.as_chat_reducer(strategy(limits), counter=counter(backend), format="openai_chat")


def _index(backend: Backend, limits: Limits) -> Reduce:
    kept: list[cc.MessageIndex] = []

    def reduce(history: list[Any]) -> list[Any]:
        if kept:
            kept[0].update(history)
        else:
            kept.append(cc.MessageIndex.from_messages(history, counter=_plain(backend), format="openai_chat"))
        strategy(limits).compact(kept[0])
        return kept[0].included_messages()

    return reduce


def _session(counter: Callable[[Backend], Any]) -> Callable[[Backend, Limits], Reduce]:
    def make(backend: Backend, limits: Limits) -> Reduce:
        compactor: Any = getattr(cc, "Compactor")  # noqa: B009 - it may not be there yet
        session = compactor(strategy(limits), counter=counter(backend))
        return lambda history: list(session.compact(history))

    return make
