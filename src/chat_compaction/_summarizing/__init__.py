"""The pieces of summarisation: what is asked, how a conversation becomes text, and what is taken for an answer."""

from ._request import Purpose, Summarizer, SummaryEntry, SummaryRequest
from ._request_text import SECTIONS, TASK

__all__ = ["SECTIONS", "TASK", "Purpose", "Summarizer", "SummaryEntry", "SummaryRequest"]
