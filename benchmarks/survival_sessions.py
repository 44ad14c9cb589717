"""The sessions of the conformance kit as histories of an agent at work, and how they go on from round to round.

The kit's sessions are words of a user and an assistant. An agent's history has more, so each exchange gets a tool's
call and result, and some get reasoning, an image, a listing that was shown before, or a huge result. What is planted
is the kit's: the same canaries at the same places. By default the user says them, as in the kit; they may as well
stand in what the assistant says, or in what a tool returns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal

from compaction_kit import Turn  # type: ignore[import-untyped]

from .conversations import Message, _output, _prose

Place = Literal["user", "assistant", "tool"]
PLACES: tuple[Place, ...] = ("user", "assistant", "tool")
"""Where a canary is planted."""

NEW_EXCHANGES = 8
"""So many exchanges come before every round but the first."""

_HUGE, _LISTING, _IMAGE = 5, 4, 7
"""Every so many-th exchange has such a thing."""
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@cache
def opening(turns: tuple[Turn, ...], place: Place) -> tuple[Message, ...]:
    """A session of the kit as Chat Completions messages: its system turn, then its user's turns with their answers."""
    system, *rest = turns
    history: list[Message] = [{"role": "system", "content": system.text}]
    for number, (asked, answered) in enumerate(zip(rest[::2], rest[1::2], strict=True)):
        history += _exchange(number, asked, answered.text, place)
    return tuple(history)


@cache
def later(turns: tuple[Turn, ...], round_number: int) -> tuple[Message, ...]:
    """What is new before a round: the session's own filler again, with other work and answers."""
    filler = [turn for turn in turns if turn.role == "user" and turn.canary_id is None]
    first = 1_000 * round_number
    numbers = range(first, first + NEW_EXCHANGES)
    return tuple(message for n in numbers for message in _exchange(n, filler[n % len(filler)], "Done.", "user"))


def _exchange(number: int, asked: Turn, answer: str, place: Place) -> Iterator[Message]:
    """A user's words, in two of three exchanges a tool's call and result, an answer; one of them is planted."""
    chance = random.Random(number)
    planted = None if asked.canary_id is None else asked.text
    said = asked.text if planted is None or place == "user" else "Please go on."
    answer = f"{planted if planted and place == 'assistant' else answer} {_prose(chance, 6)}"
    yield {"role": "user", "content": _with_image(said) if number % _IMAGE == 0 and planted is None else said}
    if planted or number % 3:
        function = {"name": "run", "arguments": f'{{"job": {number}}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "reasoning_content": _prose(chance, 3), "tool_calls": [call]}
        seen = _result(number, chance, planted if place == "tool" else None)
        yield {"role": "tool", "tool_call_id": call["id"], "content": seen}
    yield {"role": "assistant", "content": answer}


def _result(number: int, chance: random.Random, planted: str | None) -> str:
    """What a tool returns; what is planted stands in a line of its own in the middle."""
    if number % _LISTING == 0:
        lines = ["deploy/north.yaml", "deploy/south.yaml", "src/stock/levels.py", "src/orders/reserve.py"] * 4
    else:
        # The kit's canaries have dates of November 2026, as these logs have.
        output = "\n".join(_output(chance) for _ in range(6)).replace("2026-11-", "2025-03-")
        lines = output.splitlines()[: 24 if number % _HUGE == 1 else 6]
    middle = len(lines) // 2
    return "\n".join([*lines[:middle], *([planted] if planted else ()), *lines[middle:]])


def _with_image(text: str) -> list[Message]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
    return [{"type": "text", "text": text}, image]


# -- Anthropic's form ----------------------------------------------------------------------------------


def as_anthropic(history: Sequence[Message], *, compacted: bool = False) -> list[Message]:
    """The same messages for Anthropic's API, without the system message and without reasoning.

    ``compacted``: the answer in the middle says that the provider has compacted all ahead of it.
    """
    messages = [_anthropic(message) for message in history if message["role"] != "system"]
    if compacted:
        answers = [message for message in messages if message["content"][0]["type"] == "text"]
        answer = [message for message in answers if message["role"] == "assistant"][len(answers) // 4]
        answer["content"].insert(0, {"type": "compaction", "content": "They went through logs, step by step."})
    return messages


def _anthropic(message: Message) -> Message:
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    blocks = [part if part["type"] == "text" else _IMAGE_BLOCK for part in parts]
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": {"job": int(call["id"][5:])}}
        for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": [*blocks, *calls]}


_IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}}


def words(value: Any) -> str:
    """Every text in a history, or in a part of one, whatever its format; nothing of the package is asked."""
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
