"""Recorded sessions of every format, many prefixes of each: what was valid stays valid, and the report is true.

A few prefixes of each session by default, always the same ones; ``CHAT_COMPACTION_FULL=1`` takes all.
"""

import asyncio
import copy
import os
import random
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
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

OF_LISTS = frozenset(
    {
        *("pairs_intact", "first_nonsystem_user", "order_kept", "name_kept", "system_first", "last_user_kept"),
        *("pinned_kept", "pending_kept", "group_atomic", "dup_ids_scoped", "nonempty", "ends_user_or_tool"),
    }
)
"""Those that look at the two lists and the pins, and so at an output once, whoever made it."""

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


@dataclass(frozen=True)
class Reading:
    """Indexes of a list and of what was made of it: one for each list of the same objects, to look at."""

    counter: Counter
    format: str
    reserved: int
    pinned: list[Any]
    known: dict[tuple[int, ...], tuple[list[Any], cc.MessageIndex]] = field(default_factory=dict, repr=False)

    def __call__(self, messages: Sequence[Any]) -> cc.MessageIndex:
        key = tuple(map(id, messages))
        if key not in self.known:
            index = cc.MessageIndex.from_messages(
                messages, counter=self.counter, format=self.format, reserved=self.reserved, pinned=self.pinned
            )
            self.known[key] = list(messages), index  # With the objects, so that no other has their ids.
        return self.known[key][1]


@dataclass(frozen=True, kw_only=True)
class Passed(Outcome):
    """A pass that shares with others what was read, and the reducer."""

    reading: Reading
    reducer: cc.ChatReducer

    def index(self, messages: Sequence[Any]) -> cc.MessageIndex:
        """An index of a list, with this pass's settings."""
        return self.reading(messages)


def passes(path: Path, messages: list[Any], format_name: str, counter: Counter, budget: Budget) -> Iterator[Passed]:
    """Every strategy at one share of the history's own size.

    They take turns in one reducer, which keeps what it read and no decision.
    """
    limit = int(count(messages, counter, format_name) * budget.share) + budget.reserved
    pinned = frozenset(sampler(path).sample(range(len(messages)), min(budget.pins, len(messages))))
    reading = Reading(counter, format_name, budget.reserved, [messages[position] for position in pinned])
    reducer = cc.as_chat_reducer(
        cc.TokenBudgetStrategy(limit),
        counter=counter,
        format=format_name,
        reserved=budget.reserved,
        pinned=reading.pinned,
        validate=True,
        hooks=(),
    )
    for strategy in strategies(limit, f"{path.stem} {len(messages)} {budget}"):
        reducer.strategy = strategy
        after, report = reducer.reduce_with_report(messages)
        # A slice of a slice is another one.
        again = after if isinstance(strategy, cc.ReducerStrategy) else reducer.reduce(after)
        yield Passed(
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
            reading=reading,
            reducer=reducer,
        )


def summary(outcome: Outcome, valid: bool) -> dict[str, int]:
    """What counts in the tally."""
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


def in_async(outcome: Passed) -> list[str]:
    """Where the same pass in async code differs."""
    outcome.reducer.strategy = outcome.strategy
    after, report = asyncio.run(outcome.reducer.areduce_with_report(outcome.before))
    same = [id(message) for message in after] == [id(message) for message in outcome.after]
    return [] if same and report == outcome.report else [f"async: {outcome.name}: {report}"]


def judged(outcomes: Iterable[Passed], asked: Sequence[str]) -> list[str]:
    """What is wrong with passes over one list: with each output once, and with each report."""
    found: list[str] = []
    known: set[tuple[int, ...]] = set()
    for outcome in outcomes:
        output = tuple(map(id, outcome.after))
        slugs = [slug for slug in asked if slug not in OF_LISTS or output not in known]
        found += [*wrong([outcome], slugs), *lazy(outcome)]
        found += problems(outcome) if output not in known else []
        found += in_async(outcome) if outcome.pinned else []
        known.add(output)
    return found


@pytest.mark.parametrize(("format_name", "path"), SESSIONS, ids=[f"{name}-{path.stem}" for name, path in SESSIONS])
def test_recorded_session(format_name: str, path: Path, tally: Tally[str]) -> None:
    """Rules G1 to G6, K2 to K8 and K10 on what agents really said, cut anywhere, in sync and async."""
    messages = _shared.load_session(path)
    pristine = copy.deepcopy(messages)
    found: list[str] = []
    asked = PROPERTIES if format_name in LOOKED_INTO else OF_ANY_FORMAT
    for length in lengths(path, messages):
        prefix = messages[:length]
        valid = not faults(prefix, format_name)
        for budget in BUDGETS:
            outcomes = list(passes(path, prefix, format_name, CHARACTERS, budget))
            found += judged(outcomes, asked)
            for outcome in outcomes:
                tally.update(summary(outcome, valid))
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
                tally.update(summary(outcome, not faults(messages, format_name)))
    assert found == []
