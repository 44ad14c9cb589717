"""Our frozen view of one message: what a format reads, what everything else works on.

The caller's own object is never in here. It stays in the index, untouched, and is what a projection
gives back (rule K8).
"""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING

import attrs

# To freeze a value takes attrs three quarters of the time that it takes to make it. What is made while messages are
# grouped is seen by rules alone, so there only a type checker refuses to change it.
if TYPE_CHECKING:
    from attrs import frozen as value
else:
    value = partial(attrs.define, unsafe_hash=True)


class Role(enum.Enum):
    """Who speaks, in one vocabulary for all formats (``developer`` is read as ``SYSTEM``)."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"

    __hash__ = object.__hash__  # Enum's own is written in Python.

    def __repr__(self) -> str:
        return f"Role.{self.name}"


# Python 3.11 takes as long to ask an enum for a member as to call a function.
SYSTEM, USER, ASSISTANT, TOOL = Role


class SummaryMark(enum.Enum):
    """How sure it is that a message is a summary that we wrote (rule S1)."""

    KNOWN = "known"
    """The ledger knows it, or its mark has the key."""
    OPEN = "open"
    """Its mark says so, and anybody could write that: what a floor or a pin protects is not freed by it."""

    def __repr__(self) -> str:
        return f"SummaryMark.{self.name}"


class PartKind(enum.Enum):
    """What a piece of a message is."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    MEDIA = "media"
    REFERENCE = "reference"
    """Something that the provider stores and knows by an id: it may be a call."""
    COMPACTION = "compaction"
    """What the provider made of all that stands ahead: the newest one never leaves, and all ahead of it may."""
    OPAQUE = "opaque"

    def __init__(self, _: str) -> None:
        self.bit = 1 << len(type(self).__members__)
        """This kind in :attr:`Message.kinds`."""

    def __repr__(self) -> str:
        return f"PartKind.{self.name}"


TEXT, REASONING, TOOL_CALL, TOOL_RESULT, MEDIA, REFERENCE, COMPACTION, OPAQUE = PartKind


@attrs.frozen
class Media:
    """Something that has no text to count, and is counted by a rule of its own (rule C1).

    ``kind`` is ``"image"``, ``"audio"``, ``"document"``, ``"video"``, ``"encrypted_reasoning"`` or
    ``"other"``. The rest is what the message tells of its size, None where it does not: pixels, pages,
    seconds; ``detail`` is the resolution that the message asks for (``"low"``, ``"high"``, ...).
    """

    kind: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    seconds: float | None = None
    detail: str = ""


@attrs.frozen
class Part:
    """A piece of a message.

    ``text`` is what a counter sees. ``name`` is a tool's name, counted beside the text. ``call_id``
    ties a result to its call; where a call or a result has none, they are tied by order, and by name
    (rule G2). ``media`` is what is counted by a rule of its own (rule C1). ``signed`` marks
    reasoning that a provider binds to everything before it.
    """

    kind: PartKind
    text: str = ""
    name: str = ""
    call_id: str | None = None
    media: tuple[Media, ...] = ()
    signed: bool = False


@attrs.frozen
class Message:
    """One message as we see it: its role, its parts and the speaker's ``name``.

    ``summary``: it stands for messages that it replaced, and is nobody's words (rule S1).
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    summary: SummaryMark | None = None
    kinds: int = attrs.field(init=False, eq=False, repr=False)
    """The kinds of the parts, as a sum of their bits: most questions to a message are about them."""

    @kinds.default
    def _kinds_of_parts(self) -> int:
        kinds = 0
        for part in self.parts:
            kinds |= part.kind.bit
        return kinds

    @property
    def shape(self) -> tuple[object, ...]:
        """What grouping depends on: two messages of equal shape are grouped alike."""
        return (self.role, self.summary, *((part.kind, part.call_id) for part in self.parts))

    @property
    def call_ids(self) -> list[str]:
        """The ids of the calls made here, in order, repeated where an id is."""
        return [p.call_id for p in self.parts if p.kind is TOOL_CALL and p.call_id is not None]

    @property
    def calls(self) -> bool:
        """Whether a tool is called here."""
        return self.kinds & TOOL_CALL.bit != 0

    @property
    def answers(self) -> bool:
        """Whether a call is answered here."""
        return self.role is TOOL or self.kinds & TOOL_RESULT.bit != 0

    @property
    def result_ids(self) -> list[str]:
        """The ids of the calls answered here, in order."""
        return [p.call_id for p in self.parts if p.kind is TOOL_RESULT and p.call_id is not None]

    @property
    def opens_turn(self) -> bool:
        """A user's message without a tool result, no summary (rule G5); pins are the index's business."""
        return self.role is USER and not self.kinds & TOOL_RESULT.bit and self.summary is None

    @property
    def speaks_for_user(self) -> bool:
        """The user says something here, be it beside a tool result (rules G5 and K4)."""
        return self.role is USER and self.kinds != TOOL_RESULT.bit and self.summary is None

    @property
    def reasoning_only(self) -> bool:
        """An assistant message that holds reasoning and nothing else (rule G2)."""
        return self.role is ASSISTANT and self.kinds == REASONING.bit

    @property
    def signed(self) -> bool:
        """Some reasoning in here is bound to what stands before it."""
        return self.kinds & REASONING.bit != 0 and any(p.signed for p in self.parts)

    def without_reasoning(self) -> Message:
        """The same message without any reasoning."""
        return attrs.evolve(self, parts=tuple([p for p in self.parts if p.kind is not REASONING]))


@value
class Seam:
    """A message and what stands right before it; None where nothing does.

    ``at_head``: nothing but system messages stands ahead of ``after``.
    """

    before: Message | None
    after: Message
    at_head: bool


class TieKind(enum.Enum):
    """How a call and a result belong together, or that one of them stands alone."""

    ANSWER = "answer"
    SECOND = "second"
    """A result for a call that is answered already (rule G4)."""
    ORPHAN = "orphan"
    """A result whose call was never made (rule G4)."""
    OPEN = "open"
    """A call that never got a result, and waits for none (rule G3)."""
    REPEATED = "repeated"
    """A call whose id an earlier call has."""

    def __repr__(self) -> str:
        return f"TieKind.{self.name}"


ANSWER, SECOND, ORPHAN, OPEN, REPEATED = TieKind


@value
class Tie:
    """A result and its call, by their positions, or one of them alone.

    ``part`` is the number of the part: of the result, or of the call where there is no result; ``call_part``
    that of the call, where there are both.
    ``between`` is how many messages between the two hold no result, ``said_between`` how many of those are
    not the assistant's, and ``turns`` how often the speaker changes from the call to the result (a tool
    speaks for the user). ``same_side``: the result is in a
    message of the assistant's, too, as that of a tool which the provider runs itself.
    """

    kind: TieKind
    call_id: str
    call: int | None
    result: int | None
    part: int
    between: int = 0
    said_between: int = 0
    turns: int = 0
    same_side: bool = False
    call_part: int | None = None

    @property
    def position(self) -> int:
        """The message to blame: that of the result, or of the call where there is none."""
        # One of the two is there.
        return self.result if self.result is not None else self.call or 0
