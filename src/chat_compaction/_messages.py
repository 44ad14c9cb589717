"""Our frozen view of one message: what a format reads, what everything else works on.

The caller's own object is never in here. It stays in the index, untouched, and is what a projection
gives back (rule K8).
"""

from __future__ import annotations

import enum

import attrs


class Role(enum.Enum):
    """Who speaks, in one vocabulary for all formats (``developer`` is read as ``SYSTEM``)."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"

    def __repr__(self) -> str:
        return f"Role.{self.name}"


class PartKind(enum.Enum):
    """What a piece of a message is."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    MEDIA = "media"
    OPAQUE = "opaque"

    def __repr__(self) -> str:
        return f"PartKind.{self.name}"


@attrs.frozen
class Part:
    """A piece of a message.

    ``text`` is what a counter sees. ``name`` is a tool's name, counted beside the text. ``call_id``
    ties a result to its call. ``flat`` names what is counted by a flat rule instead of by its text
    (``"image"``, ``"encrypted_reasoning"``, ...; rule C1). ``signed`` marks reasoning that a
    provider binds to everything before it.
    """

    kind: PartKind
    text: str = ""
    name: str = ""
    call_id: str | None = None
    flat: tuple[str, ...] = ()
    signed: bool = False


@attrs.frozen
class Message:
    """One message as we see it: its role, its parts and the speaker's ``name``."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""

    @property
    def shape(self) -> tuple[object, ...]:
        """What grouping depends on: two messages of equal shape are grouped alike."""
        return (self.role, *((part.kind, part.call_id) for part in self.parts))

    @property
    def call_ids(self) -> list[str]:
        """The ids of the calls made here, in order, repeated where an id is."""
        return [p.call_id for p in self.parts if p.kind is PartKind.TOOL_CALL and p.call_id is not None]

    @property
    def result_ids(self) -> list[str]:
        """The ids of the calls answered here, in order."""
        return [p.call_id for p in self.parts if p.kind is PartKind.TOOL_RESULT and p.call_id is not None]

    @property
    def opens_turn(self) -> bool:
        """A user's message without a tool result (rule G5); pins are the index's business."""
        return self.role is Role.USER and not any(p.kind is PartKind.TOOL_RESULT for p in self.parts)

    @property
    def speaks_for_user(self) -> bool:
        """The user says something here, be it beside a tool result (rules G5 and K4)."""
        return self.role is Role.USER and (
            self.opens_turn or any(p.kind is not PartKind.TOOL_RESULT for p in self.parts)
        )

    @property
    def reasoning_only(self) -> bool:
        """An assistant message that holds reasoning and nothing else (rule G2)."""
        return (
            self.role is Role.ASSISTANT and bool(self.parts) and all(p.kind is PartKind.REASONING for p in self.parts)
        )

    @property
    def signed(self) -> bool:
        """Some reasoning in here is bound to what stands before it."""
        return any(p.signed for p in self.parts)
