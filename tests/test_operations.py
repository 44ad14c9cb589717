"""Every public operation costs by the size of what it is given, in work and in memory (rule K13).

A new public function, method or property is named here: with a case that grows, or with the reason why there is
nothing that could. Work is counted (see :mod:`tests.test_growth`), memory is the peak that :mod:`tracemalloc` sees.
"""

from __future__ import annotations

import gc
import inspect
import itertools
import json
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tokenizers import Tokenizer, models

import chat_compaction as cc
from chat_compaction import config, counters, formats, instrumentation, offload, summarizers, testing, triggers
from chat_compaction.counters import _estimate
from chat_compaction.formats import FORMATS, Format, PartKind, rules
from chat_compaction.offload import OffloadStore
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import call, result, said, step, thought, user
from tests.shortening import MAKE, Make, summarizer
from tests.test_growth import MOST, Shape, agent, growth, index_of, shapes

Prepare = Callable[[int], Callable[[], object]]

CASES: dict[str, Prepare] = {}
CONSTANT: dict[str, Prepare] = {}
COVERED: set[str] = set()


def grows(*names: str) -> Callable[[Prepare], Prepare]:
    """A case whose work and memory may grow as the size does; the names of what it runs."""
    return _noted(CASES, names)


def stays(*names: str) -> Callable[[Prepare], Prepare]:
    """A case whose work is the same at any size."""
    return _noted(CONSTANT, names)


def _noted(cases: dict[str, Prepare], names: tuple[str, ...]) -> Callable[[Prepare], Prepare]:
    def note(prepare: Prepare) -> Prepare:
        cases[prepare.__name__] = prepare
        COVERED.update(names)
        return prepare

    return note


def finished(coroutine: Coroutine[Any, Any, object]) -> object:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


# -- an index --------------------------------------------------------------------------------------


@grows("MessageIndex.from_messages")
def from_messages(n: int) -> Callable[[], object]:
    history = agent(n)
    return lambda: cc.MessageIndex.from_messages(history, counter=len)


@grows("MessageIndex.from_messages")
def from_messages_of_many_pins(n: int) -> Callable[[], object]:
    history = agent(n)
    return lambda: cc.MessageIndex.from_messages(history, counter=len, pinned=history[::2])


@grows("MessageIndex.extend")
def extend(n: int) -> Callable[[], object]:
    index, history = index_of(agent(1)), agent(n)
    return lambda: index.extend(history)


@grows("MessageIndex.update")
def update(n: int) -> Callable[[], object]:
    history = agent(n)
    index = index_of(history)
    index.total(cc.tokens)
    return lambda: index.update([*history, user("more")])


@grows("MessageIndex.update")
def update_where_the_past_changed(n: int) -> Callable[[], object]:
    history = agent(n)
    index = index_of(history)
    index.total(cc.tokens)
    return lambda: index.update([user("another"), *history[1:]])


@grows("MessageIndex.refresh")
def refresh(n: int) -> Callable[[], object]:
    history = agent(n)
    index = index_of(history)
    index.total(cc.tokens)
    for message in history[::3]:
        message["content"] = "another text"
    return index.refresh


@grows("MessageIndex.value", "MessageIndex.total", "MessageIndex.exceeds", "MessageIndex.tokens_of")
def count(n: int) -> Callable[[], object]:
    one, other, third = (index_of(agent(n)) for _ in range(3))
    groups = other.groups
    return lambda: (one.value(cc.tokens), [other.tokens_of(group) for group in groups], third.exceeds(cc.tokens, 10**9))


@stays("MessageIndex.value", "MessageIndex.total", "MessageIndex.exceeds", "MessageIndex.known")
def read_metrics(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    index.total(cc.tokens)
    metrics = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
    return lambda: [
        (index.value(metric), index.total(metric), index.exceeds(metric, 3), index.known(metric)) for metric in metrics
    ]


@stays("MessageIndex.tokens_of", "MessageIndex.messages_of")
def look_at_a_group(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    index.total(cc.tokens)
    group = index.groups[n // 2]
    return lambda: (index.tokens_of(group), index.messages_of(group))


@grows("MessageIndex.messages_of")
def messages_of_a_giant_group(n: int) -> Callable[[], object]:
    index = index_of([user("task"), *step(*(f"c{i}" for i in range(n))), said()])
    group = index.groups[1]
    return lambda: index.messages_of(group)


@grows(
    "MessageIndex.groups",
    "MessageIndex.included_messages",
    "MessageIndex.included_positions",
    "MessageIndex.problems",
    "MessageIndex.snapshot",
    "MessageIndex.table",
)
def look(n: int) -> Callable[[], object]:
    index = index_of([message for i in range(n) for message in (*step(f"c{i}"), result(f"orphan {i}"))])
    index.exclude(index.groups[0], "by hand")
    return lambda: (
        index.groups,
        index.problems,
        index.snapshot(),
        index.table(),
        index.included_messages(),
        index.included_positions(),
    )


@stays("MessageIndex.exclude", "MessageIndex.include")
def exclude_one(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    first = index.groups[1]

    def work() -> None:
        index.exclude(first, "by hand")
        index.include(first)

    return work


@grows("MessageIndex.exclude", "MessageIndex.include_all")
def exclude_all(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    free = index.groups[:-1]

    def work() -> None:
        for group in free:
            index.exclude(group, "by hand")
        index.include_all()

    return work


# -- replacing -------------------------------------------------------------------------------------


def wordy(n: int) -> list[Any]:
    """A history with something for every strategy: reasoning, media, long arguments, results that come again."""
    history: list[Any] = []
    for i in range(n):
        history += [user(f"task {i} " + "of many words " * 4)] if i % 4 == 0 else []
        history += [_picture(i)] if i % 8 == 0 else []
        history += _wordy_step(f"c{i}", i)
    return history


def wordy_group(n: int) -> list[Any]:
    """The same in one group: so many calls in one message."""
    steps = [_wordy_step(f"c{i}", i) for i in range(n)]
    calls = [call for called, _ in steps for call in called["tool_calls"]]
    return [
        user("task"),
        {**steps[0][0], "tool_calls": calls},
        *(result for _, result in steps),
        said("Done."),
        user("more"),
        said("No."),
    ]


def _wordy_step(call_id: str, number: int) -> list[Any]:
    arguments = json.dumps({"path": f"file {number % 7}", "text": f"line {number}\n" * 12})
    function = {"name": f"tool{number % 3}", "arguments": arguments}
    called = {
        "role": "assistant",
        "content": f"Now {number}.",
        "reasoning_content": f"I think of {number}. " * 8,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    return [called, result(call_id, f"result {number % 5}\n" * 40)]


def _picture(number: int) -> Any:
    url = f"data:image/png;base64,{number:08d}"
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, texts(1)[0]]}


@grows(
    "MessageIndex.rewrite",
    "MessageIndex.restore",
    "MessageIndex.tool_uses",
    "MessageIndex.view",
    "MessageIndex.raw",
    "MessageIndex.positions_of",
    "MessageIndex.size_of",
    "Format.with_texts",
)
def rewrite_all(n: int) -> Callable[[], object]:
    index = index_of(wordy(n))
    free = [group for group in index.groups if group.kind is cc.GroupKind.TOOL_CALL and not group.pending]

    def work() -> None:
        for group in free:
            uses = [(use, use.result) for use in index.tool_uses(group)]
            written = {
                place[0]: index.format.with_texts(index.raw(place[0]), {place[1]: "gone"}) for _, place in uses if place
            }
            assert all(index.view(position).answers for position in written)
            assert index.size_of(index.positions_of(group)[0], next(iter(written.values()))) > 0
            assert index.rewrite(group, written, "by hand")
        for group in free:
            index.restore(group)

    return work


@stays(
    "MessageIndex.rewrite",
    "MessageIndex.restore",
    "MessageIndex.tool_uses",
    "MessageIndex.view",
    "MessageIndex.raw",
    "MessageIndex.positions_of",
    "MessageIndex.size_of",
    "MessageIndex.count_texts",
)
def rewrite_one(n: int) -> Callable[[], object]:
    index = index_of(wordy(n))
    index.total(cc.tokens)
    group = next(group for group in index.groups if group.kind is cc.GroupKind.TOOL_CALL)
    place = group.positions[-1]

    def work() -> None:
        written = index.format.with_texts(index.raw(place), {0: "gone"})
        assert index.tool_uses(group)
        assert index.view(place).answers
        assert index.size_of(place, written) == index.count_texts(["gone"])[0]
        assert index.rewrite(group, {place: written}, "by hand")
        assert index.positions_of(group) == group.positions
        index.restore(group)

    return work


@grows("MessageIndex.rewrite", "MessageIndex.tool_uses", "MessageIndex.positions_of")
def rewrite_a_giant_group(n: int) -> Callable[[], object]:
    index = index_of(wordy_group(n))
    group = next(group for group in index.groups if group.kind is cc.GroupKind.TOOL_CALL)

    def work() -> None:
        assert len(index.tool_uses(group)) == n
        places = index.positions_of(group)[1:]
        index.rewrite(group, {p: index.format.with_texts(index.raw(p), {0: "gone"}) for p in places}, "by hand")

    return work


@grows("MessageIndex.summarize", "MessageIndex.restore")
def summarize(n: int) -> Callable[[], object]:
    index = index_of(wordy(n))
    free = [group for group in index.groups if not group.pending][:-1]

    def work() -> None:
        half = len(free) // 2
        assert index.summarize(free[:half], "All of the first half.", "by hand")
        assert index.summarize([free[0], *free[half:]], "All of it.", "by hand")
        assert len(index.included_messages()) == 1 + len(index.groups[-1].positions)
        index.restore(free[0])

    return work


@grows("MessageIndex.count_texts")
def count_many_texts(n: int) -> Callable[[], object]:
    index, texts = index_of([user()]), [f"text {next(_NUMBERS)}" for _ in range(n)]
    return lambda: (index.count_texts(texts), index.count_texts(texts))


# -- strategies ------------------------------------------------------------------------------------


class InPass(cc.CompactionStrategy):
    """Looks at everything that a strategy may ask for, and lets turns leave."""

    def compact_core(self, index: cc.MessageIndex) -> bool:
        assert not self.reached(index)
        assert not self.fits(index)
        assert len(self.rewritable(index)) >= len(self.candidates(index))
        self.evict(index, self.candidates(index), "too much")
        self.undo(index)
        assert len(self.candidates(index)) >= len(self.candidate_turns(index))
        list(self.candidates(index))
        return self.evict(index, self.candidate_turns(index), "own")


STRATEGIES: list[cc.CompactionStrategy] = [
    cc.TruncationStrategy(trigger=cc.tokens > 8, min_preserved_groups=1),
    cc.TokenBudgetStrategy(8),
    cc.ReducerStrategy(lambda messages: messages[-4:], cc.messages > 4),
    InPass(trigger=cc.tokens > 8, min_preserved_groups=1),
]


@grows(
    "CompactionStrategy.compact",
    "CompactionStrategy.compact_core",
    "CompactionStrategy.candidates",
    "CompactionStrategy.candidate_turns",
    "CompactionStrategy.rewritable",
    "CompactionStrategy.reached",
    "CompactionStrategy.fits",
    "CompactionStrategy.undo",
    "CompactionStrategy.evict",
)
def compact(n: int) -> Callable[[], object]:
    indexes = [index_of(agent(n)) for _ in STRATEGIES]
    return lambda: [strategy.compact(one, hooks=()) for strategy, one in zip(STRATEGIES, indexes, strict=True)]


@grows("CompactionStrategy.acompact")
def acompact(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    return lambda: finished(STRATEGIES[0].acompact(index, hooks=()))


@grows("CompactionStrategy.compact")
def compact_what_declines(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    return lambda: cc.TruncationStrategy(trigger=cc.tokens > 10**9).compact(index, hooks=())


@grows("CompactionStrategy.compact")
def compact_in_a_floor_of_everything(n: int) -> Callable[[], object]:
    index = index_of(agent(n))
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 8, min_preserved_messages=10**9)
    return lambda: strategy.compact(index, hooks=())


def of_each_strategy(make: Make, name: str) -> None:
    """A compaction of long messages that is never enough, in many groups and in one giant one."""

    def prepare(n: int) -> Callable[[], object]:
        strategy = make(300, OffloadStore("memory://operations"))
        # Twice as many, so that what is kept at the end is no large part of it.
        many, one = index_of(wordy(2 * n)), index_of(wordy_group(n))
        return lambda: (strategy.compact(many, hooks=()), strategy.compact(one, hooks=()))

    prepare.__name__ = f"compact-{name}"
    grows("CompactionStrategy.compact", "CompactionStrategy.compact_core")(prepare)


def _summarize(window: int) -> Make:
    """One request for all of it, or one for each chunk and those that merge them."""
    arguments: dict[str, Any] = {"max_summary_tokens": 600, "max_calls": 1_000, "min_preserved_groups": 1}
    return lambda limit, _: cc.SummarizationStrategy(summarizer, trigger=cc.tokens > limit, window=window, **arguments)


OF_EACH: dict[str, Make] = {
    **MAKE,
    "summarization": _summarize(10**9),
    "summarization in chunks": _summarize(12_000),
}
for each_name, each_make in OF_EACH.items():
    of_each_strategy(each_make, each_name)


@grows("CompactionStrategy.plan", "CompactionStrategy.run_stage")
def plan(n: int) -> Callable[[], object]:
    strategy, index = MAKE["pipeline"](300, OffloadStore("memory://operations")), index_of(wordy(2 * n))
    return lambda: strategy.plan(index)


@grows("MessageIndex.report_failure")
def report_failures(n: int) -> Callable[[], object]:
    history = [user(f"task {i}") for i in range(n)]

    @cc.strategy(trigger=cc.tokens > 8)
    def failing(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        for group in strategy.candidates(index):
            index.report_failure(f"messages[{group.positions[0]}]", OSError("no room"))

    index = index_of(history)
    return lambda: len(failing.compact(index, hooks=()).failures) > n // 2


@grows("BackgroundDelivery.__call__", "BackgroundDelivery.flush", "BackgroundDelivery.close")
def deliver_in_the_background(n: int) -> Callable[[], object]:
    index = index_of(wordy(n))
    departures = [cc.Departure(tuple(index.messages_of(g)), g.positions, g.kind, "left") for g in index.groups]
    all_there = threading.Event()

    def work() -> None:
        # The thread waits at the first, so that it has no part in what is counted.
        delivery = cc.BackgroundDelivery(lambda _: all_there.wait(60), max_waiting=8 * len(departures))
        for departure in departures:
            delivery(departure)
        all_there.set()
        delivery.flush()
        delivery.close()

    return work


@grows("testing.picture")
def picture(n: int) -> Callable[[], object]:
    history = wordy(n)
    strategy = cc.ToolResultStrategy(trigger=cc.tokens > 8, style="collapse")
    return lambda: testing.picture(strategy, history, counter=characters_counter(), format="openai_chat")


@grows("list_tool_uses")
def list_tool_uses(n: int) -> Callable[[], object]:
    uses = [cc.UsedTool("look", '{"path": "a.py"}', f"result {i} " * 40, 80) for i in range(n)]
    return lambda: cc.list_tool_uses(uses)


@grows("from_config", "to_config", "load_config", "dump_config", "config.loads_config", "config.dumps_config")
def read_and_write_a_config(n: int) -> Callable[[], object]:
    stages = [cc.TruncationStrategy(trigger=(cc.tokens > 10_000 + i) | (cc.turns > i)) for i in range(n)]
    strategy = cc.PipelineStrategy(*stages)

    def work() -> None:
        assert cc.from_config(cc.to_config(strategy)) == strategy
        formats: tuple[config.ConfigFormat, ...] = ("json", "toml", "yaml")
        for format in formats:
            assert config.loads_config(config.dumps_config(strategy, format), format) == strategy
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "strategy.json"
            cc.dump_config(strategy, path)
            assert cc.load_config(path) == strategy

    return work


@grows(
    "offload.OffloadStore.put",
    "offload.OffloadStore.recall",
    "offload.OffloadStore.search",
    "offload.RecallTool.call",
    "offload.handle_of",
    "offload.recall_tool",
)
def offload_and_recall(n: int) -> Callable[[], object]:
    store = OffloadStore("memory://operations")
    long = "".join(f"line {i} of a long text\n" for i in range(n))

    def work() -> None:
        handle = store.put(long)
        assert handle == offload.handle_of(long)
        assert store.recall(handle) == long
        assert len(store.search(handle, "of a", limit=n)) == n
        assert offload.recall_tool(store).call({"handle": handle, "start": 2})

    return work


@grows("summarizers.ExtractiveSummarizer.__call__")
def extract_sentences(n: int) -> Callable[[], object]:
    said = (f"Shelf {i % 13} holds crate {i} from harbour {i % 7}. Nobody moved it." for i in range(n))
    entries = tuple(summarizers.SummaryEntry("user", text) for text in said)
    request = summarizers.SummaryRequest(instructions="", text="", max_tokens=30 * n, entries=entries)
    summarizer = summarizers.ExtractiveSummarizer(counter=characters_counter())
    return lambda: summarizer(request)


def report_of(n: int) -> cc.CompactionReport:
    """Half of it excluded, the other half in the way, and a problem in each step."""
    history = [message for i in range(n) for message in (*step(f"c{i}"), result(f"orphan {i}"))]
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 1, min_preserved_groups=n)
    return strategy.compact(index_of(history), hooks=())


@grows("CompactionReport.to_dict", "CompactionReport.metrics", "CompactionReport.overflow_text")
def report(n: int) -> Callable[[], object]:
    done = report_of(n)
    assert min(len(done.excluded), len(done.blocked_by), len(done.problems)) >= n // 2
    return lambda: (done.to_dict(), done.metrics(), done.overflow_text(), str(done), repr(done))


@grows("instrumentation.emit", "instrumentation.log_report")
def emit(n: int) -> Callable[[], object]:
    done = report_of(n)
    return lambda: instrumentation.emit(done, [instrumentation.log_report])


# -- a reducer -------------------------------------------------------------------------------------


def reducer_of(history: list[Any]) -> cc.ChatReducer:
    reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(8), counter=characters_counter(), hooks=())
    reducer(history)
    return reducer


@grows(
    "ChatReducer.__call__",
    "ChatReducer.reduce",
    "ChatReducer.areduce",
    "ChatReducer.reduce_with_report",
    "ChatReducer.areduce_with_report",
)
def reduce(n: int) -> Callable[[], object]:
    history = agent(n)
    reducer = reducer_of(history[:2])
    return lambda: (
        reducer(history),
        reducer.reduce([*history]),
        reducer.reduce_with_report([*history, user("more")]),
        finished(reducer.areduce([*history])),
        finished(reducer.areduce_with_report([*history])),
    )


@grows("ChatReducer.reduce", "Repaired.in_callers_list")
def reduce_and_repair(n: int) -> Callable[[], object]:
    history = broken(n)
    reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(8), counter=len, hooks=(), on_invalid="repair")
    return lambda: reducer.reduce(history)


# -- what is wrong, and its repair -----------------------------------------------------------------

EVERY_RULE = FORMATS["openai_chat"].with_rules(
    *(getattr(rules, name)() for name in rules.__all__ if name not in ("Rule", "Draft", "Seam", "Tie", "TieKind"))
)


def broken(n: int) -> list[Any]:
    """A history that breaks every rule many times over; nine messages each, so that there are about as many as n."""
    return [
        message
        for i in range(n // 8)
        for message in (
            thought(f"{i}"),
            call("again", f"lost{i}"),
            result(f"nobody{i}"),
            said(""),
            {"role": "system", "content": f"rule {i}"},
            result("again"),
            result("again"),
            user(f"task {i}"),
            user(f"more {i}"),
        )
    ]


@grows("repair", "Rule.repair")
def repair(n: int) -> Callable[[], object]:
    history = broken(n)
    return lambda: cc.repair(history, format=EVERY_RULE, pending_turns=0)


COVERED |= {
    f"formats.rules.Draft.{name}" for name, value in vars(rules.Draft).items() if name[0] != "_" and callable(value)
}


@grows("Rule.check_message", "Rule.check_seam", "Rule.check_tie", "Rule.check_last")
def check(n: int) -> Callable[[], object]:
    history = broken(n)
    return lambda: index_of(history, format=EVERY_RULE, validate=True).problems


# -- predicates ------------------------------------------------------------------------------------


@grows("all_of", "any_of", "Predicate.__call__", "Predicate.explain", "CompactionStrategy.effective_target")
def predicates(n: int) -> Callable[[], object]:
    index = index_of([user()])

    def work() -> object:
        parts = [cc.tokens > i for i in range(10**6, 10**6 + n)]
        every, some = cc.all_of(*parts), cc.any_of(*parts)
        target = cc.TruncationStrategy(trigger=some).effective_target
        return every(index), some(index), every.explain(index), some.explain(index), repr(target), hash(every)

    return work


@grows("parse_predicate")
def parse_predicate(n: int) -> Callable[[], object]:
    text = " or ".join(f"(tokens > {i} and turns <= {i})" for i in range(n))
    return lambda: cc.parse_predicate(text)


# -- formats ---------------------------------------------------------------------------------------


def texts(n: int, kind: str = "text") -> list[Any]:
    return [{"type": kind, "text": f"text {i}"} for i in range(n)]


def calls(n: int) -> list[Any]:
    return [{"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in range(n)]


def gemini_cli_calls(n: int) -> list[Any]:
    return [{"id": f"c{i}", "name": "f", "args": {}, "status": "success", "result": []} for i in range(n)]


WIDE: dict[str, Callable[[int], dict[str, Any]]] = {
    "openai_chat": lambda n: {"role": "assistant", "content": texts(n), "tool_calls": calls(n)},
    "mistral": lambda n: {"role": "assistant", "content": texts(n), "tool_calls": calls(n)},
    "anthropic": lambda n: {
        "role": "assistant",
        "content": [*texts(n), *({"type": "tool_use", "id": f"c{i}", "name": "f", "input": {}} for i in range(n))],
    },
    "openai_responses": lambda n: {"type": "message", "role": "user", "content": texts(n, "input_text")},
    "gemini": lambda n: {
        "role": "model",
        "parts": [part for i in range(n) for part in ({"text": f"{i}"}, {"functionCall": {"name": "f", "args": {}}})],
    },
    "bedrock_converse": lambda n: {
        "role": "assistant",
        "content": [
            part
            for i in range(n)
            for part in ({"text": f"{i}"}, {"toolUse": {"toolUseId": f"c{i}", "name": "f", "input": {}}})
        ],
    },
    "langchain": lambda n: {
        "type": "ai",
        "content": texts(n),
        "tool_calls": [{"id": f"c{i}", "name": "f", "args": {}, "type": "tool_call"} for i in range(n)],
    },
    "pi_session": lambda n: {
        "role": "assistant",
        "content": [*texts(n), *({"type": "toolCall", "id": f"c{i}", "name": "f", "arguments": {}} for i in range(n))],
    },
    "gemini_cli": lambda n: {"type": "gemini", "content": "text", "toolCalls": gemini_cli_calls(n)},
    "sharegpt": lambda n: {"from": "gpt", "value": " text" * n},
}
"""A message of many parts, in each format; ShareGPT has only texts."""


def of_each_format(work: Callable[[Format, dict[str, Any]], object], names: str) -> None:
    for name in WIDE:

        def prepare(n: int, name: str = name) -> Callable[[], object]:
            raw = WIDE[name](n)
            return lambda: work(FORMATS[name], raw)

        prepare.__name__ = f"{names.split()[0]}-{name}"
        grows(*(f"Format.{each}" for each in names.split()))(prepare)


def rewrite(format: Format, raw: dict[str, Any]) -> object:
    read = format.read(raw, 0).parts
    parts = len(read)
    return (
        format.without(raw, range(0, parts, 2)),
        format.renamed(raw, parts - 1, "another"),
        format.reordered(raw, range(parts)[::-1]),
        format.joined(raw, raw),
        format.saying(raw, "instead"),
        format.with_texts(
            raw, {n: "{}" for n, part in enumerate(read) if part.kind in (PartKind.TEXT, PartKind.TOOL_CALL)}
        ),
    )


def view(format: Format, raw: dict[str, Any]) -> object:
    """What is asked of our view of a message."""
    read = format.read(raw, 0)
    return [getattr(read, name) for name in MESSAGE]


MESSAGE = [name for name, value in vars(formats.Message).items() if isinstance(value, property)]
COVERED |= {f"formats.Message.{name}" for name in [*MESSAGE, "without_reasoning"]}

of_each_format(lambda format, raw: (format.claims(raw), format.hints(raw), format.read(raw, 0)), "read claims hints")
of_each_format(rewrite, "without renamed reordered joined saying with_texts")
of_each_format(view, "read")


@grows("formats.Message.without_reasoning")
def without_reasoning(n: int) -> Callable[[], object]:
    blocks = [{"type": "thinking", "thinking": f"{i}", "signature": "s"} for i in range(n)]
    read = FORMATS["anthropic"].read({"role": "assistant", "content": [*blocks, *texts(n)]}, 0)
    return lambda: (read.signed, read.without_reasoning)


@grows("formats.detect")
def detect(n: int) -> Callable[[], object]:
    history = [user(), said()] * n
    return lambda: formats.detect(history)


def sessions(n: int) -> list[str]:
    """The text of a session file in each shape."""
    history = agent(n)
    lines = [json.dumps(message) for message in history]
    return [json.dumps(history, indent=1), "\n".join(lines), json.dumps({"model": "m", "messages": history})]


@grows("formats.read_session", "formats.Session.dump", "formats.Session.pieces", "formats.Session.beside")
def read_session(n: int) -> Callable[[], object]:
    texts = sessions(n)

    def work() -> None:
        for text in texts:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "session"
                path.write_text(text)
                session = formats.read_session(path)
            assert "".join(session.pieces(session.messages)) == session.dump(session.messages)
            assert session.beside == []

    return work


@grows("compact_sessions")
def compact_sessions(n: int) -> Callable[[], object]:
    text = json.dumps(agent(4))

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            logs, output = Path(folder) / "logs", Path(folder) / "output"
            logs.mkdir()
            for i in range(n // 4):
                (logs / f"{i}.json").write_text(text)
            results = cc.compact_sessions(logs, STRATEGIES[0], output=output, counter=len, hooks=())
            assert [result.changed for result in results] == [True] * (n // 4)

    return work


# -- counters --------------------------------------------------------------------------------------


def two_words() -> Tokenizer:
    return Tokenizer(models.WordLevel({"text": 0, "?": 1}, unk_token="?"))  # noqa: S106


@grows(
    "counters.CountCache.count_many",
    "counters.bounds_of",
    "counters.byte_bounds",
    "EstimateCounter.bounds",
    "EstimateCounter.count_many",
    "FunctionCounter.count_many",
    "TokenizerCounter.count_many",
    "TokenizerCounter.bounds",
    "testing.RecordingCounter.count_many",
)
def count_texts(n: int) -> Callable[[], object]:
    every: list[cc.Counter]
    every = [cc.EstimateCounter(), cc.FunctionCounter(len), cc.TokenizerCounter(two_words()), RecordingCounter()]
    texts = [f"text {i} of many" for i in range(n)]

    def work() -> object:
        caches = [counters.CountCache(counter, 8 * n) for counter in every]
        bounds = [counters.bounds_of(counter) for counter in every]
        told = [bound(text) for bound in (*bounds, counters.byte_bounds) if bound for text in texts]
        return told, [cache.count_many(texts) for cache in caches], [cache.count_many(texts) for cache in caches]

    return work


_NUMBERS = itertools.count(10_000)
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


@grows("EstimateCounter.count_many")
def estimate_a_text(n: int) -> Callable[[], object]:
    kinds = itertools.cycle(["word", "Ünïcode", "漢字", "0x1f", "{}", "   ", "aGVsbG8=", "\n"])
    # No word is in two texts: a counter may remember words.
    words = (str(next(_NUMBERS)).translate(_LETTERS) for _ in range(n))
    text = " ".join(f"{next(kinds)} {word}" for word in words)

    def work() -> object:
        # What it remembers is bounded by itself; a table that doubles in the middle would be measured here.
        with mock.patch.object(_estimate, "_LONGEST_KNOWN", 0):
            return cc.EstimateCounter().count_many([text, text * 2])

    return work


# -- all of them -----------------------------------------------------------------------------------

EXEMPT = {
    "the protocol: nothing runs": ["Counter.name", "Counter.exact", "Counter.count_many", "offload.TextStore.put"],
    "the same in a thread": ["offload.OffloadStore.aput", "offload.OffloadStore.arecall", "offload.RecallTool.acall"],
    "one request to a model, of the text that it is given; see tests/test_summarizers_*.py": [
        "_ClientSummarizer.__call__",
        "summarizers.EndpointSummarizer.__call__",
    ],
    "one value, of what it was made of": [
        "Effect.__call__",
        "EstimateCounter.exact",
        "EstimateCounter.name",
        "FunctionCounter.name",
        "TokenizerCounter.exact",
        "TokenizerCounter.name",
        "CompactionReport.event",
        "CompactionStrategy.floor",
        "CompactionStrategy.name",
        "CompactionStrategy.shortens",
        "CompactionStrategy.token_limit",
        "ContextWindowStrategy.input_budget",
        "MessageGroup.newest",
        "SessionResult.changed",
        "SessionResult.ok",
        "MessageIndex.counter",
        "MessageIndex.format",
        "counters.CountCache.asked",
        "counters.CountCache.counter",
        "formats.rules.Tie.position",
        "offload.RecallTool.definition",
        "summarizers.SummaryRequest.digest",
        "summarizers.SummaryRequest.prompt",
        "testing.RecordingCounter.exact",
        "testing.RecordingCounter.name",
        "triggers.Comparison.lower",
        "triggers.Comparison.upper",
        "triggers.FunctionPredicate.name",
    ],
    "makes one value of a few arguments": [
        "as_chat_reducer",
        "counters.framing_of",
        "counters.resolve_counter",
        "counters.shared_cache",
        "formats.resolve_format",
        "fraction_of_window",
        "groups_exceed",
        "has_tool_calls",
        "instrumentation.check_hooks",
        "messages_exceed",
        "predicate",
        "strategy",
        "testing.characters_counter",
        "testing.histories",
        "tokens_below",
        "tokens_exceed",
        "tool_groups_exceed",
        "turns_exceed",
    ],
    "a format has a handful of rules": ["Format.with_rules", "Format.without_rules"],
    "reads a vocabulary": ["TokenizerCounter.from_file"],
    "by the size of one image, recording or document; see tests/test_media_headers.py": ["MediaCosts.cost"],
}


def operations_of(prefix: str, names: list[str], module: Any) -> Iterator[str]:
    """The functions of a module, and the methods and properties of its classes, by the class that names them first."""
    for name in names:
        found = getattr(module, name)
        if inspect.isfunction(found):
            yield prefix + name
        elif inspect.isclass(found):
            for member, value in inspect.getmembers_static(found):
                if member.startswith("_") and member != "__call__":
                    continue
                if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value):
                    first = [cls for cls in found.__mro__ if member in vars(cls)][-1]
                    yield f"{prefix if first is found and first not in ROOTS else ''}{first.__name__}.{member}"


ROOTS = (Format, rules.Rule, cc.CompactionStrategy, cc.Predicate, cc.MediaCosts)
MODULES = {
    "": cc,
    "config.": config,
    "counters.": counters,
    "formats.": formats,
    "formats.rules.": rules,
    "instrumentation.": instrumentation,
    "offload.": offload,
    "summarizers.": summarizers,
    "testing.": testing,
    "triggers.": triggers,
}


def public_operations() -> set[str]:
    seen = set(cc.__all__)
    found = set(operations_of("", cc.__all__, cc))
    for prefix, module in MODULES.items():
        new = [name for name in module.__all__ if name not in seen]
        found |= set(operations_of(prefix, new, module))
    return found


def test_every_public_operation_is_here() -> None:
    """A new one is covered by a case, or there is a reason why it needs none."""
    exempt = {name for names in EXEMPT.values() for name in names}
    assert public_operations() - COVERED - exempt == set()
    assert (COVERED | exempt) - public_operations() == set()
    assert COVERED & exempt == set()


def test_every_format_has_a_wide_message() -> None:
    """With parts in proportion, but where the format has a text and nothing else."""
    assert set(WIDE) == set(FORMATS)
    for name, wide in WIDE.items():
        assert len(FORMATS[name].read(wide(9), 0).parts) >= (1 if name == "sharegpt" else 9)


@pytest.mark.parametrize("name", CASES)
def test_work_grows_as_the_size_does(name: str) -> None:
    """K13: eight times as much is eight times the work."""
    assert growth(CASES[name]) < MOST


@pytest.mark.parametrize("name", CONSTANT)
def test_work_is_the_same_at_any_size(name: str) -> None:
    """K13: reading a metric is O(1), and so is what concerns one group."""
    assert growth(CONSTANT[name]) <= 1


# -- memory ----------------------------------------------------------------------------------------

MEMORY_SIZE = 64
SMALL_MEMORY_SIZE = 16
"""For what holds much memory at any size, so that a table that doubles is no large part of it."""
MOST_MEMORY = 10.0


MUCH_MEMORY = {"plan", "picture", "read_and_write_a_config", *(f"compact-{name}" for name in OF_EACH)}


def peak(work: Callable[[], object]) -> int:
    """The most memory that some work holds at once beyond what was there before, what it returns included."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        del kept
        tracemalloc.stop()


def memory_growth(prepare: Prepare, size: int = MEMORY_SIZE) -> float:
    """How much more memory is held at eight times the size."""
    prepare(size)()  # What is made once, such as a module that loads late, is made here.
    ratio = MOST_MEMORY
    for _ in range(3):
        # Again where it is too much: a table or a free list of the interpreter may have grown in just this one.
        if ratio >= MOST_MEMORY:
            small, large = prepare(size), prepare(8 * size)
            ratio = peak(large) / peak(small)
    return ratio


@pytest.mark.parametrize("name", [*CASES, *CONSTANT])
def test_memory_grows_as_the_size_does(name: str) -> None:
    """K13: eight times as much is eight times the memory at most."""
    size = SMALL_MEMORY_SIZE if name in MUCH_MEMORY else MEMORY_SIZE
    assert memory_growth((CASES | CONSTANT)[name], size) < MOST_MEMORY


@shapes
def test_memory_grows_as_the_list_does_whatever_its_shape(shape: Shape) -> None:
    """K13: reading, compacting and appending hold memory in proportion to the list."""
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 8, min_preserved_groups=1)

    def prepare(n: int) -> Callable[[], object]:
        history = shape(n)

        def work() -> object:
            index = index_of(history)
            strategy.compact(index, hooks=())
            index.extend([said()])
            return index, index.included_messages()

        return work

    assert memory_growth(prepare) < MOST_MEMORY


def test_what_is_not_linear_is_seen() -> None:
    """In work and in memory: a snapshot of all groups for each group."""

    def prepare(n: int) -> Callable[[], object]:
        index = index_of(agent(n))
        groups = index.groups
        return lambda: [index.groups for _ in groups]

    assert growth(prepare) > 4 * MOST
    assert memory_growth(prepare, size=16) > 4 * MOST_MEMORY
