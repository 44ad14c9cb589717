"""The default for a model: from what loses nothing to what loses most, by shares of its context window."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, ClassVar

import attrs

from .._effects import Effect
from .._floor import Floor
from .._index import MessageIndex
from .._predicates import Predicate, tokens
from .._strategy import CompactionStrategy
from .._summarizing import Summarizer
from .._summarizing._must_keep import Keep, as_must_keep, facts_in
from .._text import some
from .._validators import a_callable, non_negative
from .clip import ClipStrategy
from .pipeline import common_floor, run_stages
from .provider_compaction import ProviderCompactionStrategy
from .summarization import DEFAULT_WINDOW, SummarizationStrategy
from .tool_result import ToolResultStrategy
from .truncation import TruncationStrategy


def _share(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{attribute.name} must be a share above 0, at most 1, got {value!r}")
    if not 0 < value <= 1:
        raise ValueError(f"{attribute.name} must be a share above 0, at most 1, got {value!r}")


def _room(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{attribute.name} must be a share of 0 or more, below 1, got {value!r}")
    if not 0 <= value < 1:
        raise ValueError(f"{attribute.name} must be a share of 0 or more, below 1, got {value!r}")


@attrs.frozen(kw_only=True, repr=False)
class ContextWindowStrategy(CompactionStrategy):
    """Keep a history inside a model's context window: the recommended default.

    ``window`` and ``max_output`` are the model's, in tokens; what is left for the input is the budget. The
    strategy is a pipeline, and later stages lose more:

    1. What a provider's own compaction covers leaves, at no loss.
    2. Above ``tool_results_at`` of the budget, old tool results are cleared.
    3. Ahead of what follows, a text above ``clip_above`` of the budget is cut to head and tail.
    4. Above ``summarize_at``, a ``summarizer`` sums up the oldest groups, where there is one.
    5. Above ``truncate_at``, the oldest groups leave.

    ``must_keep`` says what stands in a summary word for word (see :class:`SummarizationStrategy`); a text in which
    something of it is found is neither cleared nor clipped. What truncation takes of it, for want of a summary, is told
    in ``failures`` of the report.

    Each stage frees ``room`` of its threshold: by default, clearing at 50 % of the budget goes down to 25 %, so
    that the next calls find a cached prefix. ``fits`` means: within the budget. What the caller sends beside the
    list counts where the index knows of it (``reserved``).

    Clearing old observations halves what an agent costs at an equal solve rate, and a summary behind it saves
    more (arXiv 2508.21433). A port of ``ContextWindowCompactionStrategy`` of the Microsoft Agent Framework for
    .NET, which has the second and the last stage and no room.

    >>> import chat_compaction as cc
    >>> strategy = cc.ContextWindowStrategy(128_000, 8_000)
    >>> strategy.input_budget, strategy.trigger
    (120000, tokens > 60000)
    """

    shortens: ClassVar[bool] = True

    window: int = attrs.field(kw_only=False, validator=non_negative)
    max_output: int = attrs.field(kw_only=False, validator=non_negative)
    summarizer: Summarizer | None = attrs.field(
        default=None, kw_only=False, validator=attrs.validators.optional(a_callable)
    )
    must_keep: tuple[Keep, ...] = attrs.field(default=(), converter=as_must_keep)
    tool_results_at: float = attrs.field(default=0.5, validator=_share)
    clip_above: float = attrs.field(default=0.1, validator=_share)
    summarize_at: float | None = attrs.field(default=None, validator=attrs.validators.optional(_share))
    truncate_at: float = attrs.field(default=0.8, validator=_share)
    room: float = attrs.field(default=0.5, validator=_room)
    keep_tool_uses: int = attrs.field(default=3, validator=non_negative)
    min_preserved_groups: int = attrs.field(default=2, validator=non_negative)
    trigger: Predicate = attrs.field(init=False, eq=False)
    target: Predicate | None = attrs.field(init=False, eq=False, default=None)
    stages: tuple[CompactionStrategy, ...] = attrs.field(init=False, eq=False)
    """What it consists of, in order."""

    @max_output.validator
    def _check_max_output(self, _: object, value: int) -> None:
        if value >= self.window:
            raise ValueError(f"max_output must be less than the window ({self.window}), got {value}")

    @must_keep.validator
    def _check_must_keep(self, _: object, value: tuple[Keep, ...]) -> None:
        if value and self.summarizer is None:
            raise ValueError(f"must_keep is for summaries and needs a summarizer, got {value!r}")

    @truncate_at.validator
    def _check_truncate_at(self, _: object, value: float) -> None:
        for name in ("tool_results_at", "summarize_at"):
            least = getattr(self, name)
            if least is not None and value < least:
                raise ValueError(f"truncate_at must be at least {name} ({least}), got {value}")

    def __attrs_post_init__(self) -> None:
        # After the validators, so that a wrong argument is reported by its own name. One set of stages for good:
        # a summariser that failed is left alone for a while.
        object.__setattr__(self, "stages", tuple(self._stages()))
        object.__setattr__(self, "trigger", tokens > min(self._limit(share) for share in self._shares()))
        super().__attrs_post_init__()

    @property
    def input_budget(self) -> int:
        """The tokens that a request may have: the window without the longest answer."""
        return self.window - self.max_output

    @property
    def floor(self) -> Floor:
        """What no stage may touch."""
        return common_floor(self.stages)

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        yield from run_stages(self, index, self.stages[:-1])
        before = index.included_positions() if self.must_keep else []
        yield from run_stages(self, index, self.stages[-1:])
        lost = self._lost(index, before)
        if lost:
            index.report_failure("must_keep", f"{some(lost, 'text')} {'was' if lost == 1 else 'were'} truncated")

    def _lost(self, index: MessageIndex, before: Sequence[int]) -> int:
        """How many texts that must be kept stood at these positions and stand nowhere any more."""
        there = index.included_positions() if before else []
        gone = facts_in(index, sorted(set(before).difference(there)), self.must_keep)
        still = set(facts_in(index, there, self.must_keep)) if gone else set()
        return sum(fact not in still for fact in gone)

    @property
    def token_limit(self) -> int:
        """See :class:`CompactionStrategy`."""
        return self.input_budget

    def fits(self, index: MessageIndex) -> bool:
        """Whether a request is within the input budget."""
        return not index.exceeds(tokens, self.input_budget)

    # -- the stages ------------------------------------------------------------------------------

    def _stages(self) -> Iterator[CompactionStrategy]:
        who: dict[str, Any] = {"keep_last_user": self.keep_last_user, "preserve_system": self.preserve_system}
        kept = who | {
            "min_preserved_groups": self.min_preserved_groups,
            "min_preserved_messages": self.min_preserved_messages,
        }
        clearing = self._at(self.tool_results_at)
        yield ProviderCompactionStrategy(**clearing, **who)
        yield ToolResultStrategy(
            **clearing,
            **kept,
            keep_tool_uses=self.keep_tool_uses,
            # All of the room or nothing: a little at each call would cost the prompt cache each time.
            clear_at_least=self._freed(self.tool_results_at),
            must_keep=self.must_keep,
        )
        # What is huge may well be the newest message, which none of the other stages touches.
        clipping = self._at(min(self._shares()[1:]))
        yield ClipStrategy(**clipping, **who, max_tokens=self._limit(self.clip_above), must_keep=self.must_keep)
        if self.summarizer is not None:
            yield SummarizationStrategy(
                self.summarizer,
                **self._at(self._summarize_at()),
                **kept,
                must_keep=self.must_keep,
                max_summary_tokens=max(1, min(2_000, self.input_budget // 10)),
                window=None if getattr(self.summarizer, "window", None) else min(DEFAULT_WINDOW, self.window),
            )
        yield TruncationStrategy(**self._at(self.truncate_at), **kept)

    def _shares(self) -> list[float]:
        """The share at which something begins: clearing, summarising, truncating."""
        return [self.tool_results_at, *([] if self.summarizer is None else [self._summarize_at()]), self.truncate_at]

    def _summarize_at(self) -> float:
        """Ahead of truncation, so that a summariser that fails may be asked again before anything is lost."""
        return self.truncate_at * 7 / 8 if self.summarize_at is None else self.summarize_at

    def _limit(self, share: float) -> int:
        return int(self.input_budget * share)

    def _freed(self, share: float) -> int:
        """The tokens that a stage frees below its threshold."""
        return int(self._limit(share) * self.room)

    def _at(self, share: float) -> dict[str, Any]:
        """The trigger and the target of a stage."""
        limit = self._limit(share)
        return {"trigger": tokens > limit, "target": tokens <= limit - self._freed(share)}
