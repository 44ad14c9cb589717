"""The settings of a conversation: arguments checked at once, pins, and what a counter sees of a message."""

from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._settings import IndexSettings, Pins
from chat_compaction.counters import FunctionCounter
from chat_compaction.formats import FORMATS, Media, Message, OpenAIChatFormat, Part, PartKind, Role
from chat_compaction.testing import characters_counter


def settings(**arguments: Any) -> IndexSettings:
    return IndexSettings(**{"counts": len, "format": "auto", "pins": None, **arguments})


def test_defaults() -> None:
    """Nothing reserved, calls wait in the newest turn, documented costs, no validation, format to be detected."""
    plain = settings()
    assert (plain.reserved, plain.pending_turns, plain.validate) == (0, 1, False)
    assert (plain.media_costs, plain.bound_reasoning) == (None, "keep")
    assert plain.format is None
    assert settings(format="anthropic").format is FORMATS["anthropic"]
    assert plain.counter.count_many(["four"]) == [4]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        plain.reserved = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", ["reserved", "pending_turns"])
@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-1, ValueError, "must be an int of 0 or more, got -1"),
        (True, TypeError, "must be an int of 0 or more, got True"),
        (1.0, TypeError, "must be an int of 0 or more, got 1.0"),
        ("8", TypeError, "must be an int of 0 or more, got '8'"),
        (None, TypeError, "must be an int of 0 or more, got None"),
    ],
)
def test_wrong_numbers(name: str, value: Any, error: type[Exception], text: str) -> None:
    """A wrong argument is one text that names it, its value and what it may be; no boolean is a number."""
    with pytest.raises(error) as caught:
        cc.MessageIndex.from_messages([], **{name: value})
    assert str(caught.value) == f"{name} {text}"


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"validate": 1}, "validate must be True or False, got 1"),
        ({"validate": None}, "validate must be True or False, got None"),
        ({"media_costs": 7}, "media_costs must be a MediaCosts, got 7"),
        ({"media_costs": {"image": 1}}, "media_costs must be a MediaCosts, got a dict"),
        (
            {"pinned": "message_1"},
            "pinned must be a predicate over messages or an iterable of message ids and objects, got 'message_1'",
        ),
        ({"pinned": 7}, "pinned must be a predicate over messages or an iterable of message ids and objects, got 7"),
    ],
)
def test_wrong_values(argument: dict[str, Any], text: str) -> None:
    """A wrong argument is a TypeError that names it, its value and what it may be."""
    with pytest.raises(TypeError) as caught:
        cc.MessageIndex.from_messages([], **argument)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", ["Drop", "", True, None, ["keep"]], ids=repr)
def test_a_wrong_word(value: Any) -> None:
    """What is to be done with bound reasoning is one of two words."""
    with pytest.raises(ValueError, match=r"^bound_reasoning must be one of 'keep', 'drop', got ") as caught:
        cc.MessageIndex.from_messages([], bound_reasoning=value)
    assert str(caught.value).endswith(repr(value))


def test_a_message_is_no_set_of_pins() -> None:
    """A message given for a list of them is refused: its keys are no ids."""
    with pytest.raises(TypeError, match=r"^pinned must be a predicate over messages or an iterable of message ids"):
        cc.MessageIndex.from_messages([], pinned={"role": "user", "content": "hi"})


# -- pins ---------------------------------------------------------------------------------------

FIRST: dict[str, Any] = {"role": "user", "content": "same", "id": "m1"}
TWIN = dict(FIRST)
OTHERS: list[Any] = [
    {"role": "user", "content": "no id"},
    {"role": "user", "content": "an id that is no string", "id": 7},
    {"role": "user", "content": "an id that cannot be hashed", "id": ["m1"]},
]


@pytest.mark.parametrize(
    ("pinned", "expected"),
    [
        (None, []),
        ([], []),
        (lambda message: message.get("id") == "m1", [0, 1]),
        (lambda message: "" if "id" in message else "truthy", [2]),
        (["m1"], [0, 1]),
        (("m1", "m9"), [0, 1]),
        ([FIRST], [0]),
        (iter([TWIN]), [1]),
        ([TWIN, "m1"], [0, 1]),
        ([OTHERS[0], OTHERS[2]], [2, 4]),
    ],
    ids=["none", "empty", "predicate", "truthy", "ids", "tuple", "object", "iterator", "both", "others"],
)
def test_pins(pinned: Any, expected: list[int]) -> None:
    """G6: pins are a predicate, ids, or the very objects: an equal message in another object is not pinned."""
    pins = settings(pins=pinned).pins
    assert [place for place, message in enumerate([FIRST, TWIN, *OTHERS]) if pins(message)] == expected


def test_a_metadata_key_pins_nothing() -> None:
    """G6: providers refuse unknown keys, so a key on a wire dict pins only where the caller says so."""
    message = {"role": "user", "content": "hi", "pinned": True}
    assert not cc.MessageIndex.from_messages([message]).groups[0].pinned
    assert cc.MessageIndex.from_messages([message], pinned=lambda m: m.get("pinned")).groups[0].pinned


def test_pinned_objects_are_held() -> None:
    """G6: while an object is pinned by identity, its identity can be no other object's."""
    pins = settings(pins=[{"role": "user", "content": "held by nobody else"}]).pins
    assert [id(held) for held in pins.objects.values()] == list(pins.objects)
    assert Pins() == Pins(None, frozenset(), {})


# -- what a counter sees ------------------------------------------------------------------------

MESSAGE = Message(
    Role.ASSISTANT,
    (
        Part(PartKind.REASONING, "hm", media=(Media("encrypted_reasoning"),), signed=True),
        Part(PartKind.TEXT, "words"),
        Part(PartKind.TEXT),
        Part(PartKind.TOOL_CALL, "{}", "look", "call_1"),
        Part(PartKind.TOOL_RESULT, "seen", call_id="call_1", media=(Media("image"), Media("image"))),
        Part(PartKind.MEDIA, "title", media=(Media("document"),)),
        Part(PartKind.OPAQUE, '{"a":1}', media=(Media("hologram"),)),
    ),
    "scout",
)


def test_what_is_counted() -> None:
    """C1: the speaker's name, texts, tool names and arguments, never an id; the frame and media by a flat rule."""
    costs = cc.MediaCosts(image=100, document=1000, encrypted_reasoning=10, other=10_000)
    framed = settings(media_costs=costs)
    openai_chat = FORMATS["openai_chat"]
    assert framed.texts(MESSAGE) == ["scout", "hm", "words", "look", "{}", "seen", "title", '{"a":1}']
    assert framed.flat(MESSAGE, openai_chat) == openai_chat.overhead + 10 + 2 * 100 + 1000 + 10_000


def test_the_format_says_what_media_costs() -> None:
    """C1: as its provider counts it, unless the caller says otherwise."""

    @attrs.frozen(repr=False)
    class Dear(OpenAIChatFormat):
        overhead = 7
        media_costs = cc.MediaCosts(image=1, document=20, encrypted_reasoning=300, other=4_000)

    assert settings().flat(MESSAGE, Dear()) == 7 + 300 + 2 * 1 + 20 + 4_000
    assert settings(media_costs=cc.MediaCosts(image=0)).flat(MESSAGE, Dear()) == 7 + 640 + 10_000 + 1_600


def test_without_framing_text_alone_counts() -> None:
    """C1: a counter with ``framing=False`` sees text, reasoning and results; nothing is counted flat."""
    for counter in (characters_counter(), FunctionCounter(len, name="own", framing=False)):
        bare = settings(counts=counter)
        assert bare.texts(MESSAGE) == ["hm", "words", "seen"]
        assert bare.flat(MESSAGE, FORMATS["anthropic"]) == 0


@pytest.mark.parametrize("message", [Message(Role.USER), Message(Role.USER, (Part(PartKind.TEXT),))])
def test_nothing_counts_as_its_frame(message: Message) -> None:
    """C1: null content is zero: no text, and only the overhead of a message."""
    assert settings().texts(message) == []
    for format in FORMATS.values():
        assert settings().flat(message, format) == format.overhead


def test_a_pin_predicate_that_raises_names_the_message() -> None:
    """G6: what the caller's predicate raises is the cause of an error that names the position."""
    history = [{"role": "user", "content": "one"}, {"role": "user", "content": "two", "keep": True}]
    with pytest.raises(
        cc.MessageError, match=r"^messages\[0\] cannot be asked whether it is pinned: it raises KeyError$"
    ):
        cc.MessageIndex.from_messages(history, pinned=lambda message: message["keep"])
