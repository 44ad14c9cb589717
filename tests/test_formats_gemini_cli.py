"""Gemini CLI's messages: calls and results in one, and what is for the eye only."""

import copy
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Media, Message, Part, PartKind, Role
from chat_compaction.formats.gemini_cli import GeminiCLIFormat

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
FORMAT = GeminiCLIFormat()
BASE64 = "iVBORw0KGgo" * 400


def message(kind: Any, content: Any = "", **fields: Any) -> dict[str, Any]:
    return {"id": "m", "timestamp": "t", "type": kind, "content": content, **fields}


def tool(call_id: Any = "c", result: Any = None, name: Any = "look", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": {"q": 1}, "status": "success", "result": result, **fields}


def response(call_id: str = "c", output: Any = "found", **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": "look", "response": {"output": output}, **fields}}


def parts(raw: Any) -> tuple[Part, ...]:
    return FORMAT.read(raw, 0).parts


THOUGHTS = [{"subject": "Looking", "description": "I look.", "timestamp": "t"}, {"description": "Hm."}]
FULL = message("gemini", "See.", thoughts=THOUGHTS, toolCalls=[tool("a", [response("a")]), tool("b", "text")])


def test_a_message_of_the_model() -> None:
    """Thoughts, text, then each call with its result: both count, and are one group."""
    assert FORMAT.read(FULL, 0) == Message(
        Role.ASSISTANT,
        (
            Part(REASONING, "Looking\nI look."),
            Part(REASONING, "Hm."),
            Part(TEXT, "See."),
            Part(CALL, '{"q":1}', "look", "a"),
            Part(RESULT, "found", "look", "a"),
            Part(CALL, '{"q":1}', "look", "b"),
            Part(RESULT, "text", "look", "b"),
        ),
    )
    index = cc.MessageIndex.from_messages([message("user", "q"), FULL, FULL], format=FORMAT)
    assert [group.positions for group in index.groups] == [(0,), (1,), (2,)]
    assert index.problems == ()


@pytest.mark.parametrize(
    "raw",
    [message(kind, "words") for kind in ("info", "error", "warning")]
    + [message("user", text) for text in ("/help", " ?", "<session_context>x", "<hook_context>x")],
)
def test_what_is_not_sent_counts_nothing(raw: Any) -> None:
    """C1: what Gemini CLI leaves out when it resumes has no text, and opens no turn."""
    view = FORMAT.read(raw, 0)
    assert view == Message(Role.ASSISTANT)
    assert not view.opens_turn


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("words", (Part(TEXT, "words"),)),
        ("", ()),
        (None, ()),
        ({"text": "words"}, (Part(TEXT, "words"),)),
        (["a", {"text": "b"}], (Part(TEXT, "a"), Part(TEXT, "b"))),
        ([{"text": "hm", "thought": True}], (Part(REASONING, "hm"),)),
        ([{"inlineData": {"mimeType": "image/png", "data": BASE64}}], (Part(MEDIA, media=(Media("image"),)),)),
        ([{"fileData": {"mimeType": "audio/wav", "fileUri": "u"}}], (Part(MEDIA, media=(Media("audio"),)),)),
        ([{"newThing": "x"}], (Part(OPAQUE, '{"newThing":"x"}'),)),
    ],
)
def test_content(content: Any, expected: tuple[Part, ...]) -> None:
    """A string, a part or a list of both; media by a rule of its own (C1)."""
    found = parts(message("user", content))
    assert [attrs_without_size(part) for part in found] == list(expected)


def attrs_without_size(part: Part) -> Part:
    return Part(part.kind, part.text, part.name, part.call_id, tuple(Media(media.kind) for media in part.media))


def test_content_that_holds_all_stands_for_all() -> None:
    """Newer versions record the parts as sent: thoughts and calls beside them are not counted again."""
    call = {"functionCall": {"id": "a", "name": "look", "args": {}}}
    raw = message("gemini", [{"text": "hm", "thought": True}, call], thoughts=THOUGHTS, toolCalls=[tool("a", "found")])
    assert parts(raw) == (Part(REASONING, "hm"), Part(CALL, "{}", "look", "a"), Part(RESULT, "found", "look", "a"))
    assert parts(message("gemini", [{"functionCall": {"name": 7}}])) == (Part(CALL),)


@pytest.mark.parametrize(
    ("result", "text", "kinds"),
    [
        ("text", "text", ()),
        (response(output="x"), "x", ()),
        ([response(), {"text": "more"}, "odd"], "found\nmore\nodd", ()),
        (
            [response(parts=[{"inlineData": {"mimeType": "image/png", "data": BASE64}}])],
            "found",
            ("image",),
        ),
        (
            [response(), {"inlineData": {"mimeType": "application/pdf", "data": "x"}}],
            "found",
            ("document",),
        ),
    ],
)
def test_results(result: Any, text: str, kinds: tuple[str, ...]) -> None:
    """C1: what a tool gave back, never by the length of its base64; ``resultDisplay`` is for the eye."""
    (_, found) = parts(message("gemini", toolCalls=[tool(result=result, resultDisplay="shown")]))
    assert (found.text, tuple(media.kind for media in found.media)) == (text, kinds)


def test_a_call_without_a_result_is_open() -> None:
    """A tool that was cancelled: the call stands unanswered."""
    raw = message("gemini", toolCalls=[tool(call_id=None, status="cancelled")])
    assert parts(raw) == (Part(CALL, '{"q":1}', "look"),)
    history = [message("user", "q"), raw, message("user", "q"), message("user", "q")]
    found = cc.MessageIndex.from_messages(history, format=FORMAT).problems
    assert [problem.rule for problem in found] == ["unanswered_call"]


@pytest.mark.parametrize(
    ("gone", "kept"),
    [
        ({0}, {"thoughts": THOUGHTS[1:]}),
        ({2}, {"content": ""}),
        ({3}, {"toolCalls": FULL["toolCalls"][1:]}),
        ({3, 4}, {"toolCalls": FULL["toolCalls"][1:]}),
        ({4}, {"toolCalls": [{**FULL["toolCalls"][0], "result": None}, FULL["toolCalls"][1]]}),
    ],
)
def test_without(gone: set[int], kept: dict[str, Any]) -> None:
    """K8: a copy without these parts; a call takes its result along."""
    before = copy.deepcopy(FULL)
    assert FORMAT.without(FULL, gone) == {**FULL, **kept}
    assert before == FULL


def test_without_anything() -> None:
    """A message of which nothing is kept leaves."""
    assert FORMAT.without(FULL, range(7)) is None
    assert FORMAT.without(message("user", ["a", {"text": "b"}]), {0}) == message("user", [{"text": "b"}])


def test_renamed() -> None:
    """A call and its result share their id, there and in what the tool gave back."""
    before = copy.deepcopy(FULL)
    renamed: Any = FORMAT.renamed(FULL, 4, "new")
    assert [part.call_id for part in parts(renamed)] == [None, None, None, "new", "new", "b", "b"]
    assert renamed["toolCalls"][0]["result"][0]["functionResponse"]["id"] == "new"
    odd: Any = FORMAT.renamed(message("gemini", toolCalls=[tool(result=["odd"])]), 0, "new")
    assert odd["toolCalls"][0]["result"] == ["odd"]
    other: Any = FORMAT.renamed(FULL, 5, "new")
    assert other["toolCalls"][1] == {**FULL["toolCalls"][1], "id": "new"}
    assert FORMAT.renamed(FULL, 2, "new") is None
    assert before == FULL


def test_detection() -> None:
    """The type ``gemini``, or another of its types beside a time."""
    assert all(FORMAT.claims(raw) for raw in (FULL, {"type": "gemini"}, message("user", "q"), message("info", "i")))
    assert not any(FORMAT.claims(raw) for raw in ({"type": "user", "content": "q"}, {"role": "user", "content": "q"}))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (message("model"), ".type must be one of user, gemini, info, error, warning, got a str"),
        ({"content": "a"}, ".type is missing (read as 'gemini_cli'"),
        (message("user", 7), ".content must be a string, a part or a list of them, got 7"),
        (message("user", [7]), ".content[0] must be an object, got 7"),
        (message("gemini", thoughts=[{"subject": 7}]), ".thoughts[0].subject must be a string, got 7"),
        (message("gemini", toolCalls=[tool(7)]), ".toolCalls[0].id must be a string, got 7"),
        (message("gemini", toolCalls=[tool(name=7)]), ".toolCalls[0].name must be a string, got 7"),
        (message("gemini", toolCalls={}), ".toolCalls must be a list, got a dict"),
    ],
)
def test_what_cannot_be_read(raw: Any, text: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        FORMAT.read(raw, 5)
    assert str(caught.value).startswith(f"messages[5]{text}")
