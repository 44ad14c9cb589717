"""The rules of a format, sorted by what they judge, so that nobody asks a rule that has nothing to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from ._messages import Message, Seam, Tie
from ._problems import Problem
from .formats import Format
from .formats.rules import Rule


def _that_override(rules: Iterable[Rule], check: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if getattr(type(rule), check) is not getattr(Rule, check))


@attrs.frozen
class RuleBook:
    """What the provider asks of messages, of neighbours, of calls and results, and of the last message."""

    messages: tuple[Rule, ...]
    seams: tuple[Rule, ...]
    ties: tuple[Rule, ...]
    lasts: tuple[Rule, ...]

    @classmethod
    def of(cls, format: Format) -> RuleBook:
        """The rules that a format names."""
        checks = ("check_message", "check_seam", "check_tie", "check_last")
        return cls(*(_that_override(format.rules, check) for check in checks))

    def broken_by(self, before: Message | None, after: Message, *, at_head: bool) -> str | None:
        """The name of the first rule that forbids one message right behind another."""
        seam = Seam(before, after, at_head)
        return next((rule.name for rule in self.seams if rule.check_seam(seam) is not None), None)

    def of_message(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message by itself."""
        return list(_problems((position, rule, rule.check_message(message)) for rule in self.messages))

    def of_seam(self, position: int, seam: Seam) -> list[Problem]:
        """What is wrong with where a message stands."""
        return list(_problems((position, rule, rule.check_seam(seam)) for rule in self.seams))

    def of_tie(self, tie: Tie) -> list[Problem]:
        """What is wrong with how a result and its call belong together."""
        return list(_problems((tie.position, rule, rule.check_tie(tie)) for rule in self.ties))

    def of_last(self, position: int, message: Message) -> list[Problem]:
        """What is wrong with a message being the last."""
        return list(_problems((position, rule, rule.check_last(message)) for rule in self.lasts))


def _problems(found: Iterable[tuple[int, Rule, str | None]]) -> Iterator[Problem]:
    return (Problem(position, rule.name, text) for position, rule, text in found if text is not None)
