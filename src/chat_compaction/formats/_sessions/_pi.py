"""Session files of the pi coding agent: JSON Lines, a header and entries that form a tree by ``id`` and ``parentId``.

Read is what pi builds its context from (its "Session File Format"): the way from the root to the newest
entry; a compaction on it stands as its summary, then come the messages from ``firstKeptEntryId`` on. The
summaries and the messages of extensions become the messages that pi itself makes of them. In files of the
first version the entries are a plain sequence, and a compaction names its first kept entry by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ._entries import Agent, Conversation, Entry, branch, counted, string


def _owns(entries: Sequence[Entry]) -> bool:
    return entries[0].get("type") == "session" and bool({"cwd", "version", "provider"} & entries[0].keys())


def _read(entries: Sequence[Entry]) -> Conversation:
    way = _way(entries)
    start = max((number for number, entry in enumerate(way) if entry.get("type") == "compaction"), default=None)
    kept = way
    if start is not None:
        first = _first_kept(way[start], way, entries)
        kept = [way[start], *way[min(first, start) : start], *way[start + 1 :]]
    taken, ahead = {id(entry) for entry in kept}, {id(entry) for entry in way[: start or 0]}
    said = [entry for entry in entries if entry.get("type") != "compaction" and _message(entry) is not None]
    missed = [id(entry) for entry in said if id(entry) not in taken]
    older = len(ahead.intersection(missed))
    messages = [
        message
        for number, entry in enumerate(kept)
        # An earlier compaction among what was kept is no message any more.
        if (message := _message(entry)) is not None and (number == 0 or entry.get("type") != "compaction")
    ]
    notes = counted(
        (older, "message", "ahead of the newest compaction"),
        (len(missed) - older, "message", "on other branches"),
    )
    return Conversation(messages, notes)


def _way(entries: Sequence[Entry]) -> list[Entry]:
    """The entries from the root to the newest one."""
    linked = {name: entry for entry in entries[1:] if (name := string(entry, "id")) is not None}
    if not linked:
        return list(entries[1:])
    leaf = list(linked)[-1]
    parents = {name: string(entry, "parentId") for name, entry in linked.items()}
    return [linked[name] for name in branch(leaf, parents)]


def _first_kept(compaction: Entry, way: Sequence[Entry], entries: Sequence[Entry]) -> int:
    """Where in the way the kept entries begin; at the compaction itself where it does not say."""
    number = compaction.get("firstKeptEntryIndex")
    if type(number) is int and 0 < number < len(entries):  # The header counts.
        return next((at for at, entry in enumerate(way) if entry is entries[number]), len(way))
    name = string(compaction, "firstKeptEntryId")
    return next((at for at, entry in enumerate(way) if name is not None and entry.get("id") == name), len(way))


def _message(entry: Entry) -> Any | None:
    """The message that pi makes of an entry; None for what is never sent."""
    kind = entry.get("type")
    if kind == "message":
        return entry.get("message")
    if kind == "compaction":
        fields = {"role": "compactionSummary", "summary": entry.get("summary")}
        return {**fields, "tokensBefore": entry.get("tokensBefore"), "timestamp": _milliseconds(entry)}
    if kind == "branch_summary" and entry.get("summary"):
        fields = {"role": "branchSummary", "summary": entry["summary"], "fromId": entry.get("fromId")}
        return {**fields, "timestamp": _milliseconds(entry)}
    if kind == "custom_message":
        fields = {key: entry[key] for key in ("customType", "content", "display", "details") if key in entry}
        return {"role": "custom", **fields, "timestamp": _milliseconds(entry)}
    return None


def _milliseconds(entry: Entry) -> int | None:
    try:
        return int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)
    except (KeyError, OSError, OverflowError, TypeError, ValueError):  # Times far off have no number everywhere.
        return None


PI = Agent("pi", "pi_session", _owns, _read)
