"""Anthropic Messages: what is read of each kind of block, and what of it counts."""

from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import AnthropicFormat, Message, Part, PartKind, Role
from chat_compaction.testing import characters_counter

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
BASE64 = "iVBORw0KGgo" * 400
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}


def read(raw: Any) -> Message:
    return AnthropicFormat().read(raw, 0)


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
        (IMAGE, Part(MEDIA, flat=("image",))),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Part(MEDIA, flat=("image",))),
        ({"type": "thinking", "thinking": "hm", "signature": BASE64}, Part(REASONING, "hm", signed=True)),
        ({"type": "thinking", "thinking": "hm"}, Part(REASONING, "hm")),
        (
            {"type": "thinking", "thinking": "", "signature": BASE64},
            Part(REASONING, flat=("encrypted_reasoning",), signed=True),
        ),
        (
            {"type": "redacted_thinking", "data": BASE64},
            Part(REASONING, flat=("encrypted_reasoning",), signed=True),
        ),
        ({"type": "container_upload", "file_id": "file_1"}, Part(OPAQUE)),
        ({"type": "compaction", "content": "in short"}, Part(OPAQUE, '{"content":"in short"}')),
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
    ("content", "words", "flat"),
    [
        (None, "", ()),
        ("sunny", "sunny", ()),
        ([], "", ()),
        ([text("sunny"), text("cold")], "sunny\ncold", ()),
        ([text("see"), IMAGE, IMAGE], "see", ("image", "image")),
        ([{"type": "tool_reference", "tool_name": "refund"}], '{"tool_name":"refund"}', ()),
        ([{"words": "no type"}], '{"words":"no type"}', ()),
        ([{"type": "tool_use", "id": "b", "name": "x", "input": {}}], '{"name":"x","input":{}}', ()),
    ],
)
def test_results(content: Any, words: str, flat: tuple[str, ...]) -> None:
    """C1: a result counts its text, and an image in it by the flat rule, never by its base64."""
    assert part(result(content)) == Part(RESULT, words, call_id="a", flat=flat)
    assert part({**result(content), "is_error": True}) == part(result(content, "mcp_tool_result"))


@pytest.mark.parametrize(
    ("kind", "content", "words", "flat"),
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
            ("encrypted_reasoning",) * 2,
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
            ("encrypted_reasoning",),
        ),
        (
            "tool_search_tool_result",
            {"type": "tool_search_tool_search_result", "tool_references": [{"tool_name": "refund"}]},
            '{"tool_references":[{"tool_name":"refund"}]}',
            (),
        ),
    ],
)
def test_results_of_server_tools(kind: str, content: Any, words: str, flat: tuple[str, ...]) -> None:
    """C1: what a server tool found counts by its JSON; what is encrypted in there by a flat rule, one for each."""
    assert part(result(content, kind)) == Part(RESULT, words, call_id="a", flat=flat)


DOCUMENTS: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"source": {"type": "base64", "data": BASE64}}, "", ("document",)),
    ({"source": {"type": "url", "url": "https://a.b"}, "title": "t", "context": "c"}, "t\nc", ("document",)),
    ({"source": {"type": "text", "data": "words"}, "title": "t", "citations": {"enabled": True}}, "t\nwords", ()),
    ({"source": {"type": "text", "data": ""}}, "", ()),
    ({"source": {"type": "content", "content": "words"}}, "words", ()),
    ({"source": {"type": "content", "content": [text("words"), IMAGE]}}, "words", ("image",)),
    ({"source": None, "title": 7}, "", ("document",)),
]


@pytest.mark.parametrize(("fields", "words", "flat"), DOCUMENTS)
def test_documents(fields: dict[str, Any], words: str, flat: tuple[str, ...]) -> None:
    """C1: a document that is sent as text counts as text; another by the flat rule; also in a result."""
    block = {"type": "document", **fields}
    assert part(block) == Part(MEDIA, words, flat=flat)
    assert part(result([block])) == Part(RESULT, words, call_id="a", flat=flat)
    fetched = {"type": "web_fetch_result", "url": "https://a.b", "content": block}
    page = f"https://a.b\n{words}" if words else "https://a.b"
    assert part(result(fetched, "web_fetch_tool_result")) == Part(RESULT, page, call_id="a", flat=flat)


def test_a_result_beside_text() -> None:
    """G5: a user message may hold results and the user's words, in any order; all of it is read."""
    raw = {"role": "user", "content": [text("before"), result("sunny"), text("after")]}
    view = read(raw)
    assert [(part.kind, part.text) for part in view.parts] == [(TEXT, "before"), (RESULT, "sunny"), (TEXT, "after")]
    assert view.speaks_for_user
    assert not view.opens_turn


def test_what_a_list_costs() -> None:
    """C1: 4 tokens a message, texts, names, arguments, flat media; with framing=False text alone."""
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
        AnthropicFormat().read({"role": "user", "content": content}, 5)
    assert str(caught.value) == f"messages[5]{message}"
    assert caught.value.position == 5
