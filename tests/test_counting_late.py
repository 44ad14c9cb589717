"""Count late, and only what decides (rule C4): decisions are those of counting everything first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from statistics import median
from typing import Any
from zlib import crc32

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.counters import byte_bounds
from tests import _shared
from tests.build import CHAT, index_of, said, step, system, user
from tests.property.drawing import Drawn, drawn_histories
from tests.property.test_compaction import strategies
from tests.test_recorded_sessions import SESSIONS, Some, newest_half

Bounds = Callable[[str], tuple[int, int]]


@attrs.define
class Noting:
    """Counts by a function, notes what it counted and in how many batches, and may have bounds."""

    function: Callable[[str], int]
    bounds: Bounds | None = None
    framing: bool = False
    exact: bool = False
    name: str = "noting"
    batches: list[list[str]] = attrs.field(factory=list)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        self.batches.append(list(texts))
        return list(map(self.function, texts))

    @property
    def counted(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


def noting(bounds: Bounds | None = None) -> Noting:
    return Noting(len, bounds)


def twice(text: str) -> tuple[int, int]:
    """Sound bounds of the length: from nothing to twice as much."""
    return 0, 2 * len(text)


# -- what is counted -------------------------------------------------------------------------------


def test_the_newest_are_counted_until_the_answer_is_known() -> None:
    """C4: above the limit is above the limit, however much more there is."""
    counter = noting()
    index = index_of([user(f"{number:0100}") for number in range(50)], counter=counter)
    assert index.exceeds(cc.tokens, 250)
    assert 3 <= len(counter.counted) < 15
    assert counter.counted == [f"{number:0100}" for number in range(49, 49 - len(counter.counted), -1)]
    assert not index.known(cc.tokens)[1]


def test_what_is_known_to_be_above_counts_nothing() -> None:
    """C4: reserved tokens and lower bounds may decide alone."""
    for counter, reserved in ((noting(), 11), (noting(lambda text: (len(text), len(text))), 0)):
        assert index_of(CHAT, counter=counter, reserved=reserved).exceeds(cc.tokens, 10)
        assert counter.counted == []


def test_upper_bounds_settle_that_it_fits() -> None:
    """C4: a history whose bytes fit is never counted, message by message."""
    counter = noting(byte_bounds)
    index = index_of([], counter=counter)
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 100, min_preserved_groups=1)
    for number in range(10):
        index.extend([user(f"{number:010}")])
        assert strategy.compact(index, hooks=()).skipped == "trigger"
        assert counter.counted == []
        assert index.known(cc.tokens) == (number + 1, False)


def test_what_bounds_leave_open_is_counted_in_batches() -> None:
    """C4: with bounds twice too high, the counted part grows by halves of what is left, not message by message."""
    counter = noting(twice)
    index = index_of([], counter=counter)
    for number in range(100):
        index.extend([user(f"{number:010}")])
        assert not index.exceeds(cc.tokens, 1000)
    assert len(counter.batches) < 12
    assert max(map(len, counter.batches)) >= 40
    index.extend([user("x")])
    assert index.exceeds(cc.tokens, 1000)


def test_without_bounds_each_message_counts_once() -> None:
    counter = noting()
    index = index_of([], counter=counter)
    for number in range(20):
        index.extend([user(f"text {number}")])
        assert not index.exceeds(cc.tokens, 1000)
    assert counter.counted == [f"text {number}" for number in range(20)]


def test_the_frame_and_media_are_in_the_bounds() -> None:
    """C1: what has no text counts the same, counted or bounded."""
    url = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    message = {"role": "user", "content": [{"type": "text", "text": "see"}, url]}
    counter = Noting(len, byte_bounds, framing=True)
    index = index_of([message], counter=counter, media_costs=cc.MediaCosts(image=50), format="openai_chat")
    limit = index_of([message], counter=Noting(len, framing=True), media_costs=cc.MediaCosts(image=50)).value(cc.tokens)
    assert not index.exceeds(cc.tokens, limit)
    assert counter.counted == []
    assert index.exceeds(cc.tokens, limit - 1)
    assert counter.counted == ["see"]


def test_a_message_that_changed_is_bounded_anew() -> None:
    """C2 and C4."""
    counter = noting(byte_bounds)
    history = [user("short"), user("b")]
    index = index_of(history, counter=counter)
    assert not index.exceeds(cc.tokens, 20)
    index.update([user("long" * 10), history[1]])
    assert index.exceeds(cc.tokens, 20)
    assert "long" * 10 in counter.counted


def test_a_counter_that_fails_leaves_what_was_known() -> None:
    """K9: the next question asks again."""
    broken = True

    def length(text: str) -> int:
        if broken:
            raise OSError("gone")
        return len(text)

    index = index_of(CHAT, counter=Noting(length, twice))
    with pytest.raises(OSError, match="gone"):
        index.exceeds(cc.tokens, 30)
    broken = False
    assert index.value(cc.tokens) == sum(len(message["content"]) for message in CHAT)


def test_a_report_is_exact_where_it_says_so() -> None:
    """C4: ``tokens_exact`` and ``tokens_after`` of a pass that changed something."""
    history = [system("s" * 30), *(user(f"{number:010}") for number in range(50))]
    index = index_of(history, counter=noting())
    report = cc.TruncationStrategy(trigger=cc.tokens > 100, target=cc.tokens <= 60, min_preserved_groups=1).compact(
        index, hooks=()
    )
    assert (report.tokens_exact, report.tokens_after) == (False, 60)
    assert 100 < report.tokens_before < 530
    assert [exclusion.tokens for exclusion in report.excluded][:2] == [None, None]
    assert len(report.excluded) == 47


# -- decisions are the same ------------------------------------------------------------------------


def outcome(report: cc.CompactionReport, index: cc.MessageIndex) -> dict[str, Any]:
    """What a pass decided, without what depends on how much was counted."""
    decided = attrs.asdict(report, recurse=False)
    for field in ("duration_ms", "tokens_before", "tokens_exact", "trigger", "stable_prefix_tokens"):
        del decided[field]
    decided["excluded"] = [attrs.evolve(exclusion, tokens=None) for exclusion in report.excluded]
    decided["blocked_by"] = [attrs.evolve(blocker, tokens=None) for blocker in report.blocked_by]
    if not report.changed and not report.tokens_exact:
        del decided["tokens_after"]
    return {**decided, "kept": index.included_positions()}


def check_same(strategy: cc.CompactionStrategy, late: cc.MessageIndex, eager: cc.MessageIndex) -> int:
    """The pass of an index that counted everything first decides the same; gives its tokens before."""
    before = eager.value(cc.tokens)
    eager.total(cc.tokens)
    of_late, of_eager = (strategy.compact(index, hooks=()) for index in (late, eager))
    assert of_eager.tokens_exact
    decided, expected = outcome(of_late, late), outcome(of_eager, eager)
    if "tokens_after" not in decided:
        assert of_late.tokens_after <= expected.pop("tokens_after")
    assert decided == expected
    if of_late.tokens_exact:
        assert of_late.tokens_before == before
    else:
        assert of_late.tokens_before <= before
    return before


def hashed(text: str) -> int:
    """Any function whose counts are not negative: many are zero."""
    return max(0, crc32(text.encode("utf-8", "replace")) % 7 - 3) * len(text)


counters = st.sampled_from([(len, None), (len, twice), (len, byte_bounds), (hashed, None)])


@given(drawn_histories(), strategies, counters, st.booleans(), st.sampled_from(["keep", "drop"]))
def test_late_decides_as_eager(
    drawn: Drawn, strategy: Any, counter: tuple[Any, Any], framing: bool, bound_reasoning: Any
) -> None:
    """C4 and K3: for any counter and any bounds that are sound."""
    function, bounds = counter
    late, eager = (
        drawn.index(counter=Noting(function, bounds, framing), bound_reasoning=bound_reasoning) for _ in range(2)
    )
    check_same(strategy, late, eager)


@given(drawn_histories(), strategies, counters, st.data())
def test_late_decides_as_eager_while_a_history_grows(
    drawn: Drawn, strategy: Any, counter: tuple[Any, Any], data: st.DataObject
) -> None:
    """C4: pass after pass on one index."""
    function, bounds = counter
    first = data.draw(st.integers(0, len(drawn.messages)))
    indexes = [
        cc.MessageIndex.from_messages(
            drawn.messages[:first], format=drawn.format, pinned=drawn.pins, counter=Noting(function, bounds)
        )
        for _ in range(2)
    ]
    check_same(strategy, *indexes)
    for message in drawn.messages[first:]:
        for index in indexes:
            index.extend([message])
        check_same(strategy, *indexes)


def thirds(bounds: Bounds | None) -> cc.FunctionCounter:
    """A cheap counter, so that there is time for every session."""
    return cc.FunctionCounter(lambda text: len(text) // 3, bounds=bounds)


def passes(total: int, seed: str) -> Iterator[cc.CompactionStrategy]:
    """Strategies at three shares of a history's own size, on all metrics."""
    for share in (0.75, 0.4, 0.1):
        limit = int(total * share)
        fires = cc.tokens > limit
        yield cc.TruncationStrategy(trigger=fires, target=cc.tokens <= limit // 2, min_preserved_groups=2)
        yield cc.TruncationStrategy(
            trigger=fires | (cc.turns > 10), target=(cc.tokens <= limit) & (cc.turns <= 5), min_preserved_groups=1
        )
        yield cc.TruncationStrategy(trigger=cc.messages > 20, target=(cc.tokens <= limit) | (cc.messages <= 10))
        yield cc.TokenBudgetStrategy(limit, target_tokens=limit // 2)
        yield cc.TokenBudgetStrategy(limit, evict="turns", max_turns=8)
        yield cc.TokenBudgetStrategy(limit, evict="groups")
        yield cc.ReducerStrategy(newest_half, fires)
        yield cc.ReducerStrategy(Some(seed), fires)


@pytest.mark.slow
def test_late_decides_as_eager_on_recorded_sessions(pytestconfig: pytest.Config) -> None:
    """C4 and K3, on every recorded session, with a counter that has bounds and one that has none."""
    combinations = 0
    settings = cycle(product((None, byte_bounds), ("keep", "drop", "keep")))
    for format, path in SESSIONS:
        history = _shared.load_session(path)

        def index(history: list[Any] = history, format: str = format, **arguments: Any) -> cc.MessageIndex:
            return cc.MessageIndex.from_messages(history, format=format, **arguments)

        total = index(counter=thirds(None)).value(cc.tokens)
        for strategy, (bounds, reasoning) in zip(passes(total, path.name), settings, strict=False):
            late, eager = (index(counter=thirds(bounds), bound_reasoning=reasoning) for _ in range(2))
            check_same(strategy, late, eager)
            combinations += 1
    _shared.told(pytestconfig).append(f"counting late: {combinations} passes decided as if all were counted first")
    assert combinations == 24 * len(SESSIONS)


@pytest.mark.slow
def test_a_cold_cut_counts_a_part(pytestconfig: pytest.Config) -> None:
    """C4: of the recorded sessions above 16,000 tokens, a cut to 8,000 counts less than half, in the median."""
    shares = []
    for format, path in SESSIONS:
        history = _shared.load_session(path)
        total = cc.MessageIndex.from_messages(history, format=format, counter=lambda text: len(text) // 4)
        if total.value(cc.tokens) <= 16_000:
            continue
        counter = Noting(lambda text: len(text) // 4, framing=True)
        cc.TokenBudgetStrategy(8_000).compact(
            cc.MessageIndex.from_messages(history, format=format, counter=counter), hooks=()
        )
        shares.append(sum(len(text) // 4 for text in counter.counted) / total.value(cc.tokens))
    _shared.told(pytestconfig).append(
        f"cold cut to 8,000: {median(shares):.0%} of {len(shares)} sessions' tokens counted"
    )
    assert len(shares) > 40
    assert median(shares) < 0.5


# -- leaving at once -------------------------------------------------------------------------------


class OneByOne(cc.TruncationStrategy):
    """Truncation as the rule has it: the target is asked around each exclusion."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        for group in list(self.candidates(index)):
            if self.reached(index):
                return
            index.exclude(group, "truncation")


targets = st.one_of(
    st.integers(0, 60).map(lambda limit: cc.tokens <= limit),
    st.integers(0, 6).map(lambda limit: cc.messages <= limit),
    st.integers(0, 6).map(lambda limit: cc.groups <= limit),
    st.integers(0, 6).map(lambda limit: cc.turns <= limit),
    st.integers(0, 6).map(lambda limit: cc.tool_groups <= limit),
)
compound = st.recursive(
    targets,
    lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
        lambda of: st.sampled_from([cc.all_of, cc.any_of]).map(lambda join: join(*of))
    ),
)


@given(drawn_histories(), compound, st.integers(0, 4), st.booleans())
def test_leaving_at_once_is_leaving_one_by_one(drawn: Drawn, target: Any, floor: int, preserve_system: bool) -> None:
    """K3 and K7: whatever the target is made of, and whatever the rules of the format hold back."""
    fields = {"trigger": cc.always, "target": target, "min_preserved_groups": floor, "preserve_system": preserve_system}
    at_once, one_by_one = drawn.index(), drawn.index()
    of_at_once = cc.TruncationStrategy(**fields).compact(at_once, hooks=())
    of_one_by_one = OneByOne(**fields).compact(one_by_one, hooks=())
    assert at_once.included_positions() == one_by_one.included_positions()
    of_each = [[attrs.evolve(gone, tokens=None) for gone in report.excluded] for report in (of_at_once, of_one_by_one)]
    assert of_each[0] == of_each[1]
    assert of_at_once.stopped_by == of_one_by_one.stopped_by
    assert at_once.snapshot() == one_by_one.snapshot()


@given(drawn_histories(), st.data())
def test_groups_that_leave_or_come_back_at_once(drawn: Drawn, data: st.DataObject) -> None:
    """K7 and K13: the ledger ends in the same state, with the same totals, as one by one in any order."""
    at_once, one_by_one = drawn.index(), drawn.index()
    for _ in range(3):
        chosen = data.draw(
            st.lists(st.sampled_from([b.first for b in at_once._ledger.grouping.bundles.values()] or [0]))
        )
        reason = data.draw(st.sampled_from(["left", None]))
        if not drawn.messages:
            return
        bundles = at_once._ledger.grouping.bundles
        at_once._ledger.set_excluded([bundles[first] for first in dict.fromkeys(chosen)], reason)
        for first in data.draw(st.permutations(list(dict.fromkeys(chosen)))):
            one_by_one._ledger.set_excluded([one_by_one._ledger.grouping.bundles[first]], reason)
        assert at_once.snapshot() == one_by_one.snapshot()
        assert at_once.included_positions() == one_by_one.included_positions()
        for metric in (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups):
            assert at_once.value(metric) == one_by_one.value(metric)


def test_a_unit_that_may_not_leave_stops_the_others() -> None:
    """K4: what stands ahead of it has left, as one by one."""

    class Greedy(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            with pytest.raises(cc.ProtectedGroupError):
                self.evict(index, index.groups, "all")

    index = index_of([user("one"), said("two"), system(), user("three"), said("four")])
    Greedy(trigger=cc.always, target=cc.messages <= 1, min_preserved_groups=1).compact(index, hooks=())
    assert index.included_positions() == [2, 3, 4]


def test_a_strategy_that_says_itself_when_it_is_done() -> None:
    """A subclass may override ``reached``: then each unit is asked for."""

    class Half(cc.TruncationStrategy):
        def reached(self, index: cc.MessageIndex) -> bool:
            return index.value(cc.messages) <= 3

    index = index_of(CHAT)
    Half(trigger=cc.messages > 5, target=cc.messages <= 1, min_preserved_groups=1).compact(index, hooks=())
    assert len(index.included_messages()) == 3


def test_an_iterator_of_units_is_asked_one_by_one() -> None:
    """It may look at the index itself in between."""
    seen: list[int] = []

    class Looking(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            def units() -> Iterator[cc.MessageGroup]:
                for group in list(self.candidates(index)):
                    seen.append(index.value(cc.messages))
                    yield group

            self.evict(index, units(), "looked at")

    history = [user("task"), *step("a"), *step("b"), said(), user("more")]
    Looking(trigger=cc.messages > 4, min_preserved_groups=1, keep_last_user=False).compact(index_of(history), hooks=())
    assert seen == [7, 6, 4]


def test_the_last_user_message_is_found_from_the_end() -> None:
    """K4: with random pins and exclusions, the floor is that of the slow way; see tests/property/test_compaction.py."""
    chance = random.Random(3)  # noqa: S311 - no secret
    history = [chance.choice((user, said))(str(number)) for number in range(40)]
    index = index_of(history, pinned=[history[39], history[38]])
    strategy = cc.TruncationStrategy(trigger=cc.always, target=cc.messages <= 0, min_preserved_groups=1)
    strategy.compact(index, hooks=())
    newest = max(n for n, message in enumerate(history[:38]) if message["role"] == "user")
    assert index.included_positions() == [newest, 38, 39]


@pytest.mark.parametrize("given", [None, 5, (1.5, 2), (1, 2, 3)], ids=str)
def test_bounds_that_are_none_name_the_counter(given: Any) -> None:
    index = index_of(CHAT, counter=Noting(len, lambda _: given))
    with pytest.raises(cc.CounterError, match=r"bounds of counter 'noting' must return two ints.*of \d characters"):
        index.exceeds(cc.tokens, 10)
    assert index.value(cc.tokens) == sum(len(message["content"]) for message in CHAT)


def test_bounds_are_a_method_or_nothing() -> None:
    with pytest.raises(TypeError, match="counter must have a method bounds"):
        index_of(CHAT, counter=Noting(len, 5))  # type: ignore[arg-type]
