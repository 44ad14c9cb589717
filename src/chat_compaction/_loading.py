"""What loads a module when it is first used (PEP 562), so that importing a package costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

_V = TypeVar("_V")


def lazy(package: str, homes: Mapping[str, Collection[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, which knows the names that its modules hold.

    The first use of a name loads its module. Every name of a module that is loaded by then becomes an attribute
    of the package; and what a private module defines names the package as its own, so that readers of a
    traceback or of ``help()`` see the path that they import from.
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        loaded = {other: vars(sys.modules[home]) for other, home in home_of.items() if home in sys.modules}
        # Another thread may be just loading a module: then what it holds so far is taken.
        for other, found in loaded.items():
            if other in found:
                _publish(package, other, found[other])
        _publish(package, name, value)
        return value

    return load


def _publish(package: str, name: str, value: Any) -> None:
    if hasattr(value, "__qualname__") and "._" in value.__module__:
        value.__module__ = package
    setattr(sys.modules[package], name, value)


class LazyMapping(Mapping[str, _V]):
    """A mapping of these names; a value is made when it is first asked for."""

    def __init__(self, names: Collection[str], make: Callable[[str], _V]) -> None:
        self._names = names
        self._make = make
        self._made: dict[str, _V] = {}

    def __getitem__(self, name: str) -> _V:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made.setdefault(name, self._make(name))
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names  # Mapping's own would make the value.

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names)}>"
