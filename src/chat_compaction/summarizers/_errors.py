"""Why a summariser has no summary to give."""

from __future__ import annotations

from typing import Literal

from .._errors import CompactionError

Reason = Literal[
    "truncated",
    "refused",
    "filtered",
    "tool_call",
    "empty",
    "malformed",
    "timeout",
    "rate_limited",
    "unavailable",
    "rejected",
    "no_key",
]


class SummaryError(CompactionError):
    """A summariser was asked and has no summary that could be used; the strategy then restores everything (rule S3).

    ``reason`` says why in a word: the answer was ``"truncated"``, ``"refused"``, ``"filtered"``, a ``"tool_call"``,
    ``"empty"`` or ``"malformed"``; or there was none: ``"timeout"``, ``"rate_limited"``, ``"unavailable"`` (no
    connection, or the server failed), ``"rejected"`` (the server will not do what was asked), ``"no_key"``. The text
    says it in a sentence, and never has words of the conversation, of the answer, or a key in it.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message
