"""``ToolResultCompactionStrategy`` of the Microsoft Agent Framework (.NET), by its documented behaviour.

The first table is where ``style="collapse"`` does the same, the second where it does not, on purpose:
docs/strategies/tool-result.md says why. Calls have long arguments, which count, since a list that is no shorter than
its group is not written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.strategies.tool_result import ToolResultStrategy, UsedTool
from chat_compaction.testing import RecordingCounter
from tests.build import Raw, said, system, user

ARGUMENTS = f'{{"question": "{"what is it like " * 6}"}}'
SUNNY, RAINY, DOCS = "Sunny and warm. " * 4, "Rainy and cold. " * 4, "Found three. " * 4


def their_list(uses: Sequence[UsedTool]) -> str:
    """Each tool once, in the order of its first call, with its results below, if it gave any."""
    by_name: dict[str, list[str]] = {}
    for use in uses:
        by_name.setdefault(use.name, []).extend([use.result] if use.result else [])
    lines = [line for name, found in by_name.items() for line in (f"{name}:", *(f"  - {text}" for text in found))]
    return "\n".join(["[Tool Calls]", *lines])


def call(arguments: str = ARGUMENTS, /, **tools: str) -> Raw:
    """A response that calls a tool by each id."""
    calls = [
        {"id": i, "type": "function", "function": {"name": tool, "arguments": arguments}} for i, tool in tools.items()
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, text: str) -> Raw:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


ONE = [user("Q1"), call(a="weather"), result("a", SUNNY), said("A1"), user("Q2")]
TWO = [*ONE, call(b="search"), result("b", DOCS), said("A2"), user("Q3")]


@attrs.frozen
class Case:
    """A history, the settings of theirs, and what is sent: texts, and ``call``/``result`` where a group stays."""

    name: str
    history: list[Raw]
    sent: list[str]
    trigger: cc.Predicate = cc.always
    target: cc.Predicate | None = None
    groups: int = 1
    excluded: tuple[int, ...] = ()


WEATHER, SEARCH = f"[Tool Calls]\nweather:\n  - {SUNNY}", f"[Tool Calls]\nsearch:\n  - {DOCS}"
AS_IT_WAS = ["Q1", "call", "result", "A1", "Q2"]

SAME = [
    Case("the trigger does not fire", ONE, AS_IT_WAS, trigger=cc.tokens > 1_000),
    Case("an old group becomes one message", ONE, ["Q1", WEATHER, "A1", "Q2"]),
    Case("system messages stay, and do not count", [system("S"), *ONE], ["S", "Q1", WEATHER, "A1", "Q2"]),
    Case("the newest groups stay", ONE, AS_IT_WAS, groups=3),
    Case("one group fewer", ONE, ["Q1", WEATHER, "A1", "Q2"], groups=2),
    Case("more groups than there are", ONE, AS_IT_WAS, groups=16),
    Case("all old groups, oldest first", TWO, ["Q1", WEATHER, "A1", "Q2", SEARCH, "A2", "Q3"]),
    Case(
        "until the target holds",
        TWO,
        ["Q1", WEATHER, "A1", "Q2", "call", "result", "A2", "Q3"],
        target=cc.tool_groups <= 1,
    ),
    Case(
        "without a target until the trigger does not fire",
        TWO,
        ["Q1", WEATHER, "A1", "Q2", "call", "result", "A2", "Q3"],
        trigger=cc.tool_groups > 1,
    ),
    Case(
        "two conditions at once",
        ONE,
        ["Q1", WEATHER, "A1", "Q2"],
        trigger=(cc.tokens > 0) & (cc.tool_groups > 0),
    ),
    Case(
        "several tools of one response",
        [user("Q1"), call(a="weather", b="search"), result("a", SUNNY), result("b", DOCS), said("A1"), user("Q2")],
        ["Q1", f"{WEATHER}\nsearch:\n  - {DOCS}", "A1", "Q2"],
    ),
    Case(
        "results belong to their calls by id, in the order of the calls",
        [user("Q1"), call(a="weather", b="search"), result("b", DOCS), result("a", SUNNY), said("A1"), user("Q2")],
        ["Q1", f"{WEATHER}\nsearch:\n  - {DOCS}", "A1", "Q2"],
    ),
    Case(
        "a tool that was called twice",
        [user("Q1"), call(a="weather", b="weather"), result("a", SUNNY), result("b", RAINY), said("A1"), user("Q2")],
        ["Q1", f"{WEATHER}\n  - {RAINY}", "A1", "Q2"],
    ),
    Case(
        "an empty result",
        [user("Q1"), call(a="weather", b="log"), result("a", SUNNY), result("b", ""), said("A1"), user("Q2")],
        ["Q1", f"{WEATHER}\nlog:", "A1", "Q2"],
    ),
    Case("no tool was called", [user("Q1"), said("A1"), user("Q2")], ["Q1", "A1", "Q2"], groups=0),
    Case("a group that is out already is left alone", TWO, ["Q1", "A1", "Q2", SEARCH, "A2", "Q3"], excluded=(1,)),
]


def theirs(**arguments: Any) -> ToolResultStrategy:
    """The settings that make ours the most like theirs."""
    return ToolResultStrategy(
        **{"trigger": cc.always, "style": "collapse", "keep_tool_uses": 0, "formatter": their_list, **arguments}
    )


def shown(index: cc.MessageIndex) -> list[str]:
    """What is sent, in short."""
    messages = index.included_messages()
    return ["call" if m.get("tool_calls") else "result" if m["role"] == "tool" else m["content"] for m in messages]


def index_of(history: Sequence[Raw]) -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(history, counter=RecordingCounter(framing=True), validate=True)


@pytest.mark.parametrize("case", SAME, ids=lambda case: case.name)
def test_the_same(case: Case) -> None:
    """What both do, message by message."""
    index = index_of(case.history)
    for number in case.excluded:
        index.exclude(index.groups[number], "before")
    theirs(trigger=case.trigger, target=case.target, min_preserved_groups=case.groups).compact(index, hooks=())
    assert shown(index) == case.sent
    roles = [message["role"] for message in index.included_messages()]
    assert all(role == "assistant" for role, text in zip(roles, shown(index), strict=True) if "[Tool Calls]" in text)


def test_a_second_run_collapses_nothing_again() -> None:
    """K10: what was collapsed is no tool group any more."""
    index = index_of(TWO)
    theirs().compact(index, hooks=())
    assert not theirs().compact(index, hooks=()).changed


def test_a_formatter() -> None:
    """Its text stands alone, and it may build on the usual list."""
    index = index_of(ONE)
    theirs(formatter=lambda uses: f"[Collapsed: {len(uses)}]").compact(index, hooks=())
    assert shown(index)[1] == "[Collapsed: 1]"


# -- on purpose otherwise ------------------------------------------------------------------------


def test_a_target_that_holds_is_not_overshot() -> None:
    """K3: theirs collapses one group before it asks the target."""
    index = index_of(TWO)
    report = theirs(target=cc.tool_groups <= 2).compact(index, hooks=())
    assert report.skipped == "target"
    assert shown(index).count("call") == 2


@pytest.mark.parametrize("groups", [0, 1])
def test_what_the_model_has_not_read_stays(groups: int) -> None:
    """Theirs collapses it: without a floor the newest group, and with one what the user wrote behind."""
    history = [*ONE[:3], *([user("Q2")] if groups else [])]
    index = index_of(history)
    theirs(min_preserved_groups=groups, keep_last_user=False).compact(index, hooks=())
    assert shown(index)[1:3] == ["call", "result"]


def test_what_the_assistant_said_beside_its_calls_stays() -> None:
    """Theirs sends the list alone."""
    history = [ONE[0], {**ONE[1], "content": "I look."}, *ONE[2:]]
    index = index_of(history)
    theirs().compact(index, hooks=())
    assert shown(index)[1] == f"I look.\n\n{WEATHER}"


def test_a_list_that_is_no_shorter_is_not_written() -> None:
    """S3: theirs replaces a short result by a longer list."""
    history = [user("Q1"), call("{}", a="weather"), result("a", "Sunny"), said("A1"), user("Q2")]
    index = index_of(history)
    assert not theirs().compact(index, hooks=()).changed


def test_a_call_that_waits_stays() -> None:
    """G3: theirs collapses it, and its result comes without a call."""
    history = [user("Q1"), call(a="weather", b="search"), result("a", SUNNY), said("I wait."), said("Still.")]
    index = index_of(history)
    theirs().compact(index, hooks=())
    assert shown(index)[1:3] == ["call", "result"]


def test_pins_and_signed_reasoning_stay() -> None:
    """Theirs knows neither."""
    index = cc.MessageIndex.from_messages(ONE, counter=RecordingCounter(framing=True), pinned=[ONE[2]])
    theirs().compact(index, hooks=())
    assert shown(index) == AS_IT_WAS
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    index = index_of([ONE[0], {**ONE[1], "thinking_blocks": thought}, *ONE[2:]])
    theirs().compact(index, hooks=())
    assert shown(index) == AS_IT_WAS


def test_the_usual_list_has_a_line_for_each_call() -> None:
    """With the arguments, and the beginning of the result in quotes; theirs has neither, and the whole result."""
    index = index_of([user("Q1"), call(a="weather"), result("a", SUNNY * 9), said("A1"), user("Q2")])
    theirs(formatter=None).compact(index, hooks=())
    assert (
        shown(index)[1] == f'[Earlier tool calls, shortened]\n- weather {ARGUMENTS[:97]}...: "{(SUNNY * 9)[:197]}..."'
    )


def test_the_floor_by_default() -> None:
    """Theirs keeps the newest 16 groups; ours the newest, and the newest three tool uses."""
    usual = ToolResultStrategy(trigger=cc.always)
    assert (usual.style, usual.min_preserved_groups, usual.keep_tool_uses) == ("clear", 1, 3)


def test_a_negative_floor_is_an_error() -> None:
    """Theirs takes it for 0."""
    with pytest.raises(ValueError, match="min_preserved_groups must be an int of 0 or more, got -1"):
        theirs(min_preserved_groups=-1)
