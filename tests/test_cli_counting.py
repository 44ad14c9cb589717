"""The counter that the command line asks, and the bar of a person who waits."""

import io
import sys
from pathlib import Path

import pytest

import chat_compaction as cc
from chat_compaction.cli import _counting
from chat_compaction.cli._counting import counter_of, with_progress
from chat_compaction.counters import framing_of
from tests._cli import run, session, write

TEXTS = ["one two", "", "three " * 40, "four"] * 5


class Terminal(io.StringIO):
    """A standard error that a person looks at."""

    def isatty(self) -> bool:
        return True


def look(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of standard error; not in a fixture, since pytest puts its own there after those."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_without_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks, the counter is asked directly."""
    counter = cc.EstimateCounter()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert with_progress(counter) is counter
    monkeypatch.setattr(sys, "stderr", None)
    assert with_progress(counter) is counter


def test_with_a_bar_the_counts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: batches change no count, the counter keeps its name and kind, and the bar reaches its end on stderr."""
    terminal = look(monkeypatch)
    monkeypatch.setattr(_counting, "_BATCH", 100)
    monkeypatch.setattr(_counting, "_PATIENCE", -1)
    for counter in (cc.EstimateCounter(), cc.testing.characters_counter()):
        watched = with_progress(counter)
        assert watched is not counter
        assert watched.count_many(TEXTS) == list(counter.count_many(TEXTS))
        assert watched.count_many([]) == []
        assert (watched.name, watched.exact) == (counter.name, counter.exact)
        assert framing_of(watched) is framing_of(counter)
    assert "Counting tokens" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_a_short_wait_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that would vanish at once is not shown."""
    terminal = look(monkeypatch)
    monkeypatch.setattr(_counting, "_PATIENCE", 3_600)
    with_progress(cc.EstimateCounter()).count_many(TEXTS)
    assert terminal.getvalue() == ""


def test_the_bar_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that fails leaves the terminal with its cursor, and the error passes through."""
    terminal = look(monkeypatch)
    monkeypatch.setattr(_counting, "_BATCH", 1)
    monkeypatch.setattr(_counting, "_PATIENCE", -1)
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1 if len(asked) < 3 else -1

    with pytest.raises(cc.CounterError):
        with_progress(cc.FunctionCounter(count)).count_many(["a", "b", "c"])
    assert terminal.getvalue().rstrip("\r\x1b[1A2K").endswith("\x1b[?25h")


def test_the_estimate_can_be_asked_for() -> None:
    """--counter estimate takes the estimate, whatever is installed; no option what the library takes."""
    assert counter_of("estimate", None) == cc.EstimateCounter()
    assert counter_of(None, None).name == counter_of("auto", None).name


@pytest.mark.parametrize("many", [False, True])
def test_a_vocabulary_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    """``--counter o200k_base`` insists: an estimate is no answer, and the error says what to install."""
    monkeypatch.setattr("chat_compaction.counters._backends.fastest", lambda: None)
    path = write(tmp_path / "one.json", session())
    options = ["--jobs", "1", "-o", tmp_path / "out"] if many else []
    result = run("compact", path, "--max-tokens", "300", "--counter", "o200k_base", *options)
    assert result.exit_code == 2
    assert "--counter 'o200k_base' needs a package that has it: pip install \"chat-compaction[exact]\"" in result.stderr
