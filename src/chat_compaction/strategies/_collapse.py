"""A tool group as one message: what the assistant said beside its calls, then a list of what it called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .._index import MessageIndex
from .._messages import ASSISTANT, REASONING, TEXT, TOOL, TOOL_CALL, TOOL_RESULT, USER, Message
from ._results import UsedTool

_HEAD = "[Earlier tool calls, shortened]"
_ARGUMENTS, _RESULT = 100, 200
"""How many characters of arguments and of a result are listed."""
_KNOWN = TEXT.bit | REASONING.bit | TOOL_CALL.bit | TOOL_RESULT.bit
"""What a message of the assistant may hold without losing anything that the list does not tell."""


def list_tool_uses(uses: Sequence[UsedTool]) -> str:
    """The list that ``style="collapse"`` writes: a line for each call, with the beginning of its result in quotes.

    In quotes, since the assistant says the list, and what a tool gave is not to be taken for its words.

    >>> print(list_tool_uses([UsedTool("read", '{"path": "a.py"}', "import os", 2)]))
    [Earlier tool calls, shortened]
    - read {"path": "a.py"}: "import os"
    """
    return "\n".join([_HEAD, *map(_line, uses)])


def _line(use: UsedTool) -> str:
    called = f"{use.name} {_cut(' '.join(use.arguments.split()), _ARGUMENTS)}".rstrip()
    return f"- {called}: {_quoted(_cut(use.result, _RESULT)) if use.result else 'no result'}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    try:
        quoted.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which can only be sent as an escape.
        return json.dumps(text)
    return quoted


def collapsed(index: MessageIndex, positions: Sequence[int], listed: str) -> dict[int, Any] | None:
    """What stands at the positions of a group that is one message now; None where something would be lost.

    A user's words beside a result stay a message of the user's.
    """
    views = {position: index.view(position) for position in positions}
    if not all(map(_can_go, views.values())):
        return None
    place = next((position for position, view in views.items() if view.calls), None)
    if place is None:
        return None
    texts = [part.text for view in views.values() if view.role is ASSISTANT for part in view.parts if part.kind is TEXT]
    said = [text for text in (*texts, listed) if text.strip()]
    written = index.format.saying(index.raw(place), "\n\n".join(said)) if said else None
    if written is None:
        return None
    messages: dict[int, Any] = {**dict.fromkeys(positions), place: written}
    for position, view in views.items():
        if view.speaks_for_user:
            results = [number for number, part in enumerate(view.parts) if part.kind is TOOL_RESULT]
            messages[position] = index.format.without(index.raw(position), results)
    return messages


def _can_go(view: Message) -> bool:
    if view.role is ASSISTANT:
        return not view.signed and view.kinds & ~_KNOWN == 0
    # Histories are broken in every way: a call in the user's role is none of the assistant's.
    foreign = view.signed or view.kinds & (TOOL_CALL.bit | REASONING.bit)
    return view.role in (USER, TOOL) and not foreign and (view.role is USER or view.kinds == TOOL_RESULT.bit)
