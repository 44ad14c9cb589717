"""What must survive a summary word for word: found in what is replaced, looked for in the summary, appended (S4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .._text import shown
from .._validators import refuse_async
from ._cutting import Count, cut_to
from ._rendering import texts_of

if TYPE_CHECKING:
    from .._index import MessageIndex

Keep: TypeAlias = "str | re.Pattern[str] | Callable[[Any], object]"
HEAD = "Kept word for word:"


def as_must_keep(value: Any) -> tuple[Keep, ...]:
    """A text, a compiled pattern or a function, or several of them."""
    single = isinstance(value, str | re.Pattern) or callable(value)
    if not single and not isinstance(value, Iterable):
        raise TypeError(f"must_keep must be texts, compiled patterns or functions, got {shown(value)}")
    keeps = (value,) if single else tuple(value)
    for keep in keeps:
        if isinstance(keep, str) or (isinstance(keep, re.Pattern) and isinstance(keep.pattern, str)):
            if not (keep if isinstance(keep, str) else keep.pattern):
                raise ValueError(f"must_keep must hold no empty text or pattern, got {keep!r} in it")
        elif callable(keep):
            refuse_async("must_keep", keep)
        else:
            raise TypeError(f"must_keep must be texts, compiled patterns or functions, got {shown(keep)} in it")
    return keeps


def facts_in(index: MessageIndex, positions: Iterable[int], keeps: Sequence[Keep]) -> list[str]:
    """What messages hold of it, each once, in the order of the conversation."""
    if not keeps:
        return []
    found: dict[str, None] = {}
    for position in positions:
        texts = list(texts_of(index.view(position)))
        for keep in keeps:
            raw = None if isinstance(keep, str | re.Pattern) else index.raw(position)
            found.update((fact.strip(), None) for fact in _facts(keep, raw, texts) if fact.strip())
    return list(found)


def _facts(keep: Keep, raw: Any, texts: Sequence[str]) -> Iterator[str]:
    if isinstance(keep, str):
        if any(keep in text for text in texts):
            yield keep
    elif isinstance(keep, re.Pattern):
        for text in texts:
            yield from (match[0] for match in keep.finditer(text))
    else:
        yield from _answered(keep(raw), texts)


def _answered(answer: Any, texts: Sequence[str]) -> Iterator[str]:
    """What a function says of a message: nothing, one text, several, or that all of its words are to be kept."""
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, Iterable):
        yield from (text for text in answer if isinstance(text, str))
    elif answer:
        yield from texts


def with_facts(body: str, facts: Sequence[str], limit: int, count: Count) -> tuple[str, int]:
    """A summary of at most so many tokens that holds the facts, and how many of these there was no room for.

    What is lost stands at its end, in half of the room at the most; as many as fit, the short ones first. Where
    the body has to make room, it is cut.
    """
    text, section = cut_to(body, limit, count), ""
    for _ in range(3):  # A cut may lose a fact that the body had.
        lost = [fact for fact in facts if fact not in text]
        if not lost:
            break
        section = _section(lost, max(limit // 2, limit - count([text])[0] - 2), count)
        room = limit - count([f"\n\n{section}"])[0] if section else limit
        text = cut_to(body, room, count)
    whole = "\n\n".join(piece for piece in (text, section) if piece)
    return whole, sum(fact not in whole for fact in facts)


def _section(lost: Sequence[str], limit: int, count: Count) -> str:
    """As many of the texts as fit, under a head of their own, in the order of the conversation."""
    head, *sizes = count([f"{HEAD}\n", *(f"- {fact}\n" for fact in lost)])
    room, taken = limit - head, set[int]()
    for place in sorted(range(len(lost)), key=sizes.__getitem__):
        if sizes[place] > room:
            break
        taken.add(place)
        room -= sizes[place]
    kept = [f"- {fact}" for place, fact in enumerate(lost) if place in taken]
    return "\n".join([HEAD, *kept]) if kept else ""
