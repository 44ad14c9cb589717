"""Session files: three shapes in, the same shape out, and errors that name the place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction import SessionError
from chat_compaction.formats._sessions import Session, parse_session, read_session

MESSAGES = [{"role": "user", "content": "héllo"}, {"role": "assistant", "content": "bye"}]

_TEXT = st.text(st.characters(exclude_categories=()))
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_MESSAGES = st.lists(st.fixed_dictionaries({"role": _TEXT, "content": _VALUE}), min_size=1, max_size=4)


def parse(text: str, name: str = "session.json") -> Session:
    return parse_session(text.encode("utf-8"), name)


@pytest.mark.parametrize("indent", [None, 1, 2, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("whole", [MESSAGES, {"model": "m", "messages": MESSAGES, "tools": [{"name": "é"}]}])
def test_a_file_is_written_as_it_was_read(whole: Any, indent: Any, ascii_only: bool) -> None:
    """Writing all messages of a file of Python's json gives the same text: shape, other keys, indentation, escapes."""
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only) + "\n"
    session = parse(text)
    assert session.shape == ("list" if whole is MESSAGES else "object")
    assert session.messages == MESSAGES
    assert session.dump(session.messages) == text


def test_lines_are_written_as_lines() -> None:
    """JSON Lines come back as JSON Lines, without the messages that left."""
    text = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)
    session = parse(text)
    assert session.shape == "lines"
    assert session.dump(session.messages) == text
    assert session.dump(session.messages[1:]) == text.splitlines(keepends=True)[1]


@given(_MESSAGES, st.sampled_from(["list", "object", "lines"]), st.booleans())
def test_any_messages_survive(messages: list[Any], shape: str, ascii_only: bool) -> None:
    """K8: whatever a message holds, lone surrogates too, is written as it was read, ASCII or not."""
    messages = [*messages, {"role": "user", "content": "<raw>"}]
    values: dict[str, list[Any]] = {"list": [messages], "object": [{"messages": messages}], "lines": messages}
    text = "".join(json.dumps(value) + "\n" for value in values[shape])
    session = parse(text if ascii_only else text.replace("<raw>", "é"))
    assert session.shape == shape
    assert session.messages[:-1] == json.loads(json.dumps(messages[:-1]))
    again = parse(session.dump(session.messages))
    assert again == session


def test_lone_surrogates_and_nan_survive() -> None:
    """A lone surrogate is escaped beside text that is not ASCII, and NaN stays NaN."""
    text = '[{"role": "user", "content": "\\ud800 \\\\ud800 é 😀", "score": NaN}]\n'
    session = parse(text)
    assert session.messages[0]["content"] == "\ud800 \\ud800 é 😀"
    assert session.dump(session.messages) == text


def test_a_byte_order_mark_is_accepted() -> None:
    """Windows editors put one at the front."""
    assert parse("\ufeff" + json.dumps(MESSAGES)).messages == MESSAGES


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\n\n", "\n  \n"])
def test_lines_may_end_as_they_like(line_break: str) -> None:
    """Windows line breaks and empty lines are no messages, and U+2028 inside a string is no line break."""
    messages = [{"role": "user", "content": "one\u2028two\x85three"}, *MESSAGES]
    text = line_break.join(json.dumps(message, ensure_ascii=False) for message in messages)
    assert parse(text).messages == messages


@pytest.mark.parametrize("text", ['{"role": "user", "content": "x"}', '{"role": "user", "content": "x"}\n\n'])
def test_a_single_line_is_lines(text: str) -> None:
    """A file with one message on its one line is JSON Lines, too."""
    assert parse(text).shape == "lines"


def test_an_object_on_one_line_is_an_object() -> None:
    """The body of a request is often written without a line break, even to a file named as lines."""
    assert parse('{"messages": [], "model": "m"}\n', "body.jsonl").shape == "object"


def test_no_messages_are_no_error() -> None:
    """An empty list is a session, an empty file is none."""
    assert parse(" [] ").messages == []
    assert parse("[]").dump([]) == "[]\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "session.json is empty; expected a JSON list of messages"),
        (" \n ", "session.json is empty"),
        ("42", "session.json must hold a JSON list of messages, .* got a number"),
        ('"text"', "got a string"),
        ("null", "got null"),
        ("true", "got true or false"),
        ("{}", 'got an object without "messages"'),
        ('{\n "role": "user"}', 'got an object without "messages"'),
        ('{"messages": {}}', 'got "messages" holding an object'),
        ('[{"role": "user"},\n {"role" 1}]', "session.json: broken JSON at line 2, column 10: Expecting ':' delimiter"),
        ('[{"role": "user"}]\n[]', "broken JSON at line 2, column 1: Extra data"),
        ('[\n{"role": "user"', "broken JSON at line 2, column 16"),
        ('{"role": "user"}\n\n{"role": \n{}', "session.json: broken JSON at line 3, column 10: Expecting value"),
        ("[" * 100_000, "session.json is nested too deeply to be read"),
        ('{"role": "user"}\n{"role": ' + "[" * 100_000, "session.json: line 2 is nested too deeply to be read"),
        ("[" + "1" * 5_000 + "]", "session.json holds a number of too many digits to be read"),
        ('{"messages": []}\n{"messages": []}', "line 1 holds a whole conversation; expected one message a line"),
    ],
)
def test_what_is_no_session_names_the_place(text: str, error: str) -> None:
    """An error names the file, and the line where the JSON broke."""
    with pytest.raises(SessionError, match=error):
        parse(text)


@pytest.mark.parametrize("name", ["session.json", "session.jsonl", "standard input"])
def test_what_a_file_holds_decides_not_its_name(name: str) -> None:
    """An indented object in a file named as lines is an object, and lines are lines by any name."""
    assert parse(json.dumps({"messages": MESSAGES}, indent=2), name).shape == "object"
    assert parse("".join(json.dumps(message) + "\n" for message in MESSAGES), name).shape == "lines"
    with pytest.raises(SessionError, match="broken JSON at line 2, column 1: Expecting ',' delimiter"):
        parse('{"role": "user"\n{"role": "user"}\n', name)


def test_numbers_and_repeated_keys_are_python_s() -> None:
    """What the page of the command line says of the form of numbers and of keys that an object repeats."""
    session = parse('[{"role": "system", "role": "user", "content": "x", "seed": 1E2, "size": 1e-400}]')
    assert session.dump(session.messages) == '[{"role": "user", "content": "x", "seed": 100.0, "size": 0.0}]\n'


@pytest.mark.parametrize("number", ["1e400", "-1E+309", f"{'9' * 400}.0"])
@pytest.mark.parametrize("start", ["", '{"role": "user"}\n'])
def test_a_number_that_would_become_infinity_is_refused(number: str, start: str) -> None:
    """K8: Python reads it as infinity and would write ``Infinity``, which is no JSON."""
    shown = number if len(number) < 30 else f"{number[:30]}..."
    where = "session.json: line 2" if start else "session.json"
    text = f'{{"role": "user", "seed": {number}}}'
    with pytest.raises(SessionError) as raised:
        parse(start + (text if start else f"[{text}]"))
    assert str(raised.value) == f"{where} holds the number {shown}, which is too large to be read"


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_bytes_that_are_no_utf8_name_the_offset(before: str) -> None:
    """The offset is that in the file, a byte order mark included."""
    data = before.encode() + b'[{"role": "us\xffer"}]'
    with pytest.raises(SessionError, match=f"session.json is not UTF-8: byte 0xff at offset {data.index(0xFF, 3)}"):
        parse_session(data, "session.json")


def test_what_cannot_be_written_is_an_error() -> None:
    """Nested more deeply than the interpreter goes, which reading may not notice on every Python."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SessionError, match="nested too deeply to be written"):
        Session([deep], "list").dump([deep])


def test_its_repr_tells_no_conversation() -> None:
    """A session prints its shape, never its messages."""
    session = parse(json.dumps(MESSAGES))
    assert repr(session) == "Session(shape='list', indent=None, ascii=True, format=None, source='', notes=())"


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    """The public way: a path in, a session out; what cannot be read names the file."""
    path = tmp_path / "session.json"
    path.write_text(json.dumps(MESSAGES), encoding="utf-8")
    assert read_session(path) == read_session(str(path)) == parse(json.dumps(MESSAGES))
    with pytest.raises(SessionError, match=f"{tmp_path / 'gone'}: No such file"):
        read_session(tmp_path / "gone")


@pytest.mark.parametrize(
    ("whole", "format"),
    [
        ({"conversations": [{"from": "human", "value": "Hi"}], "system": "Be kind."}, "sharegpt"),
        ({"values": {"messages": [{"type": "human", "content": "Hi"}], "title": "t"}, "next": []}, "langchain"),
        ({"values": {"messages": [{"role": "user", "content": "Hi"}]}}, None),
    ],
)
def test_messages_may_stand_elsewhere_in_an_object(whole: dict[str, Any], format: str | None) -> None:
    """A ShareGPT record and a LangGraph thread imply their format, and are written with all their other keys."""
    session = parse(json.dumps(whole))
    assert (session.format, session.source, session.shape) == (format, "", "object")
    assert json.loads(session.dump(session.messages)) == whole
    empty = json.loads(session.dump([]))
    assert empty.keys() == whole.keys()
    assert empty.get("conversations", []) == empty.get("values", {}).get("messages", []) == []


def test_a_cut_off_line_of_plain_messages_is_an_error() -> None:
    """Only an agent's file may end in the middle of a line."""
    with pytest.raises(SessionError, match="line 2"):
        parse('{"role": "user", "content": "a"}\n{"role": "user", "con')
