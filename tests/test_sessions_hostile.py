"""Agents' files that are wrong: values of any type at any key, and files that end in the middle of a character."""

import json
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction import SessionError
from chat_compaction.formats import _sessions
from chat_compaction.formats._sessions import Session, parse_session


def written(*lines: Any) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def read(*lines: Any) -> Session:
    return parse_session(written(*lines), "session")


# -- what the agents write -------------------------------------------------------------------------


def claude(uuid: str, parent: str | None, kind: str, *content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "id": f"m_{uuid}", "content": list(content) or [{"type": "text", "text": uuid}]}
    return {"uuid": uuid, "parentUuid": parent, "type": kind, "isSidechain": False, "message": message, **fields}


def compacted(uuid: str, parent: str, **metadata: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "type": "system",
        "subtype": "compact_boundary",
        "compactMetadata": metadata,
    }


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


def item(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


CLAUDE = [
    {"type": "summary", "summary": "A title", "leafUuid": "q"},
    claude("q", None, "user"),
    claude("a", "q", "assistant", {"type": "tool_use", "id": "t", "name": "look", "input": {}}),
    claude("r", "a", "user", {"type": "tool_result", "tool_use_id": "t"}, sourceToolAssistantUUID="a"),
    claude("more", "r", "user"),
    claude("error", "more", "assistant", isApiErrorMessage=True),
    compacted("b1", "error", preservedSegment={"headUuid": "q", "anchorUuid": "s1", "tailUuid": "r"}),
    claude("s1", "b1", "user", isCompactSummary=True),
    compacted("b2", "s1", preservedMessages={"anchorUuid": "s2", "uuids": ["q", "a"]}),
    claude("s2", "b2", "user", isCompactSummary=True),
    {"type": "attachment", "uuid": "f", "parentUuid": "s2"},
    claude("end", "f", "assistant"),
    claude("task", None, "user", isSidechain=True),
    claude("work", "task", "assistant", isSidechain=True),
    claude("other", None, "user", isSidechain=True, agentId="x"),
]
SEGMENT = [*CLAUDE[:8], *CLAUDE[11:]]
CODEX = [
    codex("session_meta", id="x", cwd="/"),
    codex("response_item", **item("one")),
    codex("response_item", type="ghost_snapshot", ghost_commit={}),
    codex("compacted", message="short", replacement_history=[item("kept"), {"type": "compaction"}]),
    codex("response_item", **item("two")),
    codex("compacted", message="shorter"),
    codex("event_msg", type="thread_rolled_back", num_turns=1),
    codex("response_item", **item("three", "assistant")),
]
BARE = [{"id": "x", "timestamp": "t", "instructions": "be kind"}, item("hi"), item("hello", "assistant")]
GEMINI = [
    {"sessionId": "s", "projectHash": "p"},
    {"id": "1", "type": "user", "content": "a"},
    {"id": "2", "type": "gemini", "content": "b"},
    {"$rewindTo": "2"},
    {"$set": {"messages": [{"id": "1", "type": "user", "content": "A"}, {"id": "3", "type": "user"}]}},
    {"id": "3", "type": "user", "content": "c"},
]
PI = [
    {"type": "session", "version": 3, "cwd": "/"},
    {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "a"}},
    {
        "type": "compaction",
        "id": "k",
        "parentId": "a",
        "timestamp": "2026-01-01T00:00:01",
        "summary": "s",
        "firstKeptEntryId": "a",
    },
    {"type": "branch_summary", "id": "b", "parentId": "k", "timestamp": "t", "fromId": "a", "summary": "tried"},
    {"type": "custom_message", "id": "c", "parentId": "b", "timestamp": "t", "customType": "x", "content": "y"},
    {"type": "message", "id": "d", "parentId": "c", "message": {"role": "user", "content": "d"}},
]
NUMBERED = [
    {"type": "session", "provider": "p"},
    {"type": "message", "message": {"role": "user", "content": "a"}},
    {"type": "compaction", "timestamp": "t", "summary": "s", "firstKeptEntryIndex": 1},
    {"type": "message", "message": {"role": "user", "content": "b"}},
]
FILES: dict[str, list[Any]] = {
    "claude_code": CLAUDE,
    "claude_code, segment": SEGMENT,
    "codex": CODEX,
    "codex, bare": BARE,
    "gemini_cli": GEMINI,
    "pi": PI,
    "pi, numbered": NUMBERED,
}


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside another."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in children:
        yield (key,)
        yield from ((key, *rest) for rest in places(inside))


def replaced(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """The same with something else at one place."""
    if not way:
        return new
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    changed[way[0]] = replaced(value[way[0]], way[1:], new)
    return changed


PLACES = [(name, way) for name, lines in FILES.items() for way in places(lines)]
KNOWN = st.sampled_from(["q", "a", "r", "s1", "s2", "end", "task", "1", "3", "k", "user", "assistant", "compacted"])
TIMES = st.sampled_from(["0001-01-01T00:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00+14:00"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=3) | KNOWN | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KNOWN | st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def read_or_refuse(lines: Any) -> None:
    """Read some lines, which fails with nothing but an error of ours, and not one that the net below had to catch."""
    try:
        session = read(*lines)
    except SessionError as error:
        assert "cannot be read as a file of" not in str(error), lines  # noqa: PT017
    else:
        assert isinstance(session.messages, list)


@pytest.mark.parametrize(("name", "way"), PLACES, ids=[f"{name}-{way}" for name, way in PLACES])
def test_any_type_at_any_key(name: str, way: tuple[Any, ...]) -> None:
    """A value of another type than the agent writes is as none, wherever it stands."""
    values: list[Any] = [None, True, 0, -1, 1.5, "", "q", [], [1], [[]], ["q"], {}, {"id": []}, 10**20]
    for value in values:
        read_or_refuse(replaced(FILES[name], way, value))


@given(st.data(), st.sampled_from(sorted(FILES)))
def test_arbitrary_values_at_arbitrary_keys(data: st.DataObject, name: str) -> None:
    """Several at once, of any depth: the file is read, or refused with a :class:`SessionError`."""
    lines: Any = FILES[name]
    for _ in range(data.draw(st.integers(1, 4))):
        way = data.draw(st.sampled_from(list(places(lines)) or [()]))
        lines = replaced(lines, way, data.draw(VALUES))
    read_or_refuse(lines if isinstance(lines, list) else [lines])


@given(st.lists(st.dictionaries(st.sampled_from(sorted({str(way[-1]) for _, way in PLACES})), VALUES), max_size=6))
def test_arbitrary_lines_behind_a_first_one(lines: list[Any]) -> None:
    """Lines that no agent wrote, with its keys."""
    for name in FILES:
        read_or_refuse([*FILES[name][:2], *lines])


def test_a_value_of_another_type_is_as_none() -> None:
    """What each agent's reader makes of a link that is none."""
    values: list[Any] = [[], {}, 7, True]
    last: Any = PI[5]
    for wrong in values:
        whole = read(claude("q", None, "user"), claude("a", wrong, "assistant"))
        assert [message["role"] for message in whole.messages] == ["assistant"]
        assert len(read(*GEMINI[:3], {"$rewindTo": wrong}).messages) == 2
        assert [one["content"] for one in read(*PI[:2], {**last, "parentId": wrong}).messages] == ["d"]
        assert read(*CODEX[:2], codex("event_msg", type="thread_rolled_back", num_turns=[wrong])).messages


def test_an_item_that_is_no_object_is_left_to_the_reader_of_messages() -> None:
    """It stays in its place among the messages, where the format's reader names its position."""
    history = codex("compacted", replacement_history=[item("a"), 1, None, []])
    assert read(CODEX[0], history).messages == [item("a"), 1, None, []]
    assert read(GEMINI[0], {"$set": {"messages": [1, GEMINI[1], [], 1]}}).messages == [1, GEMINI[1], [], 1]
    content = read(claude("q", None, "user", 1, "x"), claude("r", "q", "user", [])).messages[0]["content"]
    assert content == [1, {"type": "text", "text": "x"}, []]
    # A compaction whose result was not recorded keeps what the user said, which these items are not.
    assert [one["role"] for one in read(CODEX[0], history, codex("compacted", message="s")).messages] == ["user"] * 2


def test_messages_without_an_id_take_no_other_s_place() -> None:
    """Gemini CLI: neither the number of a line nor a place in a list is an id."""
    nameless = {"type": "user", "content": "x"}
    lines = [{"$set": {"messages": [GEMINI[1], nameless]}}, nameless, {**nameless, "id": None}, nameless]
    assert len(read(GEMINI[0], *lines).messages) == 5


@pytest.mark.parametrize("failure", [TypeError("secret"), KeyError("secret"), RecursionError(), AttributeError()])
@pytest.mark.parametrize("name", ["claude_code", "codex", "gemini_cli", "pi"])
def test_whatever_a_reader_raises_is_an_error_of_ours(
    name: str, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The net: it names the file and the agent, and tells nothing of what the file holds."""

    def fail(_: Any) -> Any:
        raise failure

    agents = tuple(attrs.evolve(agent, read=fail) for agent in _sessions._AGENTS)
    monkeypatch.setattr(_sessions, "_AGENTS", agents)
    with pytest.raises(SessionError) as raised:
        read(*FILES[name])
    assert str(raised.value) == f"session cannot be read as a file of {name}: {type(failure).__name__}"


# -- files that end in the middle --------------------------------------------------------------------


@pytest.mark.parametrize("character", ["é", "€", "😀"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_may_end_in_the_middle_of_a_character(name: str, character: str) -> None:
    """The agent was stopped while it wrote: a note for its last line, wherever the character is cut."""
    whole = written(*FILES[name], {"type": "user", "content": character})
    for cut in range(1, len(character.encode())):
        data = whole[: whole.index(character.encode()) + cut]
        session = parse_session(data, "session")
        assert session.notes[-1] == "the last line is cut off, and was not read"
        assert session.messages == read(*FILES[name]).messages


@pytest.mark.parametrize(
    "data",
    [
        b'[{"role": "user", "content": "\xc3',
        b'{"messages": [{"role": "user", "content": "\xe2\x82',
        b'{"role": "user", "content": "a"}\n{"role": "user", "content": "\xf0\x9f\x98',
        b"// a comment \xc3",
        b"\xef\xbb",
    ],
)
def test_only_the_file_of_an_agent_may_end_so(data: bytes) -> None:
    """Everything else that ends in the middle of a character is no UTF-8, as before."""
    at = max(data.find(byte) for byte in (b"\xc3", b"\xe2", b"\xf0", b"\xef"))
    with pytest.raises(SessionError, match=f"session is not UTF-8: byte 0x{data[at]:02x} at offset {at}"):
        parse_session(data, "session")


@pytest.mark.parametrize("ending", [b'\xff"}', b"\xff", b"\x80", b"\xc3(", b'\xe2\x82"}\n', b"\xed\xa0", b"\xc3\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_bytes_that_are_no_utf8_stay_an_error(ending: bytes, mark: bytes) -> None:
    """In an agent's file, too: only an incomplete character at the very end tells that the agent was stopped."""
    data = mark + written(*CLAUDE) + b'{"type": "user", "content": "'
    with pytest.raises(SessionError, match=f"session is not UTF-8: byte 0x{ending[0]:02x} at offset {len(data)}"):
        parse_session(data + ending, "session")


# -- comments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("comments", ["//\n", "\n // a // b\r\n\t\n//c\n"])
def test_any_number_of_comments(comments: str) -> None:
    """They are passed over at once, however many there are."""
    data = comments.encode() * 20_000 + written(*CLAUDE)
    assert parse_session(data, "session").messages == read(*CLAUDE).messages
