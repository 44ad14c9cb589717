"""The text form of predicates, for command lines and configuration files.

The text is parsed by a grammar of its own and never evaluated as code::

    any        = all { ("|" | "or") all }
    all        = unary { ("&" | "and") unary }
    unary      = ("~" | "not") unary | "(" any ")" | comparison | constant | call
    comparison = metric (">" | ">=" | "<" | "<=") int
    constant   = "always" | "never"
    call       = name "(" [ number { "," [ "window" "=" ] number } ] ")"

Comparison binds tighter than ``&`` here, so ``tokens > 8000 | turns > 40`` means what it says; with
the parentheses that Python needs it means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from . import _factories as named
from . import _predicates as p
from ._errors import PredicateSyntaxError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d+)?|\.\d+)|(?P<word>[A-Za-z_]\w*)|(?P<symbol>>=|<=|[><&|~(),=]))", re.ASCII
)
_MAX_DEPTH = 100
_MAX_DIGITS = 30

_CONSTANTS = {"always": p.always, "never": p.never}
_CALLS: dict[str, Callable[..., p.Predicate]] = {
    function.__name__: function
    for function in (
        named.tokens_exceed,
        named.tokens_below,
        named.messages_exceed,
        named.groups_exceed,
        named.turns_exceed,
        named.tool_groups_exceed,
        named.has_tool_calls,
        named.fraction_of_window,
    )
}


def parse_predicate(text: str) -> p.Predicate:
    """Read a predicate from its text: what ``repr`` prints, and the forms people type.

    Raises :class:`PredicateSyntaxError`, with the place, where the text is not one.

    >>> parse_predicate("tokens > 8_000 or not (turns <= 40)")
    (tokens > 8000) | (turns > 40)
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {text!r}")
    return _Parser(text).parse()


@attrs.define
class _Parser:
    text: str
    _words: list[tuple[str, str, int]] = attrs.field(init=False)
    _next: int = attrs.field(init=False, default=0)
    _depth: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._words = list(self._scan())

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self._error("an unknown character", at + len(self.text[at:]) - len(self.text[at:].lstrip()))
            kind = match.lastgroup or ""
            yield kind, match[kind], match.start(kind)
            at = match.end()
        yield "end", "", end

    def _error(self, what: str, at: int) -> PredicateSyntaxError:
        return PredicateSyntaxError(
            f"cannot read the predicate {_short(self.text)}: {what} at character {at + 1}; "
            "expected something like 'tokens > 8000 | turns > 40'"
        )

    def _unexpected(self, expected: str) -> PredicateSyntaxError:
        kind, word, at = self._words[self._next]
        return self._error(f"expected {expected}, found {'the end' if kind == 'end' else _short(word)}", at)

    def _take(self, *words: str) -> str | None:
        """Take the next word if it is one of these."""
        word = self._words[self._next][1]
        if word not in words:
            return None
        self._next += 1
        return word

    def _need(self, *words: str) -> str:
        taken = self._take(*words)
        if taken is None:
            raise self._unexpected(" or ".join(words))
        return taken

    def parse(self) -> p.Predicate:
        parsed = self._any()
        if self._words[self._next][0] != "end":
            raise self._unexpected("'&', '|' or the end")
        return parsed

    def _any(self) -> p.Predicate:
        operands = [self._all()]
        while self._take("|", "or"):
            operands.append(self._all())
        return p.any_of(*operands)

    def _all(self) -> p.Predicate:
        operands = [self._unary()]
        while self._take("&", "and"):
            operands.append(self._unary())
        return p.all_of(*operands)

    def _unary(self) -> p.Predicate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("nested too deeply", self._words[self._next][2])
        try:
            if self._take("~", "not"):
                return ~self._unary()
            if self._take("("):
                parsed = self._any()
                self._need(")")
                return parsed
            return self._atom()
        finally:
            self._depth -= 1

    def _atom(self) -> p.Predicate:
        word = self._words[self._next][1]
        if word in p.METRICS:
            self._next += 1
            return self._comparison(p.METRICS[word])
        if word in _CONSTANTS:
            self._next += 1
            return _CONSTANTS[word]
        if word in _CALLS:
            self._next += 1
            return self._call(_CALLS[word])
        raise self._unexpected(f"a metric ({', '.join(p.METRICS)})")

    def _comparison(self, metric: p.Metric) -> p.Predicate:
        operator = self._need(">", ">=", "<", "<=")
        limit = self._number()
        if isinstance(limit, float):
            self._next -= 1
            raise self._unexpected("a whole number")
        return p.Comparison(metric, operator, limit)

    def _number(self) -> int | float:
        kind, word, _ = self._words[self._next]
        if kind != "number" or len(word) > _MAX_DIGITS:
            raise self._unexpected(f"a number of at most {_MAX_DIGITS} digits")
        self._next += 1
        return float(word.replace("_", "")) if "." in word else int(word.replace("_", ""))

    def _call(self, function: Callable[..., p.Predicate]) -> p.Predicate:
        at = self._words[self._next - 1][2]
        self._need("(")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while not self._take(")"):
            if positional or named:
                self._need(",")
            if self._take("window"):
                self._need("=")
                named["window"] = self._number()
            else:
                positional.append(self._number())
        try:
            return function(*positional, **named)
        except (TypeError, ValueError) as error:
            raise self._error(str(error), at) from error


def _short(text: str) -> str:
    """The text in an error, which is meant to be read."""
    return repr(text if len(text) <= 200 else f"{text[:100]} ... {text[-20:]}")
