"""Clipping: a huge text is cut to head and tail around a marker, the largest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, get_args

import attrs

from .._clipping import MARKER, Clipping, check_marker, is_object, water_level
from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._messages import ASSISTANT, SYSTEM, TEXT, TOOL_CALL, TOOL_RESULT, USER, Message, Part
from .._predicates import AllOf, AnyOf, Comparison, Predicate, tokens
from .._strategy import CompactionStrategy
from .._summarizing._must_keep import Keep, Kept, as_must_keep
from .._validators import as_tuple, non_negative, one_of, some_of
from ._at_once import looks_at_numbers, make_by_group, reached_with

ClipKind = Literal["tool_result", "tool_call", "assistant", "user"]
ClipTo = Literal["target", "min_tokens"]
_KINDS: tuple[str, ...] = get_args(ClipKind)
_ROUNDS = 4
"""How often the common length is set anew, where some text could not be clipped to it."""


def _share(_: object, __: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"head_share must be a number from 0 to 1, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"head_share must be a number from 0 to 1, got {value!r}")


@attrs.frozen(kw_only=True, repr=False)
class ClipStrategy(CompactionStrategy):
    """Cut huge texts to head and tail around a marker, the largest first, until the target holds.

    A text of more than ``max_tokens`` is huge; any other stays as it is. What is clipped keeps at the
    least ``min_tokens`` (by default ``max_tokens``), the marker among them. ``clip_to="target"`` cuts the
    largest texts to one length, only as short as the target needs; ``"min_tokens"`` cuts each of them to
    ``min_tokens`` at once, the largest first, so that the next texts have room.

    ``kinds`` are what may be clipped: ``"tool_result"``, what the ``"assistant"`` and the ``"user"``
    said, and ``"tool_call"``: long strings in the arguments of calls, which are JSON with the same
    keys afterwards. ``head_share`` is how much of what is kept comes from the start, ``marker`` stands
    for the rest; its field ``{tokens}`` is how many are gone.

    Only text is clipped: never a message with signed reasoning, a result with media in it, a summary,
    a system, pinned or pending message, nor a text in which ``must_keep`` finds something: texts, patterns or
    functions, as in :class:`SummarizationStrategy`. The floor is empty by default, since the newest result may well be
    the huge one; the user's newest message stays unless ``keep_last_user=False``.

    >>> import chat_compaction as cc
    >>> ClipStrategy(trigger=cc.tokens > 100_000, max_tokens=2_000).kinds
    ('tool_result', 'assistant', 'user')
    """

    max_tokens: int = attrs.field(default=2_000, validator=non_negative)
    min_tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(non_negative))
    clip_to: ClipTo = attrs.field(default="target", validator=one_of(get_args(ClipTo)))
    kinds: Sequence[ClipKind] = attrs.field(
        default=("tool_result", "assistant", "user"), converter=as_tuple, validator=some_of(_KINDS)
    )
    head_share: float = attrs.field(default=0.5, validator=_share)
    marker: str = attrs.field(default=MARKER, validator=lambda _, __, value: check_marker(value))
    must_keep: tuple[Keep, ...] = attrs.field(default=(), converter=as_must_keep)
    min_preserved_groups: int = attrs.field(default=0, validator=non_negative)

    @min_tokens.validator
    def _check_min_tokens(self, _: object, value: int | None) -> None:
        if value is not None and value > self.max_tokens:
            raise ValueError(f"min_tokens must be at most max_tokens ({self.max_tokens}), got {value}")

    shortens: ClassVar[bool] = True

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        least = self.max_tokens if self.min_tokens is None else self.min_tokens
        clipping = Clipping(index.count_texts, self.head_share, self.marker)
        work = _Work(index, clipping, self, self._huge(index))
        limits = _token_limits(self.effective_target) if self.clip_to == "target" else []
        # Of several limits, such as those of an any_of, the loosest may be enough.
        for limit in sorted(limits, reverse=True):
            if self._reach(work, limit, least):
                return
        while not self.reached(index) and work.clip(least):
            pass  # What was refused may be made up for by others.

    def _reach(self, work: _Work, limit: int, least: int) -> bool:
        """Cut the largest texts to one length at which the target holds; whether it does."""
        for _ in range(_ROUNDS):
            need = work.index.value(tokens) - limit
            if self.reached(work.index) or need <= 0:
                break
            level = water_level([text.size for text in work.largest_first()], need)
            work.clip(max(least, level), together=True)
        return self.reached(work.index)

    def _huge(self, index: MessageIndex) -> list[_Text]:
        """The texts that may be clipped, the largest first; of two of one size the older one."""
        texts = [text for group in self.rewritable(index) for text in self._texts(index, group)]
        counts = index.count_texts([text.part.text for text in texts])
        for text, size in zip(texts, counts, strict=True):
            text.size = size
        kept = Kept(index, self.must_keep)
        huge = (text for text in texts if text.size > self.max_tokens)
        return [text for text in huge if not kept.holds((text.position, text.number))]

    def _texts(self, index: MessageIndex, group: MessageGroup) -> Iterator[_Text]:
        for position in index.positions_of(group) if group.kind is not GroupKind.SUMMARY else ():
            view = index.view(position)
            if view.signed or view.summary or view.role is SYSTEM:
                continue
            for number, part in enumerate(view.parts):
                if part.text and not part.media and _kind(view, part) in self.kinds:
                    yield _Text(group, position, number, part)


@attrs.define(eq=False)
class _Text:
    """A text that may be clipped: where it stands, and its tokens as it is now."""

    group: MessageGroup
    position: int
    number: int
    part: Part
    size: int = 0


@attrs.frozen(eq=False)
class _Cut:
    """What is to stand in the place of a text, in at most so many tokens."""

    text: _Text
    shorter: str
    limit: int


@attrs.define(eq=False)
class _Work:
    """The texts of one pass, and what was made of them; a text is always clipped anew from the whole."""

    index: MessageIndex
    clipping: Clipping
    strategy: ClipStrategy
    texts: list[_Text]
    _planned: list[_Cut] = attrs.field(init=False, factory=list)
    _gain: int = attrs.field(init=False, default=0)
    """The tokens that what is planned will gain."""
    _whole: dict[int, Any] = attrs.field(init=False, factory=dict)
    """By position, the message as it was before."""
    _clipped: dict[int, dict[int, str]] = attrs.field(init=False, factory=dict)
    """By position, the texts of its parts that were clipped."""
    _stuck: set[int] = attrs.field(init=False, factory=set)

    def largest_first(self) -> list[_Text]:
        """The texts by their size now, without those that can't be written any shorter."""
        return sorted((text for text in self.texts if id(text) not in self._stuck), key=lambda text: -text.size)

    def clip(self, limit: int, *, together: bool = False) -> bool:
        """Clip texts to at most so many tokens, the largest first, until the target holds; whether there were any.

        ``together``: what a text loses beyond that, since lines and words stay whole, the next may keep.
        """
        each, spare, tried = not looks_at_numbers(self.strategy), 0, False
        for text in self.largest_first():
            if text.size <= limit or reached_with(self.strategy, self.index, self._gain):
                break
            tried = True
            size = self._plan(text, limit + spare)
            spare += limit - size if together and size is not None and size < limit else 0
            if each:
                self._make()
        self._make()
        return tried

    def _plan(self, text: _Text, limit: int) -> int | None:
        """Plan a cut; the tokens that are left of the text, None where it can't be shorter.

        Where it can't be cut to the limit it is cut once, to as short as it can be written.
        """
        shorter = self._shorter(text.part, limit)
        if shorter is None:
            self._stuck.add(id(text))
            shorter = self.clipping.shortest_json(text.part.text) if text.part.kind is TOOL_CALL else None
        if shorter is None:
            return None
        (size,) = self.index.count_texts([shorter])
        if size >= text.size:
            return None
        limit = max(size, limit)
        self._planned.append(_Cut(text, shorter, limit))
        self._gain += text.size - size
        return size

    def _shorter(self, part: Part, limit: int) -> str | None:
        if part.kind is TOOL_CALL and is_object(part.text):
            return self.clipping.json(part.text, limit)
        return self.clipping.text(part.text, limit)

    def _make(self) -> None:
        planned = [(cut.text.group, cut) for cut in self._planned]
        self._planned, self._gain = [], 0
        self._stuck.update(id(cut.text) for cut in make_by_group(planned, self._is_made))

    def _is_made(self, group: MessageGroup, cuts: list[_Cut]) -> bool:
        """Write cuts of one group; False, and nothing is changed, where that can't be or comes out too long."""
        texts: dict[int, dict[int, str]] = {}
        for cut in cuts:
            position = cut.text.position
            if position not in texts:
                texts[position] = dict(self._clipped.get(position, {}))
            texts[position][cut.text.number] = cut.shorter
        messages = {position: self._written(position, parts) for position, parts in texts.items()}
        if any(raw is None for raw in messages.values()):
            return False
        # Arguments may be written with other white space, and a format of the user's as it likes.
        views = {position: self.index.format.read(raw, position) for position, raw in messages.items()}
        sizes = self.index.count_texts([views[cut.text.position].parts[cut.text.number].text for cut in cuts])
        if any(size > cut.limit for cut, size in zip(cuts, sizes, strict=True)):
            return False
        if not self.index.rewrite(group, messages, "clip"):
            return False
        self._clipped.update(texts)
        for cut, size in zip(cuts, sizes, strict=True):
            cut.text.size = size
        return True

    def _written(self, position: int, texts: dict[int, str]) -> Any | None:
        return self.index.format.with_texts(self._whole.setdefault(position, self.index.raw(position)), texts)


def _kind(view: Message, part: Part) -> str:
    if part.kind is TEXT:
        return "user" if view.role is USER else "assistant" if view.role is ASSISTANT else ""
    return "tool_result" if part.kind is TOOL_RESULT else "tool_call" if part.kind is TOOL_CALL else ""


def _token_limits(target: Predicate) -> list[int]:
    """The numbers of tokens that a target allows at the most."""
    if isinstance(target, AllOf | AnyOf):
        return [limit for operand in target.operands for limit in _token_limits(operand)]
    is_limit = isinstance(target, Comparison) and target.metric == tokens and target.upper is not None
    return [target.upper] if is_limit else []  # type: ignore[attr-defined]
