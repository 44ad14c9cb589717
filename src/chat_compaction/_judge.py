"""What is wrong in a history, by the rules of its format, as its messages come one by one (rule K7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ._messages import ASSISTANT, ORPHAN, REFERENCE, SYSTEM, Message, Tie
from ._problems import Problem
from ._rulebook import RuleBook


@attrs.define(eq=False)
class Judge:
    """The problems of one list; ``claims_complete`` is what the format says of its lists."""

    book: RuleBook
    claims_complete: bool | None
    _found: list[Problem] = attrs.field(init=False, factory=list)
    """What is wrong with where messages stand, and with calls and results."""
    _orphans: list[Tie] = attrs.field(init=False, factory=list)
    _by_message: dict[int, list[Problem]] = attrs.field(init=False, factory=dict)
    """By position, what is wrong with a message by itself."""
    _spoken: bool = attrs.field(init=False, default=False)
    """Whether there is a message that is no system message."""
    _seems_complete: bool = attrs.field(init=False, default=True)
    _references: set[int] = attrs.field(init=False, factory=set)
    """The positions of what the provider stores."""

    @property
    def complete(self) -> bool:
        """Whether the list holds every call that its results answer; else some may be stored by the provider."""
        return self._seems_complete if self.claims_complete is None else self.claims_complete

    @property
    def server_has_calls(self) -> bool:
        """Whether the calls of some results are not in the list, and may be with the provider."""
        return bool(self._orphans) and not self.complete

    def refers_in(self, positions: Iterable[int]) -> bool:
        """Whether one of these messages is stored by the provider; without it the list would look complete."""
        return not self._references.isdisjoint(positions)

    def take(self, position: int, message: Message, ties: Iterable[Tie]) -> None:
        """Judge the next message, and how its calls and results belong to others."""
        for tie in ties:
            if tie.kind is ORPHAN:
                self._orphans.append(tie)
            else:
                self._found += self.book.of_tie(tie)
        if self.book.messages:
            self.look_at(position, message)
        if self.claims_complete is None:
            if message.kinds & REFERENCE.bit:
                self._references.add(position)
            if self._references or (not self._spoken and message.answers):
                self._seems_complete = False
            self._spoken = self._spoken or message.role is not SYSTEM

    def look_at(self, position: int, message: Message) -> None:
        """Judge a message by itself, also when another view took its place."""
        found = self.book.of_message(position, message)
        if found:
            self._by_message[position] = found
        elif self._by_message:
            self._by_message.pop(position, None)

    def note(self, problems: Iterable[Problem]) -> None:
        """Note what somebody else found."""
        self._found += problems

    def problems(self, messages: Sequence[Message], unanswered: Iterable[Tie]) -> tuple[Problem, ...]:
        """All that is wrong, by position; ``unanswered`` are the calls that wait for a result no more."""
        ties = [*(self._orphans if self.complete else ()), *unanswered]
        found = [*self._found, *(problem for tie in ties for problem in self.book.of_tie(tie))]
        newest = len(messages) - 1
        for position, problems in self._by_message.items():
            # The assistant's newest message may be just being written.
            if position < newest or messages[position].role is not ASSISTANT:
                found += problems
        if messages:
            found += self.book.of_last(newest, messages[-1])
        return tuple(sorted(found, key=lambda problem: problem.position))
