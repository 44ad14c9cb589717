"""What all summarisers share as values: a repr that makes them, options that are checked, packages that are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import attrs


def repr_of(value: Any) -> str:
    """The code that makes an attrs value: what differs from the defaults, and nothing that has no repr."""
    fields = [f for f in attrs.fields(type(value)) if f.init and f.repr]
    given = [f"{f.alias}={getattr(value, f.name)!r}" for f in fields if getattr(value, f.name) != _default(f)]
    return f"{type(value).__name__}({', '.join(given)})"


def _default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def copied(value: object) -> object:
    """A copy of a mapping, so that what the caller does with it later changes nothing here."""
    return dict(value) if isinstance(value, Mapping) else value


def free_of(taken: frozenset[str]) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """An attrs validator: more arguments of a request, none that a summariser sets itself, and no tools (rule S2)."""

    def validator(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise TypeError(f"{attribute.alias} must be a mapping from names to values, got {value!r}")
        if refused := sorted(taken & value.keys()):
            raise ValueError(
                f"{attribute.alias} must be further arguments of the request, got {refused[0]!r}, "
                "which a summariser sets itself or does without"
            )

    return validator


def a_text(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a text that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{attribute.alias} must be a text, got {value!r}")
    if not value.strip():
        raise ValueError(f"{attribute.alias} must be a text that is not empty, got {value!r}")


def at_least(least: int) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """An attrs validator: an int that is not smaller."""

    def validator(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{attribute.alias} must be an int of {least} or more, got {value!r}")
        if value < least:
            raise ValueError(f"{attribute.alias} must be an int of {least} or more, got {value!r}")

    return validator


def seconds(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{attribute.alias} must be a number of seconds above 0, got {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{attribute.alias} must be a number of seconds above 0, got {value!r}")


def needed(module: str, kind: str, extra: str) -> ModuleType:
    """A package of an extra; where it is missing, the error says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        message = f'{kind} needs the package {module}: pip install "chat-compaction[{extra}]"'
        raise ModuleNotFoundError(message, name=module) from None
