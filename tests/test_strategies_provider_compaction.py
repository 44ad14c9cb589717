"""What a provider's own compaction stands for leaves first, and the newest compaction never (K1, K3, K4, K7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.strategies.provider_compaction import ProviderCompactionStrategy, provider_compacted
from chat_compaction.testing import RecordingCounter, characters_counter, histories
from tests._shared import load_session, recorded_sessions
from tests.build import Raw, call, results, said, user
from tests.legality import new_faults

# -- OpenAI Responses ------------------------------------------------------------------------------

COMPACTION: Raw = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA"}
NEWER: Raw = {"type": "compaction", "id": "cmp_2", "encrypted_content": "gAAAAB"}
TASK: Raw = {"role": "user", "content": "task"}
NEXT: Raw = {"role": "user", "content": "next"}
RULES: Raw = {"role": "developer", "content": "rules"}
THOUGHT: Raw = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAC"}
ANSWER: Raw = {"role": "assistant", "content": "answer"}


def use(call_id: str) -> list[Raw]:
    """A call and its result."""
    called = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
    return [called, {"type": "function_call_output", "call_id": call_id, "output": "seen"}]


# -- Anthropic -------------------------------------------------------------------------------------

SUMMARY: Raw = {"type": "compaction", "content": "All so far."}
FAILED: Raw = {"type": "compaction", "content": None}
COMPACTED: Raw = {"role": "assistant", "content": [SUMMARY, {"type": "text", "text": "Going on."}]}
CALLING: Raw = {"role": "assistant", "content": [SUMMARY, *call("b", format="anthropic")["content"]]}


def compact(
    history: Sequence[Any],
    format: str = "openai_responses",
    strategy: cc.CompactionStrategy | None = None,
    **settings: Any,
) -> tuple[list[int], cc.CompactionReport]:
    index = cc.MessageIndex.from_messages(history, format=format, counter=characters_counter(), **settings)
    report = (strategy or ProviderCompactionStrategy()).compact(index, hooks=())
    return index.included_positions(), report


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([TASK, *use("a"), COMPACTION, ANSWER, NEXT], [3, 4, 5]),
        ([RULES, TASK, THOUGHT, *use("a"), COMPACTION, ANSWER, NEXT], [0, 5, 6, 7]),
        # An older one is part of the newer.
        ([TASK, ANSWER, COMPACTION, NEXT, ANSWER, NEWER, ANSWER, NEXT], [5, 6, 7]),
        ([TASK, COMPACTION, NEXT, NEWER, NEXT], [3, 4]),
        # The user's newest words stay, and so does a call that waits for its result.
        ([TASK, ANSWER, COMPACTION, ANSWER], [0, 2, 3]),
        ([TASK, *use("a"), use("b")[0], COMPACTION, NEXT], [4, 5]),
        ([TASK, *use("a"), use("b")[0], COMPACTION], [0, 3, 4]),
        # A result behind the compaction keeps its call.
        ([TASK, *use("a"), use("b")[0], COMPACTION, use("b")[1], NEXT], [3, 4, 5, 6]),
    ],
)
def test_what_openai_has_in_its_newest_compaction_leaves(history: list[Raw], kept: list[int]) -> None:
    """K4: items that came before the most recent compaction item may be dropped, by OpenAI's documentation."""
    positions, report = compact(history)
    assert positions == kept
    assert report.fits
    assert {one.reason for one in report.excluded} == {"covered by the provider's compaction"}
    assert not new_faults(history, [history[place] for place in positions], "openai_responses")


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([user("task"), said("a"), user("more"), COMPACTED, user("next")], [3, 4]),
        ([user("task"), call("a", format="anthropic"), results("a"), CALLING, results("b")], [0, 3, 4]),
        ([user("task"), said("a"), COMPACTED, user("more"), CALLING, results("b"), user("next")], [4, 5, 6]),
        # The block alone, when the API was asked to pause.
        ([user("task"), said("a"), {"role": "assistant", "content": [SUMMARY]}, user("next")], [2, 3]),
        # A task alone may have been too long: Anthropic ignores it.
        ([user("task"), COMPACTED, user("next")], [1, 2]),
        # One that failed stands for nothing.
        ([user("task"), said("a"), COMPACTED, {"role": "assistant", "content": [FAILED]}, user("next")], [2, 3, 4]),
    ],
)
def test_what_anthropic_ignores_leaves(history: list[Raw], kept: list[int]) -> None:
    """K4, K7: all blocks ahead of the newest compaction are ignored; it may come first, which an answer may not."""
    positions, report = compact(history, "anthropic")
    assert positions == kept
    assert report.fits
    left = [history[place] for place in positions]
    assert cc.MessageIndex.from_messages(left, format="anthropic").problems == ()


@pytest.mark.parametrize(
    ("history", "format"),
    [
        # Nothing was compacted, or nothing is left to drop.
        ([TASK, ANSWER, NEXT], "openai_responses"),
        ([COMPACTION, ANSWER, NEXT], "openai_responses"),
        ([RULES, COMPACTION, NEXT], "openai_responses"),
        ([user("task"), said("a"), {"role": "assistant", "content": [FAILED]}, user("next")], "anthropic"),
        ([COMPACTED, user("next")], "anthropic"),
        # The window that /responses/compact returned: all of the user's messages, then the item.
        ([TASK, NEXT, COMPACTION], "openai_responses"),
        ([RULES, TASK, NEXT, COMPACTION, NEXT, ANSWER], "openai_responses"),
        # With previous_response_id, the server has the call.
        ([use("a")[1], ANSWER, COMPACTION, NEXT], "openai_responses"),
    ],
)
def test_nothing_leaves(history: list[Raw], format: str) -> None:
    """K1: the trigger does not fire, and the messages are the caller's own."""
    index = cc.MessageIndex.from_messages(history, format=format)
    report = ProviderCompactionStrategy().compact(index, hooks=())
    assert (report.skipped, report.changed, report.fits) == ("trigger", False, True)
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), history, strict=True))


def test_pins_and_the_floor_stay() -> None:
    """K4, G6: what is pinned stays, and so does what a floor says; neither makes the report fail."""
    history = [TASK, ANSWER, NEXT, ANSWER, COMPACTION, NEXT]
    positions, report = compact(history, pinned=[TASK])
    assert (positions, report.fits) == ([0, 4, 5], True)
    positions, report = compact(history, strategy=ProviderCompactionStrategy(min_preserved_messages=4))
    assert (positions, report.fits) == ([2, 3, 4, 5], True)
    positions, report = compact(history, strategy=ProviderCompactionStrategy(min_preserved_groups=9))
    assert (report.changed, report.skipped, report.fits) == (False, "floor", True)


@pytest.mark.parametrize(
    ("format", "history", "newest"),
    [
        ("openai_responses", [TASK, ANSWER, COMPACTION, NEXT, ANSWER, NEWER, *[NEXT, ANSWER] * 3], {5}),
        ("anthropic", [user(), said(), COMPACTED, user(), CALLING, results("b"), *[said(), user()] * 3], {4, 5}),
    ],
)
@pytest.mark.parametrize("preserve_system", [True, False])
def test_the_newest_compaction_never_leaves(
    format: str, history: list[Raw], newest: set[int], preserve_system: bool
) -> None:
    """K4: whatever a strategy asks for: without it all that it stands for would be lost. Older ones may leave."""
    strategy = cc.TruncationStrategy(
        trigger=cc.always, target=cc.messages <= 1, min_preserved_groups=1, preserve_system=preserve_system
    )
    positions, report = compact(history, format, strategy)
    assert newest <= set(positions)
    assert 2 not in positions
    index = cc.MessageIndex.from_messages(history, format=format)
    group = next(group for group in index.groups if min(newest) in group.positions)
    with pytest.raises(cc.ProtectedGroupError, match="compaction"):
        index.exclude(group, "gone")
    with pytest.raises(cc.ProtectedGroupError, match="compaction"):
        index.rewrite(group, {min(newest): None}, "gone")
    assert "compaction" in {blocked.reason for blocked in report.blocked_by}


def test_a_recorded_session() -> None:
    """K7, and of a real session: a task of 169,000 characters was compacted; what the API ignores is what leaves."""
    history = next(load_session(p) for p in recorded_sessions("anthropic") if p.stem == "pydantic-ai-005")
    index = cc.MessageIndex.from_messages(history, format="anthropic", counter=RecordingCounter(framing=True))
    assert ProviderCompactionStrategy().compact(index, hooks=()).changed
    assert index.included_positions() == [1, 2, 3]
    assert index.total(cc.tokens) > 50 * index.value(cc.tokens)


def test_its_own_trigger_and_target() -> None:
    """K3: a user may say when, and up to where; what is covered leaves at once or not at all."""
    history = [TASK, ANSWER, NEXT, ANSWER, COMPACTION, NEXT]
    strategy = ProviderCompactionStrategy(trigger=cc.messages > 5)
    positions, report = compact(history, strategy=strategy)
    assert (positions, report.stopped_by, report.fits) == ([4, 5], "target", True)
    positions, report = compact(history, strategy=ProviderCompactionStrategy(trigger=cc.messages > 9))
    assert (len(positions), report.skipped) == (6, "trigger")
    positions, report = compact(history, strategy=ProviderCompactionStrategy(trigger=cc.messages > 1))
    assert (positions, report.fits) == ([4, 5], False)
    positions, report = compact(history, strategy=ProviderCompactionStrategy(target=cc.messages <= 9))
    assert (len(positions), report.skipped) == (6, "target")


def test_a_plan_says_what_would_leave() -> None:
    """A plan is the report, and changes nothing."""
    history = [TASK, ANSWER, COMPACTION, NEXT]
    index = cc.MessageIndex.from_messages(history, format="openai_responses")
    planned = ProviderCompactionStrategy().plan(index)
    assert index.included_positions() == [0, 1, 2, 3]
    done = ProviderCompactionStrategy().compact(index, hooks=())
    assert planned.excluded == done.excluded
    assert planned.excluded


def test_it_is_a_value() -> None:
    """A strategy prints as the code that makes it, and equals its equal."""
    strategy = ProviderCompactionStrategy(min_preserved_messages=2)
    assert repr(strategy) == "ProviderCompactionStrategy(min_preserved_messages=2)"
    assert strategy == ProviderCompactionStrategy(min_preserved_messages=2)
    assert ProviderCompactionStrategy().trigger is provider_compacted
    with pytest.raises(TypeError, match="trigger must be a predicate"):
        ProviderCompactionStrategy(trigger="provider_compacted")  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.data())
def test_any_history(data: st.DataObject) -> None:
    """K7, K8, K10: what was valid stays valid, the messages are the caller's, and again changes nothing."""
    history = data.draw(histories("openai_responses"))
    index = cc.MessageIndex.from_messages(history, format="openai_responses", validate=True)
    report = ProviderCompactionStrategy().compact(index, hooks=())
    left = index.included_messages()
    assert all(message is history[place] for message, place in zip(left, index.included_positions(), strict=True))
    assert not new_faults(history, left, "openai_responses")
    newest = max((n for n, item in enumerate(history) if item.get("type") == "compaction"), default=-1)
    assert all(place < newest for one in report.excluded for place in one.positions)
    assert not compact(left)[1].changed
