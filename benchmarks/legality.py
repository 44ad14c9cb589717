"""Whether a list of chat messages may be sent, and whether it is what a user of a budget would expect.

It looks at plain chat-completions dicts and shares nothing with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from .conversations import Message

FAULTS = {
    "orphan": "a result whose call is gone, or does not stand right ahead of it",
    "unanswered": "a call whose results are gone",
    "user": "the newest user message is gone",
    "first": "the system message that came first is gone or no longer first, or nothing stands behind it",
    "budget": "more than the budget, counting text, names and arguments and nothing else",
}


def faults(
    history: Sequence[Message], output: Sequence[Message], budget: int, tokens: Callable[[Message], int]
) -> set[str]:
    """The kinds of faults (see ``FAULTS``) in what was made of a history that had none."""
    checks = {
        "orphan": bool(_orphans(output)),
        "unanswered": bool(_unanswered(output) - _unanswered(history)),
        "user": _newest_user(history) not in output[-len(history) :] if _newest_user(history) else False,
        "first": _first_is_wrong(history, output),
        "budget": sum(map(tokens, output)) > budget,
    }
    return {kind for kind, found in checks.items() if found}


def _ids(message: Message) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _orphans(messages: Sequence[Message]) -> set[str]:
    """Ids of results that do not stand in the run of results behind their call."""
    found: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        if message["role"] != "tool":
            waiting = _ids(message)
        elif message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        else:
            found.add(message["tool_call_id"])
    return found


def _unanswered(messages: Sequence[Message]) -> set[str]:
    """Ids of calls that are not answered in the run of results behind them."""
    found: set[str] = set()
    for place, message in enumerate(messages):
        if ids := _ids(message):
            run = takewhile(lambda other: other["role"] == "tool", messages[place + 1 :])
            found |= set(ids) - {other["tool_call_id"] for other in run}
    return found


def _newest_user(history: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(history) if message["role"] == "user"), None)


def _first_is_wrong(history: Sequence[Message], output: Sequence[Message]) -> bool:
    if not any(message["role"] != "system" for message in output):
        return any(message["role"] != "system" for message in history)
    return bool(history) and history[0]["role"] == "system" and output[0] != history[0]
