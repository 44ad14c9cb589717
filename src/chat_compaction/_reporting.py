"""Writing the report of a compaction from the index before and after."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from ._groups import Bundle
from ._index import MessageIndex
from ._pass import Pass, Standing
from ._predicates import Explanation, groups, messages, tokens, turns
from ._report import Blocker, CompactionReport, Exclusion, Replacement
from ._rewriting import Rewriting, Written
from ._settings import IndexSettings

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


@attrs.frozen
class Reporter:
    """Writes the report of one compaction of one index; ``started`` is a time of ``perf_counter``."""

    strategy: CompactionStrategy
    index: MessageIndex
    explanation: Explanation
    started: float

    def declined(self, skipped: str) -> CompactionReport:
        """Nothing was done, and why; it counts nothing more than that needs."""
        at_floor = skipped == "floor"
        if at_floor and self.strategy.token_limit is not None:
            self.index.value(tokens)  # By how many tokens it does not fit (rule K5).
        now = Measure.of(self.index)
        return self._report(
            now,
            now,
            changed=False,
            fits=not at_floor or self.strategy.fits(self.index),
            skipped=skipped,
            stopped_by=None,
            over_by=self._over(now) if at_floor else None,
            blocked_by=_blockers(self.index) if at_floor else (),
            stable_prefix_tokens=_prefix(self.index, None),
            **_reasoning(self.index),
        )

    def completed(self, before: Measure, *, more: bool) -> CompactionReport:
        """A pass ran; ``more`` says that groups are left that may leave."""
        current = self.index._ledger.current or Pass()
        changes = current.changes
        moved = [bundle for bundle, was in changes.items() if bundle.included is not was.included]
        moved.sort(key=attrgetter("first"))
        first = moved[0].first if moved else None
        if current.reworded:
            first = min((place for place in map(_first_changed, changes.items()) if place is not None), default=None)
        reached = self.strategy.effective_target(self.index)
        if first is not None or (not reached and self.strategy.token_limit is not None):
            self.index.value(tokens)
        after = Measure.of(self.index)
        replaced, with_others = _replacements(changes) if current.reworded else ((), set())
        gone = [bundle for bundle in moved if not bundle.included and bundle not in with_others]
        back = [bundle for bundle in moved if bundle.included and bundle not in with_others]
        return self._report(
            after if first is None else _before(before, after, gone, back, current, self.index._settings),
            after,
            changed=first is not None,
            fits=self.strategy.fits(self.index),
            skipped=None,
            stopped_by=("effect" if current.interrupted else "target" if reached else "exhausted" if more else "floor"),
            excluded=_exclusions(gone, changes),
            restored=_exclusions(back, changes),
            replaced=replaced,
            stages=tuple(current.stages),
            failures=tuple(current.failures),
            over_by=self._over(after),
            blocked_by=() if reached else _blockers(self.index),
            first_changed=first,
            stable_prefix_tokens=_prefix(self.index, first),
            **_reasoning(self.index),
        )

    def _over(self, now: Measure) -> int | None:
        """The tokens above the limit that the strategy keeps to."""
        limit = self.strategy.token_limit
        return now.tokens - limit if limit is not None and now.tokens > limit else None

    def _report(self, before: Measure, after: Measure, **rest: Any) -> CompactionReport:
        return CompactionReport(
            strategy=self.strategy.name,
            trigger=self.explanation.text,
            target=repr(self.strategy.effective_target),
            tokens_before=before.tokens,
            tokens_after=after.tokens,
            tokens_exact=before.tokens_exact and after.tokens_exact,
            messages_before=before.messages,
            messages_after=after.messages,
            groups_before=before.groups,
            groups_after=after.groups,
            turns_before=before.turns,
            turns_after=after.turns,
            problems=self.index.problems,
            duration_ms=(perf_counter() - self.started) * 1000,
            counter=self.index.counter.name,
            counter_exact=self.index.counter.exact,
            format=self.index.format.name,
            **rest,
        )


def _before(
    before: Measure, after: Measure, gone: list[Bundle], back: list[Bundle], current: Pass, settings: IndexSettings
) -> Measure:
    """What is known now of the tokens before: what is in now, and what was counted of what left or was replaced."""
    if settings.drops_reasoning:
        return before  # What is in now may have been sent with its reasoning then.
    if not current.reworded:
        known = after.tokens + sum(map(_least, gone)) - sum(map(_least, back))
        return attrs.evolve(before, tokens=known, tokens_exact=not any(map(_uncounted, gone)))
    known, exact = after.tokens, True
    for bundle, was in current.changes.items():
        least, uncounted = was.tokens or (bundle.least, bundle.uncounted)
        known += (least if was.included else 0) - (bundle.least if bundle.included else 0)
        exact = exact and not (was.included and uncounted)
    return attrs.evolve(before, tokens=known, tokens_exact=exact)


_least, _uncounted = attrgetter("least"), attrgetter("uncounted")


def _first_changed(change: tuple[Bundle, Standing]) -> int | None:
    """The first position of a group at which something else stands than before; None where nothing does."""
    bundle, was = change
    if bundle.included is not was.included:
        absent = was.rewritten.absent if was.included and was.rewritten else () if was.included else bundle.absent
        return next(position for position in bundle.positions if position not in absent)
    return min(_changed(bundle, was), default=None) if bundle.included else None


def _changed(bundle: Bundle, was: Standing) -> set[int]:
    """The positions of a group at which another message stands than before."""
    before, after = ({} if side is None else side.messages for side in (was.rewritten, bundle.rewritten))

    def raw(messages: Mapping[int, Written | None], position: int) -> Any:
        written = messages.get(position, _OWN)
        return written.raw if isinstance(written, Written) else written

    return {position for position in before.keys() | after.keys() if raw(before, position) is not raw(after, position)}


_OWN = object()
"""Stands for the caller's message."""


def _replacements(changes: Mapping[Bundle, Standing]) -> tuple[tuple[Replacement, ...], set[Bundle]]:
    """What was replaced, by position, and the groups that are out because they were."""
    found, with_others = list[Replacement](), set[Bundle]()
    new = (b.rewritten for b, was in changes.items() if b.rewritten and b.rewritten is not was.rewritten)
    for rewriting in dict.fromkeys(rewritten.rewriting for rewritten in new):
        written = [bundle for bundle in rewriting.bundles if bundle.included]
        if not any(_changed(bundle, changes[bundle]) for bundle in written if bundle in changes):
            continue  # What stood for them left in the end, or is what stood there before.
        with_others.update(rewriting.bundles)
        found.append(_replacement(rewriting, written, changes))
    return tuple(sorted(found, key=attrgetter("positions"))), with_others


def _replacement(rewriting: Rewriting, written: list[Bundle], changes: Mapping[Bundle, Standing]) -> Replacement:
    before = [
        (bundle, changes[bundle].tokens or (bundle.least, bundle.uncounted))
        for bundle in rewriting.bundles
        if bundle in changes and changes[bundle].included
    ]
    changed = ((b, place) for b in written if b in changes for place in _changed(b, changes[b]))
    places = (place for bundle, place in changed if place not in bundle.absent)
    return Replacement(
        tuple(sorted(position for bundle in rewriting.bundles for position in bundle.positions)),
        tuple(sorted(places)),
        written[0].kind,
        rewriting.reason,
        None if any(uncounted for _, (_, uncounted) in before) else sum(least for _, (least, _) in before),
        None if any(bundle.uncounted for bundle in written) else sum(bundle.least for bundle in written),
    )


def _exclusions(bundles: list[Bundle], before: Mapping[Bundle, Standing]) -> tuple[Exclusion, ...]:
    """Groups with the reason for which each is out, or was before."""
    found = []
    for bundle in bundles:
        reason = bundle.excluded or before[bundle].excluded or ""
        # What left the context is what the group was, also where it was shortened first.
        least, uncounted = before[bundle].tokens or (bundle.least, bundle.uncounted)
        tokens = None if uncounted else least
        told = bundle.told
        # A reducer tells at each call of a growing list what left: mostly the same.
        if (
            told is None
            or told.tokens != (None if uncounted else least)
            or (told.reason, told.kind, len(told.positions)) != (reason, bundle.kind, len(bundle.positions))
        ):
            tokens = None if uncounted else least
            bundle.told = told = Exclusion(tuple(bundle.positions), bundle.kind, reason, tokens)
        found.append(told)
    return tuple(found)


def _blockers(index: MessageIndex) -> tuple[Blocker, ...]:
    """What is in: the floor, and what the strategy did not choose although it may leave."""
    ledger = index._ledger
    return tuple(
        Blocker(
            tuple(bundle.positions),
            bundle.kind,
            ledger.protected.get(first, "strategy"),
            bundle.tokens,
        )
        for first, bundle in ledger.grouping.bundles.items()
        if bundle.included
    )


def _prefix(index: MessageIndex, first: int | None) -> int:
    """Tokens of what is included ahead of the first change, or the first repair."""
    first = min((place for place in (first, index._ledger.binding.repaired_from) if place is not None), default=None)
    if first is None:
        return index.known(tokens)[0] - index._settings.reserved
    ledger = index._ledger
    ahead = zip(ledger.counting.known[:first], ledger.grouping.of, strict=False)
    return sum(known.least for known, bundle in ahead if bundle.included)


def _reasoning(index: MessageIndex) -> dict[str, Any]:
    """What became of signed reasoning in kept messages behind the first position that is out, or was repaired."""
    ledger = index._ledger
    first = ledger.binding.first_change()
    if first is None:
        return {}
    signed = [position for position in ledger.places.signed(first) if ledger.grouping.of[position].included]
    bound = tuple(position for position in signed if not ledger.outgoing.lost_reasoning(position))
    return {
        "bound_reasoning": bound,
        "dropped_reasoning": tuple(position for position in signed if ledger.outgoing.lost_reasoning(position)),
        "request_options": deepcopy(dict(index.format.request_options)) if bound else {},
    }
