"""Predicates as values: composed, equal, printed as the code that makes them, explained with the numbers."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction import triggers
from chat_compaction.testing import RecordingCounter
from chat_compaction.triggers import AllOf, AnyOf, Comparison, FunctionPredicate, Metric
from tests.build import said, step, user


@attrs.define
class Numbers:
    """Something to measure: every metric has a number, and every question is recorded."""

    tokens: int = 0
    messages: int = 0
    turns: int = 0
    asked: list[str] = attrs.field(factory=list)

    def value(self, metric: cc.Metric) -> int:
        return int(getattr(self, metric.name))

    def exceeds(self, metric: cc.Metric, limit: int) -> bool:
        self.asked.append(metric.name)
        return self.value(metric) > limit

    def known(self, metric: cc.Metric) -> tuple[int, bool]:
        return self.value(metric), True


# -- comparisons ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (cc.tokens > 5, [False, False, True]),
        (cc.tokens >= 5, [False, True, True]),
        (cc.tokens < 5, [True, False, False]),
        (cc.tokens <= 5, [True, True, False]),
    ],
    ids=str,
)
def test_comparing_a_metric(condition: cc.Predicate, holds: list[bool]) -> None:
    assert [condition(Numbers(tokens=value)) for value in (4, 5, 6)] == holds
    assert [(~condition)(Numbers(tokens=value)) for value in (4, 5, 6)] == [not answer for answer in holds]


def test_a_number_may_stand_first() -> None:
    """It is the same value."""
    assert (5 < cc.tokens) == (cc.tokens > 5)  # noqa: SIM300
    assert (5 >= cc.tokens) == (cc.tokens <= 5)  # noqa: SIM300


def test_limits_at_the_edge() -> None:
    """Nothing is below zero, and everything is at least zero."""
    assert not (cc.tokens < 0)(Numbers())
    assert (cc.tokens >= 0)(Numbers())
    assert (cc.tokens <= 0)(Numbers())


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (True, "tokens > True: the limit must be an int"),
        (1.5, "tokens > 1.5: the limit must be an int"),
        ("8000", "tokens > '8000': the limit must be an int"),
        (None, "tokens > None: the limit must be an int"),
        (cc.turns, "tokens > turns: the limit must be an int"),
    ],
)
def test_a_limit_is_an_int(limit: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        _ = cc.tokens > limit
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "make", [lambda m: m > -1, lambda m: m >= -1, lambda m: m < -1, lambda m: m <= -1], ids=["gt", "ge", "lt", "le"]
)
def test_a_limit_is_not_negative(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^limit must not be negative, got tokens (>|>=|<|<=) -1$"):
        make(cc.tokens)


@pytest.mark.parametrize("other", [3, True, 2.5], ids=repr)
def test_equality_with_a_number_is_no_predicate(other: Any) -> None:
    """It would be a plain False; the hint says how to write it."""
    with pytest.raises(TypeError) as caught:
        _ = cc.tokens == other
    assert str(caught.value) == (
        f"tokens == {other!r} is not a predicate: write (tokens >= {other!r}) & (tokens <= {other!r})"
    )
    with pytest.raises(TypeError, match="is not a predicate"):
        _ = cc.tokens != other


def test_metrics_are_values() -> None:
    assert cc.tokens == Metric("tokens")
    assert cc.tokens != cc.turns
    assert len({cc.tokens, Metric("tokens"), cc.turns}) == 2
    assert repr(cc.tool_groups) == "tool_groups"
    assert cc.tokens != "tokens"
    with pytest.raises(
        ValueError, match=r"^name must be one of 'tokens', 'messages', 'groups', 'turns', 'tool_groups', got"
    ):
        Metric("words")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("tokens", ">", 1), TypeError),
        ((cc.tokens, "==", 1), ValueError),
        ((cc.tokens, ">", 1.5), TypeError),
        ((cc.tokens, ">", True), TypeError),
        ((cc.tokens, ">", -1), ValueError),
    ],
    ids=str,
)
def test_a_comparison_checks_its_arguments(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Comparison(*arguments)


def test_what_a_comparison_lets_hold() -> None:
    """The bounds that a target promises."""
    assert ((cc.tokens <= 5).upper, (cc.tokens < 5).upper, (cc.tokens > 5).upper) == (5, 4, None)
    assert ((cc.tokens > 5).lower, (cc.tokens >= 5).lower, (cc.tokens < 5).lower) == (6, 5, None)


# -- combining --------------------------------------------------------------------------------------

A, B, C = cc.tokens > 8, cc.turns > 4, cc.messages > 2


def test_and_or_not() -> None:
    inside = Numbers(tokens=9, turns=1, messages=3)
    assert (A & C)(inside)
    assert not (A & B)(inside)
    assert (A | B)(inside)
    assert not (B | ~A)(inside)


def test_combinations_are_flat_and_without_duplicates() -> None:
    """So that equal conditions are equal, however they were put together; the order is kept."""
    assert (A & B) & C == A & (B & C) == cc.all_of(A, B, C) == AllOf(A, B, C)
    assert (A | B) | C == A | (B | C) == cc.any_of(A, B, C) == AnyOf(A, B, C)
    assert A & A == A
    assert A | B | A == A | B
    assert (A & B) & (B & A) == A & B
    assert A & B != B & A
    assert (A & B).operands == (A, B)  # type: ignore[attr-defined]


def test_negation_is_by_meaning() -> None:
    """De Morgan and flipped comparisons: no predicate is printed with a ``~`` that it can do without."""
    inverse = ~(A & (B | C))
    assert inverse == (cc.tokens <= 8) | ((cc.turns <= 4) & (cc.messages <= 2))
    assert ~~(A & (B | C)) == A & (B | C)
    assert ~cc.always == cc.never
    assert ~cc.never == cc.always


def test_always_and_never() -> None:
    assert cc.always(Numbers())
    assert not cc.never(Numbers())
    assert not (A & cc.never)(Numbers(tokens=9))
    assert (A | cc.always)(Numbers())
    assert cc.always.explain(Numbers()) == cc.Explanation(True, "always")
    assert cc.never.explain(Numbers()) == cc.Explanation(False, "never")


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(A),
        lambda: A and B,
        lambda: A or B,
        lambda: not A,
        lambda: 1 if A & B else 0,
        lambda: 2 < cc.tokens < 5,
        lambda: any([A, B]),
    ],
    ids=["bool", "and", "or", "not", "if", "chained", "any"],
)
def test_a_predicate_has_no_truth_value(use: Any) -> None:
    """``a and b`` would silently drop ``a``; the hint says what to write."""
    with pytest.raises(
        TypeError, match=r"^a predicate has no truth value of its own: combine predicates with &, \| and ~"
    ):
        use()


@pytest.mark.parametrize(
    "use",
    [lambda: cc.tokens > 5 | cc.turns > 4, lambda: cc.tokens > 5 & cc.turns, lambda: cc.turns | (cc.tokens > 5)],
    ids=["or", "and", "left"],
)
def test_comparisons_need_parentheses(use: Any) -> None:
    """``&`` and ``|`` bind tighter than a comparison; the hint says so."""
    with pytest.raises(
        TypeError, match=r"^put parentheses around each comparison, as in \(tokens > 8_000\) \| \(turns > 40"
    ):
        use()


@pytest.mark.parametrize("other", [5, True, "turns > 4", None, len], ids=repr)
def test_predicates_combine_with_predicates(other: Any) -> None:
    with pytest.raises(TypeError):
        A & other
    with pytest.raises(TypeError):
        other | A
    with pytest.raises(TypeError, match=r"^AllOf takes predicates, got "):
        cc.all_of(A, other)
    with pytest.raises(TypeError, match=r"^AnyOf takes predicates, got "):
        cc.any_of(other, A)


def test_how_many_a_combination_takes() -> None:
    """One stands for itself; none is a mistake; the classes themselves take two or more."""
    assert cc.all_of(A) == cc.any_of(A) == A
    empty: list[cc.Predicate] = []
    for combine in (cc.all_of, cc.any_of):
        with pytest.raises(ValueError, match=r"^A(ll|ny)Of takes at least one predicate, got none$"):
            combine(*empty)
    for kind in (AllOf, AnyOf):
        with pytest.raises(ValueError, match=r"^A(ll|ny)Of takes two distinct predicates or more, got "):
            kind(A, A)


@pytest.mark.parametrize("value", [A, A & B, A | B, cc.always, FunctionPredicate(len)], ids=str)
def test_predicates_are_frozen_values(value: cc.Predicate) -> None:
    """Hashable, equal to their equal, and they cannot be changed or ordered."""
    assert {value: 1}[attrs.evolve(value) if isinstance(value, Comparison) else value] == 1
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.name = "other"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        value < value  # type: ignore[operator]  # noqa: B015


# -- asking -----------------------------------------------------------------------------------------


def test_operands_are_asked_until_it_is_decided() -> None:
    """In their order, and no further: put what costs nothing first."""
    for condition, asked in (
        (A & B & C, ["tokens"]),
        (C | A | B, ["messages"]),
        (B | A | C, ["turns", "tokens", "messages"]),
        ((B & A) | C, ["turns", "messages"]),
    ):
        numbers = Numbers(messages=3)
        condition(numbers)
        assert numbers.asked == asked
        explained = Numbers(messages=3)
        condition.explain(explained)
        assert explained.asked == asked


def test_an_explanation_says_what_decided() -> None:
    """With the numbers: one part where one decided, else all of them."""
    numbers = Numbers(tokens=12_000, turns=3)
    one = ((cc.tokens > 8_000) | (cc.turns > 40)).explain(numbers)
    assert (one.holds, one.text) == (True, "tokens > 8000 is true (tokens: 12,000)")
    none = ((cc.tokens > 80_000) | (cc.turns > 40)).explain(numbers)
    assert (none.holds, none.text) == (
        False,
        "tokens > 80000 is false (tokens: 12,000) and turns > 40 is false (turns: 3)",
    )
    both = ((cc.tokens > 8_000) & (cc.turns <= 40)).explain(numbers)
    assert (both.holds, both.text) == (
        True,
        "tokens > 8000 is true (tokens: 12,000) and turns <= 40 is true (turns: 3)",
    )
    assert ((cc.turns > 40) & (cc.tokens > 8_000)).explain(numbers).text == "turns > 40 is false (turns: 3)"


def test_an_explanation_is_an_answer() -> None:
    assert bool((cc.tokens >= 0).explain(Numbers())) is True
    assert not (cc.tokens > 0).explain(Numbers())
    assert str((cc.tokens > 0).explain(Numbers())) == "tokens > 0 is false (tokens: 0)"


def test_an_explanation_counts_no_more_than_the_question() -> None:
    """C4: what is known already may decide, and then the number is a lower bound."""
    counter = RecordingCounter()
    index = cc.MessageIndex.from_messages([user("one"), said("answer")], counter=counter, reserved=50)
    assert (cc.tokens > 40).explain(index).text == "tokens > 40 is true (tokens: at least 50)"
    assert ((cc.messages > 1) | (cc.tokens > 55)).explain(index).text == "messages > 1 is true (messages: 2)"
    assert counter.counted == []
    assert (cc.tokens > 55).explain(index).text == "tokens > 55 is true (tokens: 59)"


def test_on_an_index() -> None:
    """All metrics, asked of the real thing."""
    index = cc.MessageIndex.from_messages([user("one"), *step("a"), said("answer")], counter=len)
    assert (cc.messages >= 4)(index)
    assert ((cc.groups <= 3) & (cc.turns < 2) & (cc.tool_groups > 0))(index)
    assert not (cc.tokens < 10)(index)


# -- functions --------------------------------------------------------------------------------------


@cc.predicate
def odd(index: Any) -> object:
    """Whether the number of messages is odd."""
    return index.value(cc.messages) % 2


def test_a_function_joins_through_the_decorator() -> None:
    """What it returns is taken as true or false; it prints as its name."""
    assert odd(Numbers(messages=3)) is True
    assert odd(Numbers(messages=2)) is False
    assert (odd | A)(Numbers(tokens=9))
    assert repr(odd | A) == "(odd) | (tokens > 8)"
    assert odd.explain(Numbers(messages=3)).text == "odd is true"


def test_a_negated_function() -> None:
    assert repr(~odd) == "~odd"
    assert (~odd)(Numbers(messages=2)) is True
    assert ~~odd == odd
    assert (~odd).explain(Numbers(messages=3)).text == "~odd is false"


def test_functions_are_equal_where_they_are_the_same() -> None:
    def other(index: Any) -> bool:
        return True

    assert cc.predicate(other) == cc.predicate(other)
    assert cc.predicate(other) != odd
    assert len({cc.predicate(other), cc.predicate(other), odd}) == 2


def test_a_callable_object_prints_as_its_type() -> None:
    class Sometimes:
        def __call__(self, index: Any) -> bool:
            return True

    assert repr(cc.predicate(Sometimes())) == "Sometimes"


def test_a_predicate_is_made_of_something_callable() -> None:
    with pytest.raises(TypeError, match=r"^function must be callable, got 3$"):
        cc.predicate(3)  # type: ignore[arg-type]


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        (cc.tokens_exceed(5), cc.tokens > 5),
        (cc.tokens_below(5), cc.tokens < 5),
        (cc.messages_exceed(5), cc.messages > 5),
        (cc.groups_exceed(5), cc.groups > 5),
        (cc.turns_exceed(5), cc.turns > 5),
        (cc.tool_groups_exceed(5), cc.tool_groups > 5),
        (cc.has_tool_calls(), cc.tool_groups > 0),
        (cc.fraction_of_window(0.8, window=200_000), cc.tokens > 160_000),
        (cc.fraction_of_window(1, window=7), cc.tokens > 7),
        (cc.fraction_of_window(0.5, window=7), cc.tokens > 3),
    ],
    ids=str,
)
def test_named_factories_make_the_same_values(named: cc.Predicate, plain: cc.Predicate) -> None:
    """For readers of the .NET documentation."""
    assert named == plain
    assert repr(named) == repr(plain)


@pytest.mark.parametrize(
    ("fraction", "window", "error", "text"),
    [
        (0, 100, ValueError, "fraction must be above 0 and at most 1, got 0"),
        (1.01, 100, ValueError, "fraction must be above 0 and at most 1, got 1.01"),
        (-0.5, 100, ValueError, "fraction must be above 0 and at most 1, got -0.5"),
        (float("nan"), 100, ValueError, "fraction must be above 0 and at most 1, got nan"),
        (float("inf"), 100, ValueError, "fraction must be above 0 and at most 1, got inf"),
        (True, 100, TypeError, "fraction must be a number above 0 and at most 1, got True"),
        ("0.8", 100, TypeError, "fraction must be a number above 0 and at most 1, got '0.8'"),
        (0.8, 0, ValueError, "window must be above 0 tokens, got 0"),
        (0.8, -1, ValueError, "window must be above 0 tokens, got -1"),
        (0.8, 1e5, TypeError, "window must be an int of tokens, got 100000.0"),
        (0.8, True, TypeError, "window must be an int of tokens, got True"),
    ],
)
def test_a_share_of_a_window(fraction: Any, window: Any, error: type[Exception], text: str) -> None:
    """Wrong arguments fail by name, value and expectation."""
    with pytest.raises(error) as caught:
        cc.fraction_of_window(fraction, window=window)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("percent", "window"), [(29, 100), (57, 100), (58, 100), (7, 1000), (55, 128_000), (14, 200_000)]
)
def test_a_share_in_decimals_is_not_cut_short(percent: int, window: int) -> None:
    """0.29 of 100 is 29, whatever binary fractions make of it."""
    assert cc.fraction_of_window(percent / 100, window=window) == (cc.tokens > percent * window // 100)


def test_the_public_home_has_every_name_that_a_repr_uses() -> None:
    """``eval(repr(p))`` works wherever the names of ``chat_compaction.triggers`` are in scope."""
    condition = ~((A & B) | (cc.groups >= 3) | (cc.tool_groups < 9) | cc.always)
    assert eval(repr(condition), vars(triggers)) == condition  # noqa: S307
    assert set(triggers.__all__) <= set(dir(triggers))
