"""A strategy -> plain data: each argument that is not at its default, by the type of its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Any, get_args

import attrs
from cattrs import ClassValidationError, Converter, IterableValidationError

from .._predicate_parser import parse_predicate
from .._predicates import Predicate
from .._strategy import CompactionStrategy
from ..strategies.function import FunctionStrategy
from ._arguments import arguments_of
from ._clients import EnvironmentClient
from ._errors import at_index, at_key
from ._imports import IMPORT, home_of
from ._registry import STRATEGIES, SUMMARIZERS
from ._secrets import check_name, check_text


@cache
def writer(allow_imports: bool) -> Converter:
    """What makes plain data of values."""
    converter = Converter()
    hooks: dict[type, Callable[[Any], Any]] = {
        object: partial(_object, converter, allow_imports),
        Mapping: partial(_mapping, converter),
        Set: lambda value: sorted(_items(converter, value), key=repr),
        list: partial(_items, converter),
        tuple: partial(_items, converter),
        re.Pattern: _pattern,
        Predicate: partial(_predicate, allow_imports),
        Enum: _plain,
        **dict.fromkeys((NoneType, bool, int, float, str), _plain),
    }
    for cls, hook in hooks.items():
        converter.register_unstructure_hook(cls, hook)
    return converter


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        check_text(value)
    return value


def _pattern(value: re.Pattern[Any]) -> dict[str, Any]:
    if not isinstance(value.pattern, str):
        raise ValueError(f"cannot be written: {value!r} is a pattern of bytes")
    # Every pattern of a text has the flag for Unicode.
    flags = [flag.name for flag in re.RegexFlag if flag & value.flags and flag is not re.UNICODE]
    return {"pattern": value.pattern} | ({"flags": flags} if flags else {})


def _predicate(allow_imports: bool, value: Predicate) -> Any:
    try:
        if parse_predicate(repr(value)) == value:
            return repr(value)
    except ValueError:
        pass  # A function's, somewhere in it.
    return _import(value, allow_imports)


def _import(value: Any, allow_imports: bool) -> dict[str, str]:
    path = home_of(value)
    if path is None:
        raise ValueError(f"cannot be written: {value!r} has no name in a configuration, and no import path")
    if not allow_imports:
        raise ValueError(f"{value!r} can only be written as something to import: allow_imports=True does")
    return {IMPORT: path}


def _items(converter: Converter, values: Iterable[Any]) -> list[Any]:
    made, errors = [], []
    for place, value in enumerate(values):
        try:
            made.append(converter.unstructure(value))
        except Exception as error:
            errors.append(at_index(error, place))
    if errors:
        raise IterableValidationError("", errors, list)
    return made


def _mapping(converter: Converter, values: Mapping[Any, Any]) -> dict[str, Any]:
    made, errors = {}, []
    for key, value in values.items():
        try:
            if not isinstance(key, str):
                raise ValueError(f"cannot be written: the key {key!r} is no text")
            check_name(key)
            made[key] = converter.unstructure(value)
        except Exception as error:
            errors.append(at_key(error, key))
    if errors:
        raise ClassValidationError("", errors, dict)
    return made


def _strategy(converter: Converter, allow_imports: bool, value: CompactionStrategy) -> dict[str, Any]:
    name = STRATEGIES.name_of(value.function) if isinstance(value, FunctionStrategy) else None
    if name is not None:
        # A function that has a name of its own: what its decorator gave are the defaults.
        return {STRATEGIES.key: name} | _arguments(converter, value, STRATEGIES.load(name))
    name = STRATEGIES.name_of(type(value)) or _import(type(value), allow_imports)[IMPORT]
    return {STRATEGIES.key: name} | _arguments(converter, value)


def _object(converter: Converter, allow_imports: bool, value: Any) -> dict[str, Any]:
    """A strategy, a function, or an object of another class: by its name if it has one."""
    if isinstance(value, CompactionStrategy):
        return _strategy(converter, allow_imports, value)
    named = value if hasattr(value, "__qualname__") else type(value)
    name = SUMMARIZERS.name_of(named)
    if name is None:
        return _import(value, allow_imports)
    return {SUMMARIZERS.key: name} | ({} if named is value else _arguments(converter, value))


def _arguments(converter: Converter, value: Any, standard: Any = None) -> dict[str, Any]:
    """The arguments that would make this object, but for defaults, or for what a standard object has, too."""
    cls: type = type(value)
    made, errors = {}, []
    for name, argument in arguments_of(cls).items():
        try:
            if not hasattr(value, argument.attribute):
                raise ValueError(f"cannot be written: {cls.__name__} keeps no attribute {argument.attribute}")
            held = getattr(value, argument.attribute)
            same = argument.is_default(held) if standard is None else held == getattr(standard, argument.attribute)
            if not same and not isinstance(held, EnvironmentClient):
                made[name] = _as(converter, held, argument.type)
        except Exception as error:
            errors.append(at_key(error, name))
    if errors:
        raise ClassValidationError("", errors, cls)
    return made


def _as(converter: Converter, value: Any, cls: Any) -> Any:
    """A value where a type is expected: an object of just that class needs no name."""
    options = get_args(cls) or (cls,)
    if value is None and bool not in options:
        return False  # TOML has no null.
    plain = type(value) in options and attrs.has(type(value)) and not isinstance(value, CompactionStrategy)
    if plain and SUMMARIZERS.name_of(type(value)) is None:
        return _arguments(converter, value)
    return converter.unstructure(value)
