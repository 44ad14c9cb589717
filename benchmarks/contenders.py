"""What a contender is: one row of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .conversations import Message

Reduce = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Backend:
    """One way to count: the plain function of the unit, and the counter that ours is given beside it."""

    name: str
    count: Callable[[str], int]
    counter: Callable[[], Any]
    """Makes a new counter, which has no memory of earlier runs."""


@dataclass(frozen=True)
class Limits:
    """The budget, and where a cut stops, for those who know both: a little room, so that not every call cuts."""

    budget: int
    target: int

    @classmethod
    def of(cls, budget: int) -> Limits:
        """A budget with a target of three quarters."""
        return cls(budget, budget * 3 // 4)


def _same(messages: Sequence[Any]) -> list[Any]:
    return list(messages)


@dataclass(frozen=True)
class Contender:
    """One row of the table."""

    name: str
    how: str
    """How it is set up, for the docs."""
    make: Callable[[Backend, Limits], Reduce]
    """A reducer that has seen nothing yet."""
    package: str = "chat-compaction"
    convert: Callable[[Sequence[Message]], list[Any]] = _same
    keeps: bool = False
    """It keeps decisions from call to call: it must see every call, and one more call is no cold one."""
    copies: bool = False
    """It gives back dicts of its own, not the messages it got."""
    tokenizers: tuple[str, ...] = ("tokenizers", "tiktoken")
    """With which backends it can count."""
    targets: dict[str, float] = field(default_factory=dict)
    """By backend, at most how many times the unit a growing conversation may cost."""
    read: Callable[[list[Message]], object] | None = None
    """Its own reader of chat-completions dicts, where it has one."""

    @property
    def ours(self) -> bool:
        """Whether it is of this project."""
        return self.package == "chat-compaction"

    @property
    def installed(self) -> str | None:
        """The version of its package, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None
