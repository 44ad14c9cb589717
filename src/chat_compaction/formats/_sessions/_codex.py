"""Session files of Codex ("rollouts"): JSON Lines of items of the Responses API, and of events.

Read is the history that Codex rebuilds on ``resume``: the ``response_item`` entries in order; a
``compacted`` entry replaces what stands ahead of it; ``thread_rolled_back`` takes the newest turns back.
In files of the first versions the items stand bare, behind a line about the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    history: list[Any] = []
    summaries: list[int] = []
    compacted = rolled_back = snapshots = rebuilt = 0
    for entry in entries:
        kind, payload = entry.get("type"), inner(entry, "payload")
        if kind == "compacted":
            compacted += 1
            kept = payload.get("replacement_history")
            rebuilt += not isinstance(kept, list)
            history = list(kept) if isinstance(kept, list) else _rebuilt(history, payload.get("message"), summaries)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            rolled_back += 1
            _roll_back(history, payload.get("num_turns"))
        else:
            item = payload if kind == "response_item" else {} if kind in _ENTRIES else entry
            snapshots += item.get("type") == "ghost_snapshot"
            if isinstance(item.get("type"), str) and item["type"] != "ghost_snapshot":
                history.append(item)
    notes = counted(
        (compacted, "compaction", "replaced what stood ahead"),
        (rebuilt, "compaction", "whose result was not recorded, rebuilt as the user's messages and the summary"),
        (rolled_back, "rollback", "took the newest turns back"),
        (snapshots, "snapshot", "of the files, which is not sent"),
    )
    return Conversation(history, notes)


def _rebuilt(history: list[Any], summary: Any, summaries: list[int]) -> list[Any]:
    """What older versions make of a compaction: what was said for the user, then the summary as a user's message."""
    said = [item for item in history if item.get("role") in ("user", "developer") and id(item) not in summaries]
    text = summary if isinstance(summary, str) else ""
    last = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    summaries.append(id(last))
    return [*said, last]


def _roll_back(history: list[Any], turns: Any) -> None:
    starts = [number for number, item in enumerate(history) if _opens_turn(item)]
    if starts and isinstance(turns, int) and turns > 0:
        del history[starts[-min(turns, len(starts))] :]


def _opens_turn(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("role") != "user":
        return False
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else {}
    text = first.get("text") if isinstance(first, dict) else None
    return not (isinstance(text, str) and text.lstrip().startswith(_CONTEXT))


CODEX = Agent("codex", "openai_responses", _owns, _read)
