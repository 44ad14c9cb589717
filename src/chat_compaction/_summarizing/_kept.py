"""The section of a summary with what is kept word for word, written so that it can be read again.

::

    Kept word for word:
    - a text of one line
    - 2 lines:
    a text
    of two lines

It is the last thing in a summary, and the words ahead of it never say its head on a line of their own. So the first
head is ours, and what an item holds is never taken for another item, be it a head or a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ._cutting import Count

HEAD = "Kept word for word:"
_ITEM = "- "
_LINES = re.compile(r"- ([1-9][0-9]{0,8}) lines?:")
"""The line above an item of several lines, or of one that looks like this."""


def section_of(facts: Sequence[str], limit: int, count: Count) -> tuple[str, list[str]]:
    """The section in at most so many tokens, empty where nothing fits, and what it holds: the first, as many as fit."""
    items = list(map(_item, facts))
    head, *sizes = count([f"{HEAD}\n", *(f"{item}\n" for item in items)])
    room, kept, lines = limit - head, list[str](), [HEAD]
    for fact, item, size in zip(facts, items, sizes, strict=True):
        if size <= room:
            kept.append(fact)
            lines.append(item)
            room -= size
    return "\n".join(lines) if kept else "", kept


def _item(fact: str) -> str:
    more = fact.count("\n")
    if not more and not _LINES.fullmatch(f"{_ITEM}{fact}"):
        return f"{_ITEM}{fact}"
    return f"{_ITEM}{more + 1} line{'s' if more else ''}:\n{fact}"


def parted(body: str) -> tuple[str, list[str]]:
    """The words of a summary, and what its section holds. What is not written as we do is words."""
    lines = body.split("\n")
    if HEAD not in lines:
        return body, []
    place = lines.index(HEAD)
    facts = _read(lines[place + 1 :])
    return (body, []) if facts is None else ("\n".join(lines[:place]).rstrip(), facts)


def _read(lines: Sequence[str]) -> list[str] | None:
    facts, place = list[str](), 0
    while place < len(lines):
        counted = _LINES.fullmatch(lines[place])
        more = int(counted[1]) if counted else 0
        text = "\n".join(lines[place + 1 : place + 1 + more]) if counted else lines[place].removeprefix(_ITEM)
        known = counted or lines[place].startswith(_ITEM)
        place += 1 + more
        if not known or not text.strip() or place > len(lines):
            return None
        facts.append(text)
    return facts


def only_words(text: str, kept: Iterable[str] = ()) -> str:
    """A summarizer's words without lines that only say our head, or list what the section holds anyway."""
    said = {f"{_ITEM}{fact}" for fact in kept}
    lines = text.split("\n")
    left = [line for line in lines if line.strip() != HEAD and line.strip() not in said]
    return text if len(left) == len(lines) else "\n".join(left).strip()
