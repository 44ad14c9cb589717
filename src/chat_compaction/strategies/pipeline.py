"""Strategies made of strategies: one after the other, or the first that is good enough."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, ClassVar

import attrs

from .._effects import Effect
from .._floor import Floor
from .._index import MessageIndex
from .._predicates import Predicate, any_of
from .._strategy import CompactionStrategy, check_predicate
from .._text import shown
from .._validators import a_bool, non_negative


def _strategies(_: object, attribute: attrs.Attribute[Any], value: tuple[object, ...]) -> None:
    if not value:
        raise ValueError(f"{attribute.name} must be one strategy or more, got none")
    for stage in value:
        if not isinstance(stage, CompactionStrategy):
            raise TypeError(f"{attribute.name} must be strategies, each an argument of its own, got {shown(stage)}")


def _a_trigger_or_none(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        check_predicate(attribute.alias or attribute.name, value)


def common_floor(stages: Iterable[CompactionStrategy]) -> Floor:
    """What no stage may touch."""
    floors = [stage.floor for stage in stages]
    return Floor(
        min_preserved_groups=min(floor.min_preserved_groups for floor in floors),
        min_preserved_messages=min(floor.min_preserved_messages for floor in floors),
        keep_last_user=all(floor.keep_last_user for floor in floors),
        preserve_system=all(floor.preserve_system for floor in floors),
    )


def run_stages(
    strategy: CompactionStrategy, index: MessageIndex, stages: Iterable[CompactionStrategy]
) -> Generator[Effect, Any, None]:
    """Run strategies within the pass of another, until its target holds."""
    for stage in stages:
        if strategy.reached(index):
            return
        yield from strategy.run_stage(index, stage)


@attrs.frozen(kw_only=True, repr=False, init=False)
class Staged(CompactionStrategy):
    """What a pipeline and alternatives share: their stages, and a trigger and a floor that follow from them."""

    shortens: ClassVar[bool] = True

    stages: tuple[CompactionStrategy, ...] = attrs.field(validator=_strategies)
    # The argument is called ``trigger``; without it the field of that name is made of the stages' triggers.
    own_trigger: Predicate | None = attrs.field(default=None, alias="trigger", validator=_a_trigger_or_none)
    trigger: Predicate = attrs.field(init=False, eq=False)
    min_preserved_groups: int = attrs.field(default=0, validator=non_negative)
    keep_last_user: bool = attrs.field(default=False, validator=a_bool)
    preserve_system: bool = attrs.field(default=False, validator=a_bool)

    def __init__(
        self,
        *strategies: CompactionStrategy,
        stages: Iterable[CompactionStrategy] = (),
        trigger: Predicate | None = None,
        target: Predicate | None = None,
        min_preserved_groups: int = 0,
        min_preserved_messages: int = 0,
        keep_last_user: bool = False,
        preserve_system: bool = False,
    ) -> None:
        if isinstance(stages, str) or not isinstance(stages, Iterable):
            raise TypeError(f"stages must be a list of strategies, got {shown(stages)}")
        self.__attrs_init__(
            stages=(*strategies, *stages),
            trigger=trigger,
            target=target,
            min_preserved_groups=min_preserved_groups,
            min_preserved_messages=min_preserved_messages,
            keep_last_user=keep_last_user,
            preserve_system=preserve_system,
        )

    def __attrs_post_init__(self) -> None:
        # After the validators, so that a wrong argument is reported by its own name.
        fires = any_of(*(stage.trigger for stage in self.stages)) if self.own_trigger is None else self.own_trigger
        object.__setattr__(self, "trigger", fires)
        super().__attrs_post_init__()

    @property
    def floor(self) -> Floor:
        """What no stage may touch, and what is kept besides."""
        common = common_floor(self.stages)
        return Floor(
            min_preserved_groups=max(self.min_preserved_groups, common.min_preserved_groups),
            min_preserved_messages=max(self.min_preserved_messages, common.min_preserved_messages),
            keep_last_user=self.keep_last_user or common.keep_last_user,
            preserve_system=self.preserve_system or common.preserve_system,
        )


@attrs.frozen(kw_only=True, repr=False, init=False)
class PipelineStrategy(Staged):
    """Run strategies one after the other, until the target holds.

    Each stage has its own trigger, target and floor, and works on what the one ahead of it left; the report has
    theirs in ``stages``. Without a ``trigger`` the pipeline fires where one of its stages would; the target
    is by default the inverse, as everywhere. The floor of the pipeline is what all of its stages keep; its own
    arguments add to that.

    Without a ``trigger``, the last stage says whether the history fits: earlier ones may fire early. If a stage
    raises, nothing of the whole pass stays, and the error is the caller's (rule K9).

    >>> import chat_compaction as cc
    >>> window = cc.SlidingWindowStrategy(trigger=cc.turns > 20)
    >>> cc.PipelineStrategy(window, cc.TruncationStrategy(trigger=cc.tokens > 8_000)).trigger
    (turns > 20) | (tokens > 8000)
    """

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        yield from run_stages(self, index, self.stages)

    def fits(self, index: MessageIndex) -> bool:
        """The target holds; or the trigger no longer does, or without one of its own the last stage fits."""
        if self.own_trigger is not None:
            return super().fits(index)
        return self.reached(index) or self.stages[-1].fits(index)


@attrs.frozen(kw_only=True, repr=False, init=False)
class FirstOf(Staged):
    """Try strategies in order, and keep the work of the first that reaches the target.

    What the others did is undone, and shows in ``stages`` of the report. If none reaches the target, the work of
    the last one stays. Each has its own trigger, target and floor; the trigger, the target and the floor around
    them are as in :class:`PipelineStrategy`, and so is an error.

    >>> import chat_compaction as cc
    >>> turns = cc.TokenBudgetStrategy(8_000, evict="turns")
    >>> cc.FirstOf(turns, cc.TokenBudgetStrategy(8_000)).trigger
    tokens > 8000
    """

    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, None]:
        """See :class:`CompactionStrategy`."""
        for stage in self.stages[:-1]:
            yield from self.run_stage(index, stage, keep=lambda _: self.reached(index))
            if self.reached(index):
                return
        yield from self.run_stage(index, self.stages[-1])
