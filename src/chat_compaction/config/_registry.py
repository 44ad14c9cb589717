"""The names of a configuration: ours, and those that installed packages add by entry point."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs

_STRATEGIES = {
    "clip": "clip:ClipStrategy",
    "context_window": "context_window:ContextWindowStrategy",
    "deduplicate": "deduplicate:DeduplicateStrategy",
    "drop_media": "drop_media:DropMediaStrategy",
    "drop_reasoning": "drop_reasoning:DropReasoningStrategy",
    "first_of": "pipeline:FirstOf",
    "function": "function:FunctionStrategy",
    "offload": "offload:OffloadStrategy",
    "pipeline": "pipeline:PipelineStrategy",
    "provider_compaction": "provider_compaction:ProviderCompactionStrategy",
    "reducer": "reducer:ReducerStrategy",
    "sliding_window": "sliding_window:SlidingWindowStrategy",
    "summarization": "summarization:SummarizationStrategy",
    "token_budget": "token_budget:TokenBudgetStrategy",
    "tool_result": "tool_result:ToolResultStrategy",
    "truncation": "truncation:TruncationStrategy",
}

_KINDS = {
    "anthropic": "summarizers:AnthropicSummarizer",
    "endpoint": "summarizers:EndpointSummarizer",
    "estimate": "counters:EstimateCounter",
    "extractive": "summarizers:ExtractiveSummarizer",
    "openai": "summarizers:OpenAISummarizer",
}


@attrs.frozen
class Registry:
    """Names of one group; what a name stands for is imported when the name is used."""

    key: str
    """The key of a table that holds the name."""
    noun: str
    group: str
    """The group of entry points by which packages add names. Ours come first: none can be taken over."""
    ours: dict[str, str]
    """The module and the name in it."""

    def names(self) -> list[str]:
        """All names that there are."""
        return sorted({*self.ours, *(point.name for point in self._points())})

    def load(self, name: str) -> Any:
        """What a name stands for; raises ValueError where there is none, or it cannot be loaded."""
        if name in self.ours:
            return _at(self.ours[name])
        points = [point for point in self._points() if point.name == name]
        if not points:
            # In Python it is known by its class.
            classes = {home.rpartition(":")[2]: own for own, home in self.ours.items()}
            meant = classes.get(name.rpartition(".")[2], name)
            raise ValueError(f"there is no {self.noun} {name!r}{hint(meant, self.names())}")
        if len({point.value for point in points}) > 1:
            raise ValueError(f"more than one package has the {self.noun} {name!r}: {_and(map(_origin, points))}")
        try:
            return points[0].load()
        except Exception as error:  # whatever the package does when it is imported
            what = f"the {self.noun} {name!r} of {_origin(points[0])} cannot be loaded"
            raise ValueError(f"{what}: {type(error).__name__}: {error}") from error

    def origin(self, name: str) -> str:
        """Whose a name is, for an error."""
        return next((_origin(point) for point in self._points() if point.name == name), "chat-compaction")

    def name_of(self, named: Any) -> str | None:
        """The name that stands for a class or function, if there is one."""
        return self._name_among(self.ours.items(), named) or self._name_among(
            ((point.name, point.value) for point in self._points()), named
        )

    def _name_among(self, homes: Iterable[tuple[str, str]], named: Any) -> str | None:
        # Only what is called the same is imported to be looked at.
        own = getattr(named, "__qualname__", None)
        called = (name for name, home in homes if home.partition(":")[2] == own)
        return next((name for name in called if self._is(name, named)), None)

    def _is(self, name: str, named: Any) -> bool:
        try:
            found = self.load(name)
        except ValueError:
            return False
        return found is named or getattr(found, "function", None) is named

    def _points(self) -> Iterable[EntryPoint]:
        return entry_points(group=self.group)


def _at(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def _origin(point: EntryPoint) -> str:
    name = point.dist.name if point.dist is not None else "a package"
    return f"{name} ({point.value})"


def _and(words: Iterable[str]) -> str:
    return " and ".join(sorted(set(words)))


def hint(word: str, words: Iterable[str]) -> str:
    """What may have been meant, or all that there is."""
    known = sorted(words)
    close = get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; expected one of {', '.join(map(repr, known))}" if known else ""


STRATEGIES = Registry(
    "strategy",
    "strategy",
    "chat_compaction.strategies",
    {name: f"chat_compaction.strategies.{home}" for name, home in _STRATEGIES.items()},
)
SUMMARIZERS = Registry(
    "kind",
    "kind",
    "chat_compaction.summarizers",
    {name: f"chat_compaction.{home}" for name, home in _KINDS.items()},
)
