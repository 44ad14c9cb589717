"""What is wrong in a history, and what was done about it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Problem:
    """Something in a history that breaks a rule: where, which rule, and what it is."""

    position: int
    rule: str
    message: str


@attrs.frozen
class Repair:
    """Something in a history that was mended: where in the caller's list, which rule asked for it, what was done."""

    position: int
    rule: str
    action: str
