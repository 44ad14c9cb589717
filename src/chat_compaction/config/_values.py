"""Plain values, and several of them: what cattrs asks for these types of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from types import NoneType
from typing import Any, ForwardRef, Literal, get_args, get_origin

from cattrs import ClassValidationError, Converter, IterableValidationError

from .._strategy import CompactionStrategy
from ._errors import UnfitError, at_index, at_key
from ._registry import hint
from ._secrets import check_name, check_text

A_TABLE_SUCH_AS = "a table such as"
PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "null"}


def is_a(cls: Any, base: type) -> bool:
    """Whether a type is a class of this kind, with or without the types of what is in it."""
    cls = get_origin(cls) or cls
    return isinstance(cls, type) and issubclass(cls, base)


def is_any(cls: Any) -> bool:
    """Whether a type says nothing. One that could not be resolved is a text; the constructor checks the value."""
    return cls is Any or cls is object or isinstance(cls, str | ForwardRef)


def plain(data: Any, cls: Any) -> Any:
    """A value of just this type: nothing is made of what looks like it."""
    if is_a(cls, Enum):  # Some are texts, too.
        return member(data, cls)
    if type(data) is cls:
        if cls is str:
            check_text(data)
        return data
    if cls is float and type(data) is int:
        return float(data)
    raise UnfitError(PLAIN[cls], data)


def choice(data: Any, cls: Any) -> Any:
    """One of a few words."""
    choices = get_args(cls)
    if not any(type(data) is type(choice) for choice in choices):
        raise UnfitError(f"one of {', '.join(map(repr, choices))}", data)
    if data not in choices:
        raise ValueError(f"there is no {data!r} here{hint(str(data), map(str, choices))}")
    return data


def member(data: Any, cls: Any) -> Any:
    """A member of an enumeration, by its value."""
    return cls(choice(data, Literal[tuple(member.value for member in cls)]))


def items(converter: Converter, data: Any, cls: Any) -> Any:
    """A list as a tuple, a list or a set; a tuple of a fixed length as one of that length."""
    if not isinstance(data, list | tuple):
        # Whoever writes [stages.one] means the first of them.
        tables = isinstance(data, Mapping) and is_a((get_args(cls) or (Any,))[0], CompactionStrategy)
        raise UnfitError("a list of tables, such as [[stages]] in TOML" if tables else "a list", data)
    kind, of = get_origin(cls) or cls, get_args(cls) or (Any,)
    fixed = is_a(cls, tuple) and of[-1] is not ... and bool(get_args(cls))
    if fixed and len(of) != len(data):
        raise UnfitError(f"a list of {len(of)}", data)
    made, errors = [], []
    for place, item in enumerate(data):
        try:
            made.append(converter.structure(item, of[place] if fixed else of[0]))
        except Exception as error:
            errors.append(at_index(error, place))
    if errors:
        raise IterableValidationError("", errors, cls)
    if issubclass(kind, Set):
        return set(made) if issubclass(kind, set) else frozenset(made)
    return made if issubclass(kind, list) else tuple(made)


def mapping(converter: Converter, data: Any, cls: Any) -> dict[str, Any]:
    """A table that may have any keys but those of secrets."""
    if not isinstance(data, Mapping):
        raise UnfitError("a table", data)
    of = (get_args(cls) or (str, Any))[1]
    made, errors = {}, []
    for key, value in data.items():
        try:
            check_name(plain(key, str))
            made[key] = converter.structure(value, Free if of is Any else of)
        except Exception as error:
            errors.append(at_key(error, key))
    if errors:
        raise ClassValidationError("", errors, cls)
    return made


class Free:
    """The type of what is handed on as it is, such as the options of a request: no table in it has a meaning here."""


def free(converter: Converter, data: Any, _: Any) -> Any:
    """Plain data as it is."""
    if isinstance(data, Mapping):
        return converter.structure(data, dict[str, Any])
    if isinstance(data, list | tuple):
        return converter.structure(data, list[Free])
    if type(data) not in PLAIN:
        raise UnfitError("a text, a number, true or false, a list or a table", data)
    return plain(data, type(data))


def one_of(converter: Converter, data: Any, cls: Any) -> Any:
    """As the first of several types that the value fits; if there is none, the error is of the one that is meant."""
    if data is False and NoneType in get_args(cls) and bool not in get_args(cls):
        return None  # TOML has no null.
    unfit: list[str] = []
    wrong: Exception | None = None
    for option in sorted(get_args(cls), key=lambda option: option is NoneType):
        try:
            return converter.structure(data, option)
        except UnfitError as error:
            unfit.append(error.expected)
        except Exception as error:
            wrong = wrong or error
    # A class that needs no name says more than "a table of some kind".
    such = [word for word in unfit if word.startswith(A_TABLE_SUCH_AS)]
    raise wrong or UnfitError(" or ".join(such or [word for word in unfit if word != "null"]), data)
