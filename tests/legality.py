"""An independent judge of message lists, by the rules that the providers document.

It shares nothing with the package's own reading and grouping: it looks at raw dicts, and knows only

- OpenAI chat completions: a ``tool`` message answers a call that an assistant message before it made; every call is
  answered; the results stand directly behind the message that called, nothing but results between.
- Anthropic Messages: a ``tool_result`` block answers a ``tool_use`` block of the assistant's turn before it, and every
  ``tool_use`` is answered in the next turn (consecutive messages of one role are one turn); what the provider runs
  itself (``server_tool_use``, ``mcp_tool_use``) is answered in the same turn; the first message is a user's.

Which call a result answers goes by id and occurrence: the newest earlier call of its id that is still open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SYSTEM = ("system", "developer")


@dataclass(frozen=True)
class Fault:
    """Something in a list that a provider forbids; ``position`` is the message to blame."""

    kind: str
    detail: str
    position: int
    call_id: str = ""


@dataclass(frozen=True)
class Link:
    """A call and its result, by position; one of them is None where there is no other."""

    call_id: str
    call: int | None
    result: int | None
    called_before: bool = True
    """For a result without an open call: whether its id was ever called."""


def links(messages: Sequence[Any], format_name: str) -> list[Link]:
    """Which result answers which call; also the calls and the results that stand alone."""
    found: list[Link] = []
    waiting: dict[str, list[int]] = {}
    for position, message in enumerate(messages):
        for is_call, call_id in _MARKS[format_name](message):
            if is_call:
                waiting.setdefault(call_id, []).append(position)
            elif waiting.get(call_id):
                found.append(Link(call_id, waiting[call_id].pop(), position))
            else:
                found.append(Link(call_id, None, position, call_id in waiting))
    alone = [Link(call_id, call, None) for call_id, calls in waiting.items() for call in calls]
    return [*found, *alone]


def faults(messages: Sequence[Any], format_name: str) -> list[Fault]:
    """Everything in the list that the format's provider forbids."""
    blocks = _blocks(messages, format_name)
    # Anthropic's results stand in the turn behind the call; OpenAI's, and those of a provider's own tools, in the same.
    reach = 1 if format_name == "anthropic" else 0
    found = [fault for link in links(messages, format_name) for fault in _link_faults(link, blocks, reach)]
    first = next((p for p, message in enumerate(messages) if message["role"] not in SYSTEM), None)
    if format_name == "anthropic" and first is not None and messages[first]["role"] != "user":
        found.append(Fault("first_role", f"messages[{first}] is the first and no user's", first))
    return found


def new_faults(before: Sequence[Any], after: Sequence[Any], format_name: str) -> list[Fault]:
    """The faults of ``after`` that ``before`` has not, message by message: valid stays valid, invalid never gets worse.

    Messages are told apart by identity; which message comes first is a matter of the list as a whole.
    """
    known = Counter(_key(fault, before) for fault in faults(before, format_name))
    new = _strangers(before, after, format_name)
    for fault in faults(after, format_name):
        key = _key(fault, after)
        if known[key]:
            known[key] -= 1
        else:
            new.append(fault)
    return new


def _strangers(before: Sequence[Any], after: Sequence[Any], format_name: str) -> list[Fault]:
    """Results that answer another message's call than they did, which a reused id hides from the provider."""
    pairs = {_pair(link, before) for link in links(before, format_name)}
    return [
        Fault("other_call", f"messages[{link.result}] answered another {link.call_id!r}", link.result, link.call_id)
        for link in links(after, format_name)
        if link.call is not None and link.result is not None and _pair(link, after) not in pairs
    ]


def _pair(link: Link, messages: Sequence[Any]) -> tuple[str, ...]:
    return (link.call_id, *("" if p is None else str(id(messages[p])) for p in (link.call, link.result)))


def _key(fault: Fault, messages: Sequence[Any]) -> tuple[str, str, int]:
    return (fault.kind, fault.call_id, 0 if fault.kind == "first_role" else id(messages[fault.position]))


def _link_faults(link: Link, blocks: list[int], reach: int) -> Iterator[Fault]:
    if link.result is None:
        assert link.call is not None
        detail = f"messages[{link.call}] calls {link.call_id!r}, which has no result"
        yield Fault("unanswered_call", detail, link.call, link.call_id)
    elif link.call is None:
        kind = "second_result" if link.called_before else "orphan_result"
        yield Fault(kind, f"messages[{link.result}] answers no open call {link.call_id!r}", link.result, link.call_id)
    elif blocks[link.result] - blocks[link.call] > reach:
        detail = f"messages[{link.result}] answers {link.call_id!r} of messages[{link.call}], but not next to it"
        yield Fault("not_adjacent", detail, link.result, link.call_id)


def _blocks(messages: Sequence[Any], format_name: str) -> list[int]:
    """A number for each message: results share that of what stands before them, or one role's turn shares one."""
    blocks: list[int] = []
    for position, message in enumerate(messages):
        role = message["role"]
        if format_name == "anthropic":
            joins = position > 0 and messages[position - 1]["role"] == role
        else:
            joins = position > 0 and role in ("tool", "function")
        blocks.append(blocks[-1] + (not joins) if blocks else 0)
    return blocks


def _openai_marks(message: Any) -> Iterator[tuple[bool, str]]:
    """The calls (True) and results (False) in a message, by id, in order."""
    for call in message.get("tool_calls") or ():
        yield True, call["id"]
    if message.get("function_call"):
        yield True, f"function {message['function_call']['name']}"
    if message["role"] == "tool":
        yield False, message["tool_call_id"]
    if message["role"] == "function":
        yield False, f"function {message['name']}"


def _anthropic_marks(message: Any) -> Iterator[tuple[bool, str]]:
    content = message["content"]
    for block in content if isinstance(content, list) else ():
        kind = block["type"]
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            yield True, block["id"]
        elif kind.endswith("tool_result"):
            yield False, block["tool_use_id"]


_MARKS = {"openai_chat": _openai_marks, "anthropic": _anthropic_marks}
