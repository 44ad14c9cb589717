"""The exceptions of the package.

::

    CompactionError                     everything raised here on purpose
    ├── MessageError    (ValueError)    a message that cannot be read; names its position
    ├── FormatError     (ValueError)    a list whose format cannot be told
    ├── SessionError    (ValueError)    a session file that cannot be read; names the line
    ├── ConfigError     (ValueError)    a configuration that describes no strategy; names each fault's path
    ├── PredicateSyntaxError (ValueError)   the text of a predicate; names the place
    ├── CounterError    (ValueError)    a counter returned something that is no count
    ├── ProtectedGroupError (ValueError)    an exclusion of what must stay
    ├── StrategyError                   a strategy or an effect broke the contract
    ├── InvalidHistoryError             ``on_invalid="raise"``; carries the problems
    └── ContextOverflowError            ``on_overflow="raise"``; carries the report

Wrong arguments are a plain :class:`ValueError` or :class:`TypeError` that names the argument,
its value and what was expected: they are mistakes in the program, not events of a conversation. The packages
``summarizers`` and ``offload`` have errors of their own below the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text import some

if TYPE_CHECKING:
    from ._problems import Problem
    from ._report import CompactionReport


class CompactionError(Exception):
    """The root of every error that this package raises on purpose."""


class MessageError(CompactionError, ValueError):
    """A message cannot be read.

    ``position`` is its index in the caller's list; the text names the offending field by path.
    """

    def __init__(self, position: int, message: str) -> None:
        super().__init__(position, message)
        self.position = position
        self.message = message

    def __str__(self) -> str:
        return f"messages[{self.position}]{self.message}"


class FormatError(CompactionError, ValueError):
    """The format of a list is unknown, or its name is."""


class SessionError(CompactionError, ValueError):
    """A session file cannot be read; the text names the file and, for broken JSON, the line."""


class PredicateSyntaxError(CompactionError, ValueError):
    """The text of a predicate does not parse; the text of the error shows where."""


class ProtectedGroupError(CompactionError, ValueError):
    """A group that must stay was to be excluded (rules K2 and K4)."""


class StrategyError(CompactionError):
    """A strategy, a wrapped reducer or an effect did not keep to the contract."""


class InvalidHistoryError(CompactionError):
    """The history breaks rules and the caller asked for ``on_invalid="raise"``."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        shown = "; ".join(f"messages[{p.position}]: {p.message}" for p in self.problems[:3])
        more = f"; and {len(self.problems) - 3} more" if len(self.problems) > 3 else ""
        return f"the history has {some(len(self.problems), 'problem')}: {shown}{more}"


class ContextOverflowError(CompactionError):
    """The trigger still holds and the target is not reached (rule K5, ``on_overflow="raise"``).

    ``report`` is what the pass would have reported; the index and the messages are as they were.
    """

    def __init__(self, report: CompactionReport) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return self.report.overflow_text()
