"""The strategies, one module each."""

from .reducer import ReducerStrategy
from .token_budget import TokenBudgetStrategy
from .truncation import TruncationStrategy

__all__ = ["ReducerStrategy", "TokenBudgetStrategy", "TruncationStrategy"]
