"""Reading: from the caller's messages to our views of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from ._errors import MessageError
from ._messages import Message
from ._settings import Pins
from ._text import shown
from .formats import FORMATS, Format, detected
from .formats._base import is_object

_T = TypeVar("_T")

_UNDECIDED = FORMATS["openai_chat"]
"""What a list is read as that shows no mark of any format: plain text reads alike in all of them."""


def checked_list(messages: object, argument: str = "messages") -> list[Any]:
    """The messages of an argument, as a list of our own: the caller's may change while we work."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise TypeError(f"{argument} must be a list of messages, got {shown(messages)}")
    return list(messages)


@attrs.frozen
class Reader:
    """Reads messages in one format; ``decided`` is false while the format is still to be detected."""

    format: Format
    decided: bool
    pins: Pins

    @classmethod
    def of(cls, format: Format | None, pins: Pins) -> Reader:
        """A reader for a format, or for one to be detected."""
        return cls(format or _UNDECIDED, format is not None, pins)

    def settled_by(self, messages: Sequence[Any]) -> Reader:
        """The reader for a list that goes on with these messages, if they tell its format."""
        if self.decided:
            return self
        found, sure = detected(messages)
        # What is only likely holds until a message is sure to be of another format.
        taken = found if found is not None and (sure or self.format is _UNDECIDED) else self.format
        return Reader(taken, sure, self.pins)

    def read(self, messages: Sequence[Any], start: int = 0) -> tuple[list[Message], list[bool]]:
        """Our views of messages that stand from the position ``start`` on, and which are pinned."""
        return self.views(messages, start), self.pinned(messages, start)

    def views(self, messages: Sequence[Any], start: int = 0) -> list[Message]:
        """Our views of messages."""
        return self._each(messages, start, self.format.read, "read")

    def pinned(self, messages: Sequence[Any], start: int = 0) -> list[bool]:
        """Which of these messages are pinned."""
        if self.pins.none:
            return [False] * len(messages)
        return self._each(messages, start, lambda message, _: self.pins(message), "asked whether it is pinned")

    def _each(self, messages: Sequence[Any], start: int, ask: Callable[[Any, int], _T], asked: str) -> list[_T]:
        """What each message gives, or an error that names the position of the one that failed."""
        position, given = start, list[_T]()
        try:
            for position, message in enumerate(messages, start):
                if not is_object(message):
                    raise MessageError(position, f" must be an object with a role, got {shown(message)}")
                given.append(ask(message, position))
        except MessageError:
            raise
        except Exception as error:
            # What an object of the caller's, or the caller's predicate, raises when it is asked.
            raise MessageError(position, f" cannot be {asked}: it raises {type(error).__name__}") from error
        return given
