"""Events through structlog, on top of a logger of the standard library."""

from __future__ import annotations

import logging

import structlog

from .._report import CompactionReport


def log(logger: logging.Logger, level: int, report: CompactionReport) -> None:
    """Log a report with the processors that the program configured, on the library's own logger.

    Left to itself, an unconfigured structlog would print to standard output, which is the program's.
    """
    bound = structlog.wrap_logger(logger, wrapper_class=structlog.stdlib.BoundLogger)
    bound.log(level, report.event, **report.metrics())
