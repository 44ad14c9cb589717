"""TOML, YAML and JSON: text -> plain data, and back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import PurePath
from typing import Any, Literal

from .._validators import check_choice
from ._errors import ConfigError, ConfigFault, key_path

ConfigFormat = Literal["toml", "yaml", "json"]
FORMATS = ("toml", "yaml", "json")
_ENDINGS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_MOST_VALUES = 100_000
"""In a few lines of YAML, references to references may stand for more values than any memory holds."""


def format_of(path: PurePath, format: str | None) -> str:
    """The format that was asked for, or that the ending of a file's name says."""
    if format is not None:
        check_choice("format", format, FORMATS)
        return format
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(f"path must end with .toml, .yaml, .yml or .json, got {str(path)!r}")
    return _ENDINGS[path.suffix.lower()]


def parsed(text: str, format: str, source: str | None) -> Any:
    """The data of a text."""
    try:
        data = tomllib.loads(text) if format == "toml" else _yaml(text) if format == "yaml" else _json(text)
        if _is_small(data):
            return data
        why = f"more than {_MOST_VALUES:,} values"
    except RecursionError:
        why = "nested too deeply"
    except ValueError as error:
        why = f"broken {format.upper()}: {error}"
    raise ConfigError([ConfigFault("", why)], source)


def rendered(data: dict[str, Any], format: str) -> str:
    """The text of data."""
    if format == "toml":
        tomlkit = _needed("tomlkit", "writing TOML", "tomlkit")
        if nulls := list(_nulls(data, "")):
            raise ConfigError(nulls)
        return str(tomlkit.dumps(data))
    if format == "yaml":
        return str(_needed("yaml", "YAML", "PyYAML").safe_dump(data, sort_keys=False, allow_unicode=True, width=120))
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _needed(module: str, what: str, package: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        message = f'{what} needs the package {package}: pip install "chat-compaction[config]"'
        raise ModuleNotFoundError(message, name=module) from None


def _nulls(data: Any, path: str) -> Iterator[ConfigFault]:
    if data is None:
        yield ConfigFault(path, "is null, which TOML has no word for")
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _nulls(value, key_path(path, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from _nulls(value, f"{path}[{place}]")


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_distinct)


def _distinct(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A table; the same key twice is a mistake that nobody would see."""
    made: dict[Any, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {key!r} stands twice in a table")
        made[key] = value
    return made


def _yaml(text: str) -> Any:
    yaml = _needed("yaml", "YAML", "PyYAML")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            _distinct((key, None) for key in keys if isinstance(key, str))
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = "" if mark is None else f" (at line {mark.line + 1}, column {mark.column + 1})"
        raise ValueError(f"{error.problem}{at}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _is_small(data: Any) -> bool:
    """Whether it is no more than a configuration may hold."""
    waiting, seen = [data], 0
    while waiting:
        value = waiting.pop()
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        seen += 1 + len(held)
        if seen > _MOST_VALUES:
            return False
        waiting.extend(held)
    return True
