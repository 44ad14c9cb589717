"""Which groups a summary is to stand for: no more than needed, and enough to be worth a call (rule K3)."""

from __future__ import annotations

from collections.abc import Sequence

from .._as_if import AsIf
from .._groups import GroupKind, MessageGroup
from .._index import MessageIndex
from .._predicates import Predicate, groups, messages, tokens
from ._rendering import shown_positions, texts_of


def choose(
    index: MessageIndex,
    free: Sequence[MessageGroup],
    newest: Sequence[MessageGroup],
    target: Predicate,
    *,
    allowed: int,
    overhead: int,
    gain: int,
) -> list[MessageGroup]:
    """The oldest groups whose place a summary of ``allowed`` tokens should take, so that the target holds with it.

    Summaries among them are always taken first; ``newest`` are those that may change and not leave. What is new must
    have ``gain`` tokens; if it has not, there is nothing to do, but to make one summary of several. Where the target
    cannot be reached, it is all of them.
    """
    old = [group for group in free if group.kind is GroupKind.SUMMARY]
    new = [group for group in free if group.kind is not GroupKind.SUMMARY]
    summaries = [*old, *newest]
    index.value(tokens)  # In one batch what would else be counted group by group.
    sizes = list(map(index.tokens_of, new))
    if sum(sizes) < gain or not new:
        telling = [group for group in summaries if _tells(index, group)]
        return summaries if len(telling) > 1 else []
    replaced = sum(map(index.tokens_of, summaries))
    taken, gained = list(old), 0
    for group in old:
        index.exclude(group, "summary")
    for group, size in zip(new, sizes, strict=True):
        index.exclude(group, "summary")
        taken.append(group)
        gained, replaced = gained + size, replaced + size
        if gained >= gain and target(AsIf(index, {tokens: min(allowed, replaced) + overhead, messages: 1, groups: 1})):
            break
    index.include(*taken)
    return [*taken, *newest]


def _tells(index: MessageIndex, summary: MessageGroup) -> bool:
    """Whether it is a summary, and not a message of ours that keeps the two sides in turn beside one."""
    return any(any(texts_of(index.view(position))) for position in shown_positions(index, [summary]))
