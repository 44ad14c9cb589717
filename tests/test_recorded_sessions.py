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
SHARES = (0.75, 0.4, 0.1)
PREFIXES = 4
# Two that compare whole messages are asked once a session, for all of its passes.
PROPERTIES = [slug for slug in EVERY_PASS if slug not in ("no_mutation", "content_blocks_intact")]

SESSIONS = [(name, path) for name in FORMATS for path in _shared.recorded_sessions(name)]


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


def lengths(path: Path, messages: Sequence[Any]) -> list[int]:
    """How long the prefixes are: the whole session, and some shorter ones."""
    if os.environ.get("CHAT_COMPACTION_FULL") == "1":
        return list(range(1, len(messages) + 1))
    chosen = random.Random(path.stem)  # noqa: S311 - the same prefixes in every run
    return sorted({len(messages), *(chosen.randint(1, len(messages)) for _ in range(PREFIXES))})


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
            f"{counts['valid']} of valid histories; {counts['changed']} changed something ({share:.1%}), "
            f"{counts['free']} could"
        )


def passes(messages: list[Any], format_name: str, counter: Counter, shares: Sequence[float]) -> Iterator[Outcome]:
    """Every strategy at every share of the history's own size."""
    size = count(messages, counter, format_name)
    for share in shares:
        for strategy in strategies(int(size * share)):
            name = f"{len(messages)} messages, {strategy!r}"
            yield run(name, messages, strategy, pristine=messages, counter=counter, format=format_name)


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
    for length in lengths(path, messages):
        for outcome in passes(messages[:length], format_name, CHARACTERS, SHARES):
            found += [*wrong([outcome], PROPERTIES), *in_async(outcome), *lazy(outcome)]
            tally.update(summary(outcome))
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
            outcomes = list(passes(messages, format_name, o200k(), SHARES[1:2]))
            found += [f"{path.stem}: {fault}" for fault in wrong(outcomes, PROPERTIES)]
            for outcome in outcomes:
                tally.update(summary(outcome))
    assert found == []
