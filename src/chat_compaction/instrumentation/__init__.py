"""Instrumentation: every compaction, fired or declined, is handed to hooks as its report.

A hook is any callable that takes a :class:`~chat_compaction.CompactionReport`. There is no
registration: hooks are an argument. Without one, :func:`log_report` is the only hook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from .._report import CompactionReport
from .._validators import refuse_async

__all__ = ["Hook", "check_hooks", "emit", "log_report"]

Hook = Callable[[CompactionReport], object]


def log_report(report: CompactionReport) -> None:
    """The default hook: one structlog event for each compaction.

    ``compaction.completed`` at INFO, ``compaction.skipped`` at DEBUG, and either at WARNING where the
    history does not fit. A program that configured structlog gets the events in its own pipeline;
    in any other they go to the logger ``chat_compaction`` of the standard library, if that has a
    handler. Nothing is configured here, so an unconfigured program stays silent, and structlog is
    imported at the first event that somebody listens to.
    """
    if "logging" not in sys.modules:
        return  # Nobody can listen.
    import logging

    level = logging.WARNING if not report.fits else logging.DEBUG if report.skipped else logging.INFO
    structlog = sys.modules.get("structlog")
    configured = structlog is not None and structlog.is_configured()
    logger = logging.getLogger("chat_compaction")
    # A discarded structlog event costs far more than the question; and without a handler, the
    # standard library would print warnings to standard error.
    if configured or (logger.isEnabledFor(level) and logger.hasHandlers()):
        from ._structlog import log

        log(None if configured else logger, level, report)


def check_hooks(hooks: object) -> None:
    """Refuse what is no list of callables; a single one is easily passed by mistake."""
    plain = isinstance(hooks, Sequence) and not isinstance(hooks, str)
    if hooks is not None and not (plain and all(map(callable, hooks))):  # type: ignore[call-overload]
        raise TypeError(f"hooks must be None or a list of callables that take a report, got {hooks!r}")
    for hook in hooks or ():  # type: ignore[attr-defined]
        refuse_async("each of hooks", hook)


def emit(report: CompactionReport, hooks: Sequence[Hook] | None) -> None:
    """Hand a report to the hooks; one that fails is logged, and never fails a compaction."""
    for hook in (log_report,) if hooks is None else hooks:
        try:
            hook(report)
        except Exception:
            log_failure("hook", hook)


def log_failure(what: str, function: object) -> None:
    """Log the exception that a function of the caller's raised."""
    import logging

    logging.getLogger("chat_compaction").exception("the %s %r failed", what, function)
