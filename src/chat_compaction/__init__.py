"""Compaction strategies for the message history of LLM chats and agents.

>>> import chat_compaction as cc
>>> reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(max_tokens=8_000, target_tokens=4_000))
>>> context = reducer([{"role": "user", "content": "Hello."}])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._loading import lazy as _lazy

if TYPE_CHECKING:
    from . import config, counters, formats, instrumentation, offload, summarizers, testing, triggers
    from ._batch import SessionResult, compact_sessions
    from ._conversation import IndexUpdate
    from ._departures import BackgroundDelivery, Departure
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
    from ._report import Blocker, CompactionReport, Exclusion, Failure, Replacement
    from ._strategy import CompactionStrategy
    from ._tool_uses import ToolUse
    from .config import ConfigError, dump_config, from_config, load_config, to_config
    from .counters import (
        Counter,
        CounterError,
        EstimateCounter,
        FunctionCounter,
        MediaCosts,
        TokenizerCounter,
    )
    from .strategies.clip import ClipStrategy
    from .strategies.context_window import ContextWindowStrategy
    from .strategies.deduplicate import DeduplicateStrategy
    from .strategies.drop_media import DropMediaStrategy
    from .strategies.drop_reasoning import DropReasoningStrategy
    from .strategies.function import FunctionStrategy, strategy
    from .strategies.offload import OffloadStrategy
    from .strategies.pipeline import FirstOf, PipelineStrategy
    from .strategies.provider_compaction import ProviderCompactionStrategy
    from .strategies.reducer import ReducerStrategy
    from .strategies.sliding_window import SlidingWindowStrategy
    from .strategies.summarization import SummarizationStrategy
    from .strategies.token_budget import TokenBudgetStrategy
    from .strategies.tool_result import ToolResultStrategy, UsedTool, list_tool_uses
    from .strategies.truncation import TruncationStrategy

    __version__: str

__all__ = [
    "BackgroundDelivery",
    "Blocker",
    "ChatReducer",
    "ClipStrategy",
    "CompactionError",
    "CompactionReport",
    "CompactionStrategy",
    "ConfigError",
    "ContextOverflowError",
    "ContextWindowStrategy",
    "Counter",
    "CounterError",
    "DeduplicateStrategy",
    "Departure",
    "DropMediaStrategy",
    "DropReasoningStrategy",
    "Effect",
    "EstimateCounter",
    "Exclusion",
    "Explanation",
    "Failure",
    "FirstOf",
    "FormatError",
    "FunctionCounter",
    "FunctionStrategy",
    "GroupKind",
    "IndexSnapshot",
    "IndexUpdate",
    "InvalidHistoryError",
    "MediaCosts",
    "MessageError",
    "MessageGroup",
    "MessageIndex",
    "Metric",
    "OffloadStrategy",
    "PipelineStrategy",
    "Predicate",
    "PredicateSyntaxError",
    "Problem",
    "ProtectedGroupError",
    "ProviderCompactionStrategy",
    "ReducerStrategy",
    "Repair",
    "Repaired",
    "Replacement",
    "SessionError",
    "SessionResult",
    "SlidingWindowStrategy",
    "StrategyError",
    "SummarizationStrategy",
    "TokenBudgetStrategy",
    "TokenizerCounter",
    "ToolResultStrategy",
    "ToolUse",
    "TruncationStrategy",
    "UsedTool",
    "all_of",
    "always",
    "any_of",
    "as_chat_reducer",
    "compact_sessions",
    "config",
    "counters",
    "dump_config",
    "formats",
    "fraction_of_window",
    "from_config",
    "groups",
    "groups_exceed",
    "has_tool_calls",
    "instrumentation",
    "list_tool_uses",
    "load_config",
    "messages",
    "messages_exceed",
    "never",
    "offload",
    "parse_predicate",
    "predicate",
    "repair",
    "strategy",
    "summarizers",
    "testing",
    "to_config",
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
    "_departures": ("BackgroundDelivery", "Departure"),
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
    "_report": ("Blocker", "CompactionReport", "Exclusion", "Failure", "Replacement"),
    "_strategy": ("CompactionStrategy",),
    "_tool_uses": ("ToolUse",),
    "config": ("ConfigError", "dump_config", "from_config", "load_config", "to_config"),
    "counters": ("Counter", "CounterError", "EstimateCounter", "FunctionCounter", "MediaCosts", "TokenizerCounter"),
    "strategies.clip": ("ClipStrategy",),
    "strategies.context_window": ("ContextWindowStrategy",),
    "strategies.deduplicate": ("DeduplicateStrategy",),
    "strategies.drop_media": ("DropMediaStrategy",),
    "strategies.drop_reasoning": ("DropReasoningStrategy",),
    "strategies.function": ("FunctionStrategy", "strategy"),
    "strategies.offload": ("OffloadStrategy",),
    "strategies.pipeline": ("FirstOf", "PipelineStrategy"),
    "strategies.provider_compaction": ("ProviderCompactionStrategy",),
    "strategies.reducer": ("ReducerStrategy",),
    "strategies.sliding_window": ("SlidingWindowStrategy",),
    "strategies.summarization": ("SummarizationStrategy",),
    "strategies.token_budget": ("TokenBudgetStrategy",),
    "strategies.tool_result": ("ToolResultStrategy", "UsedTool", "list_tool_uses"),
    "strategies.truncation": ("TruncationStrategy",),
}
_MODULES = ("config", "counters", "formats", "instrumentation", "offload", "summarizers", "testing", "triggers")


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
