"""Configuration files: ``--config`` of ``compact``, and the command that checks one."""

from __future__ import annotations

from typing import Any

import click

from .._strategy import CompactionStrategy
from ._click import CONTEXT, Command, Failure, arguments_are_options, option, tell
from ._files import reason_of, shown, write_output
from ._text import plural

_EXAMPLES = """\b
Examples:
  chat-compaction config compaction.toml
  chat-compaction config compaction.toml --to yaml > compaction.yaml
"""


def strategy_in(name: str) -> CompactionStrategy:
    """The strategy of a file; of several faults the first, and how to see the others."""
    strategy, faults = _read(name, "--config")
    if strategy is None:
        more = f" (and {len(faults) - 1} more: see chat-compaction config {shown(name)})" if len(faults) > 1 else ""
        raise Failure(f"{shown(name)}: {faults[0]}{more}")
    return strategy


def _read(name: str, argument: str) -> tuple[CompactionStrategy | None, list[str]]:
    """The strategy of a file, or what is wrong with it."""
    try:
        from ..config import ConfigError, load_config

        with arguments_are_options({"path": argument}):
            try:
                return load_config(name), []
            except ConfigError as error:
                return None, [str(fault) for fault in error.faults]
    except ModuleNotFoundError as error:  # It says what to install.
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{shown(name)}: {reason_of(error)}") from error


@click.command(cls=Command, context_settings=CONTEXT, epilog=_EXAMPLES)
@click.argument("file", type=str)
@option(
    "Writing",
    "--to",
    type=click.Choice(["toml", "yaml", "json"]),
    help="Write the configuration in this format, without what is at its default.",
)
@click.pass_context
def config(ctx: click.Context, /, file: str, to: Any) -> None:
    """Check a configuration file, and show the strategy in it.

    FILE is a TOML, YAML or JSON file (.toml, .yaml, .yml, .json), as compact --config takes it. What is
    wrong with it is a line each, with the path in the file. Nothing is run.

    The status is 0 if it is in order, 1 if anything is wrong with it, 2 for wrong use and for what
    cannot be read.
    """
    strategy, faults = _read(file, "FILE")
    if strategy is None:
        for fault in faults:
            click.echo(fault)
        tell(f"{shown(file)}: {plural(len(faults), 'fault')}")
        ctx.exit(1)
    if to is None:
        click.echo(_in_lines(strategy, ""))
        return
    from ..config import dumps_config

    try:
        text = dumps_config(strategy, to)
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    write_output(text)


def _in_lines(strategy: CompactionStrategy, indent: str) -> str:
    """The repr of a strategy, the stages of a composition in lines of their own."""
    stages = getattr(strategy, "stages", None)
    if not isinstance(stages, tuple):
        return repr(strategy)
    inner = f"{indent}    "
    lines = "".join(f"\n{inner}{_in_lines(stage, inner)}," for stage in stages)
    return repr(strategy).replace(repr(stages), f"({lines}\n{indent})")
