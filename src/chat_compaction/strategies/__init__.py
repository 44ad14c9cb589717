"""The strategies, one module each; a module is loaded when its strategy is first used."""

from typing import TYPE_CHECKING

from .._loading import lazy as _lazy

if TYPE_CHECKING:
    from .clip import ClipStrategy
    from .context_window import ContextWindowStrategy
    from .deduplicate import DeduplicateStrategy
    from .drop_media import DropMediaStrategy
    from .drop_reasoning import DropReasoningStrategy
    from .function import FunctionStrategy, strategy
    from .offload import OffloadStrategy
    from .pipeline import FirstOf, PipelineStrategy
    from .provider_compaction import ProviderCompactionStrategy
    from .reducer import ReducerStrategy
    from .sliding_window import SlidingWindowStrategy
    from .summarization import SummarizationStrategy
    from .token_budget import TokenBudgetStrategy
    from .tool_result import ToolResultStrategy, UsedTool, list_tool_uses
    from .truncation import TruncationStrategy

__all__ = [
    "ClipStrategy",
    "ContextWindowStrategy",
    "DeduplicateStrategy",
    "DropMediaStrategy",
    "DropReasoningStrategy",
    "FirstOf",
    "FunctionStrategy",
    "OffloadStrategy",
    "PipelineStrategy",
    "ProviderCompactionStrategy",
    "ReducerStrategy",
    "SlidingWindowStrategy",
    "SummarizationStrategy",
    "TokenBudgetStrategy",
    "ToolResultStrategy",
    "TruncationStrategy",
    "UsedTool",
    "list_tool_uses",
    "strategy",
]

# The imports above once more, for the interpreter.
_HOMES = {
    "clip": ("ClipStrategy",),
    "context_window": ("ContextWindowStrategy",),
    "deduplicate": ("DeduplicateStrategy",),
    "drop_media": ("DropMediaStrategy",),
    "drop_reasoning": ("DropReasoningStrategy",),
    "function": ("FunctionStrategy", "strategy"),
    "offload": ("OffloadStrategy",),
    "pipeline": ("FirstOf", "PipelineStrategy"),
    "provider_compaction": ("ProviderCompactionStrategy",),
    "reducer": ("ReducerStrategy",),
    "sliding_window": ("SlidingWindowStrategy",),
    "summarization": ("SummarizationStrategy",),
    "token_budget": ("TokenBudgetStrategy",),
    "tool_result": ("ToolResultStrategy", "UsedTool", "list_tool_uses"),
    "truncation": ("TruncationStrategy",),
}

if not TYPE_CHECKING:
    __getattr__ = _lazy(__name__, _HOMES)

    def __dir__():
        return sorted({*globals(), *__all__})
