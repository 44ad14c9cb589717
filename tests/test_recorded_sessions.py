"""Recorded sessions of both formats, many prefixes of each: what was valid stays valid, and the report is true.

A few prefixes of each session by default, always the same ones; ``CHAT_COMPACTION_FULL=1`` takes all.
"""

import asyncio
import copy
import os
import random
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.counters import Counter
from tests import _shared
from tests.conformance.properties import EVERY_PASS, wrong
from tests.conformance.shapes import Outcome, count, run
from tests.legality import faults

FORMATS = ("openai_chat", "anthropic")
# Two that compare whole messages are asked once a session, for all of its passes.
PROPERTIES = [slug for slug in EVERY_PASS if slug not in ("no_mutation", "content_blocks_intact")]

SESSIONS = [(name, path) for name in FORMATS for path in _shared.recorded_sessions(name)]


@dataclass(frozen=True)
class Budget:
    """A share of the history's own size; how many of its messages are pinned, and how many tokens are reserved."""

    share: float
    pins: int = 0
    reserved: int = 0


BUDGETS = (Budget(0.75), Budget(0.4, pins=2, reserved=500), Budget(0.1))


def strategies(limit: int) -> list[cc.CompactionStrategy]:
    """Both strategies, the budget in its three orders, at one limit of tokens."""
    return [
        cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=2),
        cc.TokenBudgetStrategy(limit, evict="turns"),
        cc.TokenBudgetStrategy(limit, evict="groups"),
        cc.TokenBudgetStrategy(limit, evict="turns-then-groups", target_tokens=limit * 3 // 4, max_turns=20),
    ]


@dataclass(frozen=True)
class Remembering:
    """A counter that asks another about each text once, whichever index asks."""

    counter: Counter
    known: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.counter.name

    @property
    def exact(self) -> bool:
        return self.counter.exact

    def count_many(self, texts: Sequence[str]) -> list[int]:
        missing = list({text for text in texts if text not in self.known})
        self.known.update(zip(missing, self.counter.count_many(missing), strict=True))
        return [self.known[text] for text in texts]


CHARACTERS = cc.FunctionCounter(len, name="characters")


@cache
def o200k() -> Remembering:
    return Remembering(cc.TokenizerCounter(_shared.o200k_tokenizer(), name="o200k_base"))


def sampler(path: Path) -> random.Random:
    """The same choices for a session in every run."""
    return random.Random(path.stem)  # noqa: S311 - no secret


def lengths(path: Path, messages: Sequence[Any]) -> list[int]:
    """How long the prefixes are: the whole session, and some shorter ones, more of them where it is short."""
    if os.environ.get("CHAT_COMPACTION_FULL") == "1":
        return list(range(1, len(messages) + 1))
    chosen, shorter, fewest = sampler(path), min(6, max(1, 160 // len(messages))), len(messages) // 4 + 1
    return sorted({len(messages), *(chosen.randint(fewest, len(messages)) for _ in range(shorter))})


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally[str]]:
    """What was run and what it did; printed in the end."""
    counts: Tally[str] = Tally()
    yield counts
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        share = counts["changed"] / max(1, counts["passes"])
        print(
            f"\nrecorded sessions: {counts['passes']} combinations over {counts['sessions']} sessions, "
            f"{counts['valid']} of valid histories; something may leave in {counts['free']}, "
            f"and left in {counts['changed']} ({share:.1%})"
        )


def passes(path: Path, messages: list[Any], format_name: str, counter: Counter, budget: Budget) -> Iterator[Outcome]:
    """Every strategy at one share of the history's own size."""
    limit = int(count(messages, counter, format_name) * budget.share) + budget.reserved
    pinned = frozenset(sampler(path).sample(range(len(messages)), min(budget.pins, len(messages))))
    for strategy in strategies(limit):
        yield run(
            f"{path.stem}[:{len(messages)}], {strategy!r}",
            messages,
            strategy,
            pristine=messages,
            pinned=pinned,
            counter=counter,
            format=format_name,
            reserved=budget.reserved,
        )


def summary(outcome: Outcome) -> dict[str, int]:
    """What counts in the tally."""
    valid = not faults(outcome.before, outcome.format)
    free = bool(outcome.strategy.candidates(outcome.index_before))
    return {"passes": 1, "valid": valid, "free": free, "changed": outcome.report.changed}


def lazy(outcome: Outcome) -> list[str]:
    """Where groups may leave one by one, none that may is left above the target."""
    by_turns = isinstance(outcome.strategy, cc.TokenBudgetStrategy) and outcome.strategy.evict_order != "groups"
    if by_turns or outcome.report.fits or not outcome.strategy.candidates(outcome.index_after):
        return []
    return [f"lazy: {outcome.name}: {outcome.report}"]


def in_async(outcome: Outcome) -> list[str]:
    """Where the same pass in async code differs."""
    reducer = cc.as_chat_reducer(
        outcome.strategy,
        counter=outcome.counter,
        format=outcome.format,
        reserved=outcome.reserved,
        pinned=[outcome.before[position] for position in outcome.pinned],
        hooks=(),
    )
    after, report = asyncio.run(reducer.areduce_with_report(outcome.before))
    same = [id(message) for message in after] == [id(message) for message in outcome.after]
    return [] if same and report == outcome.report else [f"async: {outcome.name}: {report}"]


@pytest.mark.parametrize(("format_name", "path"), SESSIONS, ids=[f"{name}-{path.stem}" for name, path in SESSIONS])
def test_recorded_session(format_name: str, path: Path, tally: Tally[str]) -> None:
    """Rules G1 to G6, K2 to K8 and K10 on what agents really said, cut anywhere, in sync and async."""
    messages = _shared.load_session(path)
    pristine = copy.deepcopy(messages)
    found: list[str] = []
    for length, budget in product(lengths(path, messages), BUDGETS):
        prefix = messages[:length]
        for outcome in passes(path, prefix, format_name, CHARACTERS, budget):
            found += [*wrong([outcome], PROPERTIES), *lazy(outcome)]
            found += in_async(outcome) if budget.pins else []
            tally.update(summary(outcome))
        assert prefix == messages[:length]
    tally.update(sessions=1)
    assert found == []
    assert messages == pristine


@pytest.mark.parametrize("format_name", FORMATS)
def test_with_a_real_vocabulary(format_name: str, tally: Tally[str]) -> None:
    """The same, counted as a model counts, on the shorter sessions."""
    found = []
    for path in _shared.recorded_sessions(format_name):
        messages = _shared.load_session(path)
        if 10 < len(messages) <= 60:
            outcomes = list(passes(path, messages, format_name, o200k(), BUDGETS[1]))
            found += wrong(outcomes, PROPERTIES)
            for outcome in outcomes:
                tally.update(summary(outcome))
    assert found == []
