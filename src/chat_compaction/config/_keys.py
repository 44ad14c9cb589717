"""Keys that have no meaning where they stand, and what may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ._arguments import arguments_of
from ._registry import STRATEGIES, hint

_SETTINGS = {
    "bound_reasoning": "--bound-reasoning",
    "counter": "--counter",
    "format": "--format",
    "hooks": None,
    "media_costs": None,
    "on_excluded": None,
    "on_invalid": "--on-invalid",
    "on_overflow": "--on-overflow",
    "pending_turns": None,
    "pinned": "--pin",
    "reserved": "--reserved",
    "summary_key": None,
    "validate": None,
}
"""What is said to a reducer and not to its strategy, and the option of the command for it."""


def unknown(name: object, known: Iterable[str], data: Mapping[Any, Any]) -> str:
    """What to say of a key that nothing in this table takes."""
    return f"unknown key{_of_reducer(name, data) or _of_stage(name, data) or hint(str(name), known)}"


def _of_reducer(name: object, data: Mapping[Any, Any]) -> str:
    if STRATEGIES.key not in data or name not in _SETTINGS:
        return ""
    option = _SETTINGS[str(name)]
    command = f", or the option {option}" if option else ""
    return f"; not of the strategy, but an argument of as_chat_reducer{command}"


def _of_stage(name: object, data: Mapping[Any, Any]) -> str:
    """Where it belongs, if that is one of the stages in the table."""
    stages = data.get("stages")
    stages = stages if isinstance(stages, list) else []
    takes = [place for place, stage in enumerate(stages) if _takes(stage, name)]
    if not takes:
        return ""
    place = next((place for place in takes if name not in stages[place]), takes[0])
    how = f", in TOML as [stages.{name}] right below it" if isinstance(data[name], Mapping) else ""
    return f" here; it belongs to stages[{place}]{how}"


def _takes(stage: Any, name: object) -> bool:
    strategy = stage.get(STRATEGIES.key) if isinstance(stage, Mapping) else None
    if isinstance(strategy, str):
        with suppress(NameError, TypeError, ValueError):  # What is wrong with the stage is said elsewhere.
            found = STRATEGIES.load(strategy)
            return isinstance(found, type) and name in arguments_of(found)
    return False


def sections(data: Mapping[Any, Any]) -> list[str]:
    """The tables in that of a strategy without a name that no strategy of ours takes."""
    known = {name for strategy in STRATEGIES.ours for name in arguments_of(STRATEGIES.load(strategy))}
    return [name for name, value in data.items() if isinstance(value, Mapping) and name not in known]
