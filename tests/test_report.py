"""What a report says: why a pass stopped or did nothing, and the numbers before and after (K1, K5, C3, C4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.build import call, result, results, said, signed, step, system, user

CHAT = [system("rules"), user("one"), *step("a", "b"), said("done"), user("two"), *step("c"), said("end")]


def compact(
    trigger: cc.Predicate, target: cc.Predicate | None = None, messages: Sequence[Any] = CHAT, **arguments: Any
) -> cc.CompactionReport:
    index = cc.MessageIndex.from_messages(messages, **{"counter": characters_counter(), **arguments})
    strategy = cc.TruncationStrategy(trigger=trigger, target=target, min_preserved_groups=1)
    return strategy.compact(index, hooks=())


def test_a_pass_that_reached_its_target() -> None:
    report = compact(cc.tokens > 20)
    assert (report.strategy, report.changed, report.fits) == ("TruncationStrategy", True, True)
    assert (report.skipped, report.stopped_by, report.event) == (None, "target", "compaction.completed")
    assert (report.tokens_before, report.tokens_after, report.tokens_exact) == (30, 19, True)
    assert (report.messages_before, report.messages_after) == (10, 6)
    assert (report.groups_before, report.groups_after) == (7, 5)
    assert (report.turns_before, report.turns_after) == (2, 2)
    assert report.excluded == (
        cc.Exclusion((1,), cc.GroupKind.USER, "truncation", 3),
        cc.Exclusion((2, 3, 4), cc.GroupKind.TOOL_CALL, "truncation", 8),
    )
    assert (report.over_by, report.blocked_by) == (None, ())
    assert (report.first_changed, report.stable_prefix_tokens) == (1, 5)
    assert report.trigger == "tokens > 20 is true (tokens: 30)"
    assert report.target == "tokens <= 20"
    assert report.duration_ms > 0


def test_a_pass_that_ended_at_the_floor() -> None:
    """K5: by how many tokens, and which groups stand in the way, with the reason and the size of each."""
    report = compact(cc.tokens > 9, pinned=lambda message: message["content"] == "done")
    assert (report.changed, report.fits, report.stopped_by) == (True, False, "floor")
    assert (report.tokens_after, report.over_by) == (15, 6)
    assert report.blocked_by == (
        cc.Blocker((0,), cc.GroupKind.SYSTEM, "system", 5),
        cc.Blocker((5,), cc.GroupKind.ASSISTANT, "pinned", 4),
        cc.Blocker((6,), cc.GroupKind.USER, "last_user", 3),
        cc.Blocker((9,), cc.GroupKind.ASSISTANT, "floor", 3),
    )


def test_a_pass_that_could_change_nothing() -> None:
    """K5: skipped by the floor, it says the same."""
    report = compact(cc.tokens > 5, messages=[system(), user(), said()])
    assert (report.skipped, report.changed, report.fits, report.stopped_by) == ("floor", False, False, None)
    assert (report.tokens_before, report.tokens_after, report.over_by) == (19, 19, 14)
    assert [blocker.reason for blocker in report.blocked_by] == ["system", "last_user", "floor"]
    assert (report.excluded, report.first_changed, report.stable_prefix_tokens) == ((), None, 19)
    assert report.event == "compaction.skipped"


@pytest.mark.parametrize(
    ("trigger", "target", "skipped"),
    [(cc.messages > 10, None, "trigger"), (cc.messages > 5, cc.tokens <= 1000, "target")],
)
def test_a_compaction_that_did_nothing(trigger: cc.Predicate, target: cc.Predicate | None, skipped: str) -> None:
    """K1 and K3: it fits, and the numbers before and after are the same."""
    report = compact(trigger, target)
    assert (report.skipped, report.fits, report.changed, report.stopped_by) == (skipped, True, False, None)
    assert (report.messages_before, report.groups_before, report.turns_before) == (10, 7, 2)
    assert (report.messages_after, report.groups_after, report.turns_after) == (10, 7, 2)
    assert report.tokens_before == report.tokens_after
    assert (report.blocked_by, report.over_by, report.event) == ((), None, "compaction.skipped")


def test_it_fits_where_the_trigger_no_longer_holds() -> None:
    """K5: the target was not reached, but what asked for the pass is cured."""
    report = compact(cc.tokens > 15, cc.tokens <= 10)
    assert (report.tokens_after, report.stopped_by) == (11, "floor")
    assert (report.fits, report.over_by) == (True, 1)


def test_numbers_that_were_never_counted_are_lower_bounds() -> None:
    """C4: what left without a count is unknown; what stayed was counted for the report."""
    report = compact(cc.messages > 6)
    assert (report.tokens_before, report.tokens_after, report.tokens_exact) == (19, 19, False)
    assert [exclusion.tokens for exclusion in report.excluded] == [None, None]
    declined = compact(cc.messages > 20)
    assert (declined.tokens_before, declined.tokens_exact) == (0, False)


def test_the_explained_trigger_says_which_part_fired() -> None:
    """With the numbers, and how sure they are."""
    report = compact((cc.turns > 1) | (cc.tokens > 20))
    assert report.trigger == "turns > 1 is true (turns: 2)"
    assert compact((cc.turns > 5) | (cc.tokens > 99)).trigger == (
        "turns > 5 is false (turns: 2) and tokens > 99 is false (tokens: 30)"
    )


def test_reserved_tokens_are_in_every_number_but_the_prefix() -> None:
    """The metric ``tokens`` has them; the stable prefix is of the list alone."""
    report = compact(cc.tokens > 120, reserved=100)
    assert (report.tokens_before, report.tokens_after, report.stable_prefix_tokens) == (130, 119, 5)
    assert compact(cc.tokens > 200, reserved=100).stable_prefix_tokens == 30


def test_the_smallest_token_limit_of_a_target_counts() -> None:
    """``over_by`` is about tokens, wherever they stand in the target; without any it is None."""
    both = compact((cc.tokens > 15) | (cc.turns > 1), (cc.tokens <= 4) & (cc.turns <= 1))
    assert both.over_by == 11 - 4
    assert compact(cc.turns > 0).over_by is None


def test_the_first_change_and_what_stands_ahead_of_it() -> None:
    """What a provider's prompt cache still knows: the included tokens ahead of the first change."""
    messages = [system("rules"), user("pinned"), said("x"), user("two"), said("end")]
    report = compact(cc.messages > 4, messages=messages, pinned=[messages[1]])
    assert (report.first_changed, report.stable_prefix_tokens) == (2, 5 + 6)
    # A group that reaches ahead of others that left first changed the list where it begins.
    late = [user("one"), call("a"), said("xy"), user("two"), result("a"), said("end")]
    assert compact(cc.messages > 2, messages=late).first_changed == 0


def test_signed_reasoning_behind_a_change_is_listed() -> None:
    """It is bound to what stood before it, and that is another now; ahead of the change it is not."""
    messages = [user("one"), signed(), user("two"), *(m for m in (said("x"), user("three"), signed()))]
    report = compact(cc.messages > 3, messages=messages)
    assert report.first_changed == 0
    assert report.bound_reasoning == (5,)
    ahead = compact(cc.messages > 5, messages=messages, pinned=[messages[0], messages[1]])
    assert (ahead.first_changed, ahead.bound_reasoning) == (2, (5,))
    assert compact(cc.messages > 99, messages=messages).bound_reasoning == ()


def test_problems_are_listed_with_excluded_groups_too() -> None:
    report = compact(cc.messages > 3, messages=[result("x"), user("one"), said(), user("two"), said()])
    assert [(problem.position, problem.rule) for problem in report.problems] == [(0, "orphan_result")]


def test_the_counter_is_named() -> None:
    """C3: by its vocabulary, and whether text is counted by a tokenizer."""
    report = compact(cc.tokens > 5, counter=cc.FunctionCounter(len, name="words", exact=True))
    assert (report.counter, report.counter_exact) == ("words", True)
    assert (compact(cc.tokens > 5).counter, compact(cc.tokens > 5).counter_exact) == ("characters", False)


def test_it_never_holds_the_text_of_a_message() -> None:
    """Reports go to logs."""
    private = "my private words"
    messages = [
        user(private),
        {**said(private), "name": "Ann"},
        results("x", text=private),
        user(private),
        said(private),
    ]
    for limit in (1, 40, 99):
        report = compact(cc.tokens > limit, messages=messages)
        assert "private" not in f"{report!r}{report}{report.overflow_text()}{report.to_dict()}{report.metrics()}"


def test_as_plain_data() -> None:
    """``to_dict`` is ready for JSON; ``metrics`` is its flat part."""
    report = compact(cc.tokens > 9)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["excluded"][1] == {"positions": [2, 3, 4], "kind": "tool_call", "reason": "truncation", "tokens": 8}
    assert data["blocked_by"][0] == {"positions": [0], "kind": "system", "reason": "system", "tokens": 5}
    assert data["fits"] is False
    flat = report.metrics()
    assert all(isinstance(value, int | float | str | None) for value in flat.values())
    assert (flat["excluded_groups"], flat["problems"], flat["tokens_after"]) == (4, 0, 11)


def test_in_one_line() -> None:
    assert str(compact(cc.tokens > 20)) == (
        "TruncationStrategy: 10 -> 6 messages, 30 -> 19 tokens, stopped by: target, fits"
    )
    assert str(compact(cc.messages > 99)) == (
        "TruncationStrategy: 10 -> 10 messages, at least 0 tokens, skipped by the trigger, fits"
    )


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (
            compact(cc.tokens > 9),
            "the history does not fit the target tokens <= 9: the smallest it gets is 11 tokens in 3 messages, "
            "2 too many; the biggest of what may not leave is the system group of message 0 (system, 5 tokens)",
        ),
        (
            compact(cc.messages > 2, pinned=[CHAT[3]]),
            "the history does not fit the target messages <= 2: the smallest it gets is 19 tokens in 6 messages; "
            "the biggest of what may not leave is the tool_call group of messages 2-4 (pinned, 8 tokens)",
        ),
    ],
    ids=["tokens", "messages"],
)
def test_an_overflow_in_one_sentence(report: cc.CompactionReport, text: str) -> None:
    """K5: the target, the smallest size, what is biggest; also the text of the error."""
    assert report.overflow_text() == str(cc.ContextOverflowError(report)) == text


def test_it_is_a_value() -> None:
    """Frozen; two runs of the same are equal, whatever time they took."""
    assert compact(cc.tokens > 9) == compact(cc.tokens > 9)
    with pytest.raises(AttributeError):
        compact(cc.tokens > 9).fits = True  # type: ignore[misc]
