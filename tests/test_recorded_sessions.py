"""Recorded sessions of every format, many prefixes of each: what was valid stays valid, and the report is true.

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
from tests.conformance.shapes import Outcome, count
from tests.legality import faults

FORMATS = (
    *("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse", "langchain", "sharegpt"),
    *("gemini_cli", "pi_session"),
)
# Two that compare whole messages are asked once a session, for all of its passes.
PROPERTIES = [slug for slug in EVERY_PASS if slug not in ("no_mutation", "content_blocks_intact")]
LOOKED_INTO = ("openai_chat", "anthropic")
# In the other formats, those that do not look into a message.
OF_ANY_FORMAT = (
    *("pairs_intact", "order_kept", "pinned_kept", "group_atomic", "dup_ids_scoped", "not_larger", "idempotent"),
    *("identity_noop", "reserve_kept"),
)

SESSIONS = [(name, path) for name in FORMATS for path in _shared.recorded_sessions(name)]


@dataclass(frozen=True)
class Budget:
    """A share of the history's own size; how many of its messages are pinned, and how many tokens are reserved."""

    share: float
    pins: int = 0
    reserved: int = 0


BUDGETS = (Budget(0.75), Budget(0.4, pins=2, reserved=500), Budget(0.1))


def newest_half(messages: list[Any]) -> list[Any]:
    """What many a loop does: a slice, whatever it cuts through."""
    return messages[len(messages) // 2 :]


@dataclass(frozen=True)
class Some:
    """Some of the messages at random, the same ones in every run."""

    seed: str

    def __call__(self, messages: list[Any]) -> list[Any]:
        chance = random.Random(self.seed)  # noqa: S311 - no secret
        return [message for message in messages if chance.random() < 0.4]


def strategies(limit: int, seed: str) -> list[cc.CompactionStrategy]:
    """Truncation, the budget in its three orders, and two reducers that know no rule, at one limit of tokens."""
    fires = cc.tokens > limit
    return [
        cc.TruncationStrategy(trigger=fires, min_preserved_groups=2),
        cc.TokenBudgetStrategy(limit, evict="turns", min_preserved_groups=1),
        cc.TokenBudgetStrategy(limit, evict="groups", min_preserved_groups=2),
        cc.TokenBudgetStrategy(limit, evict="turns-then-groups", target_tokens=limit * 3 // 4, max_turns=20),
        cc.ReducerStrategy(newest_half, fires, min_preserved_groups=1),
        cc.ReducerStrategy(Some(seed), fires, min_preserved_groups=1),
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
    all_lengths, some = range(1, len(messages) + 1), min(8, max(1, 150 // len(messages)))
    return sorted({len(messages), *sampler(path).sample(all_lengths, min(some, len(messages)))})


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally[str]]:
    """What was run and what it did; printed in the end."""
    counts: Tally[str] = Tally()
    yield counts
    share = counts["changed"] / max(1, counts["passes"])
    _shared.told(request.config).append(
        f"recorded sessions: {counts['passes']} combinations over {counts['sessions']} sessions, "
        f"{counts['valid']} of valid histories; something may leave in {counts['free']}, "
        f"and left in {counts['changed']} ({share:.1%})"
    )


def passes(path: Path, messages: list[Any], format_name: str, counter: Counter, budget: Budget) -> Iterator[Outcome]:
    """Every strategy at one share of the history's own size."""
    limit = int(count(messages, counter, format_name) * budget.share) + budget.reserved
    pinned = frozenset(sampler(path).sample(range(len(messages)), min(budget.pins, len(messages))))
    for strategy in strategies(limit, f"{path.stem} {len(messages)} {budget}"):
        reducer = cc.as_chat_reducer(
            strategy,
            counter=counter,
            format=format_name,
            reserved=budget.reserved,
            pinned=[messages[position] for position in pinned],
            validate=True,
            hooks=(),
        )
        after, report = reducer.reduce_with_report(messages)
        # A slice of a slice is another one.
        again = after if isinstance(strategy, cc.ReducerStrategy) else reducer.reduce(after)
        yield Outcome(
            f"{path.stem}[:{len(messages)}], {strategy!r}",
            messages,
            messages,
            after,
            again,
            report,
            strategy,
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


def problems(outcome: Outcome) -> list[str]:
    """What the package itself finds in the output, more than in the input, rule by rule (rule K7).

    A list that was seen to leave calls to the server still does, when what told so has left.
    """
    known, now = (Tally(p.rule for p in index.problems) for index in (outcome.index_before, outcome.index_after))
    new = now - known
    return [f"problems: {outcome.name}: {dict(new)}"] if new else []


def lazy(outcome: Outcome) -> list[str]:
    """Where groups may leave one by one, none that may is left above the target."""
    strategy = outcome.strategy
    one_by_one = isinstance(strategy, cc.TruncationStrategy) or (
        isinstance(strategy, cc.TokenBudgetStrategy) and strategy.evict_order == "groups"
    )
    if not one_by_one or outcome.report.fits or not outcome.strategy.candidates(outcome.index_after):
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
    asked = PROPERTIES if format_name in LOOKED_INTO else OF_ANY_FORMAT
    for length, budget in product(lengths(path, messages), BUDGETS):
        prefix = messages[:length]
        for outcome in passes(path, prefix, format_name, CHARACTERS, budget):
            found += [*wrong([outcome], asked), *problems(outcome), *lazy(outcome)]
            found += in_async(outcome) if budget.pins else []
            tally.update(summary(outcome))
        assert prefix == messages[:length]
    tally.update(sessions=1)
    assert found == []
    assert messages == pristine


@pytest.mark.parametrize(("format_name", "path"), SESSIONS, ids=[f"{name}-{path.stem}" for name, path in SESSIONS])
def test_round_trip(format_name: str, path: Path) -> None:
    """Rules G1 and K1: read and projected without a compaction, a session is the same objects in the same order."""
    messages = _shared.load_session(path)
    pristine = copy.deepcopy(messages)
    index = cc.MessageIndex.from_messages(messages, counter=CHARACTERS, format=format_name)
    assert [id(message) for message in index.included_messages()] == [id(message) for message in messages]
    assert messages == pristine


@pytest.mark.parametrize("format_name", LOOKED_INTO)
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
