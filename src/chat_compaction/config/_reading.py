"""Plain data -> a strategy. cattrs asks these hooks by the type of an argument, and gathers what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, Union, get_origin

import attrs
from cattrs import ClassValidationError, Converter

from .._predicate_parser import parse_predicate
from .._predicates import Predicate
from .._strategy import CompactionStrategy
from ..strategies.function import FunctionStrategy
from ._arguments import Argument, arguments_of
from ._clients import client_of
from ._errors import UnfitError, at_key, below
from ._imports import IMPORT, imported
from ._keys import sections, unknown
from ._registry import STRATEGIES, SUMMARIZERS, Registry, hint
from ._values import A_TABLE_SUCH_AS, PLAIN, Free, choice, free, is_a, is_any, items, mapping, member, one_of, plain

_FLAGS = Literal["ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE"]
_PREDICATE = "a predicate such as 'tokens > 8000'"
_ONE_OR_MORE = {"must_keep"}
"""Arguments that take one where others need a list of one, as in Python."""


@cache
def reader(allow_imports: bool) -> Converter:
    """What reads plain data as values of a type."""
    converter = Converter()
    # Of several that take a type, the last is asked.
    hooks: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...] = (
        (lambda _: True, partial(_of_kind, converter, allow_imports)),
        (attrs.has, partial(_value, converter, allow_imports)),
        (is_any, partial(_anything, converter, allow_imports)),
        (lambda cls: cls is Free, partial(free, converter)),
        (lambda cls: get_origin(cls) is Literal, choice),
        (lambda cls: is_a(cls, Enum), member),
        (lambda cls: is_a(cls, re.Pattern), partial(_pattern, converter)),
        (lambda cls: is_a(cls, Collection), partial(items, converter)),
        (lambda cls: is_a(cls, Mapping), partial(mapping, converter)),
        (lambda cls: is_a(cls, Predicate), partial(_predicate, allow_imports)),
        (lambda cls: is_a(cls, CompactionStrategy), partial(_strategy, converter, allow_imports)),
        (lambda cls: get_origin(cls) in (Union, UnionType), partial(one_of, converter)),
    )
    for takes, hook in hooks:
        converter.register_structure_hook_func(takes, hook)
    for cls in PLAIN:
        converter.register_structure_hook(cls, plain)
    return converter


def _pattern(converter: Converter, data: Any, cls: Any) -> re.Pattern[str]:
    if not isinstance(data, Mapping) or "pattern" not in data:
        raise UnfitError("a table with the key 'pattern'", data)
    arguments = {"pattern": Argument("pattern", "pattern", str), "flags": Argument("flags", "flags", list[_FLAGS], ())}
    return _filled(converter, _compiled, arguments, data, None)  # type: ignore[no-any-return]


def _compiled(pattern: str, flags: Collection[str] = ()) -> re.Pattern[str]:
    try:
        return re.compile(pattern, sum(re.RegexFlag[flag] for flag in set(flags)))
    except re.error as error:
        raise below("pattern", ValueError(f"cannot read the pattern {pattern!r}: {error}")) from error


def _predicate(allow_imports: bool, data: Any, _: Any) -> Predicate:
    if _is_import(data):
        found = imported(data, allow_imports)
        if isinstance(found, Predicate):
            return found
        raise ValueError(f"{data[IMPORT]!r} must be a predicate, got {found!r}")
    if not isinstance(data, str):
        raise UnfitError(_PREDICATE, data)
    return parse_predicate(data)


def _is_import(data: Any) -> bool:
    return isinstance(data, Mapping) and IMPORT in data


def _strategy(converter: Converter, allow_imports: bool, data: Any, cls: Any) -> Any:
    found = _found(STRATEGIES, allow_imports, data)
    if isinstance(found, type) and issubclass(found, CompactionStrategy):
        made = _made(converter, found, data, STRATEGIES.key)
    elif isinstance(found, FunctionStrategy):
        # A decorated function: what the table has takes the place of what the decorator has.
        optional = {name: argument for name, argument in arguments_of(FunctionStrategy).items() if name != "function"}
        made = _filled(converter, partial(attrs.evolve, found), optional, data, STRATEGIES.key, needs=False)
    else:
        name = data[STRATEGIES.key]
        what = f"{name!r} of {STRATEGIES.origin(name)} must be a class of strategies or a decorated function"
        raise below(STRATEGIES.key, ValueError(f"{what}, got {found!r}"))
    if not isinstance(made, cls):
        raise ValueError(f"expected a {cls.__name__}, got {made!r}")
    return made


def _of_kind(converter: Converter, allow_imports: bool, data: Any, cls: Any) -> Any:
    """A callable, or an object of a class that has a name: a summariser, say."""
    if _is_import(data):
        found = imported(data, allow_imports)
        return found.function if isinstance(found, FunctionStrategy) else found
    found = _found(SUMMARIZERS, allow_imports, data)
    if not isinstance(found, type):
        return _filled(converter, lambda: found, {}, data, SUMMARIZERS.key)
    try:
        client = None if "client" in data else client_of(data[SUMMARIZERS.key])
    except ModuleNotFoundError as error:
        raise below(SUMMARIZERS.key, error) from error
    return _made(converter, found, data, SUMMARIZERS.key, {} if client is None else {"client": client})


def _value(converter: Converter, allow_imports: bool, data: Any, cls: Any) -> Any:
    """An object of a class that needs no name, since no other may stand here."""
    if isinstance(data, Mapping) and (SUMMARIZERS.key in data or IMPORT in data):
        return _of_kind(converter, allow_imports, data, cls)
    if not isinstance(data, Mapping):
        needs = [f"{name} = ..." for name, argument in arguments_of(cls).items() if argument.required]
        raise UnfitError(f"{A_TABLE_SUCH_AS} {{ {', '.join(needs)} }}" if needs else "a table", data)
    return _made(converter, cls, data, None)


def _anything(converter: Converter, allow_imports: bool, data: Any, _: Any) -> Any:
    """What takes any value: a table says by its key what it is."""
    if isinstance(data, Mapping) and STRATEGIES.key in data:
        return _strategy(converter, allow_imports, data, CompactionStrategy)
    if isinstance(data, Mapping) and (SUMMARIZERS.key in data or IMPORT in data):
        return _of_kind(converter, allow_imports, data, Any)
    if isinstance(data, Mapping) and "pattern" in data:
        return _pattern(converter, data, Any)
    return free(converter, data, Any)


def _found(registry: Registry, allow_imports: bool, data: Any) -> Any:
    """What the name in a table stands for."""
    if not isinstance(data, Mapping):
        raise UnfitError(f"a table with the key {registry.key!r}", data)
    if registry.key not in data:
        raise _nameless(registry, data)
    try:
        name = plain(data[registry.key], str)
        return imported({IMPORT: name}, allow_imports) if ":" in name else registry.load(name)
    except Exception as error:
        raise below(registry.key, error) from error


def _nameless(registry: Registry, data: Mapping[Any, Any]) -> Exception:
    text = "unknown key; what a strategy takes stands beside its name, and not in a section"
    errors = [at_key(ValueError(text), name) for name in sections(data)] if registry is STRATEGIES else []
    missing = ValueError(f"is missing: the name of a {registry.noun}{hint('', registry.names())}")
    return ClassValidationError("", [*errors, at_key(missing, registry.key)], dict)


def _made(
    converter: Converter, cls: type, data: Mapping[Any, Any], key: str | None, given: Mapping[str, Any] | None = None
) -> Any:
    """An object of a class; the keys are the arguments of its constructor, but for those that are given."""
    given = given or {}
    try:
        arguments = arguments_of(cls)
    except (NameError, TypeError, ValueError) as error:
        raise ValueError(f"cannot tell the arguments of {cls.__module__}.{cls.__qualname__}: {error}") from error
    if key in arguments:
        raise ValueError(f"{cls.__name__} has an argument {key}, which in a configuration is the key for its name")
    arguments = {name: argument for name, argument in arguments.items() if name not in given}
    return _filled(converter, partial(cls, **given), arguments, data, key)


def _filled(
    converter: Converter,
    make: Callable[..., Any],
    arguments: Mapping[str, Argument],
    data: Mapping[Any, Any],
    key: str | None,
    *,
    needs: bool = True,
) -> Any:
    """What a function makes of the arguments in a table; raises all that is wrong with them."""
    given, errors = {}, []
    for name, value in data.items():
        if name != key:
            try:
                if name not in arguments:
                    raise ValueError(unknown(name, arguments, data))
                one = name in _ONE_OR_MORE and isinstance(value, str | Mapping)
                given[name] = converter.structure(value, Any if one else arguments[name].type)
            except Exception as error:
                errors.append(at_key(error, name))
    missing = [name for name, argument in arguments.items() if needs and argument.required and name not in data]
    errors += [at_key(ValueError("is missing"), name) for name in missing]
    if not errors:
        try:
            return make(**given)
        except Exception as error:
            errors.append(_of_argument(error, arguments))
    raise ClassValidationError("", errors, dict)


def _of_argument(error: Exception, arguments: Mapping[str, Argument]) -> Exception:
    """The error of a constructor, whose text begins with the argument's name, as one of that key."""
    name, _, rest = str(error).partition(" ")
    if isinstance(error, ValueError | TypeError) and name in arguments and rest:
        return at_key(ValueError(rest), name)
    return error
