"""``chat-compaction compact``."""

from __future__ import annotations

import json
from glob import has_magic
from pathlib import Path
from typing import Any

import click

from .._errors import ContextOverflowError, InvalidHistoryError
from .._report import CompactionReport
from .._strategy import CompactionStrategy
from .._work import Work
from ._click import CONTEXT, Command, Count, Overflow, for_people, option, tell, usage_error
from ._files import Pieces, check_output, read_session, refuse_agents_own, same_file, shown, tell_notes, write_outputs
from ._logs import log_to_stderr
from ._options import index_of, reading_options, sessions_argument, strategy_of, strategy_options
from ._text import failures, reasoning, summary

_WRITING = "Writing"
_MANY = "Many sessions"
_EXAMPLES = """\b
Examples:
  chat-compaction compact session.json --max-tokens 8000 --target-tokens 4000 -o shorter.json
  chat-compaction compact - --strategy truncation --trigger "turns > 40" < session.jsonl
  chat-compaction compact sessions --config compaction.toml -o compacted --jobs 0
"""


class _Jobs(Count):
    """A whole number, or ``auto``, which is 0."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or click's error."""
        try:
            return 0 if value == "auto" else super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"expected a whole number of 0 or more, or auto, got {value!r}", param, ctx)


@click.command(cls=Command, context_settings=CONTEXT, epilog=_EXAMPLES)
@sessions_argument
@strategy_options
@reading_options
@option(
    _WRITING,
    "-o",
    "--output",
    metavar="FILE",
    default="-",
    help="Write the messages here; - is standard output. With many sessions, a folder.",
)
@option(_WRITING, "--report", metavar="FILE", help="Write what was done, as JSON; with many sessions, as JSON Lines.")
@option(_WRITING, "--table", is_flag=True, help="Show on standard error what was kept, what was removed and why.")
@option(_WRITING, "--dry-run", is_flag=True, help="Write no messages, call no model: say what would be done.")
@option(
    _WRITING,
    "--on-invalid",
    type=click.Choice(["keep", "repair", "raise"]),
    default="keep",
    show_default=True,
    help="Where the history breaks a rule already: keep compacts it as it is, repair mends it first, raise writes "
    "nothing, and the status is 1.",
)
@option(
    _WRITING,
    "--on-overflow",
    type=click.Choice(["report", "raise"]),
    default="report",
    show_default=True,
    help="Where the history does not fit: report writes it all the same, raise writes nothing. The status is 1 in "
    "both cases.",
)
@option(
    _WRITING,
    "--bound-reasoning",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="What becomes of signed reasoning behind the first message removed, which newer Anthropic models refuse: "
    "keep says what the request must set, drop writes those messages without it.",
)
@option(
    _MANY,
    "--jobs",
    type=_Jobs(),
    help="So many processes work; 0 or auto is one for each core. By default this one does all.",
)
@option(_MANY, "--force", is_flag=True, help="Compact again what an earlier run did, and what is as it was then.")
@option(_WRITING, "-q", "--quiet", is_flag=True, help="No summary and no progress on standard error.")
@option(_WRITING, "-v", "--verbose", is_flag=True, help="Log events on standard error.")
@click.pass_context
def compact(ctx: click.Context, /, sessions: tuple[str, ...], output: str, report: str | None, **options: Any) -> None:
    """Shorten sessions to a budget, and write the messages that stay.

    SESSION is a file, or - for standard input: a JSON list of messages, a JSON object with the key
    "messages", JSON Lines with one message a line, or a session of Claude Code, Codex, Gemini CLI or pi
    as the agent wrote it. Messages stay or leave whole, and a tool call never parts from its results.

    What is written has the same shape; an object keeps its other keys. An agent's JSON Lines, which
    hold more than messages, become a JSON list, and never replace the agent's own file. The messages
    are all that goes to standard output. The status is 0 when done, 1 where the history does not fit,
    2 for wrong use and for what cannot be read or written.

    The options here know two strategies. A file (--config) may hold any, and compositions of them.

    Several files, a folder (all *.json and *.jsonl below it) or a pattern in quotes are many sessions:
    each is written below the folder --output under its own path. One that fails does not stop the
    others; the status is 1 then. What an earlier run did with the same options is not done again.
    """
    strategy = strategy_of(options)
    if report == "-":
        usage_error("--report must be a file, got -: standard output is for messages")
    if options["verbose"]:
        ctx.call_on_close(log_to_stderr())
    if _are_many(sessions) or options["jobs"] is not None:
        # Here, since what starts processes takes a while to load.
        from ._many import compact_many

        ctx.exit(0 if compact_many(sessions, strategy, output, report, options) else 1)
    if options["force"]:
        usage_error(f"--force is for many sessions, got {shown(sessions[0])}")
    ctx.exit(0 if _compact_one(sessions[0], strategy, output, report, options) else 1)


def _are_many(sessions: tuple[str, ...]) -> bool:
    """Whether the arguments mean many sessions: several, a folder, a pattern."""
    first = Path(sessions[0])
    return len(sessions) > 1 or first.is_dir() or (has_magic(sessions[0]) and not first.exists())


def _compact_one(
    session: str, strategy: CompactionStrategy, output: str, report: str | None, options: dict[str, Any]
) -> bool:
    """Compact one session; whether it fits."""
    _check_outputs(session, output, report)
    read = read_session(session, options["sidechain"])
    refuse_agents_own(read, session, "--output", output)
    index = index_of(read, session, options, progress=not options["quiet"])
    planned = options["dry_run"]
    try:
        work = Work.on(index, options["on_invalid"])
        index = work.index
        if planned:
            told = strategy.plan(index)
        else:
            told = strategy.compact(index, on_overflow=options["on_overflow"], hooks=work.hooks(None))
    except (ContextOverflowError, InvalidHistoryError) as error:
        raise Overflow(f"{shown(session)}: {error}") from error
    done = work.told(told)
    _write(None if planned else lambda: read.pieces(index.included_messages()), done, output, report)
    if options["table"]:
        # Here, since rich takes a while to load.
        from ._tables import print_compaction

        before, places = work, None if work.repaired is None else work.repaired.positions
        if done.dropped_reasoning or any(group.replaced for group in index.groups):
            # The table has what there was, and other messages stand there now.
            before = Work.on(index_of(read, session, options, progress=False), options["on_invalid"])
        protected = strategy.floor.protect(index._ledger)
        with for_people():
            print_compaction(shown(session), before.index, told, protected, places, planned=planned)
    for line in failures(done):
        tell(f"{shown(session)}: {line}")
    if not options["quiet"]:
        tell(summary(shown(session), done, planned=planned))
        for line in reasoning(done):
            tell(f"{shown(session)}: {line}")
        tell_notes(read, session)
        if read.beside and not options["reserved"]:
            tell(f"{shown(session)}: {' and '.join(read.beside)} not counted; give their tokens with --reserved")
    return done.fits


def _check_outputs(session: str, output: str, report: str | None) -> None:
    if output != "-":
        check_output(output)
    if report is not None:
        check_output(report)
        if same_file(report, session, 0):
            usage_error(f"--report must be another file than the session, got {shown(report)} for both")
        if same_file(report, output, 1):
            usage_error(f"--report must be another file than --output, got {shown(report)} for both")


def _write(pieces: Pieces | None, done: CompactionReport, output: str, report: str | None) -> None:
    outputs: list[tuple[str, str | Pieces]] = [] if pieces is None else [(output, pieces)]
    if report is not None:
        outputs.append((report, json.dumps(done.to_dict(), indent=2) + "\n"))
    write_outputs(outputs)
