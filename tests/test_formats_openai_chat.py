"""OpenAI chat completions: what is read of each kind of message, and what of it counts."""

from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Message, OpenAIChatFormat, Part, PartKind, Role
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
            [Part(MEDIA, flat=("image",))],
        ),
        ([{"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}}], [Part(MEDIA, flat=("audio",))]),
        ([{"type": "file", "file": {"file_data": BASE64, "filename": "a.pdf"}}], [Part(MEDIA, flat=("document",))]),
        ([{"type": "video_url", "video_url": {"url": "https://example.com/a"}}], [Part(MEDIA, flat=("video",))]),
        ([{"type": "brand_new", "payload": "words"}], [Part(OPAQUE, '{"payload":"words"}')]),
        ([{"type": "thinking", "thinking": "hm", "signature": BASE64}], [Part(REASONING, "hm", signed=True)]),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}], [Part(REASONING, '[{"text":"hm"}]')]),
        (
            [{"type": "redacted_thinking", "data": BASE64}],
            [Part(REASONING, flat=("encrypted_reasoning",), signed=True)],
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
            Part(MEDIA, flat=("audio",)),
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
    ("content", "text", "flat"),
    [
        ("sunny", "sunny", ()),
        (None, "", ()),
        ([{"type": "text", "text": "sunny"}, {"type": "text", "text": "cold"}], "sunny\ncold", ()),
        ([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": BASE64}}], "see", ("image",)),
    ],
)
def test_results(content: Any, text: str, flat: tuple[str, ...]) -> None:
    """C1: a result counts its text, and an image in it by the flat rule."""
    raw = {"role": "tool", "tool_call_id": "a", "content": content, "name": "weather"}
    assert read(raw) == Message(Role.TOOL, (Part(RESULT, text, call_id="a", flat=flat),), "weather")


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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasoning_content": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning_content": "hm", "reasoning": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning": {"effort": "low"}}, []),
        (
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": BASE64}]},
            [Part(REASONING, "hm", signed=True)],
        ),
        (
            {
                "reasoning_details": [
                    {"type": "reasoning.summary", "summary": "in short"},
                    {"type": "reasoning.encrypted", "data": BASE64},
                ]
            },
            [Part(REASONING, "in short"), Part(REASONING, flat=("encrypted_reasoning",))],
        ),
        (
            {
                "reasoning_content": "hm",
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "hm", "signature": BASE64},
                    {"type": "redacted_thinking", "data": BASE64},
                ],
            },
            [Part(REASONING, "hm", signed=True), Part(REASONING, flat=("encrypted_reasoning",), signed=True)],
        ),
    ],
)
def test_reasoning_under_its_names(fields: dict[str, Any], expected: list[Part]) -> None:
    """C1: reasoning that is sent back counts once, whatever field carries it; encrypted never by its base64."""
    assert parts(assistant(**fields)) == tuple(expected)


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
        (assistant(refusal={}), ".refusal must be a string, got a dict"),
        (assistant(tool_calls={"id": "a"}), ".tool_calls must be a list, got a dict"),
        (assistant(tool_calls="private"), ".tool_calls must be a list, got a str"),
        (assistant(tool_calls=[None]), ".tool_calls[0] must be an object, got None"),
        (assistant(tool_calls=[function_call(7)]), ".tool_calls[0].id must be a string, got 7"),
        (assistant(tool_calls=[function_call(), function_call(None)]), ".tool_calls[1].id must be a string, got None"),
        (assistant(tool_calls=[{"id": "a"}]), ".tool_calls[0].function must be an object, got None"),
        (assistant(tool_calls=[{"id": "a", "custom": []}]), ".tool_calls[0].custom must be an object, got a list"),
        (assistant(tool_calls=[function_call(name=[])]), ".tool_calls[0].function.name must be a string, got a list"),
        (assistant(function_call="auto"), ".function_call must be an object, got a str"),
        (assistant(function_call={"name": 7}), ".function_call.name must be a string, got 7"),
        ({"role": "tool", "content": "private"}, ".tool_call_id must be a string, got None"),
        ({"role": "tool", "tool_call_id": 7, "content": ""}, ".tool_call_id must be a string, got 7"),
        ({"role": "function", "content": "private"}, ".name must be a string, got None"),
    ],
)
def test_what_cannot_be_read(raw: dict[str, Any], text: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        OpenAIChatFormat().read(raw, 3)
    assert str(caught.value) == f"messages[3]{text}"
    assert caught.value.position == 3
