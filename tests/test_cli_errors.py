"""Wrong use and bad input: one line that names the option or the position, status 2, no output touched."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests._cli import fails, run, session, write

USER = {"role": "user", "content": "x"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "session.json", session())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "--strategy token-budget needs --max-tokens, such as --max-tokens 8000"),
        (["--strategy", "truncation"], "--strategy truncation needs --trigger, such as --trigger 'tokens > 8000'"),
        (["--max-tokens", "-5"], "Invalid value for '--max-tokens': expected a whole number of 0 or more, got '-5'"),
        (["--max-tokens", "true"], "'--max-tokens': expected a whole number of 0 or more, got 'true'"),
        (["--max-tokens", "8k"], "'--max-tokens': expected a whole number of 0 or more, got '8k'"),
        (["--max-tokens", "1.5"], "'--max-tokens': expected a whole number of 0 or more, got '1.5'"),
        (["--max-tokens", "9", "--reserved", "-1"], "'--reserved': expected a whole number of 0 or more, got '-1'"),
        (["--max-tokens", "9", "--pin", "x"], "'--pin': expected a whole number of 0 or more, got 'x'"),
        (["--max-tokens", "9", "--pin", "13"], "--pin must be the position of one of 13 messages, from 0 on, got 13"),
        (["--max-tokens", "5", "--target-tokens", "9"], "--target-tokens must be at most --max-tokens (5), got 9"),
        (["--max-tokens", "5", "--trigger", "turns > 2"], "--trigger is for --strategy truncation, got --strategy tok"),
        (["--max-tokens", "5", "--target", "turns < 2"], "--target is for --strategy truncation"),
        (
            ["--strategy", "truncation", "--trigger", "turns > 2", "--max-turns", "3"],
            "--max-turns is for --strategy token-budget, got --strategy truncation, which expects --trigger 'tokens >",
        ),
        (
            ["--strategy", "truncation", "--trigger", "turns > 2", "--evict", "turns"],
            "--evict is for --strategy token-budget",
        ),
        (
            ["--strategy", "truncation", "--trigger", "tokens > 5", "--target", "tokens <= 9"],
            "--target must not be looser than the trigger: ",
        ),
        (
            ["--strategy", "truncation", "--trigger", "__import__('os')"],
            "Invalid value for '--trigger': cannot read the predicate",
        ),
        (["--strategy", "truncation", "--trigger", "tokens > -5"], "Invalid value for '--trigger': cannot read"),
        (["--strategy", "fifo"], "Invalid value for '--strategy': 'fifo' is not one of 'token-budget', 'truncation'"),
        (["--max-tokens", "5", "--format", "x"], "Invalid value for '--format': 'x' is not one of 'auto', "),
        (
            ["--max-tokens", "5", "--counter", "estimate", "--tokenizer", "x"],
            "--tokenizer and --counter exclude each other, got --counter estimate and --tokenizer x",
        ),
        (["--max-tokens", "5", "--tokenizer", "none.json"], "--tokenizer must name a tokenizer of the tokenizers pack"),
        (["--max-tokens", "5", "--report", "-"], "--report must be a file, got -: standard output is for messages"),
        (["--max-tokens", "5", "-o", "x", "--report", "./x"], "--report must be another file than --output, got ./x"),
        (["--max-tokens", "5", "-o", "gone/x.json"], "gone/x.json: there is no folder gone"),
        (["--max-tokens", "5", "-o", "."], ".: is a folder; expected a file"),
        (["--max-token", "5"], "No such option"),
        (["--max-tokens"], "Option '--max-tokens' requires an argument"),
        (["--max-tokens", "5", "more.json"], "--output must be a folder for many sessions, got standard output"),
    ],
)
def test_wrong_use_names_the_option(path: Path, options: list[str], error: str) -> None:
    """Each wrong option is one line that names it and what was expected, with status 2."""
    assert error in fails(run("compact", path, *options))


@pytest.mark.parametrize("report", ["session.json", "./session.json", "hard.json", "soft.json"])
def test_the_report_never_replaces_the_session(path: Path, monkeypatch: pytest.MonkeyPatch, report: str) -> None:
    """By whatever name it goes: a typing error must not cost a session."""
    monkeypatch.chdir(path.parent)
    Path("hard.json").hardlink_to(path)
    Path("soft.json").symlink_to(path)
    before = path.read_text()
    line = fails(run("compact", path, "--max-tokens", "300", "--report", report))
    assert line.startswith(f"--report must be another file than the session, got {report} for both (see ")
    assert path.read_text() == before


def test_words_of_a_value_are_no_arguments(path: Path) -> None:
    """Only the argument that an error of the library names becomes an option, not the same word in what was given."""
    line = fails(run("compact", path, "--max-tokens", "5", "--tokenizer", "my path file.json"))
    assert line.startswith("--tokenizer must name a tokenizer ")
    assert "got 'my path file.json': no such file" in line.lower()


def test_the_name_of_a_file_is_not_reworded(tmp_path: Path) -> None:
    """The option that an error of the library hints at is ours, but a file is called what it is called."""
    path = write(tmp_path / "a format= b.json", [{"role": "wizard"}])
    line = fails(run("check", path))
    assert line.startswith(f"{path}: ")
    assert "--format names another" in line


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_name_that_is_too_long_is_named(path: Path, option: str) -> None:
    """What the system says about a file is told of that file."""
    name = "a" * 300
    assert fails(run("compact", path, "--max-tokens", "5", option, name)) == f"{name}: file name too long"


def test_wrong_use_points_to_the_help(path: Path) -> None:
    """The line ends with the way to the help of that command; bad input has no need of it."""
    assert fails(run("compact", path)).endswith("(see chat-compaction compact --help)")
    assert "--help" not in fails(run("compact", path.with_name("gone.json"), "--max-tokens", "5"))


@pytest.mark.parametrize("arguments", [[], ["compact"], ["inspect"], ["check"], ["compacted"], ["--colour"]])
def test_a_missing_or_unknown_word_is_wrong_use(arguments: list[str]) -> None:
    """No command, no session, an unknown command: status 2 and nothing on standard output."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "chat-compaction" in result.stderr


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "no such file or directory"),
        (b"", "is empty; expected a JSON list of messages, a JSON object with the key"),
        (b'[{"role": "user"},\n{"role": }]', "broken JSON at line 2, column 10: Expecting value"),
        (b'{"role": "user"}\n{"role": }', "broken JSON at line 2, column 10: Expecting value"),
        (b'{"conversation": []}', 'got an object without "messages"'),
        (b'"hello"', "got a string"),
        (b'[{"role": "us\xe9r"}]', "is not UTF-8: byte 0xe9 at offset 13"),
        (b"[" * 100_000, "is nested too deeply to be read"),
        ([USER, 5], "messages[1] must be an object with a role, got 5"),
        ([USER, [USER]], "messages[1] must be an object with a role, got a list"),
        ([{"role": "wizard", "content": ""}], "messages[0].role must be one of system, "),
        ([USER, {"content": "x"}], "messages[1].role is missing"),
        (
            [USER, {"role": "tool", "tool_call_id": 7, "content": ""}],
            "messages[1].tool_call_id must be a string, got 7",
        ),
        (
            [USER, {"role": "assistant", "tool_calls": [{"id": 7, "function": {"name": "f", "arguments": ""}}]}],
            "messages[1].tool_calls[0].id must be a string, got 7",
        ),
        (
            [USER, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 7}]}],
            "messages[1].content[0].tool_use_id must be a string, got 7",
        ),
    ],
)
@pytest.mark.parametrize("command", ["compact", "inspect", "check", "repair"])
def test_bad_input_names_the_place(tmp_path: Path, content: Any, error: str, command: str) -> None:
    """Each is one line that names the file and the position or line, status 2, and an old output stays whole."""
    path, output = tmp_path / "session.json", tmp_path / "out.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    output.write_text("before")
    options: list[object] = {"compact": ["--max-tokens", "5", "-o", output], "repair": ["--repair", output]}.get(
        command, []
    )
    line = fails(run("check" if command == "repair" else command, path, *options))
    assert line.startswith(str(path))
    assert error in line
    assert output.read_text() == "before"
    assert {file.name for file in tmp_path.iterdir()} <= {"session.json", "out.json"}


def test_a_folder_is_no_session(tmp_path: Path) -> None:
    """A folder is named as what it is."""
    assert fails(run("check", tmp_path)) == f"{tmp_path}: is a directory"


def test_standard_input_has_a_name() -> None:
    """Errors about what came with - say so."""
    assert fails(run("check", "-", stdin="")).startswith("standard input is empty")
    assert fails(run("check", "-", stdin=b"[\xff]")) == "standard input is not UTF-8: byte 0xff at offset 1"


def test_a_name_with_a_line_break_stays_one_line(tmp_path: Path) -> None:
    """An error is one line whatever a file is called."""
    assert "a b.json: no such file" in fails(run("check", tmp_path / "a\nb.json"))


def test_a_failing_disk_is_one_line(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output cannot be put in place, the old one stays whole, the status is 2, and no other file remains."""
    output = write(tmp_path / "out.json", [])

    def fail(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", fail)
    line = fails(run("compact", path, "--max-tokens", "300", "-o", output))
    assert line == f"{output}: permission denied"
    assert json.loads(output.read_text()) == []
    assert {file.name for file in tmp_path.iterdir()} == {"session.json", "out.json"}


def test_a_full_standard_output_is_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What standard output does not take is told, but for a reader that went away: nobody is there to be told."""
    for error, told in ((OSError(28, "No space left"), "standard output: No space left"), (BrokenPipeError(), None)):

        def fail(_: str, error: OSError = error) -> None:
            raise error

        monkeypatch.setattr("chat_compaction.cli._files.write_output", fail)
        result = run("compact", path, "--max-tokens", "300")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (f"chat-compaction: error: {told}\n" if told else "")


def test_too_deep_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could be read but not written again is an error before any output is touched."""

    def fail(*_: Any, **__: Any) -> str:
        raise RecursionError

    path = write(tmp_path / "session.json", session())
    output = write(tmp_path / "out.json", [])
    monkeypatch.setattr("json.dumps", fail)
    line = fails(run("compact", path, "--max-tokens", "300", "-o", output))
    assert line == "a message is nested too deeply to be written"
    assert output.read_text() == "[]"


def test_an_interruption_is_no_traceback(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with the status that shells use for it."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("chat_compaction.cli._compact.index_of", interrupt)
    result = run("compact", path, "--max-tokens", "300")
    assert result.exit_code == 130
    assert result.stderr.strip() == "chat-compaction: interrupted"
