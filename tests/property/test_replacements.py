"""Replacements under any sequence of operations: the index says what is sent, and the caller's list comes back."""

from __future__ import annotations

import copy
from collections import Counter as Tally
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import chat_compaction as cc
from chat_compaction.formats import PartKind, Role
from chat_compaction.testing import histories
from tests.property.drawing import EVERY_FORMAT

numbers = st.integers(0, 40)
COUNTER = cc.FunctionCounter(len, name="characters")
SHORTENED = (PartKind.TEXT, PartKind.TOOL_RESULT)


class Fails(cc.CompactionStrategy):
    """Replaces what it may, and fails in the end."""

    shortens = True

    def compact_core(self, index: cc.MessageIndex) -> None:
        candidates = self.candidates(index)
        index.summarize(candidates[: len(candidates) // 2 + 1], "a summary", "summary") if candidates else None
        for group in self.rewritable(index):
            shorten(index, group)
        raise LookupError("at the end")


def shorten(index: cc.MessageIndex, group: cc.MessageGroup) -> bool:
    """Give the first text of a group another one, where its format can write that; whether it did."""
    for position in group.positions:
        if position not in index.included_positions():
            continue
        view = index.view(position)
        number = next((n for n, part in enumerate(view.parts) if part.kind in SHORTENED), None)
        if number is None or view.signed:
            continue
        raw = index.format.with_texts(index.raw(position), {number: "short"})
        if raw is not None and index.rewrite(group, {position: raw}, "shortened"):
            assert index.view(position).parts[number].text == "short"
            return True
    return False


class ReplacementMachine(RuleBasedStateMachine):
    """An index, the list that it should know, and a deep copy of that."""

    @initialize(format=st.sampled_from(EVERY_FORMAT), hostile=st.booleans(), drop=st.booleans(), data=st.data())
    def begin(self, format: str, hostile: bool, drop: bool, data: st.DataObject) -> None:
        self.format, self.hostile = format, hostile
        self.history: list[dict[str, Any]] = data.draw(histories(format, hostile=hostile))
        self.pristine = copy.deepcopy(self.history)
        self.index = cc.MessageIndex.from_messages(
            self.history, format=format, counter=COUNTER, bound_reasoning="drop" if drop else "keep"
        )

    def group(self, number: int) -> cc.MessageGroup:
        return self.index.groups[number % len(self.index.groups)]

    # -- the list changes --------------------------------------------------------------------------

    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        new = data.draw(histories(self.format, hostile=self.hostile))[:5]
        self.index.extend(new)
        self.take([*self.history, *new])

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def rewind(self, number: int) -> None:
        self.take(self.history[: number % len(self.history)])
        self.index.update(self.history)

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def another_past(self, number: int) -> None:
        place = number % len(self.history)
        other = self.index.format.saying(self.history[place], "another", Role.USER)
        if other is not None:
            self.take([*self.history[:place], other, *self.history[place + 1 :]])
            self.index.update(self.history)

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def edit_in_place(self, number: int) -> None:
        """What stood in the place of a message that is another one now stands there no more."""
        place = number % len(self.history)
        message = self.history[place]
        if isinstance(message.get("content"), str) and message["content"]:
            message["content"] += " edited"
            self.pristine[place]["content"] += " edited"
            found = self.index.refresh()
            # What a format does not read, nobody misses.
            assert found == (place,) or (found == () and self.format == "gemini_cli")
            if found and place in self.index.included_positions():
                assert self.index.raw(place) is message

    def take(self, history: list[dict[str, Any]]) -> None:
        self.history, self.pristine = history, copy.deepcopy(history)

    # -- the projection changes --------------------------------------------------------------------

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def shorten(self, number: int) -> None:
        group = self.group(number)
        if group.pinned or group.pending or group.kind is cc.GroupKind.SYSTEM:
            with pytest.raises(cc.ProtectedGroupError):
                self.index.rewrite(group, {group.positions[0]: self.history[group.positions[0]]}, "by hand")
        else:
            shorten(self.index, group)

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def collapse(self, number: int) -> None:
        """One message of the assistant's in place of a whole group (rule S1)."""
        group = self.group(number)
        if group.kind is not cc.GroupKind.TOOL_CALL or group.pending or group.excluded:
            return
        first, *rest = group.positions
        raw = self.index.format.saying(self.index.raw(first), "tools were used")
        if raw is not None and self.index.rewrite(group, {first: raw, **dict.fromkeys(rest)}, "collapsed"):
            assert self.index.tool_uses(self.group(number)) == ()

    @rule(number=numbers, many=st.integers(1, 12))
    def summarize(self, number: int, many: int) -> None:
        """One message for several groups, summaries among them, and it is never a user's word (rule S1)."""
        never = cc.TruncationStrategy(trigger=cc.never, min_preserved_groups=1)
        groups = never.candidates(self.index)[number % 4 :][:many]
        if groups and self.index.summarize(groups, "what was said", "summary"):
            (now,) = {g.replaced for g in self.index.groups if g.positions in {old.positions for old in groups}}
            assert now == "summary"
            shown = {position for group in groups for position in group.positions} & {*self.index.included_positions()}
            summaries = [self.index.view(position) for position in shown if self.index.view(position).summary]
            assert summaries
            assert not any(view.opens_turn for view in summaries)

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def exclude(self, number: int) -> None:
        group = self.group(number)
        try:
            self.index.exclude(group, "by hand")
        except cc.ProtectedGroupError:
            assert self.index.included_positions()

    @precondition(lambda self: self.history)
    @rule(number=numbers)
    def restore(self, number: int) -> None:
        """An exclusion or a replacement is undone: the caller's own messages are there again."""
        group = self.group(number)
        self.index.restore(group)
        assert set(group.positions) <= set(self.index.included_positions())
        assert all(self.index.raw(position) is self.history[position] for position in group.positions)
        assert self.group(number).replaced is None

    @rule()
    def restore_all(self) -> None:
        self.index.include_all()
        assert self.index.included_positions() == list(range(len(self.history)))
        assert all(self.index.raw(position) is message for position, message in enumerate(self.history))

    @rule(limit=st.integers(0, 200))
    def compact(self, limit: int) -> None:
        """No rule of the format is broken more often than before (rule K7)."""
        before = self.wrong()
        cc.TruncationStrategy(trigger=cc.tokens > limit, min_preserved_groups=1).compact(self.index, hooks=())
        assert not self.wrong() - before

    def wrong(self) -> Tally[str]:
        """What is wrong with what is sent, calls aside that the newest turn may still answer."""
        sent = self.index.included_messages()
        problems = cc.MessageIndex.from_messages(sent, format=self.format, counter=COUNTER).problems
        return Tally(problem.rule for problem in problems if problem.rule != "unanswered_call")

    @rule()
    def fail(self) -> None:
        """A pass that fails leaves everything as it was, replacements too (rule K9)."""
        before, sent = self.index.snapshot(), self.sent()
        strategy = Fails(trigger=cc.always, target=cc.never, min_preserved_groups=1)
        try:
            report = strategy.compact(self.index, hooks=())
        except LookupError:
            pass
        else:
            assert report.skipped == "floor"
        assert self.index.snapshot() == before
        assert self.sent() == sent

    @rule()
    def plan(self) -> None:
        """A plan changes nothing."""
        before, sent = self.index.snapshot(), self.sent()
        cc.TruncationStrategy(trigger=cc.tokens > 20, min_preserved_groups=1).plan(self.index)
        assert self.index.snapshot() == before
        assert self.sent() == sent

    # -- what always holds -------------------------------------------------------------------------

    def sent(self) -> list[int]:
        return [id(message) for message in self.index.included_messages()]

    @invariant()
    def what_is_counted_is_what_is_sent(self) -> None:
        sent = self.index.included_messages()
        assert self.index.value(cc.messages) == len(sent) == len(self.index.included_positions())
        if self.index.format.name == self.format:
            fresh = cc.MessageIndex.from_messages(sent, format=self.format, counter=COUNTER)
            assert self.index.value(cc.tokens) == fresh.value(cc.tokens)

    @invariant()
    def the_callers_list_is_as_it_was(self) -> None:
        """Rule K8."""
        assert self.history == self.pristine


TestReplacements = ReplacementMachine.TestCase
TestReplacements.settings = settings(max_examples=60, stateful_step_count=25)
