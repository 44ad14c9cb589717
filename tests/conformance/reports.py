"""Whether a report tells the truth: every field that can be told from the lists, told anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import chat_compaction as cc
from tests.conformance.shapes import Outcome
from tests.legality import faults


def report(outcome: Outcome) -> Iterator[str]:
    """The report says what was there, what left, why, and what it came to."""
    before, after = outcome.index_before, outcome.index_after
    for name, true in _truth(outcome, before, after).items():
        said = getattr(outcome.report, name)
        if said != true:
            yield f"{name} is {said!r}, and should be {true!r}"
    yield from _tokens(outcome, before.value(cc.tokens), after.value(cc.tokens))
    yield from _excluded(outcome, before)
    yield from _ending(outcome, before, after)
    yield from _problems(outcome)


def _truth(outcome: Outcome, before: cc.MessageIndex, after: cc.MessageIndex) -> dict[str, Any]:
    kept = set(outcome.kept)
    staying = [group for group in before.groups if kept.issuperset(group.positions)]
    gone = [position for position in range(len(outcome.before)) if position not in kept]
    target = outcome.strategy.effective_target
    return {
        "strategy": type(outcome.strategy).__name__,
        "changed": bool(gone),
        "fits": target(after) or not outcome.strategy.trigger(after),
        "target": repr(target),
        "messages_before": len(outcome.before),
        "messages_after": len(outcome.after),
        "groups_before": len(before.groups),
        "groups_after": len(staying),
        "turns_before": _turns(before.groups),
        "turns_after": _turns(staying),
        "first_changed": gone[0] if gone else None,
        "bound_reasoning": tuple(p for p in sorted(kept) if gone and p > gone[0] and _signed(outcome.before[p])),
        "counter": outcome.counter.name,
        "counter_exact": outcome.counter.exact,
    }


def _turns(groups: Sequence[cc.MessageGroup]) -> int:
    counting = {g.turn for g in groups if g.turn and not g.pinned and g.kind is not cc.GroupKind.SYSTEM}
    return len(counting)


def _signed(message: Any) -> bool:
    """Some reasoning in it has a signature, in the content or where gateways put it beside."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    beside = [*(message.get("reasoning_details") or ()), *(message.get("thinking_blocks") or ())]
    reasoning = [block for block in blocks if block["type"].endswith("thinking")]
    return any(block["type"] == "redacted_thinking" or block.get("signature") for block in [*reasoning, *beside])


def _tokens(outcome: Outcome, before: int, after: int) -> Iterator[str]:
    """Tokens are exact where something left; else exact, or lower bounds that say so."""
    told = outcome.report
    limit = outcome.limit(cc.tokens)
    over = after - limit if limit is not None and after > limit and told.skipped in (None, "floor") else None
    ahead = outcome.before[: told.first_changed]
    exact = {
        "tokens_after": (told.tokens_after, after),
        "over_by": (told.over_by, over),
        "stable_prefix_tokens": (told.stable_prefix_tokens, outcome.size(ahead)),
    }
    for name, (said, true) in exact.items() if told.changed or told.tokens_exact else ():
        if said != true:
            yield f"{name} is {said}, and should be {true}"
    if told.tokens_before > before or (told.tokens_exact and told.tokens_before != before):
        yield f"tokens_before is {told.tokens_before}, and should be {before}"
    if told.tokens_after > after or not told.trigger or told.duration_ms < 0:
        yield "too many tokens, no trigger, or a negative duration"


def _excluded(outcome: Outcome, before: cc.MessageIndex) -> Iterator[str]:
    """The exclusions are the groups that left, each with its kind, a reason, and its tokens if it was counted."""
    groups = {group.positions: group for group in before.groups}
    left = sorted(position for exclusion in outcome.report.excluded for position in exclusion.positions)
    if left != [position for position in range(len(outcome.before)) if position not in set(outcome.kept)]:
        yield f"excluded are {left}, and kept {outcome.kept}"
    for exclusion in outcome.report.excluded:
        group = groups.get(exclusion.positions)
        if group is None or not exclusion.reason or exclusion.kind is not group.kind:
            yield f"no group is {exclusion!r}"
        elif exclusion.tokens not in (None, group.tokens):
            yield f"{exclusion!r} has {group.tokens} tokens"


def _ending(outcome: Outcome, before: cc.MessageIndex, after: cc.MessageIndex) -> Iterator[str]:
    """Why it stopped or did nothing, and what stands in the way."""
    told = outcome.report
    reached = outcome.strategy.effective_target(after)
    if (told.skipped is None) == (told.stopped_by is None):
        yield f"skipped is {told.skipped!r} and stopped_by {told.stopped_by!r}"
    if (told.stopped_by == "target") != (reached and told.skipped is None):
        yield f"stopped_by is {told.stopped_by!r}, and the target is {'' if reached else 'not '}reached"
    if (told.skipped == "trigger") != (not outcome.strategy.trigger(before)):
        yield f"skipped is {told.skipped!r}"
    in_the_way = [position for blocker in told.blocked_by for position in blocker.positions]
    if bool(in_the_way) != (not reached and told.skipped in (None, "floor")) or set(in_the_way) - set(outcome.kept):
        yield f"blocked_by are {in_the_way}"


_RULES = {"orphan_result": "orphan_result", "second_result": "duplicate_result", "first_role": "first_user"}


def _problems(outcome: Outcome) -> Iterator[str]:
    """What the judge finds in the input is among the problems (rules G4, K7)."""
    told = {(problem.position, problem.rule) for problem in outcome.report.problems}
    for fault in faults(outcome.before, outcome.format):
        if fault.kind in _RULES and (fault.position, _RULES[fault.kind]) not in told:
            yield f"no problem says: {fault.detail}"
