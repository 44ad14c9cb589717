"""The history shapes, which other projects' bug reports made: what every pass must keep to, and most must change.

Each strategy compacts each shape to 80, 50 and 25 % of its own size, with the smallest floors.
"""

import copy
from collections import Counter as Tally
from operator import attrgetter
from typing import Any

import pytest

import chat_compaction as cc
from tests import _shared, test_strategies_clip
from tests.conformance import (
    measures,
    oracle,
    shapes,
    test_history_counts,
    test_history_shortening,
    test_history_summaries,
)
from tests.conformance.measures import MEASURES
from tests.conformance.properties import EVERY_PASS, first_role, wrong
from tests.conformance.shapes import COUNTER, SETTINGS, Outcome, Setting, Shape, count, demanding, run

every_property = pytest.mark.parametrize("slug", EVERY_PASS)


ELSEWHERE = {
    "args_json_valid": test_strategies_clip.test_args_json_valid,
    "shrinks_largest": test_strategies_clip.test_shrinks_largest,
}
"""Properties that the tests of one strategy check, over the shapes that demand them."""


def test_every_slug_is_checked() -> None:
    """No property of the file is forgotten, and none is checked that is not there."""
    assert {f"test_{slug}" for slug in MEASURES} <= {*globals(), *vars(test_history_counts)}
    of_summaries, of_shortening = test_history_summaries.TESTED, test_history_shortening.TESTED
    checked = {*EVERY_PASS, *MEASURES, *of_summaries, *of_shortening, *ELSEWHERE}
    assert checked == {slug for shape in shapes.load() for slug in shape.must}
    assert {*EVERY_PASS, *MEASURES}.isdisjoint({*of_summaries, *of_shortening, *ELSEWHERE})


def test_every_shape_is_checked() -> None:
    """One module has the shapes about summaries, another the others: no shape is left between them."""
    for shape in shapes.load():
        is_about_summaries = "summar" in shape.settings["strategy"]
        mine, others = test_history_summaries.TESTED, {**test_history_shortening.TESTED, **ELSEWHERE}
        if not is_about_summaries:
            mine, others = others, mine
        assert not set(shape.must) & set(others) - set(mine), shape.id


@every_property
def test_every_pass(slug: str) -> None:
    """The property holds for every strategy on every shape, whether the shape asks for it or not."""
    assert wrong(shapes.all_passes(), [slug]) == []


def test_the_rules_say_what_stays() -> None:
    """Every pass keeps what a plain reading of the rules G2, G3, K2 to K5 keeps, message for message."""
    differ = [o.name for o in shapes.all_passes() if o.answer is None or o.kept != sorted(o.answer.kept)]
    assert differ == []


def test_every_pass_fires_and_changes_what_may_leave(request: pytest.FixtureRequest) -> None:
    """A suite whose passes do nothing proves nothing: where anything may leave, something does."""
    tally: Tally[str] = Tally()
    for outcome in shapes.all_passes():
        assert outcome.report.skipped not in ("trigger", "target"), outcome.name
        assert outcome.answer is not None
        may_leave = len(outcome.answer.must_stay) < len(outcome.before)
        assert outcome.report.changed == may_leave, outcome.name
        tally.update(passes=1, free=may_leave, changed=outcome.report.changed)
    share = tally["changed"] / tally["passes"]
    _shared.told(request.config).append(
        f"history shapes: {tally['passes']} passes over {len(shapes.load())} shapes fired, all; "
        f"something may leave in {tally['free']}, and left in {tally['changed']} ({share:.1%})"
    )
    assert share > 0.9


# -- the first message ---------------------------------------------------------------------------------------------


def in_anthropic(shape: Shape) -> list[Outcome]:
    """Every setting over a shape in Anthropic's format, at the shares of its size there."""
    messages = shapes.to_anthropic(shape.messages)
    size = count(messages, format="anthropic")
    outcomes = []
    for setting in SETTINGS:
        limit = int((size if setting.metric == cc.tokens else len(messages)) * setting.share)
        name, strategy = f"{shape.id} in anthropic, {setting}", setting.strategy(limit)
        outcomes.append(run(name, messages, strategy, pinned=shape.pinned, format="anthropic"))
    return outcomes


# All but the one of 1,502 messages, which is about length; recorded sessions are as long.
@pytest.mark.parametrize(
    "shape", [shape for shape in shapes.load() if len(shape.messages) < 1_000], ids=attrgetter("id")
)
def test_every_property_in_anthropic(shape: Shape) -> None:
    """The same history in the format that demands a user's message first keeps every property too (rule K7)."""
    outcomes = in_anthropic(shape)
    assert all(outcome.report.skipped in (None, "floor") for outcome in outcomes)
    assert wrong(outcomes) == []


@pytest.mark.parametrize("shape", demanding("first_nonsystem_user"), ids=attrgetter("id"))
def test_first_nonsystem_user(shape: Shape) -> None:
    """Where something leaves, the list begins with the user, be it that it did not before (rule K7)."""
    changed = [outcome for outcome in in_anthropic(shape) if outcome.report.changed]
    assert {first_role(outcome.after) for outcome in changed} == {"user"}


# -- what is wrong already -----------------------------------------------------------------------------------------


def mended(shape: Shape, format_name: str) -> list[Outcome]:
    """A shape through reducers that repair: one that lets nothing leave, and every setting at its share."""
    messages = shape.messages
    if format_name == "anthropic":
        # Its system prompt travels apart, so one in the list is wrong, and nobody could mend that.
        messages = shapes.to_anthropic([message for message in messages if message["role"] != "system"])
    size = count(messages, format=format_name)
    outcomes = []
    for setting in (None, *SETTINGS):
        share = setting and (size if setting.metric == cc.tokens else len(messages)) * setting.share
        strategy = cc.TokenBudgetStrategy(10 * size) if setting is None else setting.strategy(int(share or 0))
        name = f"{shape.id} repaired in {format_name}, {setting}"
        outcomes.append(run(name, messages, strategy, format=format_name, on_invalid="repair"))
    return outcomes


def holds(slug: str, shape: Shape, format_name: str) -> list[str]:
    """What is wrong with a shape's repaired passes, by one of the measures."""
    return [f"{o.name}: {fault}" for o in mended(shape, format_name) for fault in MEASURES[slug](o)]


@pytest.mark.parametrize("format_name", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("shape", demanding("repaired"), ids=attrgetter("id"))
def test_repaired(shape: Shape, format_name: str) -> None:
    """``on_invalid="repair"``: what is sent breaks no rule, whatever else leaves; the caller's list is as it was."""
    assert holds("repaired", shape, format_name) == []
    outcomes = mended(shape, format_name)
    assert [outcome.name for outcome in outcomes if outcome.before != outcome.pristine] == []
    asked_for = {"last_user_kept", "system_first", "pairs_intact"} & set(shape.must)
    assert wrong(outcomes, sorted(asked_for)) == []
    # Mended once, there is nothing left to mend.
    again = [run(o.name, o.after, o.strategy, format=format_name, on_invalid="repair") for o in outcomes]
    assert [outcome.name for outcome in again if outcome.report.repairs] == []


@pytest.mark.parametrize("format_name", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("shape", demanding("no_empty"), ids=attrgetter("id"))
def test_no_empty(shape: Shape, format_name: str) -> None:
    """``on_invalid="repair"``: a message of which nothing is left leaves."""
    assert holds("no_empty", shape, format_name) == []
    assert all(outcome.report.repairs for outcome in mended(shape, format_name))


# -- below the trigger, over several passes ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", shapes.load(), ids=attrgetter("id"))
def test_nothing_happens_below_the_trigger(shape: Shape) -> None:
    """Rule K1: the very same messages, and the report says that the trigger did not hold."""
    size = count(shape.messages)
    for strategy in (cc.TruncationStrategy(trigger=cc.tokens > size), cc.TokenBudgetStrategy(size, max_turns=10_000)):
        outcome = run(shape.id, shape.messages, strategy, pinned=shape.pinned)
        assert outcome.report.skipped == "trigger"
        assert wrong([outcome]) == []


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", demanding("pinned_kept"), ids=attrgetter("id"))
def test_pins_hold_over_several_passes(shape: Shape, setting: Setting) -> None:
    """Rule G6: three passes with new turns between, and the pinned message is there after each."""
    history, changed = shape.messages, False
    pinned = [history[position] for position in shape.pinned]
    size = count(history) if setting.metric == cc.tokens else len(history)
    strategy = setting.strategy(int(size * setting.share))
    for turn in range(3):
        places = frozenset(place for place, message in enumerate(history) if any(message is one for one in pinned))
        outcome = run(f"{shape.id}, pass {turn}", history, strategy, pinned=places)
        assert len(places) == len(pinned) > 0
        assert wrong([outcome]) == []
        changed = changed or outcome.report.changed
        asked = {"role": "user", "content": f"Question {turn} of a later turn?"}
        history = [*outcome.after, asked, {"role": "assistant", "content": "A long answer. " * 40}]
    assert changed


# -- what must stay does not fit -----------------------------------------------------------------------------------


def overflow(outcome: Outcome) -> cc.ContextOverflowError:
    """The error of the same pass for a caller who wants one."""
    pinned = [outcome.before[position] for position in outcome.pinned]
    index = cc.MessageIndex.from_messages(outcome.before, counter=COUNTER, format=outcome.format, pinned=pinned)
    with pytest.raises(cc.ContextOverflowError) as caught:
        outcome.strategy.compact(index, on_overflow="raise", hooks=())
    assert len(index.included_messages()) == len(outcome.before)
    return caught.value


def unfit() -> list[Outcome]:
    """The passes of which what must stay has too many tokens."""
    return [
        outcome for outcome in shapes.all_passes() if outcome.limit(cc.tokens) is not None and not outcome.report.fits
    ]


def test_clear_error() -> None:
    """Rule K5: no list above the target in silence; the error says what was wanted, what is possible, what is big."""
    faults = []
    for outcome in unfit():
        sizes = {group: count([outcome.before[p] for p in sorted(group)]) for group in oracle.groups(outcome.before)}
        kept = {group: size for group, size in sizes.items() if group.issubset(outcome.kept)}
        biggest = frozenset[int]().union(*(group for group, size in kept.items() if size == max(kept.values())))
        found = measures.clear_error(overflow(outcome), outcome.strategy.effective_target, outcome.size_after, biggest)
        faults += [f"{outcome.name}: {fault}" for fault in found]
    assert faults == []


@pytest.mark.parametrize("shape", demanding("clear_error"), ids=attrgetter("id"))
def test_the_error_names_the_biggest_message(shape: Shape) -> None:
    """Where one message is too big, it is the one that the error names."""
    outcomes = [outcome for outcome in unfit() if outcome.name.startswith(shape.id)]
    sizes = [count([message]) for message in shape.messages]
    biggest = frozenset({sizes.index(max(sizes))})
    assert outcomes
    for outcome in outcomes:
        target = outcome.strategy.effective_target
        assert list(measures.clear_error(overflow(outcome), target, outcome.size_after, biggest)) == []


# -- how much work -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", demanding("near_target"), ids=attrgetter("id"))
def test_near_target(shape: Shape) -> None:
    """Rule K3: nothing leaves once the target holds."""
    outcomes = [o for o in shapes.passes(shape.id) if o.limit(cc.tokens) is not None and o.report.fits]
    assert len(outcomes) > 10
    for outcome in outcomes:
        limit = outcome.limit(cc.tokens)
        assert limit is not None
        assert list(measures.near_target(outcome.size_after, limit)) == []


@pytest.mark.parametrize("shape", shapes.load(), ids=attrgetter("id"))
def test_terminates(shape: Shape) -> None:
    """Rule K3: the target is asked before the first exclusion and after each one, also where it never holds."""
    asked = 0

    @cc.predicate
    def unreachable(_: object) -> bool:
        nonlocal asked
        asked += 1
        return False

    strategy = cc.TruncationStrategy(trigger=cc.always, target=unreachable, min_preserved_groups=1)
    index = cc.MessageIndex.from_messages(shape.messages, counter=COUNTER)
    strategy.compact(index, hooks=())
    assert list(measures.terminates(asked, len(oracle.groups(shape.messages)))) == []


def grown(messages: list[Any], times: int) -> list[Any]:
    """The history so many times over, with other texts and other ids each time."""
    longer: list[Any] = []
    for number in range(times):
        for message in copy.deepcopy(messages):
            if message["content"]:
                message["content"] += f" ({number})"
            if "tool_call_id" in message:
                message["tool_call_id"] += f"-{number}"
            for call in message.get("tool_calls", ()):
                call["id"] += f"-{number}"
            longer.append(message)
    return longer


@pytest.mark.parametrize("setting", [Setting(), *(Setting(evict, budget=True) for evict in shapes.EVICT)], ids=str)
@pytest.mark.parametrize("shape", demanding("linear_time"), ids=attrgetter("id"))
def test_linear_time(shape: Shape, setting: Setting) -> None:
    """Rule K13: each text is counted once, and twice the messages are twice the counting."""
    work = []
    for times in (1, 2, 4):
        seen: Tally[str] = Tally()

        def counted(text: str, seen: Tally[str] = seen) -> int:
            seen[text] += 1
            return len(text)

        messages = grown(shape.messages, times)
        reducer = cc.as_chat_reducer(setting.strategy(2_000), counter=counted, hooks=())
        reducer.reduce(messages)
        reducer.reduce([*messages, {"role": "user", "content": "One more."}])
        assert set(seen.values()) == {1}
        work.append((len(messages), sum(seen.values())))
    assert list(measures.linear_time(work)) == []
