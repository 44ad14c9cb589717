"""The laws of predicates, over random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction import triggers

METRICS = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
OPERATORS: dict[str, Callable[[Any, int], Any]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


@attrs.frozen
class Measured:
    """A number for each metric, of which only a lower bound may be known."""

    numbers: dict[str, int]
    exact: bool = True

    def value(self, metric: cc.Metric) -> int:
        return self.numbers[metric.name]

    def exceeds(self, metric: cc.Metric, limit: int) -> bool:
        return self.value(metric) > limit

    def known(self, metric: cc.Metric) -> tuple[int, bool]:
        return (self.value(metric), True) if self.exact else (0, False)


measured = st.builds(
    Measured, st.fixed_dictionaries({metric.name: st.integers(0, 6) for metric in METRICS}), st.booleans()
)


@attrs.frozen
class Told:
    """A predicate, and the same condition as a plain function of plain numbers."""

    predicate: cc.Predicate
    plain: Callable[[dict[str, int]], bool]


def _compared(metric: cc.Metric, operator: str, limit: int) -> Told:
    compare = OPERATORS[operator]
    return Told(compare(metric, limit), lambda numbers: bool(compare(numbers[metric.name], limit)))


def _both(one: Told, other: Told) -> Told:
    return Told(one.predicate & other.predicate, lambda numbers: one.plain(numbers) and other.plain(numbers))


def _either(one: Told, other: Told) -> Told:
    return Told(one.predicate | other.predicate, lambda numbers: one.plain(numbers) or other.plain(numbers))


def _not(one: Told) -> Told:
    return Told(~one.predicate, lambda numbers: not one.plain(numbers))


leaves = st.builds(_compared, st.sampled_from(METRICS), st.sampled_from(sorted(OPERATORS)), st.integers(0, 6)) | (
    st.sampled_from([Told(cc.always, lambda numbers: True), Told(cc.never, lambda numbers: False)])
)
told = st.recursive(
    leaves,
    lambda inner: st.builds(_both, inner, inner) | st.builds(_either, inner, inner) | st.builds(_not, inner),
    max_leaves=12,
)
predicates = told.map(lambda one: one.predicate)


@given(told, measured)
def test_it_agrees_with_plain_booleans(one: Told, index: Measured) -> None:
    """A predicate answers what the same condition over plain numbers does, and so does its explanation."""
    expected = one.plain(index.numbers)
    assert one.predicate(index) is expected
    assert one.predicate.explain(index).holds is expected
    assert bool(one.predicate.explain(index)) is expected
    assert (~one.predicate)(index) is not expected


@given(predicates)
def test_its_repr_makes_it_again(condition: cc.Predicate) -> None:
    """As Python, with the names of :mod:`chat_compaction.triggers`, and as the text form."""
    assert eval(repr(condition), vars(triggers)) == condition  # noqa: S307
    assert cc.parse_predicate(repr(condition)) == condition
    assert hash(cc.parse_predicate(repr(condition))) == hash(condition)


@given(predicates)
def test_double_negation(condition: cc.Predicate) -> None:
    assert ~~condition == condition
    assert ~condition != condition


@given(predicates, predicates)
def test_de_morgan(one: cc.Predicate, other: cc.Predicate) -> None:
    assert ~(one & other) == ~one | ~other
    assert ~(one | other) == ~one & ~other


@given(predicates, predicates, predicates)
def test_associativity(one: cc.Predicate, two: cc.Predicate, three: cc.Predicate) -> None:
    assert (one & two) & three == one & (two & three) == cc.all_of(one, two, three)
    assert (one | two) | three == one | (two | three) == cc.any_of(one, two, three)


@given(predicates)
def test_idempotence(condition: cc.Predicate) -> None:
    assert condition & condition == condition
    assert condition | condition == condition


@given(predicates, predicates, measured)
def test_order_does_not_change_the_answer(one: cc.Predicate, other: cc.Predicate, index: Measured) -> None:
    assert (one & other)(index) is (other & one)(index)
    assert (one | other)(index) is (other | one)(index)


@given(st.text(max_size=60) | st.text(alphabet="tokens >|&~()1_, always=", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but an error of ours, whatever comes; and what is read prints as something that reads the same."""
    try:
        condition = cc.parse_predicate(text)
    except cc.PredicateSyntaxError:
        return
    assert cc.parse_predicate(repr(condition)) == condition
