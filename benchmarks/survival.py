"""What survives compaction: the canaries of compaction-conformance-kit through every strategy, for five rounds.

Usage: ``python -m benchmarks.survival [--write docs/survival.md]``. See docs/survival.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
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
from .survival_sessions import PLACES, Place, as_anthropic, later, opening, words

ROUNDS = 5
Protection = Literal["nothing", "pins", "must_keep"]
Keeps = Sequence[Any]

TRIGGER, TARGET = cc.tokens > 10_000, cc.tokens <= 7_000
_WHEN: dict[str, Any] = {"trigger": TRIGGER, "target": TARGET}


def _summarizer() -> cc.summarizers.ExtractiveSummarizer:
    return cc.summarizers.ExtractiveSummarizer(counter=cc.EstimateCounter())


def _offload(keeps: Keeps) -> cc.CompactionStrategy:
    return cc.OffloadStrategy(cc.offload.OffloadStore("memory://survival"), **_WHEN, min_tokens=150)


def _pipeline(keeps: Keeps) -> cc.CompactionStrategy:
    return cc.PipelineStrategy(
        cc.DeduplicateStrategy(**_WHEN),
        cc.ToolResultStrategy(**_WHEN),
        cc.SlidingWindowStrategy(**_WHEN),
    )


STRATEGIES: dict[str, Callable[[Keeps], cc.CompactionStrategy]] = {
    "truncation": lambda keeps: cc.TruncationStrategy(**_WHEN),
    "token budget": lambda keeps: cc.TokenBudgetStrategy(10_000, target_tokens=7_000),
    "sliding window": lambda keeps: cc.SlidingWindowStrategy(**_WHEN),
    "tool results, clear": lambda keeps: cc.ToolResultStrategy(**_WHEN, must_keep=keeps),
    "tool results, collapse": lambda keeps: cc.ToolResultStrategy(**_WHEN, style="collapse", must_keep=keeps),
    "tool results, drop": lambda keeps: cc.ToolResultStrategy(**_WHEN, style="drop", must_keep=keeps),
    "clip": lambda keeps: cc.ClipStrategy(**_WHEN, max_tokens=300, must_keep=keeps),
    "deduplicate": lambda keeps: cc.DeduplicateStrategy(**_WHEN),
    "offload": _offload,
    "drop reasoning": lambda keeps: cc.DropReasoningStrategy(**_WHEN, keep_tool_turns=False),
    "drop media": lambda keeps: cc.DropMediaStrategy(**_WHEN),
    "provider compaction": lambda keeps: cc.ProviderCompactionStrategy(),
    "first of": lambda keeps: cc.FirstOf(cc.ToolResultStrategy(**_WHEN), cc.TruncationStrategy(**_WHEN)),
    "pipeline": _pipeline,
    "summarization": lambda keeps: cc.SummarizationStrategy(_summarizer(), **_WHEN, must_keep=keeps),
    "context window": lambda keeps: cc.ContextWindowStrategy(16_000, 4_000),
    "context window, summarizer": lambda keeps: cc.ContextWindowStrategy(16_000, 4_000, _summarizer(), must_keep=keeps),
}
"""Every strategy by its name in the tables, made anew for a run from what must be kept."""
SUMMARIZING = ("summarization", "context window, summarizer")
KEEPING = ("tool results, clear", "tool results, collapse", "tool results, drop", "clip", *SUMMARIZING)
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
    turns: tuple[Turn, ...] = ()
    stored: list[list[Message]] = field(default_factory=list)
    """What was stored after each round."""
    reports: list[cc.CompactionReport] = field(default_factory=list)

    def compact(self, turns: list[Turn], round_num: int = 1) -> CompactedContext:
        """One round; see the kit's ``Compactor``."""
        if round_num == 1:
            self.turns = tuple(turns)
            history = self._said(opening(self.turns, self.place))
        else:
            history = [*self.stored[-1], *self._said(later(self.turns, round_num))]
        reducer = cc.as_chat_reducer(
            self.strategy, counter=cc.EstimateCounter(), format=self.format, pinned=self.pinned, hooks=()
        )
        context, report = reducer.reduce_with_report(history)
        self.reports.append(report)
        self.stored.append(json.loads(json.dumps(context)))
        return CompactedContext(words(self.stored[-1]), self.name, round_num)

    def _said(self, history: Sequence[Message]) -> list[Message]:
        if self.format == "openai_chat":
            return list(history)
        return as_anthropic(history, compacted=self.name == PROVIDERS)


def pins_of(canaries: Sequence[Canary]) -> Callable[[Any], bool]:
    """A predicate that pins the messages in which a canary stands word for word."""
    contents = re.compile("|".join(re.escape(canary.content) for canary in canaries))
    return lambda message: contents.search(words(message)) is not None


@dataclass(frozen=True)
class Survival:
    """What the kit found in one run of a strategy."""

    conversation: Conversation
    report: ConformanceReport
    held: Sequence[dict[str, bool]]
    """For each round, by the id of a canary, whether it is there."""
    session: SeededSession
    canaries: Sequence[Canary]

    def shares(self, *, kind: CanaryType | None = None, position: str | None = None) -> list[float]:
        """For each round, the share of the canaries that are there: all, those of one kind, or of one position."""
        chosen = [
            canary.id
            for canary in self.canaries
            if kind in (None, canary.type) and position in (None, position_bucket(self.session, canary.id))
        ]
        return [sum(held[name] for name in chosen) / len(chosen) for held in self.held]

    @property
    def lost(self) -> list[str]:
        """What the kit says of each canary that is gone: its id, the round, and what is missing."""
        gone = [one for one in self.report.diagnoses if one.lost]
        return [f"{one.canary_id} in round {one.lost_round}: {', '.join(one.missing_tokens)}" for one in gone]


def survive(
    strategy: cc.CompactionStrategy,
    place: Place = "user",
    *,
    name: str = "",
    pinned: bool = False,
    format: str = "openai_chat",
    session: SeededSession | None = None,
    canaries: Sequence[Canary] | None = None,
    rounds: int = ROUNDS,
) -> Survival:
    """Run a strategy for some rounds; by default on the kit's seeded session and canaries."""
    session, canaries = session or build_seeded_session(), list(canaries or seeded_canaries())
    pins = pins_of(canaries) if pinned else None
    conversation = Conversation(name or strategy.name, strategy, place, pins, format)
    run = run_conformance(session, conversation, rounds=rounds, canaries=canaries)
    report = build_report(run, canaries=canaries, session=session)
    return Survival(conversation, report, [one.survived for one in run.rounds], session, canaries)


@cache
def seeded(name: str, place: Place = "user", protection: Protection = "nothing") -> Survival:
    """A strategy of the tables on the kit's seeded session; each such run is made once."""
    keeps = [canary.content for canary in seeded_canaries()] if protection == "must_keep" else ()
    format = "anthropic" if name == PROVIDERS else "openai_chat"
    return survive(STRATEGIES[name](keeps), place, name=name, pinned=protection == "pins", format=format)


# -- the page ------------------------------------------------------------------------------------------

BEGIN, END = "<!-- survival: begin -->", "<!-- survival: end -->"
_AT: dict[Place, str] = {"user": "the user says", "assistant": "the assistant says", "tool": "a tool returns"}
_POSITIONS = ("early", "middle", "late")


def tables() -> str:
    """The tables of the page: all strategies after the last round, then each by round."""
    return "\n\n".join([_overview(), "## Round by round", *map(_by_round, STRATEGIES)])


def _overview() -> str:
    head = ["strategy", *(f"what {at}" for at in _AT.values()), "with pins", "with `must_keep`"]
    return _table(head, [_overview_row(name) for name in STRATEGIES])


def _overview_row(name: str) -> list[str]:
    plain = [seeded(name, place).shares()[-1] for place in PLACES]
    protected: list[float | None] = [_least(name, "pins"), _least(name, "must_keep") if name in KEEPING else None]
    return [name, *map(_percent, [*plain, *protected])]


def _least(name: str, protection: Protection) -> float:
    return min(seeded(name, place, protection).shares()[-1] for place in PLACES)


def _by_round(name: str) -> str:
    """The table of one strategy, where it loses most: in words if it can, else in what tools return."""
    place: Place | None = next((p for p in PLACES if seeded(name, p).shares()[-1] < 1), None)
    title = f"### {name[0].upper()}{name[1:]}"
    if place is None:
        return (
            f"{title}\n\n`{seeded(name).conversation.strategy!r}`\n\nNothing is lost in any round, wherever it stands."
        )
    run = seeded(name, place)
    rows = {kind.value.replace("_", " "): run.shares(kind=kind) for kind in CanaryType}
    rows |= {position: run.shares(position=position) for position in _POSITIONS} | {"**all**": run.shares()}
    head = [f"in what {_AT[place]}", *(f"round {number + 1}" for number in range(ROUNDS))]
    table = _table(head, [[what, *map(_percent, shares)] for what, shares in rows.items()])
    if not any(run.shares()):
        table = f"In what {_AT[place]}, all of it is gone after the first round."
    return f"{title}\n\n`{run.conversation.strategy!r}`\n\n{table}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}".replace("%", " %")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(page: str) -> str:
    """The page with its generated part made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Show the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page, between its marks")
    page = parser.parse_args(arguments).write
    if page is None:
        print(tables())
    else:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
