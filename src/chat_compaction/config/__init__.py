"""Strategies as configuration files: TOML, YAML or JSON. It needs the extra ``config``.

>>> import chat_compaction as cc
>>> strategy = from_config({"strategy": "truncation", "trigger": "tokens > 8000", "min_preserved_groups": 4})
>>> strategy
TruncationStrategy(trigger=tokens > 8000, min_preserved_groups=4)
>>> to_config(strategy)
{'strategy': 'truncation', 'trigger': 'tokens > 8000', 'min_preserved_groups': 4}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from .._strategy import CompactionStrategy
from .._validators import check_choice
from ._errors import ConfigError, ConfigFault, faults_of
from ._reading import reader
from ._text import FORMATS, ConfigFormat, format_of, parsed, rendered
from ._writing import writer

__all__ = [
    "ConfigError",
    "ConfigFault",
    "ConfigFormat",
    "dump_config",
    "dumps_config",
    "from_config",
    "load_config",
    "loads_config",
    "to_config",
]


def from_config(config: Mapping[str, Any], *, allow_imports: bool = False) -> CompactionStrategy:
    """The strategy that plain data describes: ``{"strategy": "truncation", "trigger": "tokens > 8000"}``.

    ``strategy`` is the name of a strategy, ours or one that an installed package adds; the other keys are its
    arguments. Predicates are texts, strategies in it are tables like this one, a summariser is a table with its
    ``kind``. With ``allow_imports``, a table ``{"import": "package.module:name"}`` stands for what is found there;
    importing runs code.

    Raises :class:`ConfigError` with all that is wrong, each with its path.
    """
    return _read(config, allow_imports, None)


def to_config(strategy: CompactionStrategy, *, allow_imports: bool = False) -> dict[str, Any]:
    """Plain data that :func:`from_config` makes an equal strategy of; what is at its default is not in it.

    Raises :class:`ConfigError` where something in it has no name, such as a function, unless ``allow_imports``
    lets it be written as an import path.
    """
    if not isinstance(strategy, CompactionStrategy):
        raise TypeError(f"strategy must be a CompactionStrategy, got {strategy!r}")
    _check_bool("allow_imports", allow_imports)
    try:
        data: dict[str, Any] = writer(allow_imports).unstructure(strategy)
    except Exception as error:
        raise ConfigError(faults_of(error)) from None
    return data


def loads_config(text: str, format: ConfigFormat, *, allow_imports: bool = False) -> CompactionStrategy:
    """:func:`from_config` of a text in a format: ``"toml"``, ``"yaml"`` or ``"json"``."""
    check_choice("format", format, FORMATS)
    return _read(parsed(text, format, None), allow_imports, None)


def dumps_config(strategy: CompactionStrategy, format: ConfigFormat, *, allow_imports: bool = False) -> str:
    """:func:`to_config` as text in a format: ``"toml"``, ``"yaml"`` or ``"json"``."""
    check_choice("format", format, FORMATS)
    return rendered(to_config(strategy, allow_imports=allow_imports), format)


def load_config(
    path: str | os.PathLike[str], *, format: ConfigFormat | None = None, allow_imports: bool = False
) -> CompactionStrategy:
    """:func:`from_config` of a file, whose name ends with ``.toml``, ``.yaml``, ``.yml`` or ``.json``.

    ``format`` says what it is where the name does not. Each fault of a :class:`ConfigError` begins with the file's
    name. A file that cannot be opened is an :class:`OSError`.
    """
    path = Path(path)
    format_ = format_of(path, format)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        fault = ConfigFault("", f"not UTF-8: {error.reason} at byte {error.start}")
        raise ConfigError([fault], str(path)) from None
    return _read(parsed(text, format_, str(path)), allow_imports, str(path))


def dump_config(
    strategy: CompactionStrategy,
    path: str | os.PathLike[str],
    *,
    format: ConfigFormat | None = None,
    allow_imports: bool = False,
) -> None:
    """:func:`to_config` as a file, in the format that the ending of its name or ``format`` says."""
    path = Path(path)
    text = rendered(to_config(strategy, allow_imports=allow_imports), format_of(path, format))
    path.write_text(text, encoding="utf-8")


def _check_bool(name: str, value: object) -> None:
    """Refuse what is merely truthy."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def _read(config: Any, allow_imports: bool, source: str | None) -> CompactionStrategy:
    _check_bool("allow_imports", allow_imports)
    try:
        return cast(CompactionStrategy, reader(allow_imports).structure(config, cast(Any, CompactionStrategy)))
    except Exception as error:
        raise ConfigError(faults_of(error), source) from None
