"""The same tool result again: older copies become a reference to the newest."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import attrs

from .._errors import StrategyError
from .._groups import MessageGroup
from .._index import MessageIndex
from .._predicates import tokens
from .._strategy import CompactionStrategy
from .._text import shown
from .._validators import non_negative, refuse_async
from ._arguments import parsed
from ._results import (
    Answered,
    Place,
    answered,
    as_names,
    chosen,
    gains,
    is_ours,
    names,
    reference,
    rewrite_texts,
    some_names_or_none,
)

Key = Callable[[str, Any, str], Hashable | None]


def _a_key(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        return
    if not callable(value):
        raise TypeError(f"{attribute.name} must be a function of a tool's name, arguments and result, got {value!r}")
    refuse_async(attribute.name, value)


@attrs.frozen(kw_only=True, repr=False)
class DeduplicateStrategy(CompactionStrategy):
    """Let a short reference stand in the place of a tool result that a newer one repeats, oldest first.

    The same is the same text from the same tool; results with media are never the same. ``key`` says what else a newer
    result supersedes: a function of the tool's name, its arguments (parsed, or the text where they are no JSON) and
    the result; of results with the same key only the newest stays, whatever their texts are. None leaves a result to
    the usual rule. ``only_tools``, ``exclude_tools``, ``min_tokens`` and ``clear_at_least`` are as in
    :class:`ToolResultStrategy`.

    >>> import chat_compaction as cc
    >>> def key(tool, arguments, result):
    ...     return ("file", arguments["path"]) if tool == "read_file" else None
    >>> DeduplicateStrategy(trigger=cc.tokens > 50_000, key=key).min_tokens
    0
    """

    shortens: ClassVar[bool] = True

    key: Key | None = attrs.field(default=None, validator=_a_key)
    only_tools: tuple[str, ...] | None = attrs.field(default=None, converter=as_names, validator=some_names_or_none)
    exclude_tools: tuple[str, ...] = attrs.field(default=(), converter=as_names, validator=names)
    min_tokens: int = attrs.field(default=0, validator=non_negative)
    clear_at_least: int = attrs.field(default=0, validator=non_negative)
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        repeated = self._repeated(index)
        before = index.value(tokens) if self.clear_at_least else 0
        for group in self.rewritable(index):
            texts = repeated.get(group.positions[0])
            if texts is None:
                continue
            if gains(index, before, self.clear_at_least) and self.reached(index):
                return
            rewrite_texts(index, group, texts, "duplicate")
        if not gains(index, before, self.clear_at_least):
            self.undo(index)

    def _repeated(self, index: MessageIndex) -> dict[int, dict[Place, str]]:
        """By the first position of a group, what takes the place of its results that a newer one repeats."""
        uses = [(use, group) for group in index.groups if group.excluded is None for use in self._uses(index, group)]
        uses.sort(key=lambda pair: pair[0].place)
        newest: dict[Hashable, Answered] = {}
        texts: dict[int, dict[Place, str]] = {}
        for use, group in reversed(uses):
            key = self._key_of(use)
            if key is None:
                continue
            last = newest.setdefault(key, use)
            if last is not use and use.tokens >= self.min_tokens:
                same = (use.name, use.part.text) == (last.name, last.part.text) and not use.part.media
                texts.setdefault(group.positions[0], {})[use.place] = reference(last.part.call_id, same=same)
        return texts

    def _uses(self, index: MessageIndex, group: MessageGroup) -> list[Answered]:
        return [
            use
            for use in answered(index, group)
            if chosen(use.name, self.only_tools, self.exclude_tools) and not is_ours(use.part.text)
        ]

    def _key_of(self, use: Answered) -> Hashable | None:
        """What two results have in common of which only the newer is needed; None for nothing."""
        key = None if self.key is None else self.key(use.name, parsed(use.arguments), use.part.text)
        try:
            hash(key)
        except TypeError:
            raise StrategyError(f"key must return something hashable, or None, got {shown(key)}") from None
        if key is not None:
            return ("key", key)
        return None if use.part.media else ("text", use.name, use.part.text)
