"""What is wrong with a configuration: every fault, each with its path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from .._errors import CompactionError

try:
    from cattrs import AttributeValidationNote, BaseValidationError, ClassValidationError, IterableValidationNote
except ModuleNotFoundError as error:
    message = 'configuration needs the package cattrs: pip install "chat-compaction[config]"'
    raise ModuleNotFoundError(message, name=error.name) from None

_PLAIN_KEY = re.compile(r"[\w-]+")
_MOST_SHOWN = 80


@attrs.frozen
class ConfigFault:
    """One thing that is wrong: where, as in ``stages[1].trigger`` (empty for the whole), and what."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(CompactionError, ValueError):
    """A configuration that cannot be read, or a strategy that cannot be written as one.

    ``faults`` are all that were found, and ``source`` is the name of the file, or None. The text has a line for
    each: ``compaction.toml: stages[1].trigger: expected a predicate ...``.
    """

    def __init__(self, faults: Iterable[ConfigFault], source: str | None = None) -> None:
        self.faults = tuple(faults)
        self.source = source
        super().__init__(self.faults, source)

    def __str__(self) -> str:
        prefix = "" if self.source is None else f"{self.source}: "
        return "\n".join(f"{prefix}{fault}" for fault in self.faults)


class UnfitError(ValueError):
    """A value of another kind than what is expected at its place."""

    def __init__(self, expected: str, value: object) -> None:
        self.expected = expected
        super().__init__(f"expected {expected}, got {shown(value)}")


def shown(value: Any) -> str:
    """A value as a file would have it, in short."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 20]} ... {text[-15:]}"


def at_key(error: Exception, key: object) -> Exception:
    """The error, as one of a table's value under this key."""
    error.add_note(AttributeValidationNote("", str(key), Any))
    return error


def below(key: object, error: Exception) -> ClassValidationError:
    """The error of a table, one of whose values is wrong."""
    return ClassValidationError("", [at_key(error, key)], dict)


def at_index(error: Exception, index: int) -> Exception:
    """The error, as one of an item of a list."""
    error.add_note(IterableValidationNote("", index, Any))
    return error


def faults_of(error: BaseException, path: str = "") -> Iterator[ConfigFault]:
    """The faults that an error of cattrs holds, each by its path."""
    if isinstance(error, BaseValidationError):
        for one in error.exceptions:
            yield from faults_of(one, _joined(path, one))
    else:
        known = isinstance(error, ValueError | TypeError | ImportError)
        yield ConfigFault(path, str(error) if known else f"{type(error).__name__}: {error}")


def _joined(path: str, error: BaseException) -> str:
    """The path of an error below one: what is wrong with the whole of a table or a list says no step."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, IterableValidationNote):
            return f"{path}[{note.index}]"
        if isinstance(note, AttributeValidationNote):
            return key_path(path, note.name)
    return path


def key_path(path: str, key: str) -> str:
    """The path of a table's value."""
    name = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{name}" if path else name
