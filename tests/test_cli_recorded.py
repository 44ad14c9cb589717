"""Every recorded session of the formats that we read, through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import FORMATS
from tests._cli import run
from tests._shared import load_session, recorded_sessions, shared_dir


def is_subsequence(kept: list[Any], messages: list[Any]) -> bool:
    """Whether the kept messages are some of the messages, in their order."""
    rest: Iterator[Any] = iter(messages)
    return all(any(message == other for other in rest) for message in kept)


@pytest.mark.parametrize("format_name", FORMATS)
def test_recorded_sessions(tmp_path: Path, format_name: str) -> None:
    """At half of its own tokens, each comes out as the library reduces it, with the status that the report says."""
    changed = 0
    for path in recorded_sessions(format_name):
        messages = load_session(path)
        budget = cc.MessageIndex.from_messages(messages, counter=cc.EstimateCounter()).value(cc.tokens) // 2
        output, report = tmp_path / "out.json", tmp_path / "report.json"
        options = ["--max-tokens", budget, "--counter", "estimate", "-o", output, "--report", report, "--table"]
        result = run("compact", path, *map(str, options))
        written, kept = json.loads(report.read_text()), json.loads(output.read_text())
        assert result.stdout == ""
        assert result.exit_code == (0 if written["fits"] else 1), path
        assert is_subsequence(kept, messages), path
        assert len(kept) == written["messages_after"]
        reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(budget), counter=cc.EstimateCounter(), hooks=())
        assert kept == reducer.reduce(messages), path
        changed += written["changed"]
    assert changed > len(recorded_sessions(format_name)) // 2


@pytest.mark.parametrize("format_name", FORMATS)
def test_recorded_sessions_can_be_looked_at(format_name: str) -> None:
    """Each can be inspected and checked; the status of check says whether inspect found problems."""
    for path in recorded_sessions(format_name):
        data = json.loads(run("inspect", path, "--json", "--counter", "estimate").stdout)
        messages = load_session(path)
        assert sorted(place for group in data["groups"] for place in group["positions"]) == [*range(len(messages))]
        result = run("check", path, "--format", data["format"])
        assert len(result.stdout.splitlines()) == len(data["problems"])
        assert result.exit_code == (1 if data["problems"] else 0)


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
    assert written["tokens_before"] > 300_000
    assert written["tokens_after"] <= 50_000
    assert 0 < len(json.loads(output.read_text())) < 957
