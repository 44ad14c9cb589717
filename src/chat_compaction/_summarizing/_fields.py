"""Checks of the arguments of :class:`~chat_compaction.SummarizationStrategy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs


def as_sections(value: Any) -> tuple[str, ...]:
    """Texts of one line each."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"sections must be a list of texts, got {value!r}")
    sections = tuple(value)
    for section in sections:
        if not isinstance(section, str) or not section.strip() or "\n" in section:
            raise ValueError(f"sections must be texts of one line each, got {section!r} in it")
    return sections


def seconds(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """A number of seconds, not below zero and not endless."""
    expected = f"{attribute.name} must be a number of seconds, 0 or more"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{expected}, got {value!r}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{expected}, got {value!r}")


def time_limit(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """A number of seconds above zero, or None for no limit."""
    if value is not None:
        seconds(_, attribute, value)
        if value == 0:
            raise ValueError(f"{attribute.name} must be more than 0 seconds, or None for no limit, got {value!r}")


def some_words(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """A text that says something."""
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a text, got {value!r}")
    if not value.strip():
        raise ValueError(f"{attribute.name} must be a text that says something, got {value!r}")
