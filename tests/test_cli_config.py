"""``--config`` of ``compact``, ``--dry-run``, and the command ``config``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.cli import _config
from chat_compaction.config import load_config, loads_config
from chat_compaction.formats import read_session
from tests._cli import fails, run, session, write
from tests.build import step, user

ESTIMATE = ["--counter", "estimate"]
PIPELINE = """
strategy = "pipeline"

[[stages]]
strategy = "tool_result"
trigger = "messages > 6"
keep_tool_uses = 1

[[stages]]
strategy = "truncation"
trigger = "messages > 8"
min_preserved_groups = 2
"""
BUDGET = 'strategy = "token_budget"\nmax_tokens = 300\ntarget_tokens = 200\n'
FAILING = """
strategy = "pipeline"
trigger = "messages > 6"
target = "messages <= 6"

[[stages]]
strategy = "summarization"
trigger = "messages > 6"
min_preserved_groups = 1
max_summary_tokens = 60
[stages.summarizer]
kind = "endpoint"
base_url = "http://127.0.0.1:9/v1"
model = "none"
retries = 0

[[stages]]
strategy = "truncation"
trigger = "messages > 6"
min_preserved_groups = 1
"""


def config(folder: Path, text: str = BUDGET, name: str = "compaction.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "session.json", session())


def tool_session() -> list[Any]:
    """Turns in which tools say much."""
    messages: list[Any] = []
    for turn in range(4):
        messages += [
            user(f"question {turn}"),
            *step(f"call {turn}"),
            {"role": "assistant", "content": f"answer {turn}"},
        ]
        messages[-2]["content"] = f"result {turn} " * 40
    return messages


def test_a_configuration_is_the_strategy(path: Path, tmp_path: Path) -> None:
    """What comes out is what the library makes with it, and what the options would make."""
    result = run("compact", path, "--config", config(tmp_path), *ESTIMATE)
    assert result.exit_code == 0
    by_options = run("compact", path, "--max-tokens", 300, "--target-tokens", 200, *ESTIMATE)
    assert result.stdout == by_options.stdout
    assert result.stderr == by_options.stderr


def test_a_composition(tmp_path: Path) -> None:
    """Contents that were replaced are written, and told in the summary, the table and the report."""
    messages, report = tool_session(), tmp_path / "report.json"
    path, file = write(tmp_path / "session.json", messages), config(tmp_path, PIPELINE)
    result = run("compact", path, "--config", file, "--table", "--report", report, *ESTIMATE)
    assert result.exit_code == 0, result.stderr
    reducer = cc.as_chat_reducer(load_config(file), counter=cc.EstimateCounter(), hooks=())
    kept, told = reducer.reduce_with_report(messages)
    assert json.loads(result.stdout) == kept
    assert json.loads(report.read_text())["strategy"] == "PipelineStrategy"
    assert [stage["strategy"] for stage in json.loads(report.read_text())["stages"]] == [
        "ToolResultStrategy",
        "TruncationStrategy",
    ]
    assert len(told.replaced) > 0
    assert f"{len(told.replaced)} group{'' if len(told.replaced) == 1 else 's'} shortened" in result.stderr
    assert "shortened (tool result: cleared)" in result.stderr
    assert "removed (truncation)" in result.stderr


class Summing(cc.CompactionStrategy):
    """A summary without a model."""

    def compact_core(self, index: cc.MessageIndex) -> None:
        index.summarize(list(self.candidates(index)), "They talked.", "summed")


def test_what_is_summed_up_is_a_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the tokens that it had; what stands for it is in the total behind the compaction."""
    strategy = Summing(trigger=cc.messages > 6, min_preserved_groups=2)
    monkeypatch.setattr(_config, "strategy_in", lambda name: strategy)
    result = run("compact", path, "--config", "x.toml", "--table", *ESTIMATE)
    (row,) = [cells for cells in table(result) if cells[-1] == "summed up (summed)"]
    before = cc.MessageIndex.from_messages(session()[1:11], counter=cc.EstimateCounter()).value(cc.tokens)
    assert row == ["1-10", "5 user, 5 assistant", "1-5", f"{before:,}", "summed up (summed)"]
    assert "10 messages summed up" in result.stderr
    planned = run("compact", path, "--config", "x.toml", "--table", "--dry-run", *ESTIMATE)
    assert table(planned) == table(result)
    assert "what would happen" in planned.stderr


def table(result: Any) -> list[list[str]]:
    """The cells of the rows and totals of a table."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in result.stderr.splitlines()]
    return [row for row in cells if len(row) >= 4 and row[0] != "messages"]


def tokens_in(rows: list[list[str]]) -> int:
    return sum(int(row[-2].replace(",", "")) for row in rows)


@pytest.mark.parametrize("more", [[], ["--reserved", "70"], ["--pin", "1"]], ids=" ".join)
def test_the_tokens_of_a_row_are_what_it_had(tmp_path: Path, more: list[str]) -> None:
    """Whatever became of it, in a run and in a dry run; with what is reserved they add up to what there was."""
    path, file = write(tmp_path / "session.json", tool_session()), config(tmp_path, PIPELINE)
    real, planned = (
        run("compact", path, "--config", file, "--table", *ESTIMATE, *more, *dry) for dry in ([], ["--dry-run"])
    )
    *rows, before, after = table(real)
    assert table(planned) == table(real)
    index = cc.MessageIndex.from_messages(tool_session(), counter=cc.EstimateCounter())
    said = {row[0]: row[3] for row in rows}
    for group in index.groups:
        assert (
            said.get(f"{group.positions[0]}-{group.newest}", f"{index.tokens_of(group)}") == f"{index.tokens_of(group)}"
        )
    assert tokens_in(rows) == index.value(cc.tokens)
    assert tokens_in([before]) == index.value(cc.tokens) + (70 if "--reserved" in more else 0)
    kept = cc.MessageIndex.from_messages(json.loads(real.stdout), counter=cc.EstimateCounter()).value(cc.tokens)
    assert tokens_in([after]) == kept + (70 if "--reserved" in more else 0)


def test_the_table_of_a_repaired_session_has_the_positions_of_the_session(tmp_path: Path) -> None:
    """What a repair took out shifts nothing."""
    lost = {"role": "tool", "tool_call_id": "lost", "content": "nobody asked"}
    path, file = write(tmp_path / "session.json", [lost, *tool_session()]), config(tmp_path, PIPELINE)
    result = run("compact", path, "--config", file, "--table", "--on-invalid", "repair", *ESTIMATE)
    fates = {row[0]: row[-1] for row in table(result)}
    assert fates["1-8"] == "removed (truncation)"
    assert fates["10-11"] == "shortened (tool result: cleared)"
    assert fates["13"] == "kept (newest user)"


@pytest.mark.parametrize(
    "options",
    [
        ["--strategy", "token-budget"],
        ["--strategy", "truncation"],
        ["--max-tokens", "5"],
        ["--target-tokens", "5"],
        ["--max-turns", "5"],
        ["--min-messages", "0"],
        ["--evict", "groups"],
        ["--trigger", "turns > 4"],
        ["--target", "turns <= 4"],
        ["--min-groups", "1"],
        ["--no-keep-last-user"],
        ["--no-preserve-system"],
    ],
    ids=lambda options: " ".join(options),
)
def test_options_of_a_strategy_contradict_it(path: Path, tmp_path: Path, options: list[str]) -> None:
    """A configuration is the whole of a strategy: nothing is mixed in silence."""
    file = config(tmp_path)
    error = fails(run("compact", path, "--config", file, *options))
    assert error.startswith(
        f"{options[0]} and --config exclude each other: a configuration has the whole strategy, got --config {file}"
    )


def test_what_is_wrong_with_it_is_told_with_its_path(path: Path, tmp_path: Path) -> None:
    """One line with the first fault, and what lists the others; nothing is written."""
    file = config(tmp_path, 'strategy = "token_budget"\nmax_tokens = "300"\n')
    assert fails(run("compact", path, "--config", file)) == f'{file}: max_tokens: expected a whole number, got "300"'
    file = config(tmp_path, 'strategy = "token_budget"\nmax_tokns = 300\n')
    assert fails(run("compact", path, "--config", file)) == (
        f"{file}: max_tokns: unknown key; did you mean 'max_tokens'? (and 1 more: see chat-compaction config {file})"
    )
    file = config(tmp_path, "strategy =")
    assert fails(run("compact", path, "--config", file)).startswith(f"{file}: broken TOML: Invalid value")
    assert fails(run("compact", path, "--config", tmp_path / "none.toml")) == (
        f"{tmp_path / 'none.toml'}: no such file or directory"
    )
    assert fails(run("compact", path, "--config", "compaction.ini")).startswith(
        "--config must end with .toml, .yaml, .yml or .json, got 'compaction.ini'"
    )
    reducer = 'strategy = "reducer"\ntrigger = "turns > 4"\nreducer = { import = "os:system" }\n'
    assert "only a program that allows it may" in fails(run("compact", path, "--config", config(tmp_path, reducer)))


def test_without_the_packages_of_the_extra(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    error = fails(run("compact", path, "--config", config(tmp_path, "strategy: clip", "compaction.yaml")))
    assert error == 'YAML needs the package PyYAML: pip install "chat-compaction[config]"'
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    error = fails(run("config", config(tmp_path), "--to", "toml"))
    assert error == 'writing TOML needs the package tomlkit: pip install "chat-compaction[config]"'
    monkeypatch.setitem(sys.modules, "cattrs", None)
    for module in [name for name in sys.modules if name.startswith("chat_compaction.config")]:
        monkeypatch.delitem(sys.modules, module)
    error = fails(run("compact", path, "--config", config(tmp_path)))
    assert error == 'configuration needs the package cattrs: pip install "chat-compaction[config]"'


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_without_the_package_of_a_summarizer(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sdk: str
) -> None:
    """It is found when the file is checked, and not when the first summary is asked for."""
    stage = 'strategy = "summarization"\ntrigger = "turns > 2"\n'
    file = config(tmp_path, f'{stage}summarizer = {{ kind = "{sdk}", model = "small" }}\n')
    assert run("config", file).exit_code == 0
    monkeypatch.setitem(sys.modules, sdk, None)
    expected = f"summarizer.kind: '{sdk}' needs the package {sdk}: pip install \"chat-compaction[{sdk}]\""
    result = run("config", file)
    assert (result.exit_code, result.stdout) == (1, f"{expected}\n")
    assert fails(run("compact", path, "--config", file)) == f"{file}: {expected}"


def test_without_the_package_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fsspec lacks is told in its words, and where fsspec itself is not there, the extra."""
    file = config(tmp_path, 'strategy = "offload"\ntrigger = "turns > 2"\nstore = { url = "memory://x" }\n')
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda *_, **__: _missing("Install s3fs to access S3"))
    assert run("config", file).stdout == "store: Install s3fs to access S3\n"
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert run("config", file).stdout == "store: OffloadStore needs fsspec: install chat-compaction[offload]\n"


def _missing(text: str) -> Any:
    raise ImportError(text)


def test_what_fails_on_the_way_is_told(path: Path) -> None:
    """A summariser that cannot be reached costs a line, also with --quiet; the next stage does the work."""
    file = config(path.parent, FAILING)
    result = run("compact", path, "--config", file, *ESTIMATE, "--quiet")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}: summary failed: ")
    assert len(json.loads(result.stdout)) <= 6


# -- a dry run ---------------------------------------------------------------------------------------


def test_a_dry_run_writes_no_message(path: Path, tmp_path: Path) -> None:
    """It says what would be done, with the status of a run, and may write the report."""
    output, report = tmp_path / "out.json", tmp_path / "report.json"
    options = ["--config", config(tmp_path), *ESTIMATE]
    result = run("compact", path, *options, "-o", output, "--dry-run", "--report", report)
    real = run("compact", path, *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert not output.exists()
    assert result.stderr == real.stderr.replace(": kept", ": would have kept")
    assert json.loads(report.read_text())["changed"]
    assert run("compact", path, "--max-tokens", 10, *ESTIMATE, "--dry-run", "-q").exit_code == 1


def test_a_dry_run_has_the_table_of_a_run(path: Path, tmp_path: Path) -> None:
    options = ["--max-tokens", "300", "--target-tokens", "200", "--table", "--on-invalid", "repair", *ESTIMATE]
    planned, real = run("compact", path, *options, "--dry-run").stderr, run("compact", path, *options).stderr
    for shown, meant in (("would happen", "happened"), ("would be", "was"), ("would have kept", "kept")):
        planned = planned.replace(shown, meant)
    assert [line.split() for line in planned.splitlines()] == [line.split() for line in real.splitlines()]


def test_a_dry_run_calls_no_model(path: Path) -> None:
    """Nothing fails, since nothing is called; what a summary would make room for is told."""
    result = run("compact", path, "--config", config(path.parent, FAILING), *ESTIMATE, "--dry-run")
    assert "failed" not in result.stderr
    assert "messages summed up" in result.stderr


class Asking(cc.CompactionStrategy):
    """It needs an answer that nobody can foresee."""

    def compact_core(self, index: cc.MessageIndex) -> Any:
        yield cc.Effect(len, ([],))


def test_a_dry_run_ends_where_an_answer_is_needed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_config, "strategy_in", lambda name: Asking(trigger=cc.messages > 6))
    result = run("compact", path, "--config", "x.toml", "--dry-run", *ESTIMATE)
    assert "what comes next depends on an answer from outside" in result.stderr


# -- many sessions -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    for name, turns in (("a.json", 1), ("b.json", 7)):
        write(tmp_path / "logs" / name, session(turns))
    return tmp_path


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]], ids=["one", "two"])
def test_many_sessions(folder: Path, jobs: list[str]) -> None:
    """In one process and in several: what a single run makes of each."""
    file = config(folder, PIPELINE)
    result = run("compact", "logs", "--config", file, "-o", "out", *ESTIMATE, *jobs)
    assert result.exit_code == 0, result.stderr
    reducer = cc.as_chat_reducer(load_config(file), counter=cc.EstimateCounter(), hooks=())
    assert read_session("out/b.json").messages == reducer.reduce(session(7))


def test_the_configuration_decides_whether_a_session_is_done_again(folder: Path) -> None:
    """What it says, and not how: a comment, another format and another name change nothing."""
    one = config(folder, PIPELINE)
    again = config(folder, f"# The same.\n{PIPELINE}")
    other = config(folder, run("config", one, "--to", "yaml").stdout, "other.yaml")

    def resumed(file: Path) -> bool:
        result = run("compact", "logs", "--config", file, "-o", "out", *ESTIMATE)
        assert result.exit_code == 0, result.stderr
        return "2 done by an earlier run" in result.stderr

    assert not resumed(one)
    assert resumed(one)
    assert resumed(again)
    assert resumed(other)
    assert not resumed(config(folder, PIPELINE.replace("messages > 8", "messages > 7")))
    assert not resumed(config(folder, PIPELINE.replace("keep_tool_uses = 1", "keep_tool_uses = 2")))


def test_a_dry_run_is_for_one_session(folder: Path) -> None:
    error = fails(run("compact", "logs", "--config", config(folder), "-o", "out", "--dry-run"))
    assert error.startswith("--dry-run is for a single session, got logs")


def test_what_fails_on_the_way_is_told_for_each_session(folder: Path) -> None:
    result = run("compact", "logs", "--config", config(folder, FAILING), "-o", "out", *ESTIMATE)
    assert result.exit_code == 0
    line, *_ = result.stderr.splitlines()
    assert line.startswith("logs/b.json: summary failed: ")


# -- the command -------------------------------------------------------------------------------------


def test_the_command_shows_the_strategy(tmp_path: Path) -> None:
    result = run("config", config(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "TokenBudgetStrategy(max_tokens=300, target_tokens=200)\n"


def test_the_command_shows_a_stage_in_a_line(tmp_path: Path) -> None:
    """And the stages of a stage; what is printed is the code of the strategy."""
    inner = '[[stages]]\nstrategy = "first_of"\n[[stages.stages]]\nstrategy = "clip"\ntrigger = "turns > 4"\n'
    file = config(tmp_path, f"keep_last_user = true\n{PIPELINE}{inner}")
    shown = run("config", file).stdout
    assert shown == (
        "PipelineStrategy(stages=(\n"
        "    ToolResultStrategy(trigger=messages > 6, keep_tool_uses=1),\n"
        "    TruncationStrategy(trigger=messages > 8, min_preserved_groups=2),\n"
        "    FirstOf(stages=(\n"
        "        ClipStrategy(trigger=turns > 4),\n"
        "    )),\n"
        "), keep_last_user=True)\n"
    )
    assert eval(shown, vars(cc)) == load_config(file)  # noqa: S307


@pytest.mark.parametrize("to", ["toml", "yaml", "json"])
def test_the_command_translates(tmp_path: Path, to: Any) -> None:
    file = config(tmp_path, PIPELINE + "keep_last_user = true\n")
    result = run("config", file, "--to", to)
    assert loads_config(result.stdout, to) == load_config(file)
    assert "keep_last_user" not in result.stdout


def test_the_command_lists_every_fault(tmp_path: Path) -> None:
    """Each a line on standard output, with its path; the status is 1."""
    file = config(tmp_path, PIPELINE.replace("messages > 6", "messages > six").replace("min_preserved", "min_kept"))
    result = run("config", file)
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith("stages[0].trigger: cannot read the predicate 'messages > six': ")
    assert second == "stages[1].min_kept_groups: unknown key; did you mean 'min_preserved_groups'?"
    assert result.stderr == f"{file}: 2 faults\n"


def test_the_command_is_wrong_use_without_a_file(tmp_path: Path) -> None:
    assert "Missing argument 'FILE'" in fails(run("config"))
    assert fails(run("config", tmp_path / "none.toml")) == f"{tmp_path / 'none.toml'}: no such file or directory"
    assert fails(run("config", "x.ini")).startswith("FILE must end with .toml, .yaml, .yml or .json, got 'x.ini'")
    reserved = 'strategy = "offload"\ntrigger = "turns > 4"\n[store]\nurl = "memory://x"\n'
    assert run("config", config(tmp_path, reserved)).exit_code == 0
