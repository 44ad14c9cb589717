"""``chat-compaction compact`` on many sessions: what it writes, what it says, its status."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._batch import compact_sessions
from chat_compaction._batch._worker import Settings
from chat_compaction.formats import read_session
from tests._cli import fails, run, session, write
from tests._shared import ROOT
from tests.test_cli_counting import look

ESTIMATE = ["--counter", "estimate"]
BUDGET = ["--max-tokens", "300", "--target-tokens", "200", *ESTIMATE]
STRATEGY = cc.TokenBudgetStrategy(300, target_tokens=200)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with three good sessions below ``logs``."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    write(folder / "a.json", session(1))
    write(folder / "b.json", session(7))
    (folder / "deep" / "c.jsonl").write_text("".join(f"{json.dumps(message)}\n" for message in session()))
    return tmp_path


def kept(turns: int, **settings: Any) -> list[Any]:
    return cc.as_chat_reducer(STRATEGY, counter=cc.EstimateCounter(), hooks=(), **settings).reduce(session(turns))


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"], ["--jobs", "0"], ["--jobs", "auto"]])
def test_a_folder_in_a_folder_out(folder: Path, jobs: list[str]) -> None:
    """Each session is what a single run makes of it, under its own path; one line sums all up."""
    result = run("compact", "logs", *BUDGET, "-o", "out", *jobs)
    assert (result.exit_code, result.stdout) == (0, "")
    for name, turns in (("a.json", 1), ("b.json", 7), ("deep/c.jsonl", 6)):
        assert read_session(folder / "out" / name).messages == kept(turns)
    reports = [one.report for one in compact_sessions("logs", STRATEGY, counter=cc.EstimateCounter()) if one.report]
    before, after = sum(one.tokens_before for one in reports), sum(one.tokens_after for one in reports)
    least = "" if all(one.tokens_exact for one in reports) else "at least "
    assert result.stderr == (
        f"3 sessions: 2 compacted, 1 unchanged, 0 failed; {least}{before:,} -> {after:,} tokens "
        "(counted by estimate, not exact)\n"
    )


@pytest.mark.parametrize(
    ("sessions", "names"),
    [
        (["logs/**/*.jsonl"], {"deep/c.jsonl"}),
        (["logs/[ab].json"], {"a.json", "b.json"}),
        (["logs/a.json", "logs/deep/c.jsonl"], {"a.json", "deep/c.jsonl"}),
        (["logs/deep", "logs/*.json"], {"a.json", "b.json", "c.jsonl"}),
        (["logs/a.json", "--jobs", "1"], {"a.json"}),
    ],
)
def test_what_is_many(folder: Path, sessions: list[str], names: set[str]) -> None:
    """A pattern, several files, a mixture; and a single file where processes are asked for."""
    assert run("compact", *sessions, *BUDGET, "-o", "out").exit_code == 0
    found = {path.relative_to("out").as_posix() for path in Path("out").rglob("*.json*")}
    assert {name for name in found if not name.startswith(".chat-compaction/")} == names


def test_one_that_fails_does_not_stop_the_others(folder: Path) -> None:
    """Each is a line with its file, told with --quiet, too; the status is 1, and the summary counts them."""
    (folder / "logs" / "broken.json").write_text("[{")
    write(folder / "logs" / "strange.json", [{"role": "wizard"}])
    result = run("compact", "logs", *BUDGET, "-o", "out")
    assert result.exit_code == 1
    broken, strange, summary = result.stderr.splitlines()
    assert broken.startswith("logs/broken.json: broken JSON at line 1, column 3: ")
    assert strange.startswith("logs/strange.json: messages[0].role must be one of ")
    assert "--format names another" in strange
    assert summary.startswith("5 sessions: 2 compacted, 1 unchanged, 2 failed; ")
    assert run("compact", "logs", *BUDGET, "-o", "out", "-q").stderr.splitlines() == [broken, strange]
    assert {path.name for path in (folder / "out").rglob("*.json*")} >= {"a.json", "b.json", "c.jsonl"}


def test_what_does_not_fit_is_status_1(folder: Path) -> None:
    """K5: written, told and counted; with --on-overflow raise it failed, and is not written."""
    options = ["--max-tokens", "100", *ESTIMATE]
    result = run("compact", "logs", *options, "-o", "out")
    assert result.exit_code == 1
    first, _, third, summary = result.stderr.splitlines()
    assert first.startswith("logs/a.json: the history does not fit the target tokens <= 100: ")
    assert third.startswith("logs/deep/c.jsonl: the history does not fit")
    assert ", 3 of these above the budget, 0 failed; " in summary
    assert (folder / "out" / "a.json").exists()
    raised = run("compact", "logs", *options, "-o", "raised", "--on-overflow", "raise", "--quiet")
    assert (raised.exit_code, len(raised.stderr.splitlines())) == (1, 3)
    assert not (folder / "raised").exists()


def test_a_second_run_does_only_what_is_new_and_says_so(folder: Path) -> None:
    """What is as it was then is left alone, and counted all the same; --force does it again."""
    first = run("compact", "logs", *BUDGET, "-o", "out").stderr.rstrip("\n")
    hint = "done by an earlier run and left as they are (--force does them again)"
    times = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*.json*")}
    assert run("compact", "logs", *BUDGET, "-o", "out").stderr == f"{first}; 3 {hint}\n"
    assert {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*.json*")} == times
    write(folder / "logs" / "b.json", session(9))
    assert f"; 2 {hint}" in run("compact", "logs", *BUDGET, "-o", "out", "--jobs", "2").stderr
    assert hint not in run("compact", "logs", *BUDGET, "-o", "out", "--force").stderr
    assert hint not in run("compact", "logs", *BUDGET, "-o", "out", "--pin", "0").stderr


def test_the_report_is_a_line_for_each_session(folder: Path) -> None:
    """JSON Lines in their order, the same where an earlier run did it; a file or a stream, and never half of one."""
    (folder / "logs" / "broken.json").write_text("[{")
    for again in (False, True):
        run("compact", "logs", *BUDGET, "-o", "out", "--report", "report.jsonl")
        lines = [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]
        assert [line["session"] for line in lines] == [
            f"logs/{name}" for name in ("a.json", "b.json", "broken.json", "deep/c.jsonl")
        ]
        assert [line["output"] for line in lines] == ["out/a.json", "out/b.json", None, "out/deep/c.jsonl"]
        assert [line["resumed"] for line in lines] == [again, again, False, again]
        results = compact_sessions("logs", STRATEGY, counter=cc.EstimateCounter())
        for line, result in zip(lines, results, strict=True):
            assert line["error"] == result.error
            expected = result.report and json.loads(json.dumps(result.report.to_dict()))
            assert (line["report"] and {**line["report"], "duration_ms": 0}) == (
                expected and {**expected, "duration_ms": 0}
            )
    assert "word" not in (folder / "report.jsonl").read_text()
    before = (folder / "report.jsonl").read_text()
    assert run("compact", "logs", *BUDGET, "-o", "logs", "--report", "report.jsonl").exit_code == 2
    assert (folder / "report.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["logs"], "--output must be a folder for many sessions, got standard output"),
        (["logs", "-o", "file"], "--output must be a folder, got 'file'"),
        (["logs", "-o", "logs"], "--output must be another folder than the one that is read, got 'logs', where "),
        (["logs", "-", "-o", "out"], "standard input (-) must be the only session, got more beside it"),
        (["logs", "-o", "out", "--table"], "--table is for a single session, got logs"),
        (["logs", "-o", "out", "--sidechain", "x"], "--sidechain is for a single session, got logs"),
        (["logs", "-o", "out", "--report", "-"], "--report must be a file, got -"),
        (["logs", "-o", "out", "--report", "logs/a.json"], "--report must be another file than the sessions, got logs"),
        (
            ["logs", "-o", "out", "--report", "logs/r.jsonl"],
            "--report must be outside of the sessions' folder, or have",
        ),
        (["logs", "-o", "out", "--report", "logs/deep/r.json"], "--report must be outside of the sessions' folder, "),
        (
            ["logs/**/*.jsonl", "-o", "out", "--report", "logs/deep/r.jsonl"],
            "--report must be outside of the sessions'",
        ),
        (["logs", "-o", "", "--force"], "--output must be a folder, got ''"),
        (["logs", "-o", "out", "--report", "gone/r.jsonl"], "gone/r.jsonl: there is no folder gone"),
        (["none/*.json", "-o", "out"], "SESSION must name files, folders or patterns, got 'none/*.json', where there"),
        (
            ["logs", "-o", "out", "--jobs", "x"],
            "Invalid value for '--jobs': expected a whole number of 0 or more, or auto, got 'x'",
        ),
        (["logs", "-o", "out", "--jobs", "2", "--tokenizer", "x"], "--tokenizer must name a tokenizer of the tok"),
        (["logs", "-o", "out", "--jobs", "2", "--tokenizer", "file"], "--tokenizer must name a tokenizer of the tok"),
        (["logs/a.json", "--force"], "--force is for many sessions, got logs/a.json"),
    ],
)
def test_wrong_use_writes_nothing(folder: Path, arguments: list[str], error: str) -> None:
    """One line that names the option, status 2."""
    (folder / "file").write_text("x")
    options = ["--max-tokens", "300", *([] if "--tokenizer" in arguments else ESTIMATE)]
    assert fails(run("compact", *arguments, *options)).startswith(error)
    assert not (folder / "out").exists()
    assert (folder / "file").read_text() == "x"


@pytest.mark.parametrize("report", ["out/a.json", "link/a.json", "out/deep/c.jsonl"])
def test_a_report_is_none_of_the_outputs(folder: Path, report: str) -> None:
    """By whatever name, whether or not the output is there."""
    (folder / "link").symlink_to(folder / "out")
    (folder / "out" / "deep").mkdir(parents=True)
    for _ in range(2):
        error = fails(run("compact", "logs", *BUDGET, "-o", "out", "--report", report))
        assert error.startswith(f"--report must be another file than what is written, got {report}, which is an output")
        assert run("compact", "logs", *BUDGET, "-o", "out").exit_code == 0


@pytest.mark.parametrize(
    ("sessions", "output", "report"),
    [
        ("logs", "out", "logs/report.txt"),
        ("logs/*.json", "out", "logs/report.jsonl"),
        ("logs/[ab].json", "out", "logs/report.json"),
        ("logs", "logs/out", "logs/out/report.json"),
        ("logs", "out", "out/report.json"),
    ],
)
def test_a_report_that_no_run_reads_as_a_session(folder: Path, sessions: str, output: str, report: str) -> None:
    """Another ending, a pattern that does not fit, the output that is passed over: a second run finds the same."""
    (folder / output).mkdir()
    runs = [run("compact", sessions, *BUDGET, "-o", output, "--report", report) for _ in range(2)]
    assert [result.exit_code for result in runs] == [0, 0]
    assert len({result.stderr.partition(":")[0] for result in runs}) == 1


def test_a_file_that_is_not_ours_is_not_replaced(folder: Path) -> None:
    """The file and the option are named; with --force it is replaced."""
    for name in ("a.json", "b.json"):
        write(folder / "logs" / "deep" / name, session(3))
    before = (folder / "logs" / "a.json").read_bytes()
    error = fails(run("compact", "logs/deep", *BUDGET, "-o", "logs"))
    assert error.startswith(
        "--output must be another folder, or --force must be given to replace files there that no earlier run wrote, "
        "got 'logs' with 'logs/a.json' and 1 more"
    )
    assert (folder / "logs" / "a.json").read_bytes() == before
    assert run("compact", "logs/deep", *BUDGET, "-o", "logs", "--force").exit_code == 0
    assert (folder / "logs" / "a.json").read_bytes() != before


def test_a_run_of_the_library_and_one_of_the_command_know_each_other(folder: Path) -> None:
    """Equal settings are the same, whoever makes them; the defaults are those of the library."""
    results = list(compact_sessions("logs", STRATEGY, counter=cc.EstimateCounter(), output="out"))
    assert "3 done by an earlier run" in run("compact", "logs", *BUDGET, "-o", "out").stderr
    run("compact", "logs", *BUDGET, "-o", "out", "--force", "--jobs", "2")
    again = compact_sessions("logs", STRATEGY, counter=cc.EstimateCounter(), output="out", jobs=2)
    assert [attrs.evolve(result, resumed=False) for result in again] == results


def test_the_defaults_are_the_same_everywhere() -> None:
    """Of the function, of a reducer, and of what the command line passes."""
    settings = Settings().arguments
    for function in (compact_sessions, cc.as_chat_reducer):
        parameters = inspect.signature(function).parameters
        assert {name: parameters[name].default for name in settings} == settings


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_in_order(folder: Path, number: signal.Signals, jobs: str) -> None:
    """Its processes end with it, half a file is not left, and the status says why it ended."""
    big = write(folder / "big.json", session(4_000))
    for name in range(300):
        (folder / "logs" / f"z{name}.json").symlink_to(big)
    command = [sys.executable, "-m", "chat_compaction", "compact", "logs", *BUDGET, "-o", "out", "--jobs", jobs]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [*command, "--report", "r.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # What a shell runs in the background does not listen to Ctrl-C, nor does what that runs.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not (folder / "out" / "z0.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)  # It returns when all are gone who could write to these pipes.
    assert process.returncode == 128 + number
    assert errors.lstrip() == f"chat-compaction: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"
    assert not list(folder.rglob("*.tmp"))
    assert not (folder / "r.jsonl").exists()
    assert 0 < len(list((folder / "out").glob("z*.json"))) < 300


def test_signals_are_left_as_they_were(folder: Path) -> None:
    """Handlers are for the run only; what is ignored stays ignored, and another thread asks for none."""
    before = signal.getsignal(signal.SIGTERM)
    assert run("compact", "logs", *BUDGET, "-o", "out").exit_code == 0
    assert signal.getsignal(signal.SIGTERM) is before
    with ThreadPoolExecutor() as pool:
        assert pool.submit(run, "compact", "logs", *BUDGET, "-o", "out").result().exit_code == 0


def test_invalid_histories(folder: Path) -> None:
    """--on-invalid is that of the library, for one session and for many."""
    orphan = {"role": "tool", "tool_call_id": "x", "content": ""}
    path = write(folder / "logs" / "b.json", [orphan, *session()])
    one = run("compact", path, *BUDGET, "--on-invalid", "repair", "--report", "one.json", "--table")
    repaired = cc.as_chat_reducer(STRATEGY, counter=cc.EstimateCounter(), hooks=(), on_invalid="repair")
    messages, report = repaired.reduce_with_report([orphan, *session()])
    assert json.loads(one.stdout) == messages
    assert "; 1 repair\n" in one.stderr
    written = json.loads((folder / "one.json").read_text())
    assert {**written, "duration_ms": 0} == {**json.loads(json.dumps(report.to_dict())), "duration_ms": 0}
    assert "1 problem (see chat-compaction check)" in run("compact", path, *BUDGET, "--on-invalid", "keep").stderr
    line = fails(run("compact", path, *BUDGET, "--on-invalid", "raise"), 1)
    assert line.startswith(f"{path}: the history has 1 problem: messages[0]: ")
    assert run("compact", "logs", *BUDGET, "-o", "out", "--on-invalid", "repair").exit_code == 0
    assert read_session(folder / "out" / "b.json").messages == messages
    raised = run("compact", "logs", *BUDGET, "-o", "out", "--on-invalid", "raise")
    assert raised.exit_code == 1
    assert raised.stderr.startswith("logs/b.json: the history has 1 problem: messages[0]: ")


def test_a_bar_for_people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it counts the sessions; with --quiet, with --verbose and elsewhere there is none."""
    from chat_compaction.cli import _many

    options: dict[str, Any] = {"quiet": False, "verbose": False}
    assert not _many._is_watched(options)
    terminal = look(monkeypatch)
    assert _many._is_watched(options)
    assert not _many._is_watched({**options, "quiet": True})
    assert not _many._is_watched({**options, "verbose": True})
    with _many._progress(3) as advance:
        advance()
        advance()
    assert "Compacting sessions" in terminal.getvalue()
    assert "2/3" in terminal.getvalue()


def test_verbose_logs_each_session(folder: Path) -> None:
    """-v shows the events of all processes on standard error."""
    result = run("compact", "logs", *BUDGET, "-o", "out", "-v", "--jobs", "2")
    assert [line.split("'")[3] for line in result.stderr.splitlines()[:-1]] == [
        "compaction.skipped",
        "compaction.completed",
        "compaction.completed",
    ]


def test_it_runs_as_a_process_of_its_own(folder: Path) -> None:
    """As users start it, with other processes below; the report may be a stream."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "chat_compaction", "compact", "logs", *BUDGET, "-o", "out", "--jobs", "2", "-q"]
    if Path("/dev/stdout").exists():
        command += ["--report", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) in (0, 3)
    assert read_session(folder / "out" / "b.json").messages == kept(7)
