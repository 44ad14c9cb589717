"""The sum of what came of many sessions."""

from __future__ import annotations

import attrs

from .._batch import SessionResult
from .._text import some
from ._files import shown
from ._text import failures


@attrs.define
class Tally:
    """What came of many sessions, in numbers, and in a line for each that went wrong."""

    compacted: int = 0
    unchanged: int = 0
    resumed: int = 0
    failures: list[str] = attrs.field(factory=list)
    troubles: list[str] = attrs.field(factory=list)
    """What failed in sessions that went on."""
    unfit: list[str] = attrs.field(factory=list)
    before: int = 0
    after: int = 0
    exact: bool = True
    """Whether nobody counted less than all."""
    counted: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything was done, and fits."""
        return not self.failures and not self.unfit

    def add(self, result: SessionResult) -> None:
        """Count one result in."""
        report = result.report
        if result.error is not None or report is None:
            self.failures.append(result.error or "")
            return
        self.compacted += result.changed
        self.unchanged += not result.changed
        self.resumed += result.resumed
        self.before += report.tokens_before
        self.after += report.tokens_after
        self.exact = self.exact and report.tokens_exact
        self.counted = f"counted by {report.counter}{'' if report.counter_exact else ', not exact'}"
        self.troubles += [f"{shown(str(result.path))}: {line}" for line in failures(report)]
        if not report.fits:
            self.unfit.append(f"{shown(str(result.path))}: {report.overflow_text()}")

    def summary(self) -> str:
        """All in one line."""
        done = self.compacted + self.unchanged
        parts = [f"{self.compacted:,} compacted", f"{self.unchanged:,} unchanged", f"{len(self.failures):,} failed"]
        if self.unfit:
            parts[2:2] = [f"{len(self.unfit):,} of these above the budget"]
        text = f"{some(done + len(self.failures), 'session')}: {', '.join(parts)}"
        if self.counted:
            # Where not all had to be counted, there was more than this.
            text += f"; {'' if self.exact else 'at least '}{self.before:,} -> {self.after:,} tokens ({self.counted})"
        if self.resumed:
            text += f"; {self.resumed:,} done by an earlier run and left as they are (--force does them again)"
        return text
