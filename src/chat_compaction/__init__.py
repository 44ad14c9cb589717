"""Compaction strategies for the message history of LLM chats and agents.

>>> import chat_compaction as cc
>>> reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(max_tokens=8_000, target_tokens=4_000))
>>> context = reducer([{"role": "user", "content": "Hello."}])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._loading import lazy as _lazy

if TYPE_CHECKING:
    from . import counters, formats, instrumentation, testing, triggers
    from ._batch import SessionResult, compact_sessions
    from ._conversation import IndexUpdate
    from ._effects import Effect
    from ._errors import (
        CompactionError,
        ContextOverflowError,
        FormatError,
        InvalidHistoryError,
        MessageError,
        PredicateSyntaxError,
        ProtectedGroupError,
        SessionError,
        StrategyError,
    )
    from ._factories import (
        fraction_of_window,
        groups_exceed,
        has_tool_calls,
        messages_exceed,
        tokens_below,
        tokens_exceed,
        tool_groups_exceed,
        turns_exceed,
    )
    from ._groups import GroupKind, MessageGroup
    from ._index import IndexSnapshot, MessageIndex
    from ._predicate_parser import parse_predicate
    from ._predicates import (
        Explanation,
        Metric,
        Predicate,
        all_of,
        always,
        any_of,
        groups,
        messages,
        never,
        predicate,
        tokens,
        tool_groups,
        turns,
    )
    from ._problems import Problem, Repair
    from ._reducer import ChatReducer, as_chat_reducer
    from ._repair import Repaired, repair
    from ._report import Blocker, CompactionReport, Exclusion
    from ._strategy import CompactionStrategy
    from .counters import (
        Counter,
        CounterError,
        EstimateCounter,
        FunctionCounter,
        MediaCosts,
        TokenizerCounter,
    )
    from .strategies import ReducerStrategy, TokenBudgetStrategy, TruncationStrategy

    __version__: str

__all__ = [
    "Blocker",
    "ChatReducer",
    "CompactionError",
    "CompactionReport",
    "CompactionStrategy",
    "ContextOverflowError",
    "Counter",
    "CounterError",
    "Effect",
    "EstimateCounter",
    "Exclusion",
    "Explanation",
    "FormatError",
    "FunctionCounter",
    "GroupKind",
    "IndexSnapshot",
    "IndexUpdate",
    "InvalidHistoryError",
    "MediaCosts",
    "MessageError",
    "MessageGroup",
    "MessageIndex",
    "Metric",
    "Predicate",
    "PredicateSyntaxError",
    "Problem",
    "ProtectedGroupError",
    "ReducerStrategy",
    "Repair",
    "Repaired",
    "SessionError",
    "SessionResult",
    "StrategyError",
    "TokenBudgetStrategy",
    "TokenizerCounter",
    "TruncationStrategy",
    "all_of",
    "always",
    "any_of",
    "as_chat_reducer",
    "compact_sessions",
    "counters",
    "formats",
    "fraction_of_window",
    "groups",
    "groups_exceed",
    "has_tool_calls",
    "instrumentation",
    "messages",
    "messages_exceed",
    "never",
    "parse_predicate",
    "predicate",
    "repair",
    "testing",
    "tokens",
    "tokens_below",
    "tokens_exceed",
    "tool_groups",
    "tool_groups_exceed",
    "triggers",
    "turns",
    "turns_exceed",
]

# The imports above once more, for the interpreter: it loads a module when one of its names is first used.
_HOMES = {
    "_batch": ("SessionResult", "compact_sessions"),
    "_conversation": ("IndexUpdate",),
    "_effects": ("Effect",),
    "_errors": (
        "CompactionError",
        "ContextOverflowError",
        "FormatError",
        "InvalidHistoryError",
        "MessageError",
        "PredicateSyntaxError",
        "ProtectedGroupError",
        "SessionError",
        "StrategyError",
    ),
    "_factories": (
        "fraction_of_window",
        "groups_exceed",
        "has_tool_calls",
        "messages_exceed",
        "tokens_below",
        "tokens_exceed",
        "tool_groups_exceed",
        "turns_exceed",
    ),
    "_groups": ("GroupKind", "MessageGroup"),
    "_index": ("IndexSnapshot", "MessageIndex"),
    "_predicate_parser": ("parse_predicate",),
    "_predicates": (
        "Explanation",
        "Metric",
        "Predicate",
        "all_of",
        "always",
        "any_of",
        "groups",
        "messages",
        "never",
        "predicate",
        "tokens",
        "tool_groups",
        "turns",
    ),
    "_problems": ("Problem", "Repair"),
    "_reducer": ("ChatReducer", "as_chat_reducer"),
    "_repair": ("Repaired", "repair"),
    "_report": ("Blocker", "CompactionReport", "Exclusion"),
    "_strategy": ("CompactionStrategy",),
    "counters": ("Counter", "CounterError", "EstimateCounter", "FunctionCounter", "MediaCosts", "TokenizerCounter"),
    "strategies": ("ReducerStrategy", "TokenBudgetStrategy", "TruncationStrategy"),
}
_MODULES = ("counters", "formats", "instrumentation", "testing", "triggers")


if not TYPE_CHECKING:
    _load = _lazy(__name__, _HOMES)

    def __getattr__(name):
        if name in _MODULES:
            return _import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("chat-compaction")
        return _load(name)

    def __dir__():
        return sorted({*globals(), *__all__, "__version__"})
