"""Claude Code's files: which lines are the conversation that it would send now."""

import json
from typing import Any

import pytest

from chat_compaction.formats._sessions import Session, parse_session


def read(*lines: dict[str, Any]) -> Session:
    return parse_session("".join(json.dumps(line) + "\n" for line in lines).encode(), "session")


def line(uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": "s", **fields}


def user(uuid: str, parent: str | None, content: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content if content is not None else uuid}
    return line(uuid, parent, type="user", message=message, **fields)


def assistant(uuid: str, parent: str | None, *blocks: Any, of: str = "", **fields: Any) -> dict[str, Any]:
    content = list(blocks) or [{"type": "text", "text": uuid}]
    message = {"role": "assistant", "id": of or f"msg_{uuid}", "content": content, "model": "m"}
    return line(uuid, parent, type="assistant", message=message, **fields)


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "found"}


def boundary(uuid: str, parent: str | None = None, **metadata: Any) -> dict[str, Any]:
    return line(uuid, parent, type="system", subtype="compact_boundary", compactMetadata=metadata)


def shown(session: Session) -> list[Any]:
    """The messages in short: a role's first letter and texts, calls and results by id."""
    return [f"{message['role'][0]}:{_words(message['content'])}" for message in session.messages]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "+".join(block.get("text") or block.get("id") or f"={block['tool_use_id']}" for block in content)


def test_lines_of_one_message_are_joined_and_parallel_results_found() -> None:
    """G2: each result hangs on the line of its own call, so the chain of the leaf passes by the others."""
    session = read(
        {"type": "file-history-snapshot", "snapshot": {}},
        user("q", None),
        assistant("a", "q", call("1"), of="m"),
        assistant("b", "a", call("2"), of="m"),
        user("r1", "a", [result("1")]),
        user("r2", "b", [result("2")]),
        assistant("end", "r2"),
        line("stop", "end", type="system", subtype="stop_hook_summary"),
    )
    assert shown(session) == ["u:q", "a:1+2", "u:=1+=2", "a:end"]
    assert (session.source, session.format, session.shape, session.notes) == ("claude_code", "anthropic", "list", ())


def test_a_call_on_a_fork_of_its_message_is_found() -> None:
    """A line of a message on the chain belongs to it, wherever it hangs, and so does its result."""
    session = read(
        user("q", None),
        assistant("a", "q", call("1"), of="m"),
        assistant("b", "a", call("2"), of="m"),
        user("r2", "b", [result("2")]),
        user("r1", "a", [result("1")]),
        assistant("end", "r1"),
    )
    assert shown(session) == ["u:q", "a:1+2", "u:=2+=1", "a:end"]


def test_other_branches_are_not_sent() -> None:
    """After a rewind the newest line decides; a second answer to a call on the chain is another branch, too."""
    session = read(
        user("q", None),
        assistant("a", "q", call("1")),
        user("r", "a", [result("1")]),
        assistant("old", "r"),
        user("again", "a", [result("1")]),
        assistant("new", "again"),
    )
    assert shown(session) == ["u:q", "a:1", "u:=1", "a:new"]
    assert session.notes == ("2 lines on other branches",)


def test_user_lines_in_a_row_are_one_message_with_results_first() -> None:
    """What a request holds: results come first in a user's message, as the API asks. ``isMeta`` lines are sent."""
    session = read(
        user("caveat", None, isMeta=True),
        user("q", "caveat", [{"type": "text", "text": "q"}]),
        assistant("a", "q", call("1")),
        user("queued", "a"),
        user("r", "queued", [result("1")]),
    )
    assert shown(session) == ["u:caveat+q", "a:1", "u:=1+queued"]


def test_errors_of_the_api_are_not_sent() -> None:
    """They are for the eye; another synthetic message is sent."""
    session = read(
        user("q", None),
        assistant("error", "q", isApiErrorMessage=True),
        user("again", "error"),
        assistant("No response requested.", "again", isApiErrorMessage=False),
        line("file", "No response requested.", type="attachment"),
    )
    assert shown(session) == ["u:q+again", "a:No response requested."]
    assert session.notes == (
        "1 error of the API, which the agent does not send",
        "1 attachment which the agent writes into its requests in its own words",
    )


@pytest.mark.parametrize("parent", [None, "a"])
def test_the_newest_compaction_begins_the_conversation(parent: str | None) -> None:
    """The summary is the first message, as Claude Code sends it; older compactions are history."""
    session = read(
        user("q", None),
        assistant("a", "q"),
        boundary("c1", parent),
        user("s1", "c1", isCompactSummary=True),
        assistant("b", "s1"),
        boundary("c2"),
        user("s2", "c2", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        assistant("end", "s2"),
        {"type": "summary", "summary": "A title", "leafUuid": "end"},
    )
    assert shown(session) == ["u:s2", "a:end"]
    assert session.notes == ("4 lines ahead of the newest compaction",)


def test_a_summary_without_a_boundary_begins_it_too() -> None:
    """Older versions write the summary alone."""
    session = read(user("q", None), assistant("a", "q"), user("s", "a", isCompactSummary=True), assistant("end", "s"))
    assert shown(session) == ["u:s", "a:end"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedSegment": {"headUuid": "q2", "anchorUuid": "s", "tailUuid": "a2"}},
        {"preservedMessages": {"anchorUuid": "s", "uuids": ["q2", "a2"], "allUuids": ["q2", "a2"]}},
    ],
)
@pytest.mark.parametrize("parent", ["s", "a2"])
def test_what_a_compaction_kept_stands_behind_its_summary(metadata: dict[str, Any], parent: str) -> None:
    """Kept lines are not written again: the boundary names them and what they now hang on."""
    session = read(
        user("q1", None),
        assistant("a1", "q1"),
        user("q2", "a1"),
        assistant("a2", "q2"),
        boundary("c", **metadata),
        user("s", "c", isCompactSummary=True),
        user("new", parent),
    )
    assert shown(session) == ["u:s+q2", "a:a2", "u:new"]
    assert session.notes == ("2 lines ahead of the newest compaction",)


def test_metadata_that_names_nothing_keeps_nothing() -> None:
    """Uuids that are not in the file are passed over."""
    gone = {"headUuid": "x", "anchorUuid": "y", "tailUuid": "z"}
    session = read(user("q", None), boundary("c", preservedSegment=gone), user("s", "c"), assistant("end", "s"))
    assert shown(session) == ["u:s", "a:end"]


def test_a_parent_that_was_never_written_is_bridged() -> None:
    """A known fault of the agent (its issues 22526, 58554 and 61188): the line ahead takes the parent's place."""
    session = read(user("q", None), assistant("a", "q"), user("next", "phantom"), assistant("end", "next"))
    assert shown(session) == ["u:q", "a:a", "u:next", "a:end"]
    assert session.notes == ("1 line whose parent is not in the file, tied to the line ahead",)


def test_a_file_that_begins_in_the_middle_begins_there() -> None:
    """Nothing stands ahead of its first line, so nothing is bridged."""
    session = read(assistant("a", "before", call("1")), user("r", "a", [result("1")]))
    assert shown(session) == ["a:1", "u:=1"]
    assert session.notes == ()


def test_a_circle_ends() -> None:
    """A line that is its own ancestor."""
    assert shown(read(user("q", "a"), assistant("a", "q"))) == ["u:q", "a:a"]


def test_sidechains_are_conversations_of_their_own() -> None:
    """Beside the main one, by the agent's id, or else by their first line."""
    session = read(
        user("q", None),
        assistant("a", "q", call("1")),
        user("task", None, isSidechain=True),
        assistant("work", "task", isSidechain=True),
        user("other", None, agentId="agent7", isSidechain=True),
        user("r", "a", [result("1")]),
    )
    assert shown(session) == ["u:q", "a:1", "u:=1"]
    assert {name: len(messages) for name, messages in session.sidechains.items()} == {"task": 2, "agent7": 1}
    assert session.notes == ("2 sidechains beside the main conversation",)


def test_the_file_of_one_sidechain_is_its_conversation() -> None:
    """Newer versions write each into a file of its own."""
    session = read(
        user("task", None, agentId="x", isSidechain=True), assistant("work", "task", agentId="x", isSidechain=True)
    )
    assert shown(session) == ["u:task", "a:work"]
    assert session.sidechains == {}


def test_sidechains_without_a_main_conversation_are_not_read_for_it() -> None:
    """Which of them is meant is not known, so there are no messages, and the note says what to do."""
    lines = [user(name, None, isSidechain=True) for name in ("one", "two", "three")]
    session = read(*lines, assistant("a", "one", isSidechain=True))
    assert session.messages == []
    assert {name: len(messages) for name, messages in session.sidechains.items()} == {"one": 2, "two": 1, "three": 1}
    assert session.notes == ("no main conversation; choose one of the 3 sidechains",)


def test_a_sidechain_in_a_circle_is_one_conversation() -> None:
    """Its lines are each other's ancestors, and what hangs on them is of the same conversation."""
    session = read(
        user("q", None),
        user("s1", "s2", isSidechain=True),
        assistant("s2", "s1", isSidechain=True),
        user("s3", "s2", isSidechain=True),
    )
    assert [len(messages) for messages in session.sidechains.values()] == [3]


def test_lines_without_uuids_are_a_plain_sequence() -> None:
    """As ``--output-format stream-json`` prints them."""
    lines = [user("q", None), assistant("a", None, of="m"), assistant("b", None, of="m")]
    session = read(
        {"type": "system", "subtype": "init"}, *[{"type": x["type"], "message": x["message"]} for x in lines]
    )
    assert shown(session) == ["u:q", "a:a+b"]


def test_a_file_without_messages_is_empty() -> None:
    """A session that was opened and never used."""
    session = read({"type": "summary", "summary": "A title", "leafUuid": "x"})
    assert (session.messages, session.source) == ([], "claude_code")


def test_content_of_any_shape_is_kept() -> None:
    """Strings in a list, and null, are read where lines are joined."""
    session = read(user("q", None, ["a", {"type": "text", "text": "b"}]), user("n", "q"), assistant("a", "n"))
    assert shown(session) == ["u:a+b+n", "a:a"]
    nothing = user("n", "q")
    nothing["message"]["content"] = None
    assert shown(read(user("q", None), nothing)) == ["u:q"]


def test_comments_ahead_of_the_lines_are_passed_over() -> None:
    """Collections of session files have them; the numbers of lines are those of the file."""
    text = "// where it is from\n\n// what it shows\n" + json.dumps(user("q", None)) + "\n"
    assert parse_session(text.encode(), "session").messages == [{"role": "user", "content": "q"}]
