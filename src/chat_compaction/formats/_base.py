"""What a format is, and the few helpers that readers share.

A format is one module with one class: it reads a message of the caller's (a dict as sent over the
wire, or an SDK's own object, or a mixture) into our :class:`~chat_compaction.formats.Message`, names the
rules that the provider holds a list to, and where a history is to be repaired writes a changed copy of a
message. It never changes what it reads.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, Self

import attrs

from .._errors import MessageError
from .._messages import Message, Role
from .._text import shown
from .._validators import true_false_or_none
from ..counters import MediaCosts
from .rules import DuplicateResult, OrphanResult, Rule, UnansweredCall

Place = tuple[Any, ...]
"""Where a value stands: the position of its message, then keys and numbers, the outermost first.

The first of them may be a place itself: nobody looks at one but for an error.
"""

PAIRS: tuple[Rule, ...] = (OrphanResult(), DuplicateResult(), UnansweredCall())
"""What every provider asks of calls and results."""


def _rules(rules: object) -> tuple[Rule, ...]:
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Rule) for rule in rules):
        raise TypeError(f"rules must be a list of rules of chat_compaction.formats.rules, got {rules!r}")
    return tuple(rules)


@attrs.frozen(repr=False)
class Format(ABC):
    """How to read one kind of message, and what its provider asks of a list. Subclass it for one of your own.

    ``name`` is the same in code, on the command line and in the docs. ``overhead`` is the tokens a
    message costs beyond its text (rule C1). ``runs``: messages of the assistant in a row are one
    response, and stay or leave together (rule G2). ``media_costs`` is how the provider counts what
    has no text, unless the caller says otherwise. ``complete``: the list holds every call that its results
    answer; None asks each list whether it does. ``request_options`` are what a request sets so that
    reasoning bound to what is gone is dropped, not refused.
    """

    name: ClassVar[str]
    overhead: ClassVar[int] = 0
    runs: ClassVar[bool] = False
    default_rules: ClassVar[tuple[Rule, ...]] = PAIRS
    media_costs: ClassVar[MediaCosts] = MediaCosts()
    request_options: ClassVar[Mapping[str, Any]] = {}

    rules: tuple[Rule, ...] = attrs.field(kw_only=True, converter=_rules)
    complete: bool | None = attrs.field(default=True, kw_only=True, validator=true_false_or_none)

    @rules.default
    def _default_rules(self) -> tuple[Rule, ...]:
        return type(self).default_rules

    def __repr__(self) -> str:
        defaults = {"rules": type(self).default_rules}
        fields = [field for field in attrs.fields(type(self)) if field.init]
        given = [(field.name, getattr(self, field.name), defaults.get(field.name, field.default)) for field in fields]
        return f"{type(self).__name__}({', '.join(f'{n}={value!r}' for n, value, usual in given if value != usual)})"

    @abstractmethod
    def read(self, raw: Any, position: int) -> Message:
        """Our view of one message; raises :class:`~chat_compaction.MessageError` at ``position``."""

    def claims(self, raw: Any) -> bool:
        """Whether the message can only be of this format; an exception counts as no."""
        return False

    def hints(self, raw: Any) -> bool:
        """Whether the message is likely of this format, unless another message can only be of another one."""
        return False

    # -- rules ---------------------------------------------------------------------------------

    def with_rules(self, *rules: Rule) -> Self:
        """This format with more rules; one of a class that is there already takes its place."""
        kinds = {type(rule) for rule in rules}
        return attrs.evolve(self, rules=(*(rule for rule in self.rules if type(rule) not in kinds), *rules))

    def without_rules(self, *names: str) -> Self:
        """This format without the rules of these names."""
        known = {rule.name for rule in self.rules}
        for name in names:
            if name not in known:
                raise ValueError(f"names must be of rules of {self.name!r} ({', '.join(sorted(known))}), got {name!r}")
        return attrs.evolve(self, rules=tuple(rule for rule in self.rules if rule.name not in names))

    # -- writing, for repairs, replacements and dropped reasoning --------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """A copy of a message without these parts, by their number in :attr:`Message.parts`; None if nothing is left.

        By default a message leaves whole.
        """
        return None

    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """A copy of a message whose parts of these numbers have other texts; None where it can't be written.

        A text becomes that text. A result has that text as its whole content, without the media in it. The
        arguments of a call become what the text holds, which is the JSON of an object, as a string or as an
        object, as the format has them. All else of the message stays. Reading the copy gives the texts back.
        """
        return None

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """A message of this role, in the form that this one has, that says just that; None where there is none."""
        return None

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """A copy of a message whose call or result of this number has another id; None where it can't be written."""
        return None

    def reordered(self, raw: Any, order: Sequence[int]) -> Any | None:
        """A copy of a message with its parts in another order, by their numbers; None where it can't be written."""
        return None

    def joined(self, first: Any, second: Any) -> Any | None:
        """One message that holds what these two hold; None where it can't be written."""
        return None


# -- writing what the caller gave, changed -------------------------------------------------------


def changed(raw: Any, **fields: Any) -> Any:
    """A copy of a dict or of an SDK's object with other fields."""
    if isinstance(raw, MAPPINGS):
        return {**raw, **fields}
    if hasattr(raw, "model_copy"):  # Pydantic's.
        return raw.model_copy(update=fields)
    twin = copy.copy(raw)
    for key, value in fields.items():
        setattr(twin, key, value)
    return twin


def cut_list(raw: Any, key: str, dropped: Collection[int]) -> Any | None:
    """A copy of a message whose list ``key`` is without these items; None if nothing is left."""
    kept = [item for number, item in enumerate(get(raw, key)) if number not in dropped]
    return changed(raw, **{key: kept}) if kept else None


# -- looking at what the caller gave -------------------------------------------------------------

# The concrete type stands first: it is nearly always the one, and an ABC takes eight times as long to ask.
MAPPINGS = (dict, Mapping)
_TEXTS = (str, bytes, bytearray, memoryview)
_NO_OBJECTS = (*_TEXTS, int, float, complex, Sequence, Set, type(None))


def get(raw: Any, key: str) -> Any:
    """A field of a dict or of an SDK's object; None where there is none."""
    return raw.get(key) if isinstance(raw, MAPPINGS) else getattr(raw, key, None)


def is_object(raw: Any) -> bool:
    """A dict, or an object with fields: not a scalar, a list, a class, a function or None."""
    return isinstance(raw, MAPPINGS) or not (isinstance(raw, _NO_OBJECTS) or callable(raw))


def is_list(raw: Any) -> bool:
    """A list, a tuple or another sequence that is no text."""
    return isinstance(raw, list) or (isinstance(raw, Sequence) and not isinstance(raw, _TEXTS))


def kind_of(part: Any) -> str:
    """The ``type`` of a part; empty where there is none or it is no string."""
    kind = get(part, "type")
    return kind if isinstance(kind, str) else ""


def module_of(raw: Any) -> str:
    """The top-level package that defines an object's type (``openai``, ``anthropic``, ``builtins``)."""
    return type(raw).__module__.partition(".")[0]


# -- reading it, with an error that names the place ----------------------------------------------


def wrong(here: Place, message: str) -> MessageError:
    """The error to raise for what stands here."""
    position, *steps = _steps(here)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return MessageError(position, f"{path} {message}")


def _steps(here: Place) -> list[Any]:
    return [*_steps(here[0]), *here[1:]] if isinstance(here[0], tuple) else list(here)


def role_of(raw: Any, roles: Mapping[str, Role], here: Place, format: str) -> str:
    """The role of a message: one of those that the format has."""
    role = get(raw, "role")
    if isinstance(role, str) and role in roles:
        return role
    # The role names the format that was meant ("model"); a longer text is none, and may be private.
    got = repr(role) if isinstance(role, str) and role.isidentifier() and len(role) <= 20 else shown(role)
    what = f"must be one of {', '.join(roles)}, got {got}" if role else "is missing"
    raise wrong((*here, "role"), f"{what} {read_as(format)}")


def part_kind(part: Any, here: Place, format: str) -> str:
    """The ``type`` of a content part, which every part has; what type it is does not matter."""
    kind = get(part, "type")
    if isinstance(kind, str) and kind:
        return kind
    what = f"must be a string, got {shown(kind)}" if kind else "is missing"
    raise wrong((*here, "type"), f"{what} {read_as(format)}")


def read_as(format: str) -> str:
    return f"(read as {format!r}; format= names another)"


def string(value: Any, here: Place, key: str) -> str:
    """A field that must be a string; null and absent are empty."""
    return value if isinstance(value, str) else "" if value is None else identity(value, here, key)


def identity(value: Any, here: Place, key: str) -> str:
    """A field that must be a string and be there."""
    if not isinstance(value, str):
        raise wrong((*here, key), f"must be a string, got {shown(value)}")
    return value


def items(value: Any, here: Place, key: str, expected: str = "a list") -> Iterator[tuple[Any, Place]]:
    """The elements of a field that must be a list of objects; null and absent are empty."""
    if value is None:
        return
    if not is_list(value):
        raise wrong((*here, key), f"must be {expected}, got {shown(value)}")
    for number, item in enumerate(value):
        place = (here, key, number)
        if not is_object(item):
            raise wrong(place, f"must be an object, got {shown(item)}")
        yield item, place
