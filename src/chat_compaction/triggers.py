"""The public home of metrics, predicates and their combinators.

>>> from chat_compaction.triggers import tokens, turns
>>> (tokens > 8_000) | (turns > 40)
(tokens > 8000) | (turns > 40)
"""

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
from ._predicate_parser import parse_predicate
from ._predicates import (
    AllOf,
    AnyOf,
    Comparison,
    Explanation,
    FunctionPredicate,
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

__all__ = [
    "AllOf",
    "AnyOf",
    "Comparison",
    "Explanation",
    "FunctionPredicate",
    "Metric",
    "Predicate",
    "all_of",
    "always",
    "any_of",
    "fraction_of_window",
    "groups",
    "groups_exceed",
    "has_tool_calls",
    "messages",
    "messages_exceed",
    "never",
    "parse_predicate",
    "predicate",
    "tokens",
    "tokens_below",
    "tokens_exceed",
    "tool_groups",
    "tool_groups_exceed",
    "turns",
    "turns_exceed",
]
