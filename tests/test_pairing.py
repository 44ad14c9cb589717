"""Pairing: which result answers which call, by id, by order and by name (rules G2 and G4)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction._messages import Message, Part, PartKind, Role, Tie, TieKind
from chat_compaction._pairing import Pairing

USER, SYSTEM = Message(Role.USER, (Part(PartKind.TEXT, "hi"),)), Message(Role.SYSTEM, (Part(PartKind.TEXT, "rules"),))
SAID = Message(Role.ASSISTANT, (Part(PartKind.TEXT, "hm"),))


def call(call_id: str | None = None, name: str = "") -> Part:
    return Part(PartKind.TOOL_CALL, "{}", name, call_id)


def result(call_id: str | None = None, name: str = "") -> Part:
    return Part(PartKind.TOOL_RESULT, "seen", name, call_id)


def reference(call_id: str | None = None) -> Part:
    """Something that the provider stores: it may be a call."""
    return Part(PartKind.REFERENCE, call_id=call_id)


def calls(*parts: Part) -> Message:
    return Message(Role.ASSISTANT, parts)


def tool(*parts: Part) -> Message:
    return Message(Role.TOOL, parts)


def user(*parts: Part) -> Message:
    return Message(Role.USER, parts)


def paired(*messages: Message) -> tuple[Pairing, list[Tie]]:
    """All ties of a list, as its messages come one by one."""
    pairing = Pairing()
    return pairing, [tie for message in messages for tie in pairing.take(message)]


def answers(*messages: Message) -> list[tuple[int | None, int | None]]:
    """Call and result of each answer."""
    return [(tie.call, tie.result) for tie in paired(*messages)[1] if tie.kind is TieKind.ANSWER]


def odd(*messages: Message) -> list[tuple[TieKind, str, int, int]]:
    """What is no answer: its kind, its id, the message to blame and the part in there."""
    return [(t.kind, t.call_id, t.position, t.part) for t in paired(*messages)[1] if t.kind is not TieKind.ANSWER]


def waiting(*messages: Message) -> list[int]:
    """The positions of the messages with a call that waits."""
    pairing, _ = paired(*messages)
    return [position for position in range(len(messages)) if pairing.waits(position)]


# -- by id ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([calls(call("a")), tool(result("a"))], [(0, 1)]),
        ([calls(call("a"), call("b")), tool(result("b")), tool(result("a"))], [(0, 1), (0, 2)]),
        ([calls(call("a"), call("b")), user(result("b"), result("a"))], [(0, 1), (0, 1)]),
        ([calls(call("a")), USER, SAID, calls(call("b")), tool(result("a"))], [(0, 4)]),
        ([calls(call("a")), tool(result("a")), calls(call("a")), tool(result("a"))], [(0, 1), (2, 3)]),
        ([calls(call("a")), calls(call("a")), tool(result("a")), tool(result("a"))], [(1, 2), (0, 3)]),
        ([calls(call("a"), call("a")), tool(result("a")), tool(result("a"))], [(0, 1), (0, 2)]),
        ([calls(call("a"), result("a"))], [(0, 0)]),
        ([calls(call("a")), calls(result("a"), call("a"))], [(0, 1)]),
    ],
    ids=["one", "parallel", "one message", "far", "used again", "newest first", "twice", "at once", "looks back"],
)
def test_by_id_and_occurrence(messages: list[Message], expected: list[tuple[int, int]]) -> None:
    """G2: a result belongs to the newest earlier call of its id that is still open, at any distance."""
    assert answers(*messages) == expected


def test_the_name_does_not_matter_where_there_is_an_id() -> None:
    """G2: an id is an id."""
    assert answers(calls(call("a", "one"), call("b", "two")), tool(result("b", "one"))) == [(0, 1)]
    assert waiting(calls(call("a", "one"), call("b", "two")), tool(result("b", "one"))) == [0]
    assert odd(calls(call("a", "look")), tool(result("b", "look"))) == [(TieKind.ORPHAN, "b", 1, 0)]


def test_an_orphan() -> None:
    """G4: nobody ever called it; a call that comes later does not count."""
    messages = [tool(result("a")), calls(call("a"))]
    assert odd(*messages) == [(TieKind.ORPHAN, "a", 0, 0)]
    assert waiting(*messages) == [1]
    assert paired(*messages)[1] == [Tie(TieKind.ORPHAN, "a", None, 0, 0)]


def test_a_second_result() -> None:
    """G4: the newest call of its id is answered already; the tie names it, and the part to blame."""
    messages = [calls(call("a")), tool(result("a")), calls(call("a")), user(result("a"), result("a"))]
    assert odd(*messages) == [(TieKind.REPEATED, "a", 2, 0), (TieKind.SECOND, "a", 3, 1)]
    assert paired(*messages)[1][-1].call == 2
    # An older call of the id that is open still is what it answers.
    messages = [calls(call("a")), calls(call("a")), tool(result("a")), tool(result("a")), tool(result("a"))]
    assert answers(*messages) == [(1, 2), (0, 3)]
    assert paired(*messages)[1][-1] == Tie(TieKind.SECOND, "a", 1, 4, 0)


def test_an_id_that_is_used_again() -> None:
    """G2: a new occurrence is a tie of its own, since some providers refuse it, answered meanwhile or not."""
    assert odd(calls(call("a")), tool(result("a")), calls(call("b"), call("a"))) == [(TieKind.REPEATED, "a", 2, 1)]
    assert odd(calls(call("a"), call("a"))) == [(TieKind.REPEATED, "a", 0, 1)]
    assert odd(calls(call("a")), tool(result("a"), result("b"))) == [(TieKind.ORPHAN, "b", 1, 1)]


# -- by order and by name ---------------------------------------------------------------------------


def test_by_order() -> None:
    """G2: without ids, the first call that waits in the newest message with calls that wait."""
    messages = [calls(call(), call()), tool(result()), tool(result())]
    assert answers(*messages) == [(0, 1), (0, 2)]
    assert waiting(*messages) == []
    assert waiting(*messages[:2]) == [0]
    # What was never answered stays open; what comes next answers the newest.
    messages = [calls(call()), USER, calls(call()), tool(result()), tool(result())]
    assert answers(*messages) == [(2, 3), (0, 4)]
    assert odd(*messages, tool(result(None, "look"))) == [(TieKind.ORPHAN, "look", 5, 0)]


def test_by_name() -> None:
    """G2: without ids, a call of the same name goes before the first; where none has it, the first will do."""
    parallel = calls(call(None, "look"), call(None, "find"), call(None, "find"))
    pairing, ties = paired(
        parallel, tool(result(None, "find")), tool(result(None, "other")), tool(result(None, "look"))
    )
    assert [(tie.call, tie.result) for tie in ties] == [(0, 1), (0, 2), (0, 3)]
    # The first result took the first "find", the second "look"; so the third had to take the last "find".
    assert not pairing.waits(0)
    assert [tie.call_id for tie in ties] == ["find", "other", "look"]


def test_calls_without_an_id_are_never_repeated() -> None:
    """Nothing tells two of them apart, and nothing says that they are the same."""
    assert odd(calls(call(), call(None, "look")), calls(call(None, "look"))) == []


# -- some with ids, some without --------------------------------------------------------------------


def test_a_result_without_an_id_takes_a_call_with_one() -> None:
    """G2: by order; the id is then answered, and a result that has it is a second one."""
    messages = [calls(call("a", "look"), call("b", "find")), tool(result(None, "find")), tool(result("b"))]
    assert answers(*messages) == [(0, 1)]
    assert odd(*messages) == [(TieKind.SECOND, "b", 2, 0)]
    assert waiting(*messages) == [0]
    # Of two open calls of one id the newer one was taken by order; the older one is still there for its id.
    twice = [calls(call("a")), calls(call("a")), tool(result()), tool(result("a"))]
    assert answers(*twice) == [(1, 2), (0, 3)]
    # In one message the first is taken by order, the other one by its id.
    assert answers(calls(call("a"), call("a")), tool(result()), tool(result("a"))) == [(0, 1), (0, 2)]
    assert waiting(calls(call("a"), call("a")), tool(result()), tool(result("a"))) == []


def test_a_result_with_an_id_takes_a_call_without_one() -> None:
    """G2: as Gemini's calls are that get an id only in the result; a call of another id is not for it."""
    assert answers(calls(call(None, "look")), tool(result("a", "look"))) == [(0, 1)]
    messages = [calls(call("a", "look"), call(None, "look")), tool(result("b", "look"))]
    assert answers(*messages) == [(0, 1)]
    assert waiting(*messages) == [0]
    assert waiting(*messages, tool(result("a"))) == []
    assert odd(calls(call("a")), tool(result("b"))) == [(TieKind.ORPHAN, "b", 1, 0)]


# -- references -------------------------------------------------------------------------------------


def test_a_reference_may_be_the_call() -> None:
    """G2: a result whose call stands nowhere in the list belongs to what the provider stores, the newest first."""
    assert answers(calls(reference("item_1")), tool(result("a"))) == [(0, 1)]
    assert answers(calls(reference("x")), calls(reference("y")), tool(result("a")), tool(result("b"))) == [
        (1, 2),
        (0, 3),
    ]
    # A call of the very id goes first, open or answered.
    both = [calls(reference("x")), calls(call("a")), tool(result("a")), tool(result("a"))]
    assert answers(*both) == [(1, 2)]
    assert odd(*both) == [(TieKind.SECOND, "a", 3, 0)]


def test_a_reference_waits_for_nothing() -> None:
    """G3: it may be a message or reasoning as well, so nobody misses its result; its id is none of a call."""
    pairing, ties = paired(calls(reference("x"), reference("x")), USER)
    assert (ties, list(pairing.open()), pairing.waits(0)) == ([], [], False)
    assert odd(calls(reference("x"), call("x"))) == []


# -- calls that are open ----------------------------------------------------------------------------


def test_open_calls() -> None:
    """G3: each call without a result, by its id or else its name, in the order of the list."""
    pairing, _ = paired(calls(call("a"), call("b")), tool(result("a")), calls(call(None, "look")), calls(call("c")))
    pairing.take(tool(result("c")))
    assert list(pairing.open()) == [
        Tie(TieKind.OPEN, "b", 0, None, 1),
        Tie(TieKind.OPEN, "look", 2, None, 0),
    ]
    assert [tie.position for tie in pairing.open()] == [0, 2]
    assert [pairing.waits(position) for position in range(6)] == [True, False, True, False, False, False]


# -- how far a result is from its call --------------------------------------------------------------


def distance(*messages: Message) -> tuple[int, int, int, bool]:
    """``between``, ``said_between``, ``turns`` and ``same_side`` of the last answer."""
    tie = [tie for tie in paired(*messages)[1] if tie.kind is TieKind.ANSWER][-1]
    return tie.between, tie.said_between, tie.turns, tie.same_side


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([], (0, 0, 1, False)),
        ([tool(result("b"))], (0, 0, 1, False)),
        ([tool(result("b")), user(result("c"), Part(PartKind.TEXT, "hurry"))], (0, 0, 1, False)),
        ([SAID], (1, 0, 1, False)),
        ([calls(call("d"))], (1, 0, 1, False)),
        ([USER], (1, 1, 1, False)),
        ([tool(result("b")), USER], (1, 1, 1, False)),
        ([SYSTEM], (1, 1, 2, False)),
        ([USER, SAID], (2, 1, 3, False)),
        ([tool(result("b")), SAID], (1, 0, 3, False)),
        ([calls(call("e"), result("e"))], (0, 0, 1, False)),
    ],
    ids=[
        "at once",
        "behind another result",
        "behind words beside a result",
        "the assistant goes on",
        "the assistant calls again",
        "the user speaks",
        "the user speaks behind a result",
        "a system message",
        "a turn",
        "an answer",
        "what the provider ran",
    ],
)
def test_what_stands_between(between: Sequence[Message], expected: tuple[int, int, int, bool]) -> None:
    """K7: messages that hold no result, those that are not the assistant's, and changes of the speaker."""
    made = calls(call("a"), call("b"), call("c"))
    assert distance(made, *between, tool(result("a"))) == expected
    # A tool speaks for the user, wherever the results stand.
    assert distance(made, *between, user(result("a"))) == expected


def test_the_same_side() -> None:
    """K7: what the provider runs itself is answered in a message of the assistant's: in the same, or a later one."""
    assert distance(calls(call("a"), result("a"))) == (0, 0, 0, True)
    assert distance(calls(call("a")), tool(result("x")), calls(result("a"))) == (0, 0, 2, True)


# -- against the slow and obvious way ---------------------------------------------------------------


def slow(messages: Sequence[Message]) -> list[tuple[str, int | None, int]]:
    """For each result with an id: what it is, and the position of its call."""
    known: list[tuple[str, int]] = []
    open_calls: list[tuple[str, int]] = []
    found: list[tuple[str, int | None, int]] = []
    for position, message in enumerate(messages):
        for part in message.parts:
            made = (part.call_id or "", position)
            if part.kind is PartKind.TOOL_CALL:
                known.append(made)
                open_calls.append(made)
                continue
            waits = [one for one in open_calls if one[0] == part.call_id]
            called = [one for one in known if one[0] == part.call_id]
            if waits:
                found.append(("answer", waits[-1][1], position))
                # Calls of one id in one message are alike.
                open_calls.remove(waits[-1])
            elif called:
                found.append(("second", called[-1][1], position))
            else:
                found.append(("orphan", None, position))
    return found


_PARTS = st.builds(
    lambda is_call, call_id: call(call_id) if is_call else result(call_id), st.booleans(), st.sampled_from("abc")
)
_MESSAGES = st.builds(Message, st.sampled_from([Role.ASSISTANT, Role.USER]), st.lists(_PARTS, max_size=4).map(tuple))


@given(st.lists(_MESSAGES, max_size=12))
def test_every_result_finds_its_call(messages: list[Message]) -> None:
    """G2 and G4: whatever was called and answered, in any order."""
    pairing, ties = paired(*messages)
    results = [(tie.kind.value, tie.call, tie.result) for tie in ties if tie.result is not None]
    assert results == slow(messages)
    made = sum(part.kind is PartKind.TOOL_CALL for message in messages for part in message.parts)
    assert len(list(pairing.open())) == made - sum(kind == "answer" for kind, _, _ in results)
    assert {tie.call for tie in pairing.open()} == {p for p in range(len(messages)) if pairing.waits(p)}
