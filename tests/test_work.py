"""How much work the main paths take, held below pinned ceilings: a regression guard that no machine can disturb.

Counted are steps (see :func:`tests.test_growth.operations`): what one message, one group or one call more costs,
as the difference between two sizes, and what a call costs on any list. Python 3.11, 3.12 and 3.13 differ by up to 4 %;
a ceiling is a tenth above what 3.11 takes, so that a fifth more is seen. Work that falls a quarter below its ceiling is
to be pinned anew, or the ceiling holds nothing: ``python -m tests.test_work`` prints what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.test_growth import operations

Raw = dict[str, Any]


def openai_chat(n: int) -> list[Raw]:
    """A turn for every four tool calls, each with a text beside it."""
    history: list[Raw] = []
    for i in range(n):
        function = {"name": "look", "arguments": f'{{"at": {i}}}'}
        call = {"id": f"c{i}", "type": "function", "function": function}
        history += [{"role": "user", "content": f"task {i}"}] if i % 4 == 0 else []
        history += [
            {"role": "assistant", "content": f"looking {i}", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"seen {i}"},
        ]
    return history


def anthropic(n: int) -> list[Raw]:
    """The same."""
    history: list[Raw] = []
    for i in range(n):
        call = {"type": "tool_use", "id": f"c{i}", "name": "look", "input": {"at": i}}
        result = {"type": "tool_result", "tool_use_id": f"c{i}", "content": f"seen {i}"}
        history += [{"role": "user", "content": f"task {i}"}] if i % 4 == 0 else []
        history += [
            {"role": "assistant", "content": [{"type": "text", "text": f"looking {i}"}, call]},
            {"role": "user", "content": [result]},
            *([{"role": "assistant", "content": [{"type": "text", "text": f"done {i}"}]}] if i % 4 == 3 else []),
        ]
    return history


HISTORIES = {"openai_chat": openai_chat, "anthropic": anthropic}
TRUNCATION = cc.TruncationStrategy(trigger=cc.tokens > 8, min_preserved_groups=1)
BUDGET = cc.TokenBudgetStrategy(8)
DECLINING = cc.TruncationStrategy(trigger=cc.tokens > 10**9)


def index_of(history: Sequence[Raw], format: str = "openai_chat") -> cc.MessageIndex:
    # A cache of its own: what another test counted would be work that this one is spared.
    counter = cc.counters.CountCache(characters_counter())
    return cc.MessageIndex.from_messages(history, counter=counter, format=format)


def counted(n: int) -> cc.MessageIndex:
    index = index_of(openai_chat(n))
    index.total(cc.tokens)
    return index


def reducer_of(strategy: cc.CompactionStrategy) -> cc.ChatReducer:
    return cc.as_chat_reducer(strategy, counter=characters_counter(), format="openai_chat", hooks=())


class Work(NamedTuple):
    """Some work, and of how many units it is."""

    units: int
    run: Callable[[], object]


# -- what one unit more costs ----------------------------------------------------------------------


def reading(format: str) -> Callable[[int], Work]:
    """Read and group a list, per message."""

    def prepare(n: int) -> Work:
        history = HISTORIES[format](n)
        return Work(len(history), lambda: index_of(history, format))

    return prepare


def extending(format: str) -> Callable[[int], Work]:
    """Append one message at a time, per message."""

    def prepare(n: int) -> Work:
        first, *rest = HISTORIES[format](n)
        index = index_of([first], format)

        def run() -> None:
            for message in rest:
                index.extend([message])

        return Work(len(rest), run)

    return prepare


def updating(n: int) -> Work:
    """Take the whole list with one message more, each time, per message."""
    history = openai_chat(n)
    index = index_of(history[:1])

    def run() -> None:
        for end in range(2, len(history) + 1):
            index.update(history[:end])

    return Work(len(history) - 1, run)


def counting(n: int) -> Work:
    """Count what nobody has counted yet, per message."""
    history = openai_chat(n)
    index = index_of(history)
    return Work(len(history), lambda: index.total(cc.tokens))


def firing(strategy: cc.CompactionStrategy) -> Callable[[int], Work]:
    """Compact a counted index down to its floor, per group."""

    def prepare(n: int) -> Work:
        index = counted(n)
        return Work(len(index.groups), lambda: strategy.compact(index, hooks=()))

    return prepare


def excluding(n: int) -> Work:
    """Exclude by hand, per group."""
    index = counted(n)
    groups = index.groups[:-1]

    def run() -> None:
        for group in groups:
            index.exclude(group, "by hand")

    return Work(len(groups), run)


def projecting(n: int) -> Work:
    """Give the included messages, per message."""
    index = counted(n)
    index.exclude(index.groups[1], "by hand")
    return Work(len(index), index.included_messages)


def looking(n: int) -> Work:
    """Take snapshots of the groups, per group."""
    index = counted(n)
    return Work(len(index.groups), lambda: index.groups)


def telling(n: int) -> Work:
    """The flat part of a report, per excluded group."""
    report = TRUNCATION.compact(counted(n), hooks=())
    return Work(len(report.excluded), report.metrics)


def reducing(n: int) -> Work:
    """A first call of a reducer that compacts, per message."""
    history, reducer = openai_chat(n), reducer_of(BUDGET)
    return Work(len(history), lambda: reducer(history))


UNITS: dict[str, tuple[Callable[[int], Work], int]] = {
    "read, openai_chat": (reading("openai_chat"), 362),
    "read, anthropic": (reading("anthropic"), 431),
    "extend, openai_chat": (extending("openai_chat"), 598),
    "extend, anthropic": (extending("anthropic"), 677),
    "update": (updating, 622),
    "count": (counting, 108),
    "truncate": (firing(TRUNCATION), 34),
    "keep a budget": (firing(BUDGET), 45),
    "exclude": (excluding, 169),
    "project": (projecting, 1),
    "groups": (looking, 52),
    "report": (telling, 41),
    "first call": (reducing, 355),
}

# -- what a call costs on any list -----------------------------------------------------------------


def declining(n: int) -> Callable[[], object]:
    """The list that the reducer knows, and nothing to do."""
    history, reducer = openai_chat(n), reducer_of(DECLINING)
    reducer(history)
    return lambda: reducer(history)


def declining_one_more(n: int) -> Callable[[], object]:
    """The same with a new message."""
    history, reducer = openai_chat(n), reducer_of(DECLINING)
    reducer(history)
    longer = [*history, {"role": "user", "content": "more"}]
    return lambda: reducer(longer)


def declining_index(n: int) -> Callable[[], object]:
    """An index that is small enough."""
    index = counted(n)
    return lambda: DECLINING.compact(index, hooks=())


def metrics(n: int) -> Callable[[], object]:
    """Each metric of an index that is counted."""
    index = counted(n)
    return lambda: [index.value(metric) for metric in (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)]


CALLS: dict[str, tuple[Callable[[int], Callable[[], object]], int]] = {
    "a call that declines": (declining, 1118),
    "a call that declines, on one message more": (declining_one_more, 1558),
    "an index that is small enough": (declining_index, 925),
    "five metrics": (metrics, 95),
}

SIZE = 32


def per_unit(prepare: Callable[[int], Work]) -> float:
    """The steps that one unit more takes."""
    prepare(SIZE).run()  # Loads what loads late.
    small, large = prepare(SIZE), prepare(2 * SIZE)
    return (operations(large.run) - operations(small.run)) / (large.units - small.units)


def per_call(prepare: Callable[[int], Callable[[], object]]) -> float:
    """The steps of a call."""
    prepare(SIZE)()
    return operations(prepare(SIZE))


def hold(steps: float, ceiling: int) -> None:
    assert steps <= ceiling, f"{steps:.1f} steps, where {ceiling} are the most"
    assert steps > 0.75 * ceiling, f"{steps:.1f} steps, far below {ceiling}: pin it anew (python -m tests.test_work)"


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_takes_no_more_steps_than_it_did(name: str) -> None:
    """K13: the constant counts, too."""
    prepare, ceiling = UNITS[name]
    hold(per_unit(prepare), ceiling)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_no_more_steps_than_it_did(name: str) -> None:
    """K13: whatever the length of the list."""
    prepare, ceiling = CALLS[name]
    hold(per_call(prepare), ceiling)


if __name__ == "__main__":
    measured = {name: per_unit(prepare) for name, (prepare, _) in UNITS.items()}
    measured |= {name: per_call(work) for name, (work, _) in CALLS.items()}
    for name, steps in measured.items():
        print(f"{name:45} {steps:8.1f}   ceiling {1.1 * steps:6.0f}")
