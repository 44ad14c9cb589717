"""Session files as agents wrote them: what is read of each, against the lists that others derived by inference."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from chat_compaction import SessionError
from chat_compaction.formats._sessions import parse_session, read_session
from tests._shared import load_session, recorded_sessions, shared_dir

IMPLIED = {
    "claude_code": ("claude_code", "anthropic"),
    "codex": ("codex", "openai_responses"),
    "gemini_cli": ("gemini_cli", "gemini_cli"),
    "langgraph": ("", "langchain"),
    "pi": ("pi", "pi_session"),
}


def raw_files() -> list[Path]:
    return sorted((shared_dir() / "data" / "raw").glob("*/*"))


def raw(agent: str, part: str) -> Path:
    """The one raw file of an agent with this in its name."""
    (path,) = (shared_dir() / "data" / "raw" / agent).glob(f"*{part}*")
    return path


def derived(format: str, name: str) -> list[Any]:
    (path,) = [path for path in recorded_sessions(format) if path.stem == name]
    return load_session(path)


@pytest.mark.parametrize("path", raw_files(), ids=lambda path: f"{path.parent.name}-{path.stem[-30:]}")
def test_every_file_is_read(path: Path) -> None:
    """Its source and format are told by what is in there; what is written again is the same messages."""
    session = read_session(path)
    assert (session.source, session.format) == IMPLIED[path.parent.name]
    assert session.messages
    again = parse_session(session.dump(session.messages).encode(), "again")
    assert again.messages == session.messages
    assert session == parse_session(path.read_bytes(), "any name")


@pytest.mark.parametrize("path", raw_files(), ids=lambda path: f"{path.parent.name}-{path.stem[-30:]}")
def test_a_file_that_was_cut_off_is_read(path: Path) -> None:
    """An agent that was killed while it wrote: its last line is a note, and the rest is read."""
    if path.suffix == ".json":
        return
    data = path.read_bytes().rstrip()
    cut = parse_session(data[: data.rindex(b"\n") + 20], "session")
    assert cut.notes[-1] == "the last line is cut off, and was not read"
    assert cut.source == path.parent.name


@pytest.mark.parametrize(
    ("agent", "part", "format", "name"),
    [
        ("claude_code", "askuserquestion", "anthropic", "agentcmd-005"),
        ("claude_code", "00_c9e2351016", "anthropic", "entire-cli-015"),
        ("claude_code", "01_3118c3a750", "anthropic", "entire-cli-016"),
        ("claude_code", "0ccf1a04", "anthropic", "moredip-session-share-004"),
        ("claude_code", "images-in-user-messages", "anthropic", "moredip-session-share-003"),
        ("codex", "2025-09-24T19-22", "openai_responses", "codex-agentcmd-001"),
        ("codex", "2025-09-24T20-12", "openai_responses", "codex-agentcmd-002"),
        ("codex", "2025-09-25T15-12", "openai_responses", "codex-agentcmd-005"),
        ("gemini_cli", "981c87cb", "gemini_cli", "agentcmd-001"),
        ("gemini_cli", "453aa339", "gemini_cli", "agentcmd-002"),
        ("gemini_cli", "f96c76b0", "gemini_cli", "agentcmd-004"),
    ],
)
def test_what_others_derived_is_what_we_read(agent: str, part: str, format: str, name: str) -> None:
    """Chains, joined lines, parallel results and user lines in a row come out equal, to the last field."""
    assert read_session(raw(agent, part)).messages == derived(format, name)


def test_names_that_were_scrubbed_are_all_that_differs() -> None:
    """The derived list has a user's name replaced in two listings of a folder; else it is the same."""
    ours = read_session(raw("claude_code", "full_full-session.")).messages
    assert _anonymous(ours) == _anonymous(derived("anthropic", "agentcmd-004"))


def _anonymous(messages: list[Any]) -> str:
    """The messages as text, without the owner of a file in a listing."""
    return re.sub(r"(@? +\d+) \S+ +staff", r"\1 staff", json.dumps(messages))


def compacted_segments() -> list[list[Any]]:
    """What the file of a session with three compactions held right before each of them."""
    data = raw("claude_code", "cd_95adddad32").read_bytes().split(b"\n")
    ends = [number for number, line in enumerate(data) if b'"subtype":"compact_boundary"' in line]
    return [parse_session(b"\n".join([*data[:end], b""]), "segment").messages for end in ends]


def test_a_conversation_begins_at_its_newest_compaction() -> None:
    """Segment 2 of 4 equals; segment 1 but for a message that the derived list lacks, and the agent sends.

    Claude Code itself writes "No response requested." in the assistant's place when it resumes behind a local
    command. It is synthetic but no error of the API (``isApiErrorMessage`` is false), so it stays; the
    derived list drops it as one, and joins the user's messages around it.
    """
    first, second, _ = compacted_segments()
    assert second == derived("anthropic", "entire-cli-021")
    (position,) = [n for n, message in enumerate(first) if _says(message, "No response requested.")]
    before, after = first[position - 1], first[position + 1]
    joined = {"role": "user", "content": [*before["content"], {"type": "text", "text": after["content"]}]}
    assert [*first[: position - 1], joined, *first[position + 2 :]] == derived("anthropic", "entire-cli-020")


def _says(message: Any, text: str) -> bool:
    return bool(message["content"] == [{"type": "text", "text": text}])


def test_a_rewritten_conversation_is_read_as_it_was_sent() -> None:
    """A resumed file holds the conversation twice, the second time from a root of its own: that one counts.

    The derived list joined lines of both by their message id: calls stand ahead of the thinking that led to
    them, and the user's first message is missing. In ours the user is first, and thinking stands ahead of calls.
    """
    ours = read_session(raw("claude_code", "general-tool-calls")).messages
    theirs = derived("anthropic", "moredip-session-share-002")
    assert [_kinds(ours[1]), _kinds(theirs[0])] == [
        ["thinking", "text", "tool_use"],
        ["tool_use", "tool_use", "thinking", "text", "tool_use"],
    ]
    assert ours[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in itertools.pairwise(ours) if "user" in (a["role"], b["role"]))


def _kinds(message: Any) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_the_compaction_of_a_pi_session_counts() -> None:
    """The derived list has every message of the file; pi sends the newest summary, and what it kept."""
    session = read_session(raw("pi", "before-compaction"))
    whole = derived("pi_session", "pi-mono-001")
    assert session.messages[0]["role"] == "compactionSummary"
    assert [message["timestamp"] for message in session.messages[1:]] == [
        message["timestamp"] for message in whole[-len(session.messages) + 1 :]
    ]
    assert session.messages[1]["role"] == "user"
    assert session.notes == (f"{len(whole) - len(session.messages) + 1} messages ahead of the newest compaction",)


@pytest.mark.parametrize("agent", ["claude_code", "codex", "pi"])
def test_a_broken_line_names_its_number(agent: str) -> None:
    """In the middle of a file a broken line is an error: what it held is not known."""
    path = next(path for path in raw_files() if path.parent.name == agent and b"//" not in path.read_bytes()[:2])
    lines = path.read_bytes().split(b"\n")
    lines[4] = lines[4][:30]
    with pytest.raises(SessionError, match="session: broken JSON at line 5, column"):
        parse_session(b"\n".join(lines), "session")
