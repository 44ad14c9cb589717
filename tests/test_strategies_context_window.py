"""ContextWindowStrategy: from what loses nothing to what loses most, by shares of the input budget."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.strategies.clip import ClipStrategy
from chat_compaction.strategies.context_window import ContextWindowStrategy
from chat_compaction.strategies.provider_compaction import ProviderCompactionStrategy
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.strategies.tool_result import ToolResultStrategy
from chat_compaction.strategies.truncation import TruncationStrategy
from chat_compaction.testing import histories
from tests.build import Raw, call, index_of, result, said, system, user

WINDOW = ContextWindowStrategy(1_200, 200)
"""An input budget of 1,000 characters: clears above 500 down to 250, clips and truncates above 800 down to 400."""


WIDE = ContextWindowStrategy(12_000, 2_000)
"""The same with ten times as much, for summaries, which must have room to be marked as such."""


def steps(number: int, size: int) -> list[Raw]:
    """Calls with results of this size."""
    return [
        message
        for place in range(number)
        for message in (call(f"call_{place}"), result(f"call_{place}", f"{place}" + "x" * (size - 1)))
    ]


def agent(number: int, size: int) -> list[Raw]:
    """A task and its tool calls, the last of them answered in words."""
    return [system(), user("the task"), *steps(number, size), said("done")]


def talk(number: int, size: int) -> list[Raw]:
    """Questions and answers of this size each."""
    return [m for place in range(number) for m in (user(f"{place}" * size), said(f"{place}" * size))]


def summarizer(_: Any) -> str:
    return "They talked about numbers."


def compact(
    strategy: cc.CompactionStrategy, messages: Sequence[Any], **settings: Any
) -> tuple[cc.MessageIndex, cc.CompactionReport]:
    index = index_of(messages, **settings)
    return index, strategy.compact(index)


def worked(report: cc.CompactionReport) -> list[str]:
    """The stages that changed something."""
    return [stage.strategy for stage in report.stages if stage.changed]


# -- the stages ----------------------------------------------------------------------------------


def test_below_half_of_the_budget_nothing_happens() -> None:
    """K1: the very same messages."""
    history = agent(6, 80)
    index, report = compact(WINDOW, history)
    assert (report.tokens_after, report.skipped) == (497, "trigger")
    assert all(one is other for one, other in zip(index.included_messages(), history, strict=True))


def test_above_half_old_tool_results_are_cleared() -> None:
    """And nothing else is touched; the newest three results stay."""
    index, report = compact(WINDOW, agent(8, 80))
    assert worked(report) == ["ToolResultStrategy"]
    assert len(index.included_messages()) == 19
    texts = [m["content"] for m in index.included_messages() if m["role"] == "tool"]
    assert [len(text) for text in texts[-3:]] == [80, 80, 80]
    assert all(len(text) < 80 for text in texts[:4])
    assert report.fits


def test_no_more_is_cleared_than_makes_room() -> None:
    """At ``room=0`` it stops below the threshold, as the original does."""
    history = [user("the task"), *steps(4, 150), said("done")]
    assert compact(attrs.evolve(WINDOW, room=0.0, keep_tool_uses=0), history)[1].tokens_after in range(400, 501)
    assert compact(attrs.evolve(WINDOW, keep_tool_uses=0), history)[1].tokens_after in range(150, 251)


def test_a_little_is_not_worth_the_cache() -> None:
    """Clearing waits until all of the room is gained."""
    history = [*talk(5, 50), *agent(5, 40)[1:]]
    _, report = compact(WINDOW, history)
    assert report.tokens_before > 500
    assert not report.changed
    assert compact(attrs.evolve(WINDOW, room=0.0), history)[1].changed


def test_what_is_huge_is_clipped_ahead_of_what_leaves() -> None:
    """The newest result is what no other stage may touch."""
    history = [system(), user("the task"), call("a"), result("a", "x" * 2_000)]
    index, report = compact(WINDOW, history)
    assert worked(report) == ["ClipStrategy"]
    assert report.tokens_after <= 400
    assert index.included_positions() == [0, 1, 2, 3]


def test_below_the_last_threshold_nothing_is_clipped() -> None:
    """A long text is no fault as long as there is room for it."""
    _, report = compact(WINDOW, [user("the task"), call("a"), result("a", "x" * 700)])
    assert (report.changed, report.fits) == (False, True)


def test_above_the_last_threshold_the_oldest_groups_leave() -> None:
    """Where there is nothing to clear or to clip."""
    index, report = compact(WINDOW, talk(9, 50))
    assert worked(report) == ["TruncationStrategy"]
    assert report.tokens_after <= 400
    assert index.included_positions() == list(range(10, 18))


def test_a_summariser_sums_up_before_anything_leaves() -> None:
    """At seven eighths of the last threshold."""
    index, report = compact(attrs.evolve(WIDE, summarizer=summarizer), talk(8, 500))
    assert worked(report) == ["SummarizationStrategy"]
    assert not report.excluded
    assert "They talked about numbers." in str(index.included_messages()[0]["content"])
    assert report.tokens_after <= 4_000
    assert not compact(WIDE, talk(8, 500))[1].changed


def test_a_summariser_that_fails_leaves_the_rest_to_truncation() -> None:
    """Not at once: between the two thresholds it is asked again."""

    def fails(_: Any) -> str:
        raise ConnectionError("no route")

    _, report = compact(attrs.evolve(WIDE, summarizer=fails), talk(8, 500))
    assert (report.changed, report.fits, len(report.failures)) == (False, True, 1)
    _, report = compact(attrs.evolve(WIDE, summarizer=fails), talk(9, 500))
    assert worked(report) == ["TruncationStrategy"]
    assert len(report.failures) == 1
    assert report.fits


FACT = "FACT: the key is K-17"


def facts(place: str) -> list[Raw]:
    """A fact in a long old text: said, or given by a tool."""
    text = f"{'x' * 400}\n{FACT}\n{'y' * 400}"
    told = {"tool": [call("key"), result("key", text)], "user": [user(text)], "assistant": [said(text)]}[place]
    return [user("the task"), *told, said("I see.")]


def as_format(format: str, messages: list[Raw]) -> list[Raw]:
    """The same in Anthropic's format."""
    if format == "openai_chat":
        return messages
    written = []
    for message in messages:
        if message["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            written.append({"role": "user", "content": [block]})
        elif message.get("tool_calls"):
            written.append(call(*(each["id"] for each in message["tool_calls"]), format="anthropic"))
        else:
            written.append(message)
    return written


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("place", ["tool", "user", "assistant"])
@pytest.mark.parametrize(
    "keep", [FACT, re.compile("^FACT.*$", re.MULTILINE), lambda m: FACT if FACT in str(m) else None]
)
def test_what_must_be_kept_survives_every_stage(format: str, place: str, keep: Any) -> None:
    """S4: for five rounds of clearing, clipping and summing up, wherever it stood."""
    strategy = attrs.evolve(WIDE, summarizer=summarizer, must_keep=keep)
    history, done = as_format(format, facts(place)), set[str]()
    for turn in range(5):
        new = [user(f"task {turn}"), *steps(12, 400), said("z" * 1_500), user("u" * 1_500), said("done")]
        if turn == 2:
            new[3:3] = [call("huge"), result("huge", "h" * 5_000)]
        for message in as_format(format, new):
            history.append(message)
            index, report = compact(strategy, history, format=format)
            history = index.included_messages()
            done.update(worked(report))
            assert FACT in str(history)
            assert report.failures == ()
    assert done >= {"ToolResultStrategy", "SummarizationStrategy"}


@pytest.mark.parametrize("place", ["tool", "user", "assistant"])
def test_what_truncation_takes_of_it_shows(place: str) -> None:
    """S4: the last resort, and never in silence; once, and not for what stands elsewhere, too."""

    def fails(_: Any) -> str:
        raise ConnectionError("no route")

    strategy = attrs.evolve(WIDE, summarizer=fails, must_keep=[FACT, "the task", "done", "nowhere"])
    history = [*facts(place), *talk(9, 500)[:-1], user("the task"), said("done")]
    index, report = compact(strategy, history)
    assert FACT not in str(index.included_messages())
    assert [failure.error for failure in report.failures if failure.what == "must_keep"] == ["1 text was truncated"]
    assert "must_keep" not in {failure.what for failure in strategy.compact(index).failures}


def test_an_async_summariser() -> None:
    """With ``acompact``."""

    async def asked(_: Any) -> str:
        await asyncio.sleep(0)
        return "They talked."

    index = index_of(talk(8, 500))
    report = asyncio.run(attrs.evolve(WIDE, summarizer=asked).acompact(index))
    assert worked(report) == ["SummarizationStrategy"]


def test_a_failure_is_remembered_from_call_to_call() -> None:
    """The stages are made once, and a summariser that keeps failing is left alone for a while."""
    calls = []

    def fails(_: Any) -> str:
        calls.append(1)
        raise ConnectionError("no route")

    strategy = attrs.evolve(WIDE, summarizer=fails)
    for _ in range(9):
        compact(strategy, talk(8, 500))
    assert len(calls) == 3


def test_what_the_provider_compacted_leaves_first() -> None:
    """At no loss: nothing else is touched then."""
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA"}
    history = [*talk(6, 50), compaction, user("and now?"), said("this")]
    index, report = compact(WINDOW, history, format="openai_responses")
    assert worked(report) == ["ProviderCompactionStrategy"]
    assert index.included_positions() == [12, 13, 14]


# -- thresholds and the floor --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ({}, [(500, 250), (500, 250), (800, 400), (800, 400)]),
        ({"room": 0.0}, [(500, 500), (500, 500), (800, 800), (800, 800)]),
        (
            {"truncate_at": 1.0, "tool_results_at": 0.25, "room": 0.5},
            [(250, 125), (250, 125), (1000, 500), (1000, 500)],
        ),
        ({"summarize_at": 0.6}, [(500, 250), (500, 250), (800, 400), (800, 400)]),
        ({"summarizer": summarizer}, [(500, 250), (500, 250), (700, 350), (700, 350), (800, 400)]),
        (
            {"summarizer": summarizer, "summarize_at": 0.4},
            [(500, 250), (500, 250), (400, 200), (400, 200), (800, 400)],
        ),
    ],
)
def test_the_stages_by_shares(arguments: dict[str, Any], limits: list[tuple[int, int]]) -> None:
    """Shares of the input budget, and the room below each."""
    strategy = attrs.evolve(WINDOW, **arguments)
    found = [(stage.trigger, stage.target) for stage in strategy.stages]
    assert found == [(cc.tokens > above, cc.tokens <= below) for above, below in limits]
    assert strategy.trigger == (cc.tokens > min(above for above, _ in limits))
    kinds = [ProviderCompactionStrategy, ToolResultStrategy, ClipStrategy, SummarizationStrategy, TruncationStrategy]
    assert [type(stage) for stage in strategy.stages] == (kinds if len(limits) == 5 else [*kinds[:3], kinds[4]])


def test_what_is_reserved_takes_its_share() -> None:
    """The system prompt and the tools that are sent apart from the list are part of the input."""
    history = talk(7, 50)
    assert not compact(WINDOW, history)[1].changed
    assert compact(WINDOW, history, reserved=300)[1].changed


def test_it_fits_within_the_input_budget() -> None:
    """Not only below the threshold at which it began to work."""
    strategy = attrs.evolve(WINDOW, clip_above=1.0)
    _, report = compact(strategy, [user("a" * 500), said("b" * 500)])
    assert (report.tokens_after, report.changed, report.fits) == (1_000, False, True)
    index = index_of([user("a" * 501), said("b" * 500)])
    with pytest.raises(cc.ContextOverflowError):
        strategy.compact(index, on_overflow="raise")


def test_the_floor_of_the_stages() -> None:
    """The newest groups, the newest user message and system messages stay."""
    history = [system(), *talk(9, 50)]
    index, _ = compact(attrs.evolve(WINDOW, min_preserved_groups=14), history)
    assert index.included_positions() == [0, *range(5, 19)]
    index, _ = compact(attrs.evolve(WINDOW, min_preserved_messages=12), history)
    assert index.included_positions() == [0, *range(7, 19)]
    index, _ = compact(attrs.evolve(WINDOW, preserve_system=False), history)
    assert index.included_positions() == list(range(11, 19))
    long = [user("the task"), *[said("x" * 90)] * 10]
    assert compact(WINDOW, long)[0].included_positions()[0] == 0
    assert compact(attrs.evolve(WINDOW, keep_last_user=False), long)[0].included_positions()[0] > 0


def test_pins_survive_every_stage() -> None:
    """G6."""
    history = agent(30, 80)
    index, report = compact(WINDOW, history, pinned=[history[3]])
    assert history[3] in index.included_messages()
    assert worked(report) == ["ToolResultStrategy", "TruncationStrategy"]


@pytest.mark.parametrize(
    ("own", "window", "asked"), [(None, 128_000, 32_000), (None, 8_000, 8_000), (64_000, 8_000, None)]
)
def test_the_summariser_is_asked_within_its_window(own: int | None, window: int, asked: int | None) -> None:
    """S2: that of the model, unless it says its own."""

    def ask(_: Any) -> str:
        return "x"

    if own:
        ask.window = own  # type: ignore[attr-defined]
    stage = ContextWindowStrategy(window, 1_000, ask).stages[3]
    assert isinstance(stage, SummarizationStrategy)
    assert stage.window == asked
    assert stage.max_summary_tokens == min(2_000, (window - 1_000) // 10)


# -- as any strategy -----------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic"])
@settings(max_examples=12)
@given(data=st.data())
def test_valid_in_valid_out_and_idempotent(format: str, data: st.DataObject) -> None:
    """K7 and K10: over random histories of each format."""
    history = data.draw(histories(format))
    size = cc.MessageIndex.from_messages(history, format=format).value(cc.tokens)
    strategy = ContextWindowStrategy(max(10, size), 0)
    index = cc.MessageIndex.from_messages(history, format=format, validate=True)
    before = {problem.rule for problem in index.problems}
    strategy.compact(index)
    again = cc.MessageIndex.from_messages(index.included_messages(), format=format)
    assert {problem.rule for problem in again.problems} <= before
    assert not strategy.compact(again).changed


def test_a_plan_changes_nothing() -> None:
    """And asks no summariser."""

    def never(_: Any) -> str:
        raise AssertionError

    index = index_of(talk(9, 500))
    report = attrs.evolve(WIDE, summarizer=never).plan(index)
    assert report.changed
    assert len(index.included_messages()) == 18


def test_it_is_a_value() -> None:
    """Frozen, equal to its equal, hashable, printed as the code that makes it."""
    strategy = ContextWindowStrategy(128_000, 8_000, summarizer, tool_results_at=0.4, room=0.25)
    names = {"ContextWindowStrategy": ContextWindowStrategy}
    plain = attrs.evolve(strategy, summarizer=None)
    assert eval(repr(plain), names) == plain  # noqa: S307
    assert hash(strategy) == hash(attrs.evolve(strategy))
    assert strategy != plain
    assert (strategy.input_budget, strategy.trigger) == (120_000, cc.tokens > 48_000)
    with pytest.raises(AttributeError):
        strategy.window = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        ContextWindowStrategy(128_000, 8_000, trigger=cc.always)  # type: ignore[call-arg]


SHARE = "must be a share above 0, at most 1, got"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"window": -1}, ValueError, "window must be an int of 0 or more, got -1"),
        ({"window": 1e6}, TypeError, "window must be an int of 0 or more, got 1000000.0"),
        ({"window": 200}, ValueError, "max_output must be less than the window (200), got 200"),
        ({"max_output": None}, TypeError, "max_output must be an int of 0 or more, got None"),
        ({"summarizer": "gpt"}, TypeError, "summarizer must be callable, got 'gpt'"),
        ({"must_keep": "x"}, ValueError, "must_keep is for summaries and needs a summarizer, got ('x',)"),
        ({"tool_results_at": 0}, ValueError, f"tool_results_at {SHARE} 0"),
        ({"tool_results_at": 0.9}, ValueError, "truncate_at must be at least tool_results_at (0.9), got 0.8"),
        ({"summarize_at": 0.9}, ValueError, "truncate_at must be at least summarize_at (0.9), got 0.8"),
        ({"summarize_at": "half"}, TypeError, f"summarize_at {SHARE} 'half'"),
        ({"truncate_at": 1.5}, ValueError, f"truncate_at {SHARE} 1.5"),
        ({"truncate_at": True}, TypeError, f"truncate_at {SHARE} True"),
        ({"clip_above": -0.1}, ValueError, f"clip_above {SHARE} -0.1"),
        ({"room": 1.0}, ValueError, "room must be a share of 0 or more, below 1, got 1.0"),
        ({"room": None}, TypeError, "room must be a share of 0 or more, below 1, got None"),
        ({"keep_tool_uses": -1}, ValueError, "keep_tool_uses must be an int of 0 or more, got -1"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each fails at construction by its own name, value and expectation."""
    with pytest.raises(error) as caught:
        ContextWindowStrategy(**{"window": 1_200, "max_output": 200, **arguments})
    assert text in str(caught.value)
