"""Import paths such as ``"package.module:name"``: reading one runs code, so the program must allow it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .._predicates import FunctionPredicate
from ..strategies.function import FunctionStrategy

IMPORT = "import"
"""The key of a table that stands for something to be imported."""


def imported(data: Mapping[Any, Any], allowed: bool) -> Any:
    """What stands at the import path of a table; raises ValueError where that is nothing."""
    path = data[IMPORT]
    if len(data) > 1 or not isinstance(path, str) or path.count(":") != 1:
        raise ValueError(f"expected an import path such as 'package.module:name' and nothing else, got {path!r}")
    if not allowed:
        raise ValueError(
            f"{path!r} would be imported, which runs code: only a program that allows it may (allow_imports=True)"
        )
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever the module does when it is imported
        raise ValueError(f"cannot import {path!r}: {type(error).__name__}: {error}") from error
    return found


def at(path: str) -> Any:
    """What stands at an import path of a module that is loaded; None where nothing does."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def home_of(value: Any) -> str | None:
    """The import path of a class or function; None where it does not stand under its own name.

    A function that was decorated is its module's strategy or predicate.
    """
    named = value.function if isinstance(value, FunctionPredicate | FunctionStrategy) else value
    path = f"{getattr(named, '__module__', None)}:{getattr(named, '__qualname__', None)}"
    found = at(path)
    if isinstance(found, FunctionStrategy):
        return path if named is found.function and not isinstance(value, FunctionPredicate) else None
    return path if found is not None and found == value else None
