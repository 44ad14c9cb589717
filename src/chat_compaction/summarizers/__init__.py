"""Summarisers: what a :class:`~chat_compaction.SummarizationStrategy` asks for the text of a summary.

A summariser is any callable, or async callable, from a :class:`SummaryRequest` to text; a function of yours will do.
``OpenAISummarizer`` and ``AnthropicSummarizer`` ask through the client of the SDK that you have, ``EndpointSummarizer``
asks any endpoint that speaks Chat Completions, and ``ExtractiveSummarizer`` needs no model. None of them offers a tool
(rule S2), and what is not surely a whole summary is a :class:`SummaryError`, after which the strategy restores
everything (rule S3).
"""

from __future__ import annotations

from .._summarizing import Summarizer, SummaryEntry, SummaryRequest
from ._answers import SummaryUsage
from ._clients import AnthropicSummarizer, OpenAISummarizer
from ._endpoint import EndpointSummarizer
from ._errors import SummaryError
from ._extractive import ExtractiveSummarizer

__all__ = [
    "AnthropicSummarizer",
    "EndpointSummarizer",
    "ExtractiveSummarizer",
    "OpenAISummarizer",
    "Summarizer",
    "SummaryEntry",
    "SummaryError",
    "SummaryRequest",
    "SummaryUsage",
]
