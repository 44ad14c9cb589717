"""The history shapes: what is counted, and how (rules C1 and C2)."""

import copy
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from tests import _shared
from tests.conformance import measures, shapes
from tests.conformance.properties import wrong
from tests.conformance.shapes import COUNTER, Setting, Shape, count, demanding, run


def quarter(text: str) -> int:
    """A token for four characters, as the settings of the shapes reckon."""
    return math.ceil(len(text) / 4)


@pytest.mark.parametrize(
    ("shape", "limit", "reserved"),
    [
        *((shape, 1_500, 1_200) for shape in demanding("counts_tools")),
        *((shape, 800, 200) for shape in demanding("reserve_kept")),
    ],
    ids=lambda value: value.id if isinstance(value, Shape) else str(value),
)
def test_counts_tools(shape: Shape, limit: int, reserved: int) -> None:
    """Tool schemas and room for the answer, given as reserved tokens, are part of trigger, target and report."""
    for setting in (Setting(), *(Setting(evict, budget=True) for evict in shapes.EVICT)):
        strategy = setting.strategy(limit)
        counter = cc.FunctionCounter(quarter)
        outcome = run(shape.id, shape.messages, strategy, counter=counter, reserved=reserved)
        assert outcome.report.fits
        assert outcome.report.changed
        assert [*wrong([outcome]), *measures.counts_tools(outcome)] == []


@pytest.mark.parametrize("shape", demanding("counts_args"), ids=attrgetter("id"))
def test_counts_args(shape: Shape) -> None:
    """Rule C1: what a call says is counted."""
    without, characters = copy.deepcopy(shape.messages), 0
    for message in without:
        for call in message.get("tool_calls", ()):
            characters += len(call["function"]["arguments"])
            call["function"]["arguments"] = ""
    assert characters > 1_000
    assert list(measures.counts_args(count(shape.messages), count(without), characters)) == []


@pytest.mark.parametrize("shape", demanding("image_flat"), ids=attrgetter("id"))
def test_image_flat(shape: Shape) -> None:
    """Rule C1: an image costs what is set, never the length of its base64."""
    larger = copy.deepcopy(shape.messages)
    images = [part["image_url"] for message in larger for part in parts(message) if part["type"] == "image_url"]
    for image in images:
        image["url"] *= 2
    costs = cc.counters.OpenAIMediaCosts()
    dearer = count(shape.messages, media_costs=attrs.evolve(costs, image=costs.image + 100))
    added = 100 * len(images)
    assert images
    assert list(measures.image_flat(count(shape.messages), count(larger), dearer, added)) == []


def parts(message: Any) -> Sequence[Any]:
    return message["content"] if isinstance(message["content"], list) else ()


@pytest.mark.parametrize("vocabulary", ["estimate", "o200k_base"])
@pytest.mark.parametrize("shape", demanding("dense_text_counted"), ids=attrgetter("id"))
def test_dense_text_counted(shape: Shape, vocabulary: str) -> None:
    """Rule C1: Chinese, Japanese and base64 cost more than a token for four characters."""
    counter = cc.EstimateCounter() if vocabulary == "estimate" else cc.TokenizerCounter(_shared.o200k_tokenizer())
    dense = [message for message in shape.messages if len(message["content"] or "") > 400]
    assert dense
    for message in dense:
        assert list(measures.dense_text_counted(count([message], counter), len(message["content"]))) == []


@pytest.mark.parametrize("shape", shapes.load(), ids=attrgetter("id"))
def test_count_monotonic(shape: Shape) -> None:
    """Messages only add to the count, one by one, and the sum is that of the whole list."""
    for counter in (COUNTER, cc.EstimateCounter()):
        index = cc.MessageIndex.from_messages([], counter=counter, format="openai_chat")
        counts = [0]
        for message in shape.messages:
            index.extend([message])
            counts.append(index.value(cc.tokens))
        assert list(measures.count_monotonic(counts)) == []
        assert counts[-1] == count(shape.messages, counter) == count(shape.messages, counter, format="auto")
