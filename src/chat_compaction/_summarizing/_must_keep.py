"""What must be kept word for word: found in what is said, called and answered, and carried on in summaries (S4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from .._messages import Message
from .._text import shown
from .._validators import refuse_async
from ._cutting import Count, cut_to
from ._kept import only_words, parted, section_of
from ._rendering import says, texts_of

if TYPE_CHECKING:
    from .._index import MessageIndex

Keep: TypeAlias = "str | re.Pattern[str] | Callable[[Any], object]"


def as_must_keep(value: Any) -> tuple[Keep, ...]:
    """A text, a compiled pattern or a function, or several of them."""
    single = isinstance(value, str | re.Pattern) or callable(value)
    if not single and not isinstance(value, Iterable):
        raise TypeError(f"must_keep must be texts, compiled patterns or functions, got {shown(value)}")
    keeps = (value,) if single else tuple(value)
    for keep in keeps:
        if isinstance(keep, str) or (isinstance(keep, re.Pattern) and isinstance(keep.pattern, str)):
            if not (keep.strip() if isinstance(keep, str) else keep.pattern):
                raise ValueError(f"must_keep must hold no empty text or pattern, got {keep!r} in it")
        elif callable(keep):
            refuse_async("must_keep", keep)
        else:
            raise TypeError(f"must_keep must be texts, compiled patterns or functions, got {shown(keep)} in it")
    return keeps


# -- finding it ----------------------------------------------------------------------------------------


def facts_in(index: MessageIndex, positions: Iterable[int], keeps: Sequence[Keep]) -> list[str]:
    """What messages hold of it, each once and without white space around it, in the order of the conversation.

    What an earlier summary keeps is among it, whether it could be found anew or not.
    """
    found: dict[str, None] = {}
    for position in positions if keeps else ():
        view = index.view(position)
        facts = _in_message(index.raw(position), view, keeps) if view.summary is None else _in_summary(view, keeps)
        found.update((fact.strip(), None) for fact in facts if fact.strip())
    return list(found)


def _in_message(raw: Any, view: Message, keeps: Sequence[Keep]) -> Iterator[str]:
    texts = list(texts_of(view))
    for keep in keeps:
        yield from _stated(keep, texts) if isinstance(keep, str | re.Pattern) else _answered(keep(raw), texts)


def _in_summary(view: Message, keeps: Sequence[Keep]) -> Iterator[str]:
    """A function knows messages and is not asked about summaries."""
    for body in texts_of(view):
        words, facts = parted(body)
        yield from facts
        for keep in keeps:
            if isinstance(keep, str | re.Pattern):
                yield from _stated(keep, [words])


def _stated(keep: str | re.Pattern[str], texts: Sequence[str]) -> Iterator[str]:
    if isinstance(keep, str):
        if any(keep.strip() in text for text in texts):
            yield keep
        return
    for text in texts:
        yield from (match[0] for match in keep.finditer(text))


def _answered(answer: Any, texts: Sequence[str]) -> Iterator[str]:
    """What a function says of a message: nothing, one text, several, or that all of its words are to be kept."""
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, Iterable):
        yield from (text for text in answer if isinstance(text, str))
    elif answer:
        yield from texts


@attrs.frozen(eq=False)
class Kept:
    """Where something of it stands, for strategies that shorten texts: they leave such a text as it is."""

    index: MessageIndex
    keeps: Sequence[Keep]
    _parts: dict[int, frozenset[int]] = attrs.field(init=False, factory=dict)

    def holds(self, place: tuple[int, int]) -> bool:
        """Whether the part of a message at (position, number) holds something of it."""
        return bool(self.keeps) and place[1] in self._in(place[0])

    def is_in(self, positions: Iterable[int]) -> bool:
        """Whether one of these messages does."""
        return bool(self.keeps) and any(map(self._in, positions))

    def _in(self, position: int) -> frozenset[int]:
        """The numbers of such parts of a message; each message is looked at once."""
        if position not in self._parts:
            view = self.index.view(position)
            texts = {number: part.text for number, part in enumerate(view.parts) if says(part)}
            held = (self._parts_with(keep, position, texts) for keep in self.keeps)
            self._parts[position] = frozenset(number for numbers in held for number in numbers)
        return self._parts[position]

    def _parts_with(self, keep: Keep, position: int, texts: dict[int, str]) -> Iterable[int]:
        if isinstance(keep, str | re.Pattern):
            return [n for n, text in texts.items() if any(fact.strip() for fact in _stated(keep, [text]))]
        answer = keep(self.index.raw(position))
        if answer and not isinstance(answer, Iterable):
            return texts
        facts = [fact.strip() for fact in _answered(answer, ()) if fact.strip()]
        found = [n for n, text in texts.items() if any(fact in text for fact in facts)]
        # Words of the function's own stand nowhere: then all of the message may be what they are made of.
        return found if found or not facts else texts


# -- keeping it ----------------------------------------------------------------------------------------


def with_facts(body: str, facts: Sequence[str], limit: int, count: Count) -> tuple[str, int]:
    """A summary of at most so many tokens with the facts at its end, and for how many of these there was no room.

    They stand there whether the words hold them or not, since a later summary reads them from there. They have half
    of the room, and what the words leave free; of more than that the first stay, as many as fit. Where the
    words have to make room, they are cut.
    """
    words = cut_to(only_words(body, facts), limit, count)
    section, kept = section_of(facts, max(limit // 2, limit - count([words])[0] - 2), count)
    room = limit - count([f"\n\n{section}"])[0] if section else limit
    text = cut_to(only_words(body, kept), room, count)
    return "\n\n".join(piece for piece in (text, section) if piece), len(facts) - len(kept)
