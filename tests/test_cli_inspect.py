"""``chat-compaction inspect``: it looks and changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from tests._cli import fails, run, session, write

ESTIMATE = ["--counter", "estimate"]
CALLS: list[dict[str, Any]] = [
    {"role": "user", "content": "look"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "found"},
    {"role": "tool", "tool_call_id": "z", "content": "lost"},
]


def test_it_shows_groups_turns_tokens_and_problems(tmp_path: Path) -> None:
    """A row for each group with its state, totals, the format, the counter and each problem with its position."""
    path = write(tmp_path / "session.json", CALLS)
    result = run("inspect", path, "--pin", "0", *ESTIMATE)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[0] == f"{path}: format openai_chat, detected".split()
    assert [line[0] for line in lines[3:6]] == ["0", "1-2", "3"]
    assert [line[1] for line in lines[3:6]] == ["user", "tool_call", "orphan"]
    assert [line[4:] for line in lines[3:6]] == [["pinned"], ["pending"], ["1", "problem"]]
    assert " ".join(lines[6][:6]) == "4 messages 3 groups no turns"
    assert "Tokens counted by estimate (not exact). 1 problem." in result.stdout
    assert "messages[3] orphan_result: a result for the call 'z', which was never made before" in result.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "format openai_chat, assumed: the messages do not tell"),
        (["--format", "anthropic"], "format anthropic, as asked"),
    ],
)
def test_it_says_how_the_format_is_known(tmp_path: Path, options: list[str], told: str) -> None:
    """Plain text with roles reads alike in all formats; that the format is assumed is said."""
    path = write(tmp_path / "session.json", session(1))
    assert told in run("inspect", path, *options).stdout
    data = json.loads(run("inspect", path, "--json", *options).stdout)
    assert data["format_known"] is bool(options)


def test_json_is_data_only(tmp_path: Path) -> None:
    """--json writes what the index knows, and nothing else to standard output."""
    path = write(tmp_path / "session.json", CALLS)
    result = run("inspect", path, "--json", "--reserved", "7", *ESTIMATE)
    assert result.stderr == ""
    data = json.loads(result.stdout)
    index = cc.MessageIndex.from_messages(CALLS, counter=cc.EstimateCounter(), reserved=7)
    assert data["totals"] == {
        "tokens": index.value(cc.tokens),
        "messages": 4,
        "groups": 3,
        "turns": 1,
        "tool_groups": 1,
    }
    assert [group["positions"] for group in data["groups"]] == [[0], [1, 2], [3]]
    assert sum(group["tokens"] for group in data["groups"]) + 7 == data["totals"]["tokens"]
    assert [group["pending"] for group in data["groups"]] == [False, True, False]
    assert [problem["position"] for problem in data["problems"]] == [3]
    assert (data["format"], data["shape"], data["counter"], data["counter_exact"]) == (
        "openai_chat",
        "list",
        "estimate",
        False,
    )


def test_an_empty_session_can_be_looked_at(tmp_path: Path) -> None:
    """No messages, no groups, no problem."""
    path = write(tmp_path / "session.json", [])
    assert "no messages  no groups  no turns" in run("inspect", path).stdout


def test_it_takes_no_option_of_compact(tmp_path: Path) -> None:
    """Options that change nothing here are wrong use, not ignored."""
    path = write(tmp_path / "session.json", session())
    assert "No such option" in fails(run("inspect", path, "--max-tokens", "5"))
