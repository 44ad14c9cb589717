"""Session files: one conversation as a JSON list, inside an object, as JSON Lines, or as an agent wrote it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import attrs

from ..._errors import SessionError
from ._claude_code import CLAUDE_CODE
from ._codex import CODEX
from ._entries import Agent, Conversation, Entry
from ._gemini_cli import GEMINI_CLI, is_session
from ._pi import PI

Shape = Literal["list", "object", "lines"]

_AGENTS: tuple[Agent, ...] = (CODEX, PI, GEMINI_CLI, CLAUDE_CODE)
_EXPECTED = 'a JSON list of messages, a JSON object with the key "messages", or JSON Lines'
_KEYS = (("messages",), ("conversations",), ("values", "messages"))
_LONGEST_NUMBER = 30
_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n?)*")


@attrs.frozen
class Session:
    """The messages of a session file, where they come from, and the shape that it had, to write others in the same one.

    ``source`` is the agent that wrote the file: ``"claude_code"``, ``"codex"``, ``"gemini_cli"``, ``"pi"``,
    or empty. ``format`` is the name of the format that the file implies, None where it implies none.
    ``notes`` say what of the file is not among the messages. ``sidechains`` are conversations that the
    file holds beside the main one, by the name that the agent gave them.
    """

    messages: list[Any] = attrs.field(repr=False)
    shape: Shape = "list"
    around: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """The whole object where the messages stand in one."""
    indent: str | None = None
    ascii: bool = False
    """Whether the file held nothing but ASCII, and so escapes all else."""
    key: tuple[str, ...] = attrs.field(default=("messages",), repr=False)
    """Where in the object the messages stand."""
    format: str | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    sidechains: Mapping[str, list[Any]] = attrs.field(factory=dict, repr=False)

    @property
    def beside(self) -> list[str]:
        """What the object holds beside the messages that is sent and takes tokens, too."""
        return [key for key in ("system", "tools", "functions") if self.around.get(key)]

    def dump(self, messages: Sequence[Any]) -> str:
        """These messages as the text of a file of the same shape, which always has a UTF-8 form.

        JSON Lines of an agent are no list of messages, and cannot be written as one: what is written then is
        a JSON list. Raises :class:`SessionError` for a message that is nested too deeply to be written.
        """
        if self.shape == "lines":
            return "".join(f"{self._json(message)}\n" for message in messages)
        whole = _replaced(self.around, self.key, list(messages)) if self.shape == "object" else list(messages)
        return f"{self._json(whole)}\n"

    def _json(self, value: Any) -> str:
        try:
            text = json.dumps(value, ensure_ascii=self.ascii, indent=self.indent)
        except RecursionError:
            raise SessionError("a message is nested too deeply to be written") from None
        # A lone surrogate has no UTF-8 form; Python's escape of one is JSON's.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _replaced(whole: Mapping[str, Any], key: Sequence[str], messages: list[Any]) -> dict[str, Any]:
    """The object with other messages; the key is there already, so it keeps its place among the others."""
    first, *rest = key
    return {**whole, first: _replaced(whole[first], rest, messages) if rest else messages}


def read_session(path: str | PathLike[str]) -> Session:
    """Read a session file: a list of messages in JSON or JSON Lines, or the file of an agent.

    What the file holds decides how it is read, never its name. Raises :class:`~chat_compaction.SessionError`
    for what cannot be read, with the line where JSON broke; a last line that an agent was stopped
    in the middle of, be it in the middle of a character, is not an error, but a note.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise SessionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return parse_session(data, str(path))


def parse_session(data: bytes, name: str) -> Session:
    """Read the bytes of a session file; ``name`` is what errors call it.

    Raises :class:`SessionError` with the line where the JSON broke, or the byte that is no UTF-8.
    """
    text, cut = _decoded(data, name)
    if not text.strip():
        raise SessionError(f"{name} is empty; expected {_EXPECTED}")
    if _is_lines(text):
        return _session_of_lines(text, name, cut)
    if cut:
        raise cut
    found = _parsed(text, name)
    indented = _INDENT.match(text)
    indent = indented[1] if indented else None
    if isinstance(found, list):
        return Session(found, "list", indent=indent, ascii=text.isascii())
    if not isinstance(found, dict):
        raise SessionError(f"{name} must hold {_EXPECTED}, got {_kind(found)}")
    return attrs.evolve(_session_of_object(found, name), indent=indent, ascii=text.isascii())


def _decoded(data: bytes, name: str) -> tuple[str, SessionError | None]:
    """The text, and the error where its last character is cut off: a U+FFFD stands for that one."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff"), None
    except UnicodeDecodeError as error:
        wrong = SessionError(f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}")
        # Bytes that begin a character and have no end are all that the decoder misses more data for.
        if error.reason != "unexpected end of data":
            raise wrong from None
        return data[: error.start].decode("utf-8").removeprefix("\ufeff") + "\ufffd", wrong


# -- one object ---------------------------------------------------------------------------------


def _session_of_object(found: dict[str, Any], name: str) -> Session:
    for key in _KEYS:
        messages = _at(found, key)
        if not isinstance(messages, list):
            continue
        if key == ("messages",) and is_session(found):
            return Session(messages, "object", found, key=key, format=GEMINI_CLI.format, source=GEMINI_CLI.source)
        return Session(messages, "object", found, key=key, format=_implied(key, messages))
    got = f'"messages" holding {_kind(found["messages"])}' if "messages" in found else 'an object without "messages"'
    raise SessionError(f"{name} must hold {_EXPECTED}, got {got}")


def _at(found: Any, key: Sequence[str]) -> Any:
    for step in key:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _implied(key: tuple[str, ...], messages: Sequence[Any]) -> str | None:
    """The format that the place of the messages implies: ShareGPT's ``conversations``, a thread of LangGraph."""
    if key == ("conversations",):
        return "sharegpt"
    typed = all(isinstance(message, dict) and "type" in message for message in messages)
    return "langchain" if len(key) == 2 and typed else None


# -- JSON Lines ---------------------------------------------------------------------------------


def _is_lines(text: str) -> bool:
    """Whether the text is JSON Lines: an object on the first line by itself, and more, or a single message."""
    first, _, rest = _uncommented(text).strip().partition("\n")
    if not first.startswith("{"):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    if rest.strip():
        return True
    holds_messages = any(isinstance(_at(value, key), list) for key in _KEYS)
    return not holds_messages and (("role" in value and "messages" not in value) or _agent([value]) is not None)


def _uncommented(text: str) -> str:
    """The text without comments ahead of it, which collections of session files have."""
    found = _COMMENTS.match(text)
    return text[found.end() :] if found else text


def _session_of_lines(text: str, name: str, broken: SessionError | None) -> Session:
    """The session of lines; ``broken`` is what is wrong with the last character, where it is cut off."""
    skipped = text.count("\n") - _uncommented(text).count("\n")
    # Not splitlines: a string of JSON may hold other line breaks, such as U+2028.
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if n > skipped and line.strip()]
    entries = []
    cut: SessionError | None = None
    for number, line in lines:
        try:
            entries.append(_parsed(line, name, number))
        except SessionError as error:
            if number != lines[-1][0] or text.endswith("\n"):
                raise
            cut = error
    agent = _agent(entries)
    if agent is None:
        if cut:
            raise broken or cut
        _check_messages([(number, entry) for (number, _), entry in zip(lines, entries, strict=True)], name)
        return Session(entries, "lines", ascii=text.isascii())
    found = _read(agent, [entry for entry in entries if isinstance(entry, dict)], name)
    notes = (*found.notes, *(("the last line is cut off, and was not read",) if cut else ()))
    return Session(
        found.messages,
        ascii=text.isascii(),
        format=agent.format,
        source=agent.source,
        notes=notes,
        sidechains=found.sidechains,
    )


def _read(agent: Agent, entries: Sequence[Entry], name: str) -> Conversation:
    """What an agent's reader finds. It passes over what it does not know; this is the net below it."""
    try:
        return agent.read(entries)
    except Exception as error:  # A file from outside may be wrong in any way, and its text belongs in no error.
        raise SessionError(f"{name} cannot be read as a file of {agent.source}: {type(error).__name__}") from error


def _agent(entries: Sequence[Any]) -> Agent | None:
    objects = [entry for entry in entries if isinstance(entry, dict)]
    return next((agent for agent in _AGENTS if objects and agent.owns(objects)), None)


def _check_messages(lines: Sequence[tuple[int, Any]], name: str) -> None:
    for number, message in lines:
        if isinstance(message, dict) and "messages" in message and "role" not in message:
            raise SessionError(f"{name}: line {number} holds a whole conversation; expected one message a line")


# -- JSON ---------------------------------------------------------------------------------------


def _float(text: str) -> float:
    """A number with a fraction or an exponent; beyond a float's range it would be written as no JSON: Infinity."""
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}...")
    return number


_DECODER = json.JSONDecoder(parse_float=_float)


def _parsed(text: str, name: str, line: int | None = None) -> Any:
    """The value of a text: the whole file, or one line of it."""
    where = name if line is None else f"{name}: line {line}"
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        at = f"line {line or error.lineno}, column {error.colno}"
        raise SessionError(f"{name}: broken JSON at {at}: {error.msg}") from None
    except RecursionError:
        raise SessionError(f"{where} is nested too deeply to be read") from None
    except OverflowError as error:
        raise SessionError(f"{where} holds the number {error}, which is too large to be read") from None
    except ValueError:  # the one other that the decoder raises
        raise SessionError(f"{where} holds a number of too many digits to be read") from None


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
