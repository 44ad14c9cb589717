"""What a counter is, and what may come out of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Protocol, runtime_checkable

from .._errors import CompactionError


class CounterError(CompactionError, ValueError):
    """A counter returned something that is no count; the text names the counter and what it returned."""


@runtime_checkable
class Counter(Protocol):
    """Counts the tokens of texts.

    Any object with these three members is one. A counter may also have

    - ``framing``, a bool: with False only text is counted, neither tool calls nor names, media or the overhead of a
      message (see :func:`framing_of`).
    - ``bounds(text) -> (lower, upper)``: what ``count_many`` would say of the text is surely not below the one and not
      above the other. It must be cheap: it is asked in order not to count (see :func:`bounds_of`).
    """

    @property
    def name(self) -> str:
        """By which vocabulary it counts, such as ``"tokenizers:o200k_base"`` or ``"estimate"`` (rule C3)."""
        ...

    @property
    def exact(self) -> bool:
        """Whether text is counted by a tokenizer (rule C3); never a promise of what a provider bills."""
        ...

    def count_many(self, texts: Sequence[str]) -> Sequence[int]:
        """The tokens of each text, in order: as many ints of 0 or more as there are texts."""
        ...


def framing_of(counter: Counter) -> bool:
    """Whether calls, names, media and the overhead of each message count beside text: the default."""
    return getattr(counter, "framing", True) is not False


def bounds_of(counter: Counter) -> Callable[[str], tuple[int, int]] | None:
    """The counter's ``bounds``, or None where it has none, or says None because it knows none.

    Bounds are believed, not checked. For a counter without them, such as one on an arbitrary function, nothing is
    assumed but that counts are not negative.
    """
    bounds: Callable[[str], tuple[int, int]] | None = getattr(counter, "bounds", None)
    return bounds


def checked_bounds(value: Any, name: str, text: str) -> tuple[int, int]:
    """The value as bounds, if it is a pair of ints."""
    try:
        least, most = value
        return index(least), index(most)
    except (TypeError, ValueError):
        raise CounterError(
            f"bounds of counter {name!r} must return two ints, the least and the most, "
            f"got {_shown(value)} for a text of {len(text)} characters"
        ) from None


def checked_count(value: Any, name: str, text: str) -> int:
    """The value as an int, if it is a count; the error names the length of the text, since texts may be private."""
    try:
        count = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        count = -1
    if count < 0:
        raise CounterError(
            f"counter {name!r} must return an int of 0 or more for each text, "
            f"got {_shown(value)} for a text of {len(text)} characters"
        )
    return count


def _shown(value: Any) -> str:
    """The value where it is a number, else its type: a list of tokens is as private as the text."""
    return repr(value) if value is None or isinstance(value, int | float) else f"a value of type {type(value).__name__}"
