"""The rules of a format, sorted by what they judge, so that nobody asks a rule that has nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ._messages import Message, Role, Seam, Tie
from ._problems import Problem
from .formats import Format
from .formats.rules import Rule
from .formats.rules._rule import may_object

_Checks = tuple[tuple[str, Callable[[Any], str | None]], ...]
"""The names of some rules, and what they say of one thing."""

_NOTHING: frozenset[str] = frozenset()


@attrs.frozen
class RuleBook:
    """What the provider asks of messages, of neighbours, of calls and results, and of the last message."""

    messages: _Checks
    ties: _Checks
    lasts: _Checks
    seams: tuple[Rule, ...]
    _between: dict[tuple[Role | None, Role, bool], _Checks] = attrs.field(init=False, factory=dict)
    """What may be said of a seam, by the roles that meet there, and whether it is at the head."""

    @classmethod
    def of(cls, format: Format) -> RuleBook:
        """The rules that a format names."""
        messages, ties, lasts = (_checks(format, name) for name in ("check_message", "check_tie", "check_last"))
        return cls(messages, ties, lasts, tuple(_with_own(format, "check_seam")))

    def _seam_checks(self, before: Message | None, after: Message, at_head: bool) -> _Checks:
        key = None if before is None else before.role, after.role, at_head
        checks = self._between.get(key)
        if checks is None:
            checks = tuple((rule.name, rule.check_seam) for rule in self.seams if may_object(rule, *key))
            self._between[key] = checks
        return checks

    def broken_by(self, before: Message | None, after: Message, at_head: bool) -> str | None:
        """The name of the first rule that forbids one message right behind another."""
        checks = self._seam_checks(before, after, at_head)
        if checks:
            seam = Seam(before, after, at_head)
            for name, check in checks:
                if check(seam) is not None:
                    return name
        return None

    def broken(self, before: Message | None, after: Message, at_head: bool) -> frozenset[str]:
        """The names of all rules that forbid one message right behind another."""
        checks = self._seam_checks(before, after, at_head)
        if not checks:
            return _NOTHING
        seam = Seam(before, after, at_head)
        return frozenset([name for name, check in checks if check(seam) is not None])

    def of_message(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message by itself."""
        return [Problem(position, name, text) for name, check in self.messages if (text := check(message)) is not None]

    def of_seam(self, position: int, before: Message | None, after: Message, at_head: bool) -> list[Problem]:
        """What is wrong with where a message stands."""
        checks = self._seam_checks(before, after, at_head)
        if not checks:
            return []
        seam = Seam(before, after, at_head)
        return [Problem(position, name, text) for name, check in checks if (text := check(seam)) is not None]

    def of_tie(self, tie: Tie) -> list[Problem]:
        """What is wrong with how a result and its call belong together."""
        return [Problem(tie.position, name, text) for name, check in self.ties if (text := check(tie)) is not None]

    def of_last(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message being the last."""
        return [Problem(position, name, text) for name, check in self.lasts if (text := check(message)) is not None]


def _with_own(format: Format, check: str) -> Iterator[Rule]:
    """The rules that have something to say in this check."""
    silent = getattr(Rule, check)
    return (rule for rule in format.rules if getattr(type(rule), check) is not silent)


def _checks(format: Format, check: str) -> _Checks:
    return tuple((rule.name, getattr(rule, check)) for rule in _with_own(format, check))
