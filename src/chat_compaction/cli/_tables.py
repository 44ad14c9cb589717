"""Tables for people, with rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .._index import MessageIndex
from .._predicates import groups, messages, tokens, turns
from .._report import CompactionReport
from ..counters import Counter
from ._text import Row, compaction_rows, inspection_rows, plural

_MOST_ROWS = 100
_MOST_WITH_RICH = 2_000  # rows; each takes it over half a millisecond
_HEAD = ("messages", "kind", "turn", "tokens")


class _Console(Console):
    """A console that prints text as it is, and tells the caller when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_compaction(
    source: str,
    before: MessageIndex,
    report: CompactionReport,
    protected: Mapping[int, str],
    places: Sequence[int] | None,
    *,
    planned: bool = False,
) -> None:
    """Print on standard error what was kept and removed, or would be, why, and what it came to.

    ``before`` is what was compacted; ``report``, ``protected`` and ``places`` are as :func:`compaction_rows` has them.
    """
    # A report may hold a lower bound, where no more had to be counted.
    tokens_before = before.total(tokens)
    tokens_after = report.tokens_after if report.changed else tokens_before
    table = _table("what would happen" if planned else "what happened")
    _add_rows(table, compaction_rows(before, report, protected, places), most=_MOST_ROWS)
    there_was = report.messages_before, report.groups_before, report.turns_before, tokens_before
    there_is = report.messages_after, report.groups_after, report.turns_after, tokens_after
    table.add_row(*_totals(there_was, "before"), style="bold")
    table.add_row(*_totals(there_is, f"after, {'fits' if report.fits else 'does not fit'}"), style="bold")
    console = _console(stderr=True)
    would = "would be" if planned else "was"
    console.print(f"{source}: what {would} kept and what {would} removed", style="bold", soft_wrap=True)
    console.print(table)
    console.print(f"{_counted(before.counter)} Target: {report.target}.\n", soft_wrap=True)


def print_inspection(source: str, index: MessageIndex, format_note: str) -> None:
    """Print on standard output the groups of a session, their totals, and what is wrong."""
    in_all = index.value(messages), index.value(groups), index.value(turns), index.value(tokens)
    rows, totals = inspection_rows(index), _totals(in_all, "in all")
    console = _console(stderr=False)
    console.print(f"{source}: {format_note}", style="bold", soft_wrap=True)
    if len(rows) > _MOST_WITH_RICH:
        click.echo(_plain([(*_HEAD, "state"), *map(_cells, rows), totals]))
    else:
        table = _table("state")
        _add_rows(table, rows)
        table.add_row(*totals, style="bold")
        console.print(table)
    problems = [f"  messages[{problem.position}] {problem.rule}: {problem.message}\n" for problem in index.problems]
    counted = f"{_counted(index.counter)} {plural(len(problems), 'problem').capitalize()}.\n"
    click.echo(counted + "".join(problems), nl=False)


def _console(*, stderr: bool) -> Console:
    return _Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def _table(last: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in _HEAD[:2]:
        table.add_column(name, overflow="fold")
    for name in _HEAD[2:]:
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column(last, overflow="fold")
    return table


def _plain(lines: Sequence[tuple[str, ...]]) -> str:
    """The lines in the columns of a table of rich's."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (str.ljust, str.ljust, str.rjust, str.rjust, str.ljust)
    padded = ([pad(cell, width) for pad, cell, width in zip(aligned, line, widths, strict=True)] for line in lines)
    return "".join(f"\n{'  '.join(cells).rstrip()}" for cells in padded) + "\n"


def _add_rows(table: Table, rows: Sequence[Row], most: int | None = None) -> None:
    """Add the rows; of more than ``most`` the oldest and the newest, since people ask about those."""
    hidden = 0 if most is None else max(0, len(rows) - most)
    head = (len(rows) - hidden) // 2 if hidden else len(rows)
    for row in rows[:head]:
        _add_row(table, row)
    if hidden:
        table.add_row("...", f"{hidden} more", style="dim")
        for row in rows[head + hidden :]:
            _add_row(table, row)
    table.add_section()


def _add_row(table: Table, row: Row) -> None:
    table.add_row(*_cells(row), style="yellow" if row.removed else None)


def _cells(row: Row) -> tuple[str, ...]:
    return row.messages, row.kind, row.turn, row.tokens, row.what


def _totals(values: tuple[int, int, int, int], what: str) -> tuple[str, ...]:
    nouns = [plural(value, noun) for value, noun in zip(values, ("message", "group", "turn"), strict=False)]
    return *nouns, f"{values[3]:,}", what


def _counted(counter: Counter) -> str:
    return f"Tokens counted by {counter.name}{'' if counter.exact else ' (not exact)'}."
