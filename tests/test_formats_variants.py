"""What gateways and local servers make of OpenAI's chat messages: read, tied and given back like OpenAI's own."""

from types import SimpleNamespace
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Media, Message, OpenAIChatFormat, Part, PartKind, Role

TEXT, REASONING, CALL, RESULT = PartKind.TEXT, PartKind.REASONING, PartKind.TOOL_CALL, PartKind.TOOL_RESULT
BASE64 = "iVBORw0KGgo" * 400
HIDDEN = (Media("encrypted_reasoning"),)


def read(raw: Any) -> Message:
    return OpenAIChatFormat().read(raw, 0)


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **fields}


def text_detail(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": "hm", **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # DeepSeek, Qwen, vLLM, Groq.
        ({"reasoning_content": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning_content": "hm", "reasoning": "hm"}, [Part(REASONING, "hm")]),
        ({"reasoning_content": "", "reasoning": "hm"}, [Part(REASONING, "hm")]),
        # A request's setting that was kept along.
        ({"reasoning": {"effort": "low"}}, []),
        # Ollama.
        ({"thinking": "hm"}, [Part(REASONING, "hm")]),
        # OpenRouter.
        (
            {
                "reasoning_details": [
                    {"type": "reasoning.summary", "summary": "in short"},
                    {"type": "reasoning.encrypted", "data": BASE64},
                ]
            },
            [Part(REASONING, "in short"), Part(REASONING, media=HIDDEN)],
        ),
        ({"reasoning_details": [text_detail(signature=None)]}, [Part(REASONING, "hm")]),
        ({"reasoning_details": [text_detail(text=None)]}, [Part(REASONING)]),
        # LiteLLM.
        (
            {
                "reasoning_content": "hm",
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "hm", "signature": BASE64},
                    {"type": "redacted_thinking", "data": BASE64},
                ],
            },
            [Part(REASONING, "hm", signed=True), Part(REASONING, media=HIDDEN, signed=True)],
        ),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, [Part(REASONING, "hm")]),
    ],
)
def test_reasoning_under_its_names(fields: dict[str, Any], expected: list[Part]) -> None:
    """C1: reasoning that is sent back counts once, whatever field carries it; encrypted never by its base64."""
    assert read(assistant(**fields)).parts == tuple(expected)


@pytest.mark.parametrize(
    ("detail", "signed"),
    [
        (text_detail(signature=BASE64), True),
        (text_detail(signature=BASE64, format=None), True),
        (text_detail(signature=BASE64, format="anthropic-claude-v1"), True),
        (text_detail(signature=BASE64, format="google-gemini-v1"), False),
        (text_detail(format="anthropic-claude-v1"), False),
        ({"type": "reasoning.encrypted", "data": BASE64, "format": "anthropic-claude-v1"}, True),
        ({"type": "reasoning.encrypted", "data": BASE64, "format": "openai-responses-v1"}, False),
        ({"type": "reasoning.encrypted", "data": BASE64, "format": "google-gemini-v1"}, False),
    ],
)
def test_whose_reasoning_is_bound(detail: dict[str, Any], signed: bool) -> None:
    """Only Anthropic binds reasoning to what stands before it; through OpenRouter, ``format`` says whose it is."""
    (part,) = read(assistant(reasoning_details=[detail])).parts
    assert part.signed is signed


def test_thought_signatures_of_gemini() -> None:
    """C1, K8: a signature that a call carries is not counted, binds nothing, and stays when another call leaves."""
    kept = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    kept["extra_content"] = {"google": {"thought_signature": BASE64}}
    raw = assistant(tool_calls=[kept, {"id": "b", "function": {"name": "f", "arguments": "{}"}}])
    assert read(raw).parts == (Part(CALL, "{}", "f", "a"), Part(CALL, "{}", "f", "b"))
    assert not read(raw).signed
    left = OpenAIChatFormat().without(raw, {1})
    assert left is not None
    assert left["tool_calls"][0] is kept


# -- Ollama -------------------------------------------------------------------------------------


def asked(*names: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": name, "arguments": {"n": 1}}} for name in names],
    }


def told(name: str, key: str = "tool_name") -> dict[str, Any]:
    return {"role": "tool", key: name, "content": f"of {name}"}


def test_calls_without_an_id() -> None:
    """G2: Ollama's calls have no id, and arguments that are an object; its results name the tool."""
    assert read(asked("look", "find")) == Message(
        Role.ASSISTANT, (Part(CALL, '{"n":1}', "look"), Part(CALL, '{"n":1}', "find"))
    )
    for key in ("tool_name", "name"):
        assert read(told("look", key)) == Message(Role.TOOL, (Part(RESULT, "of look", "look"),))
    assert read({"role": "tool", "content": "seen"}) == Message(Role.TOOL, (Part(RESULT, "seen"),))


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_id_is_none(empty: Any) -> None:
    """G2: a server that sends an id without anything in it has given none."""
    call = {"id": empty, "function": {"name": "look", "arguments": "{}"}}
    assert [part.call_id for part in read(assistant(tool_calls=[call])).parts] == [None]
    assert read({"role": "tool", "tool_call_id": empty, "name": "look", "content": ""}).parts == (
        Part(RESULT, name="look"),
    )


def test_an_id_and_a_tool_name() -> None:
    """C1: where the id ties, the name is the speaker's; it counts once either way."""
    raw = {"role": "tool", "tool_call_id": "a", "tool_name": "look", "content": "seen"}
    assert read(raw) == Message(Role.TOOL, (Part(RESULT, "seen", call_id="a"),), "look")
    sizes = [
        cc.MessageIndex.from_messages([message], format="openai_chat", counter=len).value(cc.tokens)
        for message in (raw, {**raw, "tool_call_id": None})
    ]
    assert sizes[0] == sizes[1] == 4 + len("look") + len("seen")


def test_a_conversation_with_ollama() -> None:
    """G2: parallel calls without ids are one group with their results, whatever the order of these."""
    history = [{"role": "user", "content": "go"}, asked("look", "find"), told("find"), told("look"), asked("look")]
    index = cc.MessageIndex.from_messages(history, format="openai_chat")
    assert [group.positions for group in index.groups] == [(0,), (1, 2, 3), (4,)]
    assert index.problems == ()


def test_images_beside_the_content() -> None:
    """C1: images in a list of base64 count as images, and can leave one by one."""
    raw = {"role": "user", "content": "see", "images": [BASE64, BASE64.encode(), SimpleNamespace(value=b"png")]}
    view = read(raw)
    assert [part.kind for part in view.parts] == [TEXT, *[PartKind.MEDIA] * 3]
    assert [media.kind for part in view.parts for media in part.media] == ["image"] * 3
    assert OpenAIChatFormat().without(raw, {2, 3}) == {**raw, "images": [BASE64]}
    assert OpenAIChatFormat().without(raw, {1, 2, 3}) == {"role": "user", "content": "see"}


class Unset:
    """As the ``mistralai`` package marks what is not set: false, and no None."""

    def __bool__(self) -> bool:
        return False


def test_marks_for_what_is_unset() -> None:
    """What an SDK's object marks as unset is absent."""
    unset = Unset()
    raw = SimpleNamespace(role="assistant", content=unset, tool_calls=unset, name=unset, refusal=unset)
    assert read(raw) == Message(Role.ASSISTANT)
    assert read(SimpleNamespace(role="tool", content="x", tool_call_id=unset, name=unset)).parts == (Part(RESULT, "x"),)


def test_an_object_that_is_no_model() -> None:
    """K8: a plain object is copied, and what leaves it is null there."""
    raw = SimpleNamespace(role="assistant", content="hi", tool_calls=[{"id": "a", "function": {"name": "f"}}])
    left = OpenAIChatFormat().without(raw, {1})
    assert left == SimpleNamespace(role="assistant", content="hi", tool_calls=None)
    assert raw.tool_calls
