"""The properties of the history shapes that judge what a test gathers: counts, numbers of operations, an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import chat_compaction as cc
from tests.conformance.properties import speaks_for_user
from tests.conformance.shapes import Outcome
from tests.legality import faults, links


def counts_tools(outcome: Outcome) -> Iterator[str]:
    """What is reserved for tool schemas is part of every count."""
    report, reserved = outcome.report, outcome.reserved
    if report.tokens_after != outcome.size_after + reserved:
        yield f"tokens_after is {report.tokens_after}, beside {reserved} reserved tokens"
    before, least = outcome.size_before + reserved, 0 if report.tokens_exact else report.tokens_after
    if not (least or before) <= report.tokens_before <= before:
        yield f"tokens_before is {report.tokens_before}, beside {reserved} reserved tokens"


def repaired(outcome: Outcome) -> Iterator[str]:
    """Nothing is sent on that the provider refuses, calls aside that still wait, and the report says what was done."""
    found = faults(outcome.after, outcome.format)
    # Calls behind the last words of the user may still be answered (rule G3).
    newest_turn = max((p for p, message in enumerate(outcome.after) if speaks_for_user(message)), default=0)
    for fault in found:
        if fault.kind != "unanswered_call" or fault.position < newest_turn:
            yield f"sent on: {fault.detail}"
    told = {repair.position for repair in outcome.report.repairs}
    if not told <= set(range(len(outcome.before))) or not all(r.rule and r.action for r in outcome.report.repairs):
        yield f"the repairs are {outcome.report.repairs}"
    left = {position for exclusion in outcome.report.excluded for position in exclusion.positions}
    pairs = [(link.call, link.result) for link in links(outcome.before, outcome.format) if link.result is not None]
    # A call that gets another id takes its results along.
    along = {result for call, result in pairs if call in told}
    unsaid = set(range(len(outcome.before))) - set(outcome.kept) - left - told - along
    if unsaid:
        yield f"messages {sorted(unsaid)} are gone or rewritten, and nobody said so"
    answered = sum(call is not None and result not in left for call, result in pairs)
    still = sum(None not in (link.call, link.result) for link in links(outcome.after, outcome.format))
    if still != answered:
        yield f"{answered} calls had a result, and {still} have"


def no_empty(outcome: Outcome) -> Iterator[str]:
    """No message of the assistant's has neither content nor calls."""
    for position, message in enumerate(outcome.after):
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield f"messages[{position}] is empty"


def near_target(size: int, limit: int) -> Iterator[str]:
    """No more leaves than must: where groups are small, the output uses most of the target (rule K3)."""
    if size < 0.8 * limit:
        yield f"only {size} of {limit} tokens are used"


def terminates(asked: int, groups: int) -> Iterator[str]:
    """The target is asked a bounded number of times: about once a group (rule K3)."""
    if asked > groups + 4:
        yield f"the target was asked {asked} times for {groups} groups"


def linear_time(work: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Work grows with the messages and no faster: pairs of how many messages, how many operations (rule K13)."""
    for (few, at_few), (many, at_many) in pairwise(work):
        if at_many > 1.1 * at_few * many / few:
            yield f"{at_few} operations for {few} messages, {at_many} for {many}"


def clear_error(
    error: cc.ContextOverflowError, target: cc.Predicate, smallest: int, biggest: frozenset[int]
) -> Iterator[str]:
    """The error names the target, the smallest size, and one of the positions of the biggest that stays (rule K5)."""
    text = str(error)
    for what in (repr(target), f"{smallest:,} tokens"):
        if what not in text:
            yield f"{what!r} is not in {text!r}"
    where = text.partition(" group of message")[2].partition("(")[0]
    spans = [(int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:-(\d+))?", where)]
    if not any(first <= position <= last for first, last in spans for position in biggest):
        yield f"the biggest stands at {sorted(biggest)}: {text!r}"


def counts_args(counted: int, without_arguments: int, characters: int) -> Iterator[str]:
    """The arguments of calls are counted like any text, here a token a character (rule C1)."""
    if counted - without_arguments != characters:
        yield f"{characters} characters of arguments count {counted - without_arguments}"


def image_flat(image: int, larger_image: int, dearer: int, added: int) -> Iterator[str]:
    """An image costs what is set and nothing for its base64: a larger one the same, a dearer one by so much more."""
    if image != larger_image:
        yield f"a larger image counts {larger_image}, not {image}"
    if dearer - image != added:
        yield f"a cost of {added} more adds {dearer - image}"


def dense_text_counted(counted: int, characters: int) -> Iterator[str]:
    """Text that a tokenizer splits densely does not count a token for four characters (rule C1)."""
    if counted < 1.25 * characters / 4:
        yield f"{characters} characters count {counted}"


def count_monotonic(counts: Sequence[int]) -> Iterator[str]:
    """One more message never lowers the count."""
    for place, (fewer, more) in enumerate(pairwise(counts)):
        if more < fewer:
            yield f"the count falls from {fewer} to {more} with messages[{place + 1}]"


MEASURES: dict[str, Callable[..., Iterator[str]]] = {
    check.__name__: check
    for check in (
        counts_tools,
        repaired,
        no_empty,
        near_target,
        terminates,
        linear_time,
        clear_error,
        counts_args,
        image_flat,
        dense_text_counted,
        count_monotonic,
    )
}
