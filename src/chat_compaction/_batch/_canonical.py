"""A text for a value that is the same in every process: by it, settings of another run are told to be equal.

Pickle gives no such text: its bytes depend on which objects are identical, and on the order of a dict.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from types import BuiltinFunctionType, FunctionType
from typing import Any

import attrs

_PLAIN = (type(None), bool, int, float, str, bytes)


def canonical(value: Any) -> str:
    """The text of a value: of a function or class its name, of an object its class and what it holds.

    Raises TypeError, or whatever an object raises that does not pickle, where another process would not know it.
    """
    if type(value) in _PLAIN:
        return repr(value)
    if type(value) is list or type(value) is tuple:
        return f"{type(value).__name__}({', '.join(map(canonical, value))})"
    if type(value) is dict:
        return f"dict({_pairs(value.items())})"
    if type(value) is set or type(value) is frozenset:
        return f"{type(value).__name__}({', '.join(sorted(map(canonical, value)))})"
    if isinstance(value, type | FunctionType):
        return _name(value.__module__, value)
    if attrs.has(type(value)) and not any("__reduce__" in vars(cls) for cls in type(value).__mro__[:-1]):
        return f"{canonical(type(value))}({_pairs(_fields(value).items())})"
    return _pickled(value)


def _pairs(items: Iterable[tuple[Any, Any]]) -> str:
    return ", ".join(sorted(f"{canonical(key)}: {canonical(value)}" for key, value in items))


def _fields(value: Any) -> dict[str, Any]:
    """What an attrs object was made of, and what a plain subclass gave it beside that; nothing that it worked out."""
    fields = attrs.fields(type(value))
    made = {field.name: getattr(value, field.name, None) for field in fields if field.init}
    names = {field.name for field in fields}
    more = {name: one for name, one in getattr(value, "__dict__", {}).items() if name not in names}
    return made | {name: one for name, one in more.items() if not _is_cached(type(value), name)}


def _is_cached(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), cached_property)


def _pickled(value: Any) -> str:
    """What pickle would make an object of, each of these by its own text."""
    made = value.__reduce_ex__(4)
    if isinstance(made, str):
        module = value.__module__ if isinstance(value, BuiltinFunctionType) else type(value).__module__
        return _name(module, value, made)
    make, arguments, state, listed, mapped = (*made, None, None, None)[:5]
    parts = [*map(canonical, (make, arguments, state)), *map(canonical, listed or ()), _pairs(mapped or ())]
    return f"object({', '.join(parts)})"


def _name(module: str, value: Any, name: str | None = None) -> str:
    """The name by which another process finds a function or class: none for a lambda."""
    name = value.__qualname__ if name is None else name
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise TypeError(f"{value!r} is not to be found as {name} in the module {module}")
    # The script that is run is __main__, and __mp_main__ in a process that it started.
    return f"{'__main__' if module == '__mp_main__' else module}:{name}"
