"""Gemini contents: what is read of each kind of part, in both spellings and as the SDK's objects."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import types

import chat_compaction as cc
from chat_compaction.formats import Media, Message, Part, PartKind, Role
from chat_compaction.formats.gemini import GeminiFormat
from tests._shared import load_session, recorded_sessions

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
BASE64 = "iVBORw0K" + "AAAA" * 400
GEMINI = GeminiFormat()
SNAKE = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "mimeType": "mime_type",
    "fileUri": "file_uri",
    "thoughtSignature": "thought_signature",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "videoMetadata": "video_metadata",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
    "toolType": "tool_type",
}


def snake(value: Any) -> Any:
    """The same part as Python spells it."""
    if isinstance(value, dict):
        return {SNAKE.get(key, key): snake(item) for key, item in value.items()}
    return [snake(item) for item in value] if isinstance(value, list) else value


def call(name: str = "look", call_id: str | None = None, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args, **({"id": call_id} if call_id else {})}}


def result(name: str = "look", call_id: str | None = None, **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **({"id": call_id} if call_id else {})}}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def data(mime_type: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime_type, "data": BASE64}}


@pytest.mark.parametrize(
    ("fields", "role"),
    [
        ({"role": "user"}, Role.USER),
        ({}, Role.USER),
        ({"role": None}, Role.USER),
        ({"role": "model"}, Role.ASSISTANT),
        ({"role": "function"}, Role.TOOL),
    ],
)
def test_roles(fields: dict[str, Any], role: Role) -> None:
    """A message without a role is the user's; the old role ``function`` holds results."""
    assert GEMINI.read({**fields, "parts": [{"text": "hi"}]}, 0) == Message(role, (Part(TEXT, "hi"),))


PARTS: list[tuple[dict[str, Any], Part]] = [
    ({"text": "words"}, Part(TEXT, "words")),
    ({"text": ""}, Part(TEXT)),
    ({"text": "words", "thoughtSignature": BASE64}, Part(TEXT, "words")),
    ({"text": "", "thoughtSignature": BASE64}, Part(REASONING)),
    ({"thoughtSignature": BASE64}, Part(REASONING)),
    ({"text": "hm", "thought": True}, Part(REASONING, "hm")),
    ({"text": "hm", "thought": True, "thoughtSignature": BASE64}, Part(REASONING, "hm")),
    ({"text": "words", "thought": False}, Part(TEXT, "words")),
    ({**call(q="é", n=None), "thoughtSignature": BASE64}, Part(CALL, '{"q":"é","n":null}', "look")),
    (call(call_id="a"), Part(CALL, "{}", "look", "a")),
    ({"functionCall": {"name": "look"}}, Part(CALL, "", "look")),
    (result(output="sunny"), Part(RESULT, "sunny", "look")),
    (result(error='no "city"'), Part(RESULT, 'no "city"', "look")),
    (result(output="sunny", sure=True), Part(RESULT, '{"output":"sunny","sure":true}', "look")),
    (result(output=[1]), Part(RESULT, '{"output":[1]}', "look")),
    (result(call_id="a"), Part(RESULT, "{}", "look", "a")),
    (
        {"functionResponse": {"name": "look", "response": {}, "parts": [data("image/png"), data("application/pdf")]}},
        Part(RESULT, "{}", "look", media=(Media("image"), Media("document"))),
    ),
    (data("image/png"), Part(MEDIA, media=(Media("image"),))),
    (data("audio/mpeg"), Part(MEDIA, media=(Media("audio"),))),
    ({**data("video/mp4"), "videoMetadata": {"fps": 2.0}}, Part(MEDIA, media=(Media("video"),))),
    ({"fileData": {"mimeType": "text/csv", "fileUri": "gs://a"}}, Part(MEDIA, media=(Media("document"),))),
    ({"fileData": {"fileUri": "https://youtu.be/a"}}, Part(MEDIA, media=(Media("video"),))),
    ({"executableCode": {"language": "PYTHON", "code": "print(1)\n"}}, Part(OPAQUE, "print(1)\n")),
    ({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}, Part(OPAQUE, "1\n")),
    ({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, Part(OPAQUE)),
    (
        {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}}},
        Part(CALL, '{"queries":["q"]}', "GOOGLE_SEARCH_WEB", "s"),
    ),
    (
        {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "response": {"a": 1}}},
        Part(RESULT, '{"a":1}', "GOOGLE_SEARCH_WEB", "s"),
    ),
]


@pytest.mark.parametrize(("part", "expected"), PARTS)
def test_parts(part: dict[str, Any], expected: Part) -> None:
    """C1: camelCase, snake_case and the SDK's object are one view; signatures and media are never text."""
    assert GEMINI.read(model(part), 0).parts == (expected,)
    assert GEMINI.read(model(snake(part)), 0).parts == (expected,)
    own = types.Content.model_validate(model(part))
    assert GEMINI.read(own, 0) == Message(Role.ASSISTANT, (expected,))
    assert GEMINI.read({"role": "model", "parts": own.parts}, 0) == Message(Role.ASSISTANT, (expected,))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, Part(TEXT)),
        ({"brandNew": {"a": "words"}}, Part(OPAQUE, '{"brandNew":{"a":"words"}}')),
        ({"brandNew": b"\x89PNG"}, Part(OPAQUE, media=(Media("other"),))),
    ],
)
def test_parts_that_the_sdk_does_not_know(part: dict[str, Any], expected: Part) -> None:
    """An unknown part counts by its JSON; one with nothing in it is an empty text, which the API refuses."""
    assert GEMINI.read(model(part), 0).parts == (expected,)


@pytest.mark.parametrize("fields", [{}, {"parts": None}, {"parts": []}])
def test_nothing(fields: dict[str, Any]) -> None:
    """C1: no parts are nothing."""
    assert GEMINI.read({"role": "user", **fields}, 0) == Message(Role.USER)
    assert GEMINI.read(types.Content(role="user", parts=None), 0) == Message(Role.USER)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"role": "assistant", "parts": []}, ".role must be one of user, model, function, got 'assistant' {}"),
        ({"role": 7, "parts": []}, ".role must be one of user, model, function, got 7 {}"),
        ({"role": "user", "content": "private"}, ".parts is missing {}"),
        (user({"type": "tool_use", "id": "a"}), ".parts[0] has a type, as parts of other formats have {}"),
        ({"parts": "private"}, ".parts must be a list, got a str"),
        ({"parts": ["private"]}, ".parts[0] must be an object, got a str"),
        (user("a", {"text": ["private"]}), ".parts[1].text must be a string, got a list"),
        (model({"functionCall": "private"}), ".parts[0].functionCall must be an object, got a str"),
        (model({"function_call": {"name": 7}}), ".parts[0].functionCall.name must be a string, got 7"),
        (model({"functionCall": {"id": 7}}), ".parts[0].functionCall.id must be a string, got 7"),
        (model({"executableCode": {"code": 7}}), ".parts[0].executableCode.code must be a string, got 7"),
        (
            user({"functionResponse": {"name": "a", "parts": [7]}}),
            ".parts[0].functionResponse.parts[0] must be an object, got 7",
        ),
    ],
)
def test_what_cannot_be_read(raw: dict[str, Any], message: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        GEMINI.read(raw, 5)
    assert str(caught.value) == "messages[5]" + message.format("(read as 'gemini'; format= names another)")


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "model"},
        user("hi"),
        {"parts": [snake(call())]},
        user(data("image/png")),
        {"role": "user", "parts": [types.Part(text="hi")]},
        types.Content(role="user", parts=[types.Part(text="hi")]),
        types.UserContent("hi"),
    ],
)
def test_claims(raw: Any) -> None:
    """Only Gemini has the role ``model``, and parts that are named by their keys."""
    assert GEMINI.claims(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "parts": []},
        {"role": "user", "parts": "hi"},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]},
        {"role": "user", "content": [{"text": "hi"}]},
    ],
)
def test_claims_nothing_of_others(raw: Any) -> None:
    """Messages with parts of a ``type`` of their own are another's."""
    assert not GEMINI.claims(raw)


# -- writing ------------------------------------------------------------------------------------

SPOKEN = model({"text": "hm", "thought": True}, {**call("look", "a"), "thoughtSignature": BASE64}, call("see", "b"))


def forms(raw: dict[str, Any]) -> list[Any]:
    """A message in every form that we read."""
    return [raw, snake(raw), types.Content.model_validate(raw)]


def accepted(raw: Any) -> types.Content:
    """The SDK's type takes it."""
    return raw if isinstance(raw, types.Content) else types.Content.model_validate(raw)


@pytest.mark.parametrize("raw", forms(SPOKEN), ids=["camel", "snake", "sdk"])
def test_without(raw: Any) -> None:
    """K8: parts leave a copy, by their number; the message is as it was. Nothing is left of a message without parts."""
    before = copy.deepcopy(raw)
    assert GEMINI.read(accepted(GEMINI.without(raw, {0, 2})), 0).parts == GEMINI.read(raw, 0).parts[1:2]
    assert GEMINI.without(raw, {0, 1, 2}) is None
    assert raw == before


@pytest.mark.parametrize("raw", forms(SPOKEN), ids=["camel", "snake", "sdk"])
def test_renamed(raw: Any) -> None:
    """K8: a call gets another id in a copy, and keeps its signature; text has none."""
    before = copy.deepcopy(raw)
    written = accepted(GEMINI.renamed(raw, 1, "new"))
    assert GEMINI.read(written, 0).call_ids == ["new", "b"]
    assert written.parts is not None
    assert written.parts[1].thought_signature
    assert GEMINI.renamed(raw, 0, "new") is None
    assert raw == before


@pytest.mark.parametrize("raw", forms(user(result("look", "a"))), ids=["camel", "snake", "sdk"])
def test_renamed_results(raw: Any) -> None:
    """A result follows its call; Google's own ids stay."""
    assert GEMINI.read(accepted(GEMINI.renamed(raw, 0, "new")), 0).result_ids == ["new"]
    own = model({"toolCall": {"id": "s", "toolType": "URL_CONTEXT", "args": {}}})
    assert GEMINI.renamed(own, 0, "new") is None


@pytest.mark.parametrize(("first", "second"), list(zip(forms(user("a", "b")), forms(user("c")), strict=True)))
def test_joined(first: Any, second: Any) -> None:
    """K8: two messages of one side are one with the parts of both."""
    before = copy.deepcopy((first, second))
    joined = accepted(GEMINI.joined(first, second))
    assert [part.text for part in GEMINI.read(joined, 0).parts] == ["a", "b", "c"]
    assert (first, second) == before


@pytest.mark.parametrize(
    ("first", "second"), [(user("a"), model(call())), (user("a"), user(result())), (user(result()), user("a"))]
)
def test_not_joined(first: Any, second: Any) -> None:
    """Results stand in a message of their own."""
    assert GEMINI.joined(first, second) is None
    assert GEMINI.joined(user(result()), user(result())) == user(result(), result())


# -- recorded -----------------------------------------------------------------------------------

SENT = {"text", "args", "response", "name", "code", "output"}


def texts(value: Any, sent: bool = False) -> Iterator[str]:
    """The texts in a recorded part; taken without a reader."""
    if isinstance(value, str):
        if sent:
            yield value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
            yield from texts(item, sent or key in SENT)


def unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t").replace("\\\\", "\\")


def test_recorded_sessions() -> None:
    """C1: every text of every recorded part is in ours, no base64 is; the SDK's object reads alike."""
    seen = set()
    for path in recorded_sessions("gemini"):
        for position, raw in enumerate(load_session(path)):
            view = GEMINI.read(raw, position)
            assert len(view.parts) == len(raw["parts"])
            for part, read in zip(raw["parts"], view.parts, strict=True):
                seen |= set(part)
                ours = f"{read.name}\n{read.text}"
                assert [said for said in texts(part) if said not in ours and said not in unescaped(ours)] == [], (
                    path.name
                )
                data = next((part[key]["data"] for key in ("inlineData", "inline_data") if key in part), None)
                assert data is None or data[:80] not in ours
                signature = part.get("thoughtSignature") or part.get("thought_signature")
                assert not signature or signature not in ours
            assert GEMINI.read(types.Content.model_validate(raw), position) == view, path.name
    assert seen >= {"text", "functionCall", "function_call", "toolCall", "toolResponse", "inlineData", "thought"}
