"""Every strategy that shortens, summarises or composes, and what holds for whatever one makes of a history.

A history is read once and judged once (:class:`History`); every strategy works on that index, one after the other.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import chat_compaction as cc
from chat_compaction._summarizing import SummaryRequest
from chat_compaction.counters import Counter
from chat_compaction.formats import PartKind
from chat_compaction.offload import OffloadStore
from tests.legality import Judge
from tests.wire import Said, said

CHARACTERS = cc.FunctionCounter(len, name="characters")

# -- every strategy, at one limit ------------------------------------------------------------------------------


def summarizer(request: SummaryRequest) -> str:
    """A short answer, and another one for every request."""
    return f"{len(request.entries)} entries were told, {len(request.text)} characters."[: request.max_tokens]


def calls_first(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
    """A plain function: lets tool groups leave ahead of all others."""
    groups = sorted(strategy.candidates(index), key=lambda group: group.kind is not cc.GroupKind.TOOL_CALL)
    strategy.evict(index, groups, "calls first")


Make = Callable[[int, OffloadStore], cc.CompactionStrategy]


def at(limit: int, share: float = 1.0) -> dict[str, Any]:
    """A trigger, and a target that is a share of it."""
    return {"trigger": cc.tokens > limit, "target": cc.tokens <= int(limit * share)}


def _summarization(limit: int, _: OffloadStore) -> cc.CompactionStrategy:
    return cc.SummarizationStrategy(summarizer, **at(limit, 0.8), max_summary_tokens=600, min_preserved_groups=2)


def _clear(limit: int, **arguments: Any) -> cc.CompactionStrategy:
    return cc.ToolResultStrategy(**at(limit), keep_tool_uses=1, **arguments)


def _pipeline(limit: int, store: OffloadStore) -> cc.CompactionStrategy:
    return cc.PipelineStrategy(
        cc.ProviderCompactionStrategy(),
        cc.DropReasoningStrategy(**at(limit)),
        cc.DropMediaStrategy(**at(limit), keep=1),
        cc.DeduplicateStrategy(**at(limit)),
        cc.OffloadStrategy(store, **at(limit), min_tokens=400),
        _clear(limit, style="collapse"),
        cc.ClipStrategy(**at(limit), max_tokens=500),
        _summarization(limit, store),
        cc.TruncationStrategy(**at(limit), min_preserved_groups=1),
    )


def _first_of(limit: int, _: OffloadStore) -> cc.CompactionStrategy:
    return cc.FirstOf(
        _clear(limit, clear_at_least=limit // 10),
        cc.SlidingWindowStrategy(**at(limit)),
        cc.TruncationStrategy(**at(limit), min_preserved_groups=2),
    )


def _function(limit: int, _: OffloadStore) -> cc.CompactionStrategy:
    return cc.strategy(**at(limit), min_preserved_groups=2)(calls_first)


MAKE: dict[str, Make] = {
    "sliding window": lambda limit, _: cc.SlidingWindowStrategy(**at(limit), keep_first_groups=1),
    "clear": lambda limit, _: _clear(limit, min_preserved_groups=0),
    "clear inputs": lambda limit, _: _clear(limit, clear_tool_inputs=True, min_tokens=20),
    "collapse": lambda limit, _: _clear(limit, style="collapse"),
    "drop": lambda limit, _: _clear(limit, style="drop"),
    "provider": lambda limit, _: cc.ProviderCompactionStrategy(),
    "clip": lambda limit, _: cc.ClipStrategy(
        **at(limit), max_tokens=300, min_tokens=100, kinds=["tool_result", "tool_call", "assistant", "user"]
    ),
    "clip at once": lambda limit, _: cc.ClipStrategy(**at(limit), max_tokens=1_000, clip_to="min_tokens"),
    "deduplicate": lambda limit, _: cc.DeduplicateStrategy(**at(limit), key=lambda tool, arguments, result: tool),
    "offload": lambda limit, store: cc.OffloadStrategy(store, **at(limit), min_tokens=300, user_texts=True),
    "reasoning": lambda limit, _: cc.DropReasoningStrategy(**at(limit), keep_turns=0, keep_tool_turns=False),
    "media": lambda limit, _: cc.DropMediaStrategy(**at(limit), keep=0),
    "summarization": _summarization,
    "pipeline": _pipeline,
    "first of": _first_of,
    "context window": lambda limit, _: cc.ContextWindowStrategy(int(limit * 1.25) + 10, 10),
    "with summaries": lambda limit, _: cc.ContextWindowStrategy(int(limit * 1.25) + 10, 10, summarizer),
    "function": _function,
}


# -- a history, and what became of it ---------------------------------------------------------------------------


@dataclass
class History:
    """A list of messages with its pins: read once, judged once, for all strategies and outputs."""

    name: str
    format: str
    messages: list[Any]
    pinned: frozenset[int] = frozenset()
    reserved: int = 0
    counter: Counter = CHARACTERS

    def read(self, messages: Sequence[Any]) -> cc.MessageIndex:
        """A fresh index."""
        pins = [self.messages[position] for position in self.pinned]
        return cc.MessageIndex.from_messages(
            messages, counter=self.counter, format=self.format, pinned=pins, reserved=self.reserved, validate=True
        )

    @cached_property
    def index(self) -> cc.MessageIndex:
        """On which the strategies work, one after the other."""
        return self.read(self.messages)

    @cached_property
    def judge(self) -> Judge:
        """Who knows what was wrong before."""
        return Judge(self.messages, self.format)

    @cached_property
    def said(self) -> list[Said]:
        """The messages as the judge reads them."""
        return said(self.messages, self.format)

    @cached_property
    def size(self) -> int:
        """The tokens of all of it, with the reserve."""
        return self.read(self.messages).value(cc.tokens)

    @cached_property
    def stays(self) -> set[int]:
        """The positions of which the very messages stay: pins, the user's last words, calls that wait."""
        free = [position for position in range(len(self.messages)) if position not in self.pinned]
        spoken = [p for p in free if self.said[p].side == "user" and not self.said[p].only("result")]
        opens = [p for p in spoken if not self.said[p].has("result")]
        newest_turn = opens[-1] if opens else 0
        calls = (link.call for link in self.judge.links if link.result is None and link.call is not None)
        return {*self.pinned, *spoken[-1:], *(call for call in calls if call >= newest_turn)}


@dataclass
class Outcome:
    """What a strategy made of a history."""

    name: str
    history: History
    report: cc.CompactionReport
    after: list[Any]
    places: list[int]
    """Where each message of the output stands in the caller's list."""

    @cached_property
    def written(self) -> dict[int, Any]:
        """By position, what stands in the place of the caller's message."""
        own = self.history.messages
        pairs = zip(self.places, self.after, strict=True)
        return {place: message for place, message in pairs if message is not own[place]}

    @cached_property
    def gone(self) -> set[int]:
        """The positions at which nothing stands any more."""
        return set(range(len(self.history.messages))) - set(self.places)

    @cached_property
    def fresh(self) -> cc.MessageIndex:
        """A fresh index of the output."""
        return self.history.read(self.after)


def run(history: History, name: str, strategy: cc.CompactionStrategy, *, in_async: bool = False) -> Outcome:
    """Compact the history, and put everything back for the next strategy."""
    index = history.index
    report = asyncio.run(strategy.acompact(index, hooks=())) if in_async else strategy.compact(index, hooks=())
    outcome = Outcome(f"{history.name}, {name}", history, report, index.included_messages(), index.included_positions())
    index.include_all()
    assert list(map(id, index.included_messages())) == list(map(id, history.messages)), outcome.name
    return outcome


# -- what holds for every one -------------------------------------------------------------------------------------


def order_kept(outcome: Outcome) -> Iterator[str]:
    """G1, K8: in order, the caller's own objects, but for what the report says was written."""
    if any(left >= right for left, right in pairwise(outcome.places)):
        yield f"the order is {outcome.places}"
    told = {place for replacement in outcome.report.replaced for place in replacement.written}
    if set(outcome.written) != told:
        yield f"written at {sorted(outcome.written)}, and the report says {sorted(told)}"


def missing_is_told(outcome: Outcome) -> Iterator[str]:
    """Every position at which nothing stands was excluded or replaced, and none that was excluded stands."""
    report = outcome.report
    excluded = {place for exclusion in report.excluded for place in exclusion.positions}
    replaced = {place for replacement in report.replaced for place in replacement.positions}
    if excluded & set(outcome.places) or excluded & replaced:
        yield f"excluded {sorted(excluded)}, replaced {sorted(replaced)}, and there stand {outcome.places}"
    if not outcome.gone <= excluded | replaced:
        yield f"gone {sorted(outcome.gone - excluded - replaced)}, and nobody said so"
    if report.restored:
        yield f"restored are {report.restored}"


def legal(outcome: Outcome) -> Iterator[str]:
    """K7: no fault that was not there, by the independent judge and by the package."""
    yield from (f"{f.kind}: {f.detail}" for f in outcome.history.judge.new_faults(outcome.after, outcome.places))
    known, now = (Tally(p.rule for p in i.problems) for i in (outcome.history.index, outcome.fresh))
    if now - known:
        yield f"problems: {dict(now - known)}"


def words_kept(outcome: Outcome) -> Iterator[str]:
    """G3, G6, K4: pins, the user's last words and calls that wait are the caller's own."""
    lost = outcome.history.stays - (set(outcome.places) - set(outcome.written))
    if lost:
        yield f"{sorted(lost)} must stay as they are"


def arguments_kept(outcome: Outcome) -> Iterator[str]:
    """K7: the calls of a message that was written anew are the same calls, and objects stay objects with their keys."""
    index = outcome.history.index
    for place, message in outcome.written.items():
        before, after = (_calls(view) for view in (index.view(place), index.format.read(message, place)))
        if after and [call[:2] for call in before] != [call[:2] for call in after]:
            yield f"messages[{place}] called {before}, and calls {after}"
        elif after and [_keys(call[2]) for call in before] != [_keys(call[2]) for call in after]:
            yield f"messages[{place}] has other keys in its arguments"


def _calls(view: cc.formats.Message) -> list[tuple[str, str | None, str]]:
    return [(part.name, part.call_id, part.text) for part in view.parts if part.kind is PartKind.TOOL_CALL]


def _keys(arguments: str) -> list[str] | None:
    try:
        value = json.loads(arguments)
    except ValueError:
        return None
    return list(value) if isinstance(value, dict) else None


def report_is_true(outcome: Outcome) -> Iterator[str]:
    """C2, K3: numbers are those of fresh lists, and the flags follow from them."""
    report, history = outcome.report, outcome.history
    size, changed = outcome.fresh.value(cc.tokens), bool(outcome.gone or outcome.written)
    first = min({*outcome.gone, *outcome.written}, default=None)
    truth: dict[str, Any] = {
        "changed": changed,
        "messages_before": len(history.messages),
        "messages_after": len(outcome.after),
        "first_changed": first,
    }
    if changed or report.tokens_exact:
        truth |= {"tokens_after": size, "tokens_before": history.size if report.tokens_exact else report.tokens_before}
    if first is not None:
        ahead = [message for place, message in zip(outcome.places, outcome.after, strict=True) if place < first]
        truth["stable_prefix_tokens"] = history.read(ahead).value(cc.tokens) - history.reserved
    for name, true in truth.items():
        if getattr(report, name) != true:
            yield f"{name} is {getattr(report, name)!r}, and should be {true!r}"
    gained = sum(e.tokens or 0 for e in report.excluded)
    gained += sum((r.tokens_before or 0) - (r.tokens_after or 0) for r in report.replaced)
    if report.tokens_exact and gained != report.tokens_before - report.tokens_after:
        yield f"the parts add up to {gained} of {report.tokens_before - report.tokens_after} tokens"
    # A summary that is no smaller is refused (rule S3); nothing else may fail.
    if any(failure.what != "summary" for failure in report.failures):
        yield f"failures: {report.failures}"


def not_larger(outcome: Outcome) -> Iterator[str]:
    """No more tokens than before."""
    if outcome.fresh.value(cc.tokens) > outcome.history.size:
        yield f"{outcome.fresh.value(cc.tokens)} tokens of {outcome.history.size}"


def stages_told(outcome: Outcome) -> Iterator[str]:
    """What is made of several says in the end what the last of them said that was kept."""
    kept = [stage for stage in outcome.report.stages if not stage.undone]
    if kept and kept[-1].tokens_after > outcome.report.tokens_after:
        yield f"the last stage left {kept[-1].tokens_after} tokens, all of it {outcome.report.tokens_after}"


CHECKS = (
    order_kept,
    missing_is_told,
    legal,
    words_kept,
    arguments_kept,
    report_is_true,
    not_larger,
    stages_told,
)


def idempotent(outcome: Outcome, strategy: cc.CompactionStrategy) -> Iterator[str]:
    """K10: once more changes nothing; of summaries, one stands at the most.

    Of alternatives none of which was enough, another may be enough for what the last of them left.
    """
    index = outcome.fresh
    yield from _one_summary(index)
    again = strategy.compact(index, hooks=())
    yield from _one_summary(index)
    aside = any(group.kind is cc.GroupKind.SUMMARY for group in index.groups)
    aside = aside or (isinstance(strategy, cc.FirstOf) and not outcome.report.fits)
    if again.changed and not aside:
        yield f"a second pass: {again}"
    if again.changed and again.tokens_after > again.tokens_before:
        yield f"a second pass makes it larger: {again}"


def _one_summary(index: cc.MessageIndex) -> Iterator[str]:
    """At most one; where the two sides take turns, something may be said beside it, which goes where it goes."""
    found = [g.positions for g in index.groups if g.kind is cc.GroupKind.SUMMARY and g.excluded is None]
    shown = [position for group in found for position in group if position in set(index.included_positions())]
    beside = index.format.name in ("sharegpt", "bedrock_converse")
    if len(shown) > 1 + beside or (len(shown) == 2 and shown[1] != shown[0] + 1):
        yield f"summaries at {shown}"


def problems(outcome: Outcome, strategy: cc.CompactionStrategy) -> list[str]:
    """What is wrong with an outcome."""
    found = [f"{check.__name__}: {outcome.name}: {fault}" for check in CHECKS for fault in check(outcome)]
    if outcome.report.changed:
        found += [f"idempotent: {outcome.name}: {fault}" for fault in idempotent(outcome, strategy)]
    return found
