"""The options that commands share, and what they mean: an index, a strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click
from click.core import ParameterSource

from .._errors import MessageError
from .._index import MessageIndex
from .._strategy import CompactionStrategy
from ..formats import FORMATS
from ..formats._sessions import Session
from ..strategies import TokenBudgetStrategy, TruncationStrategy
from ._click import Count, Failure, PredicateText, arguments_are_options, option, usage_error
from ._counting import counter_of, with_progress
from ._files import shown

_F = TypeVar("_F", bound=Callable[..., Any])
_READING = "Reading and counting"
_STRATEGY = "Strategy"
_BUDGET = "With --strategy token-budget"
_TRUNCATION = "With --strategy truncation"
_KEEPING = "What may leave, with both"
FORMAT_NAMES = f"auto, {', '.join(sorted(FORMATS))}"

session_argument = click.argument("session", type=str)
sessions_argument = click.argument("sessions", type=str, metavar="SESSION...", nargs=-1, required=True)


def format_option(section: str, *names: str, text: str) -> Callable[[_F], _F]:
    """The option for the format, under the names that a command gives it."""
    choice = click.Choice(["auto", *FORMATS])
    return option(section, *names, type=choice, metavar="FORMAT", default="auto", show_default=True, help=text)


def sidechain_option(section: str) -> Callable[[_F], _F]:
    """The option for a conversation beside the main one."""
    text = "A conversation beside the main one, to be read in its place; inspect shows the names."
    return option(section, "--sidechain", metavar="NAME", help=text)


def _all(*decorators: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """The decorators as one; the help lists options in this order."""

    def decorate(function: _F) -> _F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


reading_options = _all(
    format_option(_READING, "--format", text=f"The format of the messages: {FORMAT_NAMES}."),
    sidechain_option(_READING),
    option(
        _READING,
        "--counter",
        type=click.Choice(["auto", "o200k_base", "estimate"]),
        help="What counts tokens: an installed vocabulary if there is one (auto, the default), o200k_base or an error "
        "where none is installed, or an estimate.",
    ),
    option(_READING, "--tokenizer", metavar="FILE", help="Count with this tokenizer.json (or .json.gz) instead."),
    option(
        _READING,
        "--reserved",
        type=Count(),
        default=0,
        help="Tokens that are sent apart from the messages, such as a system prompt and tool schemas.",
    ),
    option(
        _READING,
        "--pin",
        type=Count(),
        multiple=True,
        metavar="POSITION",
        help="A message that never leaves, by its position from 0 on. May be given several times.",
    ),
)

strategy_options = _all(
    option(
        _STRATEGY,
        "--config",
        metavar="FILE",
        help="Take the strategy from this file (.toml, .yaml, .json), and none of the options below.",
    ),
    option(
        _STRATEGY,
        "--strategy",
        type=click.Choice(["token-budget", "truncation"]),
        metavar="NAME",
        default="token-budget",
        show_default=True,
        help="token-budget: turns leave, oldest first (see --evict). truncation: single groups leave, oldest first.",
    ),
    option(_BUDGET, "--max-tokens", type=Count(), help="Compact a session of more than N tokens.  [required]"),
    option(_BUDGET, "--target-tokens", type=Count(), help="Stop at N tokens; by default at --max-tokens."),
    option(_BUDGET, "--max-turns", type=Count(), help="Compact a session of more than N turns, too."),
    option(_BUDGET, "--min-messages", type=Count(), help="Keep the newest N messages in any case; by default 2."),
    option(
        _BUDGET,
        "--evict",
        type=click.Choice(["turns-then-groups", "turns", "groups"]),
        metavar="WHAT",
        help="turns: whole turns leave. groups: single groups. turns-then-groups, the default: whole turns, but single "
        "groups of a turn that must stay or need not leave whole.",
    ),
    option(
        _TRUNCATION,
        "--trigger",
        type=PredicateText(),
        help="Compact when this holds, such as 'tokens > 8000 | turns > 40'.  [required]",
    ),
    option(
        _TRUNCATION,
        "--target",
        type=PredicateText(),
        help="Stop when this holds, such as 'tokens <= 4000'; by default when the trigger no longer does.",
    ),
    option(
        _KEEPING,
        "--min-groups",
        type=Count(),
        help="Keep the newest N groups in any case; by default 1 with token-budget, 8 with truncation.",
    ),
    option(_KEEPING, "--no-keep-last-user", is_flag=True, help="Let the newest user message leave, too."),
    option(_KEEPING, "--no-preserve-system", is_flag=True, help="Let system messages leave, too."),
)


@attrs.frozen
class _Kind:
    """A strategy, its own options by parameter with the arguments they stand for, and the one it needs."""

    make: Callable[..., CompactionStrategy]
    arguments: dict[str, str]
    needs: str
    example: str


_KINDS = {
    "token-budget": _Kind(
        TokenBudgetStrategy,
        {
            "max_tokens": "max_tokens",
            "target_tokens": "target_tokens",
            "max_turns": "max_turns",
            "evict": "evict",
            "min_messages": "min_preserved_messages",
        },
        "max_tokens",
        "--max-tokens 8000",
    ),
    "truncation": _Kind(
        TruncationStrategy, {"trigger": "trigger", "target": "target"}, "trigger", "--trigger 'tokens > 8000'"
    ),
}


_FLOOR = ("min_groups", "no_keep_last_user", "no_preserve_system")


def strategy_of(options: dict[str, Any]) -> CompactionStrategy:
    """The strategy that the options, or the file that they name, describe; those of another one are wrong use."""
    if options["config"] is not None:
        return _configured(options["config"])
    name = options["strategy"]
    kind = _KINDS[name]
    for other_name, other in _KINDS.items():
        for parameter in other.arguments:
            if other is not kind and options[parameter] is not None:
                usage_error(
                    f"{_flag(parameter)} is for --strategy {other_name}, got --strategy {name}, "
                    f"which expects {kind.example}"
                )
    if options[kind.needs] is None:
        usage_error(f"--strategy {name} needs {_flag(kind.needs)}, such as {kind.example}")
    names = {**kind.arguments, "min_groups": "min_preserved_groups"}
    given = {argument: options[parameter] for parameter, argument in names.items() if options[parameter] is not None}
    with arguments_are_options({argument: _flag(parameter) for parameter, argument in names.items()}):
        return kind.make(
            **given,
            keep_last_user=not options["no_keep_last_user"],
            preserve_system=not options["no_preserve_system"],
        )


def _configured(file: str) -> CompactionStrategy:
    source = click.get_current_context().get_parameter_source
    own = ["strategy", *(name for kind in _KINDS.values() for name in kind.arguments), *_FLOOR]
    for parameter in own:
        if source(parameter) is not ParameterSource.DEFAULT:
            usage_error(
                f"{_flag(parameter)} and --config exclude each other: a configuration has the whole strategy, "
                f"got --config {shown(file)}"
            )
    # Here, since the packages that it needs are those of another extra.
    from ._config import strategy_in

    return strategy_in(file)


def _flag(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def index_of(session: Session, source: str, options: dict[str, Any], *, progress: bool = True) -> MessageIndex:
    """The index of a session, to be read and counted as the options say."""
    counter = counter_of(options["counter"], options["tokenizer"])
    messages = session.messages
    for position in options["pin"]:
        if position >= len(messages):
            usage_error(f"--pin must be the position of one of {len(messages)} messages, from 0 on, got {position}")
    return read_index(
        session,
        source,
        counter=with_progress(counter) if progress else counter,
        format=options["format"],
        pinned=[messages[position] for position in options["pin"]],
        reserved=options["reserved"],
        bound_reasoning=options.get("bound_reasoning", "keep"),
    )


def read_index(session: Session, source: str, **settings: Any) -> MessageIndex:
    """The index of a session, in the format that its file implies; an error about a message names the file, too."""
    if settings.get("format") == "auto" and session.format in FORMATS:
        settings["format"] = session.format
    try:
        index = MessageIndex.from_messages([], **settings)
        index._conversation.undisturbed = True  # Nobody else has these messages.
        index.extend(session.messages)
        return index
    except MessageError as error:
        # The library speaks of its argument, the user knows the option.
        raise Failure(f"{shown(source)}: {str(error).replace('; format= names', '; --format names')}") from error
