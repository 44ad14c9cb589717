"""What the readers of agents' session files share.

An agent appends entries to a file, one JSON object a line: messages, and much that is none. A reader
gives the conversation that the agent would send now, and says what it did not take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ..._text import some

Entry = dict[str, Any]


@attrs.frozen
class Conversation:
    """What a reader found: the messages, what it did not take, and conversations beside the main one."""

    messages: list[Any]
    notes: tuple[str, ...] = ()
    sidechains: Mapping[str, list[Any]] = attrs.field(factory=dict)


@attrs.frozen
class Agent:
    """An agent whose files can be read: ``owns`` tells them by what is in there, ``read`` reads the entries."""

    source: str
    format: str
    owns: Callable[[Sequence[Entry]], bool]
    read: Callable[[Sequence[Entry]], Conversation]


def branch(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """The ids from the root to a leaf; a parent that is not there, or that was met before, ends the way."""
    way: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in parents and at not in way:
        way[at] = None
        at = parents[at]
    return list(reversed(way))


def roots(parents: Mapping[str, str | None]) -> dict[str, str]:
    """The root of each id, in one pass; those of a circle, and all that hang on it, share one of its ids."""
    found: dict[str, str] = {}
    for name in parents:
        way: dict[str, None] = {}
        at = name
        while at not in found and at not in way:
            way[at] = None
            above = parents[at]
            if above is None or above not in parents:
                break
            at = above
        found.update(dict.fromkeys(way, found.get(at, at)))
    return found


def counted(*notes: tuple[int, str, str]) -> tuple[str, ...]:
    """Notes of numbers that are not zero: ``3 messages on other branches``."""
    return tuple(f"{some(number, thing)} {what}" for number, thing, what in notes if number)


def inner(entry: Entry, key: str) -> Entry:
    """The object in a field; an empty one where there is none."""
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def string(entry: Entry, key: str) -> str | None:
    """The text in a field; None where there is none, or something else."""
    value = entry.get(key)
    return value if isinstance(value, str) else None
