"""The command line, put together."""

from __future__ import annotations

from importlib import import_module

import click

from .._loading import LazyMapping
from ._click import CONTEXT, App, tell


def _command(name: str) -> click.Command:
    """The command of a name; ``--version`` needs none of them, so that each stands in a module that loads late."""
    command: click.Command = getattr(import_module(f"._{name}", __package__), name)
    return command


COMMANDS = LazyMapping(("compact", "inspect", "check", "config"), _command)


@click.group(
    cls=App,
    commands=COMMANDS,
    context_settings=CONTEXT,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
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
