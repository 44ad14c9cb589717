"""The files of Codex, Gemini CLI and pi: what replaces, takes back or stands for messages."""

import json
from typing import Any

import pytest

from chat_compaction.formats._sessions import Session, parse_session


def read(*lines: Any) -> Session:
    return parse_session("".join(json.dumps(line) + "\n" for line in lines).encode(), "session")


# -- Codex ---------------------------------------------------------------------------------------


def entry(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2025-09-25T02:12:23.966Z", "type": kind, "payload": payload}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def item(text: str, role: str = "user") -> dict[str, Any]:
    return entry("response_item", **said(text, role))


META = entry("session_meta", id="x", cwd="/", instructions=None)
CONTEXT = "<environment_context>here</environment_context>"


def texts(session: Session) -> list[str]:
    return [message["content"][0]["text"] for message in session.messages]


def test_codex_reads_response_items() -> None:
    """Events and settings are no messages; neither are snapshots of the files."""
    session = read(
        META,
        item("hi"),
        entry("event_msg", type="user_message", message="hi"),
        entry("turn_context", model="m"),
        entry("response_item", type="ghost_snapshot", ghost_commit={}),
        item("hello", "assistant"),
    )
    assert texts(session) == ["hi", "hello"]
    assert (session.source, session.format) == ("codex", "openai_responses")
    assert session.notes == ("1 snapshot of the files, which is not sent",)


def test_codex_replaces_what_stands_ahead_of_a_compaction() -> None:
    """Newer versions record what the history became; the last compaction decides."""
    kept = [said("kept"), {"type": "compaction", "encrypted_content": "x"}]
    session = read(META, item("old"), entry("compacted", message="", replacement_history=kept), item("new"))
    assert session.messages == [*kept, said("new")]
    assert session.notes == ("1 compaction replaced what stood ahead",)


def test_codex_rebuilds_what_was_not_recorded() -> None:
    """Older versions keep what was said in the user's role, and put the summary behind; not an older summary."""
    session = read(
        META,
        item(CONTEXT),
        item("one"),
        item("answer", "assistant"),
        entry("compacted", message="summary 1"),
        item("two"),
        entry("compacted", message="summary 2"),
        item("three"),
    )
    assert texts(session) == [CONTEXT, "one", "two", "summary 2", "three"]
    assert len(session.notes) == 2


def test_codex_takes_turns_back() -> None:
    """A turn begins where the user speaks, not where Codex does in the user's role."""
    lines = [META, item(CONTEXT), item("one"), item("a", "assistant"), item(CONTEXT), item("two")]
    assert texts(read(*lines, entry("event_msg", type="thread_rolled_back", num_turns=1))) == [
        CONTEXT,
        "one",
        "a",
        CONTEXT,
    ]
    assert texts(read(*lines, entry("event_msg", type="thread_rolled_back", num_turns=9))) == [CONTEXT]
    assert len(read(*lines, entry("event_msg", type="thread_rolled_back", num_turns=None)).messages) == 5


def test_codex_wrote_bare_items_once() -> None:
    """The first versions: a header without a type, then the items."""
    header = {"id": "x", "timestamp": "2025-06-01T00:00:00Z", "instructions": "be kind"}
    session = read(header, said("hi"), {"record_type": "state"}, said("hello", "assistant"))
    assert (texts(session), session.source) == (["hi", "hello"], "codex")


def test_plain_items_are_no_rollout() -> None:
    """A list of items that somebody keeps as lines stays lines."""
    session = read(said("hi"), said("hello", "assistant"))
    assert (session.source, session.format, session.shape) == ("", None, "lines")


# -- Gemini CLI ----------------------------------------------------------------------------------

HEADER = {"sessionId": "s", "projectHash": "p", "startTime": "t", "lastUpdated": "t"}


def gemini(name: str, content: str, kind: str = "user") -> dict[str, Any]:
    return {"id": name, "timestamp": "t", "type": kind, "content": content}


@pytest.mark.parametrize(
    ("lines", "contents"),
    [
        ([gemini("1", "a"), gemini("2", "b", "gemini"), {"$set": {"lastUpdated": "u"}}], ["a", "b"]),
        ([gemini("1", "a"), gemini("2", "b"), gemini("1", "A")], ["A", "b"]),
        ([gemini("1", "a"), gemini("2", "b"), {"$rewindTo": "2"}, gemini("3", "c")], ["a", "c"]),
        ([gemini("1", "a"), {"$rewindTo": "unknown"}, gemini("3", "c")], ["c"]),
        ([gemini("1", "a"), {"$set": {"messages": [gemini("9", "z")]}}, gemini("2", "b")], ["z", "b"]),
    ],
)
def test_gemini_cli_lines_are_messages_and_changes(lines: list[Any], contents: list[str]) -> None:
    """The newest record of an id counts, and a rewind takes back a message and all behind it."""
    session = read(HEADER, *lines)
    assert [message["content"] for message in session.messages] == contents
    assert (session.source, session.format, session.shape) == ("gemini_cli", "gemini_cli", "list")


@pytest.mark.parametrize("indent", [None, 2])
def test_gemini_cli_objects_keep_their_shape(indent: int | None) -> None:
    """Older versions write one object, which is written again as one, be it in one line."""
    whole = {**HEADER, "messages": [gemini("1", "a")]}
    session = parse_session(json.dumps(whole, indent=indent).encode(), "session")
    assert (session.source, session.format, session.shape) == ("gemini_cli", "gemini_cli", "object")
    assert json.loads(session.dump(session.messages)) == whole


# -- pi ------------------------------------------------------------------------------------------

PI = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"}


def pi(name: str, parent: str | None, kind: str = "message", **fields: Any) -> dict[str, Any]:
    if kind == "message":
        fields = {"message": {"role": "user", "content": name}}
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z", **fields}


def contents(session: Session) -> list[str]:
    return [message.get("content") or message["summary"] for message in session.messages]


def test_pi_reads_the_newest_branch() -> None:
    """The way from the root to the newest entry; a summary of the branch that was left stands as a message."""
    session = read(
        PI,
        pi("a", None),
        pi("b", "a"),
        pi("s", "a", "branch_summary", fromId="b", summary="tried b"),
        pi("m", "s", "model_change", provider="p", modelId="m"),
        pi("x", "m", "custom_message", customType="ext", content="injected", display=True, details={"n": 1}),
        pi("c", "x"),
        pi("l", "c", "label", targetId="a", label="mark"),
    )
    assert contents(session) == ["a", "tried b", "injected", "c"]
    assert session.messages[1] == {
        "role": "branchSummary",
        "summary": "tried b",
        "fromId": "b",
        "timestamp": 1767225601000,
    }
    assert [m["role"] for m in session.messages] == ["user", "branchSummary", "custom", "user"]
    assert session.messages[2]["details"] == {"n": 1}
    assert session.notes == ("1 message on other branches",)


def test_pi_begins_at_the_newest_compaction() -> None:
    """The summary first, then what was kept from ``firstKeptEntryId`` on, then the rest; older summaries are gone."""
    session = read(
        PI,
        pi("a", None),
        pi("k1", "a", "compaction", summary="first", firstKeptEntryId="a", tokensBefore=10),
        pi("b", "k1"),
        pi("c", "b"),
        pi("k2", "c", "compaction", summary="second", firstKeptEntryId="c", tokensBefore=20),
        pi("d", "k2"),
    )
    assert contents(session) == ["second", "c", "d"]
    assert session.messages[0]["role"] == "compactionSummary"
    assert session.messages[0]["tokensBefore"] == 20
    assert session.notes == ("2 messages ahead of the newest compaction",)


def test_pi_keeps_nothing_that_a_compaction_does_not_name() -> None:
    """An id that is not on the way, and one that spans an older compaction, whose summary is not sent again."""
    lines = [PI, pi("a", None), pi("k1", "a", "compaction", summary="1", firstKeptEntryId="a"), pi("b", "k1")]
    unknown = pi("k2", "b", "compaction", summary="2", firstKeptEntryId="gone")
    unknown["timestamp"] = "no time"
    session = read(*lines, unknown, pi("c", "k2"))
    assert (contents(session), session.messages[0]["timestamp"]) == (["2", "c"], None)
    spanning = pi("k2", "b", "compaction", summary="2", firstKeptEntryId="a")
    assert contents(read(*lines, spanning, pi("c", "k2"))) == ["2", "a", "b", "c"]


def test_pi_numbered_entries_once() -> None:
    """The first version: a plain sequence, where a compaction names its first kept entry by number, header included."""
    plain = [{key: value for key, value in pi(name, None).items() if "d" not in key} for name in "abc"]
    compaction = {"type": "compaction", "timestamp": "t", "summary": "short", "firstKeptEntryIndex": 2}
    session = read({**PI, "provider": "p"}, *plain[:2], compaction, plain[2])
    assert contents(session) == ["short", "b", "c"]
