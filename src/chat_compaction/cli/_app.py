"""The command line, put together."""

from __future__ import annotations

import click

from ._check import check
from ._click import CONTEXT, App, tell
from ._compact import compact
from ._inspect import inspect


@click.group(cls=App, context_settings=CONTEXT, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...")
@click.version_option(package_name="chat-compaction", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Keep the message history of an LLM chat or agent inside a budget without breaking it.

    Each command has its own help: chat-compaction compact --help. The status is 0 when done, 1 where
    a history does not fit (compact) or breaks a rule (check), 2 for wrong use and for what cannot be
    read or written.
    """
    if ctx.invoked_subcommand is None:
        tell(ctx.get_help())
        ctx.exit(2)


for _command in (compact, inspect, check):
    app.add_command(_command)
