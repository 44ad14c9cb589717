"""The base of all strategies: when to compact, what must stay, when to stop, what to report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import attrs

from ._effects import Core, Effect, arun, run
from ._errors import StrategyError
from ._eviction import Candidates, Unit, evict_certain, turns_that_may_leave
from ._floor import Floor
from ._groups import MessageGroup
from ._index import MessageIndex, check_reason
from ._ledger import Ledger
from ._predicates import Predicate
from ._report import CompactionReport
from ._running import OnOverflow, compact_stage, compacted, planned
from ._targets import check_target, token_limit
from ._text import shown
from ._validators import a_bool, non_negative
from .instrumentation import Hook


def check_predicate(name: str, value: object) -> None:
    """Refuse what is no predicate, with a hint for a plain function."""
    if not isinstance(value, Predicate):
        hint = "; read a text with parse_predicate" if isinstance(value, str) else ""
        hint = "; make a predicate of a function with chat_compaction.predicate" if callable(value) else hint
        raise TypeError(f"{name} must be a predicate such as tokens > 8_000, got {value!r}{hint}")


def a_predicate(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a predicate."""
    check_predicate(attribute.name, value)


@attrs.define(kw_only=True, eq=False, slots=False, on_setattr=attrs.setters.NO_OP)
class CompactionStrategy(ABC):
    """A value that compacts an index: subclass it and write :meth:`compact_core`.

    ``trigger`` says when to compact, ``target`` when to stop; without one the target is the inverse
    of the trigger (rule K3). The floor is the same for every strategy: the newest
    ``min_preserved_groups`` groups (one at the least, rule K2) and ``min_preserved_messages`` messages,
    pinned and pending groups, the newest user message unless ``keep_last_user=False``, and system groups
    unless ``preserve_system=False``.

    A subclass may be a plain class, an attrs class or a dataclass. An attrs class and a plain one
    without a constructor of its own take the fields above as arguments; in any other, a field of
    the base that it does not set has its default.
    """

    shortens: ClassVar[bool] = False
    """Whether it replaces content: then there may be work for it where no group may leave."""

    trigger: Predicate = attrs.field(validator=a_predicate)
    target: Predicate | None = attrs.field(default=None, validator=attrs.validators.optional(a_predicate))
    min_preserved_groups: int = attrs.field(default=8, validator=non_negative)
    min_preserved_messages: int = attrs.field(default=0, validator=non_negative)
    keep_last_user: bool = attrs.field(default=True, validator=a_bool)
    preserve_system: bool = attrs.field(default=True, validator=a_bool)

    def __attrs_post_init__(self) -> None:
        self._check()
        self._refuse_shadowed()

    def __post_init__(self) -> None:
        """What a dataclass calls: the same checks."""
        self._check()

    def _check(self) -> Floor:
        """Check the fields, however they were set; the floor checks its own."""
        check_predicate("trigger", getattr(self, "trigger", None))
        check_predicate("target", self.effective_target)
        check_target(self.trigger, self.effective_target)
        return self.floor

    def _refuse_shadowed(self) -> None:
        """A constructor that attrs made would silently win over what stands in the body without being a field."""
        for cls in type(self).__mro__[: type(self).__mro__.index(CompactionStrategy)]:
            for name in _DEFAULTS.keys() & vars(cls).keys():
                value = vars(cls)[name]
                if not hasattr(value, "__get__") and value != getattr(self, name):
                    raise TypeError(
                        f"{name} must be an argument or an annotated field of {cls.__name__}, got {value!r} in its body"
                    )

    @property
    def name(self) -> str:
        """What reports call it."""
        return type(self).__name__

    def __repr__(self) -> str:
        # Only what differs from the default, and by the name of the argument.
        values = [(f.alias, getattr(self, f.name, None), f.default) for f in attrs.fields(type(self)) if f.init]
        given = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({given})"

    @abstractmethod
    def compact_core(self, index: MessageIndex) -> Generator[Effect, Any, Any] | bool | None:
        """Exclude what should leave, and stop when the target is reached.

        A plain function, or a generator that yields :class:`Effect` for what it needs from outside.
        The base has asked the trigger and the target, and undoes every change if this raises (rule K9).
        A plain function may return what :meth:`evict` does; nobody looks at it.
        """

    # -- for compact_core ----------------------------------------------------------------------

    @property
    def effective_target(self) -> Predicate:
        """The target, or the inverse of the trigger (rule K3)."""
        return ~self.trigger if self.target is None else self.target

    @property
    def floor(self) -> Floor:
        """What a compaction never touches (rule K4)."""
        return Floor(
            min_preserved_groups=self.min_preserved_groups,
            min_preserved_messages=self.min_preserved_messages,
            keep_last_user=self.keep_last_user,
            preserve_system=self.preserve_system,
        )

    def candidates(self, index: MessageIndex) -> Sequence[MessageGroup]:
        """The groups that may leave, oldest first; a group is as new as its newest message (rule K4).

        Each is a snapshot of when you look at it.
        """
        ledger = index._ledger
        protected = self._protected(ledger)
        return Candidates(ledger, protected, ledger.oldest_first(protected))

    def rewritable(self, index: MessageIndex) -> Sequence[MessageGroup]:
        """The groups whose content may be replaced, oldest first: those that may leave, and often newer ones.

        What the floor keeps is left as it is, but a floor of 0 groups leaves even the newest open.
        """
        ledger = index._ledger
        worded = self.floor.keep_words(ledger) if ledger.current is None else ledger.current.worded
        return Candidates(ledger, worded, ledger.oldest_first(worded))

    def candidate_turns(self, index: MessageIndex) -> Sequence[Sequence[MessageGroup]]:
        """The turns that may leave whole, oldest first: those of which nothing has to stay.

        Pinned and system groups of a turn stay behind when it leaves.
        """
        ledger, candidates = index._ledger, self.candidates(index)
        return turns_that_may_leave(ledger, self._protected(ledger), candidates, preserve_system=self.preserve_system)

    def _protected(self, ledger: Ledger) -> Mapping[int, str]:
        return self.floor.protect(ledger) if ledger.current is None else ledger.current.protected

    def reached(self, index: MessageIndex) -> bool:
        """Whether the target holds now."""
        return self.effective_target(index)

    @property
    def token_limit(self) -> int | None:
        """The tokens above which a report says ``over_by``: the smallest limit of the target, if it has one."""
        return token_limit(self.effective_target)

    def fits(self, index: MessageIndex) -> bool:
        """What the report says of the result: the target holds, or the trigger no longer does."""
        return self.reached(index) or not self.trigger(index)

    def evict(
        self, index: MessageIndex, units: Iterable[MessageGroup] | Iterable[Iterable[MessageGroup]], reason: str
    ) -> bool:
        """Exclude unit by unit until the target is reached, and say whether it is.

        A unit is a group, or several that leave together. The target is asked before the first and
        after each one (rule K3).
        """
        return self._evict_until_reached(index, units, reason)[0]

    def _evict_until_reached(self, index: MessageIndex, units: Iterable[Unit], reason: str) -> tuple[bool, int]:
        """Whether the target is reached, and how many units were asked to leave."""
        check_reason(reason)
        asked = 0
        # An iterator may look at the index between two units, and a subclass may say itself when it is done.
        asks_target = getattr(self.reached, "__func__", None) is CompactionStrategy.reached
        if isinstance(units, Sequence) and asks_target and not self.reached(index):
            asked = evict_certain(index, self.effective_target, units, reason)
            units = units[asked:] if isinstance(units, Candidates | list | tuple) else islice(units, asked, None)
        for unit in units:
            if self.reached(index):
                return True, asked
            for group in (unit,) if isinstance(unit, MessageGroup) else unit:
                index.exclude(group, reason)
            asked += 1
        return self.reached(index), asked

    def undo(self, index: MessageIndex) -> None:
        """Undo all that this pass did so far: nothing left, nothing was replaced. It may go on with something else."""
        current = index._ledger.current
        if current is None:
            raise StrategyError("undo must be called by compact_core, while a compaction is under way")
        index._ledger.undo(current)

    def run_stage(
        self, index: MessageIndex, stage: CompactionStrategy, keep: Callable[[CompactionReport], bool] | None = None
    ) -> Core[CompactionReport]:
        """Run another strategy within this pass: ``report = yield from self.run_stage(index, stage)``.

        The stage asks its own trigger and target; it keeps to its own floor, and to that of this strategy. What it
        reports joins ``report.stages``. Where ``keep`` says False of its report, everything that it did is undone.
        """
        if not isinstance(stage, CompactionStrategy):
            raise TypeError(f"stage must be a CompactionStrategy, got {shown(stage)}")
        outer = index._ledger.current
        if outer is None:
            raise StrategyError("run_stage must be called by compact_core, while a compaction is under way")
        stage._check()
        outer.begun += 1
        return compact_stage(stage, index, keep, outer)

    # -- for callers ---------------------------------------------------------------------------

    def plan(self, history: MessageIndex | Sequence[Any], **settings: Any) -> CompactionReport:
        """What :meth:`compact` would report, without doing it: nothing is changed, called or told to hooks.

        ``history`` is an index, or a list of messages; then ``settings`` are the arguments of
        :meth:`MessageIndex.from_messages`. Where a strategy needs an answer from outside, a plan takes what the
        strategy plans with (a summary of the allowed length, say); where it has none, the report says
        ``stopped_by="effect"``.
        """
        index = history if isinstance(history, MessageIndex) else MessageIndex.from_messages(history, **settings)
        if settings and index is history:
            raise TypeError(f"settings must be given with a list of messages, got {', '.join(settings)} with an index")
        return run(planned(self, index))

    def compact(
        self, index: MessageIndex, *, on_overflow: OnOverflow = "report", hooks: Sequence[Hook] | None = None
    ) -> CompactionReport:
        """Compact the index if the trigger fires, and report.

        ``on_overflow="raise"`` raises :class:`ContextOverflowError` where the report would say
        ``fits=False``: the trigger still holds, and the target is not reached (rule K5). The index is
        then as it was. ``hooks`` are callables that take the report;
        None means the default, which logs through structlog.
        """
        return run(compacted(self, index, on_overflow, hooks))

    async def acompact(
        self, index: MessageIndex, *, on_overflow: OnOverflow = "report", hooks: Sequence[Hook] | None = None
    ) -> CompactionReport:
        """:meth:`compact` for async code: effects are awaited, everything else is the same."""
        return await arun(compacted(self, index, on_overflow, hooks))


_DEFAULTS = {field.name: field.default for field in attrs.fields(CompactionStrategy)}
# A dataclass, or an __init__ that does not call ours, sets no field of the base: it finds the default here.
for _name, _default in _DEFAULTS.items():
    if _default is not attrs.NOTHING:
        setattr(CompactionStrategy, _name, _default)
