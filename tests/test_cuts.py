"""Where a list may be cut: what is held back between two messages that stay (rule K7).

The unit cases show each kind of gap. The properties hold any list without a wrong seam, under the rules of the
providers and under random ones, against a slow judge that looks at the whole list each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction._ledger import Ledger
from chat_compaction._settings import IndexSettings
from chat_compaction.formats import FORMATS, Format, Message, Part, PartKind, Role, rules
from chat_compaction.formats.rules import Rule, Seam
from chat_compaction.testing import characters_counter
from tests.build import anthropic_step, call, drop, index_of, result, said, step, system, user

ALTERNATING = FORMATS["openai_chat"].with_rules(rules.Alternation())


def excluded(index: cc.MessageIndex, *positions: int) -> list[int]:
    """What is left when the groups at these positions were asked to leave, in that order."""
    for position in positions:
        (group,) = [group for group in index.groups if position in group.positions]
        index.exclude(group, "by hand")
    return index.included_positions()


# -- one gap ----------------------------------------------------------------------------------------


def test_nothing_is_held_back_where_no_rule_forbids_the_cut() -> None:
    """K7: more stays only where it must."""
    history = [user(), said(), user("two"), said("b"), user("three"), said("c")]
    assert excluded(index_of(history), 0, 1, 2) == [3, 4, 5]
    assert excluded(index_of(history, format=ALTERNATING), 2, 3) == [0, 1, 4, 5]


def test_the_first_user() -> None:
    """K7: the user's message that opened the oldest kept turn, though an older one stood ahead of it, too."""
    history = [user(), said(), user("two"), *anthropic_step("a"), said("b"), user("three"), said("c")]
    index = index_of(history, format="anthropic")
    assert excluded(index, 0, 1, 2, 3) == [2, 5, 6, 7]
    assert [group.positions for group in index.groups if group.excluded] == [(0,), (1,), (3, 4)]
    assert excluded(index, 5) == [6, 7]


def test_between_two_of_one_side_the_opener_of_the_later_turn() -> None:
    """K7: two of the assistant's messages may not meet, so the user's message that opened the turn stays."""
    history = [user(), said(), user("two"), said("b"), user("three"), said("c"), user("four"), said("d")]
    index = index_of(history, format=ALTERNATING)
    assert excluded(index, 2, 3, 4) == [0, 1, 4, 5, 6, 7]
    # With the answer gone, too, nothing needs the opener any more.
    assert excluded(index, 5) == [0, 1, 6, 7]


def test_between_two_of_one_side_what_stood_right_ahead() -> None:
    """K7: where no user's message helps, what stood ahead of the later one does, since the list was legal there."""
    history = [user(), said(), user("two"), said("b"), user("three"), said("c")]
    index = index_of(history, format=ALTERNATING)
    assert excluded(index, 1, 2, 3) == [0, 3, 4, 5]
    assert index.groups[3].excluded is None


def test_more_than_one_group_where_one_will_not_do() -> None:
    """K7: back from the later message, until the seam with the earlier one is legal."""
    # A user's message may not follow a tool's; neither may two of the user's side.
    history = [user(), call("a"), result("a"), said(), user("two"), said("b"), user("three"), said("c")]
    strict = ALTERNATING.with_rules(rules.UserAfterTool())
    assert excluded(index_of(history, format=strict), 3, 4, 5) == [0, 1, 2, 5, 6, 7]
    # Ahead of the second answer stands its opener, which may not follow a tool's message: so the first answer stays.
    assert excluded(index_of(history, format=strict), 3, 4) == [0, 1, 2, 5, 6, 7]


def test_a_pinned_message_in_the_middle_keeps_its_neighbours() -> None:
    """K7: whoever asks for it, what a pinned message needs on both sides stays."""
    history = [user(), said(), user("two"), said("PIN"), user("three"), said("c"), user("four"), said("d")]
    index = index_of(history, format=ALTERNATING.with_rules(rules.FirstUser()), pinned=[history[3]], validate=True)
    report = drop(cc.messages > 1).compact(index, hooks=())
    assert index.included_positions() == [2, 3, 6, 7]
    assert {blocker.positions: blocker.reason for blocker in report.blocked_by} == {
        (2,): "first_user",
        (3,): "pinned",
        (6,): "last_user",
        (7,): "floor",
    }


def test_a_system_message_in_the_middle_keeps_its_neighbours() -> None:
    """K7: at Anthropic one stands between the user and the assistant."""
    history = [user(), said(), user("two"), system(), said("b"), user("three"), said("c")]
    index = index_of(history, format="anthropic", validate=True)
    assert index.problems == ()
    report = drop(cc.messages > 1).compact(index, hooks=())
    assert index.included_positions() == [2, 3, 4, 5, 6]
    reasons = {blocker.positions: blocker.reason for blocker in report.blocked_by}
    assert (reasons[2,], reasons[3,], reasons[4,]) == ("system_place", "system", "system_place")


@pytest.mark.parametrize(
    ("history", "first"),
    [
        ([user(), system(), said()], 0),
        ([user(), said(), user("two"), system(), said("b")], 2),
        ([system("rules"), user(), said(), user("two"), said("b"), system(), said("c")], 3),
    ],
)
def test_a_system_message_ahead_of_the_assistant_is_no_user(history: list[Any], first: int) -> None:
    """K7: where a user's message comes first, it does so ahead of a system message that stays, too."""
    index = index_of(history, format=FORMATS["openai_chat"].with_rules(rules.FirstUser()), validate=True)
    drop(cc.messages > 1, keep_last_user=False).compact(index, hooks=())
    assert next(p for p in index.included_positions() if history[p]["role"] != "system") == first
    assert index_of(index.included_messages(), format=index.format).problems == ()


def test_the_next_legal_cut_is_taken() -> None:
    """K7 before K3: where the target falls between two legal cuts, more leaves, as long as it may."""
    history = [user(), said(), user("two"), said("b"), user("three"), said("c"), user("four"), said("d")]
    index = index_of(history, format=ALTERNATING.with_rules(rules.FirstUser()), validate=True)
    # Seven messages would do, but with the user's first alone the list would begin with an answer.
    report = drop(cc.messages > 7).compact(index, hooks=())
    assert index.included_positions() == [2, 3, 4, 5, 6, 7]
    assert (report.stopped_by, report.fits) == ("target", True)


def test_else_the_last_legal_cut() -> None:
    """K7: where the next legal cut is inside the floor, what led up to the last one stays, and the report says so."""
    history = [user(), *step("a"), *step("b"), *step("c"), said("d")]
    index = index_of(history, format=FORMATS["openai_chat"].with_rules(rules.FirstUser()), validate=True)
    report = drop(cc.messages > 1, min_preserved_groups=2, keep_last_user=False).compact(index, hooks=())
    assert index.included_positions() == [0, 5, 6, 7]
    assert (report.stopped_by, report.fits) == ("floor", False)
    assert [(blocker.positions, blocker.reason) for blocker in report.blocked_by] == [
        ((0,), "first_user"),
        ((5, 6), "floor"),
        ((7,), "floor"),
    ]


def test_what_was_held_back_may_be_asked_for_again() -> None:
    """K7 and K9: a gap is filled anew when what ends it comes back or leaves; nothing is left of an undone pass."""
    history = [user(), said(), user("two"), said("b"), user("three"), said("c")]
    index = index_of(history, format=ALTERNATING)
    before = index.snapshot()
    assert excluded(index, 1, 2, 3) == [0, 3, 4, 5]
    index.include(index.groups[1])
    assert index.included_positions() == [0, 1, 4, 5]
    index.include_all()
    assert index.snapshot() == before


def test_a_message_that_comes_later_fills_the_gap_ahead_of_it() -> None:
    """K7: what was asked to leave at the end stays as soon as what follows needs it."""
    index = index_of([user(), said(), user("two"), said("b")], format=ALTERNATING)
    assert excluded(index, 1, 2) == [0, 3]
    index.extend([user("three")])
    assert index.included_positions() == [0, 3, 4]
    later = index_of([user(), said(), user("two"), *step("a"), said("b")], format=ALTERNATING, pending_turns=0)
    assert excluded(later, 2, 3) == [0, 1, 2, 5]
    later.extend([user("three")])
    assert later.included_positions() == [0, 1, 2, 5, 6]


# -- lists that are wrong already -------------------------------------------------------------------


def test_a_seam_that_was_wrong_holds_nothing_back_for_nothing() -> None:
    """K7: invalid in, never worse out; what can't make a cut legal need not stay, and what can does."""
    history = [said(), said("a"), said("b"), user(), said("c"), said("d"), user("two"), said("e")]
    index = index_of(history, format=ALTERNATING)
    assert [problem.position for problem in index.problems] == [1, 2, 5]
    assert excluded(index, 1) == [0, 2, 3, 4, 5, 6, 7]
    assert excluded(index, 3, 4) == [0, 2, 3, 5, 6, 7]


def test_a_list_that_never_began_with_the_user_does_after_a_cut() -> None:
    """K7: what leads up to the first user's message leaves with the first thing that leaves, unless it must stay."""
    history = [said(), said("b"), user(), said("c"), user("two"), said("d")]
    for pinned, kept in (([], [2, 3, 4, 5]), ([history[1]], [1, 2, 3, 4, 5])):
        index = index_of(history, format="anthropic", pinned=pinned)
        drop(cc.messages > 5, min_preserved_groups=2).compact(index, hooks=())
        assert index.included_positions() == kept


# -- any list, any rules ----------------------------------------------------------------------------

KINDS = {
    "u": (Role.USER, PartKind.TEXT),
    "s": (Role.SYSTEM, PartKind.TEXT),
    "a": (Role.ASSISTANT, PartKind.TEXT),
    "c": (Role.ASSISTANT, PartKind.TOOL_CALL),
    "t": (Role.TOOL, PartKind.TOOL_RESULT),
    "r": (Role.USER, PartKind.TOOL_RESULT),
}


@attrs.frozen
class Said:
    """A message: a letter for what it is, and the id of its call or result."""

    kind: str
    call_id: str | None = None

    @property
    def view(self) -> Message:
        role, part = KINDS[self.kind]
        return Message(role, (Part(part, "words", call_id=self.call_id),), self.kind)


class Plain(Format):
    """The messages of these tests, under whatever rules."""

    name: ClassVar[str] = "plain"
    default_rules: ClassVar[tuple[Rule, ...]] = ()

    def read(self, raw: Any, position: int) -> Message:
        assert isinstance(raw, Said)
        return raw.view


@attrs.frozen
class Forbidden(Rule):
    """Pairs of kinds that may not stand side by side; None is the head of the list."""

    name: ClassVar[str] = "forbidden"
    pairs: frozenset[tuple[str | None, str]] = frozenset()

    def check_seam(self, seam: Seam) -> str | None:
        before = None if seam.before is None else seam.before.name
        return "may not stand there" if (before, seam.after.name) in self.pairs else None


PROVIDERS: list[Rule] = [
    rules.Alternation(),
    rules.FirstUser(),
    rules.SystemPlace(),
    rules.SystemAfterUser(),
    rules.UserAfterTool(),
    rules.CallAfterUser(),
]
_PAIRS = st.frozensets(st.tuples(st.sampled_from([None, *KINDS]), st.sampled_from([*KINDS])), max_size=14)
RULES: st.SearchStrategy[list[Rule]] = st.lists(st.sampled_from(PROVIDERS), max_size=3, unique_by=type) | _PAIRS.map(
    lambda pairs: [Forbidden(pairs)]
)


def wrong(history: Sequence[Said], under: Iterable[Rule]) -> list[int]:
    """The positions of the messages that may not stand where they do, by a look at the whole list."""
    checks, found = list(under), []
    for position, message in enumerate(history):
        before = history[position - 1].view if position else None
        at_head = all(one.kind == "s" for one in history[:position])
        if any(rule.check_seam(Seam(before, message.view, at_head)) is not None for rule in checks):
            found.append(position)
    return found


@st.composite
def lists(draw: st.DrawFn, under: list[Rule], size: int = 9) -> list[Said]:
    """A list without a wrong seam, in which calls and results stand together, alone, or not at all."""
    history: list[Said] = []
    for number in range(draw(st.integers(0, size))):
        may_follow = [message for message in _next(history, number) if wrong([*history, message], under) == []]
        if not may_follow:
            break
        history.append(draw(st.sampled_from(may_follow)))
    return history


def _next(history: Sequence[Said], number: int) -> list[Said]:
    """What may come next: results only of the newest call, at once, so that groups are neighbours."""
    found = [Said("u"), Said("s"), Said("a"), Said("c", f"call_{number}")]
    if history and history[-1].kind in "ctr":
        found += [Said(kind, history[-1].call_id) for kind in "tr" if history[-1].kind in ("c", kind)]
    return found


def ledger_of(history: Sequence[Said], under: list[Rule]) -> Ledger:
    settings = IndexSettings(characters_counter(), Plain(rules=under), None)
    ledger = Ledger(settings, Plain(rules=under))
    for message in history:
        ledger.append(message.view, pinned=False)
    return ledger


def staying(ledger: Ledger) -> list[int]:
    return [position for position, bundle in enumerate(ledger.grouping.of) if bundle.included]


def ask(ledger: Ledger, first: int, *, leaves: bool = True) -> None:
    ledger.set_excluded((ledger.grouping.bundles[first],), "asked" if leaves else None)


def asked(ledger: Ledger) -> list[int]:
    """The groups that were asked to leave, held back or not, by their first message."""
    return [first for first, bundle in ledger.grouping.bundles.items() if bundle.excluded is not None]


@settings(max_examples=300)
@given(st.data())
def test_whoever_leaves_no_seam_is_ever_wrong(data: st.DataObject) -> None:
    """K7: (a) what was legal stays legal at each step; (b) in whatever order; (d) and nothing is held for nothing."""
    under = data.draw(RULES)
    history = data.draw(lists(under))
    ledger = ledger_of(history, under)
    for first in data.draw(st.lists(st.sampled_from([*ledger.grouping.bundles] or [0]), max_size=12)):
        if history:
            ask(ledger, first, leaves=ledger.grouping.bundles[first].excluded is None)
        kept, leaving = staying(ledger), asked(ledger)
        note(f"asked {leaving}, staying {kept}")
        assert wrong([history[position] for position in kept], under) == []

        twin = ledger_of(history, under)
        for other in data.draw(st.permutations(leaving)):
            ask(twin, other)
        assert (staying(twin), twin.included) == (kept, ledger.included)

        bare = [position for position, bundle in enumerate(ledger.grouping.of) if bundle.first not in leaving]
        if wrong([history[position] for position in bare], under) == []:
            assert kept == bare
    ledger.include_all()
    assert (staying(ledger), ledger.included) == (list(range(len(history))), ledger.all)


@settings(max_examples=300)
@given(st.data())
def test_a_list_that_grows_while_groups_leave(data: st.DataObject) -> None:
    """K7 and G2: (a) and (b) again, when messages come after groups have left."""
    under = data.draw(RULES)
    history = data.draw(lists(under))
    ledger = ledger_of([], under)
    for message in history:
        ledger.append(message.view, pinned=False)
        for first in data.draw(st.lists(st.sampled_from([*ledger.grouping.bundles]), max_size=2)):
            ask(ledger, first, leaves=ledger.grouping.bundles[first].excluded is None)
    note(f"asked {asked(ledger)}, staying {staying(ledger)}")
    assert wrong([history[position] for position in staying(ledger)], under) == []
    twin = ledger_of(history, under)
    for first in asked(ledger):
        ask(twin, first)
    assert (staying(twin), twin.included) == (staying(ledger), ledger.included)


@given(st.data())
def test_a_pass_that_fails_leaves_no_trace(data: st.DataObject) -> None:
    """K9: (c) everything is as it was, what was held back included."""
    under = data.draw(RULES)
    history = data.draw(lists(under))
    ledger = ledger_of(history, under)
    groups = st.lists(st.sampled_from([*ledger.grouping.bundles] or [0]), max_size=6)
    for first in data.draw(groups) if history else []:
        ask(ledger, first)
    before = staying(ledger), asked(ledger), ledger.cuts.held(), attrs.evolve(ledger.included)
    chosen = data.draw(groups) if history else []
    with pytest.raises(ZeroDivisionError):
        _fail(ledger, chosen)
    assert (staying(ledger), asked(ledger)) == before[:2]
    assert sorted(b.first for b, _ in ledger.cuts.held()) == sorted(b.first for b, _ in before[2])
    assert ledger.included.messages == before[3].messages


def _fail(ledger: Ledger, chosen: Iterable[int]) -> None:
    with ledger.transaction():
        for first in chosen:
            ask(ledger, first, leaves=ledger.grouping.bundles[first].excluded is None)
        ledger.settle()
        raise ZeroDivisionError


_FLOORS = st.fixed_dictionaries(
    {
        "min_preserved_groups": st.integers(0, 3),
        "min_preserved_messages": st.integers(0, 2),
        "keep_last_user": st.booleans(),
        "preserve_system": st.booleans(),
    }
)


@st.composite
def strategies(draw: st.DrawFn) -> cc.CompactionStrategy:
    """Truncation by messages, with a target of its own or without, and budgets by each unit."""
    limit = draw(st.integers(0, 8))
    floors: dict[str, Any] = draw(_FLOORS)
    evict: Any = draw(st.sampled_from([None, "groups", "turns", "turns-then-groups"]))
    if evict is not None:
        return cc.TokenBudgetStrategy(5 * limit, evict=evict, **floors)
    target = draw(st.sampled_from([None, cc.groups <= limit // 2, cc.turns <= 1]))
    return cc.TruncationStrategy(trigger=cc.messages > limit, target=target, **floors)


@settings(max_examples=300)
@given(st.data(), strategies())
def test_every_strategy_cuts_where_it_may(data: st.DataObject, strategy: cc.CompactionStrategy) -> None:
    """K7, K4 and K10: never a wrong seam, never less than the floor, and the same again changes nothing."""
    under = data.draw(RULES)
    history = data.draw(lists(under, 12))
    pins = data.draw(st.lists(st.sampled_from(history), max_size=2)) if history else []

    def compacted(messages: Sequence[Said]) -> tuple[cc.MessageIndex, cc.CompactionReport]:
        index = cc.MessageIndex.from_messages(
            messages,
            counter=characters_counter(),
            format=Plain(rules=under),
            pinned=lambda message: any(message is one for one in pins),
            validate=True,  # Raises where a cut broke a rule.
        )
        return index, strategy.compact(index, hooks=())

    index, report = compacted(history)
    kept = index.included_positions()
    note(f"kept {kept} of {''.join(message.kind for message in history)}, {report.excluded}")
    assert wrong([history[position] for position in kept], under) == []
    floor = strategy.floor.protect(ledger_of(history, under))
    if not pins:
        assert {position for position, bundle in enumerate(index._ledger.grouping.of) if bundle.first in floor} <= {
            *kept
        }
    assert [position for position, message in enumerate(history) if any(message is one for one in pins)] == [
        position for position in kept if any(history[position] is one for one in pins)
    ]
    # Under arbitrary rules, the messages that left may have made another of those that stay the better one to hold.
    if not any(isinstance(rule, Forbidden) for rule in under):
        assert not compacted(index.included_messages())[1].changed
