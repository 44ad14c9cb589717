"""Session files of Gemini CLI in JSON Lines, which newer versions write; older ones write one JSON object.

A line is a message, or a change: a message of the same ``id`` takes the place of the earlier one,
``$rewindTo`` takes back a message and all behind it, ``$set`` replaces fields of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._entries import Agent, Conversation, Entry, counted, inner, string


def _owns(entries: Sequence[Entry]) -> bool:
    return is_session(entries[0])


def is_session(value: Entry) -> bool:
    """Whether an object is a session of Gemini CLI, or the first line of one."""
    return {"sessionId", "projectHash"} <= value.keys()


def _read(entries: Sequence[Entry]) -> Conversation:
    messages: dict[object, Any] = {}
    taken_back = 0
    for entry in entries:
        replaced, rewind = inner(entry, "$set").get("messages"), string(entry, "$rewindTo")
        if rewind is not None:
            taken_back += _rewind(messages, rewind)
        elif isinstance(replaced, list):
            messages = {_name(message): message for message in replaced}
        elif string(entry, "type") is not None:
            messages[_name(entry)] = entry
    return Conversation(list(messages.values()), counted((taken_back, "message", "taken back by a rewind")))


def _name(message: Any) -> object:
    """The id of a message; without one it is only itself, and takes no other's place."""
    name = string(message, "id") if isinstance(message, dict) else None
    return object() if name is None else name


def _rewind(messages: dict[object, Any], name: str) -> int:
    """Take back a message and all behind it, everything where it is not there; how many these were."""
    before = len(messages)
    if name not in messages:
        messages.clear()
    while name in messages:  # From the end, so that it costs by what goes, not by what stays.
        messages.popitem()
    return before - len(messages)


GEMINI_CLI = Agent("gemini_cli", "gemini_cli", _owns, _read)
