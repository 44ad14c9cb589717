"""Ours beside the peers: what it costs to keep a conversation in its budget, as a multiple of counting it once.

Usage: ``python -m benchmarks.peers [--write docs/benchmarks.md] [--check] [--quick]``; ``make bench`` sets up what it
needs and runs it. See docs/benchmarks.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import chat_compaction as cc

from . import vocabulary
from .adapters import PEERS
from .contenders import Backend, Contender, Limits
from .conversations import Message, grouped, recorded, salted, stretched, synthetic, text_of
from .measure import (
    Effort,
    Figure,
    Row,
    against_parsing,
    against_unit,
    check,
    cold_cut,
    firing_ms,
    noop_ms,
    truncation_ms,
    unit,
    warmed,
)
from .ours import ours

BUDGET = 32_000
BEGIN, END = "<!-- begin: written by make bench -->", "<!-- end -->"


@dataclass(frozen=True)
class Table:
    """A title, a head and rows of text; the first column is words, the others are figures."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    figures: bool = True
    """Whether the columns behind the first are numbers."""

    def markdown(self) -> str:
        """As a Markdown section."""
        lines = [f"| {' | '.join(cells)} |" for cells in (self.head, self._rule(), *self.rows)]
        return "\n".join([f"### {self.title}", "", *([self.note, ""] if self.note else []), *lines, ""])

    def _rule(self) -> tuple[str, ...]:
        return ("---", *("---:" if self.figures else "---" for _ in self.head[1:]))


@dataclass(frozen=True)
class Target:
    """A promise about ours, and what was measured."""

    what: str
    measured: float
    at_most: float
    unit: str

    @property
    def held(self) -> bool:
        """Whether it is kept."""
        return self.measured <= self.at_most

    def cells(self) -> tuple[str, ...]:
        """As a row of a table."""
        at_most = f"{self.at_most:g} {self.unit}"
        return (self.what, f"{Figure(self.measured)} {self.unit}", at_most, "yes" if self.held else "no")


@dataclass
class Bench:
    """One run: what is measured, and what came out."""

    backends: Sequence[Backend]
    contenders: Sequence[Contender]
    effort: Effort = field(default_factory=Effort)
    say: Callable[[str], None] = print
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def conversation(self, name: str, history: Sequence[Message], budget: int = BUDGET) -> None:
        """Everybody on one conversation."""
        limits, rows = Limits.of(budget), {contender.name: Row() for contender in self.contenders}
        for backend in self.backends:
            self.say(f"{name}: {backend.name}")
            warmed(self.contenders, backend, history)
            growing, cold = against_unit(self.contenders, backend, history, limits, self.effort)
            for contender in self.contenders:
                if contender.name in growing:
                    rows[contender.name].growing[backend.name] = growing[contender.name]
                    rows[contender.name].cold[backend.name] = cold[contender.name]
            self.targets += self._growing_targets(name, backend, growing)
        backend = self.backends[-1]
        for contender in self.contenders:
            self.say(f"{name}: {contender.name}, no-op and legality")
            row = rows[contender.name]
            row.noop_ms = noop_ms(contender, backend, salted(history, "no-op"), self.effort.seconds)
            check(contender, backend, history, limits, row, 2 * self.effort.seconds)
        self.tables.append(self._table(name, history, rows, limits))

    def _growing_targets(self, name: str, backend: Backend, growing: dict[str, Figure]) -> Iterator[Target]:
        for contender in self.contenders:
            if backend.name in contender.targets and contender.name in growing:
                what = f"growing, {name}: {contender.name}, {backend.name}"
                yield Target(what, growing[contender.name].value, contender.targets[backend.name], "×")

    def _table(self, name: str, history: Sequence[Message], rows: dict[str, Row], limits: Limits) -> Table:
        names = [backend.name for backend in self.backends]
        total = sum(self.backends[-1].count(text_of(message)) for message in history)
        once = ", ".join(f"{Figure(1000 * unit(one, history))} ms with {one.name}" for one in self.backends)
        note = (
            f"{len(history)} messages, {total:,} tokens, kept in {limits.budget:,} (cut to {limits.target:,}). "
            f"Counting each message once takes {once}."
        )
        head = (
            "",
            *(f"growing, {one}" for one in names),
            *(f"cold cut, {one}" for one in names),
            "warm no-op",
            "not legal",
        )
        cells = (self._cells(contender, rows[contender.name], names) for contender in self.contenders)
        return Table(f"One conversation: {name}", head, tuple(cells), note)

    def _cells(self, contender: Contender, row: Row, backends: Sequence[str]) -> tuple[str, ...]:
        return (
            label(contender),
            *(_times(row.growing.get(name)) for name in backends),
            *(_times(row.cold.get(name)) for name in backends),
            f"{row.noop_ms} ms" if row.noop_ms else "-",
            _illegal(row),
        )

    def firing(self, sizes: Sequence[int], reading: Sequence[Message]) -> None:
        """What a compaction costs where counting costs nothing, by the number of groups; and reading."""
        histories = {size: grouped(size) for size in sizes}
        rows = [("**the strategy on an index**", *self._truncations(histories), "-")]
        for contender in self.contenders:
            self.say(f"firing: {contender.name}")
            rows.append((label(contender), *self._firings(contender, histories), self._reading(contender, reading)))
        head = ("", *(f"{size:,} groups" for size in sizes), "reading, a message")
        note = (
            "Counting costs nothing here (characters / 4), and the list is cut to half. The first row is the "
            "compaction alone; in all others the contender meets the list for the first time. Reading is what the "
            f"contender does itself to chat-completions dicts, over {len(reading):,} messages; a dash: it takes "
            "them as they are, or leaves it to its user."
        )
        self.tables.append(Table("Firing", head, tuple(rows), note))

    def _truncations(self, histories: dict[int, list[Message]]) -> Iterator[str]:
        for size, history in histories.items():
            measured = truncation_ms(history, self.effort.runs + 2)
            yield f"{Figure(measured)} ms"
            if size == max(histories):
                self.targets.append(Target(f"truncation of {size:,} groups", measured, 5.0, "ms"))

    def _firings(self, contender: Contender, histories: dict[int, list[Message]]) -> Iterator[str]:
        if contender.tokenizers == ("tiktoken",):
            yield from ("-" for _ in histories)  # It counts with its own.
            return
        too_slow = False
        for history in histories.values():
            figure = None if too_slow else firing_ms(contender, history, self.effort)
            too_slow = figure is None or bool(figure.sign)
            yield f"{figure} ms" if figure else "-"

    def _reading(self, contender: Contender, history: Sequence[Message]) -> str:
        if contender.read is None:
            return "-"
        ratio = against_parsing(history, contender.read, self.effort.runs + 2)
        if contender.ours:
            self.targets.append(Target(f"reading and grouping {len(history):,} messages", ratio, 3.0, "× json.loads"))
        return f"{Figure(ratio)} × json.loads"

    def large(self, history: Sequence[Message], tokens: int) -> None:
        """A warm call on a long list, and a cold cut of a very long one to a tenth, by ours."""
        self.say("large: warm no-op, cold cut")
        reducer = next(contender for contender in self.contenders if contender.name == "reducer")
        noop = noop_ms(reducer, self.backends[0], history, 60)
        self.targets.append(Target(f"warm no-op on {len(history):,} messages", noop.value, 0.5, "ms"))
        backend = self.backends[0]
        ratios = []
        for run in range(self.effort.runs):
            huge = _of_tokens(salted(history, f"large {run}"), tokens, backend)
            once = unit(backend, huge)
            spent = cold_cut(reducer, backend, Limits(tokens // 10, tokens // 10), huge, 60).value
            ratios.append(spent / once)
        measured = sorted(ratios)[len(ratios) // 2]
        what = f"cold cut of {tokens:,} tokens to a tenth, {backend.name}"
        self.targets.append(Target(what, measured, 0.25, "×"))

    def setups(self) -> Table:
        """How each contender was set up."""
        rows = tuple((label(one), f"{one.package} {one.installed}", one.how) for one in self.contenders)
        return Table("How each was set up", ("", "package", "setup"), rows, figures=False)

    def promises(self) -> Table:
        """What ours promise, beside what came out."""
        return Table("Targets", ("", "measured", "at most", "held"), tuple(target.cells() for target in self.targets))


def contenders() -> list[Contender]:
    """Everybody who is installed, ours first."""
    return [contender for contender in (*ours(), *PEERS) if contender.installed]


def label(contender: Contender) -> str:
    """The contender in the first column; ours are set off."""
    return f"**{contender.name}**" if contender.ours else contender.name


def _times(figure: Figure | None) -> str:
    return f"{figure} ×" if figure else "-"


def _illegal(row: Row) -> str:
    if not row.checked_calls:
        return "-"
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(row.illegal.items()))
    return f"{row.illegal_calls} of {row.checked_calls}" + (f": {kinds}" if kinds else "")


def _of_tokens(history: Sequence[Message], tokens: int, backend: Backend) -> list[Message]:
    """As much of the conversation, stretched where needed, as has so many tokens."""
    each = sum(backend.count(text_of(message)) for message in history[:400]) / min(len(history), 400)
    return stretched(history, int(tokens / each))


# -- the run -------------------------------------------------------------------------------------------


def backends() -> list[Backend]:
    """Both tokenizers with the vocabulary o200k_base; the faster one last."""
    tokenizer = vocabulary.with_tokenizers()
    by_tiktoken = vocabulary.with_tiktoken()
    return [
        Backend(
            "tokenizers",
            lambda text: len(tokenizer.encode(text, add_special_tokens=False)),
            lambda: cc.TokenizerCounter(tokenizer, name="o200k_base"),
        ),
        Backend("tiktoken", by_tiktoken, lambda: cc.FunctionCounter(by_tiktoken, name="tiktoken", exact=True)),
    ]


def about() -> str:
    """Where and with what it ran."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("tokenizers", "tiktoken"))
    return (
        f"{datetime.now(UTC):%d %B %Y}; {_cpu()}, {os.cpu_count()} cores; {platform.system()}, "
        f"Python {platform.python_version()}, {packages}."
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def written(page: str, tables: Sequence[Table], about: str) -> str:
    """The page with its generated part replaced."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + "\n".join([BEGIN, "", about, "", *(table.markdown() for table in tables), END]) + after


def shown(tables: Sequence[Table], about: str) -> None:
    """The tables on a terminal."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console()
    console = Console(width=max(console.width, 150))
    console.print(about)
    for table in tables:
        grid = Grid(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
        for place, cell in enumerate(table.head):
            grid.add_column(cell, justify="right" if place and table.figures else "left")
        for row in table.rows:
            grid.add_row(Text(row[0].strip("*"), style="bold" if row[0].startswith("**") else ""), *row[1:])
        console.print(grid)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, show, write; 1 if a target is asked for and missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page, between its marks")
    parser.add_argument("--check", action="store_true", help="exit with 1 if ours miss a target; the figures wander")
    parser.add_argument(
        "--quick", action="store_true", help="short conversations and one run, to see that it works; writes nothing"
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only contenders with this in their name; ours always"
    )
    options = parser.parse_args(arguments)
    started = perf_counter()
    chosen = [one for one in contenders() if one.ours or options.only in one.name]
    bench = Bench(backends(), chosen, Effort(1, 0.5) if options.quick else Effort(), _to_stderr)
    run(bench, quick=options.quick)
    tables = [bench.promises(), *bench.tables, bench.setups()]
    facts = about()
    shown(tables, facts)
    print(f"{perf_counter() - started:.0f} s")
    if options.write and not options.quick:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(written(page, tables, facts), encoding="utf-8")
    missed = [target.what for target in bench.targets if not target.held]
    if missed:
        print("Missed: " + "; ".join(missed), file=sys.stderr)
    return int(options.check and bool(missed))


def run(bench: Bench, quick: bool = False) -> None:
    """Everything, on the made conversation and the recorded one where it is there."""
    real = recorded(60 if quick else 901)
    bench.conversation("made", synthetic(60 if quick else 822), BUDGET // 16 if quick else BUDGET)
    if real is not None:
        bench.conversation("recorded", real, BUDGET // 8 if quick else BUDGET)
    long = stretched(real or synthetic(), 400 if quick else 4_000)
    bench.firing((25, 100) if quick else (250, 1_000, 4_000), long)
    bench.large(long, 30_000 if quick else 1_000_000)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
