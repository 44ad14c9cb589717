"""Reasoning bound to its prefix (design, that paragraph), against a provider that refuses what does not fit.

Every recorded Anthropic session with thinking, every strategy, several budgets and prefixes, both settings. A few
prefixes of each session by default, always the same ones; ``CHAT_COMPACTION_FULL=1`` takes all.
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest

import chat_compaction as cc
from chat_compaction.formats import Format
from tests import _shared
from tests.build import call, results, said, user
from tests.strict_provider import BETA, Refused, StrictProvider

CHARACTERS = cc.FunctionCounter(len, name="characters")
SESSIONS = [path for path in _shared.recorded_sessions("anthropic") if b'"signature"' in path.read_bytes()]
SHARES = (0.75, 0.4, 0.1)
Raw = dict[str, Any]


def newest_half(messages: list[Any]) -> list[Any]:
    return messages[len(messages) // 2 :]


def with_holes(messages: list[Any]) -> list[Any]:
    return [message for number, message in enumerate(messages) if number % 5 != 3]


def strategies(limit: int) -> list[cc.CompactionStrategy]:
    """Every strategy at one limit of tokens, the budget in its three orders, a reducer that leaves holes."""
    return [
        cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=2),
        cc.TokenBudgetStrategy(limit, evict="turns"),
        cc.TokenBudgetStrategy(limit, evict="groups", keep_last_user=False),
        cc.TokenBudgetStrategy(limit, evict="turns-then-groups"),
        cc.ReducerStrategy(newest_half, cc.tokens > limit, min_preserved_groups=1),
        cc.ReducerStrategy(with_holes, cc.tokens > limit, min_preserved_groups=1),
    ]


def sampler(path: Path) -> random.Random:
    """The same choices for a session in every run."""
    return random.Random(path.stem)  # noqa: S311 - no secret


def lengths(path: Path, messages: Sequence[Any]) -> list[int]:
    """How long the prefixes are: the whole session, and some shorter ones."""
    if os.environ.get("CHAT_COMPACTION_FULL") == "1":
        return list(range(1, len(messages) + 1))
    chosen = sampler(path)
    return sorted({len(messages), *(chosen.randint(len(messages) // 4 + 1, len(messages)) for _ in range(2))})


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally[str]]:
    """What was run and what it did; printed in the end."""
    counts: Tally[str] = Tally()
    yield counts
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(
            f"\nbound reasoning: {counts['passes']} combinations over {counts['sessions']} sessions with thinking; "
            f"something left in {counts['changed']}, {counts['bound']} had bound blocks, {counts['dropped']} dropped some"
        )


@dataclass
class Pass:
    """One compaction of a history that a provider has seen."""

    provider: StrictProvider
    history: list[Any]
    index: cc.MessageIndex
    report: cc.CompactionReport

    @property
    def sent(self) -> list[Any]:
        return self.index.included_messages()

    @property
    def positions(self) -> list[int]:
        return self.index.included_positions()

    def refused(self, **request: Any) -> tuple[int, ...]:
        """The positions, in the caller's list, of the messages that the provider refuses."""
        try:
            self.provider.receive(self.sent, **request)
        except Refused as refused:
            return tuple(self.positions[place] for place in refused.positions)
        return ()

    def signed_behind(self, first: int) -> tuple[int, ...]:
        """The kept messages with signed thinking behind a position."""
        kept = {position for group in self.index.groups if not group.excluded for position in group.positions}
        return tuple(p for p in sorted(kept) if p >= first and self.provider.signed(self.history[p]))


def run(
    provider: StrictProvider,
    history: list[Any],
    strategy: cc.CompactionStrategy,
    bound_reasoning: Literal["keep", "drop"],
    **arguments: Any,
) -> Pass:
    given = {"counter": CHARACTERS, "format": provider.format, **arguments}
    index = cc.MessageIndex.from_messages(history, bound_reasoning=bound_reasoning, **given)
    return Pass(provider, history, index, strategy.compact(index, hooks=()))


def check_kept(kept: Pass) -> None:
    """``"keep"``: nothing is touched, the report lists what the provider refuses, and says how to have it accepted."""
    report = kept.report
    assert all(message is kept.history[position] for position, message in zip(kept.positions, kept.sent, strict=True))
    assert kept.refused() == report.bound_reasoning
    assert bool(report.request_options) == bool(report.bound_reasoning)
    assert kept.refused(**report.request_options) == ()
    assert report.dropped_reasoning == ()


def check_dropped(dropped: Pass, fresh: Format | str) -> None:
    """``"drop"``: the provider accepts it as it is; only what had thinking behind the change is another."""
    report, history, provider = dropped.report, dropped.history, dropped.provider
    first = len(history) if report.first_changed is None else report.first_changed
    assert dropped.refused() == ()
    assert (report.bound_reasoning, dict(report.request_options)) == ((), {})
    assert report.dropped_reasoning == dropped.signed_behind(first)
    assert report.changed or report.dropped_reasoning == ()
    for position, message in zip(dropped.positions, dropped.sent, strict=True):
        if position in report.dropped_reasoning:
            assert message == provider.without_thinking(history[position])
            assert message["content"]
        else:
            assert message is history[position]
    gone = set(report.dropped_reasoning) - set(dropped.positions)
    assert not any(provider.without_thinking(history[position])["content"] for position in gone)
    again = cc.MessageIndex.from_messages(dropped.sent, counter=CHARACTERS, format=fresh)
    assert report.tokens_after == again.value(cc.tokens) == dropped.index.value(cc.tokens)


# -- every recorded session -------------------------------------------------------------------------


@pytest.mark.parametrize("path", SESSIONS, ids=[path.stem for path in SESSIONS])
def test_recorded_session(path: Path, tally: Tally[str]) -> None:
    """K7 and K8: refused exactly where the report says so, accepted as the report says, never where it is dropped."""
    messages = _shared.load_session(path)
    pristine = copy.deepcopy(messages)
    provider = StrictProvider()
    provider.issue(messages)
    for length, (number, share) in product(lengths(path, messages), enumerate(SHARES)):
        history = messages[:length]
        limit = int(cc.MessageIndex.from_messages(history, counter=CHARACTERS).value(cc.tokens) * share)
        pinned = [history[place] for place in sampler(path).sample(range(length), min(2 * (number == 1), length))]
        for strategy in strategies(limit):
            kept = run(provider, history, strategy, "keep", pinned=pinned)
            check_kept(kept)
            dropped = run(provider, history, strategy, "drop", pinned=pinned)
            check_dropped(dropped, "anthropic")
            tally.update(
                passes=2,
                changed=kept.report.changed + dropped.report.changed,
                bound=bool(kept.report.bound_reasoning),
                dropped=bool(dropped.report.dropped_reasoning),
            )
        assert history == messages[:length]
    tally.update(sessions=1)
    assert messages == pristine


# -- and broken ones, repaired ----------------------------------------------------------------------


def an_orphan(messages: list[Any], place: int) -> list[Any]:
    """A result that nobody asked for, in a message of its own."""
    return [*messages[:place], results("nobody"), *messages[place:]]


def an_empty_message(messages: list[Any], place: int) -> list[Any]:
    return [*messages[:place], {"role": "user", "content": []}, *messages[place:]]


def an_empty_text(messages: list[Any], place: int) -> list[Any]:
    """In a user's message, which is then another."""
    blocks = [{"type": "text", "text": "a word"}, {"type": "text", "text": " "}]
    return [*messages[:place], {"role": "user", "content": blocks}, *messages[place:]]


def a_lost_result(messages: list[Any], place: int) -> list[Any]:
    """A message with results is gone, so that a call with its thinking must leave."""
    found = (p for p in range(place, len(messages)) if StrictResults.in_(messages[p]))
    gone = next(found, None)
    return messages if gone is None else [*messages[:gone], *messages[gone + 1 :], user("and now?")]


class StrictResults:
    """Whether a message holds results of the caller's tools."""

    @staticmethod
    def in_(message: Any) -> bool:
        content = message["content"]
        return isinstance(content, list) and any(block["type"] == "tool_result" for block in content)


BREAKS: list[Callable[[list[Any], int], list[Any]]] = [an_orphan, an_empty_message, an_empty_text, a_lost_result]


def place_by_signature(provider: StrictProvider, history: Sequence[Any]) -> Callable[[Any], int]:
    """Where in the caller's list a message with signed thinking stood, whatever else became of it."""
    known = {signature: position for position, message in enumerate(history) for signature in signatures(message)}
    return lambda message: known[signatures(message)[0]]


def signatures(message: Any) -> list[str]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block["signature"] for block in content if block.get("signature")]


@pytest.mark.parametrize("path", SESSIONS, ids=[path.stem for path in SESSIONS])
def test_what_a_repair_changes_is_a_change_too(path: Path) -> None:
    """K7, ``on_invalid="repair"``: thinking behind a repair is bound or dropped, whether or not something left."""
    chosen = sampler(path)
    messages = _shared.load_session(path)
    for damage, share in product(BREAKS, (2.0, 0.5)):
        history = damage(messages, chosen.randint(1, len(messages)))
        provider = StrictProvider()
        provider.issue(history)
        limit = int(cc.MessageIndex.from_messages(history, counter=CHARACTERS).value(cc.tokens) * share)
        strategy = cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=2)
        repaired(provider, history, strategy)


def repaired(provider: StrictProvider, history: list[Any], strategy: cc.CompactionStrategy) -> cc.CompactionReport:
    """Both settings, through a reducer that repairs; gives the report of ``"keep"``."""
    given: dict[str, Any] = {"counter": CHARACTERS, "format": provider.format, "on_invalid": "repair", "hooks": ()}
    before = copy.deepcopy(history)
    place_of = place_by_signature(provider, history)
    sent, report = cc.as_chat_reducer(strategy, **given).reduce_with_report(history)
    wrong = provider.mismatched(sent)
    assert tuple(place_of(sent[place]) for place in wrong) == report.bound_reasoning
    provider.receive(sent, **report.request_options)
    bare, dropped = cc.as_chat_reducer(strategy, bound_reasoning="drop", **given).reduce_with_report(history)
    provider.receive(bare)
    kept = {place_of(message) for message in bare if provider.signed(message)}
    behind = {place_of(message) for message in sent if provider.signed(message)} - kept
    if not dropped.changed:  # Else, since what is dropped counts no more, more may stay than where it is kept.
        assert behind == set(dropped.dropped_reasoning) == set(report.bound_reasoning)
    first = len(history) if dropped.first_changed is None else dropped.first_changed
    assert all(position < first for position in kept)
    assert all(position >= first for position in dropped.dropped_reasoning)
    again = cc.MessageIndex.from_messages(bare, counter=CHARACTERS, format=provider.format)
    assert dropped.tokens_after == again.value(cc.tokens)
    assert history == before
    return report


# -- by hand ----------------------------------------------------------------------------------------


def thinking_call(name: str) -> Raw:
    block = {"type": "thinking", "thinking": f"about {name}", "signature": f"s-{name}"}
    return {"role": "assistant", "content": [block, *call(name, format="anthropic")["content"]]}


def thinking_answer(name: str, text: str = "answer") -> Raw:
    block = {"type": "thinking", "thinking": f"about {name}", "signature": f"s-{name}"}
    return {"role": "assistant", "content": [block, {"type": "text", "text": text}]}


def hidden(name: str) -> Raw:
    """Thinking of which we see nothing, and an answer."""
    block = {"type": "redacted_thinking", "data": f"s-{name}"}
    return {"role": "assistant", "content": [block, {"type": "text", "text": "answer"}]}


def talk() -> list[Raw]:
    """Three turns; positions 1, 3, 5, 7 and 9 are signed."""
    return [
        *(user("one"), thinking_answer("one")),
        *(user("two"), thinking_call("a"), results("a"), thinking_answer("two")),
        *(user("three"), thinking_call("b"), results("b"), hidden("three")),
    ]


def issued(history: list[Any], format: str = "anthropic") -> StrictProvider:
    provider = StrictProvider(format)
    provider.issue(history)
    return provider


def cut(most: int, **arguments: Any) -> cc.TruncationStrategy:
    return cc.TruncationStrategy(trigger=cc.messages > most, min_preserved_groups=1, **arguments)


def test_a_cut_binds_all_that_is_behind_it() -> None:
    """The report lists the kept messages with signed thinking behind the first change, and what the request sets."""
    history = talk()
    kept = run(issued(history), history, cut(8), "keep")
    check_kept(kept)
    assert kept.report.first_changed == 0
    assert kept.report.bound_reasoning == (3, 5, 7, 9)
    assert kept.report.request_options["betas"] == [BETA]
    with pytest.raises(Refused, match="bound to a different conversation"):
        kept.provider.receive(kept.sent)
    with pytest.raises(Refused, match="needs the beta value"):
        kept.provider.receive(kept.sent, thinking=kept.report.request_options["thinking"])


def test_what_is_dropped_leaves_from_the_change_on() -> None:
    """``"drop"``: ahead of the change messages are the caller's own, behind it all thinking is gone, signed or not."""
    history = talk()
    history[5]["content"].insert(0, {"type": "thinking", "thinking": "unsigned", "signature": ""})
    pinned = [history[0], history[1]]
    dropped = run(issued(history), history, cut(6), "drop", pinned=pinned)
    check_dropped(dropped, "anthropic")
    assert dropped.sent[0] is history[0]
    assert dropped.sent[1] is history[1]
    assert dropped.report.dropped_reasoning == (7, 9)
    assert dropped.sent[-1] == said("answer") | {"content": [{"type": "text", "text": "answer"}]}


def test_nothing_left_nothing_dropped() -> None:
    """K1: the very same objects, and a report that lists nothing."""
    history = talk()
    for setting in ("keep", "drop"):
        for strategy in (cut(99), cut(1, pinned=None) if False else cut(99)):
            declined = run(issued(history), history, strategy, setting)
            assert [id(message) for message in declined.sent] == [id(message) for message in history]
            assert (declined.report.bound_reasoning, declined.report.dropped_reasoning) == ((), ())
            assert dict(declined.report.request_options) == {}
            assert declined.refused() == ()
