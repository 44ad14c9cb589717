"""Counters: text in, tokens out.

``Counter`` is the protocol. ``TokenizerCounter`` counts by a vocabulary of the tokenizers package, ``FunctionCounter``
by any function from a text to a number, ``EstimateCounter`` guesses from the shape of the text and needs nothing.
``resolve_counter`` makes a counter of whatever a caller passes as ``counter``. ``CountCache`` remembers counts;
``MediaCosts`` says what counts for images and the like, which no counter sees, in flat figures; ``OpenAIMediaCosts``,
``AnthropicMediaCosts`` and ``GeminiMediaCosts`` go by their size, as the provider does.
"""

from __future__ import annotations

from ._adapters import FunctionCounter, TokenizerCounter
from ._bounds import byte_bounds
from ._cache import CountCache, shared_cache
from ._estimate import EstimateCounter
from ._media import AnthropicMediaCosts, GeminiMediaCosts, MediaCosts, OpenAIMediaCosts
from ._protocol import Counter, CounterError, bounds_of, framing_of
from ._resolve import resolve_counter

__all__ = [
    "AnthropicMediaCosts",
    "CountCache",
    "Counter",
    "CounterError",
    "EstimateCounter",
    "FunctionCounter",
    "GeminiMediaCosts",
    "MediaCosts",
    "OpenAIMediaCosts",
    "TokenizerCounter",
    "bounds_of",
    "byte_bounds",
    "framing_of",
    "resolve_counter",
    "shared_cache",
]
