"""Which format a list is read in: named, detected, detected late, or the caller's own."""

from typing import Any

import attrs
import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletionMessage

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format, Message, Part, PartKind, Role, detect, resolve_format
from tests._shared import load_session, recorded_sessions

NAMES = ", ".join(map(repr, ["auto", *FORMATS]))
CALL = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "seen"}
PLAIN = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}]


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"role": "tool", "tool_call_id": "a", "content": "seen"}, "openai_chat"),
        ({"role": "function", "name": "look", "content": "seen"}, "openai_chat"),
        ({"role": "assistant", "content": None, "tool_calls": []}, "openai_chat"),
        ({"role": "assistant", "content": "hi", "reasoning_content": ""}, "openai_chat"),
        ({"role": "assistant", "content": "hi", "reasoning_details": []}, "openai_chat"),
        (user({"type": "image_url", "image_url": {"url": "u"}}), "openai_chat"),
        (user({"type": "input_audio", "input_audio": {}}), "openai_chat"),
        (ChatCompletionMessage(role="assistant", content="hi"), "openai_chat"),
        ({"role": "assistant", "content": [CALL]}, "anthropic"),
        (user(RESULT), "anthropic"),
        ({"role": "user", "content": ({"type": "text", "text": "in a tuple"}, RESULT)}, "anthropic"),
        (user({"type": "image", "source": {"type": "url", "url": "u"}}), "anthropic"),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "web_search_tool_result", "content": []}]}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "compaction", "content": "in short"}]}, "anthropic"),
        (AnthropicMessage.construct(None, role="assistant", content=[]), "anthropic"),
        (
            {
                "role": "assistant",
                "content": AnthropicMessage.construct(None, content=[{"type": "text", "text": "hi"}]).content,
            },
            "anthropic",
        ),
        (PLAIN[0], None),
        (PLAIN[1], None),
        # OpenAI Responses has the role too.
        ({"role": "developer", "content": "be brief"}, None),
        ({"role": "assistant", "content": None, "tool_calls": None, "refusal": None}, None),
        # Mistral's thinking is a list of parts.
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            "mistral",
        ),
        (user({"type": "image"}, "a string", None, 7), None),
        ("no object", None),
        (None, None),
        (dict, None),
    ],
)
def test_what_tells(message: Any, name: str | None) -> None:
    """A role, a key, a part type or a package that only one format has; plain text tells nothing."""
    assert detect([*PLAIN, message, *PLAIN]) is (None if name is None else FORMATS[name])


# Nobody recorded a session of Mistral's; its own tests have samples.
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "mistral"])
def test_recorded_sessions(name: str) -> None:
    """Each recorded session is read in its own format, or tells nothing and reads as chat completions just so."""
    for path in recorded_sessions(name):
        history = load_session(path)
        found = detect(history)
        if found is None:
            undecided, own = FORMATS["openai_chat"], FORMATS[name]
            assert [undecided.read(raw, 0) for raw in history] == [own.read(raw, 0) for raw in history], path.name
        else:
            assert found is FORMATS[name], path.name


def test_plain_text_of_anthropic_is_the_limit() -> None:
    """A list of nothing but text is taken for OpenAI's; the rule of the first user message needs ``format=`` (K7)."""
    limit = [path.name for path in recorded_sessions("anthropic") if detect(load_session(path)) is None]
    assert limit == ["simonw-transcripts-001.json"]
    headless = [PLAIN[1], *PLAIN]
    assert cc.MessageIndex.from_messages(headless).problems == ()
    (problem,) = cc.MessageIndex.from_messages(headless, format="anthropic").problems
    assert problem.rule == "first_user"


@pytest.mark.parametrize("start", [0, 1, 2])
def test_late_detection(start: int) -> None:
    """What tells may come late: then what is known is read again, and all is as if it had been known at once."""
    history = [*PLAIN, {"role": "assistant", "content": [CALL]}, user(RESULT)]
    extended = cc.MessageIndex.from_messages(history[:start], counter=len)
    assert extended.format is FORMATS["openai_chat"]
    assert extended.value(cc.tokens) == (0, 4 + 2, 8 + 2 + 5)[start]
    updated = cc.MessageIndex.from_messages(history[:start], counter=len)
    extended.extend(history[start:])
    updated.update(history)
    whole = cc.MessageIndex.from_messages(history, format="anthropic", counter=len)
    assert extended.format is updated.format is FORMATS["anthropic"]
    assert extended.value(cc.tokens) == updated.value(cc.tokens) == whole.value(cc.tokens)
    assert extended.snapshot() == updated.snapshot() == whole.snapshot()


def test_late_detection_that_fails() -> None:
    """A message that tells the format and cannot be read leaves the index as it was."""
    index = cc.MessageIndex.from_messages(PLAIN)
    before = index.snapshot()
    with pytest.raises(cc.MessageError, match=r"messages\[2\]\.content\[0\]\.tool_use_id must be a string, got 7"):
        index.extend([user({**RESULT, "tool_use_id": 7})])
    assert index.snapshot() == before
    index.extend([{"role": "tool", "tool_call_id": "a", "content": "seen"}])
    assert index.format is FORMATS["openai_chat"]


def test_once_decided_stays_decided() -> None:
    """One list is of one format: what another would claim later is an error with the format in it."""
    index = cc.MessageIndex.from_messages([*PLAIN, {"role": "assistant", "content": [CALL]}])
    with pytest.raises(cc.MessageError, match=r"got 'tool' \(read as 'anthropic'; format= names another\)"):
        index.extend([{"role": "tool", "tool_call_id": "a", "content": "seen"}])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic", PartKind.MEDIA),
        ("openai_chat", PartKind.OPAQUE),
        ("openai_responses", PartKind.MEDIA),
        ("mistral", PartKind.OPAQUE),
    ],
)
def test_a_named_format_is_not_guessed(name: str, kind: PartKind) -> None:
    """A name settles it, whatever the messages would tell."""
    message = user({"type": "image", "source": {}})
    index = cc.MessageIndex.from_messages([message], format=name)
    assert index.format is FORMATS[name] is resolve_format(name)
    assert [part.kind for part in FORMATS[name].read(message, 0).parts] == [kind]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_name(name: str) -> None:
    """And prints as what makes it, since nothing in it is other than usual."""
    format = resolve_format(name)
    assert format is FORMATS[name]
    assert (format.name, repr(format)) == (name, f"{type(format).__name__}()")


@attrs.frozen
class Line:
    """A message of a kind that nobody else has: no role, no content, and slots."""

    said: str


class Shouting(Format):
    """A caller's own format."""

    name = "shouting"
    overhead = 1

    def read(self, raw: Any, position: int) -> Message:
        if not isinstance(raw, Line):
            raise cc.MessageError(position, f" must be a Line, got a {type(raw).__name__}")
        return Message(Role.USER, (Part(PartKind.TEXT, raw.said.upper()),))

    def claims(self, raw: Any) -> bool:
        return isinstance(raw, Line)


@attrs.frozen
class Reading:
    """Reads, and is no format."""

    name = "reading"

    def read(self, raw: Any, position: int) -> Message:
        return Message(Role.USER)


def test_a_format_of_your_own() -> None:
    """A name and how to read will do; its messages may be of any type with fields."""
    own = Shouting()
    lines = [Line("ab"), Line("c")]
    index = cc.MessageIndex.from_messages(lines, format=own, counter=len)
    assert index.format is own
    assert index.value(cc.tokens) == 2 * 1 + 3
    assert index.included_messages() == lines
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), lines, strict=True))
    with pytest.raises(cc.MessageError, match=r"^messages\[2\] must be a Line, got a dict$"):
        index.extend([PLAIN[0]])


@pytest.mark.parametrize(
    ("format", "error", "text"),
    [
        ("anthropics", cc.FormatError, f"format must be one of {NAMES}, got 'anthropics'"),
        ("", cc.FormatError, f"format must be one of {NAMES}, got ''"),
        (None, TypeError, "format must be 'auto', a name or a Format, got None"),
        (7, TypeError, "format must be 'auto', a name or a Format, got 7"),
        (Shouting, TypeError, f"format must be 'auto', a name or a Format, got {Shouting!r}"),
        (Reading(), TypeError, "format must be 'auto', a name or a Format, got Reading()"),
    ],
)
def test_no_format(format: Any, error: type[Exception], text: str) -> None:
    """A wrong argument fails at once, with what it may be."""
    with pytest.raises(error) as caught:
        cc.MessageIndex.from_messages([], format=format)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("history", "text"),
    [
        (
            [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}],
            "messages[0].role is missing",
        ),
        ([{"role": "User", "message": "hi"}], "messages[0].role must be one of "),
        ([PLAIN[0], {"role": "assistant", "content": [{"text": "hello"}, {"reasoning": "hm"}]}], "messages[1].content"),
    ],
    ids=["pydantic-ai", "cohere", "no type"],
)
def test_lists_of_other_formats_are_refused(history: list[Any], text: str) -> None:
    """A list in a format that is not here is not half read, with calls unseen: the error says what to do."""
    with pytest.raises(cc.MessageError) as caught:
        cc.MessageIndex.from_messages(history, format="openai_chat")
    assert str(caught.value).startswith(text)
    assert "; format= names another)" in str(caught.value)


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize("content", ["", "words", '[{"type": "text"}]', "data:image/png;base64,AAAA"])
def test_plain_words_are_nobodys(role: str, content: str) -> None:
    """Detection passes over them without asking: no format says that they are its own."""
    message = {"role": role, "content": content}
    assert detect([message]) is None
    assert not any(format.claims(message) or format.hints(message) for format in FORMATS.values())
