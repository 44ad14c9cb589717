"""Mistral's chat completions: what differs from OpenAI's, and the order of speakers."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Media, Message, MistralFormat, OpenAIChatFormat, Part, PartKind, Role
from tests._shared import load_session, shared_dir

TEXT, REASONING, CALL, RESULT = PartKind.TEXT, PartKind.REASONING, PartKind.TOOL_CALL, PartKind.TOOL_RESULT
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "text", "text": "so"}]}
USER, SYSTEM = {"role": "user", "content": "go"}, {"role": "system", "content": "be brief"}
SAID = {"role": "assistant", "content": "gone"}
ASKED = {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefgh1", "function": {"name": "look"}}]}
TOLD = {"role": "tool", "tool_call_id": "abcdefgh1", "name": "look", "content": "seen"}


def read(raw: Any) -> Message:
    return MistralFormat().read(raw, 0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([THINKING, {"type": "text", "text": "done"}], [Part(REASONING, "hm\nso"), Part(TEXT, "done")]),
        ([{**THINKING, "signature": "s", "closed": True}], [Part(REASONING, "hm\nso")]),
        (
            [{"type": "thinking", "thinking": [{"type": "reference", "reference_ids": [1]}]}],
            [Part(REASONING, '{"reference_ids":[1]}')],
        ),
        ([{"type": "reference", "reference_ids": [1, 2]}], [Part(PartKind.OPAQUE, '{"reference_ids":[1,2]}')]),
        (
            [{"type": "image_url", "image_url": "https://example.com/a"}],
            [Part(PartKind.MEDIA, media=(Media("image"),))],
        ),
        (
            [{"type": "document_url", "document_url": "https://example.com/a"}],
            [Part(PartKind.MEDIA, media=(Media("document"),))],
        ),
        (
            [{"type": "input_audio", "input_audio": "https://example.com/a"}],
            [Part(PartKind.MEDIA, media=(Media("audio"),))],
        ),
    ],
)
def test_content(content: list[Any], expected: list[Part]) -> None:
    """C1: thinking is a list of parts, which counts as its text and is bound to nothing; media count by their rule."""
    assert read({"role": "assistant", "content": content, "prefix": False}) == Message(Role.ASSISTANT, tuple(expected))


def test_an_id_that_says_null() -> None:
    """G2: the package writes "null" where a call has no id; only here is that none."""
    call = {"id": "null", "type": "function", "function": {"name": "look", "arguments": {"n": 1}}}
    raw = {"role": "assistant", "content": "", "tool_calls": [call]}
    assert read(raw).parts == (Part(CALL, '{"n":1}', "look"),)
    assert OpenAIChatFormat().read(raw, 0).parts == (Part(CALL, '{"n":1}', "look", "null"),)
    assert read({**TOLD, "tool_call_id": "null"}).parts == (Part(RESULT, "seen", "look"),)


@pytest.mark.parametrize(
    ("raw", "own"),
    [
        ({"role": "assistant", "content": [THINKING]}, True),
        ({"role": "user", "content": [{"type": "document_url", "document_url": "u"}]}, True),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, False),
        (ASKED, False),
        (TOLD, False),
        (USER, False),
    ],
)
def test_what_tells(raw: dict[str, Any], own: bool) -> None:
    """Only what no other format has tells; a call and a result may be OpenAI's."""
    assert MistralFormat().claims(raw) is own


def test_an_object_of_the_package() -> None:
    """An object of the package tells by where its class stands."""
    message = type("UserMessage", (SimpleNamespace,), {"__module__": "mistralai.client.models.usermessage"})
    assert MistralFormat().claims(message(role="user", content="go"))
    assert read(message(role="user", content="go")) == read(USER)


@pytest.mark.parametrize(
    ("history", "rules"),
    [
        ([SYSTEM, USER, ASKED, TOLD, SAID, USER], []),
        ([SYSTEM, USER, USER, SAID, SAID, USER], []),
        ([SAID, USER], ["first_user"]),
        ([USER, ASKED, TOLD, USER], ["user_after_tool"]),
        ([USER, ASKED, USER, TOLD], ["not_adjacent"]),
        ([USER, TOLD, SAID], ["orphan_result"]),
    ],
)
def test_who_speaks_after_whom(history: list[Any], rules: list[str]) -> None:
    """K7: what Mistral answers with code 3230, and no more than that."""
    assert [
        problem.rule for problem in cc.MessageIndex.from_messages(history, format=MistralFormat()).problems
    ] == rules


def test_a_user_never_comes_behind_a_tool() -> None:
    """K7: no cut brings a user's message right behind a result, wherever it falls."""
    history = [USER, ASKED, TOLD, SAID] * 6 + [USER]
    for limit in range(1, len(history)):
        strategy = cc.TruncationStrategy(
            trigger=cc.messages > limit, target=cc.messages <= limit, min_preserved_groups=1
        )
        context = cc.as_chat_reducer(strategy, format=MistralFormat()).reduce(history)
        roles = [message["role"] for message in context]
        assert ("tool", "user") not in pairwise(roles)


def test_a_recorded_session() -> None:
    """A session as it went to Mistral breaks no rule."""
    path = shared_dir() / "data" / "sessions" / "openai_chat" / "pydantic-ai-002.json"
    index = cc.MessageIndex.from_messages(load_session(path), format=MistralFormat())
    assert index.problems == ()
    assert [group.positions for group in index.groups] == [(0,), (1, 2), (3,), (4,), (5,)]
