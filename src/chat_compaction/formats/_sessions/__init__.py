"""Session files: one conversation as a JSON list, inside an object, as JSON Lines, or as an agent wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
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
from ._stream import Readable, Text, parsed_line
from ._writing import Writer

Shape = Literal["list", "object", "lines"]

_AGENTS: tuple[Agent, ...] = (CODEX, PI, GEMINI_CLI, CLAUDE_CODE)
_EXPECTED = 'a JSON list of messages, a JSON object with the key "messages", or JSON Lines'
_KEYS = (("messages",), ("conversations",), ("values", "messages"))


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
        return "".join(self.pieces(messages))

    def pieces(self, messages: Iterable[Any]) -> Iterator[str]:
        """The text of :meth:`dump` piece by piece, for files that are too big to be held as a text."""
        writer = Writer(self.indent, self.ascii)
        if self.shape == "lines":
            return writer.lines(messages)
        whole = writer.items(messages) if self.shape == "list" else writer.members(self.around, self.key, messages)
        return chain(whole, "\n")


def read_session(path: str | PathLike[str]) -> Session:
    """Read a session file: a list of messages in JSON or JSON Lines, or the file of an agent.

    What the file holds decides how it is read, never its name. Raises :class:`~chat_compaction.SessionError`
    for what cannot be read, with the line where JSON broke; a last line that an agent was stopped
    in the middle of, be it in the middle of a character, is not an error, but a note.
    """
    try:
        with Path(path).open("rb") as stream:
            return parse_session(stream, str(path))
    except SessionError:
        raise
    except (OSError, ValueError) as error:
        raise SessionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def parse_session(data: bytes | Readable, name: str) -> Session:
    """Read the bytes of a session file, or a stream of them; ``name`` is what errors call it.

    Raises :class:`SessionError` with the line where the JSON broke, or the byte that is no UTF-8.
    """
    text = Text(BytesIO(data) if isinstance(data, bytes) else data, name)
    try:
        found = _document(text)
    except SessionError:
        if text.cut:  # The JSON is broken where the last character is.
            raise text.cut from None
        raise
    if isinstance(found, Session):
        return attrs.evolve(found, ascii=text.ascii)
    if isinstance(found, _FirstLine):
        return attrs.evolve(_session_of_lines(found, text), ascii=text.ascii)
    raise SessionError(f"{name} must hold {_EXPECTED}, got {_kind(found)}")


@attrs.frozen
class _FirstLine:
    """What stands on the first line of JSON Lines."""

    number: int
    value: dict[str, Any]


def _document(text: Text) -> Any:
    """The session where the text is a list or an object by itself; where it is JSON Lines, their beginning."""
    if not text.peek():
        raise SessionError(f"{text.name} is empty; expected {_EXPECTED}")
    nothing = text.broken("Expecting value")
    commented = text.pass_comments()
    if text.peek() != "{" and commented:
        raise nothing  # Comments stand ahead of an agent's lines only.
    start, _ = text.place()
    indent = text.indent()
    value = text.document()
    end, _ = text.place()
    more = text.peek()
    # An object on the first line by itself, and more behind it, or a single message.
    if isinstance(value, dict) and start == end and (end < text.place()[0] if more else _is_line(value)):
        return _FirstLine(start, value)
    if more:
        raise text.broken("Extra data")
    if commented:
        raise nothing
    if text.cut:
        raise text.cut
    if isinstance(value, list):
        return Session(value, "list", indent=indent)
    return attrs.evolve(_session_of_object(value, text.name), indent=indent) if isinstance(value, dict) else value


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


def _is_line(value: dict[str, Any]) -> bool:
    """Whether an object on one line, which nothing follows, is a message or an agent's entry by itself."""
    holds_messages = any(isinstance(_at(value, key), list) for key in _KEYS)
    return not holds_messages and (("role" in value and "messages" not in value) or _agent([value]) is not None)


def _session_of_lines(first: _FirstLine, text: Text) -> Session:
    entries: list[Any] = [first.value]
    conversation = first.number if _is_conversation(first.value) else None
    cut: SessionError | None = None
    for number, line, ended in text.lines():
        if not line or line.isspace():
            continue
        try:
            entries.append(parsed_line(line, text.name, number))
        except SessionError as error:
            if ended:
                raise
            cut = error
        else:
            conversation = conversation or (number if _is_conversation(entries[-1]) else None)
    agent = _agent(entries)
    if agent is None:
        if text.cut or cut:
            raise text.cut or cut  # type: ignore[misc]  # one of them is an error
        if conversation:
            raise SessionError(
                f"{text.name}: line {conversation} holds a whole conversation; expected one message a line"
            )
        return Session(entries, "lines")
    found = _read(agent, [entry for entry in entries if isinstance(entry, dict)], text.name)
    notes = (*found.notes, *(("the last line is cut off, and was not read",) if cut else ()))
    return Session(found.messages, format=agent.format, source=agent.source, notes=notes, sidechains=found.sidechains)


def _is_conversation(entry: Any) -> bool:
    return isinstance(entry, dict) and "messages" in entry and "role" not in entry


def _read(agent: Agent, entries: Sequence[Entry], name: str) -> Conversation:
    """What an agent's reader finds. It passes over what it does not know; this is the net below it."""
    try:
        return agent.read(entries)
    except Exception as error:  # A file from outside may be wrong in any way, and its text belongs in no error.
        raise SessionError(f"{name} cannot be read as a file of {agent.source}: {type(error).__name__}") from error


def _agent(entries: Sequence[Any]) -> Agent | None:
    objects = [entry for entry in entries if isinstance(entry, dict)]
    return next((agent for agent in _AGENTS if objects and agent.owns(objects)), None)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
