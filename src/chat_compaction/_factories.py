"""Predicates by name, for readers of the .NET documentation and for shares of a context window."""

from __future__ import annotations

from ._predicates import Comparison, groups, messages, tokens, tool_groups, turns


def tokens_exceed(limit: int) -> Comparison:
    """``tokens > limit``, by the name readers of the .NET documentation know."""
    return tokens > limit


def tokens_below(limit: int) -> Comparison:
    """``tokens < limit``."""
    return tokens < limit


def messages_exceed(limit: int) -> Comparison:
    """``messages > limit``."""
    return messages > limit


def groups_exceed(limit: int) -> Comparison:
    """``groups > limit``."""
    return groups > limit


def turns_exceed(limit: int) -> Comparison:
    """``turns > limit``."""
    return turns > limit


def tool_groups_exceed(limit: int) -> Comparison:
    """``tool_groups > limit``."""
    return tool_groups > limit


def has_tool_calls() -> Comparison:
    """``tool_groups > 0``."""
    return tool_groups > 0


def fraction_of_window(fraction: float, *, window: int) -> Comparison:
    """More tokens than this share of a model's context window, as ``tokens > n``.

    ``fraction`` is above 0 and at most 1; ``window`` is in tokens. Rounded down.

    >>> fraction_of_window(0.8, window=200_000)
    tokens > 160000
    """
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        raise TypeError(f"fraction must be a number above 0 and at most 1, got {fraction!r}")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be above 0 and at most 1, got {fraction!r}")
    if isinstance(window, bool) or not isinstance(window, int):
        raise TypeError(f"window must be an int of tokens, got {window!r}")
    if window <= 0:
        raise ValueError(f"window must be above 0 tokens, got {window!r}")
    from fractions import Fraction  # Here: it loads decimal, which nothing else needs.

    # By the decimals that were written: 0.29 * 100 is a little less than 29 in binary.
    return tokens > int(Fraction(repr(fraction)) * window)
