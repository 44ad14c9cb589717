"""Tables for people, with rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .._index import MessageIndex
from .._predicates import groups, messages, tokens, turns
from .._report import CompactionReport
from .._strategy import CompactionStrategy
from ..counters import Counter
from ._text import Row, compaction_rows, inspection_rows, plural

_MOST_ROWS = 100


class _Console(Console):
    """A console that prints text as it is, and tells the caller when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_compaction(source: str, strategy: CompactionStrategy, index: MessageIndex, report: CompactionReport) -> None:
    """Print on standard error what was kept and removed, why, and what it came to."""
    # A report may hold lower bounds, where no more had to be counted; a person wants to see the tokens.
    tokens_before, tokens_after = index.total(tokens), index.value(tokens)
    table = _table("what happened")
    _add_rows(table, compaction_rows(strategy, index, report), most=_MOST_ROWS)
    before = report.messages_before, report.groups_before, report.turns_before, tokens_before
    after = report.messages_after, report.groups_after, report.turns_after, tokens_after
    _add_totals(table, before, "before")
    _add_totals(table, after, f"after, {'fits' if report.fits else 'does not fit'}")
    console = _console(stderr=True)
    console.print(f"{source}: what was kept and what was removed", style="bold", soft_wrap=True)
    console.print(table)
    console.print(f"{_counted(index.counter)} Target: {report.target}.\n", soft_wrap=True)


def print_inspection(source: str, index: MessageIndex, format_note: str) -> None:
    """Print on standard output the groups of a session, their totals, and what is wrong."""
    in_all = index.value(messages), index.value(groups), index.value(turns), index.value(tokens)
    table = _table("state")
    _add_rows(table, inspection_rows(index))
    _add_totals(table, in_all, "in all")
    console = _console(stderr=False)
    console.print(f"{source}: {format_note}", style="bold", soft_wrap=True)
    console.print(table)
    console.print(f"{_counted(index.counter)} {plural(len(index.problems), 'problem').capitalize()}.", soft_wrap=True)
    for problem in index.problems:
        console.print(f"  messages[{problem.position}] {problem.rule}: {problem.message}", soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    return _Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def _table(last: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("messages", overflow="fold")
    table.add_column("kind", overflow="fold")
    table.add_column("turn", no_wrap=True, justify="right")
    table.add_column("tokens", no_wrap=True, justify="right")
    table.add_column(last, overflow="fold")
    return table


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
    table.add_row(row.messages, row.kind, row.turn, row.tokens, row.what, style="yellow" if row.removed else None)


def _add_totals(table: Table, values: tuple[int, int, int, int], what: str) -> None:
    nouns = [plural(value, noun) for value, noun in zip(values, ("message", "group", "turn"), strict=False)]
    table.add_row(*nouns, f"{values[3]:,}", what, style="bold")


def _counted(counter: Counter) -> str:
    return f"Tokens counted by {counter.name}{'' if counter.exact else ' (not exact)'}."
