"""The messages of the pi coding agent: its own roles and blocks."""

import copy
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Media, Message, Part, PartKind, Role
from chat_compaction.formats.pi_session import PiSessionFormat

TEXT, REASONING, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.OPAQUE
CALL, RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
FORMAT = PiSessionFormat()
IMAGE = {"type": "image", "data": "iVBORw0KGgo" * 400, "mimeType": "image/png"}
BLOCK = {"type": "toolCall", "id": "a", "name": "bash", "arguments": {"command": "ls"}}


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


def assistant(*blocks: Any, **fields: Any) -> dict[str, Any]:
    base = {"role": "assistant", "api": "anthropic-messages", "stopReason": "toolUse", "timestamp": 1}
    return {**base, "content": list(blocks), **fields}


def result(call_id: Any = "a", content: Any = None) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content or [text("out")]}


@pytest.mark.parametrize(
    ("raw", "role", "words"),
    [
        ({"role": "user", "content": "q"}, Role.USER, "q"),
        ({"role": "user", "content": [text("q")]}, Role.USER, "q"),
        (assistant(text("a")), Role.ASSISTANT, "a"),
        ({"role": "bashExecution", "command": "ls", "output": "x\n", "exitCode": 0}, Role.USER, "ls\nx\n"),
        ({"role": "compactionSummary", "summary": "s", "tokensBefore": 9}, Role.USER, "s"),
        ({"role": "branchSummary", "summary": "s", "fromId": "x"}, Role.USER, "s"),
        ({"role": "custom", "customType": "e", "content": "c", "display": True}, Role.USER, "c"),
        ({"role": "hookMessage", "customType": "e", "content": [text("c")]}, Role.USER, "c"),
    ],
)
def test_roles(raw: Any, role: Role, words: str) -> None:
    """What pi sends as a user's message is one."""
    assert FORMAT.read(raw, 0) == Message(role, (Part(TEXT, words),))


def test_a_command_that_is_not_sent() -> None:
    """C1: ``!!`` runs a command beside the conversation."""
    raw = {"role": "bashExecution", "command": "ls", "output": "x", "excludeFromContext": True}
    assert FORMAT.read(raw, 0) == Message(Role.ASSISTANT)


@pytest.mark.parametrize("content", [None, "", []])
def test_null_is_nothing(content: Any) -> None:
    """C1: null content is zero."""
    assert FORMAT.read({"role": "user", "content": content}, 0) == Message(Role.USER)


@pytest.mark.parametrize(
    ("api", "fields", "expected"),
    [
        ("anthropic-messages", {"thinking": "hm", "thinkingSignature": "s"}, Part(REASONING, "hm", signed=True)),
        ("anthropic-messages", {"thinking": "hm"}, Part(REASONING, "hm")),
        (
            "bedrock-converse-stream",
            {"thinking": "", "thinkingSignature": "s", "redacted": True},
            Part(REASONING, media=(Media("encrypted_reasoning"),), signed=True),
        ),
        ("google-generative-ai", {"thinking": "hm", "thinkingSignature": "s"}, Part(REASONING, "hm")),
        (
            "openai-responses",
            {"thinking": "hm", "thinkingSignature": '{"type":"reasoning","encrypted_content":"x"}'},
            Part(REASONING, "hm", media=(Media("encrypted_reasoning"),)),
        ),
    ],
)
def test_thinking(api: str, fields: dict[str, Any], expected: Part) -> None:
    """Only Anthropic binds its signatures to what stands ahead; an encrypted item counts flat (C1)."""
    assert FORMAT.read(assistant({"type": "thinking", **fields}, api=api), 0).parts == (expected,)


def test_calls_and_results() -> None:
    """G2: tied by id; an image in a result counts by its rule, an unknown block by its JSON (C1)."""
    assert FORMAT.read(assistant(BLOCK), 0).parts == (Part(CALL, '{"command":"ls"}', "bash", "a"),)
    view = FORMAT.read(result(content=[text("see"), IMAGE, {"type": "new", "x": 1}]), 0)
    assert (view.role, view.parts[0].kind, view.parts[0].text) == (Role.TOOL, RESULT, 'see\n{"x":1}')
    assert [media.kind for media in view.parts[0].media] == ["image"]
    history = [{"role": "user", "content": "q"}, assistant(BLOCK), result(), assistant(text("done"))]
    index = cc.MessageIndex.from_messages(history, format=FORMAT)
    assert [group.positions for group in index.groups] == [(0,), (1, 2), (3,)]
    assert index.problems == ()


def test_writing() -> None:
    """K8: copies, never changes; a result leaves whole; two of a user's own messages become one."""
    raw, answer = assistant(text("a"), BLOCK), result()
    before = copy.deepcopy((raw, answer))
    assert FORMAT.without(raw, {1}) == assistant(text("a"))
    assert FORMAT.without(raw, {0, 1}) is None
    assert FORMAT.without(answer, {0}) is None
    assert FORMAT.without({"role": "user", "content": "q"}, {0}) is None
    assert FORMAT.renamed(raw, 1, "b") == assistant(text("a"), {**BLOCK, "id": "b"})
    assert FORMAT.renamed(answer, 0, "b") == result("b")
    user = {"role": "user", "content": "q", "timestamp": 1}
    assert FORMAT.joined(user, {"role": "user", "content": [IMAGE]}) == {**user, "content": [text("q"), IMAGE]}
    assert FORMAT.joined({"role": "user", "content": ""}, user) == {"role": "user", "content": [text("q")]}
    assert FORMAT.joined(user, raw) is None
    assert (raw, answer) == before


def test_detection() -> None:
    """A role or a block that only pi has, or an assistant's message with its API and the reason it stopped."""
    assert all(FORMAT.claims(raw) for raw in (result(), assistant(text("a")), {"content": [BLOCK]}))
    assert not FORMAT.claims({"role": "user", "content": [text("q")]})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"role": "tool"}, ".role must be one of user, assistant, toolResult, "),
        ({"role": "user", "content": 7}, ".content must be a string or a list, got 7"),
        ({"role": "user", "content": [{"text": "a"}]}, ".content[0].type is missing"),
        (assistant(text(7)), ".content[0].text must be a string, got 7"),
        (assistant({**BLOCK, "id": None}), ".content[0].id must be a string, got None"),
        (assistant({"type": "thinking", "thinking": 7}), ".content[0].thinking must be a string, got 7"),
        (result(7), ".toolCallId must be a string, got 7"),
        ({"role": "branchSummary", "summary": []}, ".summary must be a string, got a list"),
    ],
)
def test_what_cannot_be_read(raw: Any, message: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        FORMAT.read(raw, 5)
    assert str(caught.value).startswith(f"messages[5]{message}")
