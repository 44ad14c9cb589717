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
        (["check", "broken.json"], 2),
        (["--version"], 0),
        ([], 2),
    ],
)
def test_the_status(tmp_path: Path, environment: dict[str, str], arguments: list[str], status: int) -> None:
    """0 done, 1 does not fit or breaks a rule, 2 wrong use or unreadable; never a traceback."""
    write(tmp_path / "session.json", session())
    write(tmp_path / "orphan.json", [{"role": "tool", "tool_call_id": "x", "content": ""}])
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("command", [["compact", *BUDGET], ["inspect"], ["inspect", "--json"]])
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
