"""What cannot be read, in any format: a MessageError with its position, and never a word of the conversation."""

import copy
import enum
from collections import UserDict, deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format, Message, detect

SECRET = "s3cret words"  # noqa: S105
HELLO: dict[str, Any] = {
    **{name: {"role": "user", "content": "hello"} for name in FORMATS},
    "gemini": {"role": "user", "parts": [{"text": "hello"}]},
    "gemini_cli": {"type": "user", "content": "hello"},
    "langchain": {"type": "human", "content": "hello"},
    "sharegpt": {"from": "human", "value": "hello"},
}
EVERY_FORMAT = pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS.keys())
# Messages that have a role, and parts that have a type; what the others lack is tested where they are.
TYPED = [FORMATS[name] for name in ("openai_chat", "anthropic", "openai_responses", "mistral", "pi_session")]
EVERY_TYPED = pytest.mark.parametrize("format", TYPED, ids=[format.name for format in TYPED])


def error_of(format: Format, raw: Any) -> str:
    with pytest.raises(cc.MessageError) as caught:
        cc.MessageIndex.from_messages([HELLO[format.name]] * 2 + [raw], format=format)
    assert caught.value.position == 2
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("messages", [None, 7, "text", b"bytes", {"role": "user"}, {1, 2}, object(), iter([])])
def test_not_a_list(messages: Any) -> None:
    """A wrong argument is a TypeError that names it."""
    with pytest.raises(TypeError, match=r"^messages must be a list of messages, got "):
        cc.MessageIndex.from_messages(messages)


@pytest.mark.parametrize(
    ("raw", "got"),
    [
        (None, "None"),
        (7, "7"),
        (True, "True"),
        (2.5, "2.5"),
        (SECRET, "a str"),
        (SECRET.encode(), "a bytes"),
        ([SECRET], "a list"),
        ((), "a tuple"),
        ({SECRET}, "a set"),
        (dict, "a type"),
        (len, "a builtin_function_or_method"),
        (enum.IntEnum("Small", "ONE").ONE, "a Small"),  # type: ignore[attr-defined]
    ],
)
@pytest.mark.parametrize("format", ["auto", *FORMATS])
def test_a_message_that_is_no_object(raw: Any, got: str, format: str) -> None:
    """The error says where it stands and what stands there."""
    hello = HELLO["openai_chat" if format == "auto" else format]
    with pytest.raises(cc.MessageError) as caught:
        cc.MessageIndex.from_messages([hello, raw], format=format)
    assert str(caught.value) == f"messages[1] must be an object with a role, got {got}"


def test_a_number_without_end() -> None:
    """A number that Python refuses to print is no reason to fail otherwise."""
    assert error_of(FORMATS["anthropic"], {"role": "user", "content": 10**5000}).endswith("got an int")
    call = {"id": "a", "function": {"name": "n", "arguments": 10**5000}}
    assert FORMATS["openai_chat"].read({"role": "assistant", "tool_calls": [call]}, 0).parts[0].text == ""


@EVERY_TYPED
@pytest.mark.parametrize("fields", [{}, {"role": None}, {"role": ""}])
def test_a_role_missing(format: Format, fields: dict[str, Any]) -> None:
    """The error says as what the message was read, and how to say otherwise."""
    expected = f"messages[2].role is missing (read as {format.name!r}; format= names another)"
    assert error_of(format, {"content": SECRET, **fields}) == expected


@EVERY_TYPED
@pytest.mark.parametrize(
    ("role", "got"), [("model", "'model'"), (SECRET, "a str"), ("x" * 21, "a str"), (7, "7"), ([SECRET], "a list")]
)
def test_an_unknown_role(format: Format, role: Any, got: str) -> None:
    """A short name tells which format was meant, so it is shown; text is not. A role may be anything."""
    error = error_of(format, {"role": role, "content": SECRET})
    assert error.startswith("messages[2].role must be one of ")
    assert error.endswith(f", got {got} (read as {format.name!r}; format= names another)")


@EVERY_TYPED
@pytest.mark.parametrize(("kind", "what"), [({}, "is missing"), ({"type": ""}, "is missing"), ({"type": 7}, "got 7")])
def test_a_part_without_a_type(format: Format, kind: dict[str, Any], what: str) -> None:
    """Parts without a type are those of another format (Bedrock Converse): better an error than calls unseen."""
    error = error_of(format, {"role": "user", "content": [{"text": SECRET, **kind}]})
    assert error.startswith("messages[2].content[0].type ")
    assert error.endswith(f"{what} (read as {format.name!r}; format= names another)")


class Moody:
    """Fails at every look, as a database's object does when its session is closed."""

    def __init__(self, error: type[Exception], **fields: Any) -> None:
        vars(self).update(fields)
        self.error = error

    def __getattr__(self, key: str) -> Any:
        raise self.error(SECRET)


class MoodyMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(SECRET)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError(SECRET)

    def __len__(self) -> int:
        return 1


class MoodyList(Sequence[Any]):
    def __getitem__(self, index: Any) -> Any:
        raise OSError(SECRET)

    def __len__(self) -> int:
        return 1


@EVERY_TYPED
@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (Moody(KeyError), "KeyError"),
        (Moody(RecursionError), "RecursionError"),
        (Moody(ValueError, role="user"), "ValueError"),
        (MoodyMapping(), "RuntimeError"),
        ({"role": "user", "content": MoodyList()}, "OSError"),
        ({"role": "user", "content": [Moody(KeyError)]}, "KeyError"),
        ({"role": "user", "content": [MoodyMapping()]}, "RuntimeError"),
    ],
    ids=["object", "recursion", "content", "mapping", "list", "part", "mapping-part"],
)
def test_an_object_that_fails(format: Format, raw: Any, name: str) -> None:
    """What it raises is the cause, not the error; nothing that failed is taken for nothing; detection goes on."""
    assert error_of(format, raw) == f"messages[2] cannot be read: it raises {name}"
    assert detect([raw]) is None
    assert detect([raw, {"role": "tool"}]) is FORMATS["openai_chat"]


@EVERY_TYPED
@pytest.mark.parametrize("lacking", ["role", "content"])
def test_a_model_that_lacks_fields(format: Format, lacking: str) -> None:
    """A field that an object does not have is as absent as a key that a dict does not have."""
    fields = {"role": "user", "content": "hi"}
    del fields[lacking]
    model: Any = pydantic.create_model("Model", **dict.fromkeys(fields, (str, ...)))  # type: ignore[call-overload]
    if lacking == "role":
        assert "role is missing" in error_of(format, model(**fields))
    else:
        assert format.read(model(**fields), 0) == format.read(fields, 0)


@attrs.frozen
class Slotted:
    role: str = "user"
    content: Any = "hi"


@EVERY_TYPED
@pytest.mark.parametrize(
    "raw",
    [
        MappingProxyType({"role": "user", "content": "hi"}),
        UserDict({"role": "user", "content": "hi"}),
        SimpleNamespace(role="user", content="hi"),
        Slotted(),
        Slotted(content=({"type": "text", "text": "hi"},)),
        Slotted(content=deque([SimpleNamespace(type="text", text="hi")])),
        Slotted(content=[MappingProxyType({"type": "text", "text": "hi"})]),
    ],
)
def test_any_object_with_the_fields_reads(format: Format, raw: Any) -> None:
    """A mapping that is no dict, an object with slots, a tuple for a list: what has the fields is a message."""
    index = cc.MessageIndex.from_messages([raw], format=format)
    assert format.read(raw, 0) == format.read({"role": "user", "content": "hi"}, 0)
    assert index.included_messages()[0] is raw


# -- anything at all ----------------------------------------------------------------------------

_NAMES = ["role", "content", "type", "text", "id", "name", "tool_calls", "function", "custom", "arguments", "input"]
_NAMES += ["tool_call_id", "function_call", "refusal", "audio", "reasoning_content", "reasoning_details", "signature"]
_NAMES += ["thinking_blocks", "thinking", "data", "source", "title", "tool_use_id", "url"]
_NAMES += ["parts", "functionCall", "functionResponse", "args", "response", "inlineData", "toolUse", "toolResult"]
_NAMES += ["toolUseId", "reasoningContent", "call_id", "output", "summary", "encrypted_content", "from", "value"]
_NAMES += ["lc", "kwargs", "additional_kwargs", "toolCalls", "thoughts", "result", "toolCallId", "thinkingSignature"]
_VALUES = ["system", "developer", "user", "assistant", "tool", "function", "text", "refusal", "image_url", "image"]
_VALUES += ["document", "content", "tool_use", "tool_result", "web_search_tool_result", "web_fetch_tool_result"]
_VALUES += ["web_fetch_result", "thinking", "redacted_thinking", "model", "human", "ai", "gpt", "gemini", "toolResult"]
_VALUES += [
    "function_call",
    "function_call_output",
    "reasoning",
    "message",
    "item_reference",
    "constructor",
    "toolCall",
]
_TEXTS = st.text(st.characters(), max_size=5).map(SECRET.__add__)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(_VALUES) | _TEXTS
_JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
        | st.dictionaries(_TEXTS, inner, max_size=2)
    ),
    max_leaves=12,
)
# What is nearly right gets deeper into a reader than what is anything at all.
_OFTEN_TEXT = _TEXTS | st.integers(0, 9).flatmap(lambda dice: _TEXTS if dice else _JSON)
_FIELDS = dict.fromkeys(["text", "id", "name", "tool_use_id", "thinking", "signature", "title"], _OFTEN_TEXT)
_PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(_VALUES[6:])}, optional={**_FIELDS, "content": _JSON, "source": _JSON, "input": _JSON}
)
_CALLS = st.fixed_dictionaries({"id": _OFTEN_TEXT, "function": st.fixed_dictionaries({"arguments": _JSON})})
_MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(_VALUES[:6]), "content": st.lists(_PARTS, max_size=3) | _OFTEN_TEXT},
    optional={"tool_calls": st.lists(_CALLS, max_size=2), "tool_call_id": _OFTEN_TEXT, "name": _OFTEN_TEXT},
)


@EVERY_FORMAT
@given(raw=_MESSAGES | st.dictionaries(st.sampled_from(_NAMES), _JSON))
def test_any_json_reads_or_is_refused(format: Format, raw: dict[str, Any]) -> None:
    """Any JSON is read, or refused with its position and none of its text; either way it is as it was."""
    before = copy.deepcopy(raw)
    try:
        assert isinstance(format.read(raw, 2), Message)
    except cc.MessageError as error:
        refusal = str(error)
    else:
        refusal = "messages[2]."
    assert refusal.startswith("messages[2].")
    assert "s3cret" not in refusal
    assert raw == before


@given(st.lists(_MESSAGES | _JSON, max_size=4))
def test_any_list_of_json_indexes_or_is_refused(messages: list[Any]) -> None:
    """A list is read whole, with the very same objects in the projection (G1, K8), or refused at a position."""
    try:
        index = cc.MessageIndex.from_messages(messages, counter=len)
    except cc.MessageError as error:
        refusal, position = str(error), error.position
    else:
        refusal, position = "messages[0]", 0
        assert all(ours is theirs for ours, theirs in zip(index.included_messages(), messages, strict=True))
        assert index.value(cc.tokens) >= index.format.overhead * len(messages)
    assert refusal.startswith(f"messages[{position}]")
    assert position in range(max(len(messages), 1))
    assert "s3cret" not in refusal
