"""Every recorded session, and every file as an agent wrote it, through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import FORMATS, read_session
from tests._cli import run
from tests._shared import load_session, recorded_sessions, shared_dir

# Nobody recorded a session of Mistral's.
RECORDED = [name for name in FORMATS if name != "mistral"]
RAW = sorted((shared_dir() / "data" / "raw").rglob("*.json*"))
IDS = [f"{path.parent.name}-{number}" for number, path in enumerate(RAW)]


def is_subsequence(kept: list[Any], messages: list[Any]) -> bool:
    """Whether the kept messages are some of the messages, in their order."""
    rest: Iterator[Any] = iter(messages)
    return all(any(message == other for other in rest) for message in kept)


def compacts_as_the_library(path: Path, messages: list[Any], format_name: str, folder: Path) -> bool:
    """Compact to half of its own tokens; says whether anything was removed."""
    index = cc.MessageIndex.from_messages(messages, counter=cc.EstimateCounter(), format=format_name)
    budget = index.value(cc.tokens) // 2
    output, report = folder / "out.json", folder / "report.json"
    options = ["--max-tokens", budget, "--counter", "estimate", "-o", output, "--report", report, "--table"]
    result = run("compact", path, "--format", format_name, *options)
    written, kept = json.loads(report.read_text()), read_session(output).messages
    assert result.stdout == ""
    assert result.exit_code == (0 if written["fits"] else 1), path
    assert is_subsequence(kept, messages), path
    assert len(kept) == written["messages_after"]
    strategy = cc.TokenBudgetStrategy(budget)
    reducer = cc.as_chat_reducer(strategy, counter=cc.EstimateCounter(), format=format_name, hooks=())
    assert kept == reducer.reduce(messages), path
    return bool(written["changed"])


def checks_and_repairs(path: Path, messages: list[Any], format_name: str, folder: Path) -> None:
    """The lists of check, inspect and the library agree, and a repaired file holds what was said to remain."""
    data = json.loads(run("inspect", path, "--json", "--counter", "estimate", "--format", format_name).stdout)
    assert sorted(place for group in data["groups"] for place in group["positions"]) == [*range(len(messages))]
    result = run("check", path, "--for", format_name)
    assert len(result.stdout.splitlines()) == len(data["problems"])
    assert result.exit_code == (1 if data["problems"] else 0)

    output, expected = folder / "repaired.json", cc.repair(messages, format=format_name)
    repaired = run("check", path, "--for", format_name, "--repair", output)
    assert read_session(output).messages == expected.messages, path
    assert expected.repairs or expected.messages == messages
    rest = repaired.stdout.removeprefix(result.stdout).splitlines()
    assert [line.split()[0] for line in rest] == (
        ["repaired"] * len(expected.repairs) + ["remaining"] * len(expected.problems)
    )
    again = run("check", output, "--for", format_name)
    assert again.exit_code == repaired.exit_code == (1 if expected.problems else 0)
    assert [f"remaining {line}" for line in again.stdout.splitlines()] == rest[len(expected.repairs) :], path


@pytest.mark.parametrize("format_name", RECORDED)
def test_recorded_sessions(tmp_path: Path, format_name: str) -> None:
    """At half of its own tokens, each comes out as the library reduces it, with the status that the report says."""
    paths = recorded_sessions(format_name)
    changed = [compacts_as_the_library(path, load_session(path), format_name, tmp_path) for path in paths]
    assert changed.count(True) >= len(paths) // 2


@pytest.mark.parametrize("format_name", RECORDED)
def test_recorded_sessions_can_be_looked_at(tmp_path: Path, format_name: str) -> None:
    """Each can be inspected, checked and repaired; what is repaired is clean, but for what is said to remain."""
    for path in recorded_sessions(format_name):
        checks_and_repairs(path, load_session(path), format_name, tmp_path)


@pytest.mark.parametrize("path", RAW, ids=IDS)
def test_agents_files(tmp_path: Path, path: Path) -> None:
    """Each file is read as the library reads it, in the format that it implies, by every command; it stays as it is."""
    before, session = path.read_bytes(), read_session(path)
    assert session.format is not None
    data = json.loads(run("inspect", path, "--json", "--counter", "estimate").stdout)
    assert (data["format"], data["source"], data["notes"]) == (session.format, session.source, [*session.notes])
    assert data["totals"]["messages"] == len(session.messages) > 0
    compacts_as_the_library(path, session.messages, session.format, tmp_path)
    checks_and_repairs(path, session.messages, session.format, tmp_path)
    # What is written for JSON Lines of an agent is a list; one object keeps its other keys.
    written = json.loads((tmp_path / "out.json").read_text())
    assert isinstance(written, list) is (path.suffix == ".jsonl")
    if isinstance(written, dict):
        assert list(written) == list(json.loads(before))
    assert path.read_bytes() == before


def test_agents_files_are_all_there() -> None:
    """The files above are of each agent, so that none is left out by mistake."""
    assert {read_session(path).source for path in RAW} == {"", "claude_code", "codex", "gemini_cli", "pi"}


def test_the_largest_session_with_a_vocabulary(tmp_path: Path) -> None:
    """957 messages counted by a real tokenizer: read, compacted and reported in one go."""
    path = shared_dir() / "data" / "sessions" / "anthropic" / "pi-mono-001.json"
    vocabulary = shared_dir() / "data" / "tokenizers" / "o200k_base.tokenizer.json.gz"
    output, report = tmp_path / "out.json", tmp_path / "report.json"
    options = ["--max-tokens", "100000", "--target-tokens", "50000", "--tokenizer", vocabulary]
    result = run("compact", path, *options, "-o", output, "--report", report)
    written = json.loads(report.read_text())
    assert result.exit_code == 0
    assert written["counter"] == "tokenizers:o200k_base"
    assert written["counter_exact"]
    assert written["messages_before"] == 957
    assert not written["tokens_exact"]
    assert written["tokens_before"] > 100_000
    assert written["tokens_after"] <= 50_000
    assert 0 < len(json.loads(output.read_text())) < 957
