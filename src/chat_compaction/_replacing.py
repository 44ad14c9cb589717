"""Putting other messages in the place of the caller's, so that no rule of the format is broken by it (rules S1, K7)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import attrs

from ._conversation import Conversation
from ._groups import Bundle, GroupKind
from ._ledger import Ledger
from ._marks import mark
from ._messages import (
    ASSISTANT,
    OPEN,
    ORPHAN,
    SECOND,
    SYSTEM,
    TOOL_CALL,
    TOOL_RESULT,
    USER,
    Message,
    Role,
    SummaryMark,
    TieKind,
)
from ._pairing import Pairing
from ._rewriting import Rewriting, Written

FILLERS = {USER: "(The conversation goes on from here.)", ASSISTANT: "(Understood.)"}
"""What is said beside a summary where the two sides must alternate."""


def rewrite(conversation: Conversation, bundle: Bundle, messages: Mapping[int, Any | None], reason: str) -> bool:
    """See :meth:`MessageIndex.rewrite`."""
    ledger = conversation.ledger
    unknown = set(messages).difference(bundle.positions)
    if unknown or not messages:
        raise ValueError(f"messages must be by positions of the group, {bundle.positions}, got {sorted(messages)}")
    here = {p: conversation.message(p) if p not in bundle.absent else None for p in messages}
    written = {p: _read(conversation, p, raw) for p, raw in messages.items() if raw is not here[p]}
    if not written:
        return True  # So it stands already.
    if bundle.kind is GroupKind.SUMMARY:
        return False  # Its words are marked as a whole.
    _check_speakers(ledger, written)
    kept = [position for position in bundle.shown if written.get(position, bundle) is not None]
    if not kept:
        raise ValueError("messages must leave the group one message at least; exclude a group that leaves whole")
    with _Trial(ledger, [bundle], written) as trial:
        ledger.rewrite(bundle, written, Rewriting(reason, (bundle,)), _kind(ledger, bundle, written))
        return trial.judge([position for position, message in written.items() if message is not None])


def _check_speakers(ledger: Ledger, written: Mapping[int, Written | None]) -> None:
    """Turns, the user's last words and system messages are known by who speaks: that may not change."""
    for position, message in written.items():
        was = ledger.words.original(position)
        if message is None or message.view.role is was.role:
            continue
        if (was.speaks_for_user, was.role is SYSTEM) != (message.view.speaks_for_user, message.view.role is SYSTEM):
            raise ValueError(
                "messages must not turn words of the user's or a system message into another's, or the other way "
                f"round, got one of the {message.view.role.value} for messages[{position}] of the {was.role.value}"
            )


def _read(conversation: Conversation, position: int, raw: Any | None) -> Written | None:
    if raw is None:
        return None
    (view,) = conversation.reader.views([raw], position)
    return Written(raw, view)


def _kind(ledger: Ledger, bundle: Bundle, written: Mapping[int, Written | None]) -> GroupKind:
    """The kind of a group as it will stand: one that calls no tool any more is no tool group."""
    if bundle.kind is not GroupKind.TOOL_CALL:
        return bundle.kind
    shown = [position for position in bundle.shown if position not in written]
    views = [ledger.views[position] for position in shown]
    views += [message.view for message in written.values() if message is not None]
    return GroupKind.TOOL_CALL if any(view.calls for view in views) else GroupKind.ASSISTANT


# -- summaries -----------------------------------------------------------------------------------


def summarize(conversation: Conversation, bundles: Sequence[Bundle], text: str, reason: str) -> bool:
    """See :meth:`MessageIndex.summarize`."""
    ledger = conversation.ledger
    together = tuple(sorted(bundles, key=attrgetter("first")))
    shown = sorted(position for bundle in bundles for position in bundle.shown)
    positions = [position for bundle in together for position in bundle.positions]
    marked = mark(text, conversation.settings.summary_key)
    for place in dict.fromkeys((_place_of(ledger, shown), 0)):
        for roles in _roles(ledger, shown[place]):
            messages = _messages(conversation, shown[place:], marked, roles)
            if messages is None:
                continue
            with _Trial(ledger, together, positions) as trial:
                _put(ledger, together, messages, _of_summary(reason, together))
                back = any(bundle.included for bundle in together if bundle.excluded is not None)
                if not back and trial.judge(list(messages)):
                    return True
                trial.undo()
    return False


def _of_summary(reason: str, bundles: tuple[Bundle, ...]) -> Rewriting:
    """A replacement of these groups by a summary, which takes over what summaries among them stand for."""
    held = [b.rewritten.rewriting for b in bundles if b.kind is GroupKind.SUMMARY and b.rewritten is not None]
    return Rewriting(reason, bundles, True, tuple(dict.fromkeys(held)))


def is_summarised(bundle: Bundle) -> bool:
    """Whether a group is out because a summary, which stands in another group, stands for it."""
    return bundle.rewritten is not None and bundle.rewritten.rewriting.summary and bundle.kind is not GroupKind.SUMMARY


def _place_of(ledger: Ledger, shown: Sequence[int]) -> int:
    """Where among these positions a summary is to stand: first, but behind the user's words that stay among them.

    What it tells of was done for them, or they were said before it.
    """
    for user in ledger.places.last_users():
        if shown[0] < user.newest < shown[-1]:
            return bisect_left(shown, user.newest)
    return 0


def _roles(ledger: Ledger, position: int) -> Iterator[tuple[Role, ...]]:
    """Who may say a summary there, the likeliest first: the two sides take turns, and the user begins."""
    of, views = ledger.grouping.of, ledger.views
    ahead = (place for place in range(position - 1, -1, -1) if of[place].included and place not in of[place].absent)
    before = next((views[place].role for place in ahead), None)
    first, second = (ASSISTANT, USER) if before not in (None, Role.SYSTEM, ASSISTANT) else (USER, ASSISTANT)
    yield from ((first,), (second,), (first, second), (second, first))


def _messages(
    conversation: Conversation, positions: Sequence[int], text: str, roles: Sequence[Role]
) -> dict[int, Written] | None:
    """The summary, and what is said beside it, by position; None where they can't be written, or have no room."""
    if len(positions) < len(roles):
        return None
    written: dict[int, Written] = {}
    # Marked, too: when the list is loaded again it is no word of the user's, and leaves with the summary.
    beside = mark(FILLERS[roles[-1]], conversation.settings.summary_key)
    for position, role, said in zip(positions, roles, (text, beside), strict=False):
        raw = conversation.reader.format.saying(conversation.raw[position], said, role)
        message = None if raw is None else _read(conversation, position, raw)
        if message is None or message.view.role is not role:
            return None
        view = attrs.evolve(message.view, summary=SummaryMark.KNOWN)
        written[position] = Written(message.raw, view)
    return written


def _put(ledger: Ledger, bundles: Sequence[Bundle], messages: Mapping[int, Written], rewriting: Rewriting) -> None:
    """Let the messages stand for the groups: those that hold one show nothing else, the others are out."""
    others = []
    for bundle in bundles:
        here = {position: messages.get(position) for position in bundle.positions}
        if any(here.values()):
            ledger.rewrite(bundle, here, rewriting, GroupKind.SUMMARY)
            ledger.set_excluded((bundle,), None)
        else:
            own = bundle.kind if bundle.rewritten is None else bundle.rewritten.was
            ledger.rewrite(bundle, {}, rewriting, own if bundle.kind is GroupKind.SUMMARY else bundle.kind)
            others.append(bundle)
    ledger.set_excluded([bundle for bundle in others if bundle.excluded is None], rewriting.reason)


class _Trial:
    """A change that is undone where it breaks a rule of the format more often than it was broken."""

    def __init__(self, ledger: Ledger, bundles: Sequence[Bundle], positions: Collection[int]) -> None:
        self._ledger = ledger
        self._bundles = [(bundle, bundle.excluded, bundle.rewritten) for bundle in bundles]
        self._positions = positions
        self._before = self._broken()
        self._apart = self._parted()

    def __enter__(self) -> _Trial:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.undo()

    def _broken(self) -> Tally[str]:
        cuts = self._ledger.cuts
        return cuts.broken_at(self._positions) if cuts.book.seams else Tally()

    def _parted(self) -> Tally[TieKind]:
        """How many results stand without their call, and calls without a result that they had (rule G4)."""
        parted: Tally[TieKind] = Tally()
        for bundle, _, _ in self._bundles:
            pairing = Pairing()
            ties = [tie for position in bundle.shown for tie in pairing.take(self._ledger.views[position])]
            parted.update(tie.kind for tie in (*ties, *pairing.open()))
        return Tally({kind: number for kind, number in parted.items() if kind in (ORPHAN, OPEN, SECOND)})

    def judge(self, written: Sequence[int]) -> bool:
        """Whether the change may stay; ``written`` are the positions of new messages."""
        book, ledger = self._ledger.cuts.book, self._ledger
        if not self._keeps_ids():
            self.undo()
            return False
        wrong = Tally(p.rule for place in written for p in book.of_message(place, ledger.views[place]))
        was = Tally(p.rule for place in written for p in book.of_message(place, ledger.words.original(place)))
        if self._broken() - self._before or self._parted() - self._apart or wrong - was:
            self.undo()
            return False
        return True

    def _keeps_ids(self) -> bool:
        """Whether calls and results go by the ids that the caller's go by."""
        now = {id_ for bundle, _, _ in self._bundles for p in bundle.shown for id_ in _ids(self._ledger.views[p])}
        words = self._ledger.words
        return now <= {
            id_ for bundle, _, _ in self._bundles for p in bundle.positions for id_ in _ids(words.original(p))
        }

    def undo(self) -> None:
        """Put everything back."""
        for bundle, excluded, rewritten in self._bundles:
            self._ledger.put_back(bundle, excluded, rewritten)


def _ids(view: Message) -> Iterator[str | None]:
    """The ids of calls and results in a message; None for one without."""
    return (part.call_id for part in view.parts if part.kind is TOOL_CALL or part.kind is TOOL_RESULT)
