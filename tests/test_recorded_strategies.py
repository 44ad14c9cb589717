"""Recorded sessions of every format through every strategy that shortens, summarises or composes.

The older strategies, which only let groups leave, have a matrix of their own (``test_recorded_sessions``). Here each
session is taken once, whole or cut somewhere, and each output is judged, read anew, and compacted again.
"""

from __future__ import annotations

import copy
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction import strategies
from chat_compaction.offload import OffloadStore
from tests import _shared
from tests.build import call, result
from tests.shortening import CHECKS, MAKE, History, Outcome, problems, run
from tests.test_recorded_sessions import FORMATS, sampler

LONGEST = 150
"""Longer sessions are cut: what is longer shows nothing that is new."""


@dataclass(frozen=True)
class Budget:
    """A share of the history's own size; how many messages are pinned, how many tokens reserved; sync or async."""

    share: float
    pins: int = 0
    reserved: int = 0
    in_async: bool = False


BUDGETS = (Budget(0.6), Budget(0.2, pins=2, reserved=300, in_async=True))

# -- the matrix ----------------------------------------------------------------------------------------------------

SESSIONS = [
    (name, path, bool(number % 2)) for name in FORMATS for number, path in enumerate(_shared.recorded_sessions(name))
]


def part_of(path: Path, is_cut: bool) -> list[Any]:
    """A session: from the start on, cut somewhere if it is to be, or if it is long."""
    messages = _shared.load_session(path)
    length = min(len(messages), LONGEST)
    return messages[: sampler(path).randint((length + 1) // 2, length) if is_cut else length]


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally[str]]:
    """What was run and what it did; printed in the end."""
    counts: Tally[str] = Tally()
    yield counts
    changed = ", ".join(f"{name} {counts[name]}" for name in MAKE)
    _shared.told(request.config).append(
        f"recorded sessions, strategies that shorten: {counts['passes']} passes over {counts['sessions']} sessions; "
        f"changed by {changed}"
    )


@pytest.fixture
def store() -> Iterator[OffloadStore]:
    """A store in memory that is empty afterwards."""
    store = OffloadStore("memory://matrix")
    yield store
    if store._fs.exists(store._root):
        store._fs.rm(store._root, recursive=True)


@pytest.mark.parametrize(
    ("format_name", "path", "is_cut"), SESSIONS, ids=[f"{name}-{path.stem}" for name, path, _ in SESSIONS]
)
def test_recorded_session(format_name: str, path: Path, is_cut: bool, tally: Tally[str], store: OffloadStore) -> None:
    """G1 to G6, K2 to K10 and S1 to S3 on what agents really said, for every strategy that shortens."""
    messages = part_of(path, is_cut)
    pristine = copy.deepcopy(messages)
    found: list[str] = []
    for budget in BUDGETS:
        pinned = frozenset(sampler(path).sample(range(len(messages)), min(budget.pins, len(messages))))
        history = History(f"{path.stem}[:{len(messages)}], {budget}", format_name, messages, pinned, budget.reserved)
        limit = int((history.size - budget.reserved) * budget.share) + budget.reserved
        for name, make in MAKE.items():
            strategy = make(limit, store)
            outcome = run(history, name, strategy, in_async=budget.in_async)
            found += problems(outcome, strategy)
            tally.update({"passes": 1, name: int(outcome.report.changed)})
    tally.update(sessions=1)
    assert found == []
    assert messages == pristine


# -- the checks themselves --------------------------------------------------------------------------------------------

OLD = [
    {"role": "user", "content": "Look."},
    call("a"),
    result("a", "much " * 20),
    {"role": "assistant", "content": "Seen."},
    {"role": "user", "content": "And?"},
]
OTHER_CALL = {**OLD[1], "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
WRONG: dict[str, tuple[list[int], dict[int, Any]]] = {
    "order_kept": ([0, 2, 1, 3, 4], {}),
    "missing_is_told": ([0, 1, 2, 4], {}),
    "legal": ([0, 1, 2, 3, 4], {2: {"role": "tool", "tool_call_id": "b", "content": "short"}}),
    "words_kept": ([0, 1, 2, 3, 4], {4: {"role": "user", "content": "?"}}),
    "arguments_kept": ([0, 1, 2, 3, 4], {1: OTHER_CALL}),
    "report_is_true": ([0, 3, 4], {}),
    "not_larger": ([0, 1, 2, 3, 4], {0: {"role": "user", "content": "Look." * 9}}),
}
"""What each check must see: where the messages of an output stand, and what is written in place of one."""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_seen(name: str) -> None:
    """A suite that finds nothing proves nothing, if it would find nothing at all."""
    places, written = WRONG[name]
    history = History("by hand", "openai_chat", OLD, frozenset(), 0)
    report = cc.TruncationStrategy(trigger=cc.tokens > 10**6).compact(history.index, hooks=())
    after = [written.get(place, OLD[place]) for place in places]
    outcome = Outcome("by hand", history, report, after, places)
    assert name in {check.__name__ for check in CHECKS if any(check(outcome))}


def test_every_strategy_is_here() -> None:
    """A new one is in this matrix, or in the older one."""
    older = {cc.TruncationStrategy, cc.TokenBudgetStrategy, cc.ReducerStrategy}
    here = {type(make(100, OffloadStore("memory://matrix"))) for make in MAKE.values()}
    exported = [getattr(cc, name) for name in strategies.__all__]
    every = {one for one in exported if isinstance(one, type) and issubclass(one, cc.CompactionStrategy)}
    assert here | older == every
