"""``chat-compaction inspect``: looking at a session, changing nothing."""

from __future__ import annotations

import json
from typing import Any

import attrs
import click

from .._index import MessageIndex
from .._predicates import METRICS
from ..formats import detect
from ..formats._sessions import Session
from ._click import CONTEXT, Command, option
from ._files import read_session, shown, tell_notes, write_output
from ._options import index_of, reading_options, session_argument
from ._text import plural


@click.command(cls=Command, context_settings=CONTEXT)
@session_argument
@reading_options
@option("Writing", "--json", "as_json", is_flag=True, help="Write data for programs instead of a table.")
def inspect(session: str, as_json: bool, **options: Any) -> None:
    """Show what is in a session.

    SESSION is a file, or - for standard input: messages as JSON or JSON Lines, or a session of Claude
    Code, Codex, Gemini CLI or pi as the agent wrote it. A table lists the groups, with their turns and
    tokens, what is wrong, and conversations beside the main one. A group is what stays or leaves
    together, such as a tool call with its results; a pending group still waits for a result, and
    never leaves.
    """
    read = read_session(session, options["sidechain"])
    index = index_of(read, session, options)
    told = options["format"] != "auto" or read.format is not None or detect(read.messages) is not None
    if as_json:
        write_output(json.dumps(_facts(read, index, told), indent=2) + "\n")
        return
    from ._tables import print_inspection

    name = index.format.name
    how = "as asked" if options["format"] != "auto" else "detected" if told else "assumed: the messages do not tell"
    source = f"session of {read.source}, " if read.source else ""
    print_inspection(shown(session), index, f"{source}format {name}, {how}")
    if read.sidechains:
        sizes = (f"{name} ({plural(len(messages), 'message')})" for name, messages in read.sidechains.items())
        click.echo(f"{plural(len(read.sidechains), 'sidechain').capitalize()}: {', '.join(sizes)}.")
    tell_notes(read, session)


def _facts(session: Session, index: MessageIndex, told: bool) -> dict[str, Any]:
    """What there is to know, as plain data."""
    totals = {name: index.value(metric) for name, metric in METRICS.items()}
    return {
        "format": index.format.name,
        "format_known": told,
        "shape": session.shape,
        "source": session.source,
        "notes": session.notes,
        "sidechains": {name: len(messages) for name, messages in session.sidechains.items()},
        "counter": index.counter.name,
        "counter_exact": index.counter.exact,
        "totals": totals,
        "groups": [
            {
                "positions": group.positions,
                "kind": group.kind.value,
                "turn": group.turn,
                "pinned": group.pinned,
                "pending": group.pending,
                "tokens": group.tokens,
            }
            for group in index.groups
        ],
        "problems": [attrs.asdict(problem) for problem in index.problems],
    }
