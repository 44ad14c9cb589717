"""The judges themselves: each property accepts a good pass and refuses a broken one."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from tests.conformance import shapes
from tests.conformance.measures import MEASURES
from tests.conformance.oracle import Answer
from tests.conformance.properties import EVERY_PASS
from tests.conformance.shapes import COUNTER, Outcome, count, run

Break = Callable[[Outcome], Outcome]

PINNED, LAST_USER, WAITING = 5, 8, 9


def calls(*ids: str) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made, "reasoning_content": "Let me look."}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "found"}


def history() -> list[Any]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "An old question."},
        calls("a"),
        result("a"),
        {"role": "user", "content": "Never forget this.", "name": "ann"},
        calls("a"),
        result("a"),
        {"role": "user", "content": "The question of now."},
        calls("b", "c"),
        result("b"),
    ]


@cache
def good(format_name: str) -> Outcome:
    """A pass that lets the old question and the first call leave, and nothing else."""
    messages = history() if format_name == "openai_chat" else shapes.to_anthropic(history())
    limit = count(messages, format=format_name) - count(messages[2:5], format=format_name)
    strategy = cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=1)
    everything = frozenset(range(len(messages)))
    answer = Answer(everything - {2, 3, 4}, everything - {2, 3, 4, 6, 7})
    pinned = frozenset({PINNED})
    return run("good", messages, strategy, pinned=pinned, format=format_name, answer=answer)


def keeping(*positions: int) -> Break:
    """The pass, had it kept these."""
    return lambda outcome: replace(outcome, after=[outcome.before[position] for position in positions])


def without(*positions: int) -> Break:
    """The pass, had it let these leave too."""
    return lambda outcome: keeping(*(place for place in outcome.kept if place not in positions))(outcome)


def once(position: int, **fields: Any) -> Break:
    """The pass, had a message been another before it."""

    def broken(outcome: Outcome) -> Outcome:
        pristine = copy.deepcopy(outcome.pristine)
        pristine[position].update(fields)
        return replace(outcome, pristine=pristine)

    return broken


def telling(**fields: Any) -> Break:
    """The pass, had its report told something else."""
    return lambda outcome: replace(outcome, report=attrs.evolve(outcome.report, **fields))


def copied(outcome: Outcome) -> Outcome:
    return replace(outcome, after=copy.deepcopy(outcome.after))


BROKEN: list[tuple[str, Break]] = [
    ("pairs_intact", without(7)),
    ("pairs_intact", without(6)),
    ("pairs_intact", keeping(0, 1, 2, 3, 7, 8, 9, 10)),
    ("pairs_intact", keeping(0, 1, 5, 6, 8, 7, 9, 10)),
    ("order_kept", keeping(0, 1, 6, 5, 7, 8, 9, 10)),
    ("order_kept", keeping(0, 0, 1)),
    ("order_kept", copied),
    ("no_mutation", once(3, reasoning_content="")),
    ("content_blocks_intact", once(6, reasoning_content="Let me look!")),
    ("name_kept", once(PINNED, name="bob")),
    ("name_kept", once(LAST_USER, name="bob")),
    ("system_first", without(1)),
    ("system_first", keeping(0, 5, 1, 6, 7, 8, 9, 10)),
    ("system_first", once(0, content="Be long.")),
    ("last_user_kept", without(LAST_USER)),
    ("last_user_kept", once(LAST_USER, content="Another question.")),
    ("pinned_kept", without(PINNED)),
    ("pending_kept", without(WAITING, 10)),
    ("group_atomic", without(7)),
    ("group_atomic", without(6)),
    ("dup_ids_scoped", keeping(0, 1, 2, 3, 7, 8, 9, 10)),
    ("nonempty", keeping(0, 1)),
    ("ends_user_or_tool", without(10)),
    ("not_larger", lambda outcome: replace(outcome, after=outcome.before * 2)),
    ("idempotent", lambda outcome: replace(outcome, again=outcome.after[1:])),
    ("idempotent", lambda outcome: replace(outcome, again=copy.deepcopy(outcome.after))),
    ("identity_noop", telling(skipped="trigger")),
    ("under_target", lambda outcome: replace(outcome, after=outcome.before)),
    ("under_target", telling(fits=False)),
    ("reserve_kept", lambda outcome: replace(outcome, reserved=1)),
]

UNTRUE: list[dict[str, Any]] = [
    {"strategy": "Truncation"},
    {"changed": False},
    {"fits": False},
    {"skipped": "floor"},
    {"skipped": "trigger", "stopped_by": None},
    {"stopped_by": None},
    {"stopped_by": "floor"},
    {"trigger": ""},
    {"target": "tokens <= 1"},
    {"tokens_before": 10_000},
    {"tokens_before": 1},
    {"tokens_after": 1},
    {"tokens_after": 1, "tokens_exact": False},
    {"messages_before": 1},
    {"messages_after": 1},
    {"groups_before": 1},
    {"groups_after": 1},
    {"turns_before": 0},
    {"turns_after": 7},
    {"excluded": ()},
    {"excluded": (cc.Exclusion((2, 3, 4), cc.GroupKind.USER, "truncation"),)},
    {"over_by": 3},
    {"blocked_by": (cc.Blocker((0,), cc.GroupKind.SYSTEM, "system"),)},
    {"first_changed": 3},
    {"stable_prefix_tokens": 0},
    {"bound_reasoning": (6,)},
    {"counter": "another"},
    {"counter_exact": True},
    {"duration_ms": -1.0},
]


@pytest.mark.parametrize("format_name", ["openai_chat", "anthropic"])
def test_a_good_pass_has_every_property(format_name: str) -> None:
    """What the judges refuse below, they refuse for what was broken and nothing else."""
    outcome = good(format_name)
    assert outcome.kept == [0, 1, 5, 6, 7, 8, 9, 10]
    assert [(slug, fault) for slug, check in EVERY_PASS.items() for fault in check(outcome)] == []


@pytest.mark.parametrize(("slug", "broken"), BROKEN, ids=[f"{slug}-{place}" for place, (slug, _) in enumerate(BROKEN)])
def test_a_broken_pass_is_refused(slug: str, broken: Break) -> None:
    """Each property can fail."""
    assert list(EVERY_PASS[slug](broken(good("openai_chat")))) != []


def test_a_list_that_begins_with_an_answer_is_refused_where_the_user_must_come_first() -> None:
    """Rule K7, for the formats that demand it and for no other."""
    for format_name, refused in (("anthropic", True), ("openai_chat", False)):
        headless = without(PINNED)(good(format_name))
        assert (list(EVERY_PASS["first_nonsystem_user"](headless)) != []) is refused
        # A list that never began with the user is none the worse.
        shorter = replace(headless, before=headless.before[6:], pristine=headless.pristine[6:])
        assert list(EVERY_PASS["first_nonsystem_user"](shorter)) == []


@pytest.mark.parametrize("untrue", UNTRUE, ids=str)
def test_an_untrue_report_is_refused(untrue: dict[str, Any]) -> None:
    """Every field of a report is judged."""
    assert list(EVERY_PASS["report"](telling(**untrue)(good("openai_chat")))) != []


def test_a_report_that_hides_signed_reasoning_or_a_problem_is_refused() -> None:
    """The fields that only some histories fill."""
    outcome = good("anthropic")
    assert outcome.report.bound_reasoning == (6, 9)
    assert list(EVERY_PASS["report"](telling(bound_reasoning=())(outcome))) != []

    messages = [*history(), result("never called")]
    outcome = run("orphan", messages, cc.TruncationStrategy(trigger=cc.always, target=cc.never))
    assert list(EVERY_PASS["report"](outcome)) == []
    assert list(EVERY_PASS["report"](telling(problems=())(outcome))) != []


JUDGED: list[tuple[str, tuple[Any, ...], bool]] = [
    ("near_target", (80, 100), True),
    ("near_target", (79, 100), False),
    ("terminates", (12, 10), True),
    ("terminates", (20, 10), False),
    ("linear_time", ([(10, 10), (20, 20), (40, 40)],), True),
    ("linear_time", ([(10, 10), (20, 40), (40, 160)],), False),
    ("counts_args", (110, 10, 100), True),
    ("counts_args", (110, 100, 100), False),
    ("image_flat", (100, 100, 150, 50), True),
    ("image_flat", (100, 400, 150, 50), False),
    ("image_flat", (100, 100, 100, 50), False),
    ("dense_text_counted", (200, 400), True),
    ("dense_text_counted", (100, 400), False),
    ("count_monotonic", ([0, 3, 3, 4],), True),
    ("count_monotonic", ([0, 3, 2, 4],), False),
]


@pytest.mark.parametrize(
    ("slug", "numbers", "accepted"), JUDGED, ids=[f"{slug}-{place}" for place, (slug, *_) in enumerate(JUDGED)]
)
def test_what_was_gathered_is_judged(slug: str, numbers: tuple[Any, ...], accepted: bool) -> None:
    """Each measure accepts what is right, and can fail."""
    assert (list(MEASURES[slug](*numbers)) == []) is accepted


def test_a_count_without_what_is_reserved_is_refused() -> None:
    """The measure of counts_tools."""
    outcome = good("openai_chat")
    assert list(MEASURES["counts_tools"](outcome)) == []
    assert len(list(MEASURES["counts_tools"](replace(outcome, reserved=5)))) == 2


def test_an_error_that_leaves_something_out_is_refused() -> None:
    """The measure of clear_error: the target, the smallest size, the biggest of what stays."""
    index = cc.MessageIndex.from_messages(history(), counter=COUNTER, format="openai_chat")
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 1, min_preserved_groups=1)
    with pytest.raises(cc.ContextOverflowError) as caught:
        strategy.compact(index, on_overflow="raise", hooks=())
    error, clear_error = caught.value, MEASURES["clear_error"]
    target, smallest, biggest = cc.tokens <= 1, error.report.tokens_after, frozenset({9, 10})
    assert list(clear_error(error, target, smallest, biggest)) == []
    assert len(list(clear_error(error, cc.tokens <= 2, smallest, biggest))) == 1
    assert len(list(clear_error(error, target, smallest + 1, biggest))) == 1
    assert len(list(clear_error(error, target, smallest, frozenset({0})))) == 1


def test_a_repair_that_leaves_something_is_refused() -> None:
    """The measures of repaired and no_empty: what is sent on, what nobody said, what is empty."""
    broken = [*history()[:3], result("never called"), calls("late"), *history()[8:]]
    strategy = cc.TokenBudgetStrategy(10_000)
    outcome = run("repaired", broken, strategy, on_invalid="repair")
    assert outcome.kept == [0, 1, 2, 5, 6, 7]
    assert list(MEASURES["repaired"](outcome)) == list(MEASURES["no_empty"](outcome)) == []

    kept = run("kept", broken, strategy)
    assert len(list(MEASURES["repaired"](kept))) == 2
    silent = replace(outcome, report=attrs.evolve(outcome.report, repairs=()))
    assert len(list(MEASURES["repaired"](silent))) == 1
    strange = (cc.Repair(99, "orphan_result", "removed"), *outcome.report.repairs)
    assert len(list(MEASURES["repaired"](telling(repairs=strange)(outcome)))) == 1
    nothing: list[Any] = [None, "", []]
    for empty in nothing:
        hollow = {"role": "assistant", "content": empty, "reasoning_content": "hm"}
        assert len(list(MEASURES["no_empty"](replace(outcome, after=[*outcome.after, hollow])))) == 1


def test_every_judge_is_judged() -> None:
    """No property is without a pass that it refuses."""
    assert {slug for slug, _ in BROKEN} | {"first_nonsystem_user", "report"} == set(EVERY_PASS)
    refused = {slug for slug, _, accepted in JUDGED if not accepted}
    assert refused | {"counts_tools", "clear_error", "repaired", "no_empty"} == set(MEASURES)
