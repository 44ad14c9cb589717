"""Old media leave, and a short text says what was there."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar, Literal, get_args

import attrs

from .._groups import MessageGroup
from .._index import MessageIndex
from .._messages import MEDIA, TEXT, TOOL_RESULT, Message, Part
from .._strategy import CompactionStrategy
from .._validators import as_tuple, non_negative, some_of
from ..formats import Format
from ._at_once import looks_at_numbers, make_by_group, reached_with

MediaKind = Literal["image", "audio", "document", "video", "other"]
_KINDS: tuple[str, ...] = get_args(MediaKind)
PLACEHOLDER = "[{kind} removed]"


def _template(_: object, __: object, value: object) -> None:
    expected = "placeholder must be a text that may have the field {kind}"
    if not isinstance(value, str):
        raise TypeError(f"{expected}, got {value!r}")
    try:
        written = value.format(kind="image")
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ValueError(f"{expected}, got {value!r}") from None
    if not written.strip():
        raise ValueError(f"{expected} and says something, got {value!r}")


@attrs.frozen(kw_only=True, repr=False)
class DropMediaStrategy(CompactionStrategy):
    """Let old images and other media leave, oldest first, until the target holds; a short text says what was there.

    The newest ``keep`` of them stay. ``kinds`` are those that are meant and counted. ``placeholder``
    stands in the place of each; its field ``{kind}`` is what it was. Media in a tool's result leave with
    their fellows in it, and the words of the result stay.

    Never a message with signed reasoning, a system, pinned or pending message, nor the user's newest message
    unless ``keep_last_user=False``. The floor is empty by default: ``keep`` says what is new.

    >>> import chat_compaction as cc
    >>> DropMediaStrategy(trigger=cc.tokens > 100_000, kinds=["image"]).keep
    3
    """

    keep: int = attrs.field(default=3, validator=non_negative)
    kinds: Sequence[MediaKind] = attrs.field(default=_KINDS, converter=as_tuple, validator=some_of(_KINDS))
    placeholder: str = attrs.field(default=PLACEHOLDER, validator=_template)
    min_preserved_groups: int = attrs.field(default=0, validator=non_negative)

    shortens: ClassVar[bool] = True

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        free = {position for group in self.rewritable(index) for position in group.positions}
        old = deque(one for one in self._old(index) if one[1] in free and not index.view(one[1]).signed)
        while old and not self.reached(index):
            self._drop(index, old)

    def _drop(self, index: MessageIndex, old: deque[tuple[MessageGroup, int, list[int]]]) -> None:
        """Let media leave, oldest first, until the target should hold; ``old`` is left with those not needed for it."""
        at_once, gain = looks_at_numbers(self), 0
        planned: list[tuple[MessageGroup, tuple[int, Any]]] = []
        while old and not (planned and (not at_once or reached_with(self, index, gain))):
            group, position, numbers = old.popleft()
            raw = index.raw(position)
            written = self._without(index.format, raw, index.view(position), numbers)
            if written is not None:
                planned.append((group, (position, written)))
                gain += index.size_of(position, raw) - index.size_of(position, written)
        make_by_group(planned, lambda group, messages: index.rewrite(group, dict(messages), "media"))

    def _old(self, index: MessageIndex) -> Iterator[tuple[MessageGroup, int, list[int]]]:
        """The messages with media that are not among the newest, oldest first, and the numbers of the parts."""
        found = sorted(self._found(index), key=lambda one: one[1:3])
        stay = self.keep
        while found and stay > 0:
            stay -= len(found.pop()[3])
        by_position: dict[int, tuple[MessageGroup, list[int]]] = {}
        for group, position, number, _ in found:
            by_position.setdefault(position, (group, []))[1].append(number)
        for position, (group, numbers) in by_position.items():
            yield group, position, numbers

    def _found(self, index: MessageIndex) -> Iterator[tuple[MessageGroup, int, int, list[str]]]:
        """Every part that is such media, or holds nothing but such, and what it holds."""
        for group in index.groups:
            for position in index.positions_of(group) if group.excluded is None else ():
                for number, part in enumerate(index.view(position).parts):
                    kinds = _held(part)
                    if kinds and all(kind in self.kinds for kind in kinds):
                        yield group, position, number, kinds

    def _without(self, format: Format, raw: Any, view: Message, numbers: Sequence[int]) -> Any | None:
        """A message without the media in these parts, and with words in their place; None where it can't be written."""
        parts = view.parts
        alone = [number for number in numbers if parts[number].kind is MEDIA]
        words = _lines(*(self._words(parts[number]) for number in alone))
        if len(alone) == len(parts):
            return format.saying(raw, words, view.role)
        texts = {n: _lines(parts[n].text, self._words(parts[n])) for n in numbers if parts[n].kind is TOOL_RESULT}
        host = _host(parts, texts) if alone else None
        if host is not None:
            said = texts.get(host, parts[host].text)
            texts[host] = _lines(words, said) if alone[0] < host else _lines(said, words)
        written = format.with_texts(raw, texts) if texts else raw
        return format.without(written, alone) if alone and written is not None else written

    def _words(self, part: Part) -> str:
        counts = Counter(_held(part))
        return _lines(*(self.placeholder.format(kind=kind) for kind in counts.elements()))


def _host(parts: Sequence[Part], texts: Collection[int]) -> int | None:
    """The part that has room for words: a text, else a result that keeps no media; calls have none."""
    said = [number for number, part in enumerate(parts) if part.kind is TEXT and part.text.strip()]
    results = [n for n, part in enumerate(parts) if part.kind is TOOL_RESULT and (n in texts or not part.media)]
    return next(iter([*said, *reversed(results)]), None)


def _held(part: Part) -> list[str]:
    """The kinds of media in a part; a document that is given as text is one, too."""
    if part.kind is MEDIA:
        return [medium.kind for medium in part.media] or ["document"]
    return [medium.kind for medium in part.media] if part.kind is TOOL_RESULT else []


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
