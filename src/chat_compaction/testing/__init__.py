"""For users' own tests: counters that make arithmetic easy or record their work, and random histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

from ..counters import FunctionCounter
from ._blocks import anthropic, bedrock_converse, gemini, pi_session
from ._drawing import Habits, hostile_lines, named, valid_lines
from ._lines import Line
from ._openai import mistral, openai_chat, openai_responses
from ._picture import picture
from ._records import gemini_cli, langchain, sharegpt

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["RecordingCounter", "characters_counter", "histories", "picture"]


def characters_counter() -> FunctionCounter:
    """One token a character of text; nothing for calls, names, media or framing.

    >>> characters_counter().count_many(["four", ""])
    [4, 0]
    """
    return FunctionCounter(len, name="characters", framing=False)


@attrs.define
class RecordingCounter:
    """One token a character, and a record of every text that was counted, for tests of what a strategy costs.

    With ``framing=True``, calls, names and the overhead of each message count too.

    >>> counter = RecordingCounter()
    >>> counter.count_many(["four"]), counter.counted
    ([4], ['four'])
    """

    framing: bool = False
    counted: list[str] = attrs.field(init=False, factory=list)

    @property
    def name(self) -> str:
        """``"characters"``."""
        return "characters"

    @property
    def exact(self) -> bool:
        """False: no tokenizer is asked."""
        return False

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The length of each text."""
        self.counted.extend(texts)
        return [len(text) for text in texts]


_HABITS: dict[str, tuple[Callable[[Line], Iterator[dict[str, Any]]], Habits]] = {
    "openai_chat": (openai_chat, Habits(system="anywhere", unnamed=True)),
    "openai_responses": (openai_responses, Habits(system="anywhere", late=True, server=True)),
    "anthropic": (anthropic, Habits(system="behind_user")),
    "gemini": (gemini, Habits(turn="calls_first", unnamed=True)),
    "bedrock_converse": (bedrock_converse, Habits(turn="strict", system="behind_user")),
    "mistral": (mistral, Habits(turn="answered", system="head_or_behind_user")),
    "langchain": (langchain, Habits(system="anywhere")),
    "sharegpt": (sharegpt, Habits(turn="strict", system="head_or_behind_user", most_calls=1, unnamed=True)),
    "gemini_cli": (gemini_cli, Habits()),
    "pi_session": (pi_session, Habits()),
}


def histories(format: str = "openai_chat", hostile: bool = False) -> SearchStrategy[list[dict[str, Any]]]:
    """A Hypothesis strategy of histories, as dicts of a format of this package.

    They are such as the provider takes: turns of text, media, reasoning and parallel calls with results in any order
    (in one message or several, with ids or without, as the format has it), system messages where they may stand,
    tools that the provider runs, perhaps a call at the end that still waits; in OpenAI's Responses also lists that
    begin in the middle, since the server knows the rest. With ``hostile=True`` messages that break the rules stand
    among them: results without calls or far from them, ids used again, calls without results, system messages
    anywhere, null and empty content. Every one of them can be read.

    Hypothesis is imported here, and is no dependency of this package.

    Raises:
        ValueError: for another format.
    """
    if format not in _HABITS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _HABITS))}, got {format!r}")
    return _histories(format, hostile)


@cache
def _histories(format: str, hostile: bool) -> SearchStrategy[list[dict[str, Any]]]:
    """Made once: a strategy is a value, and making one costs more than drawing from it."""
    from hypothesis import strategies as st

    write, habits = _HABITS[format]
    lines = hostile_lines(habits) if hostile else valid_lines(habits)
    unnamed = st.booleans() if habits.unnamed else st.just(False)
    return st.builds(
        lambda drawn, bare: [message for line in named(drawn, bare) for message in write(line)], lines, unnamed
    )
