"""``chat-compaction compact``: what it writes where, and its status."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import chat_compaction as cc
from tests._cli import fails, run, session, write

ESTIMATE = ["--counter", "estimate"]
BUDGET = ["--max-tokens", "300", "--target-tokens", "200", *ESTIMATE]


@pytest.fixture
def messages() -> list[Any]:
    return session()


@pytest.fixture
def path(tmp_path: Path, messages: list[Any]) -> Path:
    return write(tmp_path / "session.json", messages)


def reduced(strategy: cc.CompactionStrategy, messages: Sequence[Any], **settings: Any) -> list[Any]:
    """What the library keeps."""
    return cc.as_chat_reducer(strategy, counter=cc.EstimateCounter(), hooks=(), **settings).reduce(messages)


def test_the_messages_are_all_that_goes_to_standard_output(path: Path, messages: list[Any]) -> None:
    """Standard output is JSON of the messages that stay; the summary is one line on standard error."""
    result = run("compact", path, *BUDGET)
    assert result.exit_code == 0
    kept = json.loads(result.stdout)
    assert kept == reduced(cc.TokenBudgetStrategy(300, target_tokens=200), messages)
    assert 1 < len(kept) < len(messages)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}: kept {len(kept)} of {len(messages)} messages, ")
    assert line.endswith("(counted by estimate, not exact); reached the target tokens <= 200")


def test_quiet_says_nothing(path: Path) -> None:
    """With --quiet, standard error stays empty where all went well, and where it does not fit the status says so."""
    assert run("compact", path, *BUDGET, "--quiet").stderr == ""
    result = run("compact", path, "--max-tokens", "1", *ESTIMATE, "-q")
    assert (result.exit_code, result.stderr) == (1, "")


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        (["--max-tokens", "300"], cc.TokenBudgetStrategy(300)),
        (["--max-tokens", "1_000", "--max-turns", "2"], cc.TokenBudgetStrategy(1_000, max_turns=2)),
        (["--max-tokens", "300", "--min-messages", "5"], cc.TokenBudgetStrategy(300, min_preserved_messages=5)),
        (["--max-tokens", "300", "--min-groups", "5"], cc.TokenBudgetStrategy(300, min_preserved_groups=5)),
        (["--max-tokens", "300", "--evict", "groups"], cc.TokenBudgetStrategy(300, evict="groups")),
        (["--max-tokens", "60", "--no-keep-last-user"], cc.TokenBudgetStrategy(60, keep_last_user=False)),
        (
            ["--max-tokens", "20", "--no-preserve-system", "--min-messages", "0"],
            cc.TokenBudgetStrategy(20, preserve_system=False, min_preserved_messages=0),
        ),
        (
            ["--strategy", "truncation", "--trigger", "messages > 6", "--min-groups", "2"],
            cc.TruncationStrategy(trigger=cc.messages > 6, min_preserved_groups=2),
        ),
        (
            ["--strategy", "truncation", "--trigger", "tokens > 300 or turns > 40", "--target", "tokens<=200"],
            cc.TruncationStrategy(trigger=(cc.tokens > 300) | (cc.turns > 40), target=cc.tokens <= 200),
        ),
    ],
)
def test_options_are_the_arguments_of_the_strategies(
    path: Path, messages: list[Any], options: list[str], strategy: cc.CompactionStrategy
) -> None:
    """Each option does what the argument of the library does, with the defaults of the library."""
    result = run("compact", path, *options, *ESTIMATE)
    kept = json.loads(result.stdout)
    assert kept == reduced(strategy, messages)
    assert len(kept) < len(messages)


def test_reserved_and_pinned(path: Path, messages: list[Any]) -> None:
    """--reserved counts beside the messages, and --pin keeps messages by position (G6)."""
    options = ["--reserved", "150", "--pin", "1", "--pin", "4"]
    kept = json.loads(run("compact", path, *BUDGET, *options).stdout)
    strategy = cc.TokenBudgetStrategy(300, target_tokens=200)
    assert kept == reduced(strategy, messages, reserved=150, pinned=[messages[1], messages[4]])
    assert messages[1] in kept
    assert messages[4] in kept


def test_a_tokenizer_file_counts(path: Path, tmp_path: Path) -> None:
    """--tokenizer counts by that vocabulary, and the summary names it (C3)."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "words.tokenizer.json"))
    result = run("compact", path, "--max-tokens", "300", "--tokenizer", tmp_path / "words.tokenizer.json")
    assert "(counted by tokenizers:words)" in result.stderr
    assert 0 < len(json.loads(result.stdout)) < len(session())


def test_the_format_can_be_named(tmp_path: Path) -> None:
    """--format reads the messages in that format: what is an error in one is none in another."""
    path = write(tmp_path / "session.json", [{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}])
    assert run("compact", path, *BUDGET, "--format", "openai_chat").exit_code == 0
    error = fails(run("compact", path, *BUDGET, "--format", "anthropic"))
    assert error.startswith(f"{path}: messages[0].role must be one of user, assistant, system, got 'developer'")


@pytest.mark.parametrize("shape", ["list", "object", "lines"])
@pytest.mark.parametrize("standard", [True, False])
def test_every_shape_goes_out_as_it_came_in(tmp_path: Path, messages: list[Any], shape: str, standard: bool) -> None:
    """A list, an object with its other keys, or lines: the same shape, from files and with - from standard streams."""
    text = {
        "list": json.dumps(messages, indent=1),
        "object": json.dumps({"model": "m", "messages": messages, "stream": True}),
        "lines": "\n".join(map(json.dumps, messages)),
    }[shape]
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(text)
    if standard:
        written = run("compact", "-", "-o", "-", *BUDGET, stdin=text).stdout
    else:
        assert run("compact", source, "-o", output, *BUDGET).stdout == ""
        written = output.read_text()
    kept = reduced(cc.TokenBudgetStrategy(300, target_tokens=200), messages)
    assert (
        written
        == {
            "list": json.dumps(kept, indent=1) + "\n",
            "object": json.dumps({"model": "m", "messages": kept, "stream": True}) + "\n",
            "lines": "".join(json.dumps(message) + "\n" for message in kept),
        }[shape]
    )


def test_a_session_may_be_shortened_in_place(path: Path, messages: list[Any]) -> None:
    """The output may be the input."""
    assert run("compact", path, *BUDGET, "-o", path).exit_code == 0
    assert json.loads(path.read_text()) == reduced(cc.TokenBudgetStrategy(300, target_tokens=200), messages)


def test_the_report_is_the_library_s(path: Path, messages: list[Any], tmp_path: Path) -> None:
    """--report writes the report as JSON, and no text of a message."""
    report = tmp_path / "report.json"
    run("compact", path, *BUDGET, "-o", tmp_path / "out.json", "--report", report)
    written = json.loads(report.read_text())
    reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(300, target_tokens=200), counter=cc.EstimateCounter(), hooks=())
    expected = json.loads(json.dumps(reducer.reduce_with_report(messages)[1].to_dict()))
    assert {**written, "duration_ms": 0} == {**expected, "duration_ms": 0}
    assert written["changed"]
    assert "question" not in report.read_text()


def test_what_need_not_shrink_is_written_as_it_is(path: Path, messages: list[Any]) -> None:
    """K1: where the trigger does not hold, all messages come out, and the summary says why."""
    result = run("compact", path, "--max-tokens", "100000", *ESTIMATE)
    assert json.loads(result.stdout) == messages
    assert "kept everything, 13 messages" in result.stderr
    assert "no need: tokens > 100000 is false" in result.stderr
    assert result.exit_code == 0


def test_what_does_not_fit_is_written_with_status_1(path: Path, tmp_path: Path) -> None:
    """K5: where the floor is above the target, what stays is written, the status is 1, and the summary says why."""
    output = tmp_path / "out.json"
    result = run("compact", path, "--max-tokens", "10", *ESTIMATE, "-o", output)
    assert result.exit_code == 1
    assert json.loads(output.read_text()) == [session()[0], *session()[-2:]]
    assert "the history does not fit the target tokens <= 10" in result.stderr


def test_on_overflow_raise_writes_nothing(path: Path, tmp_path: Path) -> None:
    """K5: --on-overflow raise leaves the outputs as they were, with status 1 and the reason."""
    output, report = tmp_path / "out.json", tmp_path / "report.json"
    output.write_text("before")
    outputs = ["-o", output, "--report", report]
    result = run("compact", path, "--max-tokens", "10", *ESTIMATE, "--on-overflow", "raise", *outputs)
    assert fails(result, 1).startswith(f"{path}: the history does not fit the target tokens <= 10: ")
    assert output.read_text() == "before"
    assert not report.exists()


def test_a_trigger_that_holds_no_longer_is_enough(path: Path) -> None:
    """A pass that ends above its target but below its trigger fits, and the summary says how it ended."""
    options = ["--strategy", "truncation", "--trigger", "tokens > 500", "--target", "tokens <= 100", *ESTIMATE]
    result = run("compact", path, *options, "--min-groups", "6")
    assert result.exit_code == 0
    assert "above the target tokens <= 100, but no more may leave, and the trigger no longer holds" in result.stderr


def test_tokens_that_nobody_counted_are_not_told(path: Path) -> None:
    """C4: a trigger and a target on turns count nothing, so the summary claims no tokens from before."""
    options = ["--strategy", "truncation", "--min-groups", "1", *ESTIMATE, "--trigger"]
    assert "kept everything, 13 messages; no need: turns > 9" in run("compact", path, *options, "turns > 9").stderr
    line = run("compact", path, *options, "turns > 2").stderr
    assert "kept 5 of 13 messages, " in line
    assert "->" not in line


def thoughtful() -> list[Any]:
    """A session of Anthropic's whose newest message has signed thinking, with a result that answers nothing."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages = session(system=False)
    messages[-1]["content"] = [thinking, {"type": "text", "text": "done"}]
    messages.insert(0, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]})
    return messages


def test_problems_are_told(tmp_path: Path) -> None:
    """The summary counts what is wrong, and says what lists it."""
    result = run("compact", write(tmp_path / "session.json", thoughtful()), *BUDGET)
    assert "; 1 problem (see chat-compaction check)" in result.stderr


def test_bound_reasoning_is_told_with_what_the_request_needs(tmp_path: Path) -> None:
    """Kept thinking that is bound to what was removed makes a provider refuse: what prevents that is said in JSON."""
    messages, report = thoughtful(), tmp_path / "report.json"
    path = write(tmp_path / "session.json", messages)
    result = run("compact", path, *BUDGET, "--report", report)
    assert json.loads(result.stdout)[-1] == messages[-1]
    line = next(line for line in result.stderr.splitlines() if "kept with reasoning" in line)
    before, _, rest = line.partition(" set ")
    options, _, after = rest.partition(" in the request, ")
    assert before == (
        f"{path}: 1 message kept with reasoning that is bound to what was removed; where the provider refuses it,"
    )
    assert json.loads(options) == json.loads(report.read_text())["request_options"]
    assert "block_binding" in options
    assert after == "or use --bound-reasoning drop"
    assert "reasoning" not in run("compact", path, *BUDGET, "--quiet").stderr


def test_bound_reasoning_that_no_option_of_a_request_saves(tmp_path: Path) -> None:
    """Where the format has no such option, the line points to the option of the command."""
    details = [{"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1"}]
    messages = session()
    messages[-1]["reasoning_details"] = details
    result = run("compact", write(tmp_path / "session.json", messages), *BUDGET)
    assert "1 message kept with reasoning that is bound" in result.stderr
    assert "where the provider refuses it, see --bound-reasoning drop" in result.stderr


def test_bound_reasoning_can_be_dropped(tmp_path: Path) -> None:
    """--bound-reasoning drop writes what the library does: behind the first message removed, no thinking."""
    messages, report = thoughtful(), tmp_path / "report.json"
    path = write(tmp_path / "session.json", messages)
    result = run("compact", path, *BUDGET, "--bound-reasoning", "drop", "--report", report)
    kept = json.loads(result.stdout)
    strategy = cc.TokenBudgetStrategy(300, target_tokens=200)
    assert kept == reduced(strategy, messages, bound_reasoning="drop")
    assert kept[-1]["content"] == [{"type": "text", "text": "done"}]
    assert f"{path}: 1 message kept without reasoning, since it was bound to what was removed\n" in result.stderr
    assert "--bound-reasoning" not in result.stderr
    assert json.loads(report.read_text())["dropped_reasoning"] == [len(messages) - 1]
    # What need not shrink keeps its thinking.
    assert json.loads(run("compact", path, "--max-tokens", "100000", "--bound-reasoning", "drop").stdout) == messages


def test_verbose_logs_on_standard_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-v shows the events, fired or skipped, beside the summary; standard output stays JSON, and logging as it was."""
    handlers = list(logging.getLogger("chat_compaction").handlers)
    fired = run("compact", path, *BUDGET, "-v")
    skipped = run("compact", path, "--max-tokens", "100000", "-vq")
    assert fired.stderr.splitlines()[0].startswith("level='info' event='compaction.completed' strategy='TokenBudget")
    assert skipped.stderr.startswith("level='debug' event='compaction.skipped'")
    assert json.loads(fired.stdout) != json.loads(skipped.stdout)
    assert logging.getLogger("chat_compaction").handlers == handlers
    assert run("compact", path, *BUDGET, "-q").stderr == ""


def test_the_help_says_what_matters() -> None:
    """--help and -h of each command tell the shapes, the status and every option in a section."""
    text = run("compact", "-h").stdout
    assert text == run("compact", "--help").stdout
    for words in ("JSON Lines", "The status is 0", "With --strategy truncation:", "--max-tokens N ", "Examples:"):
        assert words in text
    for command in ("inspect", "check"):
        assert "SESSION is a file, or - for standard input" in " ".join(run(command, "-h").stdout.split())


def test_what_is_sent_beside_the_messages_is_not_counted_and_says_so(tmp_path: Path) -> None:
    """A system prompt and tool schemas beside the list count as --reserved; forgetting them is said once."""
    request = {"system": "Be brief.", "tools": [{"name": "look"}], "messages": [{"role": "user", "content": "hello"}]}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    hint = "system and tools not counted; give their tokens with --reserved"
    assert hint in run("compact", str(path), "--max-tokens", "900").stderr
    assert hint not in run("compact", str(path), "--max-tokens", "900", "--reserved", "20").stderr
    assert hint not in run("compact", str(path), "--max-tokens", "900", "--quiet").stderr
