"""The rules of a format, sorted by what they judge, so that nobody asks a rule that has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ._messages import Message, Seam, Tie
from ._problems import Problem
from .formats import Format
from .formats.rules import Rule

_Checks = tuple[tuple[str, Callable[[Any], str | None]], ...]
"""The names of some rules, and what they say of one thing."""


@attrs.frozen
class RuleBook:
    """What the provider asks of messages, of neighbours, of calls and results, and of the last message."""

    messages: _Checks
    seams: _Checks
    ties: _Checks
    lasts: _Checks

    @classmethod
    def of(cls, format: Format) -> RuleBook:
        """The rules that a format names."""
        return cls(*(_checks(format, name) for name in ("check_message", "check_seam", "check_tie", "check_last")))

    def broken_by(self, before: Message | None, after: Message, *, at_head: bool) -> str | None:
        """The name of the first rule that forbids one message right behind another."""
        seam = Seam(before, after, at_head)
        for name, check in self.seams:
            if check(seam) is not None:
                return name
        return None

    def broken(self, seam: Seam) -> frozenset[str]:
        """The names of all rules that forbid one message right behind another."""
        return frozenset([name for name, check in self.seams if check(seam) is not None])

    def of_message(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message by itself."""
        return _problems(self.messages, message, position)

    def of_seam(self, position: int, seam: Seam) -> list[Problem]:
        """What is wrong with where a message stands."""
        return _problems(self.seams, seam, position)

    def of_tie(self, tie: Tie) -> list[Problem]:
        """What is wrong with how a result and its call belong together."""
        return _problems(self.ties, tie, tie.position)

    def of_last(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message being the last."""
        return _problems(self.lasts, message, position)


def _checks(format: Format, name: str) -> _Checks:
    """The checks of this name that say something."""
    silent = getattr(Rule, name)
    return tuple((rule.name, getattr(rule, name)) for rule in format.rules if getattr(type(rule), name) is not silent)


def _problems(checks: _Checks, thing: object, position: int) -> list[Problem]:
    return [Problem(position, name, text) for name, check in checks if (text := check(thing)) is not None]
