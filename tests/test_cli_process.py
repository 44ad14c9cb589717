"""The command as its users run it: a process with its streams, its status, and what it loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chat_compaction.cli import main
from tests._cli import session, write
from tests._shared import ROOT

COMMAND = [sys.executable, "-m", "chat_compaction"]
BUDGET = ["--max-tokens", "300", "--target-tokens", "200", "--counter", "estimate"]

LOADED = """
import sys
from chat_compaction.cli import main
try:
    main(sys.argv[1:])
except SystemExit as done:
    print(done.code, *sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of the test, with the source where the package is not installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}


def test_from_standard_input_to_standard_output(environment: dict[str, str]) -> None:
    """With -, messages come in and go out on the standard streams in UTF-8, and all else is on standard error."""
    text = "".join(
        json.dumps(message, ensure_ascii=False) + "\n" for message in [*session(), session()[1] | {"x": "é"}]
    )
    environment["PYTHONIOENCODING"] = "ascii"
    done = subprocess.run(
        [*COMMAND, "compact", "-", *BUDGET, "--table"], input=text.encode(), capture_output=True, env=environment
    )
    assert done.returncode == 0
    lines = done.stdout.decode("utf-8").splitlines()
    assert lines[-1] == json.dumps(session()[1] | {"x": "é"}, ensure_ascii=False)
    assert set(lines) < set(text.splitlines())
    assert b"standard input: kept " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["compact", "session.json", "--max-tokens", "300"], 0),
        (["compact", "session.json", "--max-tokens", "1"], 1),
        (["compact", "session.json", "--max-tokens", "1", "--on-overflow", "raise"], 1),
        (["compact", "session.json", "--max-tokens", "-1"], 2),
        (["compact", "gone.json", "--max-tokens", "300"], 2),
        (["inspect", "session.json"], 0),
        (["check", "session.json"], 0),
        (["check", "orphan.json"], 1),
        (["check", "orphan.json", "--repair", "-"], 0),
        (["check", "assistant.json", "--for", "anthropic", "--repair", "-"], 1),
        (["check", "orphan.json", "--repair", "gone/out.json"], 2),
        (["check", "broken.json"], 2),
        (["--version"], 0),
        ([], 2),
    ],
)
def test_the_status(tmp_path: Path, environment: dict[str, str], arguments: list[str], status: int) -> None:
    """0 done, 1 does not fit or breaks a rule, 2 wrong use or unreadable; never a traceback."""
    write(tmp_path / "session.json", session())
    write(tmp_path / "orphan.json", [{"role": "tool", "tool_call_id": "x", "content": ""}])
    write(tmp_path / "assistant.json", [{"role": "assistant", "content": "hello"}])
    (tmp_path / "broken.json").write_text("[{")
    done = subprocess.run([*COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("command", [["compact", *BUDGET], ["inspect"], ["inspect", "--json"], ["check"]])
def test_a_reader_that_went_away(tmp_path: Path, environment: dict[str, str], command: list[str]) -> None:
    """A broken pipe on standard output, as head makes it, ends quietly with status 2."""
    path = write(tmp_path / "session.json", [{"role": "tool", "tool_call_id": "x", "content": ""}, *session()])
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, *command, path], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_went_away_costs_no_repair(tmp_path: Path, environment: dict[str, str]) -> None:
    """The repaired file is written ahead of the lists, which head may cut short."""
    path, output = tmp_path / "session.json", tmp_path / "out.json"
    write(path, [*session(), {"role": "tool", "tool_call_id": "x", "content": ""}])
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "check", path, "--repair", output], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")
    assert json.loads(output.read_text()) == session()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_standard_error_costs_no_repair(tmp_path: Path, environment: dict[str, str]) -> None:
    """With --repair -, lists that cannot be printed change neither the messages nor the status."""
    path = write(tmp_path / "session.json", [*session(), {"role": "tool", "tool_call_id": "x", "content": ""}])
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, "check", path, "--repair", "-"], stdout=subprocess.PIPE, stderr=full, env=environment
        )
    assert done.returncode == 0
    assert json.loads(done.stdout) == session()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("command", [["compact", *BUDGET], ["inspect"], ["inspect", "--json"], ["check", "--repair=-"]])
def test_a_full_standard_output(tmp_path: Path, environment: dict[str, str], command: list[str]) -> None:
    """Standard output that takes no more is one line on standard error, status 2."""
    path = write(tmp_path / "session.json", session())
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, *command, path], stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("chat-compaction: error: standard output: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["compact", "--help"], ["check", "session.json"]])
def test_what_cannot_be_told_is_one_line(tmp_path: Path, environment: dict[str, str], arguments: list[str]) -> None:
    """Help is output, too: one line where standard output takes no more, none where nobody reads; status 2."""
    write(tmp_path / "session.json", [{"role": "tool", "tool_call_id": "x", "content": ""}])
    reader, gone = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    for stream, told in ((full, "chat-compaction: error: standard output: No space left on device\n"), (gone, "")):
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, stdout=stream, stderr=subprocess.PIPE, text=True, env=environment
        )
        os.close(stream)
        assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("options", [[], ["--table"], ["-v"], ["-qv"], ["--table", "-v"]])
@pytest.mark.parametrize(("budget", "status"), [("300", 0), ("1", 1), ("-1", 2)])
def test_a_full_standard_error_changes_no_status(
    tmp_path: Path, environment: dict[str, str], options: list[str], budget: str, status: int
) -> None:
    """A summary, a table or a log that cannot be printed is none that matters: the messages were written."""
    path = write(tmp_path / "session.json", session())
    arguments = ["compact", str(path), "--counter", "estimate", *options, f"--max-tokens={budget}"]
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=full, env=environment)
    assert done.returncode == status
    assert bool(done.stdout) is (status < 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_messages_that_cannot_be_written_leave_no_report(tmp_path: Path, environment: dict[str, str]) -> None:
    """A report of what nobody received misleads: files are put in place when the streams have taken theirs."""
    path = write(tmp_path / "session.json", session())
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, "compact", path, *BUDGET, "--report", "report.json"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment,
        )
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="descriptors with names")
@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_standard_streams_by_name(tmp_path: Path, environment: dict[str, str], mode: str) -> None:
    """-o /dev/stdout and --report /dev/stderr go where the shell put the streams, behind what is there."""
    path, out, err = write(tmp_path / "session.json", session()), tmp_path / "out", tmp_path / "err"
    out.write_text("before\n")
    err.write_text("before\n")
    with out.open(mode) as stdout, err.open(mode) as stderr:
        done = subprocess.run(
            [*COMMAND, "compact", path, *BUDGET, "-o", "/dev/stdout", "--report", "/dev/stderr"],
            stdout=stdout,
            stderr=stderr,
            env=environment,
        )
    assert done.returncode == 0
    start = "before\n" if mode == "ab" else ""
    kept = json.loads(out.read_text().removeprefix(start))
    *report, summary = err.read_text().removeprefix(start).splitlines()
    assert json.loads("\n".join(report))["messages_after"] == len(kept)
    assert summary.startswith(f"{path}: kept {len(kept)} of ")
    assert out.read_text().startswith(start)
    assert err.read_text().startswith(start)


@pytest.mark.skipif(os.name == "nt", reason="redirections of POSIX")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("compact - {budget} --report session.json < session.json", "the session, got session.json"),
        ("compact session.json {budget} --report out.json > out.json", "--output, got out.json"),
    ],
)
def test_the_report_never_replaces_a_standard_stream(
    tmp_path: Path, environment: dict[str, str], line: str, named: str
) -> None:
    """A session that the shell opened is the same file, and so is the output that it opened."""
    path = write(tmp_path / "session.json", session())
    before = path.read_text()
    command = f"{sys.executable} -m chat_compaction {line.format(budget=' '.join(BUDGET))}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert f"--report must be another file than {named} for both" in done.stderr
    assert path.read_text() == before


@pytest.mark.skipif(os.name == "nt", reason="redirections of POSIX")
@pytest.mark.parametrize("command", ["check - --repair session.jsonl", "compact - --max-tokens 9 -o session.jsonl"])
def test_an_agents_file_on_standard_input_is_never_replaced(
    tmp_path: Path, environment: dict[str, str], command: str
) -> None:
    """A session that the shell opened is the agent's file all the same."""
    path, line = tmp_path / "session.jsonl", {"type": "user", "uuid": "1", "parentUuid": None}
    path.write_text(json.dumps({**line, "message": {"role": "user", "content": "x"}}) + "\n")
    before = path.read_text()
    whole = f"{sys.executable} -m chat_compaction {command} < session.jsonl"
    done = subprocess.run(["/bin/sh", "-c", whole], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "must be another file than a session of claude_code" in done.stderr
    assert path.read_text() == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("command", ["inspect", "check"])
def test_names_of_any_script_are_printed(
    tmp_path: Path, environment: dict[str, str], encoding: str, command: str
) -> None:
    """A file or a call that the terminal has no letters for is escaped, not a traceback."""
    path = write(tmp_path / "日.json", [{"role": "tool", "tool_call_id": "日", "content": ""}])
    environment["PYTHONIOENCODING"] = encoding
    done = subprocess.run([*COMMAND, command, path], capture_output=True, env=environment)
    assert done.returncode == (0 if command == "inspect" else 1)
    assert b"messages[0] orphan_result" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="closed streams of POSIX")
def test_closed_standard_streams(tmp_path: Path, environment: dict[str, str]) -> None:
    """A shell may close a stream; that is an error in one line, or nothing where nobody can read it."""
    path = write(tmp_path / "session.json", session())
    command = f"{sys.executable} -m chat_compaction compact --max-tokens 300 --counter estimate"
    for line, status, error in (
        (f"{command} {path} >&-", 2, "chat-compaction: error: standard output is closed\n"),
        (f"{command} - <&-", 2, "chat-compaction: error: standard input is closed\n"),
        (f"{command} {path} 2>&-", 0, ""),
    ):
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (status, error)


@pytest.mark.parametrize("arguments", [["--version"], ["compact", "--help"]])
def test_a_quick_start(environment: dict[str, str], arguments: list[str]) -> None:
    """What only says something about itself loads no tokenizer, no structlog, and none of rich's machinery."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, env=environment, check=True
    )
    status, *loaded = done.stderr.split()
    assert status == "0"
    assert not {"tokenizers", "structlog", "rich.console", "rich.table", "rich.progress"} & set(loaded)


def test_it_runs_in_a_process_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    """``main`` takes arguments, and always exits."""
    with pytest.raises(SystemExit) as exited:
        main(["compact", "--help"])
    assert exited.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: chat-compaction compact [OPTIONS] SESSION")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command without what it needs says in one line what to install, status 2."""
    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(SystemExit) as exited:
        main(["--version"])
    assert exited.value.code == 2
    assert capsys.readouterr() == (
        "",
        "chat-compaction: error: the command needs click and rich; "
        'install them with: pip install "chat-compaction[cli]"\n',
    )
