"""Big session files: what a command holds in memory is a small multiple of the file; traced, never timed."""

import gc
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chat_compaction.formats import read_session
from chat_compaction.formats._sessions import _stream, parse_session
from chat_compaction.formats._sessions._stream import Readable
from tests._cli import run
from tests._shared import load_session, recorded_sessions

MEGABYTES = 3
MOST = 3.0


def renamed(value: Any, number: int) -> Any:
    """The same with ids of its own."""
    if isinstance(value, dict):
        return {
            key: f"{inner}-{number}"
            if key in ("id", "tool_call_id", "tool_use_id") and isinstance(inner, str)
            else renamed(inner, number)
            for key, inner in value.items()
        }
    return [renamed(inner, number) for inner in value] if isinstance(value, list) else value


def written() -> Iterator[dict[str, Any]]:
    """An agent's turns without end, as long as recorded ones, some with a character that takes four bytes in memory."""
    yield {"role": "system", "content": "You are terse."}
    for number in range(10**9):
        arguments = json.dumps({"path": f"src/module_{number}.py", "text": f"line {number}\n" * 200})
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "write", "arguments": arguments}}
        yield {
            "role": "user",
            "content": f"Please change module {number}. " * 40 + "Mind the tests. 😀" * (number % 9 == 0),
        }
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number} written.\n" * 200}
        yield {"role": "assistant", "content": f"Module {number} is changed. " * 90}


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The recorded sessions of a format, again and again, with ids of their own.

    But for a few messages with pictures: a message is read as a whole, and one would be a third of the file here.
    """
    sessions = [
        [message for message in load_session(path) if len(json.dumps(message)) < 100_000]
        for path in recorded_sessions(name)
    ]
    for number in range(10**9):
        for session in sessions:
            yield from (renamed(message, number) for message in session if number == 0 or message["role"] != "system")


def file_of(path: Path, messages: Iterator[dict[str, Any]], shape: str, megabytes: float = MEGABYTES) -> Path:
    """A file of so many megabytes in one of the shapes."""
    before, between, behind = {
        "list": ("[", ", ", "]\n"),
        "indented": ("[\n  ", ",\n  ", "\n]\n"),
        "object": ('{"model": "m", "messages": [', ", ", '], "stream": true}\n'),
        "lines": ("", "\n", "\n"),
    }[shape]
    size, lead = 0, before
    with path.open("w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000:
            text = json.dumps(next(messages), ensure_ascii=False)
            size += file.write(lead + text)
            lead = between
        file.write(behind)
    return path


def peak(path: Path, *options: object) -> float:
    """The most that a command holds at a time, in sizes of its file."""
    arguments = "compact", path, "--counter", "estimate", "--quiet", *options
    run(*arguments)  # What it imports, once and for all, is not part of what a file takes.
    gc.collect()
    tracemalloc.start(1)
    try:
        result = run(*arguments)
        assert result.exit_code in (0, 1), result.output
        return tracemalloc.get_traced_memory()[1] / path.stat().st_size
    finally:
        tracemalloc.stop()


@pytest.mark.no_cover
@pytest.mark.parametrize("shape", ["list", "indented", "object", "lines"])
@pytest.mark.parametrize("tokens", [20_000, 10**9])
def test_a_command_takes_three_times_its_file(tmp_path: Path, shape: str, tokens: int) -> None:
    """Cut or not: neither its bytes, its text nor what is written are ever held as a whole beside the messages."""
    path = file_of(tmp_path / "session.json", written(), shape)
    assert peak(path, "--max-tokens", tokens, "-o", tmp_path / "out") < MOST
    kept = read_session(tmp_path / "out").messages
    assert len(kept) < len(read_session(path).messages) or tokens == 10**9


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("shape", ["list", "lines"])
def test_recorded_sessions_take_three_times_their_file(tmp_path: Path, name: str, shape: str) -> None:
    """The same of what agents said, repeated."""
    path = file_of(tmp_path / "session.json", recorded(name), shape)
    assert peak(path, "--max-tokens", 20_000, "-o", tmp_path / "out") < MOST


class Dripping:
    """A stream that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.most, self.at = data, most, 0

    def read(self, size: int, /) -> bytes:
        self.at += min(size, self.most)
        return self.data[self.at - min(size, self.most) : self.at]


TEXTS = [
    '\ufeff[{"role": "user", "content": "é😀\\ud83d\\ude00 \\" \\\\"}, {"n": -12.5e3, "t": true, "i": -Infinity}]',
    '// comment\n//\n{"role": "user", "content": "€"}\n\n  {"role": "user", "content": "x"}  \n',
    '{\n\t"messages": [ ],\n\t"more": {"a": [1, {"b": null}], "c": {}}, "messages": [{"role": "user"}]}\n',
    '{"values": {"messages": [{"type": "human", "content": "Hi"}], "title": "t"}, "next": []}',
    '{"role": "user", "content": "x"}',
    "[123456, 7]",
    '[{"a": 1},]',
    '[{"role": "user"},\n\n {"role" 1}]',
    '[{"role": "user"}] x',
    '{"role": "user"\n{"role": "user"}\n',
    '{"messages" []}',
    '{"messages": [], 5: 6}',
    '{"role": "user"}\n{"role": "user", "n": 1e400}\n',
    '{"role": "user"}\n{"role": "us',
    "[1",
    '["',
    "{",
    "\ud7ff",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("most", [1, 2, 7])
def test_it_is_the_same_wherever_a_stream_is_cut(monkeypatch: pytest.MonkeyPatch, text: str, most: int) -> None:
    """In the middle of a character, of a number, of an escape: what is read, and what the error says."""
    data = text.encode()
    whole = outcome(data)
    monkeypatch.setattr(_stream, "_PIECE", most)
    assert outcome(Dripping(data, most)) == whole


def outcome(data: bytes | Readable) -> object:
    try:
        session = parse_session(data, "session")
    except ValueError as error:
        return str(error)
    return session, session.messages, dict(session.around)


@pytest.mark.parametrize("text", [text for text in TEXTS if text[:1] in "[{" and "\n{" not in text])
def test_errors_and_values_are_those_of_the_standard_library(text: str) -> None:
    """Reading item by item says what ``json.loads`` says, of right and of broken JSON."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        expected = f"session: broken JSON at line {error.lineno}, column {error.colno}: "
        assert str(outcome(text.encode())).startswith(expected)
    else:
        found = outcome(text.encode())
        assert isinstance(found, str) or found[1] in (value, [value]) or found[2] == value  # type: ignore[index]


def test_a_broken_file_is_not_read_to_its_end() -> None:
    """An error at the front of a big file costs what stands ahead of it."""
    stream = Dripping(b'[{"role": "user"} {' + b" " * 10_000_000, 1 << 30)
    assert outcome(stream) == "session: broken JSON at line 1, column 19: Expecting ',' delimiter"
    assert stream.at < 1_000_000


def test_messages_are_written_piece_by_piece() -> None:
    """No piece is longer than a message with what stands around it."""
    messages = [{"role": "user", "content": "x" * 1_000} for _ in range(100)]
    for whole in (messages, {"model": "m", "messages": messages}):
        session = parse_session(json.dumps(whole, indent=1).encode(), "session")
        pieces = list(session.pieces(messages))
        assert max(map(len, pieces)) < 1_100
        assert "".join(pieces) == session.dump(messages) == json.dumps(whole, indent=1) + "\n"
