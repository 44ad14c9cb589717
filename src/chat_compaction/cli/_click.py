"""Click as we use it: errors in one line, options in sections, and the types of their values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.exceptions import Exit

from .._errors import CompactionError

if TYPE_CHECKING:
    from .._predicates import Predicate

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_COLUMN = 22
_F = TypeVar("_F", bound=Callable[..., Any])


class Failure(click.ClickException):
    """The command cannot do what was asked: wrong use, or input that cannot be read."""

    exit_code = 2


class Overflow(Failure):
    """The history does not fit, and the user wants nothing written then."""

    exit_code = 1


class App(click.Group):
    """The group of all commands: whatever goes wrong is one line on standard error, and a status."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run and exit."""
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: names may be of any script
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            status = error.exit_code
            tell(f"chat-compaction: error: {_line(error)}")
        except click.Abort:
            status = 130
            tell("chat-compaction: interrupted")
        with for_people():
            # What logging has in vain tried to write: the interpreter would make a status of it.
            if sys.stderr is not None:
                sys.stderr.flush()
        sys.exit(status)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the words ahead of a command; ``--help`` and ``--version`` print here."""
        with _as_failures():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        with _as_failures():
            return super().invoke(ctx)


@contextmanager
def _as_failures() -> Iterator[None]:
    """Turn the errors of the package and of the system into click's."""
    try:
        yield
    except CompactionError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        if error.filename is not None:
            raise Failure(str(error)) from error
        # Without a file it is a standard stream. A reader that went away, as ``head`` does, needs no message.
        _abandon(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise Exit(2) from error
        raise Failure(f"standard output: {error.strerror or error}") from error


@contextmanager
def for_people() -> Iterator[None]:
    """Write to standard error what changes nothing if nobody can read it: the stream may be full."""
    try:
        yield
    except OSError:
        _abandon(sys.stderr)


def tell(text: str) -> None:
    """Print a line on standard error, if there is one that takes it: a shell may have closed it."""
    with for_people():
        if sys.stderr is not None:
            click.echo(text, err=True)


def _line(error: click.ClickException) -> str:
    """An error in one line, with the way to the help where it was wrong use."""
    text = " ".join(error.format_message().split("\n"))
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text} (see {ctx.command_path} --help)" if ctx else text


def _abandon(stream: IO[str]) -> None:
    """Let the interpreter's own flush at its end succeed, whose complaint would be a second one."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Command(click.Command):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, in the order in which their first options were declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                # Padded, so that the texts of all sections begin in one column.
                names = record[0].ljust(_COLUMN)
                sections.setdefault(getattr(parameter, "section", "Help"), []).append((names, record[1]))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=_COLUMN)


class _Option(click.Option):
    def __init__(self, *args: Any, section: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.section = section


def option(section: str, *names: str, **attrs: Any) -> Callable[[_F], _F]:
    """An option that the help lists in a section."""
    return click.option(*names, cls=_Option, section=section, **attrs)


class Count(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A whole number of 0 or more; ``8_000`` is one."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or click's error."""
        try:
            number = int(value)
        except ValueError:
            number = -1
        if number < 0:
            self.fail(f"expected a whole number of 0 or more, got {value!r}", param, ctx)
        return number


class PredicateText(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A predicate as text; parsed, never evaluated as code."""

    name = "PREDICATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Predicate:
        """The predicate, or click's error."""
        from .._predicate_parser import parse_predicate
        from .._predicates import Predicate

        try:
            return value if isinstance(value, Predicate) else parse_predicate(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def usage_error(message: str) -> NoReturn:
    """Fail as wrong use of the command that is running."""
    raise click.UsageError(message, click.get_current_context())


@contextmanager
def arguments_are_options(names: dict[str, str]) -> Iterator[None]:
    """An argument that the library refuses is an option of ours: say so, by the option's name."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # Ahead of what was given, which may hold the same words.
        expected, got, rest = str(error).partition(", got ")
        usage_error(" ".join(names.get(word, word) for word in expected.split(" ")) + got + rest)
