"""A token budget: whole turns leave oldest first, then single groups of the turns that had to stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import attrs

from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._predicates import Predicate, tokens, turns
from .._strategy import CompactionStrategy
from .._validators import non_negative, one_of

Evict = Literal["turns-then-groups", "turns", "groups"]
_EVICT = ("turns-then-groups", "turns", "groups")
_TURN, _GROUP = "token budget: turn", "token budget: group"


@attrs.frozen(kw_only=True, repr=False)
class TokenBudgetStrategy(CompactionStrategy):
    """Keep a history inside a token budget.

    More than ``max_tokens`` fires, or more than ``max_turns``; ``target_tokens`` (by default
    ``max_tokens``) is where it stops: a lower one leaves room before it fires again. It joins
    ``EdgeChatTokenBudgetReducer`` of Qavren.Edge and the token-budget pruning of agentstate-reducer.

    ``evict`` says what leaves. ``"turns"``: whole turns, oldest first; one that reaches into the floor
    is skipped. ``"groups"``: single groups, oldest first. ``"turns-then-groups"``: whole turns, but of
    one that need not leave whole only the groups that must, and if turns are not enough single groups
    of those that had to stay; groups leave oldest first, and never a user's message without its whole
    turn. One user message and two hundred tool calls is the common case of an agent: dropped whole, such
    a turn would take nearly the whole context with it.

    The trigger and the target follow from these. The newest ``min_preserved_messages`` messages join
    what every strategy keeps.

    >>> import chat_compaction as cc
    >>> cc.TokenBudgetStrategy(8_000, target_tokens=4_000, max_turns=40).trigger
    (tokens > 8000) | (turns > 40)
    """

    max_tokens: int = attrs.field(kw_only=False, validator=non_negative)
    target_tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(non_negative))
    max_turns: int | None = attrs.field(default=None, validator=attrs.validators.optional(non_negative))
    min_preserved_messages: int = attrs.field(default=2, validator=non_negative)
    # The argument is called ``evict``, as what it says; the base has a method of that name.
    evict_order: Evict = attrs.field(default="turns-then-groups", alias="evict", validator=one_of(_EVICT))
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)
    trigger: Predicate = attrs.field(init=False, eq=False)
    target: Predicate = attrs.field(init=False, eq=False)

    @target_tokens.validator
    def _check_target_tokens(self, _: object, value: int | None) -> None:
        if value is not None and value > self.max_tokens:
            raise ValueError(f"target_tokens must be at most max_tokens ({self.max_tokens}), got {value}")

    def __attrs_post_init__(self) -> None:
        # After the validators, so that a wrong argument is reported by its own name.
        trigger: Predicate = tokens > self.max_tokens
        target: Predicate = tokens <= (self.max_tokens if self.target_tokens is None else self.target_tokens)
        if self.max_turns is not None:
            trigger, target = trigger | (turns > self.max_turns), target & (turns <= self.max_turns)
        object.__setattr__(self, "trigger", trigger)
        object.__setattr__(self, "target", target)
        super().__attrs_post_init__()

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        if self.evict_order == "groups":
            self.evict(index, self.candidates(index), "token budget")
            return
        turns = self.candidate_turns(index)
        reached, asked = self._evict_until_reached(index, turns, _TURN)
        if self.evict_order == "turns":
            return
        if not reached:
            self.evict(index, _not_the_users(self.candidates(index)), _GROUP)
        elif asked:
            self._spare(index, turns[asked - 1])

    def _spare(self, index: MessageIndex, turn: Sequence[MessageGroup]) -> None:
        """Of the turn whose leaving reached the target, let only the groups leave that must."""
        index.include(*turn)
        # All but the newest: a user's message alone would be a question that nobody answered.
        most = _not_the_users(turn)[:-1]
        if not self.evict(index, most, _GROUP):
            index.include(*most)
            self.evict(index, [turn], _TURN)


def _not_the_users(groups: Iterable[MessageGroup]) -> list[MessageGroup]:
    return [group for group in groups if group.kind is not GroupKind.USER]
