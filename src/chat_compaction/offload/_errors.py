"""What can go wrong with stored texts.

::

    CompactionError
    └── OffloadError         a text cannot be written or read; names its handle
        ├── HandleError      no handle: it is not even looked for
        └── StoreFullError   ``max_bytes`` would be exceeded
"""

from __future__ import annotations

from .._errors import CompactionError


class OffloadError(CompactionError):
    """A text cannot be written or read back.

    The message names the handle and the kind of error, never the text, nor the address of the store or a key of it:
    the error of the file system is its ``__cause__``.
    """


class HandleError(OffloadError, ValueError):
    """What was given is no handle."""


class StoreFullError(OffloadError):
    """The store would grow beyond its ``max_bytes``."""


def failed(handle: str, verb: str, error: Exception) -> OffloadError:
    """The error to raise for one of the file system's, whose own text may hold addresses and keys."""
    reason = error.strerror if isinstance(error, OSError) and isinstance(error.strerror, str) else ""
    return OffloadError(f"{handle} cannot be {verb}: {type(error).__name__}{f', {reason}' if reason else ''}")


def damaged(handle: str) -> OffloadError:
    """The error to raise for a text that is not the one of its handle."""
    return OffloadError(f"{handle} is damaged: what is in the store is not what was put there")
