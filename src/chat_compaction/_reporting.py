"""Writing the report of a compaction from the index before and after."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from ._index import MessageIndex
from ._ledger import Change
from ._predicates import Explanation, groups, messages, tokens, turns
from ._report import Blocker, CompactionReport, Exclusion
from ._targets import token_limit

if TYPE_CHECKING:
    from ._strategy import CompactionStrategy


@attrs.frozen
class Measure:
    """The metrics of an index at one moment, as far as they are known without counting."""

    tokens: int
    tokens_exact: bool
    messages: int
    groups: int
    turns: int

    @classmethod
    def of(cls, index: MessageIndex) -> Measure:
        """Measure now."""
        known, exact = index.known(tokens)
        return cls(known, exact, index.value(messages), index.value(groups), index.value(turns))


def declined(
    strategy: CompactionStrategy, index: MessageIndex, trigger: Explanation, skipped: str, started: float
) -> CompactionReport:
    """The report of a compaction that did nothing, and why; it counts nothing more."""
    now = Measure.of(index)
    limit = token_limit(strategy.effective_target)
    over = now.tokens - limit if skipped == "floor" and limit is not None and now.tokens > limit else None
    return _report(
        strategy,
        index,
        trigger,
        now,
        now,
        started,
        fits=skipped != "floor",
        skipped=skipped,
        over_by=over,
        blocked_by=_blockers(index) if skipped == "floor" else (),
        stable_prefix_tokens=now.tokens - index._settings.reserved,
    )


def completed(
    strategy: CompactionStrategy, index: MessageIndex, trigger: Explanation, before: Measure, started: float
) -> CompactionReport:
    """The report of a pass that ran."""
    ledger = index._ledger
    gone = [change for change in (ledger.changes or {}).values() if change.included and not change.bundle.included]
    back = [change for change in (ledger.changes or {}).values() if not change.included and change.bundle.included]
    changed = sorted(position for change in gone + back for position in change.bundle.positions)
    if changed:
        index.value(tokens)
    reached = strategy.reached(index)
    after = Measure.of(index)
    limit = token_limit(strategy.effective_target)
    first = changed[0] if changed else None
    return _report(
        strategy,
        index,
        trigger,
        _before(before, after, gone, back) if changed else after,
        after,
        started,
        changed=bool(changed),
        fits=reached or not strategy.trigger(index),
        stopped_by="target" if reached else "exhausted" if strategy.candidates(index) else "floor",
        excluded=tuple(_exclusion(change) for change in sorted(gone, key=lambda change: change.bundle.positions)),
        over_by=after.tokens - limit if limit is not None and after.tokens > limit else None,
        blocked_by=() if reached else _blockers(index),
        first_changed=first,
        stable_prefix_tokens=_prefix(index, first),
        bound_reasoning=_bound(index, first),
    )


def _report(
    strategy: CompactionStrategy,
    index: MessageIndex,
    trigger: Explanation,
    before: Measure,
    after: Measure,
    started: float,
    *,
    changed: bool = False,
    skipped: str | None = None,
    stopped_by: str | None = None,
    **rest: Any,
) -> CompactionReport:
    return CompactionReport(
        strategy=type(strategy).__name__,
        changed=changed,
        skipped=skipped,
        stopped_by=stopped_by,
        trigger=trigger.text,
        target=repr(strategy.effective_target),
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        tokens_exact=before.tokens_exact and after.tokens_exact,
        messages_before=before.messages,
        messages_after=after.messages,
        groups_before=before.groups,
        groups_after=after.groups,
        turns_before=before.turns,
        turns_after=after.turns,
        problems=index.problems,
        duration_ms=(perf_counter() - started) * 1000,
        counter=index.counter.name,
        counter_exact=index.counter.exact,
        **rest,
    )


def _before(before: Measure, after: Measure, gone: list[Change], back: list[Change]) -> Measure:
    """What is known now of the tokens before: what is in now, and what was counted of what left."""
    known = after.tokens + sum(c.bundle.counted for c in gone) - sum(c.bundle.counted for c in back)
    return attrs.evolve(before, tokens=known, tokens_exact=not any(c.bundle.uncounted for c in gone))


def _exclusion(change: Change) -> Exclusion:
    bundle = change.bundle
    counted = None if bundle.uncounted else bundle.counted
    return Exclusion(tuple(bundle.positions), bundle.kind, bundle.excluded or "", counted)


def _blockers(index: MessageIndex) -> tuple[Blocker, ...]:
    ledger = index._ledger
    bundles = ((bundle, ledger.protected.get(first)) for first, bundle in ledger.grouping.bundles.items())
    return tuple(
        Blocker(tuple(bundle.positions), bundle.kind, why, None if bundle.uncounted else bundle.counted)
        for bundle, why in bundles
        if why is not None
    )


def _prefix(index: MessageIndex, first: int | None) -> int:
    """Tokens of what is included ahead of the first change."""
    if first is None:
        return index.known(tokens)[0] - index._settings.reserved
    ledger = index._ledger
    ahead = ledger.counts[:first]
    return sum(count or 0 for count, bundle in zip(ahead, ledger.grouping.of, strict=False) if bundle.included)


def _bound(index: MessageIndex, first: int | None) -> tuple[int, ...]:
    """Positions of kept messages whose signed reasoning is now behind a change."""
    if first is None:
        return ()
    ledger = index._ledger
    behind = range(first, len(ledger.views))
    return tuple(p for p in behind if ledger.grouping.of[p].included and ledger.views[p].signed)
