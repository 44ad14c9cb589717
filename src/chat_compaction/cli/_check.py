"""``chat-compaction check``: what breaks a rule of the provider's in a session, and a repaired copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from .._problems import Problem, Repair
from .._repair import Repaired
from .._repair import repair as mend
from .._text import some
from ..counters import EstimateCounter
from ._click import CONTEXT, Command, option, tell
from ._files import check_output, read_session, refuse_agents_own, same_file, shown, tell_notes, write_outputs
from ._options import FORMAT_NAMES, format_option, read_index, session_argument, sidechain_option
from ._text import plural

_CHECKING = "Checking"
_EXAMPLES = """\b
Examples:
  chat-compaction check session.json --for anthropic
  chat-compaction check session.jsonl --repair repaired.json
"""


@click.command(cls=Command, context_settings=CONTEXT, epilog=_EXAMPLES)
@session_argument
@format_option(
    _CHECKING,
    "--for",
    "--format",
    "format",
    text=f"The format of the messages, whose rules they are held against: {FORMAT_NAMES}. Nothing is translated.",
)
@sidechain_option(_CHECKING)
@option("Writing", "--repair", metavar="FILE", help="Write the session here, repaired; - is standard output.")
@click.pass_context
def check(ctx: click.Context, /, session: str, format: str, sidechain: str | None, repair: str | None) -> None:
    """List what breaks a rule of the provider's in a session.

    SESSION is a file, or - for standard input: messages as JSON or JSON Lines, or a session of Claude
    Code, Codex, Gemini CLI or pi as the agent wrote it. Each problem, such as a tool result without its
    call, is a line: the position of the message, the rule, and what is wrong.

    With --repair, lines follow that say what was done ("repaired", by the position in SESSION) and what
    nobody could mend ("remaining", by the position in FILE). FILE has the shape of SESSION, and may be
    the same file; but an agent's JSON Lines become a JSON list, and never replace the agent's own file.
    Where FILE is standard output, the lines are on standard error.

    The status is 0 if there is no problem, or none after the repair, 1 if there are any, 2 for wrong use
    and for what cannot be read or written.
    """
    if repair is not None and repair != "-":
        check_output(repair)
    read = read_session(session, sidechain)
    if repair is not None:
        refuse_agents_own(read, session, "--repair", repair)
    index = read_index(read, session, counter=EstimateCounter(), format=format)
    repaired = None if repair is None else mend(read.messages, format=index.format)
    say: Callable[[str], object] = click.echo
    if repair is not None and repaired is not None:
        # Ahead of the lists: a reader of those that goes away early shall not cost the file.
        write_outputs([(repair, read.dump(repaired.messages))])
        say = tell if repair == "-" or same_file(repair, "-", 1) else click.echo
    _list(say, "", index.problems)
    found, among = plural(len(index.problems), "problem"), some(len(index), "message")
    tell(f"{shown(session)}: {found} in {among}, read as {index.format.name}")
    tell_notes(read, session)
    if repair is not None and repaired is not None:
        _tell_repair(say, "standard output" if repair == "-" else shown(repair), repaired)
    ctx.exit(1 if (repaired or index).problems else 0)


def _tell_repair(say: Callable[[str], object], name: str, repaired: Repaired) -> None:
    _list(say, "repaired ", repaired.repairs)
    _list(say, "remaining ", repaired.problems)
    done, kept = plural(len(repaired.repairs), "repair"), some(len(repaired.messages), "message")
    tell(f"{name}: {done}, {kept}, {plural(len(repaired.problems), 'problem')} remaining")


def _list(say: Callable[[str], object], mark: str, items: Iterable[Problem | Repair]) -> None:
    for item in items:
        said = item.action if isinstance(item, Repair) else item.message
        say(f"{mark}messages[{item.position}] {item.rule}: {said}")
