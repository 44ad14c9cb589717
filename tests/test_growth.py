"""Accidental O(n²) is a bug (rule K13): steps at n and at 8 n, counted, never timed.

A step is a line of the package that runs, or a call of any function, a built-in one too. Versions of Python agree on
these within a few percent, where their instructions differ. Linear work is eight times as much at eight times the
size; a sort may add a little; quadratic work is sixty-four times as much.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, results, said, step, user

PACKAGE = str(Path(cc.__file__).parent)
SIZE = 16
MOST = 8.6


def operations(work: Callable[[], object]) -> int:
    """How many lines of the package run in some work, and how many functions are called."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        # Generators and comprehensions of the package are frames of their own, and traced like any other; and what
        # attrs writes for its classes is the package's, too.
        return count_line if frame.f_code.co_filename.startswith((PACKAGE, "<attrs")) else None

    def count_line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return count_line

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def growth(prepare: Callable[[int], Callable[[], object]], size: int = SIZE) -> float:
    """How much more work there is at eight times the size; what prepares it does not count."""
    prepare(size)()  # Loads what loads late, which is work that is done once.
    large = operations(prepare(8 * size))  # One by itself, since what lives together shares a cache of counts.
    return large / operations(prepare(size))


# -- histories -------------------------------------------------------------------------------------


def agent(n: int) -> list[Any]:
    """A turn for every four tool calls."""
    return [m for i in range(n) for m in ([user(f"task {i}")] if i % 4 == 0 else []) + step(f"c{i}")]


def giant(n: int) -> list[Any]:
    """One user message, and nothing but tool calls."""
    return [user("task"), *(m for i in range(n) for m in step(f"c{i}"))]


def anthropic_giant(n: int) -> list[Any]:
    """The same in Anthropic's format, where the user message must stay first."""
    return [user("task"), *(m for i in range(n) for m in anthropic_step(f"c{i}"))]


def anthropic_agent(n: int) -> list[Any]:
    return [m for i in range(n) for m in ([user(f"task {i}")] if i % 4 == 0 else []) + anthropic_step(f"c{i}")]


def chat(n: int) -> list[Any]:
    return [m for i in range(n) for m in (user(f"question {i}"), said(f"answer {i}"))]


def parallel_forwards(n: int) -> list[Any]:
    """Every message of results answers two calls, so that all groups become one, from the first on."""
    calls = [call(f"c{i}", format="anthropic") for i in range(n)]
    return [user("task"), *calls, *(results(f"c{i}", f"c{i + 1}") for i in range(n - 1))]


def parallel_backwards(n: int) -> list[Any]:
    calls = [call(f"c{i}", format="anthropic") for i in range(n)]
    return [user("task"), *calls, *(results(f"c{i}", f"c{i + 1}") for i in reversed(range(n - 1)))]


def parallel_by_halves(n: int) -> list[Any]:
    """Groups are merged two by two, then four by four, ..."""
    calls = [call(f"c{i}", format="anthropic") for i in range(n)]
    pairs = [(i, i + gap) for gap in (1, 2, 4, 8, 16, 32, 64, 128) for i in range(0, n - gap, 2 * gap)]
    return [user("task"), *calls, *(results(f"c{one}", f"c{other}") for one, other in pairs)]


def parallel_at_once(n: int) -> list[Any]:
    calls = [call(f"c{i}", format="anthropic") for i in range(n)]
    return [user("task"), *calls, results(*(f"c{i}" for i in range(n)))]


def half_answered(n: int) -> list[Any]:
    """One message answers half of the calls of each group; the others never get a result."""
    calls = [call(f"c{i}", f"open{i}", format="anthropic") for i in range(n)]
    return [user("task"), *calls, results(*(f"c{i}" for i in range(n))), user("more"), said("done")]


def one_id(n: int) -> list[Any]:
    """One id, open many times."""
    return [user("task"), *(call("c") for _ in range(n)), *(m for _ in range(n) for m in step("c")[1:])]


def open_calls(n: int) -> list[Any]:
    """Calls that never get a result."""
    return [m for i in range(n) for m in (user(f"task {i}"), call(f"c{i}"))]


def late_results(n: int) -> list[Any]:
    """All calls first, all results at the very end."""
    return [user("task"), *(call(f"c{i}") for i in range(n)), *(m for i in range(n) for m in step(f"c{i}")[1:])]


def orphans(n: int) -> list[Any]:
    return [user("task"), *(m for i in range(n) for m in step(f"c{i}")[1:])]


def thoughts(n: int) -> list[Any]:
    """Reasoning alone, many times over: each is tied to the next."""
    return [user("task"), *({"role": "assistant", "content": None, "reasoning_content": f"{i}"} for i in range(n))]


def headless(n: int) -> list[Any]:
    """An Anthropic list that never began with a user's message."""
    return [*(m for i in range(n) for m in anthropic_step(f"c{i}")), user("task"), said("done")]


SHAPES = [
    agent,
    giant,
    anthropic_giant,
    anthropic_agent,
    chat,
    parallel_forwards,
    parallel_backwards,
    parallel_by_halves,
    parallel_at_once,
    half_answered,
    one_id,
    open_calls,
    late_results,
    orphans,
    thoughts,
    headless,
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
Shape = Callable[[int], list[Any]]


def index_of(history: Sequence[Any], **arguments: Any) -> cc.MessageIndex:
    """An index that counts characters."""
    return cc.MessageIndex.from_messages(history, counter=characters_counter(), **arguments)


# -- an index --------------------------------------------------------------------------------------


@shapes
def test_grouping_is_linear(shape: Shape) -> None:
    """K13: a fresh list is read and grouped in time linear in it, whatever its groups."""

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)
        return lambda: index_of(history)

    assert growth(prepare) < MOST


@shapes
def test_extending_one_by_one_is_linear(shape: Shape) -> None:
    """K13: appending costs by what is new, so that one message at a time costs as much as all at once."""

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)
        index = index_of(history[:1], format="anthropic" if is_anthropic(history) else "openai_chat")
        return lambda: extend_one_by_one(index, history[1:])

    assert growth(prepare) < MOST


def extend_one_by_one(index: cc.MessageIndex, messages: Sequence[Any]) -> None:
    for message in messages:
        index.extend([message])


def is_anthropic(history: Sequence[Any]) -> bool:
    return any(isinstance(message["content"], list) for message in history)


@shapes
def test_extending_behind_a_cut_is_linear(shape: Shape) -> None:
    """K13: what left, and a first user message that is held back, cost nothing at the next message."""

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)
        index = index_of(history)
        strategy = cc.TruncationStrategy(trigger=cc.groups > 2, min_preserved_groups=1, keep_last_user=False)
        strategy.compact(index, hooks=())
        return lambda: extend_one_by_one(index, [said(f"more {i}") for i in range(n)])

    assert growth(prepare) < MOST


@shapes
def test_looking_is_linear(shape: Shape) -> None:
    """K13: groups, problems, the table and a snapshot."""

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(shape(n))
        return lambda: (index.groups, index.problems, index.table(), index.snapshot(), index.included_messages())

    assert growth(prepare) < MOST


def test_reading_a_metric_costs_the_same_at_any_size() -> None:
    """K13: once it is counted, a metric is O(1)."""

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(agent(n))
        index.total(cc.tokens)
        metrics = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
        return lambda: [(index.value(metric), index.total(metric)) for metric in metrics]

    assert growth(prepare) == 1


@pytest.mark.parametrize("new", [[], [user("more")]], ids=["nothing", "one"])
def test_updating_a_long_list_is_a_glance(new: list[Any]) -> None:
    """K13: a list that grew by one message is compared as a whole, which is a call for any length, and not read."""

    def prepare(n: int) -> Callable[[], object]:
        history = agent(n)
        index = index_of(history)
        return lambda: index.update([*history, *new])

    assert growth(prepare) < 1.1


@shapes
def test_excluding_by_hand_is_linear(shape: Shape) -> None:
    """K13: excluding every group that may leave, one by one, from either end, and bringing them back."""

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(shape(n), pending_turns=0)
        newest_last = sorted(index.groups, key=lambda group: group.newest)
        free = [group for group in newest_last if not group.pending][:-1]

        def work() -> None:
            for order in (free, free[::-1]):
                for group in order:
                    index.exclude(group, "by hand")
                for group in order:
                    index.include(group)

        return work

    assert growth(prepare) < MOST


def test_including_one_by_one_from_the_newest_is_linear() -> None:
    """K13 and K7: the place of the first message is remembered, also while groups come and go behind a held one."""

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(anthropic_giant(n))
        groups = index.groups

        def work() -> None:
            for group in groups[:-1]:
                index.exclude(group, "by hand")
            for group in reversed(groups[:-1]):
                index.include(group)

        return work

    assert growth(prepare) < MOST


# -- strategies ------------------------------------------------------------------------------------


def keep_everything(messages: list[Any]) -> list[Any]:
    return messages


def keep_the_newest(messages: list[Any]) -> list[Any]:
    return messages[-4:]


def copy_the_newest_half(messages: list[Any]) -> list[Any]:
    return copy.deepcopy(messages[len(messages) // 2 :])


STRATEGIES = {
    "truncation": cc.TruncationStrategy(trigger=cc.tokens > 8, min_preserved_groups=1),
    "truncation-groups": cc.TruncationStrategy(trigger=cc.groups > 4, min_preserved_groups=2, keep_last_user=False),
    "truncation-either": cc.TruncationStrategy(trigger=(cc.turns > 2) | (cc.messages > 10), preserve_system=False),
    "budget": cc.TokenBudgetStrategy(8),
    "budget-turns": cc.TokenBudgetStrategy(8, max_turns=2, evict="turns", keep_last_user=False),
    "budget-groups": cc.TokenBudgetStrategy(8, evict="groups"),
    "budget-messages": cc.TokenBudgetStrategy(8, min_preserved_messages=10),
    "reducer-all": cc.ReducerStrategy(keep_everything, cc.messages > 4),
    "reducer-newest": cc.ReducerStrategy(keep_the_newest, cc.messages > 4),
    "reducer-copies": cc.ReducerStrategy(copy_the_newest_half, cc.messages > 4),
}


@shapes
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_compaction_is_linear(name: str, shape: Shape) -> None:
    """K13: many groups, one giant turn, a held first user message: the work grows with the list and no faster."""
    strategy = STRATEGIES[name]

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(shape(n))
        return lambda: strategy.compact(index, hooks=())

    assert growth(prepare) < MOST


@pytest.mark.parametrize("shape", [agent, anthropic_giant], ids=lambda shape: shape.__name__)
def test_a_pass_that_is_undone_is_linear(shape: Shape) -> None:
    """K13 and K9: undoing costs no more than doing."""
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 0, min_preserved_groups=1)

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(shape(n))

        def work() -> None:
            with pytest.raises(cc.ContextOverflowError):
                strategy.compact(index, on_overflow="raise", hooks=())

        return work

    assert growth(prepare) < MOST


# -- a reducer -------------------------------------------------------------------------------------


def test_a_call_that_declines_is_a_glance() -> None:
    """K13: on the full list again, a call that does nothing compares it as a whole, and reads and counts nothing."""

    def prepare(n: int) -> Callable[[], object]:
        history = agent(n)
        strategy = cc.TruncationStrategy(trigger=cc.tokens > 10**9)
        reducer = cc.as_chat_reducer(strategy, counter=characters_counter(), hooks=())
        reducer(history)
        return lambda: reducer(history)

    assert growth(prepare) < 1.1


@pytest.mark.parametrize("shape", [agent, giant, anthropic_giant], ids=lambda shape: shape.__name__)
def test_a_call_that_compacts_again_is_linear(shape: Shape) -> None:
    """K13: a plain reducer decides anew from the whole list at every call, in linear time."""

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)
        reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(8), counter=characters_counter(), hooks=())
        reducer(history)
        return lambda: reducer([*history, user("more")])

    assert growth(prepare) < MOST


# -- predicates ------------------------------------------------------------------------------------


def test_combining_many_predicates_at_once_is_linear() -> None:
    """K13: :func:`all_of`, :func:`any_of`, and reading such a text."""

    def prepare(n: int) -> Callable[[], object]:
        parts = [cc.tokens > i for i in range(n)]
        return lambda: (~cc.any_of(*parts), cc.all_of(*parts), repr(cc.all_of(*parts)))

    assert growth(prepare) < MOST


@pytest.mark.parametrize("joint", [" | ", " & ", " or not ", ") & (", "\n|\n"])
def test_reading_a_predicate_is_linear(joint: str) -> None:
    """K13: a text from outside costs by its length, a long one too."""

    def prepare(n: int) -> Callable[[], object]:
        text = "(" + joint.join(f"tokens > {i}" for i in range(n)) + ")"
        return lambda: cc.parse_predicate(text)

    assert growth(prepare) < MOST
