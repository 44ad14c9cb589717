"""What a provider's own compaction already stands for leaves first, at no loss.

OpenAI, guide "Compaction", read in November 2026: with server-side compaction one "can drop items that came before
the most recent compaction item", which "carries the necessary context"; with ``previous_response_id`` one must "not
manually prune". What ``/responses/compact`` returns is "the canonical next context window", which one must "not
prune": "a list of all user messages, followed by a single compaction item" (``CompactedResponse`` of ``openai`` 3.57).

Anthropic, guide "Threshold compaction", read in November 2026: "When the API receives a ``compaction`` block, all
content blocks before it are ignored"; one may "manually drop the compacted messages and only include the compaction
block onwards"; of several, "the last compaction block reflects the final state of the prompt". A block from compaction
on demand is sent first, "in place of the messages it summarizes" (``BetaCompactionConfigParam`` of ``anthropic`` 2.14).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .._floor import Floor
from .._index import MessageIndex
from .._messages import ASSISTANT, COMPACTION, TOOL, Message
from .._predicates import Predicate, predicate
from .._strategy import CompactionStrategy, a_predicate
from .._validators import non_negative

_STANDING = Floor(min_preserved_groups=0)
"""What stays wherever it stands: no count of newest groups."""


@predicate
def provider_compacted(index: MessageIndex) -> bool:
    """Whether something may leave that a provider's own compaction stands for."""
    ledger = index._ledger
    end = _covered_before(index)
    if not end:
        return False
    stays = _STANDING.keep_words(ledger)
    bundles = ledger.grouping.bundles.values()
    return any(bundle.included and bundle.newest < end and bundle.first not in stays for bundle in bundles)


@attrs.frozen(kw_only=True, repr=False)
class ProviderCompactionStrategy(CompactionStrategy):
    """Exclude what stands ahead of the provider's newest compaction: all of it at once, or nothing.

    Nothing is lost by that: OpenAI has it in the newest ``compaction`` item, and Anthropic ignores what stands
    ahead of the newest ``compaction`` block. Older compactions leave, too. The newest never leaves, by any strategy.

    By default the trigger is that there is such a thing, and the target that there is no more of it.
    System messages, pins and the newest user message stay, as always, but no number of newest groups.

    An encrypted compaction behind nothing but words of the user stays with them: that is the window that
    ``/responses/compact`` of OpenAI returns, which must not be pruned. Nor must a list whose results answer calls that
    the server keeps.

    >>> ProviderCompactionStrategy()
    ProviderCompactionStrategy()
    """

    trigger: Predicate = attrs.field(default=provider_compacted, validator=a_predicate)
    min_preserved_groups: int = attrs.field(default=1, validator=non_negative)

    def compact_core(self, index: MessageIndex) -> None:
        """See :class:`CompactionStrategy`."""
        end = _covered_before(index)
        # All at once: a part of it would cost the provider's prompt cache as much.
        covered = [group for group in self.candidates(index) if group.newest < end]
        self.evict(index, [covered] if covered else (), "covered by the provider's compaction")

    def fits(self, index: MessageIndex) -> bool:
        """See :class:`CompactionStrategy`; what stays is no failure, where no size was asked for."""
        return self.trigger == provider_compacted or super().fits(index)


def _covered_before(index: MessageIndex) -> int:
    """The position of the newest compaction, if what stands ahead of it may leave; 0 where nothing may."""
    ledger = index._ledger
    place = ledger.places.newest_compaction()
    if place is None or ledger.judge.server_has_calls:
        return 0
    views = ledger.views
    encrypted = not any(part.text for part in views[place].parts if part.kind is COMPACTION)
    return 0 if encrypted and _is_window(views[:place]) else place


def _compacts(view: Message) -> bool:
    return view.kinds & COMPACTION.bit != 0


def _is_window(ahead: Sequence[Message]) -> bool:
    """Whether nothing of the model's stands ahead: so looks the window that a compaction by itself returns."""
    return not any(view.role in (ASSISTANT, TOOL) or _compacts(view) for view in ahead)
