"""The text of a stream, and the JSON in it, a piece at a time: a file's whole text is never in memory.

A text in memory takes up to four bytes a character, beside the bytes that it was decoded from and the
objects that are made of it. Read in pieces, all that a big file takes is its objects.
"""

from __future__ import annotations

import json
import math
import re
from codecs import utf_8_decode
from collections.abc import Iterator
from json import JSONDecodeError
from sys import intern
from typing import Any, Protocol

from ..._errors import SessionError

_PIECE = 1 << 16  # bytes, at least
_LONGEST_NUMBER = 30
_SHORT = 48  # characters; ids are about that long, and a call shares its own with the result
_LONGEST_SIGN = 16  # characters: what an error of the decoder near the end may be about, such as -Infinity or \ud83d
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = "//"
_INDENT = re.compile(r"\r?\n([ \t]+)")


# -- JSON ---------------------------------------------------------------------------------------


def _float(text: str) -> float:
    """A number with a fraction or an exponent; beyond a float's range it would be written as no JSON: Infinity."""
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}...")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; keys and short values, such as roles, are shared with all others instead of copied for each."""
    return {intern(key): intern(value) if type(value) is str and len(value) < _SHORT else value for key, value in pairs}


_DECODER = json.JSONDecoder(parse_float=_float, object_pairs_hook=_object)


def parsed_line(line: str, name: str, number: int) -> Any:
    """The value of one line of JSON Lines."""
    try:
        return _DECODER.decode(line)
    except JSONDecodeError as error:
        raise _broken(name, number, error.colno, error.msg) from None
    except (RecursionError, OverflowError, ValueError) as error:
        raise _unreadable(f"{name}: line {number}", error) from None


def _broken(name: str, line: int, column: int, what: str) -> SessionError:
    return SessionError(f"{name}: broken JSON at line {line}, column {column}: {what}")


def _unreadable(where: str, error: Exception) -> SessionError:
    """What else the decoder raises: for JSON that is right, and too much for Python."""
    if isinstance(error, RecursionError):
        return SessionError(f"{where} is nested too deeply to be read")
    if isinstance(error, OverflowError):
        return SessionError(f"{where} holds the number {error}, which is too large to be read")
    return SessionError(f"{where} holds a number of too many digits to be read")


# -- text ---------------------------------------------------------------------------------------


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """As many bytes, or fewer; none at the end."""
        ...


class Text:
    """The text of a stream of UTF-8: what is read of it and not taken yet, from ``at`` on.

    ``ascii`` says whether all that was read is ASCII. ``cut`` is the error where the stream ends in the
    middle of a character; a U+FFFD stands for that one.
    """

    def __init__(self, stream: Readable, name: str) -> None:
        self.name = name
        self.at = 0
        self.ascii = True
        self.cut: SessionError | None = None
        self._stream = stream
        self._buffer = ""
        self._bytes = b""
        """Of a character whose end is not read yet."""
        self._offset = 0
        """Of these bytes in the stream."""
        self._line, self._column = 1, 1
        """Where the buffer begins."""
        self._begun = self._ended = False

    def more(self) -> bool:
        """Read on; False at the end.

        Half as much as is there, at the least: so beginning anew each time costs three times as much as once.
        """
        if self._ended:
            return False
        taken, self._buffer = self._buffer[: self.at], self._buffer[self.at :]
        self._line, self._column = _moved(self._line, self._column, taken)
        self.at = 0
        data = self._stream.read(max(_PIECE, len(self._buffer) // 2))
        self._ended = not data
        text = self._decoded(self._bytes + data)
        if text and not self._begun:
            text, self._begun = text.removeprefix("\ufeff"), True
        self.ascii = self.ascii and text.isascii()
        self._buffer += text
        return True

    def _decoded(self, data: bytes) -> str:
        try:
            text, used = utf_8_decode(data, "strict", self._ended)
        except UnicodeDecodeError as error:
            at = self._offset + error.start
            wrong = SessionError(f"{self.name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {at}")
            # Bytes that begin a character and have no end are all that the decoder misses more data for.
            if error.reason != "unexpected end of data":
                raise wrong from None
            self.cut = wrong
            return data[: error.start].decode("utf-8") + "\ufffd"
        self._offset += used
        self._bytes = data[used:]
        return text

    def place(self) -> tuple[int, int]:
        """The line and the column of what comes next, from 1 on."""
        return _moved(self._line, self._column, self._buffer[: self.at])

    def broken(self, what: str) -> SessionError:
        """The error about what comes next."""
        return _broken(self.name, *self.place(), what)

    # -- taking --------------------------------------------------------------------------------

    def peek(self) -> str:
        """Pass over white space; the character that comes next, nothing at the end."""
        while True:
            self.at = _SPACE.match(self._buffer, self.at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self.at < len(self._buffer) or not self.more():
                return self._buffer[self.at : self.at + 1]

    def pass_comments(self) -> bool:
        """Pass over lines of comments; whether there were any."""
        found = False
        while self.peek() == "/" and self._starts_with(_COMMENT):
            found = True
            while (end := self._buffer.find("\n", self.at)) < 0:
                self.at = len(self._buffer)
                if not self.more():
                    return found
            self.at = end + 1
        return found

    def _starts_with(self, word: str) -> bool:
        while len(self._buffer) - self.at < len(word) and self.more():
            pass
        return self._buffer.startswith(word, self.at)

    def indent(self) -> str | None:
        """How the first item of the list or object that begins here is indented; None where it stands in its line."""
        start = self.peek()
        while (space := _SPACE.match(self._buffer, self.at + 1)) and space.end() == len(self._buffer):
            if not self.more():
                break
        found = _INDENT.match(self._buffer, self.at + 1)
        return found[1] if found and start in "[{" else None

    def value(self) -> Any:
        """The JSON value that begins here, all of it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self.at)
            except JSONDecodeError as error:
                if not (_may_go_on(error) and self.more()):
                    self.at = error.pos
                    raise self.broken(error.msg) from None
            except (RecursionError, OverflowError, ValueError) as error:
                raise _unreadable(self.name, error) from None
            else:
                if end < len(self._buffer) or not self.more():  # The digits of a number may go on.
                    self.at = end
                    return value

    def document(self, depth: int = 2) -> Any:
        """The JSON value that begins here; lists in the outermost objects are read item by item."""
        start = self.peek()
        if start == "[":
            return list(self._items("]", self.value))
        if start == "{" and depth:
            return dict(self._items("}", lambda: self._member(depth)))
        return self.value()

    def _items(self, end: str, item: Any) -> Iterator[Any]:
        self.at += 1
        if self.peek() != end:
            yield item()
            while (mark := self.peek()) != end:
                if mark != ",":
                    raise self.broken("Expecting ',' delimiter")
                self.at += 1
                self.peek()
                yield item()
        self.at += 1

    def _member(self, depth: int) -> tuple[str, Any]:
        if self.peek() != '"':
            raise self.broken("Expecting property name enclosed in double quotes")
        key = intern(self.value())
        if self.peek() != ":":
            raise self.broken("Expecting ':' delimiter")
        self.at += 1
        return key, self.document(depth - 1)

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """The lines that are left, each with its number and whether it has an end.

        Not splitlines: a string of JSON may hold other line breaks, such as U+2028.
        """
        number, column = self.place()
        # What stands ahead in the same line is white space: errors name the column.
        self._buffer, self.at = " " * (column - 1) + self._buffer[self.at :], 0
        while True:
            *lines, self._buffer = self._buffer.split("\n")
            for line in lines:
                yield number, line, True
                number += 1
            if not self.more():
                yield number, self._buffer, False
                return


def _moved(line: int, column: int, taken: str) -> tuple[int, int]:
    """The line and column behind some text."""
    breaks = taken.count("\n")
    return line + breaks, len(taken) - taken.rfind("\n") if breaks else column + len(taken)


def _may_go_on(error: JSONDecodeError) -> bool:
    """Whether an error is perhaps none where more is read; else the rest need not be read to know that it is one."""
    return error.msg.startswith("Unterminated string") or error.pos > len(error.doc) - _LONGEST_SIGN
