"""Reasoning bound to its prefix (design, that paragraph), against a provider that refuses what does not fit.

Every recorded Anthropic session with thinking, every strategy, several budgets and prefixes, both settings. A few
prefixes of each session by default, always the same ones; ``CHAT_COMPACTION_FULL=1`` takes all.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import random
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction._outgoing import NOTHING_ELSE
from chat_compaction.testing import histories
from tests import _shared
from tests.build import Raw, call, results, said, user
from tests.strict_provider import BETA, Refused, StrictProvider

CHARACTERS = cc.FunctionCounter(len, name="characters")
SESSIONS = [path for path in _shared.recorded_sessions("anthropic") if b'"signature"' in path.read_bytes()]
SHARES = (0.75, 0.4, 0.1)


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
    """How long the prefixes are: the whole session, and some shorter ones where it is not long."""
    if os.environ.get("CHAT_COMPACTION_FULL") == "1":
        return list(range(1, len(messages) + 1))
    chosen, shorter = sampler(path), min(3, 400 // len(messages))
    return sorted({len(messages), *(chosen.randint(len(messages) // 4 + 1, len(messages)) for _ in range(shorter))})


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally[str]]:
    """What was run and what it did; printed in the end."""
    counts: Tally[str] = Tally()
    yield counts
    _shared.told(request.config).append(
        f"bound reasoning: {counts['passes']} combinations over {counts['sessions']} sessions with thinking; "
        f"something left in {counts['changed']}, {counts['bound']} bound blocks, {counts['dropped']} dropped them"
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


def blocks_of(messages: Sequence[Any]) -> list[str]:
    """What messages say, in any order: where two are joined, a user's results come first."""
    return sorted(json.dumps(block) for message in messages for block in message["content"])


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


def check_dropped(dropped: Pass, fresh: str) -> None:
    """``"drop"``: the provider accepts it as it is; only what had thinking behind the change is another."""
    report, history, provider = dropped.report, dropped.history, dropped.provider
    first = len(history) if report.first_changed is None else report.first_changed
    assert dropped.refused() == ()
    assert (report.bound_reasoning, dict(report.request_options)) == ((), {})
    assert report.dropped_reasoning == dropped.signed_behind(first)
    assert report.changed or report.dropped_reasoning == ()
    for position, message in zip(dropped.positions, dropped.sent, strict=True):
        if position not in report.dropped_reasoning:
            assert message is history[position]
            continue
        bare = provider.without_thinking(history[position])
        if any(block.get("text", "x").strip() for block in bare["content"]):
            assert message == bare
        else:  # A message of which nothing is left says so: it keeps its place, and the two sides their turns.
            assert said_in(message) == NOTHING_ELSE.parts[0].text
    again = cc.MessageIndex.from_messages(dropped.sent, counter=CHARACTERS, format=fresh)
    assert report.tokens_after == again.value(cc.tokens) == dropped.index.value(cc.tokens)
    assert report.messages_after == len(dropped.sent)


def said_in(message: Any) -> str:
    """The one text of a message, in Anthropic's or Bedrock's format."""
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


# -- every recorded session -------------------------------------------------------------------------


@pytest.mark.no_cover
@pytest.mark.parametrize("path", SESSIONS, ids=[path.stem for path in SESSIONS])
def test_recorded_session(path: Path, tally: Tally[str]) -> None:
    """K7 and K8: refused exactly where the report says so, accepted as the report says, never where it is dropped."""
    messages = _shared.load_session(path)
    pristine = copy.deepcopy(messages)
    provider = issued(messages)
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
    blocks = [{"type": "text", "text": "a word"}, {"type": "text", "text": ""}]
    return [*messages[:place], {"role": "user", "content": blocks}, *messages[place:]]


def a_lost_result(messages: list[Any], place: int) -> list[Any]:
    """A message with results is gone, so that a call must leave, and with its thinking the whole message."""
    gone = next((p for p in range(place, len(messages)) if has_results(messages[p])), len(messages))
    return [*messages[:gone], *messages[gone + 1 :], user("and now?")]


def a_late_result(messages: list[Any], place: int) -> list[Any]:
    """The user spoke, and the assistant answered, ahead of a result: it moves back."""
    late = next((p for p in range(place, len(messages)) if has_results(messages[p])), len(messages))
    return [*messages[:late], user("wait"), said("I do"), *messages[late:]]


def has_results(message: Any) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_result" for block in content)


BREAKS: list[Callable[[list[Any], int], list[Any]]] = [
    an_orphan,
    an_empty_message,
    an_empty_text,
    a_lost_result,
    a_late_result,
]


@pytest.mark.no_cover
@pytest.mark.parametrize("path", SESSIONS, ids=[path.stem for path in SESSIONS])
def test_what_a_repair_changes_is_a_change_too(path: Path) -> None:
    """K7, ``on_invalid="repair"``: thinking behind a repair is bound or dropped, whether or not something left."""
    chosen = sampler(path)
    messages = _shared.load_session(path)
    for damage in BREAKS:
        history = damage(messages, chosen.randint(1, len(messages)))
        provider = issued(history)
        limit = int(cc.MessageIndex.from_messages(history, counter=CHARACTERS).value(cc.tokens) * 0.5)
        for trigger in (cc.tokens > 2 * limit + 1, cc.tokens > limit):
            strategy = cc.TruncationStrategy(trigger=trigger, min_preserved_groups=2)
            check_repaired(provider, history, strategy)


def check_repaired(provider: StrictProvider, history: list[Any], strategy: cc.CompactionStrategy) -> None:
    """Both settings, through a reducer that repairs: refused is what the report lists, and else nothing."""
    given: dict[str, Any] = {"counter": CHARACTERS, "format": provider.format, "on_invalid": "repair", "hooks": ()}
    before = copy.deepcopy(history)
    mended = cc.repair(history, format=provider.format)
    sent, report = cc.as_chat_reducer(strategy, **given).reduce_with_report(history)
    places = places_in(mended.messages, sent)
    refused = {mended.positions[places[place]] for place in provider.mismatched(sent)}
    # A message that was changed itself may be listed although only what stands behind its thinking is another.
    changed = {p for p, message in zip(mended.positions, mended.messages, strict=True) if message is not history[p]}
    assert refused <= set(report.bound_reasoning) <= refused | changed
    provider.receive(sent, **report.request_options)
    bare, dropped = cc.as_chat_reducer(strategy, bound_reasoning="drop", **given).reduce_with_report(history)
    provider.receive(bare)
    first = len(history) if dropped.first_changed is None else dropped.first_changed
    assert all(any(message is own for own in history[:first]) for message in bare if provider.signed(message))
    assert all(position >= first for position in dropped.dropped_reasoning)
    assert dropped.bound_reasoning == ()
    if not report.changed:  # Else more may stay than with "keep", since what is dropped counts no more.
        assert dropped.dropped_reasoning == report.bound_reasoning
    assert history == before


def places_in(messages: Sequence[Any], some: Sequence[Any]) -> list[int]:
    """Where in a list some of its messages stand, in their order; a copy stands where its equal does."""
    places = iter(range(len(messages)))
    return [next(place for place in places if messages[place] == message) for message in some]


def issued(history: list[Any], format: str = "anthropic") -> StrictProvider:
    provider = StrictProvider(format)
    provider.issue(history)
    return provider


# -- any history ------------------------------------------------------------------------------------


def numbered(history: list[Any], format: str) -> list[Any]:
    """The history with another signature on every block: those that are drawn all have the same."""
    numbers = itertools.count()
    for message in history:
        for block in message["content"] if isinstance(message["content"], list) else ():
            for holder, key in signature_fields(block, format):
                holder[key] = f"s-{next(numbers)}"
    return history


def signature_fields(block: Any, format: str) -> list[tuple[Any, str]]:
    """Where the signature of a block stands, if it has one; hidden thinking is its own."""
    body = block.get("reasoningContent", {}) if format == "bedrock_converse" else block
    holders = (body, body.get("reasoningText", {}))
    keys = ("signature", "redactedContent", *(["data"] if block.get("type") == "redacted_thinking" else []))
    return [(holder, key) for holder in holders for key in keys if key in holder]


@pytest.mark.parametrize("format", ["anthropic", "bedrock_converse"])
@given(data=st.data())
def test_any_sound_history(format: Any, data: st.DataObject) -> None:
    """K7 and K8, both settings: the same as of recorded sessions, also in Bedrock's ``reasoningContent``."""
    history = numbered(data.draw(histories(format)), format)
    before = copy.deepcopy(history)
    provider = issued(history, format)
    limit = int(cc.MessageIndex.from_messages(history, counter=CHARACTERS, format=format).value(cc.tokens) * 0.6)
    strategy = data.draw(st.sampled_from(strategies(limit)))
    pinned = data.draw(st.lists(st.sampled_from(history), max_size=2))
    check_kept(run(provider, history, strategy, "keep", pinned=pinned, validate=True))
    check_dropped(run(provider, history, strategy, "drop", pinned=pinned, validate=True), format)
    assert history == before


@pytest.mark.parametrize("format", ["anthropic", "bedrock_converse"])
@given(data=st.data())
def test_any_hostile_history_is_repaired_and_accepted(format: Any, data: st.DataObject) -> None:
    """K7: what was moved, renamed, joined or is gone counts as a change like any other."""
    history = numbered(data.draw(histories(format, hostile=True)), format)
    strategy = cc.TruncationStrategy(trigger=cc.messages > data.draw(st.integers(1, 12)), min_preserved_groups=1)
    check_repaired(issued(history, format), history, strategy)


# -- a conversation that goes on ----------------------------------------------------------------------


@pytest.mark.parametrize("bound_reasoning", ["keep", "drop"])
def test_an_agent_at_work_is_never_refused(bound_reasoning: Any) -> None:
    """Every call of a loop that cuts again and again: with the options that the report gives, or with none.

    The provider issues each response behind what was sent to it, cut or not.
    """
    strategy = cc.TokenBudgetStrategy(900, target_tokens=500)
    reducer = cc.as_chat_reducer(
        strategy, counter=CHARACTERS, format="anthropic", bound_reasoning=bound_reasoning, hooks=()
    )
    provider = StrictProvider()
    history: list[Any] = []
    cuts = 0
    for number in range(60):
        history.append(user(f"task {number} " + "x" * 20) if number % 5 == 0 else results(f"c{number - 1}"))
        sent, report = reducer.reduce_with_report(history)
        cuts += report.changed
        assert (bound_reasoning == "drop") <= (dict(report.request_options) == {})
        provider.receive(sent, **report.request_options)
        mismatched = {id(sent[place]) for place in provider.mismatched(sent)}
        assert mismatched <= {id(history[position]) for position in report.bound_reasoning}
        new = thinking_answer(f"{number}") if number % 5 == 4 else thinking_call(f"c{number}")
        provider.issue([*sent, new], start=len(sent))
        history.append(new)
    assert cuts > 10


# -- by hand ----------------------------------------------------------------------------------------


def thinking_call(name: str) -> Raw:
    return {"role": "assistant", "content": [thinking(name), *call(name, format="anthropic")["content"]]}


def thinking_answer(name: str) -> Raw:
    return {"role": "assistant", "content": [thinking(name), {"type": "text", "text": "answer"}]}


def thinking(name: str) -> Raw:
    return {"type": "thinking", "thinking": f"about {name}", "signature": f"s-{name}"}


def talk() -> list[Raw]:
    """Three turns; positions 1, 3, 5, 7 and 9 are signed, the last one without a word that we could read."""
    hidden = {"type": "redacted_thinking", "data": "s-hidden"}
    return [
        *(user("one"), thinking_answer("one")),
        *(user("two"), thinking_call("a"), results("a"), thinking_answer("two")),
        *(user("three"), thinking_call("b"), results("b")),
        {"role": "assistant", "content": [hidden, {"type": "text", "text": "answer"}]},
    ]


def cut(most: int, **arguments: Any) -> cc.TruncationStrategy:
    return cc.TruncationStrategy(trigger=cc.messages > most, min_preserved_groups=1, **arguments)


def test_a_cut_binds_all_that_is_behind_it() -> None:
    """The report lists the kept messages with signed thinking behind the first change, and what the request sets."""
    history = talk()
    kept = run(issued(history), history, cut(8), "keep")
    check_kept(kept)
    assert (kept.report.first_changed, kept.report.bound_reasoning) == (0, (3, 5, 7, 9))
    assert kept.report.request_options["betas"] == [BETA]
    assert kept.refused() == (3, 5, 7, 9)


def test_what_is_dropped_leaves_from_the_change_on() -> None:
    """``"drop"``: ahead of the change messages are the caller's own, behind it all thinking is gone, signed or not."""
    history = talk()
    history[5]["content"].insert(0, {"type": "thinking", "thinking": "unsigned", "signature": ""})
    dropped = run(issued(history), history, cut(6), "drop", pinned=[history[0], history[1], history[5]])
    check_dropped(dropped, "anthropic")
    assert dropped.sent[0] is history[0]
    assert dropped.sent[1] is history[1]
    assert 5 in dropped.report.dropped_reasoning
    answer = {"role": "assistant", "content": [{"type": "text", "text": "answer"}]}
    assert dropped.sent[-1] == dropped.sent[dropped.positions.index(5)] == answer


@pytest.mark.parametrize("left", [[], [{"type": "text", "text": "\n\n"}]], ids=["nothing", "white space"])
def test_a_message_of_nothing_but_thinking_says_so(left: list[Raw]) -> None:
    """``"drop"``: an empty message would be refused; it is listed, and its place is kept."""
    history: list[Raw] = [user("one"), said("a"), user("two"), user("three")]
    history.insert(3, {"role": "assistant", "content": [thinking("x"), *left]})
    history.append(said("end"))
    dropped = run(issued(history), history, cut(5), "drop")
    check_dropped(dropped, "anthropic")
    assert dropped.report.dropped_reasoning == (3,)
    assert {"role": "assistant", "content": NOTHING_ELSE.parts[0].text} in dropped.sent


def test_dropping_leaves_no_two_messages_of_one_side() -> None:
    """K7 in Bedrock: where thinking was all that the assistant said, its users would stand next to each other."""
    only_thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    history: list[Raw] = [
        *({"role": role, "content": [{"text": role}]} for role in ("user", "assistant", "user")),
        {"role": "assistant", "content": [only_thought]},
        *({"role": role, "content": [{"text": role}]} for role in ("user", "assistant")),
    ]
    dropped = run(issued(history, "bedrock_converse"), history, cut(4), "drop", validate=True)
    check_dropped(dropped, "bedrock_converse")
    assert dropped.report.changed
    again = cc.MessageIndex.from_messages(dropped.sent, format="bedrock_converse", counter=CHARACTERS)
    assert again.problems == ()


def test_a_copy_follows_its_message() -> None:
    """C2 and K11: the same copy at every call, and another one once the message grew in place."""
    history: list[Raw] = [user("one"), said("a"), user("two")]
    history.append({"role": "assistant", "content": [thinking("x"), {"type": "text", "text": "b"}]})
    index = cc.MessageIndex.from_messages(history, counter=CHARACTERS, format="anthropic", bound_reasoning="drop")
    cut(2).compact(index, hooks=())
    copied = index.included_messages()[-1]
    assert copied is not history[-1]
    assert index.included_messages()[-1] is copied
    history[-1]["content"][1]["text"] = "b, and more"
    index.update(history)
    assert index.included_messages()[-1]["content"] == [{"type": "text", "text": "b, and more"}]


def test_a_copy_follows_what_no_reader_looks_at() -> None:
    """C2 and K8: a cache mark moved, a key of the caller's, another picture: what is sent has it."""
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/1.png"}}
    blocks = [thinking("x"), {"type": "text", "text": "b"}, picture]
    history: list[Raw] = [user("one"), said("a"), user("two"), {"role": "assistant", "content": blocks}, user("three")]
    reducer = cc.as_chat_reducer(cut(3), format="anthropic", counter=CHARACTERS, bound_reasoning="drop", hooks=())
    before = reducer(history)[1]
    assert reducer(history)[1] is before
    blocks[1] = {**blocks[1], "cache_control": {"type": "ephemeral"}}
    assert reducer(history)[1]["content"] == blocks[1:]
    blocks[2] = {"type": "image", "source": {"type": "url", "url": "https://example.com/2.png"}}
    assert reducer(history)[1]["content"] == blocks[1:]
    history[3]["extra"] = 1
    assert reducer(history)[1]["extra"] == 1


def test_what_a_result_brings_back_has_its_thinking_again() -> None:
    """G2 and C2: nothing is out any more, and what counts is what is sent."""
    asked = {"role": "assistant", "content": [thinking("x" * 50), {"type": "text", "text": "b"}, *call_blocks("c")]}
    history: list[Raw] = [user("one"), asked]
    arguments: dict[str, Any] = {"format": "anthropic", "counter": CHARACTERS, "bound_reasoning": "drop"}
    index = cc.MessageIndex.from_messages(history, pending_turns=0, **arguments)
    index.extend([user("two"), said("a")])
    index.exclude(index.groups[1], "by hand")
    index.extend([{"role": "user", "content": [result_block("c"), {"type": "text", "text": "and this"}]}])
    assert [group.excluded for group in index.groups] == [None] * len(index.groups)
    assert index.included_messages()[1] is asked
    assert index.value(cc.tokens) == cc.MessageIndex.from_messages(index.included_messages(), **arguments).value(
        cc.tokens
    )


def call_blocks(call_id: str) -> list[Raw]:
    return [{"type": "tool_use", "id": call_id, "name": "look", "input": {}}]


def result_block(call_id: str) -> Raw:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "seen"}


def test_nothing_left_nothing_dropped() -> None:
    """K1: the very same objects, and a report that lists nothing."""
    history = talk()
    for setting in ("keep", "drop"):
        declined = run(issued(history), history, cut(99), setting)
        assert [id(message) for message in declined.sent] == [id(message) for message in history]
        assert (declined.report.bound_reasoning, declined.report.dropped_reasoning) == ((), ())
        assert dict(declined.report.request_options) == {}
        assert declined.refused() == ()


def test_a_pass_that_is_undone_drops_nothing() -> None:
    """K9: where a history does not fit and the caller wants an error, every message is as it was."""
    history = talk()
    index = cc.MessageIndex.from_messages(history, counter=CHARACTERS, bound_reasoning="drop")
    before = index.value(cc.tokens)
    with pytest.raises(cc.ContextOverflowError) as caught:
        cut(1).compact(index, on_overflow="raise", hooks=())
    assert caught.value.report.dropped_reasoning
    assert [id(message) for message in index.included_messages()] == [id(message) for message in history]
    assert index.value(cc.tokens) == before


def test_what_comes_back_has_its_thinking_again() -> None:
    """G1 and C2: where every group is included again, the messages are the caller's own, and count as such."""
    history = talk()
    dropped = run(issued(history), history, cut(4), "drop")
    assert dropped.report.dropped_reasoning
    dropped.index.include_all()
    assert [id(message) for message in dropped.sent] == [id(message) for message in history]
    assert dropped.index.value(cc.tokens) == run(issued(history), history, cut(99), "keep").index.value(cc.tokens)


def test_the_copies_are_the_same_at_every_look() -> None:
    """K11: what is sent keeps its identity, so that the next call sees an unchanged past."""
    history = talk()
    dropped = run(issued(history), history, cut(8), "drop")
    assert [id(message) for message in dropped.sent] == [id(message) for message in dropped.sent]
    sent = dropped.sent
    dropped.index.extend([user("four")])
    assert [id(message) for message in dropped.sent[:-1]] == [id(message) for message in sent]


@pytest.mark.parametrize("setting", ["keep", "drop"])
def test_a_pass_that_declines_still_tells(setting: Any) -> None:
    """The options are for every request behind a change, not only for the one that the change was made for."""
    history = talk()
    first = run(issued(history), history, cut(8), setting)
    again = cut(8).compact(first.index, hooks=())
    assert again.skipped == "trigger"
    assert again.bound_reasoning == first.report.bound_reasoning
    assert again.dropped_reasoning == first.report.dropped_reasoning
    assert again.request_options == first.report.request_options


# -- the provider itself ----------------------------------------------------------------------------


def test_the_provider_takes_what_it_issued() -> None:
    """Also when the conversation goes on behind it."""
    history = talk()
    for messages in ([*history, user("four")], history[:4]):
        provider = issued(history)
        assert any(map(provider.signed, messages))
        assert provider.mismatched(messages) == ()
        provider.receive(messages)


@pytest.mark.parametrize(
    "edited",
    [
        lambda history: history[2:],
        lambda history: [user("One"), *history[1:]],
        lambda history: [history[0], {**history[1], "content": history[1]["content"][1:]}, *history[2:]],
        lambda history: [*history[:2], said("more"), *history[2:]],
    ],
    ids=["cut", "edited", "thinking-left-out", "put-in"],
)
def test_the_provider_refuses_what_changed(edited: Callable[[list[Any]], list[Any]]) -> None:
    """Whatever was ahead of a block: text, another block of thinking, a message more or less."""
    history = talk()
    with pytest.raises(Refused):
        issued(history).receive(edited(history))


def test_the_provider_wants_all_of_the_thinking_or_none() -> None:
    """Behind a change, and whatever the request asks for; and ``drop_block`` only with its beta value."""
    history = talk()
    options = cc.formats.AnthropicFormat.request_options
    provider = issued(history)
    provider.receive(history[2:], **options)
    bare = [provider.without_thinking(message) for message in history]
    provider.receive(bare[2:])
    for request in ({}, options):
        with pytest.raises(Refused, match="Only some of the thinking"):
            provider.receive([*bare[2:6], *history[6:]], **request)
    with pytest.raises(Refused, match="needs the beta value"):
        provider.receive(history[2:], thinking=options["thinking"])
