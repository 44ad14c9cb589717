"""The history shapes that are about summaries: each property that a shape demands, over that shape.

A shape's own marks of summaries become ours, since each project has its own. Sizes in the file are characters by
four, so here they are characters.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._marks import OPENING, mark, recognised
from chat_compaction._summarizing import SummaryRequest
from chat_compaction.strategies.summarization import SummarizationStrategy
from tests.conformance import shapes
from tests.conformance.properties import EVERY_PASS, speaks_for_user
from tests.conformance.shapes import COUNTER, Shape, count
from tests.legality import SYSTEM, new_faults

_THEIRS = "[Summary of earlier messages] "
BODY = "Bays were counted."
KEY = b"of the tests"


@attrs.define
class Summarizer:
    """Gives answers one after the other, the last one again and again, and keeps what it was asked."""

    answers: list[Any] = attrs.field(factory=lambda: [BODY])
    requests: list[SummaryRequest] = attrs.field(factory=list)

    def __call__(self, request: SummaryRequest) -> Any:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


def shape_of(shape_id: str) -> Shape:
    (shape,) = (shape for shape in shapes.load() if shape.id == shape_id)
    return shape


def messages_of(shape: Shape) -> list[Any]:
    """The messages of a shape, with our mark where it has one."""
    return [_ours(message) for message in shape.messages]


def _ours(message: Any) -> Any:
    text = message["content"]
    if isinstance(text, str) and text.startswith(_THEIRS):
        return {**message, "content": mark(text.removeprefix(_THEIRS), KEY)}
    return message


def _longer(message: Any, times: int) -> Any:
    text = message["content"]
    own = isinstance(text, str) and message["role"] not in SYSTEM and not text.startswith(_THEIRS)
    return {**message, "content": text * times} if own else message


def strategy(summarizer: Any, **arguments: Any) -> SummarizationStrategy:
    """Summarises all that may be, whenever it is asked."""
    defaults = {"trigger": cc.always, "target": cc.never, "min_preserved_groups": 1, "min_gain": 1}
    return SummarizationStrategy(summarizer, **{**defaults, "max_summary_tokens": 800, **arguments})


def index_of(messages: Sequence[Any], **arguments: Any) -> cc.MessageIndex:
    return cc.MessageIndex.from_messages(messages, counter=COUNTER, summary_key=KEY, **arguments)


def pins(shape: Shape, messages: Sequence[Any]) -> list[Any]:
    return [messages[position] for position in shape.pinned]


def compacted(shape_id: str, longer: int = 1, **arguments: Any) -> tuple[list[Any], list[Any], cc.CompactionReport]:
    """The messages of a shape, their text so many times, what is sent of them, and the report."""
    shape = shape_of(shape_id)
    messages = messages_of(replace(shape, messages=[_longer(message, longer) for message in shape.messages]))
    index = index_of(messages, pinned=pins(shape, messages))
    report = strategy(Summarizer(), **arguments).compact(index, hooks=())
    return messages, index.included_messages(), report


def demanding(slug: str) -> pytest.MarkDecorator:
    """A test for each shape that demands a property of summaries."""
    found = [shape.id for shape in shapes.demanding(slug) if "summar" in shape.settings["strategy"]]
    assert found, slug
    return pytest.mark.parametrize("shape_id", found)


# -- properties of what is sent ---------------------------------------------------------------------------


def summaries(messages: Sequence[Any]) -> list[int]:
    """The positions of summaries, by their mark."""
    return [p for p, m in enumerate(messages) if isinstance(m["content"], str) and recognised(m["content"], KEY)]


def one_summary(sent: Sequence[Any]) -> Iterator[str]:
    """At most one summary, and none inside of it."""
    if len(summaries(sent)) > 1:
        yield f"summaries at {summaries(sent)}"
    if json.dumps(sent).count(OPENING) > len(summaries(sent)):
        yield "a summary inside of another text"


def summary_before_tail(before: Sequence[Any], sent: Sequence[Any]) -> Iterator[str]:
    """The summary comes after the system messages, and before all that is kept and came later than what it replaced.

    What was older than all of that stays ahead of it: a pinned message, or the user's last words.
    """
    own = {id(message): position for position, message in enumerate(before)}
    kept = [own.get(id(message)) for message in sent]
    gone = set(range(len(before))) - set(kept)
    for place in summaries(sent):
        if any(message["role"] in SYSTEM for message in sent[place:]):
            yield "the summary stands ahead of a system message"
        late = [p for p in kept[:place] if p is not None and p > max(gone, default=0)]
        early = [p for p in kept[place:] if p is not None and p < min(gone, default=0)]
        if late or early:
            yield f"the summary stands at {place} of {kept}"


def last_user_kept(before: Sequence[Any], sent: Sequence[Any]) -> Iterator[str]:
    """The newest words of the user, which a summary never is."""
    said = [m for m in before if speaks_for_user(m) and not recognised(str(m["content"]), KEY)]
    if said and not any(message is said[-1] for message in sent):
        yield "the user's last words are gone"


def system_first(before: Sequence[Any], sent: Sequence[Any]) -> Iterator[str]:
    """Leading system messages stay first."""
    leading = next((p for p, m in enumerate(before) if m["role"] not in SYSTEM), len(before))
    if list(map(id, sent[:leading])) != list(map(id, before[:leading])):
        yield "system messages moved"


def all_of(before: Sequence[Any], sent: Sequence[Any]) -> list[str]:
    """What is wrong by any of these properties, and by the rules of the provider."""
    faults = [fault.detail for fault in new_faults(before, sent, "openai_chat")]
    return [
        *faults,
        *one_summary(sent),
        *summary_before_tail(before, sent),
        *last_user_kept(before, sent),
        *system_first(before, sent),
    ]


@demanding("summary_before_tail")
@pytest.mark.parametrize("floor", [1, 3])
@pytest.mark.parametrize("longer", [1, 20])
def test_summary_before_tail(shape_id: str, floor: int, longer: int) -> None:
    """S1, K7: it stands where what it replaces stood; also where the few words of a shape are longer ones."""
    before, sent, report = compacted(shape_id, longer=longer, min_preserved_messages=floor)
    assert all_of(before, sent) == []
    # No summary is smaller than the few words that may leave in these.
    assert report.changed or (longer == 1 and shape_id in ("c07", "c78"))
    assert report.failures == ()


@demanding("summary_marked")
def test_summary_marked(shape_id: str) -> None:
    """S1: it is recognised in a list that was stored, and it is not the user's."""
    _, sent, _ = compacted(shape_id)
    loaded = index_of(json.loads(json.dumps(sent)))
    (found,) = [group for group in loaded.groups if group.kind is cc.GroupKind.SUMMARY]
    assert [loaded.view(p).summary is not None for p in found.positions] == [True]
    assert loaded.value(cc.turns) == index_of([m for m in sent if not summaries([m])]).value(cc.turns)
    again, _ = loaded.included_messages(), strategy(Summarizer()).compact(loaded, hooks=())
    assert sent[-1] in again


@demanding("one_summary")
def test_one_summary(shape_id: str) -> None:
    """S2: in five passes with new turns between there is one summary, and never one inside of another."""
    shape, summarizer = shape_of(shape_id), Summarizer([f"Summary number {n}." for n in range(20)])
    messages = messages_of(shape)
    index = index_of(messages, pinned=pins(shape, messages))
    for number in range(5):
        strategy(summarizer, max_summary_tokens=1_600, min_preserved_groups=0).compact(index, hooks=())
        sent = index.included_messages()
        assert list(one_summary(sent)) == [], number
        assert all(OPENING not in request.text for request in summarizer.requests)
        index.extend(
            [{"role": "user", "content": f"Bay {number}? " * 20}, {"role": "assistant", "content": "3. " * 90}]
        )
    assert summarizer.requests
    for earlier, request in zip(summarizer.requests, summarizer.requests[1:], strict=False):
        assert [entry.speaker for entry in request.entries].count("summary") == 1, earlier


def test_without_a_floor_the_newest_summary_is_one_of_them() -> None:
    """c76 is nothing but summaries: a floor of 0 lets the newest group be replaced, though never leave (rule K2)."""
    messages = messages_of(shape_of("c76"))
    for floor, number in ((0, 1), (1, 2)):
        index = index_of(messages)
        strategy(Summarizer(), min_preserved_groups=floor, max_summary_tokens=600).compact(index, hooks=())
        sent = index.included_messages()
        assert len(summaries(sent)) == number
        assert sent[0] is messages[0]
        assert len(sent) > 1


# -- what is asked ----------------------------------------------------------------------------------------


@demanding("summary_request_valid")
def test_summary_request_valid(shape_id: str) -> None:
    """S2: text without tools, calls and results in words, within the window."""
    summarizer = Summarizer()
    messages = [*messages_of(shape_of(shape_id))]
    messages[0] = {"role": "user", "content": f"{messages[0]['content']} " * 20}
    index = index_of(messages)
    strategy(summarizer, window=6_000).compact(index, hooks=())
    (request,) = summarizer.requests
    assert isinstance(request.instructions, str)
    assert isinstance(request.text, str)
    assert '(calls top_crate with {"bay": 1})' in request.text
    assert "tool top_crate]\ncrate 14" in request.text
    assert len(request.prompt) + request.max_tokens <= 6_000
    assert not hasattr(request, "tools")


# -- sizes ------------------------------------------------------------------------------------------------


@demanding("above_floor")
def test_above_floor(shape_id: str) -> None:
    """K3: no more is summarised than needed, so that most of the target is used."""
    limits = dict(zip(("trigger", "target", "floor"), (8_000, 4_800, 3_600), strict=True))
    before, sent, report = compacted(
        shape_id,
        trigger=cc.tokens > limits["trigger"],
        target=cc.tokens <= limits["target"],
        max_summary_tokens=600,
    )
    assert count(before) > limits["trigger"]
    assert limits["floor"] <= count(sent) <= limits["target"]
    assert report.fits
    assert all_of(before, sent) == []


# -- failures ---------------------------------------------------------------------------------------------

FAILURES: dict[str, Any] = {
    "error": OSError("no connection"),
    "empty": "",
    "none": None,
    "error text": "Error: the answer was cut off. " * 200,
}


@demanding("atomic_on_failure")
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("is_async", [False, True])
def test_atomic_on_failure(shape_id: str, failure: str, is_async: bool) -> None:
    """S3, K8, K9: the output is the input, message for message, and the report says what failed."""
    shape, summarizer = shape_of(shape_id), Summarizer([FAILURES[failure]])
    messages = messages_of(shape)
    pristine = copy.deepcopy(messages)
    index = index_of(messages)
    half = cc.tokens <= count(messages) // 2

    async def later(request: SummaryRequest) -> Any:
        return summarizer(request)

    if is_async:
        report = asyncio.run(strategy(later, target=half).acompact(index, hooks=()))
    else:
        report = strategy(summarizer, target=half).compact(index, hooks=())
    assert list(map(id, index.included_messages())) == list(map(id, messages))
    assert messages == pristine
    assert summarizer.requests
    assert [failure.what for failure in report.failures] == ["summary"]
    assert report.changed is False
    assert report.tokens_before == report.tokens_after == count(messages)


def test_a_pending_call_is_never_summarised() -> None:
    """G3: c87 waits for a result."""
    before, sent, report = compacted("c87")
    assert sent[-1] is before[-1]
    assert report.changed
    assert all_of(before, sent) == []


# -- at once, in a row, and stored ------------------------------------------------------------------------


@demanding("concurrent_safe")
def test_concurrent_safe(shape_id: str) -> None:
    """Four at once make one call; what is appended meanwhile is all there, and last."""
    start, summarizer = Barrier(4), Summarizer()
    summarise = strategy(summarizer)
    messages = messages_of(shape_of(shape_id))

    def work(number: int) -> list[Any]:
        index = index_of(messages)
        start.wait(10)
        summarise.compact(index, hooks=())
        new = [{"role": "user", "content": f"{number}, part {part}"} for part in range(3)]
        index.extend(new)
        sent = index.included_messages()
        assert sent[-3:] == new
        assert list(one_summary(sent)) == []
        return sent[:-3]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert results == [results[0]] * 4
    assert len(summaries(results[0])) == 1
    assert len(summarizer.requests) == 1


@demanding("prefix_stable")
def test_prefix_stable(shape_id: str) -> None:
    """K11: what stands ahead of the first change is the same, and the report says where that is."""
    shape = shape_of(shape_id)
    messages = messages_of(shape)
    index = index_of(messages, pinned=pins(shape, messages))
    summarise = strategy(Summarizer(["First.", "Second."]), trigger=cc.tokens > 1_400, target=cc.tokens <= 1_000)
    previous = index.included_messages()
    for _ in range(2):
        report = summarise.compact(index, hooks=())
        sent = index.included_messages()
        assert report.changed
        same = next(p for p, (now, was) in enumerate(zip(sent, previous, strict=False)) if now != was)
        assert list(map(id, sent[:same])) == list(map(id, previous[:same]))
        assert same >= 2  # The system message and the pinned one.
        assert report.stable_prefix_tokens == count(sent[:same])
        index.extend([{"role": "user", "content": "And now? " * 60}, {"role": "assistant", "content": "Three. " * 60}])
        previous = index.included_messages()
    assert list(one_summary(previous)) == []


@demanding("roundtrip")
def test_roundtrip(shape_id: str) -> None:
    """Stored as JSON and loaded, the next request is the same as without."""
    asked: list[list[SummaryRequest]] = []
    results: list[list[Any]] = []
    for stored in (False, True):
        summarizer = Summarizer(["First.", "Second."])
        summarise = strategy(summarizer, trigger=cc.tokens > 1_400, target=cc.tokens <= 1_000, max_summary_tokens=400)
        index = index_of(messages_of(shape_of(shape_id)))
        assert summarise.compact(index, hooks=()).changed
        if stored:
            index = index_of(json.loads(json.dumps(index.included_messages())))
        index.extend([{"role": "user", "content": "And bay 9? " * 100}])
        assert summarise.compact(index, hooks=()).changed
        results.append(index.included_messages())
        asked.append(summarizer.requests)
        assert all_of(results[-1], results[-1]) == []
    assert results[0] == results[1]
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2


# -- all of it --------------------------------------------------------------------------------------------

TESTED: dict[str, Callable[..., None]] = {
    "above_floor": test_above_floor,
    "atomic_on_failure": test_atomic_on_failure,
    "concurrent_safe": test_concurrent_safe,
    "one_summary": test_one_summary,
    "prefix_stable": test_prefix_stable,
    "roundtrip": test_roundtrip,
    "summary_before_tail": test_summary_before_tail,
    "summary_marked": test_summary_marked,
    "summary_request_valid": test_summary_request_valid,
}
"""The properties of the file that this module tests, each over every shape that demands it."""


def test_every_property_is_one_of_the_file() -> None:
    assert set(TESTED) <= {slug for shape in shapes.load() for slug in shape.must}
    assert set(TESTED).isdisjoint(EVERY_PASS)
