"""``chat-compaction check``: what is wrong in a session, and a repaired copy of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from tests._cli import fails, run, session, write

Raw = dict[str, Any]
LOOK: Raw = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
ORPHAN: list[Raw] = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", **LOOK}]},
    {"role": "tool", "tool_call_id": "a", "content": "found"},
    {"role": "tool", "tool_call_id": "z", "content": "lost"},
]
LISTED = "messages[3] orphan_result: a result for the call 'z', which was never made before\n"
DONE = "repaired messages[3] orphan_result: removed the result of the call 'z', never made\n"

# For Mistral: the result of no call can be mended, but not that the user speaks right behind a tool.
HOPELESS: list[Raw] = [*ORPHAN[:2], ORPHAN[3], ORPHAN[2], {"role": "user", "content": "next"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "session.json", ORPHAN)


# -- listing ------------------------------------------------------------------------------------


def test_problems_are_listed_with_status_1(path: Path) -> None:
    """Each problem is a line on standard output with position, rule and text; the count is on standard error."""
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (1, LISTED)
    assert result.stderr == f"{path}: 1 problem in 4 messages, read as openai_chat\n"


@pytest.mark.parametrize(("messages", "number"), [(session(), "13 messages"), ([], "0 messages")])
def test_it_is_silent_where_all_is_well(tmp_path: Path, messages: list[Any], number: str) -> None:
    """Status 0 and nothing on standard output; an empty session breaks no rule."""
    path = write(tmp_path / "session.json", messages)
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{path}: no problems in {number}, read as openai_chat\n"


@pytest.mark.parametrize("option", ["--for", "--format"])
def test_it_goes_by_the_rules_of_the_format(tmp_path: Path, option: str) -> None:
    """K7: that the first message must be a user's is a problem only where the provider asks for it."""
    path = write(tmp_path / "session.json", [{"role": "assistant", "content": "hello"}])
    assert run("check", path).exit_code == 0
    result = run("check", path, option, "anthropic")
    assert result.exit_code == 1
    assert result.stdout.startswith("messages[0] first_user: ")
    assert result.stderr.endswith("read as anthropic\n")


def test_a_session_is_never_translated(path: Path) -> None:
    """--for names the format that the messages have; those of another one are an error, and nothing is written."""
    output = path.with_name("out.json")
    line = fails(run("check", path, "--for", "anthropic", "--repair", output))
    assert line.startswith(f"{path}: messages[2].role must be one of user, assistant, system, got 'tool'")
    assert not output.exists()


def test_it_takes_no_option_of_compact(path: Path) -> None:
    """Options that change nothing here are wrong use, not ignored."""
    assert "No such option" in fails(run("check", path, "--counter", "estimate"))


# -- repairing ----------------------------------------------------------------------------------


def test_a_repaired_session_is_written_to_a_file(path: Path) -> None:
    """--repair writes what the library repairs, lists what was done, and the status is 0 if nothing is wrong then."""
    before, output = path.read_text(), path.with_name("out.json")
    result = run("check", path, "--repair", output)
    assert (result.exit_code, result.stdout) == (0, LISTED + DONE)
    assert result.stderr.splitlines() == [
        f"{path}: 1 problem in 4 messages, read as openai_chat",
        f"{output}: 1 repair, 3 messages, no problems remaining",
    ]
    assert json.loads(output.read_text()) == ORPHAN[:3] == cc.repair(ORPHAN).messages
    assert path.read_text() == before


def test_messages_are_alone_on_standard_output(path: Path) -> None:
    """With --repair -, standard output is JSON, and all that is listed is on standard error."""
    result = run("check", path, "--repair", "-")
    assert (result.exit_code, json.loads(result.stdout)) == (0, ORPHAN[:3])
    assert result.stderr == (
        f"{LISTED}{path}: 1 problem in 4 messages, read as openai_chat\n"
        f"{DONE}standard output: 1 repair, 3 messages, no problems remaining\n"
    )


def test_from_standard_input() -> None:
    """Both ends of a pipe."""
    result = run("check", "-", "--repair", "-", stdin=json.dumps(ORPHAN))
    assert json.loads(result.stdout) == ORPHAN[:3]
    assert "standard input: 1 problem in 4 messages" in result.stderr


def test_what_is_sound_is_written_as_it_is(tmp_path: Path) -> None:
    """Without a problem nothing is changed, and the copy is complete."""
    path, output = write(tmp_path / "session.json", session()), tmp_path / "out.json"
    result = run("check", path, "--repair", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[1] == f"{output}: no repairs, 13 messages, no problems remaining"
    assert json.loads(output.read_text()) == session()


def test_what_nobody_can_mend_is_listed_with_status_1(tmp_path: Path) -> None:
    """What could be mended is, what remains is listed by its position in what was written, and the status is 1."""
    path, output = write(tmp_path / "session.json", HOPELESS), tmp_path / "out.json"
    result = run("check", path, "--for", "mistral", "--repair", output)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "messages[2] orphan_result",
        "messages[4] user_after_tool",
        "repaired messages[2] orphan_result",
        "remaining messages[3] user_after_tool",
    ]
    assert json.loads(output.read_text()) == [*HOPELESS[:2], *HOPELESS[3:]]
    assert result.stderr.endswith(f"{output}: 1 repair, 4 messages, 1 problem remaining\n")
    again = run("check", output, "--for", "mistral")
    assert again.exit_code == 1
    assert f"remaining {again.stdout}" == f"{lines[-1]}\n"


@pytest.mark.parametrize("shape", ["list", "object", "lines"])
def test_every_shape_is_repaired_as_it_came(tmp_path: Path, shape: str) -> None:
    """A list with its indent, an object with its other keys, or lines: the same shape goes out."""

    def text(messages: list[Any]) -> str:
        return {
            "list": json.dumps(messages, indent=1) + "\n",
            "object": json.dumps({"model": "m", "messages": messages, "stream": True}) + "\n",
            "lines": "".join(json.dumps(message) + "\n" for message in messages),
        }[shape]

    path, output = tmp_path / "session", tmp_path / "out"
    path.write_text(text(ORPHAN))
    assert run("check", path, "--repair", output).exit_code == 0
    assert output.read_text() == text(ORPHAN[:3])


def test_a_session_may_be_repaired_in_place(path: Path) -> None:
    """As with compact, the output may be the session itself; then it is clean."""
    assert run("check", path, "--repair", path).exit_code == 0
    assert json.loads(path.read_text()) == ORPHAN[:3]
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (0, "")


# One history for each rule that a format can mend, by the format.
WRONG: list[tuple[str, list[Raw]]] = [
    ("openai_chat", [*ORPHAN, ORPHAN[2]]),
    ("openai_chat", [*ORPHAN[:2], {"role": "user", "content": "well?"}, ORPHAN[2]]),
    ("openai_chat", [*ORPHAN[:2], *session(2)]),
    (
        "openai_responses",
        [{"role": "user", "content": "x"}, {"type": "function_call_output", "call_id": "z", "output": "lost"}],
    ),
    ("anthropic", [{"role": "assistant", "content": "hello"}, *session(2, system=False)]),
    ("anthropic", [*session(1, system=False), {"role": "user", "content": ""}, *session(1, system=False)]),
    ("bedrock_converse", [{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}]),
    ("gemini", [{"role": "model", "parts": [{"text": "hello"}]}, {"role": "user", "parts": [{"text": "x"}]}]),
]


@pytest.mark.parametrize(("format_name", "messages"), WRONG, ids=[f"{n}-{w[0]}" for n, w in enumerate(WRONG)])
def test_what_was_repaired_is_clean(tmp_path: Path, format_name: str, messages: list[Raw]) -> None:
    """The repaired file has no problem in the eyes of the command that repaired it, and repairing it does nothing."""
    path, output = write(tmp_path / "session.json", messages), tmp_path / "out.json"
    first = run("check", path, "--for", format_name, "--repair", output)
    assert first.exit_code == 0
    assert "repaired messages[" in first.stdout
    written = output.read_text()
    again = run("check", output, "--for", format_name, "--repair", output)
    assert (again.exit_code, again.stdout) == (0, "")
    assert output.read_text() == written


# -- nothing is lost ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "error"),
    [("gone/out.json", "gone/out.json: there is no folder gone"), (".", ".: is a folder; expected a file")],
)
def test_what_cannot_be_written_is_refused_ahead(
    path: Path, monkeypatch: pytest.MonkeyPatch, output: str, error: str
) -> None:
    """Before the session is read: status 2, and nothing is listed."""
    monkeypatch.chdir(path.parent)
    assert fails(run("check", path, "--repair", output)) == error


@pytest.mark.parametrize("in_place", [True, False])
def test_a_failing_disk_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool) -> None:
    """Where the output cannot be put in place, it stays as it was, and so does the session; status 2."""
    output = path if in_place else write(path.with_name("out.json"), [])
    before = {file: file.read_text() for file in path.parent.iterdir()}

    def fail(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", fail)
    assert fails(run("check", path, "--repair", output)) == f"{output}: permission denied"
    assert {file: file.read_text() for file in path.parent.iterdir()} == before


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="descriptors with names")
def test_the_list_never_goes_where_the_messages_go(path: Path) -> None:
    """A name such as /dev/stdout that leads to standard output: the lines are on standard error then, too."""
    result = run("check", path, "--repair", "/dev/fd/1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(LISTED)
    assert DONE in result.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="devices of POSIX")
def test_a_device_takes_the_messages(path: Path) -> None:
    """/dev/null is written to as it is: to see what would be done, and keep nothing."""
    result = run("check", path, "--repair", os.devnull)
    assert (result.exit_code, result.stdout) == (0, LISTED + DONE)
    assert not Path(os.devnull).is_file()


def test_the_help_says_what_happens() -> None:
    """The same file, an agent's file, where the lines go, and the status."""
    text = " ".join(run("check", "--help").stdout.split())
    for words in (
        "FILE has the shape of SESSION, and may be the same file",
        "never replace the agent's own file",
        "Where FILE is standard output, the lines are on standard error",
        "The status is 0 if there is no problem, or none after the repair, 1 if there are any",
        "--for, --format FORMAT",
    ):
        assert words in text
