"""The tables: what was there, what left and why, in as many columns as there are."""

import re
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.cli._text import compaction_rows, inspection_rows, short_spans
from tests._cli import run, session, write
from tests._shared import ROOT

EXAMPLE = ROOT / "examples" / "release-agent.json"
ESTIMATE = ["--counter", "estimate"]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's lines; cells stand two spaces or more apart."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("columns", [80, 100])
def test_the_demo_fits_the_terminal(tmp_path: Path, columns: int) -> None:
    """The command of the README prints a table within 80 and within 100 columns, its summary below it."""
    options = ["--max-tokens", "8000", "--target-tokens", "4000", "-o", tmp_path / "demo.json", "--table"]
    result = run("compact", EXAMPLE, *options, *ESTIMATE, columns=columns)
    assert result.exit_code == 0
    assert result.stdout == ""
    *table, summary = result.stderr.splitlines()
    assert table[0] == f"{EXAMPLE}: what was kept and what was removed"
    assert all(len(line.rstrip()) <= columns for line in table[1:])
    assert summary.startswith(f"{EXAMPLE}: kept ")


def test_the_table_says_what_happened_to_each_group(tmp_path: Path) -> None:
    """Kept groups have a row each with the reason, removed ones a row for each run; totals are before and after."""
    path = write(tmp_path / "session.json", session(size=20))
    result = run("compact", path, "--max-tokens", "150", "-o", tmp_path / "out.json", "--table", "-q", *ESTIMATE)
    found = rows(result.stderr)
    assert found[1] == ["messages", "kind", "turn", "tokens", "what happened"]
    assert found[3:8] == [
        ["0", "system", found[3][2], "kept (system)"],
        ["1-8", "4 user, 4 assistant", "1-4", found[4][3], "removed (token budget: turn)"],
        ["9", "user", "5", found[5][3], "kept (fits)"],
        ["10", "assistant", "5", found[6][3], "kept (fits)"],
        ["11", "user", "6", found[7][3], "kept (newest)"],
    ]
    before, after = found[9:11]
    assert before == ["13 messages", "13 groups", "6 turns", before[3], "before"]
    assert after == ["5 messages", "5 groups", "2 turns", after[3], "after, fits"]
    number = [int(cells[-2].replace(",", "")) for cells in found[3:11]]
    assert sum(number[:6]) == number[6]
    assert sum(number[:6]) - number[1] == number[7] <= 150
    assert found[-1] == ["Tokens counted by estimate (not exact). Target: tokens <= 150."]


def test_the_table_names_what_protects(tmp_path: Path) -> None:
    """Each reason that keeps a group is told in words: pinned, the newest user message, a call without a result."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [*session(), {"role": "assistant", "content": None, "tool_calls": [call]}]
    messages += [{"role": "assistant", "content": "still waiting"}] * 3
    path = write(tmp_path / "session.json", messages)
    result = run("compact", path, "--max-tokens", "9", "--pin", "2", "-o", tmp_path / "out.json", "--table", *ESTIMATE)
    told = {cells[0]: cells[-1] for cells in rows(result.stderr)}
    assert told["2"] == "kept (pinned)"
    assert told["11"] == "kept (newest user)"
    assert told["13"] == "kept (waits for a result)"
    assert told["16"] == "kept (newest)"
    assert "after, does not fit" in result.stderr
    assert result.exit_code == 1


def test_the_table_names_the_rule_that_protects(tmp_path: Path) -> None:
    """K7: what stays for a rule of the format is told with the name of the rule."""
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    found = {"type": "tool_result", "tool_use_id": "c", "content": "y"}
    messages = [
        *session(3, system=False),
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [found]},
    ]
    path = write(tmp_path / "session.json", messages)
    options = ["--max-tokens", "5", "--no-keep-last-user", "-o", tmp_path / "out.json", "--table", *ESTIMATE]
    told = {cells[0]: cells[-1] for cells in rows(run("compact", path, *options).stderr)}
    assert told["6"] == "kept (needed by a rule: first_user)"


def test_what_was_not_counted_is_counted_for_the_table(tmp_path: Path) -> None:
    """A trigger on turns counts nothing, but a person who asks for the table sees tokens."""
    path = write(tmp_path / "session.json", session())
    options = ["--strategy", "truncation", "--trigger", "turns > 2", "--min-groups", "1", *ESTIMATE]
    result = run("compact", path, *options, "-o", tmp_path / "out.json", "--table", "-q")
    tokens = [cells[-2] for cells in rows(result.stderr) if cells[-1] in ("before", "after, fits")]
    index = cc.MessageIndex.from_messages(session(), counter=cc.EstimateCounter())
    assert tokens[0] == f"{index.value(cc.tokens):,}"
    assert "0" not in tokens


def test_a_long_table_shows_its_ends(tmp_path: Path) -> None:
    """At most 100 rows are printed: the oldest and the newest, and how many stand between them."""
    path = write(tmp_path / "session.json", session(80))
    result = run("compact", path, "--max-tokens", "1000000", "-o", tmp_path / "out.json", "--table", "-q", *ESTIMATE)
    found = rows(result.stderr)
    assert ["...", "61 more"] in found
    listed = [cells[0] for cells in found if cells[0].isdigit()]
    assert listed == [*map(str, range(50)), *map(str, range(111, 161))]


def test_a_very_long_session_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what rich prints in a moment, the same rows and totals are plain text."""
    path = write(tmp_path / "session.json", session(30))
    with_rich = rows(run("inspect", path, *ESTIMATE).stdout)
    monkeypatch.setattr("chat_compaction.cli._tables._MOST_WITH_RICH", 60)
    plain = run("inspect", path, *ESTIMATE).stdout
    assert rows(plain) == [cells for cells in with_rich if not cells[0].startswith("─")]
    assert len(with_rich) == 66
    ends = {line.index(" user ") for line in plain.splitlines() if " user " in line}
    assert len(ends) == 1


def test_tokens_that_nobody_counted_are_no_zero() -> None:
    """C4: a group that was not counted shows nothing, rather than 0 tokens."""
    index = cc.MessageIndex.from_messages(session(2), counter=cc.EstimateCounter())
    assert {row.tokens for row in inspection_rows(index)} == {""}
    index.value(cc.tokens)
    assert "" not in {row.tokens for row in inspection_rows(index)}


def test_words_of_a_conversation_are_no_markup(tmp_path: Path) -> None:
    """What looks like rich's markup or an emoji code is printed as it is, and control characters are escaped."""
    result = {"role": "tool", "tool_call_id": "[/red]:smile:[bold]\x1b[0m", "content": "x"}
    path = write(tmp_path / "[red]session.json", [{"role": "user", "content": "x"}, result])
    text = run("inspect", path).stdout
    assert "[/red]:smile:[bold]\\x1b[0m" in text
    assert "[red]session.json: " in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ([3], "3"),
        ([0, 1, 2, 5], "0-2, 5"),
        ([*range(0, 10, 2)], "0, 2, 4, 6, 8"),
        ([*range(0, 99, 2)], "0, 2, 4, 6 ... 98"),
    ],
)
def test_scattered_positions_stay_short(positions: list[int], text: str) -> None:
    """A group of many scattered messages does not fill the screen."""
    assert short_spans(positions) == text


def test_every_message_is_in_one_row() -> None:
    """G1: the rows of a compaction partition the messages, and their tokens add up."""
    messages: list[Any] = session(9)
    index = cc.MessageIndex.from_messages(messages, counter=cc.testing.characters_counter())
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 900, min_preserved_groups=2)
    report = strategy.compact(index, hooks=())
    found = compaction_rows(index, report, strategy.floor.protect(index._ledger))
    ends = [row.messages.split("-") for row in found]
    assert [int(end[-1]) + 1 for end in ends[:-1]] == [int(end[0]) for end in ends[1:]]
    assert sum(int(row.tokens.replace(",", "")) for row in found) == report.tokens_before
    assert [row.removed for row in found].count(True) == 1
