"""Hooks: every compaction, fired or declined, is emitted; nothing is configured or printed by the library itself."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import said, user

CHAT = [user("one"), said("two"), user("three"), said("four")]


def compact(limit: int, hooks: Any = None) -> cc.CompactionReport:
    index = cc.MessageIndex.from_messages(CHAT, counter=characters_counter())
    return cc.TruncationStrategy(trigger=cc.messages > limit, min_preserved_groups=1).compact(index, hooks=hooks)


# -- hooks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [9, 3, 1], ids=["declined", "done", "does not fit"])
def test_every_compaction_is_handed_to_every_hook(limit: int) -> None:
    """A hook is any callable that takes the report."""
    seen: list[cc.CompactionReport] = []
    report = compact(limit, hooks=[seen.append, seen.append])
    assert seen == [report, report]
    assert seen[0] is report


def test_a_hook_that_fails_is_logged_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The next one still gets the report."""
    seen: list[cc.CompactionReport] = []

    def failing(report: cc.CompactionReport) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.DEBUG, logger="chat_compaction"):
        report = compact(3, hooks=(failing, seen.append))
    assert report.changed
    assert seen == [report]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("chat_compaction", logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert "failing" in record.getMessage()


def test_no_hooks_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """``hooks=()``: not even the default one."""
    with caplog.at_level(logging.DEBUG, logger="chat_compaction"):
        compact(3, hooks=())
    assert caplog.records == []


def test_hooks_count_nothing() -> None:
    """C4: neither the default one, nor what it asks of the report."""
    counter = RecordingCounter()
    index = cc.MessageIndex.from_messages(CHAT, counter=counter)
    strategy = cc.TruncationStrategy(trigger=cc.messages > 9)
    strategy.compact(index, hooks=[cc.instrumentation.log_report, lambda report: report.metrics(), repr, str])
    assert counter.counted == []


@pytest.mark.parametrize("hooks", [print, [3], "log", {1}], ids=repr)
def test_hooks_are_a_list_of_callables(hooks: Any) -> None:
    """A single hook is easily passed by mistake."""
    with pytest.raises(TypeError, match=r"^hooks must be None or a list of callables that take a report, got "):
        compact(3, hooks=hooks)


# -- the default hook -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "level", "event"),
    [(9, logging.DEBUG, "skipped"), (2, logging.INFO, "completed"), (1, logging.WARNING, "completed")],
    ids=["declined", "done", "does not fit"],
)
def test_the_default_hook_logs_one_event(
    limit: int, level: int, event: str, caplog: pytest.LogCaptureFixture, unconfigured: None
) -> None:
    """On the logger ``chat_compaction``, at a level that says how it went."""
    with caplog.at_level(logging.DEBUG, logger="chat_compaction"):
        compact(limit)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("chat_compaction", level)
    assert f"compaction.{event}" in record.getMessage()


@pytest.fixture
def unconfigured() -> Iterator[None]:
    """As a program finds structlog, whatever another test did to it."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def test_the_default_hook_joins_a_pipeline_of_structlog(unconfigured: None) -> None:
    """Where the program configured one: with the flat part of the report as fields, under the event's name."""
    with structlog.testing.capture_logs() as events:
        structlog.configure(processors=structlog.get_config()["processors"])
        report = compact(2)
    assert events == [{"event": "compaction.completed", "log_level": "info", **report.metrics()}]


PREPARE = """
import sys
import chat_compaction as cc
history = [{"role": "user", "content": f"question {i}"} for i in range(4)]

def compact(limit):
    index = cc.MessageIndex.from_messages(history, format="openai_chat", counter=len)
    return cc.TruncationStrategy(trigger=cc.messages > limit, min_preserved_groups=1).compact(index)
"""

ALL_THREE = "compact(9); compact(2); compact(0)\n"


def run(program: str) -> tuple[list[str], list[str]]:
    """A program of its own, since logging is of a whole process: the lines of its two outputs."""
    done = subprocess.run([sys.executable, "-c", PREPARE + program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_an_unconfigured_program_stays_silent() -> None:
    """Neither output has a line, and structlog is not even imported."""
    assert run(ALL_THREE + "assert 'structlog' not in sys.modules") == ([], [])


def test_an_unconfigured_program_stays_silent_with_structlog_around() -> None:
    """structlog, imported but not configured, would print to standard output, which is the program's."""
    assert run("import structlog\n" + ALL_THREE) == ([], [])


def test_a_hook_that_fails_in_an_unconfigured_program_is_seen() -> None:
    """As any error of a logger that nobody configured: on standard error, and never on standard output."""
    program = """
index = cc.MessageIndex.from_messages(history, counter=len)
cc.TruncationStrategy(trigger=cc.messages > 9).compact(index, hooks=[lambda report: 1 / 0])
"""
    out, err = run(program)
    assert out == []
    assert err[0].startswith("the hook <function <lambda>")
    assert err[-1] == "ZeroDivisionError: division by zero"


def test_events_in_a_program_that_configured_logging() -> None:
    """On the logger ``chat_compaction``: skipped at DEBUG, completed at INFO, and WARNING where it does not fit."""
    program = """
import logging
logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
compact(9)
assert "structlog" in sys.modules
compact(2); compact(0)
"""
    out, err = run(program)
    assert out == []
    assert [line.split()[:2] for line in err] == [
        ["DEBUG", "chat_compaction"],
        ["INFO", "chat_compaction"],
        ["WARNING", "chat_compaction"],
    ]
    for line, event in zip(err, ("skipped", "completed", "completed"), strict=True):
        assert f"compaction.{event}" in line
        assert "TruncationStrategy" in line
        assert "question" not in line


def test_levels_that_nobody_listens_to_cost_no_import() -> None:
    """The package of structlog is imported at the first event that somebody listens to."""
    program = """
import logging
logging.basicConfig(level=logging.INFO)
compact(9)
assert "structlog" not in sys.modules
compact(2)
assert "structlog" in sys.modules
"""
    out, err = run(program)
    assert (out, len(err)) == ([], 1)


def test_events_in_a_program_that_configured_structlog() -> None:
    """They go through its own pipeline, with the numbers as fields."""
    program = """
import structlog
structlog.configure(processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()])
compact(9); compact(2); compact(0)
"""
    out, err = run(program)
    events = [json.loads(line) for line in out]
    assert err == []
    assert [(event["event"], event["level"]) for event in events] == [
        ("compaction.skipped", "debug"),
        ("compaction.completed", "info"),
        ("compaction.completed", "warning"),
    ]
    assert [(event["messages_before"], event["messages_after"]) for event in events] == [(4, 4), (4, 2), (4, 1)]
    assert [event["skipped"] for event in events] == ["trigger", None, None]
    assert events[1]["excluded_groups"] == 2


def test_a_program_may_silence_it() -> None:
    """By the name of the logger."""
    program = """
import logging
logging.basicConfig(level=logging.DEBUG)
logging.getLogger("chat_compaction").setLevel(logging.ERROR)
compact(9); compact(2); compact(0)
"""
    assert run(program) == ([], [])


def test_a_hook_is_not_async() -> None:
    """Nobody would await it, and it would never run."""

    async def ship(report: cc.CompactionReport) -> None: ...

    with pytest.raises(TypeError, match=r"^each of hooks must be a plain function, since nobody awaits it, got "):
        cc.as_chat_reducer(cc.TokenBudgetStrategy(8_000), hooks=[ship])
