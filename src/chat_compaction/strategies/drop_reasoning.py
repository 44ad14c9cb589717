"""Old reasoning leaves, a turn at a time: what the model thought, not what it said and did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs

from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._messages import OPAQUE, REASONING, Message
from .._outgoing import NOTHING_ELSE
from .._strategy import CompactionStrategy
from .._validators import non_negative, true_false_or_none
from ..formats import Format

_DEMANDING = frozenset({"openai_chat", "langchain", "anthropic", "pi_session"})
"""Formats that DeepSeek's models are spoken to in, which want reasoning back that led to a call."""

_TIED = frozenset({"pi_session"})
"""Formats whose unsigned reasoning may be an item of the Responses API, which what follows it asks for by its id."""


@attrs.frozen(kw_only=True, repr=False)
class DropReasoningStrategy(CompactionStrategy):
    """Let the reasoning of old turns leave, oldest first, until the target holds; what was said and done stays.

    A turn is what follows a user's message. It loses all of its reasoning or none. The newest
    ``keep_turns`` turns that hold reasoning keep it, and so does the turn under way, always: in a
    tool loop providers want it back. It is what Anthropic's ``clear_thinking_20251015`` does, for every
    format, with a trigger and a target.

    Of signed reasoning only the oldest leaves, never some from the middle: where a turn has to keep its own,
    so do all behind it. ``keep_tool_turns``: whether reasoning without a signature stays in turns that
    call tools. None keeps it in the formats that DeepSeek's models are spoken to in, which refuse a list
    without it; say False if yours is another model.

    In OpenAI's Responses nothing leaves: there an item asks for the reasoning that it came with. A message that held
    nothing else says so instead. The floor is empty by default.

    >>> import chat_compaction as cc
    >>> DropReasoningStrategy(trigger=cc.tokens > 100_000, keep_turns=2).keep_turns
    2
    """

    keep_turns: int = attrs.field(default=1, validator=non_negative)
    keep_tool_turns: bool | None = attrs.field(default=None, validator=true_false_or_none)
    min_preserved_groups: int = attrs.field(default=0, validator=non_negative)

    shortens: ClassVar[bool] = True

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        if index.format.runs:
            return
        free = {group.positions[0] for group in self.rewritable(index)}
        stuck = False  # Whether some signed reasoning had to stay, and so all that is behind it.
        for turn in self._old_turns(index):
            if self.reached(index):
                return
            may_leave = turn.groups <= free and not (stuck and turn.signed) and not self._is_demanded(index, turn)
            if not (may_leave and turn.drop_from(index)):
                stuck = stuck or turn.signed

    def _old_turns(self, index: MessageIndex) -> list[_Turn]:
        """The turns that hold reasoning and need not keep it, oldest first."""
        turns: dict[int, _Turn] = {}
        shown = set(index.included_positions())
        for group in index.groups:
            here = [position for position in group.positions if position in shown]
            if here and group.kind not in (GroupKind.SYSTEM, GroupKind.SUMMARY):
                turns.setdefault(group.turn, _Turn()).add(index, group, here)
        thinking = [number for number in sorted(turns) if turns[number].thoughts]
        kept = {*thinking[len(thinking) - self.keep_turns :], max(turns, default=0)}
        return [turns[number] for number in thinking if number not in kept]

    def _is_demanded(self, index: MessageIndex, turn: _Turn) -> bool:
        """Whether a provider may want the reasoning of a turn that no signature marks as Anthropic's."""
        name = index.format.name
        demanding = name in _DEMANDING if self.keep_tool_turns is None else self.keep_tool_turns
        return turn.unsigned and ((turn.calls and demanding) or name in _TIED)


@attrs.define(eq=False)
class _Turn:
    """A turn, and the messages in it that hold reasoning: each with its group, and our view of it."""

    thoughts: list[tuple[MessageGroup, int, Message]] = attrs.field(factory=list)
    calls: bool = False

    def add(self, index: MessageIndex, group: MessageGroup, positions: Iterable[int]) -> None:
        """Take a group of the turn, and where its messages stand."""
        self.calls = self.calls or group.kind is GroupKind.TOOL_CALL
        views = ((position, index.view(position)) for position in positions)
        self.thoughts += [(group, position, view) for position, view in views if view.kinds & REASONING.bit]

    @property
    def groups(self) -> set[int]:
        """The first positions of the groups that hold reasoning."""
        return {group.positions[0] for group, _, _ in self.thoughts}

    @property
    def signed(self) -> bool:
        """Whether some of it has a signature."""
        return any(view.signed for _, _, view in self.thoughts)

    @property
    def unsigned(self) -> bool:
        """Whether some of it has none."""
        return any(p.kind is REASONING and not p.signed for _, _, view in self.thoughts for p in view.parts)

    def drop_from(self, index: MessageIndex) -> bool:
        """Take all of it out, or leave everything as it is."""
        bare: dict[MessageGroup, dict[int, Any]] = {}
        for group, position, view in self.thoughts:
            raw = _bare(index.format, index.raw(position), view)
            if raw is None:
                return False
            bare.setdefault(group, {})[position] = raw
        done: dict[MessageGroup, dict[int, Any]] = {}
        for group, messages in bare.items():
            before = {position: index.raw(position) for position in messages}
            if not index.rewrite(group, messages, "reasoning"):
                for other, were in done.items():
                    _undo(index, other, were)
                return False
            done[group] = before
        return True


def _undo(index: MessageIndex, group: MessageGroup, messages: dict[int, Any]) -> None:
    if group.replaced is None:
        index.restore(group)
    else:  # Something else stands there as well, which shall stay.
        index.rewrite(group, messages, group.replaced)


def _bare(format: Format, raw: Any, view: Message) -> Any | None:
    """A message without its reasoning; where nothing else would be left, one that says so."""
    numbers = [number for number, part in enumerate(view.parts) if part.kind is REASONING]
    bare = format.without(raw, numbers)
    left = [part for part in view.without_reasoning().parts if part.text.strip() or part.media or part.call_id]
    if bare is None or not (left or view.kinds & ~REASONING.bit & OPAQUE.bit):
        return format.saying(raw, NOTHING_ELSE.parts[0].text)
    return bare
