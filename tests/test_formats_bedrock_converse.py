"""Bedrock Converse: what is read of each kind of block; and boto3's own validation takes what we write."""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

import chat_compaction as cc
from chat_compaction.formats import Media, Message, Part, PartKind, Role
from chat_compaction.formats.bedrock_converse import BedrockConverseFormat
from tests._shared import load_session, recorded_sessions

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
PIXELS = b"\x89PNG" * 100
CONVERSE = BedrockConverseFormat()
CACHE = {"cachePoint": {"type": "default"}}
IMAGE = {"image": {"format": "png", "source": {"bytes": PIXELS}}}
LOOK = {"type": "tool_reference", "name": "look"}
HIDDEN = Media("encrypted_reasoning")


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def call(call_id: str = "a", **arguments: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "look", "input": arguments}}


def result(*content: Any, call_id: str = "a") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), "status": "success"}}


def thought(words: str = "hm", **fields: str) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": words, **fields}}}


def document(**source: Any) -> dict[str, Any]:
    return {"document": {"name": "report", "format": "pdf", "source": source}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


@cache
def converse_input() -> Any:
    """What the operation takes, from botocore's own model; nothing is sent."""
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def refusal(*messages: Any, **request: Any) -> str:
    """What boto3 says of a request before it is sent; empty if it is sent."""
    params = {"modelId": "m", "messages": list(messages), **request}
    return str(ParamValidator().validate(params, converse_input()).generate_report())


BLOCKS: list[tuple[dict[str, Any], Part]] = [
    (text("words"), Part(TEXT, "words")),
    (text(""), Part(TEXT)),
    (IMAGE, Part(MEDIA, media=(Media("image"),))),
    (
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a"}}}},
        Part(MEDIA, media=(Media("image"),)),
    ),
    ({"video": {"format": "mp4", "source": {"bytes": PIXELS}}}, Part(MEDIA, media=(Media("video"),))),
    ({"audio": {"format": "mp3", "source": {"bytes": PIXELS}}}, Part(MEDIA, media=(Media("audio"),))),
    (document(bytes=PIXELS), Part(MEDIA, "report", media=(Media("document"),))),
    (document(text="words"), Part(MEDIA, "report\nwords")),
    (document(content=[text("some"), text("words")]), Part(MEDIA, "report\nsome\nwords")),
    (call(q="é", n=None), Part(CALL, '{"q":"é","n":null}', "look", "a")),
    (result(), Part(RESULT, call_id="a")),
    (result(text("some"), {"json": {"n": 1}}, text("words")), Part(RESULT, 'some\n{"n":1}\nwords', call_id="a")),
    (
        result(IMAGE, document(bytes=PIXELS), {"video": {"format": "mp4", "source": {"bytes": PIXELS}}}),
        Part(RESULT, "report", call_id="a", media=(Media("image"), Media("document"), Media("video"))),
    ),
    (thought(signature="s"), Part(REASONING, "hm", signed=True)),
    (thought(), Part(REASONING, "hm")),
    (thought("", signature="s"), Part(REASONING, media=(HIDDEN,), signed=True)),
    ({"reasoningContent": {"redactedContent": PIXELS}}, Part(REASONING, media=(HIDDEN,), signed=True)),
    ({"guardContent": {"text": {"text": "words", "qualifiers": ["query"]}}}, Part(TEXT, "words")),
    ({"guardContent": IMAGE}, Part(MEDIA, media=(Media("image"),))),
    ({"citationsContent": {"content": [text("some "), text("words")], "citations": []}}, Part(TEXT, "some words")),
    (
        {"searchResult": {"source": "https://a.b", "title": "t", "content": [text("words")]}},
        Part(OPAQUE, '{"source":"https://a.b","title":"t","content":[{"text":"words"}]}'),
    ),
    ({"toolRemoval": {"tool": LOOK}}, Part(OPAQUE, '{"toolRemoval":{"tool":{"name":"look"}}}')),
]


@pytest.mark.parametrize(("block", "expected"), BLOCKS)
def test_blocks(block: dict[str, Any], expected: Part) -> None:
    """C1: text counts as it is, media and encrypted reasoning by a rule; and boto3 knows each of these blocks."""
    assert CONVERSE.read(assistant(block), 0) == Message(Role.ASSISTANT, (expected,))
    assert refusal(assistant(block)) == ""


def test_a_block_that_is_new() -> None:
    """An unknown block counts by its JSON; bytes in it by a flat rule."""
    block = {"brandNew": {"words": "some", "bytes": PIXELS}}
    assert CONVERSE.read(user(block), 0).parts == (
        Part(OPAQUE, '{"brandNew":{"words":"some"}}', media=(Media("other"),)),
    )


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT, Role.SYSTEM])
@pytest.mark.parametrize(
    ("content", "parts"),
    [([text("hi")], (Part(TEXT, "hi"),)), ("hi", (Part(TEXT, "hi"),)), ("", ()), ([], ()), (None, ()), ([CACHE], ())],
)
def test_messages(role: Role, content: Any, parts: tuple[Part, ...]) -> None:
    """A cache point says nothing, so it is no part: results with one beside them are not the user's words (G5)."""
    assert CONVERSE.read({"role": role.value, "content": content}, 0) == Message(role, parts)
    assert not CONVERSE.read(user(result(), CACHE), 0).speaks_for_user


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"role": "tool", "content": []}, ".role must be one of user, assistant, system, got 'tool' {}"),
        ({"content": []}, ".role is missing {}"),
        (user({"type": "tool_use", "id": "a"}), ".content[0] has a type, as blocks of other formats have {}"),
        ({"role": "user", "content": 7}, ".content must be a list, got 7"),
        (user("private"), ".content[0] must be an object, got a str"),
        (user(text("a"), {"text": ["private"]}), ".content[1].text must be a string, got a list"),
        (assistant({"toolUse": "private"}), ".content[0].toolUse must be an object, got a str"),
        (assistant({"toolUse": {"name": "a"}}), ".content[0].toolUse.toolUseId must be a string, got None"),
        (assistant({"toolUse": {"toolUseId": "a", "name": 7}}), ".content[0].toolUse.name must be a string, got 7"),
        (user({"toolResult": {"content": []}}), ".content[0].toolResult.toolUseId must be a string, got None"),
        (user(result({"text": 7})), ".content[0].toolResult.content[0].text must be a string, got 7"),
        (user(result(7)), ".content[0].toolResult.content[0] must be an object, got 7"),
        (
            assistant({"reasoningContent": {"reasoningText": {"text": 7}}}),
            ".content[0].reasoningContent.reasoningText.text must be a string, got 7",
        ),
        (user(document(text=7)), ".content[0].document.source.text must be a string, got 7"),
        (user(document(content=[7])), ".content[0].document.source.content[0] must be an object, got 7"),
        (user({"document": "private"}), ".content[0].document must be an object, got a str"),
        (
            user({"guardContent": {"text": {"text": 7}}}),
            ".content[0].guardContent.text.text must be a string, got 7",
        ),
        (
            user({"citationsContent": {"content": [{"text": 7}]}}),
            ".content[0].citationsContent.content[0].text must be a string, got 7",
        ),
    ],
)
def test_what_cannot_be_read(raw: dict[str, Any], message: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        CONVERSE.read(raw, 5)
    assert str(caught.value) == "messages[5]" + message.format("(read as 'bedrock_converse'; format= names another)")


@pytest.mark.parametrize("block", [block for block, _ in BLOCKS if block] + [CACHE])
def test_claims(block: dict[str, Any]) -> None:
    """Only Converse names a block by its one key, without a type."""
    assert CONVERSE.claims(user(block))


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "user", "content": "hi"},
        user(),
        user({"type": "text", "text": "hi"}),
        user({"type": "image", "image": "data"}),
        user({"brandNew": 1}),
        {"role": "user", "parts": [text("hi")]},
    ],
)
def test_claims_nothing_of_others(raw: Any) -> None:
    """A block with a ``type`` is another's."""
    assert not CONVERSE.claims(raw)


# -- writing ------------------------------------------------------------------------------------

ASKED = assistant(thought(signature="s"), text("so"), CACHE, call("a"), call("b"))
ANSWERED = user(result(text("seen"), call_id="a"), result(IMAGE, call_id="b"), CACHE)


@pytest.mark.parametrize(
    ("raw", "parts", "left"),
    [
        (ASKED, {2, 3}, [thought(signature="s"), text("so"), CACHE]),
        (ASKED, {0}, [text("so"), CACHE, call("a"), call("b")]),
        (ASKED, {0, 1}, [call("a"), call("b")]),
        (ANSWERED, {0}, [result(IMAGE, call_id="b"), CACHE]),
        (ANSWERED, {1}, [result(text("seen"), call_id="a"), CACHE]),
    ],
)
def test_without(raw: dict[str, Any], parts: set[int], left: list[Any]) -> None:
    """K8: parts leave a copy by their number in the view; a cache point leaves with all that it follows."""
    before = copy.deepcopy(raw)
    written = CONVERSE.without(raw, parts)
    assert written == {"role": raw["role"], "content": left}
    assert refusal(written) == ""
    assert raw == before


def test_nothing_left() -> None:
    """A message in which only a cache point is left is none."""
    assert CONVERSE.without(ANSWERED, {0, 1}) is None
    assert CONVERSE.without({"role": "user", "content": "hi"}, {0}) is None


@pytest.mark.parametrize(("raw", "part", "ids"), [(ASKED, 2, ["new", "b"]), (ASKED, 3, ["a", "new"])])
def test_renamed_calls(raw: dict[str, Any], part: int, ids: list[str]) -> None:
    """K8: a call gets another id in a copy."""
    before = copy.deepcopy(raw)
    written = CONVERSE.renamed(raw, part, "new")
    assert CONVERSE.read(written, 0).call_ids == ids
    assert refusal(written) == ""
    assert raw == before


def test_renamed_results() -> None:
    """A result follows its call; text has no id, and those of a provider's own tools stay."""
    written = CONVERSE.renamed(ANSWERED, 1, "new")
    assert CONVERSE.read(written, 0).result_ids == ["a", "new"]
    assert refusal(written) == ""
    assert CONVERSE.renamed(ASKED, 1, "new") is None
    own = {"toolUse": {"toolUseId": "s", "name": "search", "input": {}, "type": "server_tool_use"}}
    assert CONVERSE.renamed(assistant(own), 0, "new") is None


@pytest.mark.parametrize(
    ("first", "second", "content"),
    [
        (ANSWERED, user(text("and?")), [*ANSWERED["content"], text("and?")]),
        (user(text("wait"), CACHE), user(result()), [result(), text("wait"), CACHE]),
        (assistant(text("one")), assistant(thought(), call()), [text("one"), thought(), call()]),
        ({"role": "user", "content": "one"}, {"role": "user", "content": ""}, [text("one")]),
    ],
)
def test_joined(first: dict[str, Any], second: dict[str, Any], content: list[Any]) -> None:
    """K8: two messages of one side are one; a user's results come first."""
    before = copy.deepcopy((first, second))
    joined = CONVERSE.joined(first, second)
    assert joined == {"role": first["role"], "content": content}
    assert refusal(joined) == ""
    assert (first, second) == before


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_not_joined(role: str) -> None:
    """Two sides are never one; nor are two system messages."""
    first = "system" if role == "system" else "user"
    assert CONVERSE.joined({"role": first, "content": [text("a")]}, {"role": role, "content": [text("b")]}) is None


def test_request_options() -> None:
    """What a request sets so that bound reasoning is dropped is a part of Converse's request."""
    assert refusal(user(text("hi")), **CONVERSE.request_options) == ""
    fields = CONVERSE.request_options["additionalModelRequestFields"]
    assert fields["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


# -- recorded -----------------------------------------------------------------------------------


def texts(value: Any, key: str = "") -> Iterator[str]:
    """The texts in a recorded block; taken without a reader."""
    if isinstance(value, str):
        if key in ("text", "name", "json", "input"):
            yield value
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else ((key, item) for item in value):
            yield from texts(item, key if key in ("json", "input") else name)


def test_recorded_sessions() -> None:
    """C1: every text of every recorded message is in ours, no base64 is; boto3 takes every message."""
    seen = set()
    for path in recorded_sessions("bedrock_converse"):
        history = load_session(path)
        assert refusal(*history) == "", path.name
        for position, raw in enumerate(history):
            view = CONVERSE.read(raw, position)
            ours = "\n".join([f"{part.name}\n{part.text}" for part in view.parts])
            assert [said for said in texts(raw["content"]) if said not in ours] == [], (path.name, position)
            assert max(map(len, ours.split()), default=0) < 200
            seen |= {key for block in raw["content"] for key in block}
    assert seen == {"text", "toolUse", "toolResult", "image"}
