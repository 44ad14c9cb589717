"""Session files of Codex ("rollouts"): JSON Lines of items of the Responses API, and of events.

Read is the history that Codex rebuilds on ``resume``: the ``response_item`` entries in order; a
``compacted`` entry replaces what stands ahead of it; ``thread_rolled_back`` takes the newest turns back.
In files of the first versions the items stand bare, behind a line about the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ._entries import Agent, Conversation, Entry, counted, inner

_ENTRIES = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")

# What Codex itself says in the user's role: no turn of the user's begins there.
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<skill>",
    "# AGENTS.md instructions",
)


def _owns(entries: Sequence[Entry]) -> bool:
    return any(_is_wrapped(entry) for entry in entries) or _is_bare_header(entries[0])


def _is_wrapped(entry: Entry) -> bool:
    return entry.get("type") in _ENTRIES and isinstance(entry.get("payload"), dict)


def _is_bare_header(entry: Entry) -> bool:
    return {"id", "timestamp"} <= entry.keys() and not {"type", "role"} & entry.keys() and "instructions" in entry


def _read(entries: Sequence[Entry]) -> Conversation:
    history = _History()
    compacted = rolled_back = snapshots = rebuilt = 0
    for entry in entries:
        kind, payload = entry.get("type"), inner(entry, "payload")
        if kind == "compacted":
            compacted += 1
            kept = payload.get("replacement_history")
            if isinstance(kept, list):
                history.replace(kept)
            else:
                rebuilt += 1
                history.rebuild(payload.get("message"))
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            rolled_back += 1
            history.roll_back(payload.get("num_turns"))
        else:
            item = payload if kind == "response_item" else {} if kind in _ENTRIES else entry
            snapshots += item.get("type") == "ghost_snapshot"
            if isinstance(item.get("type"), str) and item["type"] != "ghost_snapshot":
                history.add(item)
    notes = counted(
        (compacted, "compaction", "replaced what stood ahead"),
        (rebuilt, "compaction", "whose result was not recorded, rebuilt as the user's messages and the summary"),
        (rolled_back, "rollback", "took the newest turns back"),
        (snapshots, "snapshot", "of the files, which is not sent"),
    )
    return Conversation(history.items, notes)


@attrs.define
class _History:
    """The items so far. Each is looked at once: compactions and rollbacks cost by what they change."""

    items: list[Any] = attrs.field(factory=list)
    turns: list[int] = attrs.field(factory=list)
    """Where turns of the user's begin."""
    kept: int = 0
    """How many items a rebuilt compaction kept: all of them would stay at the next one, too."""
    summary: Any = None
    """The item that stands behind these, if it still does."""

    def add(self, item: Any) -> None:
        if _opens_turn(item):
            self.turns.append(len(self.items))
        self.items.append(item)

    def replace(self, items: Sequence[Any], start: int = 0) -> None:
        """Put other items in the place of all from ``start`` on."""
        del self.items[start:]
        while self.turns and self.turns[-1] >= start:
            self.turns.pop()
        self.kept = min(self.kept, start)
        for item in items:
            self.add(item)

    def rebuild(self, message: Any) -> None:
        """What older versions make of a compaction: what was said for the user, then the summary as a user's message.

        The summary of an earlier one is no longer among them.
        """
        new = [item for item in self.items[self.kept :] if _is_said(item) and item is not self.summary]
        self.replace(new, self.kept)
        self.kept = len(self.items)
        text = message if isinstance(message, str) else ""
        self.summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        self.add(self.summary)

    def roll_back(self, turns: Any) -> None:
        """Take the newest turns back; a number that is none takes nothing."""
        if self.turns and type(turns) is int and turns > 0:
            self.replace((), self.turns[-min(turns, len(self.turns))])


def _is_said(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") in ("user", "developer")


def _opens_turn(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("role") != "user":
        return False
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else {}
    text = first.get("text") if isinstance(first, dict) else None
    return not (isinstance(text, str) and text.lstrip().startswith(_CONTEXT))


CODEX = Agent("codex", "openai_responses", _owns, _read)
