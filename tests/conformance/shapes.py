"""The history shapes, and passes of the strategies over them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

import chat_compaction as cc
from chat_compaction._work import OnInvalid
from chat_compaction.counters import Counter
from chat_compaction.triggers import AllOf, Comparison
from tests.conformance import oracle

Evict = Literal["groups", "turns", "turns-then-groups"]

COUNTER = cc.FunctionCounter(len, name="characters")
"""The fixed counter of the shapes: a token a character, with calls, names and the frame of a message."""


@dataclass(frozen=True)
class Shape:
    """One line of the file; ``must`` are the slugs of its properties."""

    id: str
    settings: dict[str, Any]
    must: tuple[str, ...]
    messages: list[Any]

    @property
    def pinned(self) -> frozenset[int]:
        """The positions that are pinned, out of a text such as ``index 3``."""
        words = str(self.settings.get("pinned", "")).replace(",", " ").split()
        return frozenset(int(word) for word in words if word.isdigit())


def load() -> list[Shape]:
    """All shapes, fresh at every call."""
    lines = (Path(__file__).parent / "history-shapes.jsonl").read_text(encoding="utf-8").splitlines()
    return [_shape(json.loads(line)) for line in lines]


def _shape(line: dict[str, Any]) -> Shape:
    must = tuple(text.partition(":")[0] for text in line["must"])
    return Shape(line["id"], line["settings"], must, line["messages"])


def demanding(slug: str) -> list[Shape]:
    """The shapes that must keep a property; never none."""
    found = [shape for shape in load() if slug in shape.must]
    assert found, slug
    return found


def count(messages: Sequence[Any], counter: Counter = COUNTER, format: str = "openai_chat", **settings: Any) -> int:
    """The tokens of a list, by an index that knows nothing else."""
    return cc.MessageIndex.from_messages(messages, counter=counter, format=format, **settings).value(cc.tokens)


@dataclass(frozen=True)
class Setting:
    """A strategy at a share of a shape's own size, with the smallest floors."""

    evict: Evict = "groups"
    share: float = 0.5
    budget: bool = False
    metric: cc.Metric = cc.tokens
    min_messages: int = 0

    def __str__(self) -> str:
        name = f"budget by {self.evict}" if self.budget else f"truncation by {self.metric}"
        return f"{name}, {self.share:.0%}, floor {self.min_messages}"

    def strategy(self, limit: int) -> cc.CompactionStrategy:
        """The strategy that keeps to a limit."""
        if self.budget:
            return cc.TokenBudgetStrategy(
                limit, evict=self.evict, min_preserved_groups=1, min_preserved_messages=self.min_messages
            )
        return cc.TruncationStrategy(
            trigger=self.metric > limit, min_preserved_groups=1, min_preserved_messages=self.min_messages
        )


EVICT: tuple[Evict, ...] = ("groups", "turns", "turns-then-groups")
_SHARES = (0.8, 0.5, 0.25)
_FLOORS = (0, 1)
_TRUNCATION = [
    Setting(share=share, metric=metric, min_messages=floor)
    for metric, share, floor in product((cc.tokens, cc.messages), _SHARES, _FLOORS)
]
_BUDGET = [
    Setting(evict, share, budget=True, min_messages=floor) for evict, share, floor in product(EVICT, _SHARES, _FLOORS)
]
SETTINGS = [*_TRUNCATION, *_BUDGET]


@dataclass(frozen=True)
class Outcome:
    """One pass over one history: the caller's list, a deep copy made before, the output, and that of a second pass."""

    name: str
    before: list[Any]
    pristine: list[Any]
    after: list[Any]
    again: list[Any]
    report: cc.CompactionReport
    strategy: cc.CompactionStrategy
    answer: oracle.Answer | None = None
    pinned: frozenset[int] = frozenset()
    counter: Counter = COUNTER
    format: str = "openai_chat"
    reserved: int = 0

    def limit(self, metric: cc.Metric) -> int | None:
        """The most of a metric that the target allows."""
        target = self.strategy.effective_target
        parts = target.operands if isinstance(target, AllOf) else (target,)
        uppers = [part.upper for part in parts if isinstance(part, Comparison) and part.metric == metric]
        return min((upper for upper in uppers if upper is not None), default=None)

    def index(self, messages: Sequence[Any]) -> cc.MessageIndex:
        """A fresh index of a list, with this pass's settings."""
        return cc.MessageIndex.from_messages(
            messages,
            counter=self.counter,
            format=self.format,
            reserved=self.reserved,
            pinned=[self.before[position] for position in self.pinned],
        )

    def size(self, messages: Sequence[Any]) -> int:
        """The tokens of a list, what is reserved not among them."""
        return self.index(messages).value(cc.tokens) - self.reserved

    @cached_property
    def index_before(self) -> cc.MessageIndex:
        """An index of the input, fresh but for the passes over the same list, which come one after the other."""
        if not (_NEWEST and _NEWEST[0].reads_as(self)):
            _NEWEST[:] = [_Read(self, self.index(self.before))]
        return _NEWEST[0].index

    @cached_property
    def index_after(self) -> cc.MessageIndex:
        """A fresh index of the output."""
        return self.index(self.after)

    @property
    def size_before(self) -> int:
        """The tokens of the input, what is reserved not among them."""
        return self.index_before.value(cc.tokens) - self.reserved

    @property
    def size_after(self) -> int:
        """The tokens of the output, what is reserved not among them."""
        return self.index_after.value(cc.tokens) - self.reserved

    @cached_property
    def kept(self) -> list[int]:
        """The positions of the output's messages by identity; -1 for one that the caller never gave."""
        place = {id(message): position for position, message in enumerate(self.before)}
        return [place.get(id(message), -1) for message in self.after]


@dataclass(frozen=True)
class _Read:
    """What an outcome's input was read as."""

    outcome: Outcome
    index: cc.MessageIndex

    def reads_as(self, other: Outcome) -> bool:
        """Whether the other's input is the same list, as long as it was, and is read in the same way."""
        one = self.outcome
        same = one.before is other.before and one.counter is other.counter and len(self.index) == len(other.before)
        return same and (one.format, one.reserved, one.pinned) == (other.format, other.reserved, other.pinned)


_NEWEST: list[_Read] = []


def run(
    name: str,
    messages: list[Any],
    strategy: cc.CompactionStrategy,
    *,
    pinned: frozenset[int] = frozenset(),
    pristine: list[Any] | None = None,
    counter: Counter = COUNTER,
    format: str = "openai_chat",
    reserved: int = 0,
    answer: oracle.Answer | None = None,
    on_invalid: OnInvalid = "keep",
) -> Outcome:
    """Compact a history, and its output once more, through the reducer."""
    kept_as_was = copy.deepcopy(messages) if pristine is None else pristine
    reducer = cc.as_chat_reducer(
        strategy,
        counter=counter,
        format=format,
        reserved=reserved,
        pinned=[messages[position] for position in pinned],
        on_invalid=on_invalid,
        hooks=(),
    )
    after, report = reducer.reduce_with_report(messages)
    again = reducer.reduce(after)
    return Outcome(
        name, messages, kept_as_was, after, again, report, strategy, answer, pinned, counter, format, reserved
    )


def run_shape(shape: Shape, setting: Setting, tokens: Sequence[int]) -> Outcome:
    """Compact a shape to a share of its own size; ``tokens`` are those of each message."""
    sizes = tokens if setting.metric == cc.tokens else [1] * len(shape.messages)
    limit = int(sum(sizes) * setting.share)
    answer = oracle.ask(
        shape.messages,
        sizes,
        limit,
        evict=setting.evict,
        min_messages=setting.min_messages,
        pinned=shape.pinned,
    )
    name = f"{shape.id}, {setting}"
    return run(name, shape.messages, setting.strategy(limit), pinned=shape.pinned, answer=answer)


@cache
def passes(shape_id: str) -> tuple[Outcome, ...]:
    """All settings over one shape, run once."""
    (shape,) = (shape for shape in load() if shape.id == shape_id)
    tokens = [count([message]) for message in shape.messages]
    return tuple(run_shape(shape, setting, tokens) for setting in SETTINGS)


def all_passes() -> list[Outcome]:
    """Every setting over every shape."""
    return [outcome for shape in load() for outcome in passes(shape.id)]


def to_anthropic(messages: Sequence[Any]) -> list[Any]:
    """The same history as Anthropic has it, message for message: calls and results are blocks."""
    return [_to_anthropic(message) for message in messages]


def _to_anthropic(message: Any) -> Any:
    content = message["content"]
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": _blocks(content)}
        return {"role": "user", "content": [block]}
    thinking = {"type": "thinking", "thinking": message.get("reasoning_content"), "signature": "c2ln"}
    uses = [_tool_use(call) for call in message.get("tool_calls", ())]
    blocks = [*([thinking] if thinking["thinking"] else ()), *_blocks(content), *uses]
    return {"role": "system" if message["role"] == "developer" else message["role"], "content": blocks}


def _tool_use(call: Any) -> Any:
    function = call["function"]
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}


def _blocks(content: Any) -> list[Any]:
    if not isinstance(content, list):
        return [{"type": "text", "text": content}] if content else []
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    image = {"type": "image", "source": source}
    return [image if block["type"] == "image_url" else block for block in content]
