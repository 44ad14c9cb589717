"""How much a store may hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._errors import StoreFullError


class Quota:
    """What is used of a store's ``max_bytes``: measured at first and where it seems to be full, counted between."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used: int | None = None
        self._writing = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Quota, (self.limit,)  # In another process it measures anew.

    @contextmanager
    def room(self, handle: str, size: int, measure: Callable[[], int]) -> Iterator[None]:
        """Room for a text while it is written, kept if that succeeds; :class:`StoreFullError` where there is none."""
        with self._lock:
            self._used = self._with_room(handle, size, measure)
            self._writing += 1
        try:
            yield
        except BaseException:
            self._ended(size)
            raise
        self._ended(0)

    def _with_room(self, handle: str, size: int, measure: Callable[[], int]) -> int:
        used = self._used
        # Somebody may have made room; but what is being written would be measured by halves, or not at all.
        if used is None or (used + size > self.limit and not self._writing):
            used = measure()
        if used + size > self.limit:
            raise StoreFullError(
                f"{handle} cannot be written: its {size:,} bytes and the {used:,} in the store "
                f"exceed max_bytes ({self.limit:,})"
            )
        return used + size

    def _ended(self, unused: int) -> None:
        with self._lock:
            self._writing -= 1
            self._used = (self._used or 0) - unused
