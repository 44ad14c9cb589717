"""Events through structlog."""

from __future__ import annotations

import logging

import structlog

from .._report import CompactionReport


def log(logger: logging.Logger | None, level: int, report: CompactionReport) -> None:
    """Log a report to a logger of the standard library, or (None) where the program's structlog leads.

    Left to itself, an unconfigured structlog would print to standard output, which is the program's.
    """
    if logger is None:
        bound = structlog.get_logger("chat_compaction")
    else:
        bound = structlog.wrap_logger(logger, wrapper_class=structlog.stdlib.BoundLogger)
    getattr(bound, logging.getLevelName(level).lower())(report.event, **report.metrics())
