"""The rules of providers: what each of them finds wrong, what each lets pass, and how a format is given others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._rulebook import RuleBook
from chat_compaction.formats import FORMATS, AnthropicFormat, Message, OpenAIChatFormat, Part, PartKind, Role, rules
from chat_compaction.formats.rules import Rule, Seam, Tie, TieKind
from tests.build import CHAT, call, drop, index_of, result, said, step, user

TEXT = Part(PartKind.TEXT, "words")
THOUGHT = Part(PartKind.REASONING, "hm")
DIRECTIVE = Part(PartKind.OPAQUE, "{}")
CALL = Part(PartKind.TOOL_CALL, "{}", "look", "a")
RESULT = Part(PartKind.TOOL_RESULT, "seen", call_id="a")

VIEWS = {
    "user": Message(Role.USER, (TEXT,)),
    "result": Message(Role.USER, (RESULT,)),
    "tool": Message(Role.TOOL, (RESULT,)),
    "assistant": Message(Role.ASSISTANT, (TEXT,)),
    "call": Message(Role.ASSISTANT, (CALL,)),
    "server tool": Message(Role.ASSISTANT, (CALL, RESULT)),
    "reasoning": Message(Role.ASSISTANT, (THOUGHT,)),
    "system": Message(Role.SYSTEM, (TEXT,)),
    "directive": Message(Role.SYSTEM, (DIRECTIVE,)),
    "empty system": Message(Role.SYSTEM),
}
RULES: dict[str, Callable[..., Rule]] = {
    cls.name: cls for cls in vars(rules).values() if isinstance(cls, type) and issubclass(cls, Rule) and cls is not Rule
}


def seam(before: str, after: str, *, at_head: bool = False) -> Seam:
    """Two neighbours by name; ``"-"`` for the head of the list."""
    return Seam(None if before == "-" else VIEWS[before], VIEWS[after], at_head or before == "-")


def refused(rule: Rule, *, at_head: bool = False) -> set[str]:
    """All pairs of neighbours that a rule forbids; with ``at_head``, those behind nothing but system messages."""
    befores = ("-", "system", "directive", "empty system") if at_head else VIEWS
    pairs = [(before, after) for before in befores for after in VIEWS]
    return {f"{b} > {a}" for b, a in pairs if rule.check_seam(seam(b, a, at_head=at_head)) is not None}


def pairs(befores: str, afters: str) -> set[str]:
    """All pairs out of two lists of names."""
    return {f"{before} > {after}" for before in befores.split(", ") for after in afters.split(", ")}


USERS, MODELS = "user, result", "assistant, call, server tool, reasoning"
SYSTEMS = "system, directive, empty system"


# -- who speaks after whom --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "behind", "at_head"),
    [
        (rules.FirstUser(), set(), pairs(f"-, {SYSTEMS}", f"tool, {MODELS}")),
        (
            rules.Alternation(),
            (pairs(f"{USERS}, tool", f"{USERS}, tool") | pairs(MODELS, MODELS)) - {"tool > tool"},
            set(),
        ),
        (rules.UserAfterTool(), pairs("tool", USERS), set()),
        (rules.SystemAfterUser(), pairs(f"tool, {MODELS}", SYSTEMS), set()),
        (rules.CallAfterUser(), pairs("assistant, reasoning", "call, server tool"), set()),
        (
            rules.SystemPlace(),
            pairs("assistant, call, reasoning", "system, empty system")
            | pairs("system, empty system", f"{USERS}, tool, directive"),
            pairs("-", "system, empty system"),
        ),
        (rules.ReasoningAlone(), pairs("reasoning", f"{USERS}, tool, {SYSTEMS}"), set()),
        (rules.LastRole(), set(), set()),
        (rules.EmptyContent(), set(), set()),
        (rules.NotAdjacent(), set(), set()),
        (rules.OrphanResult(), set(), set()),
    ],
    ids=lambda value: value.name if isinstance(value, Rule) else "",
)
def test_neighbours(rule: Rule, behind: set[str], at_head: set[str]) -> None:
    """K7: what a rule says of two neighbours is where a list may not be cut."""
    assert refused(rule) == behind
    # What stands at the head is judged with what is ahead of it, too.
    assert {pair for pair in refused(rule, at_head=True) if pair not in behind} == at_head


def test_what_is_wrong_is_said_about_the_message_behind() -> None:
    """A problem names the message to blame, and how the sentence ends."""
    index = index_of([user(), said(), said("more")], format=FORMATS["openai_chat"].with_rules(rules.Alternation()))
    assert index.problems == (
        cc.Problem(2, "alternation", "follows another message of the assistant; the two sides must alternate"),
    )


def test_the_last_message() -> None:
    """A history at rest ends with the assistant, so no format asks for it; a request may."""
    assert [name for name, format in FORMATS.items() if any(rule.name == "last_role" for rule in format.rules)] == []
    strict = OpenAIChatFormat().with_rules(rules.LastRole())
    assert index_of(CHAT, format=strict).problems == (
        cc.Problem(5, "last_role", "the last message is the assistant's"),
    )
    assert index_of(CHAT[:5], format=strict).problems == ()
    assert index_of([], format=strict).problems == ()


# -- calls and results ------------------------------------------------------------------------------


def tie(kind: str, **fields: Any) -> Tie:
    return Tie(TieKind(kind), "a", **{"call": 1, "result": 2, "part": 0, **fields})


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (rules.OrphanResult(), "orphan"),
        (rules.DuplicateResult(), "second"),
        (rules.UnansweredCall(), "open"),
        (rules.RepeatedId(), "repeated"),
        (rules.NotAdjacent(), None),
        (rules.FirstUser(), None),
    ],
)
def test_ties_that_are_wrong_by_their_kind(rule: Rule, kind: str | None) -> None:
    """G3 and G4: each rule judges ties of one kind, and names the id."""
    found = {each.value: rule.check_tie(tie(each.value)) for each in TieKind}
    assert [name for name, text in found.items() if text is not None] == [name for name in found if name == kind]
    assert all("'a'" in text for text in found.values() if text is not None)


@pytest.mark.parametrize(
    ("fields", "at_once", "next_turn"),
    [
        ({}, True, True),
        ({"turns": 1}, True, True),
        ({"turns": 1, "between": 1}, False, True),
        ({"turns": 1, "between": 2, "said_between": 1}, False, False),
        ({"turns": 2, "between": 1}, False, False),
        ({"turns": 3}, True, False),
        ({"turns": 3, "between": 5, "said_between": 3, "same_side": True}, True, True),
    ],
)
def test_adjacency(fields: dict[str, Any], at_once: bool, next_turn: bool) -> None:
    """K7: nothing but results in between; or within the next turn of the other side, ahead of its words."""
    answer = tie("answer", **fields)
    assert (rules.NotAdjacent().check_tie(answer) is None) is at_once
    assert (rules.NotAdjacent(turns=1).check_tie(answer) is None) is next_turn
    assert rules.NotAdjacent().check_tie(tie("second", **fields)) is None


@pytest.mark.parametrize("turns", [-1, 2, True, 0.0, "1", None], ids=repr)
def test_adjacency_of_what(turns: Any) -> None:
    """A wrong argument is named with its value."""
    with pytest.raises(ValueError, match=r"^turns must be 0 or 1, got ") as caught:
        rules.NotAdjacent(turns=turns)
    assert str(caught.value).endswith(repr(turns))


# -- what is in a message ---------------------------------------------------------------------------

EMPTY, SPACES = Part(PartKind.TEXT), Part(PartKind.TEXT, " \n\t")


@pytest.mark.parametrize(
    ("parts", "refusing"),
    [
        ((), {"refused", "alone", "allowed"}),
        ((EMPTY,), {"refused", "alone", "allowed"}),
        ((TEXT, EMPTY), {"refused", "alone", "allowed"}),
        ((SPACES,), {"refused", "alone"}),
        ((SPACES, SPACES), {"refused", "alone"}),
        ((SPACES, CALL), {"refused"}),
        ((TEXT,), set()),
        ((CALL,), set()),
        ((THOUGHT,), set()),
        ((DIRECTIVE,), set()),
        ((Part(PartKind.TOOL_RESULT, "", call_id="a"),), set()),
        ((attrs.evolve(EMPTY, media=(cc.formats.Media("image"),)),), set()),
    ],
)
def test_empty_content(parts: tuple[Part, ...], refusing: set[str]) -> None:
    """A message holds something, and its text is none of nothing; what white space alone is depends."""
    message = Message(Role.USER, parts)
    words: tuple[Any, ...] = ("refused", "alone", "allowed")
    assert {w for w in words if rules.EmptyContent(spaces=w).check_message(message) is not None} == refusing
    assert rules.EmptyContent() == rules.EmptyContent(spaces="refused")


def test_empty_content_of_what() -> None:
    with pytest.raises(ValueError, match=r"^spaces must be one of 'refused', 'alone', 'allowed', got 'no'$"):
        rules.EmptyContent(spaces="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "parts", "wrong"),
    [
        (Role.USER, (RESULT, RESULT, TEXT), False),
        (Role.USER, (TEXT, RESULT), True),
        (Role.USER, (RESULT, TEXT, RESULT), True),
        (Role.USER, (TEXT,), False),
        (Role.USER, (), False),
        (Role.ASSISTANT, (TEXT, CALL, RESULT), False),
    ],
)
def test_results_first(role: Role, parts: tuple[Part, ...], wrong: bool) -> None:
    """In a user's message results stand ahead of everything else."""
    assert (rules.ResultsFirst().check_message(Message(role, parts)) is not None) is wrong


def test_a_message_that_is_being_written_is_not_judged_by_itself() -> None:
    """The assistant's newest may be empty so far; once something follows, it is a problem."""
    index = index_of([user(), said("")], format="anthropic")
    assert [problem.rule for problem in index.problems] == []
    index.extend([user()])
    assert [(problem.position, problem.rule) for problem in index.problems] == [(1, "empty_content")]
    by_the_user = index_of([user(), said(), user("")], format="anthropic")
    assert [problem.position for problem in by_the_user.problems] == [2]


# -- rules as values --------------------------------------------------------------------------------


def test_every_rule_has_a_name_of_its_own() -> None:
    """It is that of its problems, in reports and for :meth:`without_rules`."""
    classes = {rules.__dict__[name] for name in rules.__all__}
    assert {cls for cls in classes if issubclass(cls, Rule)} == {*RULES.values(), Rule}
    assert all(cls.__name__.lower() == name.replace("_", "") for name, cls in RULES.items())


@pytest.mark.parametrize("cls", RULES.values(), ids=RULES.keys())
def test_rules_are_values(cls: Callable[..., Rule]) -> None:
    """Equal to their equals, and printed as the code that makes them."""
    made = cls()
    assert made == cls()
    assert hash(made) == hash(cls())
    assert eval(repr(made), vars(rules)) == made  # noqa: S307


def test_a_rule_with_another_setting_is_another() -> None:
    assert rules.NotAdjacent() != rules.NotAdjacent(turns=1)
    assert repr(rules.NotAdjacent(turns=1)) == "NotAdjacent(turns=1)"
    assert repr(rules.EmptyContent(spaces="alone")) == "EmptyContent(spaces='alone')"


def test_a_bare_rule_asks_nothing() -> None:
    """What a rule does not override it has nothing to say of."""
    bare = Rule()
    assert (bare.name, refused(bare), refused(bare, at_head=True)) == ("rule", set(), set())
    assert [bare.check_message(VIEWS["user"]), bare.check_last(VIEWS["user"])] == [None, None]
    assert {bare.check_tie(tie(kind.value)) for kind in TieKind} == {None}


# -- the rules of a format --------------------------------------------------------------------------


def names(format: cc.formats.Format) -> list[str]:
    return [rule.name for rule in format.rules]


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS.keys())
def test_every_format_asks_for_pairs(format: cc.formats.Format) -> None:
    """G3 and G4: whatever else a provider asks, each call has its result; and no rule is there twice."""
    assert {"orphan_result", "duplicate_result", "unanswered_call"} <= set(names(format))
    assert len(names(format)) == len(set(names(format)))


def test_more_rules() -> None:
    """A rule of a class that is there already takes its place; the format itself stays as it was."""
    format = OpenAIChatFormat()
    more = format.with_rules(rules.FirstUser(), rules.NotAdjacent(turns=1))
    assert names(more) == [*[name for name in names(format) if name != "not_adjacent"], "first_user", "not_adjacent"]
    assert more.rules[-1] == rules.NotAdjacent(turns=1)
    assert format == OpenAIChatFormat() != more
    assert format.with_rules() == format
    assert type(more) is OpenAIChatFormat


def test_fewer_rules() -> None:
    """By name, several at once."""
    format = AnthropicFormat()
    assert names(format.without_rules("first_user", "system_place")) == [
        name for name in names(format) if name not in ("first_user", "system_place")
    ]
    assert format.without_rules() == format
    assert format.without_rules("first_user").with_rules(rules.FirstUser()) != format


@pytest.mark.parametrize("name", ["last_role", "FirstUser", "", None, rules.FirstUser()], ids=repr)
def test_a_rule_that_is_not_there(name: Any) -> None:
    """The error says which there are."""
    with pytest.raises(ValueError, match=r"^names must be of rules of 'openai_chat' \(duplicate_result, ") as caught:
        OpenAIChatFormat().without_rules("not_adjacent", name)
    assert str(caught.value).endswith(f", got {name!r}")


@pytest.mark.parametrize("given", [7, [rules.FirstUser], ["first_user"], rules.FirstUser(), "first_user"], ids=repr)
def test_what_is_no_list_of_rules(given: Any) -> None:
    """A wrong argument is a TypeError that names it."""
    with pytest.raises(TypeError, match=r"^rules must be a list of rules of chat_compaction.formats.rules, got "):
        OpenAIChatFormat(rules=given)


def test_a_format_prints_what_is_not_usual() -> None:
    """And equals its equals, so that settings can be compared."""
    format = OpenAIChatFormat(rules=[rules.OrphanResult()])
    assert repr(format) == "OpenAIChatFormat(rules=(OrphanResult(),))"
    assert format == OpenAIChatFormat().without_rules("duplicate_result", "unanswered_call", "not_adjacent")
    assert repr(OpenAIChatFormat(complete=None)) == "OpenAIChatFormat(complete=None)"
    assert eval(repr(format), {**vars(rules), "OpenAIChatFormat": OpenAIChatFormat}) == format  # noqa: S307


def test_without_a_rule_it_is_no_problem_and_no_reason() -> None:
    """K7: what nobody asks for holds nothing back."""
    history = [user(), said(), said("more"), user("two"), said("three")]
    free = AnthropicFormat().without_rules("first_user")
    for format, kept in ((AnthropicFormat(), [0, 2, 3, 4]), (free, [2, 3, 4])):
        index = index_of(history, format=format, pinned=[history[2]], validate=True)
        drop(cc.messages > 1).compact(index, hooks=())
        assert index.included_positions() == kept
        assert index.problems == ()


# -- a rule of one's own ----------------------------------------------------------------------------


@attrs.frozen
class NoEcho(Rule):
    """The assistant does not say the same twice in a row."""

    name = "no_echo"

    def check_seam(self, seam: Seam) -> str | None:
        if seam.before is None or seam.before.role is not Role.ASSISTANT or seam.before != seam.after:
            return None
        return "says what was said right ahead of it"


def test_a_rule_of_ones_own_holds_a_cut_back() -> None:
    """K7: where the cut would break it more stays, and the report names the rule."""
    history = [said("yes"), user("one"), said("no"), said("yes"), user("two"), said("three")]
    strict = OpenAIChatFormat().with_rules(NoEcho())
    assert index_of(history, format=strict).problems == ()
    index = index_of(history, format=strict, pinned=[history[0], history[3]], validate=True)
    report = drop(cc.messages > 2).compact(index, hooks=())
    # The user's message that opened the turn goes before what stood right ahead.
    assert index.included_positions() == [0, 1, 3, 4, 5]
    assert [blocker.reason for blocker in report.blocked_by if blocker.positions == (1,)] == ["no_echo"]
    free = index_of(history, pinned=[history[0], history[3]])
    drop(cc.messages > 2).compact(free, hooks=())
    assert free.included_positions() == [0, 3, 4, 5]


@attrs.frozen
class ShortList(Rule):
    """A message has at most so many parts; results come by their name, and the last word is the user's."""

    name = "short_list"
    most: int = 1

    def check_message(self, message: Message) -> str | None:
        return f"has more than {self.most} parts" if len(message.parts) > self.most else None

    def check_tie(self, tie: Tie) -> str | None:
        return "is called z" if tie.call_id == "z" else None

    def check_last(self, message: Message) -> str | None:
        return "must be the user's" if message.role is not Role.USER else None


def test_a_rule_of_ones_own_judges_whatever_it_overrides() -> None:
    """A message, a tie, the last message: each problem has the rule's name."""
    history = [user(), call("a", "b"), result("a"), result("b"), *step("z")]
    index = index_of(history, format=OpenAIChatFormat().with_rules(ShortList(most=1)))
    assert [(problem.position, problem.rule, problem.message) for problem in index.problems] == [
        # An assistant's message of chat completions has its text, and its calls.
        (1, "short_list", "has more than 1 parts"),
        (5, "short_list", "is called z"),
        (5, "short_list", "must be the user's"),
    ]


class Deaf(Rule):
    """A plain class will do, and one that only repairs finds nothing."""

    name = "deaf"


def test_a_plain_class_will_do() -> None:
    format = OpenAIChatFormat().with_rules(Deaf())
    assert names(format)[-1] == "deaf"
    assert index_of(CHAT, format=format).problems == ()


def test_a_rule_that_is_not_sound_is_found_out() -> None:
    """K7 and K9: ``validate=True`` holds the result against the rules; what breaks one raises, and nothing changed."""
    moods: list[str] = []

    class Moody(Rule):
        name = "moody"

        def check_message(self, message: Message) -> str | None:
            return "is looked at in a bad mood" if moods else None

    class Spoiling(cc.CompactionStrategy):
        def compact_core(self, index: cc.MessageIndex) -> None:
            self.evict(index, self.candidates(index), "spoiling")
            moods.append("bad")

    strategy = Spoiling(trigger=cc.messages > 1, min_preserved_groups=1)
    for validate in (True, False):
        moods.clear()
        index = index_of(CHAT, format=OpenAIChatFormat().with_rules(Moody()), validate=validate)
        if validate:
            with pytest.raises(cc.StrategyError, match=r"^compaction would break rules of the format: moody$"):
                strategy.compact(index, hooks=())
        else:
            strategy.compact(index, hooks=())
        assert index.included_positions() == (list(range(6)) if validate else [4, 5])


# -- which rules a format asks ---------------------------------------------------------------------

_WORDS, _HIDDEN, _THOUGHT = Part(PartKind.TEXT, "x"), Part(PartKind.OPAQUE), Part(PartKind.REASONING, "x")
_MESSAGES = [
    Message(role, parts)
    for role in Role
    for parts in ((), (_WORDS,), (_HIDDEN,), (_THOUGHT,), (Part(PartKind.TOOL_CALL),), (Part(PartKind.TOOL_RESULT),))
]
_SEAM_RULES = [
    rules.Alternation(),
    rules.CallAfterUser(),
    rules.FirstUser(),
    rules.ReasoningAlone(),
    rules.SystemAfterUser(),
    rules.SystemPlace(),
    rules.UserAfterTool(),
]


@pytest.mark.parametrize("rule", _SEAM_RULES, ids=lambda rule: rule.name)
def test_a_book_says_what_its_rule_says(rule: Rule) -> None:
    """K7: where a book does not ask a rule, the rule would have said nothing."""
    book = RuleBook.of(OpenAIChatFormat(rules=[rule]))
    spoken = 0
    for before in (None, *_MESSAGES):
        for after in _MESSAGES:
            for at_head in (True, False):
                said = rule.check_seam(Seam(before, after, at_head))
                spoken += said is not None
                assert [problem.message for problem in book.of_seam(3, before, after, at_head)] == [said] * bool(said)
                assert book.broken(before, after, at_head) == {rule.name} - {rule.name if said is None else ""}
                assert book.broken_by(before, after, at_head) == (None if said is None else rule.name)
    assert spoken


@attrs.frozen
class _Anywhere(rules.FirstUser):
    def check_seam(self, seam: Seam) -> str | None:
        return "is nowhere right"


def test_a_check_of_your_own_is_asked_everywhere() -> None:
    """What a rule of the library is asked holds for no other check, even where that takes its place."""
    book = RuleBook.of(OpenAIChatFormat(rules=[_Anywhere()]))
    seams = [(before, after, head) for before in (None, *_MESSAGES) for after in _MESSAGES for head in (True, False)]
    assert all(book.broken_by(*seam) == "first_user" for seam in seams)
