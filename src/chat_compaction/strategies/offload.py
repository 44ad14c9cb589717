"""Large old results go to storage; a short preview and a handle stay in their place."""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from heapq import nlargest
from itertools import chain
from typing import Any, ClassVar

import attrs

from .._effects import Core, Effect
from .._errors import StrategyError
from .._groups import MessageGroup
from .._index import MessageIndex
from .._messages import TEXT, USER
from .._predicates import tokens
from .._strategy import CompactionStrategy
from .._text import shown, some
from .._validators import a_bool, non_negative
from ..offload import OffloadStore, TextStore, handle_of
from ._at_once import looks_at_numbers, make_by_group, reached_with
from ._results import Place, as_names, chosen, gains, names, some_names_or_none

_REASON = "offload"
_OURS = re.compile(r"\[offloaded: [^\n]* kept as offload-[0-9a-f]{64}\]\n.*\n\[end of preview[^\n]*\]", re.DOTALL)
_WIDTH = 200
"""How many characters of a line a preview shows."""
_FAILURES = 3
"""After so many failures in a row no more is tried in this pass: a store that does not answer costs a time-out each."""


def _a_store(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not callable(getattr(value, "put", None)):
        raise TypeError(f"{attribute.alias} must be an OffloadStore, or have its put(text), got {shown(value)}")


def _two_numbers(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    numbers = value if isinstance(value, tuple) and len(value) == 2 else ("",)
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        what = "two ints of 0 or more, of lines at the top and at the end"
        raise ValueError(f"{attribute.alias} must be {what}, got {value!r}")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _a_name_or_none(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{attribute.alias} must be the name of a tool, or None, got {value!r}")
    if value is not None and not re.fullmatch(r"[\w.-]+", value):
        raise ValueError(f"{attribute.alias} must be the name of a tool, or None, got {value!r}")


@attrs.frozen
class _Large:
    """A text that may be offloaded, and where it stands."""

    group: MessageGroup
    place: Place
    text: str


@attrs.frozen(kw_only=True, repr=False)
class OffloadStrategy(CompactionStrategy):
    """Move large old tool results to storage, oldest first, and leave a preview and a handle in their place.

    ``store`` is a :class:`~chat_compaction.offload.OffloadStore`, or anything with its ``put``, which may be async
    where the strategy is run by ``acompact``. A result leaves its message only when the store has it. One that can't
    be written stays, and the report tells of it in ``failures``; after three in a row no more is tried in this pass.

    Results of ``min_tokens`` and more leave, but for those of the newest ``keep_tool_uses`` tool uses. ``only_tools``
    and ``exclude_tools`` name the tools that are meant, and those that never are (``*`` stands for anything).
    ``user_texts``: large texts of the user, such as a pasted file, leave too; the newest user message does not.
    ``preview`` is how many lines stay at the top and at the end, 200 characters of each at the most. ``recall_tool``
    is the name of the tool with which the agent reads the rest (:func:`~chat_compaction.offload.recall_tool`), None
    where it has none. Nothing is replaced by what is not smaller; results with images stay. ``clear_at_least`` is as in
    :class:`ToolResultStrategy`: below so many tokens nothing happens at all, and it goes on past the target until as
    many are gained.

    >>> import chat_compaction as cc
    >>> store = cc.offload.OffloadStore("memory://agent-7")
    >>> OffloadStrategy(store, trigger=cc.tokens > 50_000, target=cc.tokens <= 30_000).min_tokens
    1000
    """

    shortens: ClassVar[bool] = True

    store: OffloadStore | TextStore = attrs.field(kw_only=False, validator=_a_store)
    min_tokens: int = attrs.field(default=1_000, validator=non_negative)
    keep_tool_uses: int = attrs.field(default=3, validator=non_negative)
    only_tools: tuple[str, ...] | None = attrs.field(default=None, converter=as_names, validator=some_names_or_none)
    exclude_tools: tuple[str, ...] = attrs.field(default=(), converter=as_names, validator=names)
    clear_at_least: int = attrs.field(default=0, validator=non_negative)
    user_texts: bool = attrs.field(default=False, validator=a_bool)
    preview: tuple[int, int] = attrs.field(default=(5, 3), converter=_tuple, validator=_two_numbers)
    recall_tool: str | None = attrs.field(default="recall_offloaded", validator=_a_name_or_none)
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        left, failures, least = deque(self._large(index)), 0, self.clear_at_least
        if least and self._most(index, left) < least:
            return  # Before anything is written for nothing.
        before = index.value(tokens) if least else 0
        while left and failures < _FAILURES and not (gains(index, before, least) and self.reached(index)):
            missing = least - (before - index.value(tokens)) if least else 0
            failures = yield from self._offload(index, left, failures, missing)
        if not gains(index, before, least):
            self.undo(index)  # The store failed.

    def _offload(self, index: MessageIndex, left: deque[_Large], failures: int, missing: int) -> Core[int]:
        """Offload texts, oldest first, until the target should hold and what is ``missing`` is gained.

        Gives the failures in a row by then; ``left`` is left with those that were not needed for it.
        """
        at_once, gain = looks_at_numbers(self), 0
        stored: list[tuple[MessageGroup, tuple[Place, str]]] = []

        def enough() -> bool:
            return bool(stored) and (not at_once or (gain >= missing and reached_with(self, index, gain)))

        while left and failures < _FAILURES and not enough():
            large = left.popleft()
            handle, shorter = handle_of(large.text), self._placeholder(large.text)
            gained = self._gained(index, large, shorter)
            if gained <= 0:
                continue
            try:
                yield from self._put(large.text, handle)
            except Exception as error:
                failures += 1
                index.report_failure(f"offload of messages[{large.place[0]}]", error)
                continue
            stored.append((large.group, (large.place, shorter)))
            failures, gain = 0, gain + gained
        make_by_group(stored, lambda group, texts: _rewrite(index, group, texts))
        return failures

    def _put(self, text: str, handle: str) -> Core[None]:
        blocking = not inspect.iscoroutinefunction(self.store.put)
        answer = yield Effect(self.store.put, (text,), planned=handle, blocking=blocking)
        if answer != handle:
            raise StrategyError(f"store.put must return handle_of(text), got {shown(answer)}")

    def _large(self, index: MessageIndex) -> list[_Large]:
        """What may be offloaded, oldest first."""
        kept = self._newest_uses(index)
        found = [
            large
            for group in self.rewritable(index)
            for large in chain(self._results(index, group), self._said(index, group))
            if large.place not in kept and not self._is_ours(large.text)
        ]
        sizes = index.count_texts([large.text for large in found])
        return [large for large, size in zip(found, sizes, strict=True) if size >= self.min_tokens]

    def _newest_uses(self, index: MessageIndex) -> set[Place]:
        """Where the results of the newest tool uses stand, large or not."""
        groups = [group for group in index.groups if not group.excluded]
        places = [use.result for group in groups for use in index.tool_uses(group) if use.result is not None]
        return set(nlargest(self.keep_tool_uses, places))

    def _results(self, index: MessageIndex, group: MessageGroup) -> Iterator[_Large]:
        for use in index.tool_uses(group):
            if use.result is not None and chosen(use.name, self.only_tools, self.exclude_tools):
                yield from _large(index, group, use.result)

    def _said(self, index: MessageIndex, group: MessageGroup) -> Iterator[_Large]:
        for position in group.positions if self.user_texts else ():
            view = index.view(position)
            for number, part in enumerate(view.parts if view.role is USER else ()):
                if part.kind is TEXT:
                    yield from _large(index, group, (position, number))

    def _gained(self, index: MessageIndex, large: _Large, shorter: str) -> int:
        """The tokens that a shorter text in the place of a large one gains; none where it can't stand there."""
        position, number = large.place
        raw = index.raw(position)
        written = None if index.view(position).signed else index.format.with_texts(raw, {number: shorter})
        return 0 if written is None else index.size_of(position, raw) - index.size_of(position, written)

    def _most(self, index: MessageIndex, texts: Iterable[_Large]) -> int:
        """The tokens that are gained where all of these texts are offloaded."""
        gained = (self._gained(index, large, self._placeholder(large.text)) for large in texts)
        return sum(max(0, number) for number in gained)

    def _placeholder(self, text: str) -> str:
        lines = text.removesuffix("\n").split("\n")
        head, tail = self.preview
        between = len(lines) - head - tail
        what = f"{some(len(text), 'character')} in {some(len(lines), 'line')}"
        if between > 0:
            lines[head : len(lines) - tail] = [f"[... {some(between, 'line')} ...]"]
        how = f"; {self.recall_tool} with the handle reads the rest" if self.recall_tool else ""
        return "\n".join(
            [f"[offloaded: {what}, kept as {handle_of(text)}]", *map(_short, lines), f"[end of preview{how}]"]
        )

    def _is_ours(self, text: str) -> bool:
        """Whether this is a preview already (rule K10).

        Anybody can write one; so only what is as short as a preview passes for it.
        """
        longest = (sum(self.preview) + 3) * (_WIDTH + 20)
        return len(text) <= max(longest, 10_000) and _OURS.fullmatch(text) is not None


def _large(index: MessageIndex, group: MessageGroup, place: Place) -> Iterator[_Large]:
    """A text that stands somewhere, but for one with media, which can't be kept as text."""
    part = index.view(place[0]).parts[place[1]]
    if part.text and not part.media:
        yield _Large(group, place, part.text)


def _rewrite(index: MessageIndex, group: MessageGroup, texts: list[tuple[Place, str]]) -> bool:
    by_position: dict[int, dict[int, str]] = {}
    for (position, number), text in texts:
        by_position.setdefault(position, {})[number] = text
    messages = {place: index.format.with_texts(index.raw(place), parts) for place, parts in by_position.items()}
    return all(raw is not None for raw in messages.values()) and index.rewrite(group, messages, _REASON)


def _short(line: str) -> str:
    """A line, or its beginning and its end."""
    if len(line) <= _WIDTH:
        return line
    half = _WIDTH // 2
    return f"{line[:half]} [... {len(line) - 2 * half:,} characters ...] {line[-half:]}"
