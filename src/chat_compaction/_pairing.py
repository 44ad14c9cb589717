"""Pairing: which result answers which call (rules G2 and G4).

By id and occurrence, at any distance; where a call or its result has no id, by order.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ._messages import (
    ANSWER,
    ASSISTANT,
    OPEN,
    ORPHAN,
    REFERENCE,
    REPEATED,
    SECOND,
    TOOL,
    TOOL_CALL,
    TOOL_RESULT,
    USER,
    Message,
    Part,
    Role,
    Tie,
)

_OpenAt = dict[int, dict[int, "Call"]]
"""Calls by position and part."""

_PAIRED = TOOL_CALL.bit | TOOL_RESULT.bit | REFERENCE.bit


@attrs.define(eq=False)
class Call:
    """A call, or a reference that may be one: where it stands, and what it is called.

    ``quiet``, ``said``, ``changes`` and ``speaker`` are those of the pairing when it was made.
    """

    position: int
    part: int
    call_id: str | None
    name: str
    reference: bool
    quiet: int
    said: int
    changes: int
    speaker: Role | None


@attrs.define(eq=False)
class Pairing:
    """The calls of one conversation that wait for a result, as its messages come one by one."""

    length: int = attrs.field(init=False, default=0)
    _open: dict[str, list[Call]] = attrs.field(init=False, factory=dict)
    """By call id, the calls that wait, oldest first."""
    _open_at: _OpenAt = attrs.field(init=False, factory=dict)
    """By position and part, the calls and references that wait."""
    _unnamed_at: _OpenAt = attrs.field(init=False, factory=dict)
    """Those of them that a result of any id may answer: calls without an id, and references."""
    _newest_call: dict[str, int] = attrs.field(init=False, factory=dict)
    _quiet: int = attrs.field(init=False, default=0)
    """How many messages hold no result."""
    _said: int = attrs.field(init=False, default=0)
    """How many of those are not the assistant's."""
    _changes: int = attrs.field(init=False, default=0)
    """How often the speaker changed."""
    _speaker: Role | None = attrs.field(init=False, default=None)
    """Who speaks in the newest message; a tool speaks for the user."""

    def take(self, message: Message) -> list[Tie]:
        """Tie the results of the next message to their calls; also what is odd about its calls and results.

        A result belongs to the newest earlier call of its id that is still open, be it in the same
        message; else to the newest call of its id, as a second result.
        """
        self._count(message)
        ties: list[Tie] = []
        if message.kinds & _PAIRED:
            for number, part in enumerate(message.parts):
                if part.kind is TOOL_RESULT:
                    ties.append(self._tie_result(number, part))
                elif part.kind is TOOL_CALL or part.kind is REFERENCE:
                    repeated = self._note_call(number, part)
                    if repeated is not None:
                        ties.append(repeated)
        self.length += 1
        return ties

    def waits(self, position: int) -> bool:
        """Whether a call of this message waits for its result."""
        return any(not call.reference for call in self._open_at.get(position, {}).values())

    def open(self) -> Iterator[Tie]:
        """The calls that have no result so far."""
        for calls in self._open_at.values():
            for call in calls.values():
                if not call.reference:
                    yield Tie(OPEN, call.call_id or call.name, call.position, None, call.part)

    def _count(self, message: Message) -> None:
        if not message.answers:
            self._quiet += 1
            self._said += message.role is not ASSISTANT
        speaker = USER if message.role is TOOL else message.role
        if speaker is not self._speaker:
            self._changes += 1
            self._speaker = speaker

    def _note_call(self, number: int, part: Part) -> Tie | None:
        """Wait for the result of a call; gives what is odd about its id."""
        call_id, reference = part.call_id, part.kind is REFERENCE
        now = self._quiet, self._said, self._changes, self._speaker
        call = Call(self.length, number, call_id, part.name, reference, *now)
        self._open_at.setdefault(self.length, {})[number] = call
        if reference or call_id is None:
            self._unnamed_at.setdefault(self.length, {})[number] = call
            return None
        self._open.setdefault(call_id, []).append(call)
        repeated = call_id in self._newest_call
        self._newest_call[call_id] = self.length
        return Tie(REPEATED, call_id, self.length, None, number) if repeated else None

    def _tie_result(self, number: int, part: Part) -> Tie:
        position, call_id, known_as = self.length, part.call_id, part.call_id or part.name
        if call_id is None:
            call = _next_in(self._open_at, part.name)
        elif call_id in self._open:
            call = self._newest_open(call_id)
        elif call_id in self._newest_call:
            return Tie(SECOND, known_as, self._newest_call[call_id], position, number)
        else:
            call = _next_in(self._unnamed_at, part.name)
        if call is None:
            return Tie(ORPHAN, known_as, None, position, number)
        self._close(call)
        return Tie(
            ANSWER,
            known_as,
            call.position,
            position,
            number,
            self._quiet - call.quiet,
            self._said - call.said,
            self._changes - call.changes,
            self._speaker is call.speaker,
            call.part,
        )

    def _newest_open(self, call_id: str) -> Call:
        """The newest call of an id that waits; of several in one message the first."""
        calls = self._open[call_id]
        newest = calls[-1]
        if len(calls) > 1 and calls[-2].position == newest.position:
            return next(call for call in self._open_at[newest.position].values() if call.call_id == call_id)
        return newest

    def _close(self, call: Call) -> None:
        _take(self._open_at, call)
        if call.reference or call.call_id is None:
            _take(self._unnamed_at, call)
            return
        calls = self._open[call.call_id]
        if calls[-1] is call:
            calls.pop()
        else:  # Its result came without an id.
            calls.remove(call)
        if not calls:
            del self._open[call.call_id]


def _next_in(open_at: _OpenAt, name: str) -> Call | None:
    """The first call that waits in the newest message where one does; one of the same name, if there is any."""
    for position in reversed(open_at):
        calls = open_at[position].values()
        return next((call for call in calls if name and call.name == name), next(iter(calls)))
    return None


def _take(open_at: _OpenAt, call: Call) -> None:
    del open_at[call.position][call.part]
    if not open_at[call.position]:
        del open_at[call.position]
