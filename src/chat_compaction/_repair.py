"""Repairing a history that breaks the rules of its format: a new list, the caller's messages unchanged (rule K8).

Rules repair, each what it judges; this is what they work on. One rule at a time changes a draft, which is read anew
before the next one looks, until nothing is wrong or nobody can mend more. Nothing is ever invented: messages and
parts leave, move or are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from ._ledger import Ledger
from ._messages import Message, Tie, TieKind
from ._pairing import Pairing
from ._problems import Problem, Repair
from ._reader import Reader, checked_list
from ._report import CompactionReport
from ._settings import IndexSettings
from .counters import EstimateCounter
from .formats import Format
from .formats.rules._draft import Draft, Item

_MOST_ROUNDS = 20
"""One round of all rules is nearly always enough; what leaves may leave another result alone."""


@attrs.frozen
class Repaired:
    """A history after its repair.

    ``messages`` are the caller's own objects, and changed copies where a part had to leave. ``positions``
    tell where in the caller's list each of them stood. ``problems`` are those that nobody could mend, by their
    position in ``messages``. ``first_changed`` is the first place in ``messages`` that has another message than the
    caller's list has there, None where there is none; ``pinned`` says of each message whether it is.
    """

    messages: list[Any] = attrs.field(repr=False)
    positions: tuple[int, ...]
    repairs: tuple[Repair, ...]
    problems: tuple[Problem, ...]
    first_changed: int | None = attrs.field(default=None, repr=False)
    pinned: tuple[bool, ...] = attrs.field(default=(), repr=False)

    def in_callers_list(self, report: CompactionReport) -> CompactionReport:
        """A report on ``messages`` as one on the caller's list, with the repairs."""

        def moved(items: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(attrs.evolve(item, positions=self._at(item.positions)) for item in items)

        # Up to the first place that changed, places and positions are the same.
        firsts = [*(repair.position for repair in self.repairs), *self._at([report.first_changed])]
        firsts += [] if self.first_changed is None else [self.first_changed]
        return attrs.evolve(
            report,
            excluded=moved(report.excluded),
            restored=moved(report.restored),
            replaced=tuple(attrs.evolve(item, written=self._at(item.written)) for item in moved(report.replaced)),
            stages=tuple(map(self.in_callers_list, report.stages)),
            blocked_by=moved(report.blocked_by),
            first_changed=min(firsts, default=None),
            bound_reasoning=self._at(report.bound_reasoning),
            dropped_reasoning=self._at(report.dropped_reasoning),
            problems=tuple(attrs.evolve(p, position=self.positions[p.position]) for p in report.problems),
            repairs=self.repairs,
        )

    def _at(self, places: Iterable[int | None]) -> tuple[int, ...]:
        return tuple(self.positions[place] for place in places if place is not None)


def repair(messages: Sequence[Any], *, format: str | Format = "auto", pending_turns: int = 1) -> Repaired:
    """Mend what breaks a rule of the format, and say what was done.

    A result without its call and a second result leave; a call that never got a result leaves, with its message if
    that has reasoning; results move behind their call; what stands ahead of the first user message, empty texts and
    reasoning that led to nothing leave, where the format asks for that; messages of one side are joined where the two
    must alternate. Calls of the newest turn may still get their result, and stay (rule G3). A history without
    problems comes back as it is.

    >>> repair([{"role": "user", "content": "Hi."}, {"role": "tool", "tool_call_id": "a", "content": "left over"}])
    Repaired(positions=(0,), repairs=(Repair(position=1, rule='orphan_result', \
action="removed the result of the call 'a', never made"),), problems=())
    """
    history = checked_list(messages)
    settings = IndexSettings(EstimateCounter(), format, None, 0, pending_turns)
    reader = Reader.of(settings).settled_by(history)
    return repair_read(history, *reader.read(history), reader.format, settings)


def repair_read(
    history: Sequence[Any], views: Sequence[Message], pins: Sequence[bool], format: Format, settings: IndexSettings
) -> Repaired:
    """:func:`repair` for messages that are read already."""
    read = zip(history, views, pins, strict=True)
    items = [Item(raw, position, view, pin) for position, (raw, view, pin) in enumerate(read)]
    ledger = _judged(items, format, settings)
    repairs: list[Repair] = []
    # What leaves may leave something else wrong, which a later rule mends; where none does, it was no repair.
    best = items, tuple(repairs), ledger.problems()
    for _ in range(_MOST_ROUNDS):
        before = len(repairs)
        for rule in format.rules:
            if any(problem.rule == rule.name for problem in ledger.problems()):
                draft = Draft(format, list(items), _ties(ledger))
                rule.repair(draft)
                items = draft.result()
                repairs += draft.repairs
                ledger = _judged(items, format, settings)
                if len(ledger.problems()) <= len(best[2]):
                    best = items, tuple(repairs), ledger.problems()
        if len(repairs) == before:
            break
    items, done, problems = best
    positions = tuple(item.position for item in items)
    changed = (place for place, item in enumerate(items) if item.raw is not history[place])
    return Repaired(
        [item.raw for item in items],
        positions,
        done,
        problems,
        next(changed, None),
        tuple(item.pinned for item in items),
    )


def _judged(items: Sequence[Item], format: Format, settings: IndexSettings) -> Ledger:
    ledger = Ledger(settings, format)
    for item in items:
        ledger.append(item.view, pinned=item.pinned)
    return ledger


def _ties(ledger: Ledger) -> list[Tie]:
    """How the calls and results of a list belong together, and the calls that never got a result."""
    pairing = Pairing()
    ties = [tie for view in ledger.views for tie in pairing.take(view)]
    known = [tie for tie in ties if ledger.judge.complete or tie.kind is not TieKind.ORPHAN]
    return [*known, *ledger.grouping.unanswered(ledger.settings.pending_turns)]
