"""The text form of predicates: parsed by a grammar of its own, never evaluated as code."""

from __future__ import annotations

from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction import parse_predicate

A, B, C = cc.tokens > 8_000, cc.turns > 40, cc.messages > 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tokens > 8000", A),
        ("tokens > 8_000", A),
        ("tokens>8000", A),
        ("\n tokens\t> 8000 ", A),
        ("(tokens > 8000)", A),
        ("((tokens > 8000))", A),
        ("tokens >= 5", cc.tokens >= 5),
        ("groups < 5", cc.groups < 5),
        ("tool_groups <= 0", cc.tool_groups <= 0),
        ("tokens > 8000 | turns > 40", A | B),
        ("tokens > 8000 or turns > 40", A | B),
        ("tokens > 8000 & turns > 40", A & B),
        ("tokens > 8000 and turns > 40", A & B),
        ("(tokens > 8000) | (turns > 40)", A | B),
        ("tokens > 8000 | turns > 40 & messages > 2", A | (B & C)),
        ("(tokens > 8000 | turns > 40) & messages > 2", (A | B) & C),
        ("~tokens > 8000", ~A),
        ("not tokens > 8000", ~A),
        ("not not tokens > 8000", A),
        ("not (tokens > 8000 and ~(turns > 40))", ~A | B),
        ("~tokens > 8000 & turns > 40", ~A & B),
        ("always", cc.always),
        ("never or tokens > 8000", cc.never | A),
        ("tokens_exceed(8000)", A),
        ("tokens_below(8000)", cc.tokens < 8000),
        ("messages_exceed(2)", C),
        ("groups_exceed(2)", cc.groups > 2),
        ("turns_exceed(40)", B),
        ("tool_groups_exceed(1)", cc.tool_groups > 1),
        ("has_tool_calls()", cc.tool_groups > 0),
        ("has_tool_calls() & tokens > 8000", (cc.tool_groups > 0) & A),
        ("fraction_of_window(0.8, window=200_000)", cc.tokens > 160_000),
        ("fraction_of_window( .5 , window = 10 )", cc.tokens > 5),
        ("fraction_of_window(1, window=10)", cc.tokens > 10),
    ],
)
def test_what_people_type(text: str, expected: cc.Predicate) -> None:
    """Comparison binds tighter than ``&``, ``&`` tighter than ``|``; words do as well as signs."""
    assert parse_predicate(text) == expected


@pytest.mark.parametrize("condition", [A, A | B, A & B, ~(A & (B | ~C)), (A | cc.never) & (B | cc.always)], ids=str)
def test_what_repr_prints(condition: cc.Predicate) -> None:
    assert parse_predicate(repr(condition)) == condition


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", 1, "expected a metric (tokens, messages, groups, turns, tool_groups), found the end"),
        ("   ", 1, "expected a metric (tokens, messages, groups, turns, tool_groups), found the end"),
        ("tokens", 7, "expected > or >= or < or <=, found the end"),
        ("tokens >", 9, "found the end"),
        ("tokens > x", 10, "found 'x'"),
        ("tokens > -1", 10, "an unknown character"),
        ("tokens > 1.5", 10, "expected a whole number, found '1.5'"),
        ("tokens > 8e3", 11, "expected '&', '|' or the end, found 'e3'"),
        ("tokens == 5", 8, "expected > or >= or < or <=, found '='"),
        ("tokens != 5", 8, "an unknown character"),
        ("tokens > turns", 10, "found 'turns'"),
        ("5 < tokens", 1, "found '5'"),
        ("tokens > 5 5", 12, "found '5'"),
        ("tokens > 5 turns > 4", 12, "found 'turns'"),
        ("tokens > 5 |", 13, "found the end"),
        ("| tokens > 5", 1, "found '|'"),
        ("tokens > 5 || turns > 4", 13, "found '|'"),
        ("tokens > 5 && turns > 4", 13, "found '&'"),
        ("tokens > 5, turns > 4", 11, "found ','"),
        ("(tokens > 5", 12, "expected ), found the end"),
        ("tokens > 5)", 11, "found ')'"),
        ("()", 2, "found ')'"),
        ("words > 5", 1, "found 'words'"),
        ("Tokens > 5", 1, "found 'Tokens'"),
        ("window", 1, "found 'window'"),
        ("and", 1, "found 'and'"),
        ("always()", 7, "found '('"),
        ("has_tool_calls", 15, "expected (, found the end"),
        ("tokens_exceed 5", 15, "expected (, found '5'"),
        ("tokens_exceed()", 1, "missing 1 required positional argument"),
        ("tokens_exceed(1, 2)", 1, "takes 1 positional argument but 2 were given"),
        ("tokens_exceed(1.5)", 1, "the limit must be an int"),
        ("tokens_exceed(tokens)", 15, "found 'tokens'"),
        ("tokens_exceed(1 2)", 17, "expected ,, found '2'"),
        ("has_tool_calls(window=5)", 1, "unexpected keyword argument"),
        ("fraction_of_window(0.8)", 1, "missing 1 required keyword-only argument: 'window'"),
        ("fraction_of_window(1.5, window=100)", 1, "fraction must be above 0 and at most 1, got 1.5"),
        ("fraction_of_window(0.5, window=0)", 1, "window must be above 0 tokens, got 0"),
        ("fraction_of_window(0.5, width=100)", 25, "found 'width'"),
        ("tokens > 8\u066000", 11, "an unknown character"),
        ("tokens > 5 # and more", 12, "an unknown character"),
        ("tokens > 5; import os", 11, "an unknown character"),
        ("tokens > 5 \x00", 12, "an unknown character"),
    ],
)
def test_errors_say_where_and_what(text: str, place: int, what: str) -> None:
    """The text, what was expected and found, the place of it, and an example."""
    with pytest.raises(cc.PredicateSyntaxError) as caught:
        parse_predicate(text)
    message = str(caught.value)
    assert message.startswith(f"cannot read the predicate {text!r}: ")
    assert f" at character {place}; expected something like 'tokens > 8000 | turns > 40'" in message
    assert what in message


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__import__('os').system('true')",
        "tokens.__class__",
        "tokens > (lambda: 5)()",
        "tokens > 0x10",
        "tokens > 1if 1else 2",
        "exec('1')",
        "open",
        "f'{1}'",
        "predicate(len)",
        "tokens > __builtins__",
        "tokens_exceed(*[1])",
        "tokens_exceed(limit=1)",
        "[].__class__",
    ],
)
def test_code_is_no_predicate(text: str) -> None:
    """Only names of the grammar mean something, and nothing is ever called but its few functions."""
    with pytest.raises(cc.PredicateSyntaxError):
        parse_predicate(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "~" * 100_000 + "always",
        "not " * 100_000 + "always",
        "(" * 5_000 + "always" + ")" * 5_000,
        "~(" * 5_000 + "always" + ")" * 5_000,
    ],
    ids=["open", "tilde", "not", "parentheses", "both"],
)
def test_deep_nesting_is_refused(text: str) -> None:
    """By an error of ours, long before the interpreter's stack ends."""
    with pytest.raises(cc.PredicateSyntaxError, match="nested too deeply"):
        parse_predicate(text)


def test_nesting_that_people_write_is_read() -> None:
    text = "(" * 50 + "tokens > 8000" + ")" * 50
    assert parse_predicate(text) == A
    assert parse_predicate("~" * 50 + "tokens > 8000") == A


def test_numbers_have_a_limit() -> None:
    """So that nobody makes the interpreter convert a million digits."""
    assert parse_predicate("tokens > " + "9" * 30) == (cc.tokens > int("9" * 30))
    for digits in (31, 10**6):
        with pytest.raises(cc.PredicateSyntaxError, match="a number of at most 30 digits"):
            parse_predicate("tokens > " + "9" * digits)


@pytest.mark.parametrize("text", ["$" * 10**6, "tokens > 5 " * 10**5, "a" * 10**6], ids=["signs", "words", "name"])
def test_the_error_of_a_very_long_text_is_short(text: str) -> None:
    """It is meant to be read."""
    with pytest.raises(cc.PredicateSyntaxError) as caught:
        parse_predicate(text)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", [None, 5, b"tokens > 5", A], ids=repr)
def test_a_text_is_a_str(text: Any) -> None:
    with pytest.raises(TypeError, match=r"^text must be a str, got "):
        parse_predicate(text)


def test_the_error_is_a_value_error_of_ours() -> None:
    """One ``except`` is enough for either."""
    assert issubclass(cc.PredicateSyntaxError, cc.CompactionError)
    assert issubclass(cc.PredicateSyntaxError, ValueError)
