"""OpenAI chat completions: what is read of each kind of message, and what of it counts."""

import copy
from typing import Any

import pytest
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionMessage,
    ChatCompletionUserMessageParam,
)
from pydantic import TypeAdapter

import chat_compaction as cc
from chat_compaction.formats import Media, Message, OpenAIChatFormat, Part, PartKind, Role
from chat_compaction.testing import characters_counter

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
BASE64 = "iVBORw0KGgo" * 400


def read(raw: Any) -> Message:
    return OpenAIChatFormat().read(raw, 0)


def parts(raw: Any) -> tuple[Part, ...]:
    return read(raw).parts


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **fields}


def function_call(
    call_id: Any = "call_1", arguments: Any = '{"city": "Oslo"}', name: Any = "weather"
) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("role", "ours"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
    ],
)
def test_roles(role: str, ours: Role) -> None:
    """G5: developer is system; the other roles are what they say."""
    assert read({"role": role, "content": "words"}) == Message(ours, (Part(TEXT, "words"),))


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": None, "refusal": None, "audio": None, "name": None},
        {"role": "assistant", "content": "", "tool_calls": [], "function_call": None, "reasoning_content": None},
        {"role": "assistant", "content": [], "reasoning_details": [], "annotations": [], "reasoning": ""},
    ],
)
def test_null_is_nothing(raw: dict[str, Any]) -> None:
    """C1: null content is zero; what is absent, null or empty is alike."""
    assert read(raw) == Message(Role.ASSISTANT)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("words", [Part(TEXT, "words")]),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], [Part(TEXT, "one"), Part(TEXT, "two")]),
        (({"type": "text", "text": "in a tuple"},), [Part(TEXT, "in a tuple")]),
        ([{"type": "text", "text": None}, {"type": "text"}], [Part(TEXT), Part(TEXT)]),
        ([{"type": "refusal", "refusal": "I will not"}], [Part(TEXT, "I will not")]),
        (
            [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}}],
            [Part(MEDIA, media=(Media("image"),))],
        ),
        (
            [{"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}}],
            [Part(MEDIA, media=(Media("audio"),))],
        ),
        (
            [{"type": "file", "file": {"file_data": BASE64, "filename": "a.pdf"}}],
            [Part(MEDIA, media=(Media("document"),))],
        ),
        (
            [{"type": "video_url", "video_url": {"url": "https://example.com/a"}}],
            [Part(MEDIA, media=(Media("video"),))],
        ),
        ([{"type": "brand_new", "payload": "words"}], [Part(OPAQUE, '{"payload":"words"}')]),
        ([{"type": "thinking", "thinking": "hm", "signature": BASE64}], [Part(REASONING, "hm", signed=True)]),
        (
            [{"type": "redacted_thinking", "data": BASE64}],
            [Part(REASONING, media=(Media("encrypted_reasoning"),), signed=True)],
        ),
    ],
)
def test_content(content: Any, expected: list[Part]) -> None:
    """C1: text counts as it is, media by a flat rule, a part of unknown type by its JSON."""
    assert parts({"role": "user", "content": content}) == tuple(expected)


def test_a_message_says_it_all() -> None:
    """C1: reasoning, text, refusal, audio and calls of one message, each once and in this order."""
    raw = assistant(
        content="words",
        refusal="not that",
        audio={"id": "audio_1"},
        reasoning_content="hm",
        name="scout",
        tool_calls=[function_call("a"), function_call("b", {"city": "Rom"})],
    )
    assert read(raw) == Message(
        Role.ASSISTANT,
        (
            Part(REASONING, "hm"),
            Part(TEXT, "words"),
            Part(TEXT, "not that"),
            Part(MEDIA, media=(Media("audio"),)),
            Part(CALL, '{"city": "Oslo"}', "weather", "a"),
            Part(CALL, '{"city":"Rom"}', "weather", "b"),
        ),
        "scout",
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ({"a": "é"}, '{"a":"é"}'),
        ({}, "{}"),
        (None, ""),
        ("", ""),
        ([1], "[1]"),
    ],
)
def test_arguments(arguments: Any, text: str) -> None:
    """C1: arguments count as the string that is sent; an object as its JSON, null as nothing."""
    assert parts(assistant(tool_calls=[function_call("a", arguments)])) == (Part(CALL, text, "weather", "a"),)


def test_a_custom_tool() -> None:
    """C1: a custom tool is called with free text."""
    call = {"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    assert parts(assistant(tool_calls=[call])) == (Part(CALL, "ls -l", "shell", "a"),)


@pytest.mark.parametrize(
    ("content", "text", "media"),
    [
        ("sunny", "sunny", ()),
        (None, "", ()),
        ([{"type": "text", "text": "sunny"}, {"type": "text", "text": "cold"}], "sunny\ncold", ()),
        (
            [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": BASE64}}],
            "see",
            (Media("image"),),
        ),
    ],
)
def test_results(content: Any, text: str, media: tuple[Media, ...]) -> None:
    """C1: a result counts its text, and an image in it by the flat rule."""
    raw = {"role": "tool", "tool_call_id": "a", "content": content, "name": "weather"}
    assert read(raw) == Message(Role.TOOL, (Part(RESULT, text, call_id="a", media=media),), "weather")


def test_the_deprecated_function_call() -> None:
    """G2: a function_call and its function message are a pair, tied by the function's name."""
    called = assistant(function_call={"name": "weather", "arguments": "{}"})
    answered = {"role": "function", "name": "weather", "content": "sunny"}
    assert parts(called) == (Part(CALL, "{}", "weather", "function:weather"),)
    assert parts(answered) == (Part(RESULT, "sunny", call_id="function:weather"),)
    index = cc.MessageIndex.from_messages([called, answered])
    assert [group.kind for group in index.groups] == [cc.GroupKind.TOOL_CALL]


def test_an_empty_function_call_is_none() -> None:
    """G3: servers that send an empty function_call and audio along with every answer have called nothing."""
    raw = assistant(content="hi", function_call={"name": "", "arguments": ""}, audio={"id": "", "data": ""})
    assert parts(raw) == (Part(TEXT, "hi"),)


def test_unknown_keys_do_not_count() -> None:
    """C1: what the caller keeps beside a message is not sent as text."""
    raw = {"role": "user", "content": "hi", "metadata": {"long": "x" * 1000}, "annotations": [{"type": "url_citation"}]}
    assert read(raw) == Message(Role.USER, (Part(TEXT, "hi"),))


def test_what_a_list_costs() -> None:
    """C1: 4 tokens a message, texts, names, arguments, flat media; with framing=False text alone."""
    history = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "12345"}, {"type": "image_url", "image_url": {"url": BASE64}}],
        },
        assistant(reasoning_content="123", tool_calls=[function_call("a", "{}")]),
        {"role": "tool", "tool_call_id": "a", "name": "weather", "content": "1234"},
        {"role": "user", "name": "ada", "content": [{"type": "brand_new", "n": 1}]},
        assistant(),
    ]
    framed = cc.MessageIndex.from_messages(history, counter=len, media_costs=cc.MediaCosts(image=1000))
    assert framed.value(cc.tokens) == 5 * 4 + (5 + 1000) + (3 + 7 + 2) + (7 + 4) + (3 + len('{"n":1}'))
    assert cc.MessageIndex.from_messages(history, counter=characters_counter()).value(cc.tokens) == 5 + 3 + 4


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"role": "user", "content": 7}, ".content must be a string or a list, got 7"),
        ({"role": "user", "content": {"text": "private"}}, ".content must be a string or a list, got a dict"),
        ({"role": "user", "content": ["private"]}, ".content[0] must be an object, got a str"),
        (
            {"role": "user", "content": [{"type": "text", "text": ["private"]}]},
            ".content[0].text must be a string, got a list",
        ),
        ({"role": "user", "content": "", "name": 7}, ".name must be a string, got 7"),
        (assistant(refusal={"why": "private"}), ".refusal must be a string, got a dict"),
        (assistant(tool_calls={"id": "a"}), ".tool_calls must be a list, got a dict"),
        (assistant(tool_calls="private"), ".tool_calls must be a list, got a str"),
        (assistant(tool_calls=[None]), ".tool_calls[0] must be an object, got None"),
        (assistant(tool_calls=[function_call(7)]), ".tool_calls[0].id must be a string, got 7"),
        (
            assistant(tool_calls=[function_call(), function_call(["private"])]),
            ".tool_calls[1].id must be a string, got a list",
        ),
        (assistant(tool_calls=[{"id": "a"}]), ".tool_calls[0].function must be an object, got None"),
        (assistant(tool_calls=[{"id": "a", "custom": []}]), ".tool_calls[0].custom must be an object, got a list"),
        (assistant(tool_calls=[function_call(name=[])]), ".tool_calls[0].function.name must be a string, got a list"),
        (assistant(function_call="auto"), ".function_call must be an object, got a str"),
        (assistant(function_call={"name": 7}), ".function_call.name must be a string, got 7"),
        ({"role": "tool", "tool_call_id": 7, "content": ""}, ".tool_call_id must be a string, got 7"),
        ({"role": "tool", "tool_name": 7, "content": ""}, ".tool_name must be a string, got 7"),
        ({"role": "function", "content": "private"}, ".name must be a string, got None"),
    ],
)
def test_what_cannot_be_read(raw: dict[str, Any], text: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        OpenAIChatFormat().read(raw, 3)
    assert str(caught.value) == f"messages[3]{text}"
    assert caught.value.position == 3


# -- writing ------------------------------------------------------------------------------------

ASSISTANT = TypeAdapter(ChatCompletionAssistantMessageParam)
USER = TypeAdapter(ChatCompletionUserMessageParam)
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a"}}
A, B = function_call("a"), function_call("b")


def accepted(adapter: TypeAdapter[Any], raw: Any) -> Any:
    """The message, if the SDK's type takes it; lists are checked as they are read."""
    given = adapter.validate_python(raw)
    return {
        key: list(value) if key in ("content", "tool_calls") and value and not isinstance(value, str) else value
        for key, value in given.items()
    }


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("raw", "parts", "left"),
    [
        (assistant(tool_calls=[A, B]), {0}, assistant(tool_calls=[B])),
        (assistant(tool_calls=[A, B]), {0, 1}, None),
        (assistant(content="hi", tool_calls=[A]), {1}, {"role": "assistant", "content": "hi"}),
        (assistant(content="hi", tool_calls=[A]), {0}, assistant(tool_calls=[A])),
        (assistant(content=[words("1"), words("2")], tool_calls=[A]), {0, 1}, assistant(tool_calls=[A])),
        (
            assistant(content=[words("1"), words("2")], tool_calls=[A]),
            {0, 2},
            {"role": "assistant", "content": [words("2")]},
        ),
        (assistant(content="hi", refusal="no", audio={"id": "x"}), {0, 2}, assistant(refusal="no")),
        (assistant(content="hi", refusal="no", audio={"id": "x"}), {1, 2}, {"role": "assistant", "content": "hi"}),
        (
            assistant(content="hi", function_call={"name": "f", "arguments": "{}"}),
            {1},
            {"role": "assistant", "content": "hi"},
        ),
        (assistant(content="hi"), {0}, None),
        ({"role": "user", "content": [words("hi"), PICTURE]}, {1}, {"role": "user", "content": [words("hi")]}),
        ({"role": "user", "content": [words("hi"), PICTURE]}, {0, 1}, None),
        ({"role": "tool", "tool_call_id": "a", "content": "seen"}, {0}, None),
        ({"role": "function", "name": "f", "content": "seen"}, {0}, None),
        # Reasoning goes under all of its names, and does not make a message by itself.
        (assistant(content="hi", reasoning_content="hm", reasoning="hm"), {0}, {"role": "assistant", "content": "hi"}),
        (
            assistant(reasoning="hm", reasoning_details=[words("h"), words("m")], tool_calls=[A]),
            {1},
            assistant(reasoning_details=[words("h")], tool_calls=[A]),
        ),
        (assistant(reasoning_content="hm", tool_calls=[A]), {1}, None),
    ],
)
def test_without(raw: dict[str, Any], parts: set[int], left: dict[str, Any] | None) -> None:
    """Parts leave by the number that reading gives them; a last call takes its key along; nothing is mutated."""
    before = copy.deepcopy(raw)
    assert OpenAIChatFormat().without(raw, parts) == left
    assert raw == before
    if left is not None:
        stay = [part for number, part in enumerate(read(raw).parts) if number not in parts]
        assert list(read(left).parts) == stay


@pytest.mark.parametrize("parts", [{0}, {1}, {2}, {3}, {0, 1}, {1, 2}, {2, 3}, {0, 2, 3}, {0, 1, 2}, {0, 1, 2, 3}])
def test_without_on_the_sdks_object(parts: set[int]) -> None:
    """An SDK's object gives what its dump gives, as an object; what left is not sent as null, which is refused."""
    raw = assistant(content="hi", reasoning_content="hm", tool_calls=[A, B])
    message = ChatCompletionMessage.model_validate(raw)
    left, expected = (OpenAIChatFormat().without(given, parts) for given in (message, raw))
    assert (left and left.model_dump(exclude_unset=True)) == expected
    assert message.model_dump(exclude_unset=True) == raw
    if expected is not None:
        sent = {key: value for key, value in expected.items() if key != "reasoning_content"}
        assert accepted(ASSISTANT, sent) == sent


def test_renamed() -> None:
    """A call and a result get another id, as dicts and as objects; the deprecated pair is tied by its name."""
    renamed = OpenAIChatFormat().renamed
    raw = assistant(content="hi", tool_calls=[A, B])
    message = ChatCompletionMessage.model_validate(raw)
    for given in (raw, message):
        written = renamed(given, 2, "c")
        assert [part.call_id for part in read(written).parts] == [None, "a", "c"]
        assert [part.call_id for part in read(given).parts] == [None, "a", "b"]
        assert isinstance(written, type(given))
    result = {"role": "tool", "tool_call_id": "a", "content": "seen"}
    assert renamed(result, 0, "c") == {**result, "tool_call_id": "c"}
    assert renamed(assistant(function_call={"name": "f"}), 0, "c") is None
    assert renamed({"role": "function", "name": "f", "content": ""}, 0, "c") is None
    assert renamed(raw, 0, "c") is None


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ({"role": "user", "content": "1"}, {"role": "user", "content": "2"}, {"role": "user", "content": "1\n\n2"}),
        (
            {"role": "user", "content": "1"},
            {"role": "user", "content": [PICTURE]},
            {"role": "user", "content": [words("1"), PICTURE]},
        ),
        (assistant(content="hi"), assistant(tool_calls=[A]), {"role": "assistant", "content": "hi", "tool_calls": [A]}),
        (
            assistant(tool_calls=[A]),
            assistant(content="hi", tool_calls=[B]),
            assistant(content="hi", tool_calls=[A, B]),
        ),
        (assistant(), assistant(refusal="no"), assistant(refusal="no")),
        (
            assistant(content="1", reasoning="h"),
            assistant(content="2", reasoning="m"),
            assistant(content="1\n\n2", reasoning="h\n\nm"),
        ),
        ({"role": "user", "content": "1"}, assistant(content="2"), None),
        ({"role": "user", "content": "1", "name": "ada"}, {"role": "user", "content": "2"}, None),
        (
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "a", "content": "2"},
            None,
        ),
        (assistant(audio={"id": "x"}), assistant(content="2"), None),
        (assistant(content="1"), assistant(function_call={"name": "f"}), None),
        (
            assistant(content="1", thinking_blocks=[{"type": "thinking", "thinking": "h", "signature": "s"}]),
            assistant(content="2"),
            None,
        ),
    ],
)
def test_joined(first: dict[str, Any], second: dict[str, Any], both: dict[str, Any] | None) -> None:
    """Two messages of one speaker become one with all parts of the two; what can't be joined stays apart."""
    before = copy.deepcopy((first, second))
    assert OpenAIChatFormat().joined(first, second) == both
    assert (first, second) == before


def test_joined_objects() -> None:
    """An SDK's object takes in what a dict holds, and what comes out is what the SDK sends."""
    message = ChatCompletionMessage.model_validate(assistant(content="hi", tool_calls=[A]))
    both = OpenAIChatFormat().joined(message, assistant(content="ho", tool_calls=[B]))
    assert isinstance(both, ChatCompletionMessage)
    assert accepted(ASSISTANT, both.model_dump(exclude_unset=True, warnings=False)) == assistant(
        content="hi\n\nho", tool_calls=[A, B]
    )
    joined = OpenAIChatFormat().joined({"role": "user", "content": "1"}, {"role": "user", "content": [PICTURE]})
    assert accepted(USER, joined) == joined
    assert message.tool_calls is not None
    assert len(message.tool_calls) == 1
