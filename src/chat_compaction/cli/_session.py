"""Session files: one conversation as a JSON list, inside an object, or as JSON Lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from .._errors import SessionError

Shape = Literal["list", "object", "lines"]

_EXPECTED = 'a JSON list of messages, a JSON object with the key "messages", or JSON Lines'
_LONGEST_NUMBER = 30
_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")


@attrs.frozen
class Session:
    """The messages of a session file, and the shape that it had, to write others in the same one."""

    messages: list[Any] = attrs.field(repr=False)
    shape: Shape
    around: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """The whole object where the messages stand in one."""
    indent: str | None = None
    ascii: bool = False
    """Whether the file held nothing but ASCII, and so escapes all else."""

    @property
    def beside(self) -> list[str]:
        """What the object holds beside the messages that is sent and takes tokens, too."""
        return [key for key in ("system", "tools", "functions") if self.around.get(key)]

    def dump(self, messages: Sequence[Any]) -> str:
        """These messages as the text of a file of the same shape, which always has a UTF-8 form.

        Raises :class:`SessionError` for a message that is nested too deeply to be written.
        """
        if self.shape == "lines":
            return "".join(f"{self._json(message)}\n" for message in messages)
        # The key is there already, so it keeps its place among the others.
        whole = {**self.around, "messages": list(messages)} if self.shape == "object" else list(messages)
        return f"{self._json(whole)}\n"

    def _json(self, value: Any) -> str:
        try:
            text = json.dumps(value, ensure_ascii=self.ascii, indent=self.indent)
        except RecursionError:
            raise SessionError("a message is nested too deeply to be written") from None
        # A lone surrogate has no UTF-8 form; Python's escape of one is JSON's.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_session(data: bytes, name: str) -> Session:
    """Read the bytes of a session file; ``name`` is what errors call it.

    Raises :class:`SessionError` with the line where the JSON broke, or the byte that is no UTF-8.
    """
    text = _decoded(data, name)
    if not text.strip():
        raise SessionError(f"{name} is empty; expected {_EXPECTED}")
    if _is_lines(text):
        return Session(_lines(text, name), "lines", ascii=text.isascii())
    found = _parsed(text, name)
    indented = _INDENT.match(text)
    indent = indented[1] if indented else None
    if isinstance(found, list):
        return Session(found, "list", indent=indent, ascii=text.isascii())
    if not isinstance(found, dict):
        raise SessionError(f"{name} must hold {_EXPECTED}, got {_kind(found)}")
    if not isinstance(found.get("messages"), list):
        got = (
            f'"messages" holding {_kind(found["messages"])}' if "messages" in found else 'an object without "messages"'
        )
        raise SessionError(f"{name} must hold {_EXPECTED}, got {got}")
    return Session(found["messages"], "object", found, indent, text.isascii())


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise SessionError(f"{name} is not UTF-8: byte 0x{byte:02x} at offset {error.start}") from None


def _is_lines(text: str) -> bool:
    """Whether the text is JSON Lines: an object on the first line by itself, and more, or a single message."""
    first, _, rest = text.strip().partition("\n")
    if not first.startswith("{"):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest.strip()) or ("role" in value and "messages" not in value)


def _lines(text: str, name: str) -> list[Any]:
    # Not splitlines: a string of JSON may hold other line breaks, such as U+2028.
    lines = enumerate(text.split("\n"), 1)
    messages = [(number, _parsed(line, name, number)) for number, line in lines if line.strip()]
    for number, message in messages:
        if isinstance(message, dict) and "messages" in message and "role" not in message:
            raise SessionError(f"{name}: line {number} holds a whole conversation; expected one message a line")
    return [message for _, message in messages]


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
