"""Logs of one run on standard error. Only the command line configures logging; the library never does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


def log_to_stderr() -> Callable[[], None]:
    """Show the events of the package, as ``event key=value ...``; gives the function that undoes it."""
    import structlog

    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.KeyValueRenderer(key_order=["level", "event"], drop_missing=True),
        ],
        # Through the standard library: by default structlog prints to standard output.
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("chat_compaction")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)

    def undo() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)
        structlog.reset_defaults()

    return undo
