"""Anthropic Messages: what is read of each kind of block, and what of it counts."""

import copy
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types.beta import BetaContentBlockParam, BetaThinkingConfigParam
from pydantic import TypeAdapter

import chat_compaction as cc
from chat_compaction.formats import AnthropicFormat, Media, Message, Part, PartKind, Role
from chat_compaction.testing import characters_counter

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
COMPACTION = PartKind.COMPACTION
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
PICTURE, PAGES, HIDDEN = Media("image"), Media("document"), Media("encrypted_reasoning")
BASE64 = "iVBORw0KGgo" * 400
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}


ANTHROPIC = AnthropicFormat()


def read(raw: Any) -> Message:
    return ANTHROPIC.read(raw, 0)


def part(block: Any) -> Part:
    """How one block is read."""
    (only,) = read({"role": "assistant", "content": [block]}).parts
    return only


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(content: Any = None, kind: str = "tool_result", call_id: Any = "a") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": call_id, "content": content}


@pytest.mark.parametrize(
    ("role", "ours"), [("user", Role.USER), ("assistant", Role.ASSISTANT), ("system", Role.SYSTEM)]
)
@pytest.mark.parametrize("content", ["words", [text("words")], (text("words"),)])
def test_roles_and_content(role: str, ours: Role, content: Any) -> None:
    """String and list content read alike; a system message may stand in the list (G5)."""
    assert read({"role": role, "content": content}) == Message(ours, (Part(TEXT, "words"),))


@pytest.mark.parametrize("fields", [{}, {"content": None}, {"content": ""}, {"content": []}])
def test_null_is_nothing(fields: dict[str, Any]) -> None:
    """C1: null content is zero."""
    assert read({"role": "user", **fields}) == Message(Role.USER)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (text("words"), Part(TEXT, "words")),
        (text(None), Part(TEXT)),
        ({**text("words"), "citations": [{"cited_text": "long"}], "cache_control": {}}, Part(TEXT, "words")),
        (IMAGE, Part(MEDIA, media=(PICTURE,))),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Part(MEDIA, media=(PICTURE,))),
        ({"type": "thinking", "thinking": "hm", "signature": BASE64}, Part(REASONING, "hm", signed=True)),
        ({"type": "thinking", "thinking": "hm"}, Part(REASONING, "hm")),
        (
            {"type": "thinking", "thinking": "", "signature": BASE64},
            Part(REASONING, media=(HIDDEN,), signed=True),
        ),
        (
            {"type": "redacted_thinking", "data": BASE64},
            Part(REASONING, media=(HIDDEN,), signed=True),
        ),
        ({"type": "container_upload", "file_id": "file_1"}, Part(OPAQUE)),
        ({"type": "compaction", "content": "in short"}, Part(COMPACTION, "in short")),
        (
            {"type": "compaction", "content": 'a "b"', "encrypted_content": BASE64, "signature": BASE64},
            Part(COMPACTION, 'a "b"', media=(HIDDEN,)),
        ),
        (
            {"type": "compaction", "content": "in short", "tool_changes": [{"type": "tool_removal", "tool": "look"}]},
            Part(COMPACTION, 'in short\n{"tool_changes":[{"tool":"look"}]}'),
        ),
        ({"type": "compaction", "content": None, "encrypted_content": None}, Part(OPAQUE)),
        (
            {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "refund"}},
            Part(OPAQUE, '{"tool":{"name":"refund"}}'),
        ),
        (
            {"type": "search_result", "source": "https://a.b", "title": "t", "content": [text("words")]},
            Part(OPAQUE, '{"source":"https://a.b","title":"t","content":[{"text":"words"}]}'),
        ),
        ({"type": "brand_new", "payload": "words", "extra": None}, Part(OPAQUE, '{"payload":"words"}')),
    ],
)
def test_blocks(block: dict[str, Any], expected: Part) -> None:
    """C1: text counts as it is, media and encrypted reasoning by a flat rule, an unknown block by its JSON."""
    assert part(block) == expected


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
@pytest.mark.parametrize(("arguments", "json"), [({"q": "é", "n": None}, '{"q":"é","n":null}'), ({}, "{}"), (None, "")])
def test_calls(kind: str, arguments: Any, json: str) -> None:
    """C1, G2: the caller's tools, Anthropic's and those of an MCP server are called alike; input counts as JSON."""
    block = {"type": kind, "id": "a", "name": "look", "input": arguments, "caller": {"type": "direct"}}
    assert part(block) == Part(CALL, json, "look", "a")


@pytest.mark.parametrize(
    ("content", "words", "media"),
    [
        (None, "", ()),
        ("sunny", "sunny", ()),
        ([], "", ()),
        ([text("sunny"), text("cold")], "sunny\ncold", ()),
        ([text("see"), IMAGE, IMAGE], "see", (PICTURE, PICTURE)),
        ([{"type": "tool_reference", "tool_name": "refund"}], '{"tool_name":"refund"}', ()),
        ([{"words": "no type"}], '{"words":"no type"}', ()),
        ([{"type": "tool_use", "id": "b", "name": "x", "input": {}}], '{"name":"x","input":{}}', ()),
    ],
)
def test_results(content: Any, words: str, media: tuple[Media, ...]) -> None:
    """C1: a result counts its text, and an image in it by the flat rule, never by its base64."""
    assert part(result(content)) == Part(RESULT, words, call_id="a", media=media)
    assert part({**result(content), "is_error": True}) == part(result(content, "mcp_tool_result"))


@pytest.mark.parametrize(
    ("kind", "content", "words", "media"),
    [
        (
            "web_search_tool_result",
            [
                {
                    "type": "web_search_result",
                    "title": "t",
                    "url": "u",
                    "page_age": None,
                    "encrypted_content": BASE64,
                }
            ]
            * 2,
            '{"title":"t","url":"u"}\n{"title":"t","url":"u"}',
            (HIDDEN,) * 2,
        ),
        (
            "web_search_tool_result",
            {"type": "web_search_tool_result_error", "error_code": "unavailable"},
            '{"error_code":"unavailable"}',
            (),
        ),
        (
            "bash_code_execution_tool_result",
            {"type": "bash_code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0, "content": []},
            '{"stdout":"1\\n","stderr":"","return_code":0,"content":[]}',
            (),
        ),
        (
            "code_execution_tool_result",
            {"type": "encrypted_code_execution_result", "encrypted_stdout": BASE64, "stderr": "", "return_code": 0},
            '{"stderr":"","return_code":0}',
            (HIDDEN,),
        ),
        (
            "tool_search_tool_result",
            {"type": "tool_search_tool_search_result", "tool_references": [{"tool_name": "refund"}]},
            '{"tool_references":[{"tool_name":"refund"}]}',
            (),
        ),
    ],
)
def test_results_of_server_tools(kind: str, content: Any, words: str, media: tuple[Media, ...]) -> None:
    """C1: what a server tool found counts by its JSON; what is encrypted in there by a flat rule, one for each."""
    assert part(result(content, kind)) == Part(RESULT, words, call_id="a", media=media)


DOCUMENTS: list[tuple[dict[str, Any], str, tuple[Media, ...]]] = [
    ({"source": {"type": "base64", "data": BASE64}}, "", (PAGES,)),
    ({"source": {"type": "url", "url": "https://a.b"}, "title": "t", "context": "c"}, "t\nc", (PAGES,)),
    ({"source": {"type": "text", "data": "words"}, "title": "t", "citations": {"enabled": True}}, "t\nwords", ()),
    ({"source": {"type": "text", "data": ""}}, "", ()),
    ({"source": {"type": "content", "content": "words"}}, "words", ()),
    ({"source": {"type": "content", "content": [text("words"), IMAGE]}}, "words", (PICTURE,)),
    ({"source": None, "title": 7}, "", (PAGES,)),
]


@pytest.mark.parametrize(("fields", "words", "media"), DOCUMENTS)
def test_documents(fields: dict[str, Any], words: str, media: tuple[Media, ...]) -> None:
    """C1: a document that is sent as text counts as text; another by the flat rule; also in a result."""
    block = {"type": "document", **fields}
    assert part(block) == Part(MEDIA, words, media=media)
    assert part(result([block])) == Part(RESULT, words, call_id="a", media=media)
    fetched = {"type": "web_fetch_result", "url": "https://a.b", "content": block}
    page = f"https://a.b\n{words}" if words else "https://a.b"
    assert part(result(fetched, "web_fetch_tool_result")) == Part(RESULT, page, call_id="a", media=media)


def test_a_result_beside_text() -> None:
    """G5: a user message may hold results and the user's words, in any order; all of it is read."""
    raw = {"role": "user", "content": [text("before"), result("sunny"), text("after")]}
    view = read(raw)
    assert [(part.kind, part.text) for part in view.parts] == [(TEXT, "before"), (RESULT, "sunny"), (TEXT, "after")]
    assert view.speaks_for_user
    assert not view.opens_turn


def test_what_a_list_costs() -> None:
    """C1: 4 tokens a message, texts, names, arguments, media by their rule; with framing=False text alone."""
    history = [
        {"role": "user", "content": [text("12345"), IMAGE]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "123", "signature": BASE64},
                {"type": "redacted_thinking", "data": BASE64},
                {"type": "tool_use", "id": "a", "name": "look", "input": {}},
            ],
        },
        {"role": "user", "content": [result([text("1234"), IMAGE])]},
        {"role": "assistant", "content": None},
    ]
    costs = cc.MediaCosts(image=1000, encrypted_reasoning=500)
    framed = cc.MessageIndex.from_messages(history, counter=len, media_costs=costs)
    assert framed.value(cc.tokens) == 4 * 4 + (5 + 1000) + (3 + 500 + 4 + 2) + (4 + 1000)
    assert cc.MessageIndex.from_messages(history, counter=characters_counter()).value(cc.tokens) == 5 + 3 + 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (7, ".content must be a string or a list, got 7"),
        ({"type": "text", "text": "private"}, ".content must be a string or a list, got a dict"),
        (["private"], ".content[0] must be an object, got a str"),
        ([text("a"), None], ".content[1] must be an object, got None"),
        ([text(["private"])], ".content[0].text must be a string, got a list"),
        ([{"type": "thinking", "thinking": {}}], ".content[0].thinking must be a string, got a dict"),
        ([{"type": "tool_use", "name": "x", "input": {}}], ".content[0].id must be a string, got None"),
        ([{"type": "tool_use", "id": 7, "name": "x"}], ".content[0].id must be a string, got 7"),
        ([{"type": "tool_use", "id": "a", "name": 7}], ".content[0].name must be a string, got 7"),
        ([result(call_id=None)], ".content[0].tool_use_id must be a string, got None"),
        ([result(call_id=b"private")], ".content[0].tool_use_id must be a string, got a bytes"),
        ([result(7)], ".content[0].content must be a string or a list, got 7"),
        ([result(["private"])], ".content[0].content[0] must be an object, got a str"),
        ([result([text(7)])], ".content[0].content[0].text must be a string, got 7"),
        (
            [{"type": "document", "source": {"type": "text", "data": 7}}],
            ".content[0].source.data must be a string, got 7",
        ),
        (
            [{"type": "document", "source": {"type": "content", "content": [text("a"), text([])]}}],
            ".content[0].source.content[1].text must be a string, got a list",
        ),
    ],
)
def test_what_cannot_be_read(content: Any, message: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        ANTHROPIC.read({"role": "user", "content": content}, 5)
    assert str(caught.value) == f"messages[5]{message}"
    assert caught.value.position == 5


@pytest.mark.parametrize(("fields", "parts"), [({"output_config": {"effort": "low"}}, (Part(OPAQUE),)), ({}, ())])
def test_a_system_message_that_sets_the_effort(fields: dict[str, Any], parts: tuple[Part, ...]) -> None:
    """Such a message has no content, and is not empty for all that."""
    raw = {"role": "system", "content": [], **fields}
    assert read(raw) == Message(Role.SYSTEM, parts)
    assert ANTHROPIC.without(raw, set(range(len(parts)))) is None


# -- writing ------------------------------------------------------------------------------------

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": BASE64}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def accepted(raw: Any) -> Message:
    """The view of a message whose every block the SDK's types take."""
    adapter: TypeAdapter[Any] = TypeAdapter(BetaContentBlockParam)
    for block in raw["content"] if isinstance(raw, dict) else raw.content:
        adapter.validate_python(block if isinstance(block, dict) else block.model_dump())
    return read(raw)


ASKED = assistant(THOUGHT, text("so"), use("a"), use("b"))
OWN = AnthropicMessage.construct(None, type="message", **ASKED)


@pytest.mark.parametrize("raw", [ASKED, OWN], ids=["dict", "sdk"])
@pytest.mark.parametrize("parts", [{0}, {2, 3}, {0, 1, 3}])
def test_without(raw: Any, parts: set[int]) -> None:
    """K8: parts leave a copy, by their number; the message is as it was."""
    before = copy.deepcopy(raw)
    kept = tuple(part for number, part in enumerate(read(raw).parts) if number not in parts)
    assert accepted(ANTHROPIC.without(raw, parts)) == Message(Role.ASSISTANT, kept)
    assert raw == before


@pytest.mark.parametrize("raw", [ASKED, OWN, assistant(THOUGHT), {"role": "user", "content": "words"}])
def test_nothing_left(raw: Any) -> None:
    """A message without parts is none."""
    assert ANTHROPIC.without(raw, set(range(len(read(raw).parts)))) is None


@pytest.mark.parametrize("raw", [ASKED, OWN], ids=["dict", "sdk"])
def test_renamed_calls(raw: Any) -> None:
    """K8: a call gets another id in a copy."""
    before = copy.deepcopy(raw)
    assert accepted(ANTHROPIC.renamed(raw, 3, "new")).call_ids == ["a", "new"]
    assert raw == before


def test_renamed_results() -> None:
    """A result follows its call; text has no id, and those of Anthropic's own tools are not the caller's to choose."""
    raw = user(result("seen"), result("seen", call_id="b"), text("and?"))
    before = copy.deepcopy(raw)
    assert accepted(ANTHROPIC.renamed(raw, 0, "new")).result_ids == ["new", "b"]
    assert raw == before
    assert ANTHROPIC.renamed(raw, 2, "new") is None
    own = assistant(SEARCH, result([], "web_search_tool_result", "srvtoolu_1"))
    assert [ANTHROPIC.renamed(own, part, "new") for part in (0, 1)] == [None, None]


@pytest.mark.parametrize(
    ("first", "second", "content"),
    [
        (user(result("seen")), user(text("and?")), [result("seen"), text("and?")]),
        (user(text("wait")), user(result("seen")), [result("seen"), text("wait")]),
        ({"role": "user", "content": "one"}, {"role": "user", "content": "two"}, [text("one"), text("two")]),
        ({"role": "user", "content": "one"}, {"role": "user", "content": ""}, [text("one")]),
        ({"role": "user", "content": None}, user(IMAGE), [IMAGE]),
        (assistant(text("one")), assistant(THOUGHT, use("a")), [text("one"), THOUGHT, use("a")]),
    ],
)
def test_joined(first: dict[str, Any], second: dict[str, Any], content: list[Any]) -> None:
    """K8: two messages of one side are one; a user's results come first, as the API asks."""
    before = copy.deepcopy((first, second))
    joined = ANTHROPIC.joined(first, second)
    assert joined == {"role": first["role"], "content": content}
    assert len(accepted(joined).parts) == len(content)
    assert (first, second) == before


def test_joined_to_the_sdks_object() -> None:
    """A response and what continues it are one, as after ``pause_turn``."""
    joined = ANTHROPIC.joined(OWN, assistant(text("more")))
    assert accepted(joined).parts == (*read(ASKED).parts, Part(TEXT, "more"))
    assert len(OWN.content) == 4


@pytest.mark.parametrize(("first", "second"), [("user", "assistant"), ("user", "system"), ("system", "system")])
def test_not_joined(first: str, second: str) -> None:
    """Two sides are never one; nor are two system messages, of which each has its own life."""
    assert ANTHROPIC.joined({"role": first, "content": "one"}, {"role": second, "content": "two"}) is None


def test_request_options() -> None:
    """What a request sets so that bound thinking is dropped is what the SDK calls it."""
    adapter: TypeAdapter[Any] = TypeAdapter(BetaThinkingConfigParam)
    thinking = ANTHROPIC.request_options["thinking"]
    assert adapter.validate_python(thinking) == thinking
    assert thinking["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert ANTHROPIC.request_options["betas"] == ["thinking-binding-controls-2026-08-01"]
