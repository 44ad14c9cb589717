"""What a random history is made of before it is written in a format."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class Call:
    """A call, or what a result answers. ``id`` is empty where a format has none, and the order ties the two."""

    id: str
    name: str = "tool"


@attrs.frozen
class Line:
    """One step of a history, in no format.

    ``role`` is ``"system"``, ``"user"``, ``"assistant"`` or ``"server"``: what only the provider's server knows the
    beginning of. ``look`` decides between the forms that a format has for the same.
    """

    role: str = "assistant"
    text: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    results: tuple[Call, ...] = ()
    media: bool = False
    look: int = 0
    order: tuple[int, ...] = ()
    """The order of the results of calls that are answered: at once, or ``late``, behind the line that follows."""
    late: bool = False
    follows: bool = False
    """It holds the results of the calls of the line ahead."""
    number: int = 0
    """Its place in the history, for ids that are used once."""

    def pick(self, *options: Any) -> Any:
        """One of the forms that a format has for this."""
        return options[self.look % len(options)]

    def also(self, *options: Any) -> Any:
        """One of the forms for something else in the same line."""
        return options[self.look // 5 % len(options)]
