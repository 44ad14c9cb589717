"""A picture of what a strategy makes of a history: before and after, one line a message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from .._index import MessageIndex
from .._messages import COMPACTION, REASONING, TEXT, TOOL_CALL, TOOL_RESULT, Message, Part
from .._predicates import tokens
from .._strategy import CompactionStrategy
from .._text import shown, text_table

WIDTH = 40
"""How many characters of a message are shown."""
_LEAD = 8
"""How many of them stand ahead of the first change, where the beginning is the same."""


def picture(strategy: CompactionStrategy, history: Sequence[Any], **index_settings: Any) -> str:
    """What a strategy makes of a history, as plain text for docs, pull requests and tests.

    One line a message: its position, its role or kind, the beginning of its text, and what became of it: ``kept``,
    ``out`` with the reason, or its new text behind an arrow. The last line is the report's. ``index_settings``
    are those of :meth:`MessageIndex.from_messages`. Where everything is given, the counter too, the same call
    draws the same picture.

    The history is not changed. A strategy with async effects can't be drawn: see its ``plan``.

    >>> import chat_compaction as cc
    >>> history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}] * 2
    >>> strategy = cc.TruncationStrategy(trigger=cc.messages > 2, min_preserved_groups=1)
    >>> print(cc.testing.picture(strategy, history, counter=cc.testing.characters_counter()))
       before            after
    0  user       Hello  out: truncation
    1  assistant  Hi     out: truncation
    2  user       Hello  kept
    3  assistant  Hi     kept
    TruncationStrategy: 4 -> 2 messages, 14 -> 7 tokens, stopped by: target, fits
    """
    if not isinstance(strategy, CompactionStrategy):
        raise TypeError(f"strategy must be a CompactionStrategy, got {shown(strategy)}")
    index = MessageIndex.from_messages(history, **index_settings)
    before = [index.view(position) for position in range(len(index))]
    index.value(tokens)  # So that the report knows what there was.
    report = strategy.compact(index, hooks=())
    reasons = _reasons(index)
    sent = dict(zip(index.included_positions(), index.included_messages(), strict=True))
    rows = []
    for position, view in enumerate(before):
        text, became = _text(view), f"out: {reasons.get(position, '')}"
        if position in sent:
            raw, now = sent[position], index.format.read(sent[position], position)
            became = "kept" if raw is history[position] else f"-> {_changed(text, _text(now))}"
        rows.append((str(position), _kind(view), _short(text), became))
    return f"{text_table(('', 'before', '', 'after'), rows)}\n{report}"


def _reasons(index: MessageIndex) -> dict[int, str]:
    """Why what stood at a position is not there any more."""
    return {place: group.excluded or group.replaced or "" for group in index.groups for place in group.positions}


def _kind(view: Message) -> str:
    """What a message is, in a word."""
    if view.summary:
        return "summary"
    if view.kinds & COMPACTION.bit:
        return "compaction"
    if view.answers:
        return "result"
    return "call" if view.calls else "reasoning" if view.reasoning_only else view.role.value


def _text(view: Message) -> str:
    """What a message says, in one line."""
    return " ".join(filter(None, (" ".join(_part(part).split()) for part in view.parts)))


def _part(part: Part) -> str:
    if part.kind is TOOL_CALL:
        return f"{part.name}({_arguments(part.text)})"
    if part.kind is REASONING:
        return f"(thinking) {part.text}"
    if part.kind is COMPACTION:
        return part.text or "(encrypted)"
    media = " ".join(f"[{media.kind}]" for media in part.media)
    plain = part.kind in (TEXT, TOOL_RESULT) or media
    return f"{part.text} {media}" if plain else f"[{part.kind.value}] {part.text}"


def _arguments(text: str) -> str:
    """Arguments as they stand in Python, where they are an object."""
    try:
        values = json.loads(text)
    except ValueError:
        return text
    if not isinstance(values, dict):
        return text
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _changed(old: str, new: str) -> str:
    """The new text, from where it differs."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    return _short(new if same <= WIDTH // 2 or len(new) <= WIDTH else f"...{new[same - _LEAD :]}")


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
