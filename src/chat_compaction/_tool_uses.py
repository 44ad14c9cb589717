"""The calls of a group, each with its result."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ._messages import TOOL_CALL, Message, Tie
from ._pairing import Pairing

Place = tuple[int, int]
"""The position of a message, and the number of a part in its :attr:`Message.parts`."""


@attrs.frozen
class ToolUse:
    """A call and its result; ``arguments`` are as the model wrote them, nearly always JSON.

    ``call`` and ``result`` are where they stand: the position of the message, and the number of the part in
    :meth:`MessageIndex.view`. ``call`` is None for a result whose call was never made, ``result`` for a call that
    has none.
    """

    name: str
    arguments: str
    call: tuple[int, int] | None
    result: tuple[int, int] | None


def tool_uses(views: Mapping[int, Message]) -> tuple[ToolUse, ...]:
    """The calls among some messages, by position; a second result for a call is a use by itself."""
    positions = list(views)
    pairing = Pairing()
    results: dict[Place, Place] = {}
    others: list[tuple[Place, Place | None]] = []
    for place, position in enumerate(positions):
        for tie in pairing.take(views[position]):
            if tie.result is None:
                continue
            result = (positions[place], tie.part)
            call = None if tie.call is None else _call_place(views, positions[tie.call], tie)
            if call is not None and call not in results:
                results[call] = result
            else:
                others.append((result, call))
    uses = [
        ToolUse(part.name, part.text, (position, number), results.get((position, number)))
        for position in positions
        for number, part in enumerate(views[position].parts)
        if part.kind is TOOL_CALL
    ]
    return (*uses, *(_alone(views, result, call) for result, call in others))


def _call_place(views: Mapping[int, Message], position: int, tie: Tie) -> Place | None:
    """Where the call of a result stands; a second result knows the message of its call only."""
    if tie.call_part is not None:
        return position, tie.call_part
    calls = ((number, part) for number, part in enumerate(views[position].parts) if part.kind is TOOL_CALL)
    return next(((position, number) for number, part in calls if part.call_id == tie.call_id), None)


def _alone(views: Mapping[int, Message], result: Place, call: Place | None) -> ToolUse:
    """A result beside the one that the call got, or one without a call."""
    called = None if call is None else views[call[0]].parts[call[1]]
    return ToolUse(called.name if called else "", called.text if called else "", call, result)
