"""The rules once more, the slow and obvious way: an oracle for the property tests.

It looks at raw dicts and shares nothing with the package but the words. Every question is answered from scratch, so
its cost is quadratic at best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.legality import links

Raw = dict[str, Any]
NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True)
class View:
    """What a message is made of: ``calls`` and ``results`` by id (empty where none is); the characters of its text."""

    role: str
    calls: tuple[str, ...]
    results: tuple[str, ...]
    thinks: bool
    speaks: bool
    characters: int


def view(message: Raw, format: str) -> View:
    """Look at one message."""
    return _openai(message) if format == "openai_chat" else _anthropic(message)


def _openai(message: Raw) -> View:
    role, texts, seen = message["role"], _texts(message.get("content")), _seen(message.get("content"))
    size = sum(map(len, texts))
    if role in ("tool", "function"):
        return View("tool", (), (_answered(message),), False, False, size)
    own = role == "assistant"
    thought = _thought_of(message) if own else None
    calls = tuple(_called(call) for call in message.get("tool_calls", ())) if own else ()
    if own and message.get("function_call"):
        calls = (f"function {message['function_call']['name']}",)
    speaks = bool("".join(texts)) or seen
    return View(
        "system" if role == "developer" else role, calls, (), thought is not None, speaks, size + len(thought or "")
    )


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block["type"] == "text"]


def _seen(content: Any) -> bool:
    return isinstance(content, list) and any(block["type"] != "text" for block in content)


def _thought_of(message: Raw) -> str | None:
    lists = message.get("reasoning_details") or message.get("thinking_blocks")
    if lists:
        return str(lists[0].get("text") or lists[0].get("thinking"))
    return next((message[key] for key in ("reasoning_content", "reasoning", "thinking") if message.get(key)), None)


def _called(call: Raw) -> str:
    return str(call.get("id") or "")


def _answered(message: Raw) -> str:
    return f"function {message['name']}" if message["role"] == "function" else str(message.get("tool_call_id") or "")


_RESULT = "tool_result"


def _anthropic(message: Raw) -> View:
    content = message["content"]
    if isinstance(content, str):
        return View(message["role"], (), (), False, bool(content), len(content))
    calls = tuple(block["id"] for block in content if block["type"].endswith("tool_use"))
    results = tuple(block["tool_use_id"] for block in content if block["type"].endswith(_RESULT))
    size = sum(map(_size, content))
    thinks = any(block["type"].endswith("thinking") for block in content)
    # A block that is neither reasoning nor a result says something.
    speaks = any(not block["type"].endswith(("thinking", _RESULT)) for block in content)
    return View(message["role"], calls, results, thinks, speaks, size)


def _size(block: Raw, inside: bool = False) -> int:
    """The characters that count: of text, of reasoning, of what a result says, a document ``inside`` it too."""
    if block["type"].endswith(_RESULT):
        content = block["content"] or ""
        return len(content) if isinstance(content, str) else sum(_size(inner, inside=True) for inner in content)
    if block["type"] == "document":
        return len(block["source"]["data"]) if inside else 0
    return len(block.get("text") or block.get("thinking") or "")


@dataclass(eq=False)
class Group:
    """Messages that stay or leave together."""

    positions: list[int]
    kind: str
    turn: int
    pinned: bool
    pending: bool

    @property
    def newest(self) -> int:
        return max(self.positions)


@dataclass
class History:
    """Everything that the rules say about one list of messages."""

    messages: Sequence[Raw]
    format: str
    pinned: frozenset[int] = NOBODY
    pending_turns: int = 1
    views: list[View] = field(init=False)
    groups: list[Group] = field(init=False)
    openers: list[int] = field(init=False)
    """The positions of the messages that open turns 1, 2, ..."""

    def __post_init__(self) -> None:
        self.views = [view(message, self.format) for message in self.messages]
        self.openers = [
            p for p, v in enumerate(self.views) if v.role == "user" and not v.results and p not in self.pinned
        ]
        answered, waiting = self._pairs()
        self.groups = self._groups(answered, waiting)

    def _pairs(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Which message answers which (G2, G4), and the positions of calls that still wait, as the judge sees it."""
        found = links(self.messages, self.format)
        pairs = [(link.call, link.result) for link in found if link.call is not None and link.result is not None]
        for link in found:
            if link.call is None and link.result is not None and link.called_before:
                # A second result joins the newest call of its id; in a message, calls stand before results.
                calls = [p for p in range(link.result + 1) if link.call_id in self.views[p].calls]
                pairs.append((calls[-1], link.result))
        return pairs, [link.call for link in found if link.result is None and link.call is not None]

    def _thought(self, position: int) -> bool:
        v = self.views[position]
        return v.role == "assistant" and v.thinks and not (v.speaks or v.calls or v.results)

    def turn(self, position: int) -> int:
        """The turn in which a position stands; 0 before the first."""
        return sum(opener <= position for opener in self.openers)

    def _groups(self, answered: list[tuple[int, int]], waiting: list[int]) -> list[Group]:
        label = list(range(len(self.views)))
        loose = [
            (p, p + 1) for p in range(len(label) - 1) if self._thought(p) and self.views[p + 1].role == "assistant"
        ]
        for one, other in [*answered, *loose]:
            low, high = sorted((label[one], label[other]))
            label = [low if mark == high else mark for mark in label]
        return [
            self._group([p for p, mark in enumerate(label) if mark == first], waiting) for first in sorted(set(label))
        ]

    def _group(self, positions: list[int], waiting: list[int]) -> Group:
        first, turn = self.views[positions[0]], self.turn(positions[0])
        if any(self.views[p].calls for p in positions):
            kind = "tool_call"
        elif first.role == "system":
            kind = "system"
        elif first.results:
            kind = "orphan"
        else:
            kind = first.role
        settled = len(self.openers) - self.pending_turns
        late = any(p in positions and self.turn(p) > settled for p in waiting)
        at_end = positions[-1] == len(self.views) - 1 and self._thought(positions[-1])
        return Group(positions, kind, turn, any(p in self.pinned for p in positions), late or at_end)

    # -- measuring -----------------------------------------------------------------------------

    def measure(self, included: Sequence[Group]) -> dict[str, int]:
        """The metrics over some of the groups; tokens are characters."""
        positions = [p for group in included for p in group.positions]
        turns = {group.turn for group in included if group.kind != "system" and not group.pinned}
        return {
            "tokens": sum(self.views[p].characters for p in positions),
            "messages": len(positions),
            "groups": len(included),
            "turns": len(turns - {0}),
            "tool_groups": sum(group.kind == "tool_call" for group in included),
        }

    # -- what must stay ------------------------------------------------------------------------

    def floor(
        self, min_groups: int, min_messages: int = 0, keep_last_user: bool = True, preserve_system: bool = True
    ) -> list[Group]:
        """The groups that no compaction touches (rules K2, K4 and K7)."""
        newest_first = sorted(self.groups, key=lambda group: -group.newest)
        stay = {id(g) for g in self.groups if g.pinned or g.pending or (g.kind == "system" and preserve_system)}
        stay |= {id(g) for g in [g for g in newest_first if g.kind != "system"][: max(1, min_groups)]}
        last = len(self.views)
        stay |= {id(g) for g in self.groups if g.newest >= last - min_messages} if min_messages else set()
        if keep_last_user:
            stay |= {id(g) for p in self._spoken()[-1:] for g in self.groups if p in g.positions}
        kept = [group for group in self.groups if id(group) in stay]
        return [group for group in self.groups if id(group) in stay or group is self.opener(kept)]

    def _spoken(self) -> list[int]:
        """The positions at which the user says something that is not pinned."""
        return [
            p
            for p, v in enumerate(self.views)
            if v.role == "user" and p not in self.pinned and (v.speaks or not v.results)
        ]

    def first(self, groups: Sequence[Group]) -> int | None:
        """The first message that is no system group's."""
        return min((p for group in groups if group.kind != "system" for p in group.positions), default=None)

    def opener(self, kept: Sequence[Group]) -> Group | None:
        """The group that must stay so that the list begins with a user's message (rule K7)."""
        first = self.first(kept)
        if self.format != "anthropic" or first is None or self.views[first].role == "user":
            return None
        turn = self.turn(first)
        opener = self.openers[turn - 1] if turn else self._beginning()
        if opener is None or opener > first:
            return None
        return next(group for group in self.groups if opener in group.positions)

    def _beginning(self) -> int | None:
        """The first user's message ahead of all turns: it carries a result to no call, or is pinned."""
        ahead = [group.positions[0] for group in self.groups if not self.turn(group.positions[0])]
        return next((position for position in ahead if self.views[position].role == "user"), None)

    # -- compacting ----------------------------------------------------------------------------

    def truncate(self, floor: Sequence[Group], reached: Callable[[dict[str, int]], bool]) -> list[Group]:
        """What truncation keeps, given the floor and the target over measures (rules K3, K4 and K7)."""
        kept = list(self.groups)
        for group in sorted(self.groups, key=lambda group: group.newest):
            if group in floor:
                continue
            if reached(self.measure(self.legal(kept))):
                break
            kept.remove(group)
        kept = self.legal(kept)
        return kept if len(kept) == len(self.groups) else self._without_head(kept, floor)

    def legal(self, kept: Sequence[Group]) -> list[Group]:
        """These groups, and the one that must stay with them."""
        opener = self.opener(kept)
        return [group for group in self.groups if group in kept or group is opener]

    def _without_head(self, kept: list[Group], floor: Sequence[Group]) -> list[Group]:
        """A list that never began with a user's message begins with one after a cut, if nothing of the floor leaves."""
        if self.format != "anthropic":
            return kept
        head: list[Group] = []
        for position in sorted(p for group in kept if group.kind != "system" for p in group.positions):
            group = next(group for group in kept if position in group.positions)
            if group in head:
                continue
            if self.views[position].role == "user":
                return [group for group in kept if group not in head]
            if group in floor:
                return kept
            head.append(group)
        return kept
