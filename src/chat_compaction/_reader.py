"""Reading: from the caller's messages to our views of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from ._errors import MessageError
from ._marks import OPENING, recognised
from ._messages import ASSISTANT, TEXT, USER, Message, SummaryMark
from ._settings import IndexSettings, Pins
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
    """Reads messages in one format; ``decided`` is false while the format is still to be detected.

    ``key`` is that of the marks of summaries; None: they have none.
    """

    format: Format
    decided: bool
    pins: Pins
    key: bytes | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(cls, settings: IndexSettings) -> Reader:
        """A reader for a format, or for one to be detected."""
        return cls(settings.format or _UNDECIDED, settings.format is not None, settings.pins, settings.summary_key)

    def settled_by(self, messages: Sequence[Any]) -> Reader:
        """The reader for a list that goes on with these messages, if they tell its format."""
        if self.decided:
            return self
        found, sure = detected(messages)
        # What is only likely holds until a message is sure to be of another format.
        taken = found if found is not None and (sure or self.format is _UNDECIDED) else self.format
        return Reader(taken, sure, self.pins, self.key)

    def read(self, messages: Sequence[Any], start: int = 0) -> tuple[list[Message], list[bool]]:
        """Our views of messages that stand from the position ``start`` on, and which are pinned."""
        return self.views(messages, start), self.pinned(messages, start)

    def views(self, messages: Sequence[Any], start: int = 0) -> list[Message]:
        """Our views of messages; a summary is known by its mark (rule S1)."""
        views = self._each(messages, start, self.format.read, "read")
        for place, view in enumerate(views):
            if view.kinds == TEXT.bit and view.parts[0].text.startswith(OPENING):
                views[place] = self._marked(view)
        return views

    def _marked(self, view: Message) -> Message:
        """A message that begins as a summary does, as one if it is: in a role that we write, and nothing else in it."""
        if len(view.parts) > 1 or view.role not in (USER, ASSISTANT) or view.name:
            return view
        if not recognised(view.parts[0].text, self.key):
            return view
        return attrs.evolve(view, summary=SummaryMark.OPEN if self.key is None else SummaryMark.KNOWN)

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
