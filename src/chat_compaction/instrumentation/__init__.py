"""Instrumentation: every compaction, fired or declined, is handed to hooks as its report.

A hook is any callable that takes a :class:`~chat_compaction.CompactionReport`. There is no
registration: hooks are an argument. Without one, :func:`log_report` is the only hook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._report import CompactionReport

__all__ = ["Hook", "emit", "log_report"]

Hook = Callable[[CompactionReport], object]


def log_report(report: CompactionReport) -> None:
    """The default hook: one structlog event for each compaction, on the logger ``chat_compaction``.

    ``compaction.completed`` at level INFO, or WARNING where the history does not fit;
    ``compaction.skipped`` at DEBUG. structlog is imported at the first event that somebody listens
    to; nothing is configured, and an unconfigured program stays silent.
    """
    import logging

    level = logging.WARNING if not report.fits else logging.DEBUG if report.skipped else logging.INFO
    logger = logging.getLogger("chat_compaction")
    # A discarded structlog event costs far more than the question.
    if logger.isEnabledFor(level) and _has_handler(logger):
        from ._structlog import log

        log(logger, level, report)


def _has_handler(logger: object) -> bool:
    """Somebody listens: without a handler, the standard library would print warnings to standard error."""
    return bool(logger.hasHandlers())  # type: ignore[attr-defined]


def emit(report: CompactionReport, hooks: Sequence[Hook] | None) -> None:
    """Hand a report to the hooks; one that fails is logged, and never fails a compaction."""
    for hook in (log_report,) if hooks is None else hooks:
        try:
            hook(report)
        except Exception:
            import logging

            logging.getLogger("chat_compaction").exception("the hook %r failed", hook)
