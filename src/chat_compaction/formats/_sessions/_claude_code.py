"""Session files of Claude Code: JSON Lines that name their parents, one content block a line.

Read is what Claude Code would send on ``--resume``: the lines from the newest one back through
``parentUuid`` to the newest compaction. The lines of one API message (the same ``message.id``) become one
message, and user lines in a row become one, results first, as in a request. Parallel calls fork the chain:
their results, and lines of a message on the chain, are taken from beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from ._entries import Agent, Conversation, Entry, branch, counted, inner, roots, string

_OTHERS = {"summary": "leafUuid", "file-history-snapshot": "snapshot", "queue-operation": "operation"}


def _owns(entries: Sequence[Entry]) -> bool:
    return any(_is_message(entry) or _OTHERS.get(_kind(entry), "\0") in entry for entry in entries)


def _kind(entry: Entry) -> str:
    return string(entry, "type") or ""


def _is_message(entry: Entry) -> bool:
    return _kind(entry) in ("user", "assistant") and inner(entry, "message").get("role") in ("user", "assistant")


def _is_side(entry: Entry) -> bool:
    return bool(entry.get("isSidechain") or string(entry, "agentId"))


def _uuid(entry: Entry) -> str | None:
    return string(entry, "uuid")


def _by_uuid(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {name: entry for entry in entries if (name := _uuid(entry)) is not None}


def _read(entries: Sequence[Entry]) -> Conversation:
    main = [entry for entry in entries if not _is_side(entry)]
    sides = _sidechains([entry for entry in entries if _is_side(entry)])
    found = _Thread.of(main)
    others = {name: _Thread.of(lines).messages() for name, lines in sides.items()}
    if not found.lines and len(others) == 1:  # The file of one sidechain, which newer versions write.
        return Conversation(next(iter(others.values())))
    number = len(others)
    beside = counted((number, "sidechain", "beside the main conversation"))
    if number and not found.lines:
        beside = (f"no main conversation; choose one of the {number:,} sidechains",)
    return Conversation(found.messages(), (*found.notes(), *beside), others)


def _sidechains(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The lines of each sidechain, by its ``agentId`` or else by its first line."""
    first = roots({name: string(entry, "parentUuid") for name, entry in _by_uuid(entries).items()})
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        name = string(entry, "agentId") or first.get(_uuid(entry) or "", "")
        found.setdefault(name, []).append(entry)
    return {name: lines for name, lines in found.items() if any(map(_is_message, lines))}


@attrs.frozen
class _Thread:
    """One conversation of a file: all that was written of it, and the lines that would be sent."""

    all: Sequence[Entry]
    lines: Sequence[Entry]
    boundary: int
    """Where the newest compaction stands; -1 where there is none."""
    bridged: int

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> _Thread:
        linked = _by_uuid(entries)
        written = [entry for entry in entries if _is_message(entry)]
        leaf = next((name for entry in reversed(written) if (name := _uuid(entry)) is not None), None)
        if leaf is None:
            return cls(entries, written, -1, 0)
        parents, bridged = _parents(linked)
        way = [linked[name] for name in branch(leaf, parents)]
        start = max((n for n, entry in enumerate(way) if _is_boundary(entry)), default=-1)
        if start < 0:  # Older versions write the summary alone.
            start = max((n for n, entry in enumerate(way) if entry.get("isCompactSummary")), default=-1)
        boundary = next((n for n, entry in enumerate(entries) if start >= 0 and entry is way[start]), -1)
        chain = [entry for entry in way[max(start, 0) :] if _is_message(entry)]
        ahead = {id(entry) for entry in entries[: max(boundary, 0)]}
        beside = [entry for entry in written if id(entry) not in ahead and _uuid(entry) in linked]
        kept = bridged.intersection(entry["uuid"] for entry in way[max(start, 0) :])
        return cls(entries, _with_beside(chain, beside), boundary, len(kept))

    def messages(self) -> list[Any]:
        """The messages of an API request."""
        return _joined(entry for entry in self.lines if not entry.get("isApiErrorMessage"))

    def notes(self) -> tuple[str, ...]:
        """What was not taken, and why."""
        taken = {id(entry) for entry in self.lines}
        errors = sum(bool(entry.get("isApiErrorMessage")) for entry in self.lines)
        missed = [n for n, entry in enumerate(self.all) if _is_message(entry) and id(entry) not in taken]
        older = sum(number < self.boundary for number in missed)
        attached = sum(_kind(entry) == "attachment" for entry in self.all[max(self.boundary, 0) :])
        return counted(
            (older, "line", "ahead of the newest compaction"),
            (len(missed) - older, "line", "on other branches"),
            (errors, "error", "of the API, which the agent does not send"),
            (attached, "attachment", "which the agent writes into its requests in its own words"),
            (self.bridged, "line", "whose parent is not in the file, tied to the line ahead"),
        )


def _is_boundary(entry: Entry) -> bool:
    return entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"


def _parents(linked: dict[str, Entry]) -> tuple[dict[str, str | None], set[str]]:
    """The parent of each line, and the lines whose own parent was never written (a known fault of the agent)."""
    parents: dict[str, str | None] = {}
    bridged = set()
    ahead = None
    for name, entry in linked.items():
        parent = string(entry, "parentUuid")
        if parent is not None and parent not in linked and ahead is not None:
            bridged.add(name)
            parent = ahead
        parents[name] = parent
        ahead = name
    boundaries = [entry for entry in linked.values() if _is_boundary(entry)]
    if boundaries:
        _keep(inner(boundaries[-1], "compactMetadata"), parents)
    return parents, bridged


def _keep(metadata: Entry, parents: dict[str, str | None]) -> None:
    """Put what a compaction kept behind its anchor; the lines keep their old parents in the file."""
    kept = inner(metadata, "preservedMessages")
    segment = inner(metadata, "preservedSegment")
    anchor, names = string(kept, "anchorUuid"), kept.get("uuids")
    if not isinstance(names, list):
        anchor, head = string(segment, "anchorUuid"), string(segment, "headUuid")
        way = branch(string(segment, "tailUuid") or "", parents)
        names = way[way.index(head) :] if head in way else []
    names = [name for name in names if isinstance(name, str) and name in parents]
    if not names or anchor not in parents:
        return
    moved = set(names)
    for name, parent in parents.items():
        if parent == anchor and name not in moved:
            parents[name] = names[-1]
    parents.update(zip(names, [anchor, *names], strict=False))


def _with_beside(chain: Sequence[Entry], written: Sequence[Entry]) -> list[Entry]:
    """The chain, and from beside it the lines of its messages and the results of their calls."""
    places = {entry["uuid"]: (number, -1) for number, entry in enumerate(chain)}
    messages = {_message_id(entry) for entry in chain} - {None}
    answered = {name for entry in chain for name in _answers(entry)}
    found = list(chain)
    for number, entry in enumerate(written):
        above = string(entry, "parentUuid") or "", string(entry, "sourceToolAssistantUUID") or ""
        parent = places.get(above[0]) or places.get(above[1])
        if entry["uuid"] in places or parent is None:
            continue
        results = set(_answers(entry))
        if _message_id(entry) in messages or (results and not results & answered):
            answered |= results
            places[entry["uuid"]] = (parent[0], number)
            found.append(entry)
    return sorted(found, key=lambda entry: places[entry["uuid"]])


def _message_id(entry: Entry) -> str | None:
    return string(inner(entry, "message"), "id") if entry.get("type") == "assistant" else None


def _answers(entry: Entry) -> list[str]:
    content = inner(entry, "message").get("content")
    blocks = content if isinstance(content, list) and entry.get("type") == "user" else []
    names = (block.get("tool_use_id") for block in blocks if isinstance(block, dict))
    return [name for name in names if isinstance(name, str)]


def _joined(entries: Iterable[Entry]) -> list[Any]:
    """The messages: lines of one API message are one, and so are user lines in a row."""
    messages: list[Any] = []
    started: dict[str, Any] = {}
    joined: dict[int, Any] = {}
    for entry in entries:
        message = entry["message"]
        name = _message_id(entry)
        earlier = started.get(name) if name else None
        if earlier is None and messages and message["role"] == "user" == messages[-1]["role"]:
            earlier = messages[-1]
        if earlier is not None:
            if id(earlier) not in joined:  # The first time, a list of its own: that of the entry stays as it is.
                joined[id(earlier)] = earlier
                earlier["content"] = _blocks(earlier["content"])
            earlier["content"].extend(_blocks(message.get("content")))
            continue
        messages.append({"role": message["role"], "content": message.get("content")})
        if name:
            started[name] = messages[-1]
    for message in joined.values():
        if message["role"] == "user":  # A stable sort: results first, as the API asks.
            message["content"].sort(key=lambda block: not _is_result(block))
    return messages


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


CLAUDE_CODE = Agent("claude_code", "anthropic", _owns, _read)
