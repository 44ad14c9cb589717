"""Short names for messages of the two formats, so that a test shows its history at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format, Message
from chat_compaction.testing import characters_counter

Raw = dict[str, Any]


def system(text: str = "rules") -> Raw:
    return {"role": "system", "content": text}


def user(text: str = "question") -> Raw:
    return {"role": "user", "content": text}


def said(text: str = "answer") -> Raw:
    return {"role": "assistant", "content": text}


def thought(text: str = "hm") -> Raw:
    """Reasoning and nothing else."""
    return {"role": "assistant", "content": None, "reasoning_content": text}


def call(*ids: str, format: str = "openai_chat", text: str | None = None) -> Raw:
    """A response that calls tools."""
    if format == "anthropic":
        blocks: list[Raw] = [{"type": "tool_use", "id": call_id, "name": "look", "input": {}} for call_id in ids]
        return {"role": "assistant", "content": [{"type": "text", "text": text}, *blocks] if text else blocks}
    calls = [{"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call_id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(call_id: str, text: str = "seen") -> Raw:
    """A result in OpenAI's format."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def results(*ids: str, text: str | None = None) -> Raw:
    """Results in Anthropic's format, all in one user message, and perhaps the user's words beside them."""
    blocks: list[Raw] = [{"type": "tool_result", "tool_use_id": call_id, "content": "seen"} for call_id in ids]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": text}] if text else blocks}


def step(*ids: str) -> list[Raw]:
    """Calls and their results."""
    return [call(*ids), *map(result, ids)]


def anthropic_step(*ids: str) -> list[Raw]:
    """Calls and their results in Anthropic's format."""
    return [call(*ids, format="anthropic"), results(*ids)]


def signed(text: str = "answer", thinking: str = "hm") -> Raw:
    """An answer with signed thinking, in Anthropic's format."""
    blocks = [{"type": "thinking", "thinking": thinking, "signature": "s"}, {"type": "text", "text": text}]
    return {"role": "assistant", "content": blocks}


@attrs.frozen(eq=False, repr=False)
class RecordingFormat(Format):
    """OpenAI's format, and the positions that were read in it."""

    name: ClassVar[str] = "recording"
    overhead: ClassVar[int] = 4

    of: Format = FORMATS["openai_chat"]
    read_positions: list[int] = attrs.field(factory=list)

    def read(self, raw: Any, position: int) -> Message:
        self.read_positions.append(position)
        return self.of.read(raw, position)

    def claims(self, raw: Any) -> bool:
        return self.of.claims(raw)

    def since(self) -> list[int]:
        """What was read since the last question."""
        read = list(self.read_positions)
        self.read_positions.clear()
        return read


CHAT = [user("one"), said("two"), user("three"), said("four"), user("five"), said("six")]


def index_of(messages: Sequence[Any] = CHAT, **arguments: Any) -> cc.MessageIndex:
    """An index that counts characters, so that a test can be checked by eye."""
    return cc.MessageIndex.from_messages(messages, **{"counter": characters_counter(), **arguments})


class Drop(cc.CompactionStrategy):
    """A plain class: as short as a strategy gets."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        self.evict(index, self.candidates(index), "drop")


def drop(trigger: cc.Predicate, target: cc.Predicate | None = None, **arguments: Any) -> Drop:
    """The plain strategy with the smallest floor."""
    return Drop(trigger=trigger, target=target, **{"min_preserved_groups": 1, **arguments})
