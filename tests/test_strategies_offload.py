"""Offloading: large old results go to storage, and nothing leaves its message before it is there (K6 to K10)."""

from __future__ import annotations

import asyncio
import copy
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.counters import FunctionCounter
from chat_compaction.offload import OffloadStore, handle_of
from chat_compaction.strategies.offload import OffloadStrategy
from chat_compaction.testing import characters_counter, histories
from tests._shared import ROOT
from tests.build import call, index_of, result, said, signed, system, user
from tests.legality import faults, links
from tests.offload_faults import WRITE_FAULTS, FaultyFileSystem, fault, faulty_store, raises
from tests.test_growth import MOST, growth

Raw = dict[str, Any]
STORE = OffloadStore("memory://strategy")


def big(name: str, lines: int = 100) -> str:
    """A text of about twenty characters a line."""
    return "\n".join(f"{name}: line {number} of it" for number in range(1, lines + 1))


def tool_step(name: str, text: str, tool: str = "look") -> list[Raw]:
    """A call of a tool and its result, in OpenAI's format."""
    asked = call(name)
    asked["tool_calls"][0]["function"]["name"] = tool
    return [asked, result(name, text)]


HISTORY = [
    system(),
    user("task"),
    *tool_step("a", big("a")),
    *tool_step("b", big("b")),
    *tool_step("c", "small"),
    *tool_step("d", big("d")),
    said("done"),
    user("more"),
    *tool_step("e", big("e")),
]
ALL_OLD = {3: "a", 5: "b", 9: "d"}
"""The positions of the results that may leave by default: the newest group is the floor's."""


def offload(store: Any = STORE, **arguments: Any) -> OffloadStrategy:
    """With a floor, a trigger and a target that leave everything to the strategy."""
    defaults = {"min_tokens": 500, "keep_tool_uses": 0, "trigger": cc.always, "target": cc.tokens <= 0}
    return OffloadStrategy(store, **{**defaults, **arguments})


def compact(strategy: OffloadStrategy, index: cc.MessageIndex, is_async: bool) -> cc.CompactionReport:
    """Through one of the two drivers."""
    if is_async:
        return asyncio.run(strategy.acompact(index, hooks=()))
    return strategy.compact(index, hooks=())


def run(
    strategy: OffloadStrategy, history: list[Any] = HISTORY, is_async: bool = False, **settings: Any
) -> tuple[list[Any], cc.CompactionReport]:
    """The messages after a compaction, and its report; the caller's own are as they were (K8)."""
    before = copy.deepcopy(history)
    index = index_of(history, **settings)
    report = compact(strategy, index, is_async)
    assert history == before
    return index.included_messages(), report


def changed(messages: list[Any], history: list[Any] = HISTORY) -> list[int]:
    """The positions of messages that are others now."""
    return [place for place, pair in enumerate(zip(messages, history, strict=True)) if pair[0] is not pair[1]]


def handles_in(text: str) -> list[str]:
    return re.findall(r"offload-[0-9a-f]{64}", text)


both = pytest.mark.parametrize("is_async", [False, True], ids=["compact", "acompact"])


# -- what it does ------------------------------------------------------------------------------------


@both
def test_large_old_results_leave(is_async: bool) -> None:
    """A preview and a handle stand in their place; all else is the caller's own."""
    messages, report = run(offload(), is_async=is_async)
    assert changed(messages) == list(ALL_OLD)
    for position, name in ALL_OLD.items():
        assert handles_in(messages[position]["content"]) == [handle_of(big(name))]
        assert STORE.recall(handle_of(big(name))) == big(name)
        assert messages[position] == HISTORY[position] | {"content": messages[position]["content"]}
    assert (report.changed, report.stopped_by, report.failures) == (True, "exhausted", ())
    assert [(replaced.positions, replaced.written, replaced.reason) for replaced in report.replaced] == [
        ((position - 1, position), (position,), "offload") for position in ALL_OLD
    ]
    assert report.tokens_after == sum(characters_counter().count_many([str(m["content"] or "") for m in messages]))


def test_the_preview() -> None:
    """How much there was, the lines at the top and at the end, the handle, and how to get the rest."""
    messages, _ = run(offload(preview=(2, 1)))
    assert messages[3]["content"].splitlines() == [
        f"[offloaded: {len(big('a')):,} characters in 100 lines, kept as {handle_of(big('a'))}]",
        "a: line 1 of it",
        "a: line 2 of it",
        "[... 97 lines ...]",
        "a: line 100 of it",
        "[end of preview; recall_offloaded with the handle reads the rest]",
    ]


@pytest.mark.parametrize(
    ("text", "preview", "shown"),
    [
        ("x" * 1_000, (5, 3), ["x" * 100 + " [... 800 characters ...] " + "x" * 100]),
        ("x" * 1_000 + "\n", (0, 0), ["[... 1 line ...]"]),
        ("one\n" + "x" * 1_000 + "\n", (1, 0), ["one", "[... 1 line ...]"]),
        (
            "one\ntwo\nthree" + " " * 600,
            (2, 1),
            ["one", "two", "three" + " " * 95 + " [... 405 characters ...] " + " " * 100],
        ),
        ("one\n" * 100, (0, 2), ["[... 98 lines ...]", "one", "one"]),
    ],
    ids=["one long line", "no lines", "a line between", "no line between", "only the end"],
)
def test_previews_of_other_texts(text: str, preview: tuple[int, int], shown: list[str]) -> None:
    """Bounded by lines and by their length."""
    messages, _ = run(
        offload(min_tokens=1, preview=preview, recall_tool=None), [*tool_step("a", text), user("x"), said("y")]
    )
    assert messages[1]["content"].split("\n")[1:] == [*shown, "[end of preview]"]


@both
def test_it_stops_when_the_target_is_reached(is_async: bool) -> None:
    """K3 and K4: oldest first, and no more than needed."""
    messages, report = run(offload(target=cc.tokens <= 6_000), is_async=is_async)
    assert changed(messages) == [3]
    assert report.stopped_by == "target"


def test_the_newest_tool_uses_stay() -> None:
    """Large or not, and whether or not the floor keeps them."""
    assert changed(run(offload(keep_tool_uses=1))[0]) == [3, 5, 9]
    assert changed(run(offload(keep_tool_uses=2))[0]) == [3, 5]
    assert changed(run(offload(keep_tool_uses=3))[0]) == [3, 5]
    assert changed(run(offload(keep_tool_uses=4))[0]) == [3]
    assert changed(run(offload(keep_tool_uses=9))[0]) == []


def test_the_floor_may_be_nothing() -> None:
    """``min_preserved_groups=0``: also what the model has not read yet, where it is too large to be sent."""
    assert changed(run(offload(min_preserved_groups=0))[0]) == [3, 5, 9, 13]
    first = [user("task"), *tool_step("a", big("a"))]
    assert changed(run(offload(min_preserved_groups=0), first)[0], first) == [2]
    assert run(offload(), first)[1].skipped == "floor"


@pytest.mark.parametrize(
    ("arguments", "positions"),
    [
        ({"only_tools": ["read"]}, [1]),
        ({"only_tools": ["read*"]}, [1, 3]),
        ({"exclude_tools": ["read*"]}, [5]),
        ({"only_tools": ["read*"], "exclude_tools": ["read"]}, [3]),
    ],
    ids=str,
)
def test_which_tools(arguments: dict[str, Any], positions: list[int]) -> None:
    history = [
        *tool_step("a", big("a"), "read"),
        *tool_step("b", big("b"), "read_all"),
        *tool_step("c", big("c"), "run"),
        said("done"),
    ]
    assert changed(run(offload(**arguments), history)[0], history) == positions


def test_only_what_is_large() -> None:
    """Of ``min_tokens`` and more."""
    size = len(big("a"))
    assert changed(run(offload(min_tokens=size))[0]) == [3, 5, 9]
    assert changed(run(offload(min_tokens=size + 1))[0]) == []


def test_only_by_what_is_smaller() -> None:
    """A text that is hardly longer than its preview stays, and nothing is written for it."""
    store = Recording()
    history = [*tool_step("a", "short\n" * 9), said("done")]
    assert changed(run(offload(store, min_tokens=1), history)[0], history) == []
    assert store.texts == []


def test_texts_of_the_user() -> None:
    """Where asked for: a pasted file leaves like a result, but not from the newest message of the user."""
    history = [user(big("pasted")), said("read"), user(big("new")), said("done")]
    assert changed(run(offload(), history)[0], history) == []
    messages, _ = run(offload(user_texts=True), history)
    assert changed(messages, history) == [0]
    assert messages[0]["role"] == "user"
    assert handles_in(messages[0]["content"]) == [handle_of(big("pasted"))]
    assert changed(run(offload(user_texts=True, keep_last_user=False), history)[0], history) == [0, 2]


def test_system_messages_and_the_assistants_words_stay() -> None:
    history = [system(big("rules")), user("task"), said(big("words")), user("more"), said("done")]
    assert changed(run(offload(user_texts=True, preserve_system=False), history)[0], history) == []


# -- the formats -------------------------------------------------------------------------------------


def anthropic(content: Any, **more: Any) -> list[Raw]:
    blocks = [
        {"type": "tool_result", "tool_use_id": "a", "content": content, **more},
        {"type": "tool_result", "tool_use_id": "b", "content": big("b")},
        {"type": "text", "text": big("said")},
    ]
    calls = [{"type": "tool_use", "id": one, "name": "look", "input": {}} for one in "ab"]
    return [
        user("task"),
        {"role": "assistant", "content": calls},
        {"role": "user", "content": blocks},
        said("done"),
        user("x"),
    ]


def test_anthropic() -> None:
    """Results side by side in one message, each in its place; an error stays one."""
    history = anthropic([{"type": "text", "text": big("a")}, {"type": "text", "text": "end"}], is_error=True)
    messages, report = run(offload(), history, format="anthropic")
    first, second, said_beside = messages[2]["content"]
    assert (first["tool_use_id"], first["is_error"], second["tool_use_id"]) == ("a", True, "b")
    assert handles_in(str(first)) == [handle_of(f"{big('a')}\nend")]
    assert handles_in(str(second)) == [handle_of(big("b"))]
    assert said_beside is history[2]["content"][2]
    assert len(report.replaced) == 1
    messages, _ = run(offload(user_texts=True), history, format="anthropic")
    assert [len(handles_in(str(block))) for block in messages[2]["content"]] == [1, 1, 1]


def test_a_result_with_an_image_stays() -> None:
    """What can't be kept as text is not lost."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    history = anthropic([{"type": "text", "text": big("a")}, {"type": "image", "source": source}])
    messages, _ = run(offload(), history, format="anthropic")
    assert messages[2]["content"][0] is history[2]["content"][0]
    assert handles_in(str(messages[2]["content"][1]))


def test_openai_responses() -> None:
    history = [
        {"role": "user", "content": "task"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": big("a")},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ]
    messages, _ = run(offload(), history, format="openai_responses")
    assert changed(messages, history) == [2]
    assert messages[2] == history[2] | {"output": messages[2]["output"]}
    assert handles_in(messages[2]["output"]) == [handle_of(big("a"))]


def test_gemini() -> None:
    asked = {"functionCall": {"name": "look", "args": {}}}
    answered = {"functionResponse": {"name": "look", "response": {"output": big("a")}}}
    history = [
        {"role": "user", "parts": [{"text": "task"}]},
        {"role": "model", "parts": [asked]},
        {"role": "user", "parts": [answered]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": "more"}]},
    ]
    messages, _ = run(offload(), history, format="gemini")
    assert changed(messages, history) == [2]
    body = messages[2]["parts"][0]["functionResponse"]
    assert body["name"] == "look"
    assert handles_in(body["response"]["output"]) == [handle_of(big("a"))]


def test_nothing_beside_a_signature_changes() -> None:
    """A provider binds the message to its signature."""
    history = [user("task"), signed(big("words")), user("more"), said("done")]
    beside = copy.deepcopy(history[1])
    beside["content"].append({"type": "mcp_tool_use", "id": "m", "name": "look", "server_name": "s", "input": {}})
    beside["content"].append(
        {
            "type": "mcp_tool_result",
            "tool_use_id": "m",
            "is_error": False,
            "content": [{"type": "text", "text": big("a")}],
        }
    )
    history[1] = beside
    store = Recording()
    assert changed(run(offload(store), history, format="anthropic")[0], history) == []
    assert store.texts == []


def test_a_pending_call_and_its_siblings_stay() -> None:
    """G3: the group of a call that waits for its result is never touched."""
    history = [user("task"), call("a", "b"), result("a", big("a"))]
    assert changed(run(offload(min_preserved_groups=0), history)[0], history) == []


def test_a_pinned_result_stays() -> None:
    messages, _ = run(offload(), pinned=[HISTORY[3]])
    assert changed(messages) == [5, 9]


# Long texts as hashes make a preview pay for itself only rarely; so this counter makes one of ours cost nothing.
CHEAP = FunctionCounter(lambda text: 0 if text.startswith("[offloaded: ") else len(text) + 2, name="cheap previews")


FORMATS = ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse"]


def test_valid_in_valid_out_and_idempotent() -> None:
    """K7, K8 and K10, for histories of each format: no call or result is lost, and the second pass finds nothing."""
    strategy = offload(min_tokens=0, user_texts=True, preview=(1, 1))
    replaced = 0

    def check(history: list[Any], format: str) -> None:
        nonlocal replaced
        messages, report = run(strategy, history, format=format, counter=CHEAP)
        assert links(messages, format) == links(history, format)
        assert faults(messages, format) == faults(history, format)
        again, second = run(strategy, messages, format=format, counter=CHEAP)
        assert again == messages
        assert not second.replaced
        assert strategy.plan(history, format=format, counter=CHEAP).replaced == report.replaced
        replaced += len(report.replaced)

    for format in FORMATS:
        settings(max_examples=12)(given(history=histories(format), format=st.just(format))(check))()
    assert replaced > 10


# -- idempotence -------------------------------------------------------------------------------------


def test_a_preview_is_not_offloaded_again() -> None:
    """K10, also where it is larger than ``min_tokens`` and another preview would be smaller."""
    messages, _ = run(offload(preview=(30, 30)))
    store = Recording()
    again, report = run(offload(store, min_tokens=1, preview=(0, 0), recall_tool=None), messages)
    assert changed(again, messages) == []
    assert (report.changed, store.texts) == (False, [])


@pytest.mark.parametrize(
    "forged",
    [
        lambda preview: preview + "\n" + big("more"),
        lambda preview: big("more") + "\n" + preview,
        lambda preview: preview.replace("a: line 1", big("more", 2_000)),
        lambda preview: preview.replace("offload-", "offload_") + big("more"),
    ],
    ids=["text behind", "text ahead", "too long", "no handle"],
)
def test_what_only_looks_like_a_preview_is_offloaded(forged: Callable[[str], str]) -> None:
    """A tool that writes one around its result does not get out of it."""
    preview = run(offload())[0][3]["content"]
    history = [*tool_step("a", forged(preview)), said("done")]
    messages, _ = run(offload(), history)
    assert changed(messages, history) == [1]
    assert STORE.recall(handles_in(messages[1]["content"])[0]) == forged(preview)


def test_a_reducer_writes_a_text_once(tmp_path: Path) -> None:
    """The whole history comes again at each call: what is in the store is only looked at."""
    store = faulty_store(tmp_path)
    reducer = cc.as_chat_reducer(offload(store), counter=characters_counter(), hooks=())
    first = reducer(HISTORY)
    FaultyFileSystem.asked.clear()
    assert reducer(HISTORY) == first
    assert [name for name, _ in FaultyFileSystem.asked] == ["info"] * 3


# -- plans -------------------------------------------------------------------------------------------


def test_a_plan_writes_nothing() -> None:
    """The handle follows from the text: so a plan says what a compaction will do, and asks the store nothing."""
    store = Recording()
    plan = offload(store).plan(HISTORY, counter=characters_counter())
    assert store.texts == []
    report = run(offload())[1]
    assert attrs.evolve(plan, duration_ms=0.0) == attrs.evolve(report, duration_ms=0.0)


# -- the store fails ---------------------------------------------------------------------------------


@attrs.define
class Recording:
    """A store that remembers what it was given, and fails where it is told to."""

    failing: dict[str, BaseException] = attrs.field(factory=dict)
    texts: list[str] = attrs.field(factory=list)

    def put(self, text: str) -> str:
        error = self.failing.get(text.partition(":")[0])
        if error is not None:
            raise error
        self.texts.append(text)
        return handle_of(text)


@attrs.define
class Later(Recording):
    """The same, and one has to wait for it."""

    async def put(self, text: str) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return Recording.put(self, text)


@both
@pytest.mark.parametrize("name", WRITE_FAULTS)
def test_what_can_not_be_written_stays(tmp_path: Path, name: str, is_async: bool) -> None:
    """At every step of a write: the messages are the caller's own, and the report says what failed."""
    store = faulty_store(tmp_path)
    with fault(*WRITE_FAULTS[name]):
        messages, report = run(offload(store), is_async=is_async)
    assert changed(messages) == []
    assert (report.changed, report.replaced, report.fits) == (False, (), False)
    assert [failure.what for failure in report.failures] == [f"offload of messages[{position}]" for position in ALL_OLD]
    assert all("OffloadError" in failure.error for failure in report.failures)
    assert "secret" not in str(report)
    assert "line 1" not in str(report.to_dict())
    assert changed(run(offload(store), is_async=is_async)[0]) == list(ALL_OLD)


@both
def test_one_failure_does_not_keep_the_others(is_async: bool) -> None:
    """Each result that is written leaves; the one that is not stays, in a message with others too."""
    kind = Later if is_async else Recording
    store = kind({"b": TimeoutError("timed out")})
    messages, report = run(offload(store), is_async=is_async)
    assert changed(messages) == [3, 9]
    assert [(failure.what, failure.error) for failure in report.failures] == [
        ("offload of messages[5]", "TimeoutError: timed out")
    ]
    history = anthropic(big("a"))
    messages, report = run(offload(kind({"a": TimeoutError()})), history, is_async, format="anthropic")
    assert messages[2]["content"][0] is history[2]["content"][0]
    assert handles_in(str(messages[2]["content"])) == [handle_of(big("b"))]
    assert len(report.failures) == 1


def test_a_full_store() -> None:
    """What fits leaves, and the report says that the rest did not fit."""
    store = OffloadStore("memory://full", max_bytes=len(big("a")) + len(big("b", 20)))
    history = [*tool_step("a", big("a")), *tool_step("c", big("c")), *tool_step("b", big("b", 20)), said("done")]
    messages, report = run(offload(store, min_tokens=200, preview=(0, 0)), history)
    assert changed(messages, history) == [1, 5]
    [failure] = report.failures
    assert failure.error.startswith("StoreFullError: ")


def test_a_store_that_does_not_answer_is_not_asked_forever() -> None:
    """Each time-out costs its time: after three failures in a row the pass gives up, and the next one tries again."""
    history = [message for name in "abcdefghi" for message in tool_step(name, big(name))] + [said("done")]
    store = Recording(dict.fromkeys("abcdefghi", TimeoutError()))
    assert len(run(offload(store), history)[1].failures) == 3
    store.failing = dict.fromkeys("abdegh", TimeoutError())
    messages, report = run(offload(store), history)
    assert changed(messages, history) == [5, 11, 17]
    assert len(report.failures) == 6


@both
def test_a_store_with_another_handle_is_not_believed(is_async: bool) -> None:
    """Nobody could find the text again."""

    class Wrong(Recording):
        def put(self, text: str) -> Any:
            return None

    messages, report = run(offload(Wrong()), is_async=is_async)
    assert changed(messages) == []
    assert report.failures[0].error == "StrategyError: store.put must return handle_of(text), got None"


def test_an_async_store() -> None:
    """Awaited by ``acompact``; in a plain call that is a mistake of the program's, and nothing has changed."""
    store = Later()
    messages, _ = run(offload(store), is_async=True)
    assert changed(messages) == list(ALL_OLD)
    assert store.texts == list(map(big, ALL_OLD.values()))
    index = index_of(HISTORY)
    before = index.snapshot()
    with pytest.raises(cc.StrategyError, match="is async: use acompact or areduce"):
        offload(store).compact(index, hooks=())
    assert index.snapshot() == before
    assert changed(index.included_messages()) == []


@pytest.mark.parametrize("name", ALL_OLD.values())
@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError()], ids=["interrupted", "cancelled"])
@both
def test_an_interruption_at_each_write(name: str, error: BaseException, is_async: bool) -> None:
    """K9: whatever was replaced by then is as it was."""
    store = (Later if is_async else Recording)({name: error})
    index = index_of(HISTORY)
    before = index.snapshot()
    with pytest.raises(type(error)):
        compact(offload(store), index, is_async)
    assert index.snapshot() == before
    assert changed(index.included_messages()) == []


def test_the_loop_goes_on_while_the_store_writes(tmp_path: Path) -> None:
    """A plain store that answers late is asked in a thread by ``acompact``."""
    store, go_on = faulty_store(tmp_path), threading.Event()

    def late(real: Callable[..., Any], *args: Any, **more: Any) -> Any:
        assert go_on.wait(30)
        return real(*args, **more)

    async def both_tasks() -> list[Any]:
        index = index_of(HISTORY)
        compaction = asyncio.create_task(offload(store).acompact(index, hooks=()))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(go_on.set)
        await compaction
        return index.included_messages()

    with fault("pipe_file", late):
        assert changed(asyncio.run(both_tasks())) == list(ALL_OLD)


def test_a_time_out_of_the_caller() -> None:
    """``asyncio.timeout`` around ``acompact`` ends a write that hangs; the index is as it was, and of further use."""

    class Hanging(Recording):
        async def put(self, text: str) -> str:  # type: ignore[override]
            if text.startswith("b"):
                await asyncio.Event().wait()
            return Recording.put(self, text)

    async def limited(index: cc.MessageIndex) -> None:
        async with asyncio.timeout(0.01):
            await offload(Hanging()).acompact(index, hooks=())

    index = index_of(HISTORY)
    with pytest.raises(TimeoutError):
        asyncio.run(limited(index))
    assert changed(index.included_messages()) == []
    offload().compact(index, hooks=())
    assert changed(index.included_messages()) == list(ALL_OLD)


def test_raising_on_overflow_undoes_what_was_offloaded() -> None:
    """K9 with ``on_overflow="raise"``; what is in the store by then does no harm."""
    index = index_of(HISTORY)
    with pytest.raises(cc.ContextOverflowError):
        offload(target=cc.tokens <= 1).compact(index, on_overflow="raise", hooks=())
    assert changed(index.included_messages()) == []


def test_restore() -> None:
    """The index still has what it replaced."""
    index = index_of(HISTORY)
    offload().compact(index, hooks=())
    index.restore(next(group for group in index.groups if 3 in group.positions))
    assert changed(index.included_messages()) == [5, 9]


# -- the strategy as a value -------------------------------------------------------------------------


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    strategy = OffloadStrategy(STORE, trigger=cc.tokens > 8_000, only_tools=["read"], preview=[1, 2])
    names = {"OffloadStrategy": OffloadStrategy, "OffloadStore": OffloadStore, "tokens": cc.tokens}
    assert eval(repr(strategy), names) == strategy  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != attrs.evolve(strategy, preview=(2, 1))
    with pytest.raises(AttributeError):
        strategy.min_tokens = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"store": "folder"}, TypeError, "store must be an OffloadStore, or have its put(text), got a str"),
        ({"min_tokens": -1}, ValueError, "min_tokens must be an int of 0 or more, got -1"),
        ({"keep_tool_uses": True}, TypeError, "keep_tool_uses must be an int of 0 or more, got True"),
        ({"only_tools": "read"}, TypeError, "only_tools must be a list of names of tools, got 'read'"),
        ({"only_tools": []}, ValueError, "only_tools must name a tool, or be None for all of them, got ()"),
        ({"exclude_tools": [7]}, TypeError, "exclude_tools must be a list of names of tools, got (7,)"),
        ({"user_texts": 1}, TypeError, "user_texts must be True or False, got 1"),
        *(
            (
                {"preview": wrong},
                ValueError,
                f"preview must be two ints of 0 or more, of lines at the top and at the end, got {wrong!r}",
            )
            for wrong in (5, (1, -1), (1, 2, 3), (True, 1), "ab")
        ),
        ({"recall_tool": 7}, TypeError, "recall_tool must be the name of a tool, or None, got 7"),
        ({"recall_tool": "a b"}, ValueError, "recall_tool must be the name of a tool, or None, got 'a b'"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        offload(**arguments)
    assert str(caught.value) == text


def test_the_page_has_every_argument() -> None:
    """Each argument but those of the base stands in the table, with its default."""
    page = (ROOT / "docs/strategies/offload.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", page, re.MULTILINE))
    base = {field.name: field.default for field in attrs.fields(cc.CompactionStrategy)}
    own = [field for field in attrs.fields(OffloadStrategy) if base.get(field.name) != field.default]
    for field in own:
        default = "" if field.default is attrs.NOTHING else repr(field.default).replace("'", '"')
        assert rows[field.name].strip(" `").replace(",", "") == default.replace(",", ""), field.name


def parallel(count: int, size: int = 900) -> list[Raw]:
    """One response with many calls, and their large results."""
    ids = [f"c{n}" for n in range(count)]
    return [user("task"), call(*ids), *(result(name, f"{name} " + "x" * size) for name in ids), said("done")]


def test_growth_of_one_group() -> None:
    """K13: to rewrite a group is linear in it, so its results are not replaced one by one."""

    class Store:
        def put(self, text: str) -> str:
            return handle_of(text)

    def prepare(n: int) -> Any:
        index = index_of(parallel(n))
        return lambda: offload(Store(), target=cc.never, min_tokens=0).compact(index, hooks=())

    assert growth(prepare) < MOST


@pytest.mark.parametrize("at_least", [1, 3])
def test_a_target_that_looks_at_the_messages_sees_each(at_least: int) -> None:
    """K3: nothing more leaves once it holds, whatever it asks."""

    @cc.predicate
    def some_are_gone(index: Any) -> bool:
        return len(handles_in(str(index.included_messages()))) >= at_least

    messages, report = run(offload(target=some_are_gone, min_tokens=0), parallel(5))
    assert len(handles_in(str(messages))) == at_least
    assert report.fits


def test_a_result_that_can_not_be_written_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """K7: a rule of the format may be against one of a group; the others leave, and more of them for it."""
    index = index_of(parallel(6))
    limit = index.value(cc.tokens) - 2_000
    rewrite = type(index).rewrite
    monkeypatch.setattr(
        type(index), "rewrite", lambda self, group, new, why: 4 not in new and rewrite(self, group, new, why)
    )
    report = offload(trigger=cc.tokens > limit, target=cc.tokens <= limit, min_tokens=0).compact(index, hooks=())
    gone = [place for place in range(2, 8) if handles_in(str(index.raw(place)))]
    assert 4 not in gone
    assert gone == [place for place in range(2, 2 + len(gone) + 1) if place != 4]
    assert report.fits


@settings(max_examples=40)
@given(
    text=st.text(st.characters(exclude_categories=()), min_size=300, max_size=600),
    preview=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_any_text_can_be_offloaded(text: str, preview: tuple[int, int]) -> None:
    """What left is what comes back, whatever it was; and its preview is known as one."""
    history = [*tool_step("a", text), said("done")]
    strategy = offload(min_tokens=0, preview=preview)
    messages, report = run(strategy, history, counter=CHEAP)
    assert len(report.replaced) == 1
    assert STORE.recall(handles_in(messages[1]["content"])[0]) == text
    assert not run(strategy, messages, counter=CHEAP)[1].replaced


def test_faults_are_gone() -> None:
    """No test leaves one behind for another."""
    assert FaultyFileSystem.faults == {}
    assert callable(raises(OSError()))


# -- a minimum gain ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "moved"), [(0, [3]), (1, [3]), (2_000, [3, 5]), (4_000, [3, 5, 9]), (6_000, [])])
def test_below_the_minimum_gain_nothing_happens(least: int, moved: list[int]) -> None:
    """Above it, it goes on past the target until so much is gained: each cut costs the provider's cache."""
    store = OffloadStore(f"memory://least-{least}")
    index = index_of(HISTORY)
    size = index.value(cc.tokens)
    strategy = offload(store, trigger=cc.tokens >= size, target=cc.tokens < size, clear_at_least=least)
    report = strategy.compact(index, hooks=())
    assert [position for replacement in report.replaced for position in replacement.written] == moved
    assert size - index.value(cc.tokens) >= (least if moved else 0)
    texts = {position: HISTORY[position]["content"] for position in ALL_OLD}
    assert [position for position, text in texts.items() if kept_by(store, text)] == moved


def kept_by(store: OffloadStore, text: str) -> bool:
    """Whether a store has a text."""
    try:
        return store.recall(handle_of(text), 1, 1) != ""
    except cc.offload.OffloadError:
        return False


def test_where_the_store_fails_below_the_minimum_everything_stays() -> None:
    """What could be written is not worth a cut: the messages are the caller's again, and the report says why."""
    index = index_of(HISTORY)
    calls: list[str] = []

    class Full:
        def put(self, text: str) -> str:
            calls.append(text)
            if len(calls) > 1:
                raise cc.offload.StoreFullError("no room")
            return handle_of(text)

    strategy = offload(Full(), trigger=cc.tokens > 100, target=cc.never, clear_at_least=4_000)
    report = strategy.compact(index, hooks=())
    assert (report.changed, len(report.failures)) == (False, 2)
    assert index.included_messages() == HISTORY
