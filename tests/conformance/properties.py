"""The properties of the history shapes, by their slugs: each is a function that yields what is wrong.

Those in here are over an :class:`~tests.conformance.shapes.Outcome` and hold for any pass over any history.
``tests.conformance.measures`` has those that judge what a test of their own gathers; those about summaries and about
what is shortened have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import chat_compaction as cc
from tests.conformance.reports import report
from tests.conformance.shapes import Outcome
from tests.legality import SYSTEM, Judge, links

Check = Callable[[Outcome], Iterator[str]]


def pairs_intact(outcome: Outcome) -> Iterator[str]:
    """No call parts from its results, by id and occurrence; they stand together where they did (rules G2, K7)."""
    judge = Judge(outcome.before, outcome.format)
    far = {id(outcome.before[fault.position]) for fault in judge.faults if fault.kind == "not_adjacent"}
    for fault in judge.new_faults(outcome.after):
        # A result that stood far from its call is none the worse for standing in the right turn behind other content.
        nearer = fault.kind == "results_first" and id(outcome.after[fault.position]) in far
        if fault.kind != "first_role" and not nearer:
            yield f"{fault.kind}: {fault.detail}"


def first_nonsystem_user(outcome: Outcome) -> Iterator[str]:
    """Where the format demands that the first message after system messages is a user's, it stays so (rule K7)."""
    was, now = first_role(outcome.before), first_role(outcome.after)
    if outcome.format == "anthropic" and was == "user" != now:
        yield f"the first message is one of the role {now}"


def first_role(messages: Sequence[Any]) -> str:
    """The role of the first message that is no system message; the user's where there is none."""
    first = next((message for message in messages if message["role"] not in SYSTEM), None)
    # Anthropic's own summary may come first, though it is the assistant's.
    return "user" if first is None or _sums_up(first) else str(first["role"])


def _sums_up(message: Any) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        block.get("type") == "compaction" and block.get("content") for block in content
    )


def order_kept(outcome: Outcome) -> Iterator[str]:
    """What stays are the caller's own objects, in their order (rules G1, K8)."""
    if -1 in outcome.kept:
        yield "a message that the caller never gave"
    if any(left >= right for left, right in pairwise(outcome.kept)):
        yield f"the order is {outcome.kept}"


def no_mutation(outcome: Outcome) -> Iterator[str]:
    """The caller's list and all that is in it are as they were (rule K8)."""
    if outcome.before != outcome.pristine:
        yield "the caller's messages changed"


def content_blocks_intact(outcome: Outcome) -> Iterator[str]:
    """A kept message is whole, reasoning and signatures with it (rule K6)."""
    for position, message in zip(outcome.kept, outcome.after, strict=True):
        if position >= 0 and message != outcome.pristine[position]:
            yield f"messages[{position}] changed"


def name_kept(outcome: Outcome) -> Iterator[str]:
    """A kept message has the name it had."""
    for position, message in zip(outcome.kept, outcome.after, strict=True):
        if position >= 0 and message.get("name") != outcome.pristine[position].get("name"):
            yield f"messages[{position}] is named {message.get('name')!r}"


def system_first(outcome: Outcome) -> Iterator[str]:
    """System and developer messages stay, the leading ones ahead of everything else (rules G5, K4)."""
    system = [position for position, message in enumerate(outcome.before) if message["role"] in SYSTEM]
    yield from _missing(outcome, system, "system")
    leading = [position for place, position in enumerate(system) if place == position]
    if outcome.kept[: len(leading)] != leading:
        yield f"the output begins with {outcome.kept[: len(leading)]}"


def last_user_kept(outcome: Outcome) -> Iterator[str]:
    """The newest message in which the user speaks stays, pinned ones aside (rules K4, G5)."""
    said = [p for p, message in enumerate(outcome.before) if speaks_for_user(message) and p not in outcome.pinned]
    yield from _missing(outcome, said[-1:], "the user's last")


def speaks_for_user(message: Any) -> bool:
    """Whether the user says something in it, be it beside a tool result."""
    content = message.get("content")
    kinds = [block["type"] for block in content] if isinstance(content, list) else []
    results = [kind for kind in kinds if kind.endswith("tool_result")]
    return message["role"] == "user" and (not results or len(results) < len(kinds))


def pinned_kept(outcome: Outcome) -> Iterator[str]:
    """Pinned messages stay (rule G6)."""
    yield from _missing(outcome, sorted(outcome.pinned), "pinned")


def pending_kept(outcome: Outcome) -> Iterator[str]:
    """A call of the newest turn that waits for its result stays (rule G3)."""
    opens = [p for p, m in enumerate(outcome.before) if _opens_turn(m) and p not in outcome.pinned]
    newest_turn = opens[-1] if opens else 0
    found = links(outcome.before, outcome.format)
    waiting = [link.call for link in found if link.result is None and link.call is not None]
    yield from _missing(outcome, [position for position in waiting if position >= newest_turn], "a waiting call")


def _opens_turn(message: Any) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return message["role"] == "user" and not any(block["type"].endswith("tool_result") for block in blocks)


def group_atomic(outcome: Outcome) -> Iterator[str]:
    """A call and each of its results stay together or leave together (rule G2)."""
    kept = set(outcome.kept)
    for link in links(outcome.before, outcome.format):
        if link.call is not None and link.result is not None and (link.call in kept) != (link.result in kept):
            yield f"messages[{link.call}] and messages[{link.result}] parted"


def dup_ids_scoped(outcome: Outcome) -> Iterator[str]:
    """A kept result answers the very call that it answered, however often its id is used (rule G2)."""
    answered = {(link.call, link.result) for link in links(outcome.before, outcome.format)}
    for link in links(outcome.after, outcome.format):
        if link.result is not None and link.call is not None:
            call, result = outcome.kept[link.call], outcome.kept[link.result]
            if (call, result) not in answered:
                yield f"messages[{result}] now answers messages[{call}]"


def nonempty(outcome: Outcome) -> Iterator[str]:
    """The newest message that is no system message stays, so no pass empties a conversation (rule K2)."""
    said = [position for position, message in enumerate(outcome.before) if message["role"] not in SYSTEM]
    yield from _missing(outcome, said[-1:], "the newest")


def ends_user_or_tool(outcome: Outcome) -> Iterator[str]:
    """What ended with the user or a tool still does (rule K2: the newest group stays)."""
    ends = ("user", "tool")
    if outcome.before and outcome.before[-1]["role"] in ends and outcome.after[-1:] != outcome.before[-1:]:
        yield "the last message is another"


def not_larger(outcome: Outcome) -> Iterator[str]:
    """The output has no more tokens than the input."""
    if outcome.size_after > outcome.size_before:
        yield "the output is larger than the input"


def idempotent(outcome: Outcome) -> Iterator[str]:
    """Compacting the output again changes nothing (rule K10)."""
    if [id(message) for message in outcome.again] != [id(message) for message in outcome.after]:
        yield f"a second pass keeps {len(outcome.again)} of {len(outcome.after)} messages"


def identity_noop(outcome: Outcome) -> Iterator[str]:
    """A pass that did not fire gives back the same messages and says why (rule K1)."""
    if outcome.report.skipped in ("trigger", "target") and outcome.kept != list(range(len(outcome.before))):
        yield f"nothing fired, and {outcome.kept} stayed"


def under_target(outcome: Outcome) -> Iterator[str]:
    """The output keeps to the target, unless what must stay does not: then the report says so (rules K3, K5)."""
    if outcome.answer is None:
        return
    must_stay = [outcome.before[position] for position in sorted(outcome.answer.must_stay)]
    measures: list[tuple[cc.Metric, Callable[[Sequence[Any]], int]]] = [(cc.tokens, outcome.size), (cc.messages, len)]
    for metric, measure in measures:
        limit = outcome.limit(metric)
        if limit is not None:
            reached = measure(outcome.after) <= limit
            if measure(must_stay) <= limit and not reached:
                yield f"above {limit}, which the floor allows"
            if outcome.report.fits != reached:
                yield f"fits is {outcome.report.fits}"


def reserve_kept(outcome: Outcome) -> Iterator[str]:
    """What stays and what is reserved fit the limit together, where the pass reached its target."""
    limit, whole = outcome.limit(cc.tokens), outcome.size_after + outcome.reserved
    if limit is not None and outcome.report.stopped_by == "target" and whole > limit:
        yield f"{whole} tokens with the reserve, above {limit}"


def _missing(outcome: Outcome, positions: Sequence[int], what: str) -> Iterator[str]:
    """The positions that must stay and did not, or not as the message they were."""
    kept = dict(zip(outcome.kept, outcome.after, strict=True))
    for position in positions:
        if kept.get(position) != outcome.pristine[position]:
            yield f"messages[{position}] ({what}) did not stay as it was"


EVERY_PASS: dict[str, Check] = {
    check.__name__: check
    for check in (
        pairs_intact,
        first_nonsystem_user,
        order_kept,
        no_mutation,
        content_blocks_intact,
        name_kept,
        system_first,
        last_user_kept,
        pinned_kept,
        pending_kept,
        group_atomic,
        dup_ids_scoped,
        nonempty,
        ends_user_or_tool,
        not_larger,
        idempotent,
        identity_noop,
        under_target,
        reserve_kept,
        report,
    )
}
"""What holds for any pass."""


def wrong(outcomes: Iterable[Outcome], slugs: Iterable[str] = tuple(EVERY_PASS)) -> list[str]:
    """What these passes, one at the least, do against the properties."""
    judged = list(outcomes)
    assert judged
    return [
        f"{slug}: {outcome.name}: {fault}"
        for slug in slugs
        for outcome in judged
        for fault in EVERY_PASS[slug](outcome)
    ]
