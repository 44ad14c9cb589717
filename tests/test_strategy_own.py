"""A user's own strategy: a plain class, an attrs class or a dataclass, with one method (the base's fields and K3)."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
from collections.abc import Callable, Generator
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import CHAT, Drop, drop, index_of, said, step, user


@attrs.frozen(kw_only=True)
class AttrsDrop(Drop):
    """An attrs class with a field of its own."""

    most: int = 2


@attrs.define(kw_only=True)
class MutableAttrsDrop(Drop):
    most: int = 2


@dataclasses.dataclass
class DataDrop(Drop):
    """A dataclass: it sets its own fields, and the base's are defaults where it has none of the name."""

    trigger: cc.Predicate = cc.messages > 2
    min_preserved_groups: int = 1
    most: int = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrozenDataDrop(Drop):
    trigger: cc.Predicate
    min_preserved_groups: int = 1


class ClassAttributes(Drop):
    """Fields of the class, and a constructor that knows nothing of the base."""

    trigger = cc.messages > 2
    min_preserved_groups = 1

    def __init__(self, note: str = "") -> None:
        self.note = note


class InstanceAttributes(Drop):
    def __init__(self, limit: int) -> None:
        self.trigger = cc.messages > limit
        self.min_preserved_groups = 1


class CallsTheBase(Drop):
    def __init__(self, limit: int) -> None:
        super().__init__(trigger=cc.messages > limit, min_preserved_groups=1)


class ComputedTrigger(Drop):
    """A trigger that follows from another field."""

    min_preserved_groups = 1

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @property
    def trigger(self) -> cc.Predicate:  # type: ignore[override]
        return cc.messages > self.limit


OWN: list[cc.CompactionStrategy] = [
    drop(cc.messages > 2),
    AttrsDrop(trigger=cc.messages > 2, min_preserved_groups=1, most=5),
    MutableAttrsDrop(trigger=cc.messages > 2, min_preserved_groups=1),
    DataDrop(most=5),
    FrozenDataDrop(trigger=cc.messages > 2),
    ClassAttributes("note"),
    InstanceAttributes(2),
    CallsTheBase(2),
    ComputedTrigger(2),
]
own = pytest.mark.parametrize("strategy", OWN, ids=lambda strategy: type(strategy).__name__)


@own
def test_a_strategy_of_any_class_works_like_ours(strategy: cc.CompactionStrategy) -> None:
    """Plain class, attrs class or dataclass; in a pass, in a reducer, sync and async; with the base's defaults."""
    index = index_of()
    report = strategy.compact(index, hooks=())
    assert index.included_positions() == [4, 5]
    assert (report.strategy, report.stopped_by) == (type(strategy).__name__, "target")
    reducer = cc.as_chat_reducer(strategy, counter=characters_counter(), hooks=())
    assert reducer(CHAT) == asyncio.run(reducer.areduce(CHAT)) == CHAT[4:]
    assert (strategy.keep_last_user, strategy.preserve_system, strategy.target) == (True, True, None)
    assert strategy.effective_target == (cc.messages <= 2)


@own
def test_a_strategy_of_any_class_prints(strategy: cc.CompactionStrategy) -> None:
    """Its repr names the class and the fields."""
    assert repr(strategy).startswith(f"{type(strategy).__qualname__}(")
    assert "trigger=messages > 2" in repr(strategy)


@own
@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle"])
def test_a_strategy_of_any_class_can_be_copied(strategy: cc.CompactionStrategy, how: str) -> None:
    """A value: an agent's settings are copied and sent to other processes, with the fields that a class adds too."""
    copiers: dict[str, Callable[[Any], Any]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
    }
    twin = copiers[how](strategy)
    assert repr(twin) == repr(strategy)
    for name in ("most", "note", "limit"):
        assert getattr(twin, name, None) == getattr(strategy, name, None)


def test_a_wrong_field_of_any_class_is_an_error() -> None:
    """At construction where a constructor of ours or a dataclass's runs, else at the first call."""
    wrong: Any = lambda index: True  # noqa: E731
    hint = r"^trigger must be a predicate such as tokens > 8_000, got .*; make a predicate of a function with "
    for make in (
        drop,
        lambda trigger: AttrsDrop(trigger=trigger),
        DataDrop,
        lambda trigger: FrozenDataDrop(trigger=trigger),
    ):
        with pytest.raises(TypeError, match=hint):
            make(wrong)
    strategy = ClassAttributes()
    strategy.trigger = wrong
    with pytest.raises(TypeError, match=hint):
        strategy.compact(index_of())
    with pytest.raises(ValueError, match=r"^min_preserved_groups must be an int of 0 or more, got -1$"):
        DataDrop(min_preserved_groups=-1)


def test_a_strategy_without_a_trigger() -> None:
    """The error says what is missing."""

    class NoTrigger(Drop):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"^trigger must be a predicate such as tokens > 8_000, got None$"):
        NoTrigger().compact(index_of())
    with pytest.raises(TypeError, match="trigger"):
        Drop()  # type: ignore[call-arg]


def test_a_field_in_the_body_of_a_class_that_takes_arguments() -> None:
    """The constructor of the base would set its own default over it, in silence; so it is an error."""

    class Shadowing(Drop):
        min_preserved_groups = 1

    with pytest.raises(TypeError, match=r"^min_preserved_groups must be .* in its body$"):
        Shadowing(trigger=cc.messages > 2)
    assert Shadowing(trigger=cc.messages > 2, min_preserved_groups=1).min_preserved_groups == 1

    class Below(cc.TruncationStrategy):
        min_preserved_groups = 1

    with pytest.raises(TypeError, match=r"^min_preserved_groups must be an argument or an annotated field of Below"):
        Below(trigger=cc.messages > 2)


def test_other_names_are_no_fields() -> None:
    """A misspelt attribute is an AttributeError, as everywhere."""
    with pytest.raises(AttributeError, match="'Drop' object has no attribute 'triger'"):
        _ = drop(cc.always, cc.never).triger  # type: ignore[attr-defined]


def test_a_strategy_needs_a_core() -> None:
    class Nothing(cc.CompactionStrategy):
        pass

    with pytest.raises(TypeError, match="compact_core"):
        Nothing(trigger=cc.always)  # type: ignore[abstract]


def test_a_strategy_may_wrap_another() -> None:
    """A core may ask another strategy's core, in the same pass."""

    class Noted(cc.CompactionStrategy):
        def __init__(self, inner: cc.CompactionStrategy) -> None:
            self.inner = inner
            self.trigger = inner.trigger
            self.min_preserved_groups = inner.min_preserved_groups
            self.calls = 0

        def compact_core(self, index: cc.MessageIndex) -> Generator[cc.Effect, Any, Any] | bool | None:
            self.calls += 1
            return self.inner.compact_core(index)

    strategy = Noted(drop(cc.messages > 2))
    index = index_of()
    strategy.compact(index, hooks=())
    assert (index.included_positions(), strategy.calls) == ([4, 5], 1)


def test_one_strategy_serves_many_indexes() -> None:
    """A strategy is a value: it keeps nothing of what it did."""
    strategy = drop(cc.messages > 2)
    before = repr(strategy)
    for messages in (CHAT, [user(), *step("a"), *step("b"), said()], []):
        strategy.compact(index_of(messages), hooks=())
    assert repr(strategy) == before
