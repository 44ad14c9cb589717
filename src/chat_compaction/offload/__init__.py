"""Texts that left a conversation for storage, and the way back.

:class:`OffloadStore` keeps texts under the hash of what they say, :func:`recall_tool` makes the tool with which an
agent reads them back, and :class:`~chat_compaction.OffloadStrategy` is the strategy that puts them there.
"""

from typing import TYPE_CHECKING

from .._loading import lazy as _lazy

if TYPE_CHECKING:
    from ._errors import HandleError, OffloadError, StoreFullError
    from ._excerpt import Hit
    from ._handles import handle_of
    from ._store import OffloadStore, TextStore
    from ._tool import RecallTool, recall_tool

__all__ = [
    "HandleError",
    "Hit",
    "OffloadError",
    "OffloadStore",
    "RecallTool",
    "StoreFullError",
    "TextStore",
    "handle_of",
    "recall_tool",
]

if not TYPE_CHECKING:
    __getattr__ = _lazy(
        __name__,
        {
            "_errors": ("HandleError", "OffloadError", "StoreFullError"),
            "_excerpt": ("Hit",),
            "_handles": ("handle_of",),
            "_store": ("OffloadStore", "TextStore"),
            "_tool": ("RecallTool", "recall_tool"),
        },
    )

    def __dir__():
        return sorted({*globals(), *__all__})
