"""The floor: what a compaction never touches, whatever the target says (rules K2, K4 and K7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

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
        """By the first position of each included group that must stay: why. Linear in what stays."""
        why = self._kept(ledger, max(1, self.min_preserved_groups))
        for bundle, rule in list(ledger.cuts.needed_by([ledger.grouping.bundles[first] for first in why])):
            why.setdefault(bundle.first, rule)
        return why

    def keep_words(self, ledger: Ledger) -> dict[int, str]:
        """By the first position of each included group whose words must stay as they are: why.

        Where nothing leaves, rule K2 has nothing to say: a floor of 0 groups leaves no words alone for being new.
        """
        return self._kept(ledger, self.min_preserved_groups)

    def _kept(self, ledger: Ledger, groups: int) -> dict[int, str]:
        why = {bundle.first: reason for bundle, reason in self._standing(ledger)}
        for bundle in self._newest_groups(ledger, groups) if groups else ():
            why.setdefault(bundle.first, "floor")
        for bundle in self._newest_messages(ledger):
            why.setdefault(bundle.first, "floor")
        for bundle in ledger.places.last_users() if self.keep_last_user else ():
            why.setdefault(bundle.first, "last_user")
        return why

    def _standing(self, ledger: Ledger) -> Iterator[tuple[Bundle, str]]:
        """The groups that stay wherever they stand; the last reason for a group is the one to tell."""
        yield from ((bundle, "pending") for bundle in ledger.pending() if bundle.included)
        for bundle in ledger.places.standing():
            if bundle.included and (bundle.pinned or self.preserve_system):
                yield bundle, "pinned" if bundle.pinned else "system"
        compaction = ledger.places.newest_compaction()
        if compaction is not None and not ledger.pins[compaction]:
            yield ledger.grouping.of[compaction], "compaction"

    def _newest_groups(self, ledger: Ledger, groups: int) -> list[Bundle]:
        others = (bundle for bundle in ledger.newest_first() if bundle.kind is not GroupKind.SYSTEM)
        # Where there is nothing but system groups, one of them is what must not be lost.
        return list(islice(others, groups)) or list(islice(ledger.newest_first(), 1))

    def _newest_messages(self, ledger: Ledger) -> Iterator[Bundle]:
        of = ledger.grouping.of
        places = range(len(of) - 1, -1, -1)
        included = (of[place] for place in places if of[place].included and place not in of[place].absent)
        return islice(included, self.min_preserved_messages)
