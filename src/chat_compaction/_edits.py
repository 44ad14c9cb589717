"""Edits in place, seen without reading anew: a message is compared with a copy of its dicts and lists (rule C2).

The copy shares every text with the message, so it is small, and the interpreter compares the two in C: what is the
same object needs no look. That a number became an equal one of another type (1, 1.0, True) is not seen, nor another
order of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_VALUES = frozenset({str, int, float, bool, bytes, type(None)})


def edits(outlines: Sequence[Any | None], messages: Sequence[Any]) -> list[int]:
    """The positions of messages that are no more what their outlines were taken of, or that have none."""
    return (
        []
        if equal(outlines, messages[: len(outlines)])
        else [
            position
            for position, (known, message) in enumerate(zip(outlines, messages, strict=False))
            if known is None or not equal(known, message)
        ]
    )


def equal(one: Any, other: Any) -> bool:
    """Whether two things are equal; what can't be compared is not."""
    try:
        return bool(one == other)
    except Exception:  # An object of the caller's came in, which can't be compared.
        return False


class _NotPlainError(Exception):
    """Something that may change in ways that a comparison does not see."""


def outline(message: Any) -> Any | None:
    """A copy of the dicts and lists of a message, equal to it until it is edited; None where it is not of these."""
    try:
        return _copied(message)
    except (_NotPlainError, RecursionError):
        return None


def _copied(value: Any) -> Any:
    if type(value) is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) not in _VALUES:
                copy[key] = _copied(item)
        return copy
    if type(value) is list:
        return [item if type(item) in _VALUES else _copied(item) for item in value]
    raise _NotPlainError
