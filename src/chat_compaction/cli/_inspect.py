"""``chat-compaction inspect`` and ``chat-compaction check``: looking at a session, changing nothing."""

from __future__ import annotations

import json
from typing import Any

import attrs
import click

from .._index import MessageIndex
from .._predicates import METRICS
from .._text import some
from ..counters import EstimateCounter
from ..formats import detect
from ._click import CONTEXT, Command, option, tell
from ._files import read_session, shown, write_output
from ._options import format_option, index_of, read_index, reading_options, session_argument
from ._session import Session
from ._text import plural


@click.command(cls=Command, context_settings=CONTEXT)
@session_argument
@reading_options
@option("Writing", "--json", "as_json", is_flag=True, help="Write data for programs instead of a table.")
def inspect(session: str, as_json: bool, **options: Any) -> None:
    """Show what is in a session.

    SESSION is a file, or - for standard input: a JSON list of messages, a JSON object with the key
    "messages", or JSON Lines with one message a line. A table lists the groups, with their turns and
    tokens, and what is wrong. A group is what stays or leaves together, such as a tool call with its
    results; a pending group still waits for a result, and never leaves.
    """
    read = read_session(session)
    index = index_of(read, session, options)
    told = options["format"] != "auto" or detect(read.messages) is not None
    if as_json:
        write_output(json.dumps(_facts(read, index, told), indent=2) + "\n")
        return
    from ._tables import print_inspection

    name = index.format.name
    how = "as asked" if options["format"] != "auto" else "detected" if told else "assumed: the messages do not tell"
    print_inspection(shown(session), index, f"format {name}, {how}")


def _facts(session: Session, index: MessageIndex, told: bool) -> dict[str, Any]:
    """What there is to know, as plain data."""
    totals = {name: index.value(metric) for name, metric in METRICS.items()}
    return {
        "format": index.format.name,
        "format_known": told,
        "shape": session.shape,
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


@click.command(cls=Command, context_settings=CONTEXT)
@session_argument
@format_option
def check(session: str, format: str) -> None:
    """List what breaks a rule in a session.

    SESSION is a file, or - for standard input. Each problem, such as a tool result without its call,
    is a line: the position of the message, the rule, and what is wrong. The status is 0 if there is
    none, 1 if there are any, 2 if the session cannot be read.
    """
    index = read_index(read_session(session), session, counter=EstimateCounter(), format=format)
    for problem in index.problems:
        click.echo(f"messages[{problem.position}] {problem.rule}: {problem.message}")
    found, among = plural(len(index.problems), "problem"), some(len(index), "message")
    tell(f"{shown(session)}: {found} in {among}, read as {index.format.name}")
    click.get_current_context().exit(1 if index.problems else 0)
