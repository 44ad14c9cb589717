"""Plain text for people: positions and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def spans(positions: Iterable[int]) -> str:
    """Ascending positions in short: ``0, 3-5``.

    >>> spans([0, 3, 4, 5])
    '0, 3-5'
    """
    runs: list[list[int]] = []
    for position in positions:
        if runs and position == runs[-1][-1] + 1:
            runs[-1][1:] = [position]
        else:
            runs.append([position])
    return ", ".join("-".join(map(str, run)) for run in runs)


def some(number: int, thing: str) -> str:
    """A number of things: ``1 message``, ``2 messages``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under their heads, two spaces apart; columns of numbers to the right."""
    columns = [_column(column) for column in zip(head, *rows, strict=True)]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells))
    right = all(cell.replace(",", "").isdigit() for cell in cells[1:])
    return [cell.rjust(width) if right else cell.ljust(width) for cell in cells]


def shown(value: Any) -> str:
    """A value in an error: short, and never the text of a conversation."""
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 10**9):
        return repr(value)
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
