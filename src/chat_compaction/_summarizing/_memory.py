"""What a strategy remembers of its summarizer: calls under way, the last answers, failures in a row."""

from __future__ import annotations

from threading import Lock

from ._sharing import SharedCalls

_MOST_DOUBLINGS = 5


class Memory:
    """Shared by everybody who uses one strategy. A copy, or one in another process, begins with nothing."""

    def __init__(self) -> None:
        self.calls = SharedCalls()
        self._lock = Lock()
        self._failures = 0
        self._until = 0.0

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()

    def failures_and_wait(self, now: float) -> tuple[int, float]:
        """The failures in a row, and for how many seconds more nobody should ask."""
        with self._lock:
            return self._failures, max(0.0, self._until - now)

    def failed(self, now: float, *, max_failures: int, backoff: float) -> None:
        """One more failure: from the ``max_failures``-th on, each doubles the pause, up to 32 times ``backoff``."""
        with self._lock:
            self._failures += 1
            beyond = self._failures - max_failures
            if beyond >= 0:
                self._until = now + backoff * 2 ** min(beyond, _MOST_DOUBLINGS)

    def succeeded(self) -> None:
        """A good summary: all failures are forgotten."""
        with self._lock:
            self._failures, self._until = 0, 0.0
