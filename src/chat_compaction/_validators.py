"""attrs validators: each says in one string the argument, its value and what was expected."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import attrs


def non_negative(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An int, no bool, not below zero."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.alias} must be an int of 0 or more, got {value!r}")
    if value < 0:
        raise ValueError(f"{attribute.alias} must be an int of 0 or more, got {value!r}")


def positive(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An int, no bool, of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.alias} must be an int of 1 or more, got {value!r}")
    if value < 1:
        raise ValueError(f"{attribute.alias} must be an int of 1 or more, got {value!r}")


def a_bool(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """True or False, nothing that is merely truthy."""
    if not isinstance(value, bool):
        raise TypeError(f"{attribute.alias} must be True or False, got {value!r}")


def true_false_or_none(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """True, False or None."""
    if value is not None:
        a_bool(_, attribute, value)


def a_callable(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{attribute.alias} must be callable, got {value!r}")


def a_plain_function(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Something that can be called, and whose answer nobody has to await."""
    a_callable(_, attribute, value)
    refuse_async(attribute.alias or attribute.name, value)


def refuse_async(name: str, value: object) -> None:
    """A coroutine would count as true, whatever it comes to."""
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise TypeError(f"{name} must be a plain function, since nobody awaits it, got {value!r}")


def one_of(choices: tuple[str, ...]) -> Any:
    """One of a few words."""

    def validator(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        check_choice(attribute.alias or attribute.name, value, choices)

    return validator


def as_tuple(value: Any) -> Any:
    """An attrs converter: a list of words as a tuple; what is none stays as it is."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def some_of(choices: tuple[str, ...]) -> Any:
    """A tuple of some of a few words, one at the least."""

    def validator(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        expected = f"{attribute.alias} must be some of {', '.join(map(repr, choices))}"
        if not isinstance(value, tuple):
            raise TypeError(f"{expected}, got {value!r}")
        if not value or any(word not in choices for word in value):
            raise ValueError(f"{expected}, got {value!r}")

    return validator


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
