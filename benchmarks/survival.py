"""What survives compaction: the canaries of compaction-conformance-kit through every strategy, for five rounds.

Usage: ``python -m benchmarks.survival [--write docs/survival.md]``. See docs/survival.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

from compaction_kit import (  # type: ignore[import-untyped]
    Canary,
    CanaryType,
    CompactedContext,
    ConformanceReport,
    SeededSession,
    Turn,
    build_report,
    build_seeded_session,
    position_bucket,
    run_conformance,
    seeded_canaries,
)

import chat_compaction as cc

from .conversations import Message
from .survival_sessions import NEW_EXCHANGES, PLACES, Place, as_anthropic, later, opening, words

ROUNDS = 5
Protection = Literal["nothing", "pins", "must_keep"]
Keeps = Sequence[Any]

TRIGGER, TARGET = cc.tokens > 10_000, cc.tokens <= 6_000
_WHEN: dict[str, Any] = {"trigger": TRIGGER, "target": TARGET}
_stores = count()


def _summarizer() -> cc.summarizers.ExtractiveSummarizer:
    return cc.summarizers.ExtractiveSummarizer(counter=cc.EstimateCounter())


def _offload(keeps: Keeps) -> cc.CompactionStrategy:
    return cc.OffloadStrategy(cc.offload.OffloadStore(f"memory://survival-{next(_stores)}"), **_WHEN, min_tokens=200)


def _pipeline(keeps: Keeps) -> cc.CompactionStrategy:
    return cc.PipelineStrategy(
        cc.DeduplicateStrategy(**_WHEN),
        cc.ToolResultStrategy(**_WHEN),
        cc.SlidingWindowStrategy(**_WHEN),
    )


STRATEGIES: dict[str, Callable[[Keeps], cc.CompactionStrategy]] = {
    "truncation": lambda keeps: cc.TruncationStrategy(**_WHEN),
    "token budget": lambda keeps: cc.TokenBudgetStrategy(10_000, target_tokens=6_000),
    "sliding window": lambda keeps: cc.SlidingWindowStrategy(**_WHEN),
    "tool results, clear": lambda keeps: cc.ToolResultStrategy(**_WHEN),
    "tool results, collapse": lambda keeps: cc.ToolResultStrategy(**_WHEN, style="collapse"),
    "tool results, drop": lambda keeps: cc.ToolResultStrategy(**_WHEN, style="drop"),
    "clip": lambda keeps: cc.ClipStrategy(**_WHEN, max_tokens=500),
    "deduplicate": lambda keeps: cc.DeduplicateStrategy(**_WHEN),
    "offload": _offload,
    "drop reasoning": lambda keeps: cc.DropReasoningStrategy(**_WHEN, keep_tool_turns=False),
    "drop media": lambda keeps: cc.DropMediaStrategy(**_WHEN),
    "provider compaction": lambda keeps: cc.ProviderCompactionStrategy(),
    "pipeline": _pipeline,
    "summarization": lambda keeps: cc.SummarizationStrategy(_summarizer(), **_WHEN, must_keep=keeps),
    "context window": lambda keeps: cc.ContextWindowStrategy(16_000, 4_000),
    "context window, summarizer": lambda keeps: cc.ContextWindowStrategy(16_000, 4_000, _summarizer(), must_keep=keeps),
}
"""Every strategy by its name in the tables, made anew for a run from what must be kept."""
SUMMARIZING = ("summarization", "context window, summarizer")
"""Those that take ``must_keep``."""
PROVIDERS = "provider compaction"


@dataclass
class Conversation:
    """A strategy as a compactor of the kit: it gets the session in the first round, and goes on from what it stored.

    The kit hands the text of one round to the next as a single system turn. That is no history, so it is ignored: what
    a round gave is written as JSON, read again, and goes on with new exchanges.
    """

    name: str
    strategy: cc.CompactionStrategy
    place: Place = "user"
    pinned: Callable[[Any], object] | None = None
    format: str = "openai_chat"
    turns: Sequence[Turn] = ()
    stored: list[Message] = field(default_factory=list)
    reports: list[cc.CompactionReport] = field(default_factory=list)

    def compact(self, turns: list[Turn], round_num: int = 1) -> CompactedContext:
        """One round; see the kit's ``Compactor``."""
        if round_num == 1:
            self.turns, self.stored = turns, self._said(opening(turns, self.place))
        else:
            self.stored = [*self.stored, *self._said(later(self.turns, round_num))]
        reducer = cc.as_chat_reducer(
            self.strategy, counter=cc.EstimateCounter(), format=self.format, pinned=self.pinned, hooks=()
        )
        context, report = reducer.reduce_with_report(self.stored)
        self.reports.append(report)
        self.stored = json.loads(json.dumps(context))
        return CompactedContext(words(self.stored), self.name, round_num)

    def _said(self, history: Sequence[Message]) -> list[Message]:
        if self.format == "openai_chat":
            return list(history)
        compacted_at = _answers(history) // 2 if self.name == PROVIDERS else None
        return as_anthropic(history, compacted_at=compacted_at)


def _answers(history: Sequence[Message]) -> int:
    return sum(message["role"] == "user" for message in history)


def pins_of(canaries: Sequence[Canary]) -> Callable[[Any], bool]:
    """A predicate that pins the messages in which a canary stands word for word."""
    contents = [canary.content for canary in canaries]
    return lambda message: any(content in words(message) for content in contents)


@dataclass(frozen=True)
class Survival:
    """What the kit found in one run of a strategy."""

    conversation: Conversation
    report: ConformanceReport
    held: list[dict[str, bool]]
    """For each round, by the id of a canary, whether it is there."""
    session: SeededSession
    canaries: Sequence[Canary]

    def shares(self, *, type: CanaryType | None = None, position: str | None = None) -> list[float]:
        """For each round, the share of the canaries that are there: all, those of a type, or of a position."""
        chosen = [
            canary.id
            for canary in self.canaries
            if type in (None, canary.type) and position in (None, position_bucket(self.session, canary.id))
        ]
        return [sum(held[name] for name in chosen) / len(chosen) for held in self.held]

    @property
    def lost(self) -> list[str]:
        """What the kit says of each canary that is gone: its id, the round, and what is missing."""
        gone = [one for one in self.report.diagnoses if one.lost]
        return [f"{one.canary_id} in round {one.lost_round}: {', '.join(one.missing_tokens)}" for one in gone]


def survive(
    name: str,
    place: Place = "user",
    protection: Protection = "nothing",
    *,
    session: SeededSession | None = None,
    canaries: Sequence[Canary] | None = None,
    format: str | None = None,
    keeps: Keeps | None = None,
    rounds: int = ROUNDS,
) -> Survival:
    """Run a strategy for some rounds; by default on the kit's seeded session and canaries."""
    session = session or build_seeded_session()
    canaries = canaries or seeded_canaries()
    if keeps is None:
        keeps = [canary.content for canary in canaries] if protection == "must_keep" else ()
    conversation = Conversation(
        name,
        STRATEGIES[name](keeps),
        place,
        pins_of(canaries) if protection == "pins" else None,
        format or ("anthropic" if name == PROVIDERS else "openai_chat"),
    )
    run = run_conformance(session, conversation, rounds=rounds, canaries=list(canaries))
    report = build_report(run, canaries=list(canaries), session=session)
    return Survival(conversation, report, [one.survived for one in run.rounds], session, canaries)
