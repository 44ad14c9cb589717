"""Session files of Gemini CLI in JSON Lines, which newer versions write; older ones write one JSON object.

A line is a message, or a change: a message of the same ``id`` takes the place of the earlier one,
``$rewindTo`` takes back a message and all behind it, ``$set`` replaces fields of the session.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._entries import Agent, Conversation, Entry, counted, inner


def _owns(entries: Sequence[Entry]) -> bool:
    return is_session(entries[0])


def is_session(value: Entry) -> bool:
    """Whether an object is a session of Gemini CLI, or the first line of one."""
    return {"sessionId", "projectHash"} <= value.keys()


def _read(entries: Sequence[Entry]) -> Conversation:
    messages: dict[str, Entry] = {}
    taken_back = 0
    for number, entry in enumerate(entries):
        replaced = inner(entry, "$set").get("messages")
        if "$rewindTo" in entry:
            names = list(messages)
            gone = names[names.index(entry["$rewindTo"]) if entry["$rewindTo"] in messages else 0 :]
            taken_back += len(gone)
            for name in gone:
                del messages[name]
        elif isinstance(replaced, list):
            messages = {str(message.get("id", at)): message for at, message in enumerate(replaced)}
        elif isinstance(entry.get("type"), str):
            messages[str(entry.get("id", f"line {number}"))] = entry
    return Conversation(list(messages.values()), counted((taken_back, "message", "taken back by a rewind")))


GEMINI_CLI = Agent("gemini_cli", "gemini_cli", _owns, _read)
