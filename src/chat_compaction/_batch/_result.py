"""What came of one session."""

from __future__ import annotations

from pathlib import Path

import attrs

from .._report import CompactionReport


@attrs.frozen(kw_only=True)
class SessionResult:
    """What came of one session file.

    ``report`` is what was done, None where it failed. ``output`` is the file that holds the messages now, None
    where none was written. ``error`` says in one line, with the name of the file, why it failed, None where it did not.
    A session that does not fit has a report that says so, and with ``on_overflow="raise"`` an error, too.
    ``resumed``: an earlier run did it, and all is as it was. ``notes`` say what of the file is not among its messages.
    """

    path: Path
    report: CompactionReport | None = None
    output: Path | None = None
    error: str | None = None
    resumed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the messages are others than in the file: some were removed, or repaired."""
        return self.report is not None and (self.report.changed or bool(self.report.repairs))

    @property
    def ok(self) -> bool:
        """Whether it was done, and the messages fit."""
        return self.error is None and self.report is not None and self.report.fits
