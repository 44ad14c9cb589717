"""The conversations that the benchmark runs on: a made one, the same everywhere, and a recorded one where it is there.

All are lists of OpenAI chat-completions dicts. Every run of the benchmark takes fresh texts (:func:`salted`), so that
no memory of an earlier run, ours or a tokenizer's, makes a later one look faster.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

Message = dict[str, Any]

MESSAGES = 822
"""The length of the made conversation: that of the first comparison that this project did."""
RECORDED_MESSAGES = 901

_SUBJECTS = ("the reservation", "a worker", "every retry", "the nightly export", "our migration", "the new index")
_VERBS = ("holds", "reads", "drops", "rewrites", "waits for", "collides with", "times out on", "still caches")
_OBJECTS = ("the stock table", "an open lock", "two regions", "a stale token", "the audit log", "its own queue")
_ENDINGS = ("since 2.7.3", "in both regions", "under load", "when clocks are set back", "as tests show", "at night")
_TOOLS = ("read_file", "run_command", "search_code", "query_metrics", "open_ticket")
_PATHS = ("src/stock/levels.py", "src/orders/reserve.py", "tests/test_export.py", "deploy/north.yaml", "README.md")
_NAMES = ("level", "delta", "row", "cursor", "batch", "window", "retries", "digest")


def synthetic(messages: int = MESSAGES, seed: int = 4) -> list[Message]:
    """A conversation of an agent with its tools: the same for the same arguments, on every machine.

    A system message, then turns: a user's question, rounds of one to three parallel calls with their results, an
    answer. Texts are prose, code, JSON and logs, about 200 tokens each; ids are unique and every call has its result,
    but those that the length cuts off: then the last message is replaced by an answer.
    """
    chance = random.Random(seed)
    history: list[Message] = [{"role": "system", "content": "You are a careful release agent. " + _prose(chance, 8)}]
    numbers = count(1)
    while len(history) < messages:
        history.extend(_turn(chance, numbers))
    return _closed(history[:messages])


def _turn(chance: random.Random, numbers: Iterator[int]) -> Iterator[Message]:
    yield {"role": "user", "content": _prose(chance, chance.randint(1, 6))}
    for _ in range(chance.randint(1, 5)):
        calls = [_call(chance, next(numbers)) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        yield {"role": "assistant", "content": _prose(chance, chance.randint(0, 2)) or None, "tool_calls": calls}
        for call in calls:
            yield {"role": "tool", "tool_call_id": call["id"], "content": _output(chance)}
    yield {"role": "assistant", "content": _prose(chance, chance.randint(2, 12))}


def _call(chance: random.Random, number: int) -> Message:
    arguments = {"path": chance.choice(_PATHS), "note": _prose(chance, 1), "limit": chance.randint(1, 400)}
    function = {"name": chance.choice(_TOOLS), "arguments": json.dumps(arguments)}
    return {"id": f"call_{number:05}", "type": "function", "function": function}


def _prose(chance: random.Random, sentences: int) -> str:
    words = (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS)
    return " ".join(" ".join(map(chance.choice, words)).capitalize() + "." for _ in range(sentences))


def _output(chance: random.Random) -> str:
    kind = chance.choice((_code, _rows, _log, _log))
    return "\n".join(kind(chance) for _ in range(chance.randint(2, 28)))


def _code(chance: random.Random) -> str:
    name, other = chance.choice(_NAMES), chance.choice(_NAMES)
    return f"    {name}_{other} = {other}.get({chance.randint(0, 99)}, default={name!r})  # {_prose(chance, 1)[:40]}"


def _rows(chance: random.Random) -> str:
    return json.dumps({name: chance.randint(0, 10**6) for name in chance.sample(_NAMES, 3)})


def _log(chance: random.Random) -> str:
    clock = f"2026-11-{chance.randint(1, 30):02}T{chance.randint(0, 23):02}:{chance.randint(0, 59):02}"
    return f"{clock} WARN pod-{chance.randint(1, 16)} {_prose(chance, 1)} id={chance.getrandbits(64):016x}"


def _closed(history: list[Message]) -> list[Message]:
    """The list of the same length where plain answers stand for calls at its end whose results were cut off."""
    length = len(history)
    last = max((place for place, message in enumerate(history) if message["role"] != "tool"), default=0)
    if history[last].get("tool_calls"):
        del history[last:]
    return [*history, *({"role": "assistant", "content": "Done."} for _ in range(length - len(history)))]


def grouped(groups: int, seed: int = 4) -> list[Message]:
    """A conversation of so many groups behind its system message: a call and its results are one."""
    history = synthetic(groups * 3, seed)
    starts = [place for place, message in enumerate(history) if message["role"] in ("user", "assistant")]
    return history[: starts[groups]]


def stretched(messages: Sequence[Message], length: int) -> list[Message]:
    """The conversation again and again up to a length, each time with texts and ids of its own."""
    copies = range(-(-length // len(messages)))
    return [
        message
        for copy in copies
        for message in salted(messages, f"copy {copy}", own_ids=True)
        if copy == 0 or message["role"] != "system"
    ][:length]


def salted(messages: Sequence[Message], salt: str, own_ids: bool = False) -> list[Message]:
    """The conversation with the salt in front of every text, so that nobody has met these texts before."""
    return [_salted(message, salt, f"{salt}: " if own_ids else "") for message in messages]


def _salted(message: Message, salt: str, ids: str) -> Message:
    fresh = dict(message)
    if isinstance(content := message.get("content"), str) and content:
        fresh["content"] = f"{salt}: {content}"
    if "tool_call_id" in message:
        fresh["tool_call_id"] = ids + message["tool_call_id"]
    if message.get("tool_calls"):
        fresh["tool_calls"] = [_salted_call(call, salt, ids) for call in message["tool_calls"]]
    return fresh


def _salted_call(call: Message, salt: str, ids: str) -> Message:
    arguments = {"salt": salt, **json.loads(call["function"]["arguments"])}
    return {**call, "id": ids + call["id"], "function": {**call["function"], "arguments": json.dumps(arguments)}}


def text_of(message: Message) -> str:
    """What counts of a message: its text, and names and arguments of its calls. Media and framing count nothing."""
    calls = message.get("tool_calls")
    content = message.get("content") or ""
    if not calls:
        return content if isinstance(content, str) else ""
    return content + "".join(call["function"]["name"] + call["function"]["arguments"] for call in calls)


def recorded(messages: int = RECORDED_MESSAGES) -> list[Message] | None:
    """The longest recorded session as chat completions, or None where the recorded data is not there.

    Calls that were interrupted and so have no result are left out, since a peer may refuse them.
    """
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("CHAT_COMPACTION_SHARED") or root.parent / "shared") / "data" / "sessions"
    file = folder / "anthropic" / "pi-mono-001.json"
    if not file.is_file():
        return None
    history = [chat for message in json.loads(file.read_text(encoding="utf-8")) for chat in _as_chat(message)]
    answered = {message["tool_call_id"] for message in history if "tool_call_id" in message}
    return _closed([whole for message in history for whole in _without_open(message, answered)][:messages])


def _without_open(message: Message, answered: set[str]) -> list[Message]:
    """The message with only such calls as have a result; nothing, if nothing is left of it."""
    if "tool_calls" not in message:
        return [message]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    calls = [call for call in message["tool_calls"] if call["id"] in answered]
    if calls:
        return [{**rest, "tool_calls": calls}]
    return [rest] if rest["content"] else []


def _as_chat(message: Message) -> list[Message]:
    """One Anthropic message as chat completions: results as messages of their own, reasoning left out."""
    blocks = message["content"]
    if isinstance(blocks, str):
        return [{"role": message["role"], "content": blocks}]
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if message["role"] == "user":
        results = [block for block in blocks if block["type"] == "tool_result"]
        said = [{"role": "user", "content": text}] if text or not results else []
        return [
            *({"role": "tool", "tool_call_id": one["tool_use_id"], "content": _flat(one)} for one in results),
            *said,
        ]
    calls = [
        {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["input"])}}
        for one in blocks
        if one["type"] == "tool_use"
    ]
    return [{"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}]


def _flat(result: Message) -> str:
    content = result.get("content") or ""
    return content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content)
