"""What providers ask of a list of messages: one small class a rule (rule K7).

A rule judges something small, so that a list that grows is judged as it grows: a message by itself, two
neighbours, a result and its call. What it says of two neighbours is also where a history may not be cut.
And it can repair what it found.

A format names its rules; :meth:`~chat_compaction.formats.Format.with_rules` and
:meth:`~chat_compaction.formats.Format.without_rules` change them. The source of each rule stands in the
page of the format.
"""

from ..._messages import Seam, Tie, TieKind
from ._calls import DuplicateResult, NotAdjacent, OrphanResult, RepeatedId, UnansweredCall
from ._content import EmptyContent, ResultsFirst
from ._draft import Draft
from ._order import (
    Alternation,
    CallAfterUser,
    FirstUser,
    LastRole,
    ReasoningAlone,
    SystemAfterUser,
    SystemPlace,
    UserAfterTool,
)
from ._rule import Rule

__all__ = [
    "Alternation",
    "CallAfterUser",
    "Draft",
    "DuplicateResult",
    "EmptyContent",
    "FirstUser",
    "LastRole",
    "NotAdjacent",
    "OrphanResult",
    "ReasoningAlone",
    "RepeatedId",
    "ResultsFirst",
    "Rule",
    "Seam",
    "SystemAfterUser",
    "SystemPlace",
    "Tie",
    "TieKind",
    "UnansweredCall",
    "UserAfterTool",
]
