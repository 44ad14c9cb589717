"""Agents' session files on the command line: read directly, never replaced by less than they hold."""

import json
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import read_session
from tests._cli import fails, run, session, write

Raw = dict[str, Any]
ESTIMATE = ["--counter", "estimate"]
BUDGET = ["--max-tokens", "300", "--target-tokens", "200", *ESTIMATE]
COMMANDS = {"compact": [*BUDGET, "-o"], "check": ["--repair"]}


def claude_lines(messages: list[Raw], *, agent: str = "") -> list[Raw]:
    """Lines as Claude Code writes them, each the child of the one ahead; with ``agent``, those of a sidechain."""
    lines: list[Raw] = []
    for number, message in enumerate(messages):
        parent = f"{agent}{number - 1}" if number else None
        line = {"type": message["role"], "uuid": f"{agent}{number}", "parentUuid": parent, "message": message}
        lines.append({**line, "isSidechain": bool(agent), **({"agentId": agent} if agent else {})})
    return lines


def write_lines(path: Path, lines: list[Raw]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


SIDE: list[Raw] = [
    {"role": "user", "content": "search"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
    {"role": "user", "content": "never mind"},
    {"role": "assistant", "content": "well"},
    {"role": "user", "content": "so?"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session of Claude Code with another branch and a sidechain in which a call was never answered."""
    branch = {"type": "user", "uuid": "x", "parentUuid": "0", "message": {"role": "user", "content": "other"}}
    lines: list[Raw] = [{"type": "summary", "leafUuid": "0", "summary": "s"}, branch]
    return write_lines(
        tmp_path / "claude.jsonl",
        [*lines, *claude_lines(SIDE, agent="side1"), *claude_lines(session(system=False))],
    )


def test_what_is_written_for_an_agents_file_is_a_list(path: Path) -> None:
    """Read is the conversation that the agent would send; what is kept is written as a JSON list."""
    result = run("compact", path, *BUDGET)
    strategy = cc.TokenBudgetStrategy(300, target_tokens=200)
    reducer = cc.as_chat_reducer(strategy, counter=cc.EstimateCounter(), format="anthropic", hooks=())
    assert result.exit_code == 0
    assert json.loads(result.stdout) == reducer.reduce(session(system=False))
    assert result.stderr.splitlines()[1:] == [
        f"{path}: 1 line on other branches",
        f"{path}: 1 sidechain beside the main conversation",
    ]
    assert len(run("compact", path, *BUDGET, "--quiet").stderr) == 0


def test_inspect_shows_the_agent_and_the_sidechains(path: Path) -> None:
    """Who wrote the file, in which format, the sidechains with their sizes, and on standard error what was not read."""
    result = run("inspect", path, *ESTIMATE)
    assert result.stdout.startswith(f"{path}: session of claude_code, format anthropic, detected\n")
    assert result.stdout.endswith("\n1 sidechain: side1 (5 messages).\n")
    assert f"{path}: 1 line on other branches\n" in result.stderr
    data = json.loads(run("inspect", path, "--json", *ESTIMATE).stdout)
    assert (data["source"], data["format"], data["format_known"]) == ("claude_code", "anthropic", True)
    assert data["sidechains"] == {"side1": 5}
    assert "1 line on other branches" in data["notes"]


def test_inspect_says_nothing_of_agents_where_there_is_none(tmp_path: Path) -> None:
    """A plain session has no source and no sidechains."""
    path = write(tmp_path / "session.json", session())
    text = run("inspect", path).stdout
    assert text.startswith(f"{path}: format openai_chat, assumed")
    assert "sidechain" not in text
    data = json.loads(run("inspect", path, "--json").stdout)
    assert (data["source"], data["sidechains"], data["notes"]) == ("", {}, [])


def test_check_goes_by_the_format_of_the_agent(path: Path) -> None:
    """Plain texts do not tell a format, but the file does; the notes are told here, too."""
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        f"{path}: no problems in 12 messages, read as anthropic",
        f"{path}: 1 line on other branches",
        f"{path}: 1 sidechain beside the main conversation",
    ]


def test_a_sidechain_can_be_taken_instead(path: Path) -> None:
    """--sidechain reads that conversation, by the name that inspect shows, in each command."""
    assert json.loads(run("compact", path, "--max-tokens", "900", "--sidechain", "side1").stdout) == SIDE
    looked = run("inspect", path, "--sidechain", "side1")
    assert "5 messages" in looked.stdout
    assert "beside" not in looked.stdout + looked.stderr
    checked = run("check", path, "--sidechain", "side1", "--repair", "-")
    assert checked.exit_code == 0
    assert checked.stderr.startswith("messages[1] unanswered_call: the call 't' never got a result\n")
    assert json.loads(checked.stdout) == cc.repair(SIDE, format="anthropic").messages


@pytest.mark.parametrize("command", ["compact", "inspect", "check"])
def test_a_sidechain_that_is_not_there_is_wrong_use(path: Path, tmp_path: Path, command: str) -> None:
    """The line names those that are there."""
    options = ["--max-tokens", "5"] if command == "compact" else []
    line = fails(run(command, path, "--sidechain", "side2", *options))
    assert line.startswith(f"--sidechain must be one of side1, got side2 for {path} (see ")
    plain = write(tmp_path / "plain.json", session())
    line = fails(run(command, plain, "--sidechain", "side1", *options))
    assert line.startswith(f"--sidechain must be of a session that has some, got side1 for {plain} (see ")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["claude.jsonl", "./claude.jsonl", "hard.jsonl", "soft.jsonl"])
@pytest.mark.parametrize("options", [[], ["--sidechain", "side1"]])
def test_an_agents_own_file_is_never_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str, options: list[str]
) -> None:
    """It holds more than messages, which a list of messages would lose: status 2, by whatever name it goes."""
    monkeypatch.chdir(path.parent)
    Path("hard.jsonl").hardlink_to(path)
    Path("soft.jsonl").symlink_to(path)
    before = path.read_bytes()
    line = fails(run(command, path, *options, *COMMANDS[command], name))
    option = "--output" if command == "compact" else "--repair"
    assert line.startswith(
        f"{option} must be another file than a session of claude_code, which holds more than messages, "
        f"got {name} for both (see "
    )
    assert path.read_bytes() == before
    assert not path.is_symlink()


@pytest.mark.parametrize("command", COMMANDS)
def test_one_object_of_an_agent_keeps_all_else(tmp_path: Path, command: str) -> None:
    """A session of Gemini CLI in one JSON object has the shape of an object, and may be replaced: no key is lost."""
    messages: list[Raw] = [
        {"id": f"{number}", "type": kind, "content": f"{kind} {number} " + "word " * 40}
        for number, kind in enumerate(["user", "gemini"] * 6)
    ]
    whole = {"sessionId": "s", "projectHash": "p", "messages": messages, "kind": "main"}
    path = write(tmp_path / "gemini.json", whole, indent=2)
    assert run(command, path, *COMMANDS[command], path).exit_code == 0
    written = json.loads(path.read_text())
    assert list(written) == list(whole)
    assert {**written, "messages": None} == {**whole, "messages": None}
    kept = len(written["messages"])
    assert kept == 12 if command == "check" else 0 < kept < 12
    assert read_session(path).source == "gemini_cli"


def test_the_list_is_read_in_the_format_of_the_agent(tmp_path: Path) -> None:
    """What was written for a file of Codex is a list of Responses items, and goes on as one."""
    items: list[Raw] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "found"},
        {"type": "function_call_output", "call_id": "z", "output": "lost"},
    ]
    lines: list[Raw] = [{"type": "session_meta", "payload": {"id": "s"}}]
    lines += [{"type": "response_item", "payload": item} for item in items]
    path, output = write_lines(tmp_path / "rollout.jsonl", lines), tmp_path / "out.json"
    result = run("check", path, "--repair", output)
    assert result.exit_code == 0
    assert "read as openai_responses" in result.stderr
    assert json.loads(output.read_text()) == items[:3]
    again = run("check", output)
    assert (again.exit_code, again.stderr) == (0, f"{output}: no problems in 3 messages, read as openai_responses\n")


def test_a_line_that_was_cut_off_is_told(path: Path) -> None:
    """An agent that was stopped while it wrote: a note in every command, and no error."""
    with path.open("a") as file:
        file.write('{"type": "assistant", "uui')
    note = f"{path}: the last line is cut off, and was not read\n"
    assert note in run("compact", path, *BUDGET).stderr
    assert note in run("inspect", path).stderr
    result = run("check", path)
    assert result.exit_code == 0
    assert note in result.stderr


@pytest.mark.parametrize("command", ["compact", "inspect", "check"])
def test_the_help_names_the_agents(command: str) -> None:
    """Each command says whose files it reads; those that write, what becomes of them."""
    text = " ".join(run(command, "--help").stdout.split())
    assert "Claude Code, Codex, Gemini CLI or pi as the agent wrote it" in text
    assert ("and never replace the agent's own file" in text) is (command != "inspect")
