"""Old tool results are replaced: by a placeholder, by a list of what was called, or with their whole groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from typing import Any, Literal

import attrs

from .._errors import StrategyError
from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._messages import ASSISTANT, TEXT, TOOL_CALL, TOOL_RESULT
from .._predicates import tokens
from .._strategy import CompactionStrategy
from .._summarizing._must_keep import Keep, Kept, as_must_keep
from .._text import shown
from .._validators import non_negative, one_of, refuse_async
from ._arguments import without_bulk
from ._collapse import collapsed, list_tool_uses
from ._results import (
    REMOVED,
    SHORTENED,
    Answered,
    Place,
    UsedTool,
    answered,
    as_names,
    chosen,
    gains,
    is_ours,
    named,
    names,
    rewrite_texts,
    some_names_or_none,
)

__all__ = ["ToolResultStrategy", "UsedTool", "list_tool_uses"]

Style = Literal["clear", "collapse", "drop"]
_STYLES = ("clear", "collapse", "drop")
Placeholder = str | Callable[[UsedTool], str]
Formatter = Callable[[Sequence[UsedTool]], str]

_TOOLS = (GroupKind.TOOL_CALL, GroupKind.ORPHAN)


def _a_placeholder(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if callable(value):
        refuse_async(attribute.name, value)
    elif not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a text, or a function from a UsedTool to one, got {value!r}")
    elif not value.strip():
        raise ValueError(f"{attribute.name} must say something, got {value!r}")


def _a_formatter(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        return
    if not callable(value):
        raise TypeError(f"{attribute.name} must be a function from a list of UsedTool to a text, got {value!r}")
    refuse_async(attribute.name, value)


def _a_bool_or_names(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool | tuple):
        raise TypeError(f"{attribute.name} must be True, False, or a list of names of tools, got {value!r}")
    if isinstance(value, tuple):
        names(_, attribute, value)


@attrs.frozen(kw_only=True, repr=False)
class ToolResultStrategy(CompactionStrategy):
    """Replace old tool results, oldest first, and keep what was said.

    ``style="clear"`` puts ``placeholder`` in the place of a result, under the same id; the call stays.
    ``"collapse"`` makes one message of the assistant of each tool group: what it said beside its calls, then the
    list that ``formatter`` writes. ``"drop"`` excludes whole tool groups.

    The newest ``keep_tool_uses`` tool uses stay, and so does a result that no later message of the assistant
    shows to have been read. ``only_tools`` and ``exclude_tools`` name the tools that are meant, and those that never
    are (``*`` stands for anything). Results of less than ``min_tokens`` stay. With ``clear_at_least`` nothing
    happens unless so many tokens are gained, and it goes on past the target until they are: a
    cut costs the provider's prompt cache, so it should be worth it. ``clear_tool_inputs`` also takes long
    values out of the arguments of calls: True, or the names of the tools. Nothing is replaced by what is not smaller.
    A result or an argument in which ``must_keep`` finds something stays; where whole groups are replaced or leave, a
    group with such a text in it does. It takes texts, patterns or functions, as in :class:`SummarizationStrategy`.

    These arguments are those of ``clear_tool_uses_20250919`` of Anthropic's API, for every provider.

    >>> import chat_compaction as cc
    >>> ToolResultStrategy(trigger=cc.tokens > 100_000, target=cc.tokens <= 60_000).keep_tool_uses
    3
    """

    style: Style = attrs.field(default="clear", validator=one_of(_STYLES))
    keep_tool_uses: int = attrs.field(default=3, validator=non_negative)
    only_tools: tuple[str, ...] | None = attrs.field(default=None, converter=as_names, validator=some_names_or_none)
    exclude_tools: tuple[str, ...] = attrs.field(default=(), converter=as_names, validator=names)
    min_tokens: int = attrs.field(default=0, validator=non_negative)
    clear_at_least: int = attrs.field(default=0, validator=non_negative)
    clear_tool_inputs: bool | tuple[str, ...] = attrs.field(
        default=False, converter=as_names, validator=_a_bool_or_names
    )
    placeholder: Placeholder = attrs.field(default=REMOVED, validator=_a_placeholder)
    formatter: Formatter | None = attrs.field(default=None, validator=_a_formatter)
    must_keep: tuple[Keep, ...] = attrs.field(default=(), converter=as_must_keep)
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)

    def __attrs_post_init__(self) -> None:
        for name, style in (("clear_tool_inputs", "clear"), ("placeholder", "clear"), ("formatter", "collapse")):
            value = getattr(self, name)
            if self.style != style and value != getattr(attrs.fields(type(self)), name).default:
                raise ValueError(f"{name} must not be given with style={self.style!r}, got {value!r}")
        super().__attrs_post_init__()

    @property
    def shortens(self) -> bool:  # type: ignore[override]
        """See :class:`CompactionStrategy`."""
        return self.style != "drop"

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        old = _Old.of(index, self.keep_tool_uses, self.must_keep)
        before = index.value(tokens) if self.clear_at_least else 0
        groups = self.candidates(index) if self.style == "drop" else self.rewritable(index)
        refused: list[MessageGroup] = []
        if self._replace(index, (group for group in groups if group.kind in _TOOLS), old, before, refused):
            return
        # What stands behind a group may have been in its way, and is another message now: the newest first.
        if self._replace(index, refused[::-1], old, before, []):
            return
        if not gains(index, before, self.clear_at_least):
            self.undo(index)

    def _replace(
        self, index: MessageIndex, groups: Iterable[MessageGroup], old: _Old, before: int, refused: list[MessageGroup]
    ) -> bool:
        """Replace group by group until it is enough, and say whether it is; those that a rule is against are noted."""
        replace = {"clear": self._clear, "collapse": self._collapse, "drop": self._drop}[self.style]
        for group in groups:
            if self._is_enough(index, before):
                return True
            if not replace(index, group, old):
                refused.append(group)
        return self._is_enough(index, before)

    def _is_enough(self, index: MessageIndex, before: int) -> bool:
        return gains(index, before, self.clear_at_least) and self.reached(index)

    # -- the three styles --------------------------------------------------------------------------

    def _clear(self, index: MessageIndex, group: MessageGroup, old: _Old) -> bool:
        uses = [use for use in answered(index, group) if old.holds(use.place) and self._means(use.name)]
        meant = [use for use in uses if self._is_worth_it(use) and not old.must_keep.holds(use.place)]
        texts = {use.place: self._text_for(use) for use in meant}
        if self.clear_tool_inputs is not False and not any(index.view(p).signed for p in index.positions_of(group)):
            texts |= self._inputs(index, uses, old.must_keep)
        rewrite_texts(index, group, texts, "tool result: cleared")
        return True

    def _text_for(self, use: Answered) -> str:
        if isinstance(self.placeholder, str):
            return self.placeholder
        text = _a_text("placeholder", self.placeholder(use.told())).strip()
        return f"{SHORTENED} {text}" if text else REMOVED

    def _inputs(self, index: MessageIndex, uses: Sequence[Answered], must_keep: Kept) -> dict[Place, str]:
        """What takes the place of the arguments of these uses."""
        texts: dict[Place, str] = {}
        for use in uses:
            meant = self.clear_tool_inputs is True or named(use.name, self.clear_tool_inputs or ())
            if meant and use.call is not None and index.count_texts([use.arguments])[0] >= self.min_tokens:
                cleared = without_bulk(index, use.arguments)
                if cleared is not None and not must_keep.holds(use.call):
                    texts[use.call] = cleared
        return texts

    def _collapse(self, index: MessageIndex, group: MessageGroup, old: _Old) -> bool:
        if group.kind is not GroupKind.TOOL_CALL or not self._is_old(index, group, old):
            return True
        messages = collapsed(index, index.positions_of(group), self._listed(index, group))
        if (
            messages is None
            or _size(index, messages) >= index.tokens_of(group)
            or not _is_worth(index, group, messages)
        ):
            return True
        return index.rewrite(group, messages, "tool result: collapsed")

    def _listed(self, index: MessageIndex, group: MessageGroup) -> str:
        formatter = list_tool_uses if self.formatter is None else self.formatter
        by_result = {use.place: use.told() for use in answered(index, group)}
        uses = [
            by_result[use.result] if use.result else UsedTool(use.name, use.arguments, "", 0)
            for use in index.tool_uses(group)
        ]
        return _a_text("formatter", formatter(uses))

    def _drop(self, index: MessageIndex, group: MessageGroup, old: _Old) -> bool:
        if group.kind is GroupKind.TOOL_CALL and self._is_old(index, group, old):
            index.exclude(group, "tool result: dropped")
        return True

    # -- what is meant -----------------------------------------------------------------------------

    def _means(self, name: str) -> bool:
        return chosen(name, self.only_tools, self.exclude_tools)

    def _is_worth_it(self, use: Answered) -> bool:
        return use.tokens >= self.min_tokens and not is_ours(use.part.text) and use.part.text != self.placeholder

    def _is_old(self, index: MessageIndex, group: MessageGroup, old: _Old) -> bool:
        """Whether a group is meant as a whole: each use of it, and some result is large enough."""
        uses = answered(index, group)
        return (
            all(self._means(use.name) for use in index.tool_uses(group))
            and all(old.holds(use.place) for use in uses)
            and any(use.tokens >= self.min_tokens for use in uses)
            and not old.must_keep.is_in(index.positions_of(group))
        )


@attrs.frozen
class _Old:
    """What of a history is old: read by the model, and not among the newest uses, which are kept."""

    read: int
    """The position of the newest message of the assistant: it shows that all before was read."""
    kept: frozenset[Place]
    must_keep: Kept
    """Where something stands that must be kept, old or not."""

    @classmethod
    def of(cls, index: MessageIndex, keep: int, must_keep: Sequence[Keep]) -> _Old:
        read = next((p for p in reversed(index.included_positions()) if index.view(p).role is ASSISTANT), -1)
        groups = (group for group in index.groups if group.excluded is None and group.kind in _TOOLS) if keep else ()
        places = (use.result for group in groups for use in index.tool_uses(group) if use.result is not None)
        return cls(read, frozenset(nlargest(keep, places)), Kept(index, must_keep))

    def holds(self, place: Place) -> bool:
        return place[0] <= self.read and place not in self.kept


def _size(index: MessageIndex, messages: dict[int, Any]) -> int:
    return sum(index.size_of(position, raw) for position, raw in messages.items() if raw is not None)


def _is_worth(index: MessageIndex, group: MessageGroup, messages: dict[int, Any]) -> bool:
    """Whether the list of what was called is smaller than the calls and results by themselves.

    What was said beside them stays either way: it decides nothing by being joined with the list.
    """
    bulk = TOOL_CALL.bit | TOOL_RESULT.bit
    views = {position: index.view(position) for position in index.positions_of(group)}
    said = {
        p: sum(index.count_texts([part.text for part in view.parts if part.kind is TEXT])) for p, view in views.items()
    }
    before = sum(index.size_of(p, index.raw(p)) - said[p] for p, view in views.items() if view.kinds & bulk)
    return _size(index, messages) - sum(said.values()) < before


def _a_text(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise StrategyError(f"{name} must return a text, got {shown(text)}")
    return text
