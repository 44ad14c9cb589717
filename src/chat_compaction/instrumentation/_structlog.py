"""Events through structlog."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

from .._report import CompactionReport

# Not by the names of the levels, which a program may change.
_METHODS = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}
_logfmt = structlog.processors.LogfmtRenderer(bool_as_flag=False)


def log(logger: logging.Logger | None, level: int, report: CompactionReport) -> None:
    """Log a report to a logger of the standard library, or (None) where the program's structlog leads.

    An unconfigured structlog would print to standard output, which is the program's, in colours and with
    a time and a level beside those of the standard library: there the event is one plain line.
    """
    if logger is None:
        bound = structlog.get_logger("chat_compaction")
    else:
        bound = structlog.wrap_logger(logger, processors=[_line], wrapper_class=structlog.stdlib.BoundLogger)
    getattr(bound, _METHODS[level])(report.event, **report.metrics())


def _line(logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
    """One event as a line: its name, then ``key=value`` pairs."""
    return f"{event.pop('event')} {_logfmt(logger, name, event)}"
