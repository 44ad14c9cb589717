"""The floor: what a compaction never touches, whatever the target says (rules K2, K4 and K7)."""

from __future__ import annotations

import attrs

from ._groups import Bundle, GroupKind
from ._ledger import Ledger
from ._validators import a_bool, non_negative


@attrs.frozen
class Floor:
    """How much stays: counts of newest groups and messages, the newest user message, system groups.

    ``min_preserved_groups`` counts the newest groups that are no system groups, pinned ones too,
    and is never below one (rule K2); ``min_preserved_messages`` the newest messages of any kind.
    """

    min_preserved_groups: int = attrs.field(default=8, validator=non_negative)
    min_preserved_messages: int = attrs.field(default=0, validator=non_negative)
    keep_last_user: bool = attrs.field(default=True, validator=a_bool)
    preserve_system: bool = attrs.field(default=True, validator=a_bool)

    def protect(self, ledger: Ledger) -> dict[int, str]:
        """By the first position of each included group that must stay: why. Linear in the groups."""
        why: dict[int, str] = {}
        newest_first = sorted(
            (bundle for bundle in ledger.grouping.bundles.values() if bundle.included),
            key=lambda bundle: bundle.newest,
            reverse=True,
        )
        for bundle in newest_first:
            reason = self._own_reason(ledger, bundle)
            if reason is not None:
                why[bundle.first] = reason
        self._protect_newest_groups(newest_first, why)
        self._protect_newest_messages(ledger, why)
        if self.keep_last_user:
            self._protect_last_user(ledger, why)
        for bundle, rule in list(ledger.cuts.needed_by(lambda bundle: bundle.first in why)):
            why.setdefault(bundle.first, rule)
        return why

    def _own_reason(self, ledger: Ledger, bundle: Bundle) -> str | None:
        if bundle.pinned:
            return "pinned"
        if bundle.kind is GroupKind.SYSTEM and self.preserve_system:
            return "system"
        return "pending" if ledger.is_pending(bundle) else None

    def _protect_newest_groups(self, newest_first: list[Bundle], why: dict[int, str]) -> None:
        # Where there is nothing but system groups, one of them is what must not be lost.
        others = [bundle for bundle in newest_first if bundle.kind is not GroupKind.SYSTEM] or newest_first[:1]
        for bundle in others[: max(1, self.min_preserved_groups)]:
            why.setdefault(bundle.first, "floor")

    def _protect_newest_messages(self, ledger: Ledger, why: dict[int, str]) -> None:
        missing = self.min_preserved_messages
        for bundle in reversed(ledger.grouping.of) if missing else ():
            if missing == 0:
                break
            if bundle.included:
                missing -= 1
                why.setdefault(bundle.first, "floor")

    def _protect_last_user(self, ledger: Ledger, why: dict[int, str]) -> None:
        for position in range(len(ledger.views) - 1, -1, -1):
            bundle = ledger.grouping.of[position]
            if bundle.included and not ledger.pins[position] and ledger.views[position].speaks_for_user:
                why.setdefault(bundle.first, "last_user")
                return
