"""A plain function as a strategy: a value that keeps what every strategy keeps (G2, K4, K7, K9)."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._batch._canonical import canonical
from chat_compaction.strategies.function import FunctionStrategy, strategy
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, said, step, user

CHAT = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]


@strategy(trigger=cc.messages > 3, min_preserved_groups=1)
def oldest(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> bool:
    """Oldest first."""
    return strategy.evict(index, strategy.candidates(index), "oldest")


@strategy(trigger=cc.messages > 3, min_preserved_groups=1)
def asking(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> Generator[cc.Effect, Any, None]:
    """A generator: what it needs from outside is an effect."""
    number = yield cc.Effect(len, (strategy.candidates(index),))
    for group in strategy.candidates(index)[:number]:
        index.exclude(group, "asked")


def plain(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
    """Not decorated."""
    strategy.evict(index, strategy.candidates(index), "plain")


def compacted(strategy: cc.CompactionStrategy, messages: list[Any], **settings: Any) -> tuple[list[int], Any]:
    index = cc.MessageIndex.from_messages(messages, counter=characters_counter(), **settings)
    report = strategy.compact(index, hooks=())
    return index.included_positions(), report


def test_the_function_is_the_core() -> None:
    """It gets the strategy, with all that a method has, and the index."""
    positions, report = compacted(oldest, CHAT)
    assert positions == [3, 4, 5]
    assert {exclusion.reason for exclusion in report.excluded} == {"oldest"}
    assert (report.changed, report.fits, report.stopped_by) == (True, True, "target")
    assert not compacted(oldest, CHAT[:3])[1].changed


@strategy(trigger=cc.messages > 1, min_preserved_groups=0)
def shorter(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
    """It replaces texts, and removes nothing."""
    for group in strategy.rewritable(index):
        for position in index.positions_of(group):
            parts = {part: "short" for part, read in enumerate(index.view(position).parts) if len(read.text) > 5}
            written = index.format.with_texts(index.raw(position), parts)
            if parts and written is not None:
                index.rewrite(group, {position: written}, "shorter")


@pytest.mark.parametrize("build", [step, anthropic_step])
def test_a_function_may_rewrite(build: Any) -> None:
    """And is asked also where no group may leave: here the only ones are the task and the newest."""
    task, (called, answered) = user("task"), build("a")
    long = [task, called, {**answered, "content": answered["content"]}]
    text = "much of it " * 9
    long[2]["content"] = text if isinstance(answered["content"], str) else [{**answered["content"][0], "content": text}]
    index = cc.MessageIndex.from_messages(long, counter=characters_counter())
    report = attrs.evolve(shorter, trigger=cc.tokens > 80).compact(index, hooks=())
    assert not attrs.evolve(shorter, trigger=cc.tokens > 80).candidates(index)
    assert (report.skipped, report.fits, len(report.replaced), report.excluded) == (None, True, 1, ())
    assert index.included_messages()[:2] == long[:2]
    assert text not in str(index.included_messages())
    assert text in str(long)


def test_a_second_pass_changes_nothing() -> None:
    """K10."""
    kept = [CHAT[position] for position in compacted(oldest, CHAT)[0]]
    assert not compacted(oldest, kept)[1].changed


def test_a_generator_may_ask() -> None:
    """Its effects are answered in a plain and in an async run, and none in a plan."""
    assert compacted(asking, CHAT)[0] == [4, 5]
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    assert asking.plan(index).stopped_by == "effect"
    asyncio.run(asking.acompact(index, hooks=()))
    assert index.included_positions() == [4, 5]


def test_the_floor_and_the_groups_are_kept_for_it() -> None:
    """G2 and K4: whatever it wants to exclude."""

    @strategy(trigger=cc.messages > 3, min_preserved_groups=1)
    def everything(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        for group in index.groups:
            index.exclude(group, "greedy")

    with pytest.raises(cc.ProtectedGroupError):
        compacted(everything, CHAT)
    messages = [user("task"), *step("a", "b"), user("more"), *step("c"), call("d")]
    assert compacted(oldest, messages)[0] == [4, 7]
    assert compacted(oldest, [user("task"), *anthropic_step("a"), *anthropic_step("b")])[0] == [0, 3, 4]


def test_an_error_undoes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """K9."""

    @strategy(trigger=cc.messages > 3, min_preserved_groups=1)
    def failing(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        index.exclude(strategy.candidates(index)[0], "first")
        raise OSError("no")

    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    with pytest.raises(OSError, match="no"):
        failing.compact(index, hooks=())
    assert index.included_positions() == [0, 1, 2, 3, 4, 5]


def test_what_it_returns_is_checked_as_of_any_strategy() -> None:
    @strategy(trigger=cc.messages > 3, min_preserved_groups=1)
    def listing(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> Any:
        return list(strategy.candidates(index))

    with pytest.raises(cc.StrategyError, match="must exclude what should leave and return nothing"):
        compacted(listing, CHAT)


def test_it_is_a_value() -> None:
    """Named as its function, equal by function and arguments, and its repr reads."""
    assert isinstance(oldest, FunctionStrategy)
    assert oldest.name == "oldest"
    assert repr(oldest) == "FunctionStrategy(oldest, trigger=messages > 3, min_preserved_groups=1)"
    same = FunctionStrategy(oldest.function, trigger=cc.messages > 3, min_preserved_groups=1)
    assert oldest == same
    assert hash(oldest) == hash(same)
    assert oldest != attrs.evolve(oldest, min_preserved_groups=2)
    assert oldest != attrs.evolve(oldest, function=plain)
    changed = attrs.evolve(oldest, trigger=cc.turns > 4, target=cc.turns <= 2, keep_last_user=False)
    assert repr(changed) == (
        "FunctionStrategy(oldest, trigger=turns > 4, target=turns <= 2, min_preserved_groups=1, keep_last_user=False)"
    )


class Method:
    def core(self, strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        strategy.evict(index, strategy.candidates(index), "method")

    def __call__(self, strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        self.core(strategy, index)

    def __repr__(self) -> str:
        return "Method()"


def test_any_callable_of_two_will_do() -> None:
    """A bound method, an object."""
    for function in (Method().core, Method(), lambda strategy, index, reason="x": plain(strategy, index)):
        assert compacted(FunctionStrategy(function, trigger=cc.messages > 3, min_preserved_groups=1), CHAT)[0]
    # Of this one nobody can tell what it takes.
    unknown: Any = max
    assert FunctionStrategy(unknown, trigger=cc.messages > 3).name == "max"
    made = FunctionStrategy(Method(), trigger=cc.messages > 3)
    assert made.name == "Method"
    assert repr(made) == "FunctionStrategy(Method(), trigger=messages > 3)"


async def waiting(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None: ...


async def streaming(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> Any:
    yield None


@pytest.mark.parametrize(
    "function",
    [3, None, lambda index: None, lambda a, b, c: None, waiting, streaming],
    ids=["number", "none", "one", "three", "async", "async generator"],
)
def test_what_is_no_function_of_two_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"^function must be a plain function of two arguments, as in def oldest_first"):
        strategy(trigger=cc.messages > 3)(function)


def test_the_decorator_needs_its_arguments() -> None:
    with pytest.raises(TypeError, match=r"^strategy needs its arguments, as in @cc.strategy"):
        strategy(trigger=plain)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^strategy needs its arguments, as in @cc.strategy\(trigger=cc.tokens > 8_000\), got"
    ):
        strategy(plain)  # type: ignore[call-arg,arg-type]
    with pytest.raises(TypeError, match="trigger must be a predicate"):
        strategy(trigger="tokens > 8000")(plain)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^min_preserved_groups must be an int of 0 or more, got -1"):
        strategy(trigger=cc.messages > 3, min_preserved_groups=-1)(plain)


UNPICKLED = """
import pickle, sys
print([pickle.loads(bytes.fromhex(pickled)) for pickled in sys.argv[1:]])
"""


def test_it_can_be_sent_to_another_process() -> None:
    """By the name of its function, decorated or not; so it has a digest by which runs are told apart, too."""
    strategies = [oldest, FunctionStrategy(plain, trigger=cc.messages > 3)]
    pickled = [pickle.dumps(made).hex() for made in strategies]
    done = subprocess.run([sys.executable, "-c", UNPICKLED, *pickled], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(strategies)
    for made in strategies:
        assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301
        assert canonical(made) == canonical(attrs.evolve(made))
        assert canonical(made) != canonical(attrs.evolve(made, min_preserved_groups=5))


def test_a_function_without_a_place_of_its_own_cannot_be_sent() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(FunctionStrategy(lambda strategy, index: None, trigger=cc.messages > 3))
