"""Our view of a message: a value, and what grouping asks of it."""

import attrs
import pytest

from chat_compaction.formats import Media, Message, Part, PartKind, Role

TEXT = Part(PartKind.TEXT, "words")
THOUGHT = Part(PartKind.REASONING, "hm")
SIGNED = Part(PartKind.REASONING, "hm", signed=True)
OPAQUE = Part(PartKind.OPAQUE, "{}")
IMAGE = Part(PartKind.MEDIA, media=(Media("image"),))


def call(call_id: str) -> Part:
    return Part(PartKind.TOOL_CALL, "{}", "look", call_id)


def result(call_id: str, text: str = "seen") -> Part:
    return Part(PartKind.TOOL_RESULT, text, call_id=call_id)


def test_values() -> None:
    """Frozen, hashable, equal to their equal, printed as the code that makes them."""
    message = Message(Role.ASSISTANT, (SIGNED, TEXT, call("a"), IMAGE), "scout")
    assert eval(repr(message)) == message  # noqa: S307
    assert hash(message) == hash(attrs.evolve(message))
    assert message != attrs.evolve(message, name="")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        message.name = ""  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        TEXT.text = ""  # type: ignore[misc]


def test_ids_in_order_and_repeated() -> None:
    """G2: ids are given by occurrence, so a repeated one stands twice."""
    message = Message(Role.ASSISTANT, (call("b"), TEXT, call("a"), call("b"), result("c"), result("a")))
    assert message.call_ids == ["b", "a", "b"]
    assert message.result_ids == ["c", "a"]
    assert Message(Role.USER, (TEXT, THOUGHT, IMAGE, OPAQUE)).call_ids == []


@pytest.mark.parametrize(
    ("role", "parts", "opens", "speaks"),
    [
        (Role.USER, (TEXT,), True, True),
        (Role.USER, (), True, True),
        (Role.USER, (IMAGE,), True, True),
        (Role.USER, (result("a"),), False, False),
        (Role.USER, (result("a"), result("b")), False, False),
        (Role.USER, (result("a"), TEXT), False, True),
        (Role.USER, (TEXT, result("a")), False, True),
        (Role.USER, (result("a"), IMAGE), False, True),
        (Role.TOOL, (result("a"),), False, False),
        (Role.TOOL, (TEXT,), False, False),
        (Role.ASSISTANT, (TEXT,), False, False),
        (Role.ASSISTANT, (TEXT, result("a")), False, False),
        (Role.SYSTEM, (TEXT,), False, False),
    ],
)
def test_who_opens_a_turn_and_who_speaks(role: Role, parts: tuple[Part, ...], opens: bool, speaks: bool) -> None:
    """G5: a result opens no turn, text beside it or not; its text still counts as the user's words (K4)."""
    message = Message(role, parts)
    assert (message.opens_turn, message.speaks_for_user) == (opens, speaks)


@pytest.mark.parametrize(
    ("role", "parts", "expected"),
    [
        (Role.ASSISTANT, (THOUGHT,), True),
        (Role.ASSISTANT, (THOUGHT, SIGNED), True),
        (Role.ASSISTANT, (), False),
        (Role.ASSISTANT, (THOUGHT, TEXT), False),
        (Role.ASSISTANT, (THOUGHT, call("a")), False),
        (Role.USER, (THOUGHT,), False),
    ],
)
def test_reasoning_only(role: Role, parts: tuple[Part, ...], expected: bool) -> None:
    """G2: an assistant message of nothing but reasoning waits for the message that it belongs to."""
    assert Message(role, parts).reasoning_only is expected


def test_signed() -> None:
    """A message is bound to its prefix as soon as one part of it is."""
    assert Message(Role.ASSISTANT, (THOUGHT, SIGNED)).signed
    assert not Message(Role.ASSISTANT, (THOUGHT, TEXT)).signed
    assert not Message(Role.ASSISTANT).signed


def test_shape() -> None:
    """C2, K13: what streaming adds to a text leaves the shape; a part, an id or a role that changes does not."""
    message = Message(Role.ASSISTANT, (TEXT, call("a")))
    longer = Message(Role.ASSISTANT, (attrs.evolve(TEXT, text="words and more"), attrs.evolve(call("a"), text="{...}")))
    assert longer.shape == attrs.evolve(message, name="scout").shape == message.shape
    others = [
        Message(Role.USER, message.parts),
        Message(Role.ASSISTANT, (TEXT,)),
        Message(Role.ASSISTANT, (call("a"), TEXT)),
        Message(Role.ASSISTANT, (TEXT, call("b"))),
        Message(Role.ASSISTANT, (TEXT, result("a"))),
    ]
    assert message.shape not in [other.shape for other in others]


def test_what_a_message_holds() -> None:
    """The kinds of the parts are those of its parts, whatever their order; they are no part of the value."""
    part = {kind: Part(kind) for kind in PartKind}
    for role in Role:
        for kinds in ([], *([one] for one in PartKind), *([one, other] for one in PartKind for other in PartKind)):
            message = Message(role, tuple(part[kind] for kind in kinds))
            assert [kind for kind in PartKind if message.kinds & kind.bit] == [
                kind for kind in PartKind if kind in kinds
            ]
            assert message.calls is (PartKind.TOOL_CALL in kinds)
            assert message.answers is (role is Role.TOOL or PartKind.TOOL_RESULT in kinds)
    grown = attrs.evolve(Message(Role.USER, (part[PartKind.TEXT],)), parts=(part[PartKind.MEDIA],))
    assert grown.kinds == PartKind.MEDIA.bit
    assert eval(repr(grown)) == grown  # noqa: S307
