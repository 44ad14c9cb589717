"""What happened to each group, and the summary in one line, as plain text."""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import attrs

from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._report import CompactionReport
from .._text import some, spans

_KEPT_BECAUSE = {
    "system": "system",
    "pinned": "pinned",
    "pending": "waits for a result",
    "last_user": "newest user",
    "floor": "newest",
}
_MOST_SPANS = 4


@attrs.frozen
class Row:
    """One line of a table: positions, kinds, turns, tokens, what happened; ``removed`` says that the groups were."""

    messages: str
    kind: str
    turn: str
    tokens: str
    what: str
    removed: bool = False


def compaction_rows(
    before: MessageIndex, report: CompactionReport, protected: Mapping[int, str], places: Sequence[int] | None = None
) -> list[Row]:
    """A row for each group that was kept as it was, and for each run of groups to which the same happened.

    The rows are what there was ``before``, and so are their tokens; what happened to it is told by the report, with
    ``protected`` for what was kept. ``places`` are the positions to be shown for those of the index.
    """
    fates = {position: f"removed ({item.reason})" for item in report.excluded for position in item.positions}
    for item in report.replaced:
        how = "summed up" if item.kind is GroupKind.SUMMARY else "shortened"
        fates |= dict.fromkeys(item.positions, f"{how} ({item.reason})")
    rows: list[Row] = []
    for fate, run in groupby(before.groups, key=lambda group: fates.get(group.positions[0])):
        if fate is None:
            rows.extend(row_of([group], _kept(protected.get(group.positions[0]), report), places) for group in run)
        else:
            rows.append(row_of(list(run), fate, places, removed=True))
    return rows


def _kept(reason: str | None, report: CompactionReport) -> str:
    if reason is None:
        return "kept (fits)" if report.fits else "kept"
    return f"kept ({_KEPT_BECAUSE.get(reason, f'needed by a rule: {reason}')})"


def inspection_rows(index: MessageIndex) -> list[Row]:
    """A row for each group, with what is special about it."""
    wrong = Tally(problem.position for problem in index.problems)
    return [
        row_of([group], _state(group, sum(wrong[position] for position in group.positions))) for group in index.groups
    ]


def _state(group: MessageGroup, problems: int) -> str:
    marks = [mark for mark, holds in (("pinned", group.pinned), ("pending", group.pending)) if holds]
    return ", ".join(marks + ([plural(problems, "problem")] if problems else []))


def row_of(
    groups: Sequence[MessageGroup], what: str, places: Sequence[int] | None = None, *, removed: bool = False
) -> Row:
    """The row of one group, or of several together."""
    positions = sorted(position for group in groups for position in group.positions)
    if places is not None:
        positions = [places[position] for position in positions]
    turns = [group.turn for group in groups if group.kind is not GroupKind.SYSTEM]
    first, last = min(turns, default=None), max(turns, default=None)
    return Row(
        short_spans(positions),
        _kinds(group.kind.value for group in groups),
        "" if first is None else str(first) if first == last else f"{first}-{last}",
        _tokens([group.tokens for group in groups]),
        what,
        removed,
    )


def _tokens(counts: Sequence[int | None]) -> str:
    """Their sum, or nothing where one was never counted."""
    known = [count for count in counts if count is not None]
    return f"{sum(known):,}" if len(known) == len(counts) else ""


def _kinds(kinds: Iterable[str]) -> str:
    tally = Tally(kinds)
    if tally.total() == 1:
        return next(iter(tally))
    return ", ".join(f"{number} {kind}" for kind, number in tally.most_common())


def short_spans(positions: Sequence[int]) -> str:
    """Positions in short, however scattered: ``0, 3-5, 7, 9 ... 41``."""
    parts = spans(positions).split(", ")
    if len(parts) <= _MOST_SPANS + 1:
        return ", ".join(parts)
    return f"{', '.join(parts[:_MOST_SPANS])} ... {parts[-1]}"


def summary(source: str, report: CompactionReport, *, planned: bool = False) -> str:
    """What there was, what is kept, and why it stopped, in one line."""
    return f"{source}: {'would have ' if planned else ''}{'; '.join(_clauses(report))}"


def failures(report: CompactionReport) -> Iterator[str]:
    """What failed while the compaction went on."""
    return (f"{failure.what} failed: {failure.error}" for failure in report.failures)


def _clauses(report: CompactionReport) -> Iterator[str]:
    counted = f"counted by {report.counter}{'' if report.counter_exact else ', not exact'}"
    if report.changed:
        # Nobody may have had to count what was removed; what was kept is counted.
        before = f"{report.tokens_before:,} -> " if report.tokens_exact else ""
        kept = f"kept {report.messages_after:,} of {plural(report.messages_before, 'message')}"
        yield f"{kept}, {before}{report.tokens_after:,} tokens ({counted})"
        yield from _replaced(report)
    else:
        tokens = f", {report.tokens_before:,} tokens ({counted})" if report.tokens_exact else ""
        yield f"kept everything, {plural(report.messages_before, 'message')}{tokens}"
    yield _why(report)
    if report.repairs:
        yield f"{plural(len(report.repairs), 'repair')}"
    if report.problems:
        yield f"{plural(len(report.problems), 'problem')} (see chat-compaction check)"


def _replaced(report: CompactionReport) -> Iterator[str]:
    summed = [len(item.positions) for item in report.replaced if item.kind is GroupKind.SUMMARY]
    if summed:
        yield f"{some(sum(summed), 'message')} summed up"
    if len(report.replaced) > len(summed):
        yield f"{some(len(report.replaced) - len(summed), 'group')} shortened"


def _why(report: CompactionReport) -> str:
    if report.stopped_by == "effect":
        return "what comes next depends on an answer from outside"
    if not report.fits:
        return report.overflow_text()
    if report.skipped == "trigger":
        return f"no need: {report.trigger}"
    if report.skipped == "target" or report.stopped_by == "target":
        return f"reached the target {report.target}"
    if report.stopped_by == "exhausted":
        return f"above the target {report.target}, but the strategy has no more to do, and what is kept fits"
    return f"above the target {report.target}, but no more may leave, and the trigger no longer holds"


def reasoning(report: CompactionReport) -> Iterator[str]:
    """What became of signed reasoning behind what was removed, and what the request can do about it."""
    if report.dropped_reasoning:
        dropped = some(len(report.dropped_reasoning), "message")
        yield f"{dropped} kept without reasoning, since it was bound to what was removed"
    if report.bound_reasoning:
        options = json.dumps(report.request_options)
        remedy = f"set {options} in the request, or use" if report.request_options else "see"
        have = f"{some(len(report.bound_reasoning), 'message')} kept with reasoning that is bound to what was removed"
        yield f"{have}; where the provider refuses it, {remedy} --bound-reasoning drop"


def plural(number: int, noun: str) -> str:
    """``1 problem``, ``2 problems``, ``no problems``."""
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"
