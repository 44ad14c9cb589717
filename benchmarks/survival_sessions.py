"""The sessions of the conformance kit as histories of an agent at work, and how they go on from round to round.

The kit's sessions are words of a user and an assistant. An agent's history has more, so each exchange gets a tool's
call and result, and some get reasoning, an image, a listing that was shown before, or a huge result. What is planted
is the kit's: the same canaries at the same places. By default the user says them, as in the kit; they may as well
stand in what the assistant says, or in what a tool returns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from compaction_kit import Turn  # type: ignore[import-untyped]

from .conversations import Message, _output, _prose

Place = Literal["user", "assistant", "tool"]
PLACES: tuple[Place, ...] = ("user", "assistant", "tool")
"""Where a canary is planted."""

NEW_EXCHANGES = 10
"""So many exchanges come before every round but the first."""

_HUGE, _LISTING, _IMAGE = 9, 4, 7
"""Every so many-th exchange has such a thing."""
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def opening(turns: Sequence[Turn], place: Place) -> list[Message]:
    """A session of the kit as Chat Completions messages: its system turn, then its pairs of a user's turn and an answer."""
    system, *rest = turns
    history: list[Message] = [{"role": "system", "content": system.text}]
    for number, (asked, answered) in enumerate(zip(rest[::2], rest[1::2], strict=True)):
        history += _exchange(number, asked, answered.text, place)
    return history


def later(turns: Sequence[Turn], round_number: int) -> list[Message]:
    """What is new before a round: the session's own filler again, with other work and answers."""
    filler = [turn for turn in turns if turn.role == "user" and turn.canary_id is None]
    first = 1_000 * round_number
    numbers = range(first, first + NEW_EXCHANGES)
    return [message for n in numbers for message in _exchange(n, filler[n % len(filler)], "Done.", "user")]


def _exchange(number: int, asked: Turn, answer: str, place: Place) -> Iterator[Message]:
    """A user's words, a tool's call and result, an answer; what is planted stands at one of these."""
    chance = random.Random(number)
    planted = None if asked.canary_id is None else asked.text
    said = asked.text if planted is None or place == "user" else "Please go on."
    seen = _result(number, chance, planted if place == "tool" else None)
    answer = f"{planted if planted and place == 'assistant' else answer} {_prose(chance, 6)}"
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": f'{{"job": {number}}}'}}
    yield {"role": "user", "content": _with_image(said) if number % _IMAGE == 0 and planted is None else said}
    yield {"role": "assistant", "content": None, "reasoning_content": _prose(chance, 3), "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": call["id"], "content": seen}
    yield {"role": "assistant", "content": answer}


def _result(number: int, chance: random.Random, planted: str | None) -> str:
    """What a tool returns; what is planted stands in a line of its own in the middle."""
    if number % _LISTING == 0:
        return "\n".join(["deploy/north.yaml", "src/stock/levels.py", *([planted] if planted else ()), "README.md"] * 3)
    outputs = 6 if number % _HUGE == 1 else 1
    lines = "\n".join(_output(chance) for _ in range(outputs)).splitlines()
    middle = len(lines) // 2
    return "\n".join([*lines[:middle], *([planted] if planted else ()), *lines[middle:]])


def _with_image(text: str) -> list[Message]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
    return [{"type": "text", "text": text}, image]


# -- Anthropic's form ----------------------------------------------------------------------------------


def as_anthropic(history: Sequence[Message], *, compacted_at: int | None = None) -> list[Message]:
    """The same messages for Anthropic's API, without the system message and without reasoning.

    ``compacted_at`` counts the answers: in that one the provider says that it has compacted all ahead of it.
    """
    messages = [_anthropic(message) for message in history if message["role"] != "system"]
    if compacted_at is not None:
        answers = [place for place, message in enumerate(history) if _is_answer(message)]
        place = answers[compacted_at] - (history[0]["role"] == "system")
        block = {"type": "compaction", "content": "The user and the assistant went through logs, step by step."}
        messages[place] = {**messages[place], "content": [block, *messages[place]["content"]]}
    return messages


def _is_answer(message: Message) -> bool:
    return message["role"] == "assistant" and not message.get("tool_calls")


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
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
