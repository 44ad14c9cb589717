"""How one conversation is read and counted: the arguments that an index and a reducer share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs
from attrs.validators import optional

from ._text import shown
from ._validators import a_bool, a_plain_function, non_negative, one_of, refuse_async
from .counters import CountCache, Counter, MediaCosts, framing_of, resolve_counter, shared_cache
from .formats import Format, Message, PartKind, resolve_format
from .formats._base import get, is_object

if TYPE_CHECKING:
    from ._departures import Departure

BoundReasoning = Literal["keep", "drop"]
BOUND_REASONING = ("keep", "drop")
_TEXT = (PartKind.TEXT, PartKind.REASONING, PartKind.TOOL_RESULT, PartKind.COMPACTION)


@attrs.frozen
class Pins:
    """Which messages are pinned (rule G6): by a predicate, by message ids, by the objects themselves."""

    predicate: Callable[[Any], object] | None = None
    ids: frozenset[str] = frozenset()
    # The objects are held, so that an identity can never be that of another, later object.
    objects: Mapping[int, Any] = attrs.field(factory=dict, eq=False)

    @property
    def none(self) -> bool:
        """Whether no message can be pinned."""
        return self.predicate is None and not self.ids and not self.objects

    def __call__(self, message: Any) -> bool:
        """Whether this message is pinned."""
        if self.predicate is not None:
            return bool(self.predicate(message))
        if id(message) in self.objects:
            return True
        message_id = get(message, "id") if self.ids else None
        return isinstance(message_id, str) and message_id in self.ids


def _pins_of(pinned: Any) -> Pins:
    if isinstance(pinned, Pins):
        return pinned
    if pinned is None or callable(pinned):
        refuse_async("pinned", pinned)
        return Pins(pinned)
    if isinstance(pinned, str | bytes | Mapping) or not isinstance(pinned, Iterable):
        # One id by itself is shown; a message is not, since its text may be private.
        got = repr(pinned) if isinstance(pinned, str) else shown(pinned)
        raise TypeError(
            f"pinned must be a predicate over messages or an iterable of message ids and objects, got {got}"
        )
    items = list(pinned)
    for item in items:
        if not (isinstance(item, str) or is_object(item)):
            raise TypeError(f"pinned must hold message ids or message objects, got {shown(item)} in it")
    ids = frozenset(item for item in items if isinstance(item, str))
    return Pins(None, ids, {id(item): item for item in items if not isinstance(item, str)})


def _cache_of(counter: Any) -> CountCache:
    return counter if isinstance(counter, CountCache) else shared_cache(resolve_counter(counter))


def _costs_of(costs: MediaCosts | None) -> MediaCosts | None:
    if not isinstance(costs, MediaCosts | None):
        raise TypeError(f"media_costs must be a MediaCosts, got {shown(costs)}")
    return costs


def _key_of(key: str | bytes | None) -> bytes | None:
    # The key is secret: no error shows it.
    if not isinstance(key, str | bytes | None):
        raise TypeError(f"summary_key must be a text or bytes, got {type(key).__name__}")
    if key is not None and not key:
        raise ValueError("summary_key must be a text or bytes, got an empty one")
    return key.encode() if isinstance(key, str) else key


@attrs.frozen
class IndexSettings:
    """The arguments of :meth:`MessageIndex.from_messages`, checked.

    The cache of counts is shared by all who count alike. ``format`` is None where it is to be detected.
    """

    counts: CountCache = attrs.field(converter=_cache_of)
    format: Format | None = attrs.field(converter=resolve_format)
    pins: Pins = attrs.field(converter=_pins_of)
    reserved: int = attrs.field(default=0, validator=non_negative)
    pending_turns: int = attrs.field(default=1, validator=non_negative)
    media_costs: MediaCosts | None = attrs.field(default=None, converter=_costs_of)
    validate: bool = attrs.field(default=False, validator=a_bool)
    bound_reasoning: BoundReasoning = attrs.field(default="keep", validator=one_of(BOUND_REASONING))
    summary_key: bytes | None = attrs.field(default=None, converter=_key_of, repr=False)
    on_excluded: Callable[[Departure], object] | None = attrs.field(default=None, validator=optional(a_plain_function))

    @property
    def drops_reasoning(self) -> bool:
        """Whether a message behind a change is sent without its reasoning."""
        return self.bound_reasoning == "drop"

    @property
    def counter(self) -> Counter:
        """The counter that serves trigger, target, floor and report (rule C2)."""
        return self.counts.counter

    def texts(self, message: Message) -> list[str]:
        """What a counter is to see of a message (rule C1)."""
        if not framing_of(self.counter):
            return [part.text for part in message.parts if part.kind in _TEXT and part.text]
        texts = [text for part in message.parts for text in (part.name, part.text) if text]
        return [message.name, *texts] if message.name else texts

    def flat(self, message: Message, format: Format) -> int:
        """The tokens of a message that are not counted in its text: its frame, its media."""
        if not framing_of(self.counter):
            return 0
        costs = self.media_costs or format.media_costs
        return format.overhead + sum(costs.cost(media) for part in message.parts for media in part.media)
