"""Running the command line inside the test's own process."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from chat_compaction.cli._app import app


def run(*arguments: object, stdin: str | bytes | None = None, columns: int = 100) -> Result:
    """Run a command as ``main`` does; whatever it raises but its exit is a failure of the test."""
    runner = CliRunner(env={"COLUMNS": str(columns)})
    result = runner.invoke(app, [str(argument) for argument in arguments], stdin, prog_name="chat-compaction")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fails(result: Result, status: int = 2) -> str:
    """The one line on standard error of a run that failed, with nothing on standard output."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("chat-compaction: error: ")
    return line.removeprefix("chat-compaction: error: ")


def session(turns: int = 6, *, size: int = 40, system: bool = True) -> list[dict[str, Any]]:
    """A session of plain turns, each a question and an answer of so many words."""
    messages = [{"role": "system", "content": "You are terse."}] if system else []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn} " + "word " * size})
        messages.append({"role": "assistant", "content": f"answer {turn} " + "word " * size})
    return messages


def write(path: Path, content: object, **settings: Any) -> Path:
    """A session file: a list of messages, or an object that holds one."""
    path.write_text(json.dumps(content, **settings), encoding="utf-8")
    return path
