"""The history shapes that are about shortened tool results, prompt caches and storage, and are about no summaries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.offload import OffloadStore
from tests.conformance import shapes
from tests.conformance.shapes import COUNTER, Shape, count
from tests.shortening import MAKE, History, problems, run

GONE = "-"
"""A placeholder that is smaller than any result in the shapes: nothing is replaced by what is not smaller."""


def demanding(slug: str) -> pytest.MarkDecorator:
    """A test for each shape that demands a property, but for those about summaries."""
    found = [shape for shape in shapes.demanding(slug) if "summar" not in shape.settings["strategy"]]
    assert found, slug
    return pytest.mark.parametrize("shape", found, ids=attrgetter("id"))


def every_shape() -> pytest.MarkDecorator:
    """A test for each shape with tool results, but for the one that is about length."""
    found = [shape for shape in shapes.load() if results(shape.messages) and len(shape.messages) < 1_000]
    return pytest.mark.parametrize("shape", found, ids=attrgetter("id"))


def results(messages: Sequence[Any]) -> list[Any]:
    """The tool results, in order."""
    return [message for message in messages if message["role"] == "tool"]


def clear(**arguments: Any) -> cc.ToolResultStrategy:
    """Clears what may be cleared, whenever it is asked."""
    defaults: dict[str, Any] = {"trigger": cc.always, "target": cc.never, "placeholder": GONE}
    return cc.ToolResultStrategy(**{**defaults, **arguments})


def compacted(messages: list[Any], strategy: cc.CompactionStrategy, pinned: frozenset[int] = frozenset()) -> list[Any]:
    """What is sent, after all that holds for every strategy was asked."""
    pristine = copy.deepcopy(messages)
    outcome = run(History("shape", "openai_chat", messages, pinned, counter=COUNTER), "shape", strategy)
    assert problems(outcome, strategy) == []
    assert messages == pristine
    return outcome.after


# -- which results are cleared -----------------------------------------------------------------------------


def recent_tools_kept(before: Sequence[Any], after: Sequence[Any], keep: int) -> Iterator[str]:
    """The newest results are the very same; of the older ones each is the same or a stub under the same id."""
    old, new = results(before), results(after)
    if [message["tool_call_id"] for message in old] != [message["tool_call_id"] for message in new]:
        yield "other results than there were"
        return
    for age, (was, now) in enumerate(zip(reversed(old), reversed(new), strict=True)):
        if was is not now and (age < keep or now != {**was, "content": GONE}):
            yield f"the result {age} from the end is {now}"


def protected_tool_kept(before: Sequence[Any], after: Sequence[Any], tool: str) -> Iterator[str]:
    """Results of this tool are the very same."""
    calls = [call for message in before for call in message.get("tool_calls", ())]
    ids = {call["id"] for call in calls if call["function"]["name"] == tool}
    for was, now in zip(before, after, strict=True):
        if was is not now and was.get("tool_call_id") in ids:
            yield f"a result of {tool} is {now}"


RECENT: dict[str, tuple[int, cc.Predicate]] = {
    "c30": (2, cc.tool_groups > 2),
    "c70": (1, cc.tool_groups > 1),
    "c73": (1, cc.always),
}
"""How many results each shape keeps, and when it clears."""


@demanding("recent_tools_kept")
def test_recent_tools_kept(shape: Shape) -> None:
    """Of each shape, before each call of the model: so many raw results are seen, and the others are stubs."""
    keep, trigger = RECENT[shape.id]
    for length in range(1, len(shape.messages) + 1):
        before = shape.messages[:length]
        if before[-1].get("tool_calls"):
            continue
        after = compacted(before, clear(trigger=trigger, keep_tool_uses=keep))
        assert list(recent_tools_kept(before, after, keep)) == []
        raw = [message for message in results(after) if message["content"] != GONE]
        assert len(raw) == min(keep, len(results(before)))


@every_shape()
@pytest.mark.parametrize("keep", [0, 2])
def test_recent_tools_are_kept_in_every_shape(shape: Shape, keep: int) -> None:
    """Whatever a shape is about."""
    after = compacted(shape.messages, clear(keep_tool_uses=keep, min_preserved_groups=0), shape.pinned)
    assert list(recent_tools_kept(shape.messages, after, keep)) == []


@demanding("protected_tool_kept")
def test_protected_tool_kept(shape: Shape) -> None:
    """No raw result is left but those of the tool that asks the user, which would be cleared too."""
    after = compacted(shape.messages, clear(keep_tool_uses=0, exclude_tools=["ask_user"]))
    assert list(protected_tool_kept(shape.messages, after, "ask_user")) == []
    assert list(protected_tool_kept(shape.messages, compacted(shape.messages, clear(keep_tool_uses=0)), "ask_user"))


@every_shape()
def test_protected_tools_are_kept_in_every_shape(shape: Shape) -> None:
    """Whatever a shape is about, and whichever of its tools it is."""
    calls = [call for message in shape.messages for call in message.get("tool_calls", ())]
    for tool in {call["function"]["name"] for call in calls}:
        after = compacted(shape.messages, clear(keep_tool_uses=0, exclude_tools=[tool]), shape.pinned)
        assert list(protected_tool_kept(shape.messages, after, tool)) == []


# -- the prompt cache -----------------------------------------------------------------------------------------


@demanding("prefix_stable")
def test_prefix_stable(shape: Shape) -> None:
    """K11: below the trigger each request starts with the whole former one; above it, up to the first edit."""
    size = count(shape.messages)
    for trigger in (cc.tokens > 10 * size, cc.tokens > size // 2):
        strategy = clear(trigger=trigger, target=cc.tokens <= size // 3, keep_tool_uses=1)
        index, former = cc.MessageIndex.from_messages([], counter=COUNTER, format="openai_chat"), list[Any]()
        changed = 0
        for message in shape.messages:
            index.extend([message])
            report = strategy.compact(index, hooks=())
            request = index.included_messages()
            same = len(former) if report.first_changed is None else report.first_changed
            assert list(map(id, request[:same])) == list(map(id, former[:same]))
            assert report.changed or [*map(id, request)] == [*map(id, former), id(message)]
            changed, former = changed + report.changed, request
        assert bool(changed) == (trigger != (cc.tokens > 10 * size))
        assert changed < len(results(shape.messages))


# -- storage --------------------------------------------------------------------------------------------------------


def stored(messages: Sequence[Any]) -> list[Any]:
    """Saved as JSON and loaded."""
    loaded: list[Any] = json.loads(json.dumps(messages))
    return loaded


@demanding("roundtrip")
@pytest.mark.parametrize("name", MAKE)
def test_roundtrip(shape: Shape, name: str) -> None:
    """Every strategy in turn: stored and loaded, the next request is the same as without, pins by what they say."""
    far_below, marked = 100_000, [shape.messages[position] for position in shape.pinned]
    for limit in (far_below, 1_200) if shape.pinned else (far_below,):
        histories = [shape.messages, shape.messages]
        for number in range(3):
            asked = {"role": "user", "content": f"And bay {number}? " * 20}
            sent = []
            for history in ([*histories[0], asked], stored([*histories[1], asked])):
                reducer = cc.as_chat_reducer(
                    MAKE[name](limit, OffloadStore("memory://shapes")),
                    counter=COUNTER,
                    pinned=marked.__contains__,
                    hooks=(),
                )
                sent.append(reducer.reduce(history))
            assert sent[0] == sent[1]
            assert all(message in sent[1] for message in marked)
            assert len(sent[0]) == len(histories[0]) + 1 or limit != far_below
            histories = sent


# -- all of it ------------------------------------------------------------------------------------------------------

TESTED: dict[str, Callable[..., None]] = {
    "prefix_stable": test_prefix_stable,
    "protected_tool_kept": test_protected_tool_kept,
    "recent_tools_kept": test_recent_tools_kept,
    "roundtrip": test_roundtrip,
}
"""The properties of the file that this module tests, each over every shape that demands it and has no summary."""
