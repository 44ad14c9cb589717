"""``from_config(to_config(s)) == s`` for compositions of all strategies that we ship, through every format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.config import dumps_config, from_config, loads_config, to_config
from chat_compaction.config._arguments import Argument, arguments_of
from chat_compaction.config._registry import STRATEGIES
from chat_compaction.offload import OffloadStore
from chat_compaction.summarizers import EndpointSummarizer, ExtractiveSummarizer

# Two that are functions; their import paths have tests of their own.
NAMES = sorted(STRATEGIES.ours.keys() - {"function", "reducer"})
LEAVES = [name for name in NAMES if name not in ("pipeline", "first_of")]

LIMITS = st.integers(0, 10_000)
PREDICATES = st.recursive(
    st.builds(
        lambda metric, above, limit: metric > limit if above else metric <= limit,
        st.sampled_from([cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups]),
        st.booleans(),
        LIMITS,
    ),
    lambda inner: st.builds(lambda a, b, both: a & b if both else a | b, inner, inner, st.booleans()),
    max_leaves=3,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
OPTIONS = st.dictionaries(st.sampled_from(["temperature", "kind", "a b"]), st.one_of(st.booleans(), LIMITS, TEXTS))
SUMMARIZERS = st.one_of(
    st.builds(ExtractiveSummarizer, sentences=st.one_of(st.none(), st.integers(1, 9))),
    st.builds(
        EndpointSummarizer,
        st.just("https://api.example.com/v1"),
        st.sampled_from(["small", "großes"]),
        api_key_env=st.sampled_from([None, "KEY"]),
        options=OPTIONS,
        timeout=st.floats(0.5, 90),
    ),
)
STORES = st.builds(OffloadStore, st.just("memory://property"), max_bytes=st.one_of(st.none(), st.integers(1, 10**9)))
KEEPS = st.one_of(TEXTS, st.builds(re.compile, TEXTS.map(re.escape), st.sampled_from([0, re.IGNORECASE | re.DOTALL])))


def values(argument: Argument, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of an argument: by its name where its type says too little, else by its type."""
    if argument.name == "store":
        return STORES
    if argument.name == "must_keep":
        return st.lists(KEEPS, max_size=3)
    return of_type(argument.type, inner)


def of_type(cls: Any, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    origin, inside = get_origin(cls), get_args(cls)
    if origin in (Union, UnionType):
        return st.one_of(*(of_type(option, inner) for option in inside))
    if origin is Literal:
        return st.sampled_from(inside)
    if origin is tuple and inside[-1] is not ...:
        return st.tuples(*(of_type(one, inner) for one in inside))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return OPTIONS
    if origin is Callable or isinstance(cls, str | ForwardRef):
        return SUMMARIZERS
    if isinstance(origin, type) and issubclass(origin, Collection):
        return st.lists(of_type(inside[0], inner), min_size=1, max_size=3)
    if isinstance(cls, type) and issubclass(cls, cc.CompactionStrategy):
        return inner
    found = {
        bool: st.booleans(),
        int: st.integers(0, 50),
        float: st.floats(0.01, 1),
        str: TEXTS,
        NoneType: st.none(),
        cc.Predicate: PREDICATES,
    }
    return found.get(cls, st.nothing())


@st.composite
def made(draw: st.DrawFn, names: list[str], inner: st.SearchStrategy[Any]) -> cc.CompactionStrategy:
    """A strategy of one of these names: what it needs, and whatever else it takes."""
    cls: type[cc.CompactionStrategy] = STRATEGIES.load(draw(st.sampled_from(names)))
    arguments = arguments_of(cls)
    given = {name: draw(values(one, inner)) for name, one in arguments.items() if one.required}
    if "stages" in arguments:
        given["stages"] = draw(st.lists(inner, min_size=1, max_size=3))
    optional = sorted(arguments.keys() - given.keys())
    for name in draw(st.lists(st.sampled_from(optional), max_size=5, unique=True)):
        candidate = {**given, name: draw(values(arguments[name], inner) | st.none())}
        # What does not go with the others stays away; the checks of each class have tests of their own.
        try:
            cls(**candidate)
        except (TypeError, ValueError):
            continue
        given = candidate
    try:
        return cls(**given)
    except ValueError:
        return cc.TruncationStrategy(trigger=cc.tokens > 8_000)


STRATEGY = st.recursive(made(LEAVES, st.nothing()), lambda inner: made(["pipeline", "first_of"], inner), max_leaves=4)


@settings(max_examples=40)
@given(STRATEGY)
def test_round_trip(strategy: cc.CompactionStrategy) -> None:
    """Plain data holds all that a strategy is, and nothing that is at its default."""
    config = to_config(strategy)
    again = from_config(config)
    assert again == strategy
    assert repr(again) == repr(strategy)
    assert to_config(again) == config


@pytest.mark.parametrize("format", ["toml", "yaml", "json"])
@settings(max_examples=15)
@given(strategy=STRATEGY)
def test_round_trip_as_text(format: Any, strategy: cc.CompactionStrategy) -> None:
    """And so do the texts."""
    assert loads_config(dumps_config(strategy, format), format) == strategy


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_of_every_strategy_has_a_type(name: str) -> None:
    """One that cannot be told at run time would be read as it stands, whatever it is."""
    for argument in arguments_of(STRATEGIES.load(name)).values():
        assert argument.type is not Any, argument
        assert not isinstance(argument.type, str | ForwardRef), argument
