"""How an index grows: what it reads, what it notices of a changed past, and what it keeps (C2, K8, K13)."""

from __future__ import annotations

from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter
from tests.build import RecordingFormat, anthropic_step, call, index_of, result, said, step, system, user

METRICS = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)
AGENT = [system(), user("one"), *step("a", "b"), said(), user("two"), *step("c"), said("done")]


def values(index: cc.MessageIndex) -> list[int]:
    return [index.value(metric) for metric in METRICS]


# -- extend -----------------------------------------------------------------------------------------


def test_extend_appends_all_or_nothing() -> None:
    """Where one message cannot be read, none is appended; the error names its position in the whole list."""
    index = index_of(AGENT)
    before = index.snapshot()
    with pytest.raises(cc.MessageError, match=r"^messages\[11\]\.role must be one of"):
        index.extend([user(), {"role": "narrator", "content": "x"}])
    assert index.snapshot() == before
    assert len(index) == 10


@pytest.mark.parametrize(
    "messages", ["text", b"bytes", {"role": "user"}, 7, None, iter([])], ids=lambda m: type(m).__name__
)
def test_messages_must_be_a_list(messages: Any) -> None:
    with pytest.raises(TypeError, match=r"^messages must be a list of messages, got "):
        index_of(messages)
    with pytest.raises(TypeError, match=r"^history must be a list of messages, got "):
        index_of([]).update(messages)


def test_the_callers_list_is_not_kept() -> None:
    """K8: what the caller does to his list later changes nothing here."""
    history = list(AGENT)
    index = index_of(history)
    history.clear()
    assert len(index.included_messages()) == 10


# -- update -----------------------------------------------------------------------------------------


def test_update_reads_only_what_is_new() -> None:
    """K13: identity settles what is known, but for the newest message, which may be streamed in place."""
    format = RecordingFormat()
    index = index_of(AGENT, format=format)
    assert format.since() == list(range(10))
    assert index.update([*AGENT, user("more"), said("more")]) == cc.IndexUpdate(read=2)
    assert format.since() == [9, 10, 11]
    assert index.update([*AGENT, *index.included_messages()[10:]]) == cc.IndexUpdate(read=0)
    assert format.since() == [11]


def test_update_notices_a_changed_past() -> None:
    """C2: the message is read anew, and what follows; counts of what stands before stay."""
    counter = RecordingCounter()
    index = index_of(AGENT, counter=counter)
    index.value(cc.tokens)
    counter.counted.clear()
    changed = [*AGENT[:5], said("changed"), *AGENT[6:]]
    assert index.update(changed) == cc.IndexUpdate(read=5, first_changed=5)
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), changed, strict=True))
    assert index.value(cc.tokens) == 33 + 1
    assert counter.counted == ["changed"]


def test_update_keeps_exclusions_before_the_change() -> None:
    """C2: groups that stand wholly before the change stay out; the others come back."""
    index = index_of(AGENT)
    for place in (1, 2, 3):
        index.exclude(index.groups[place], "by hand")
    index.update([*AGENT[:5], user("changed"), *AGENT[6:]])
    assert [group.excluded for group in index.groups] == [None, "by hand", "by hand", None, None, None, None]


def test_a_change_of_words_alone_keeps_all_exclusions() -> None:
    """C2: where nothing changed that grouping depends on, only the count of the message is forgotten."""
    index = index_of(AGENT)
    for place in (1, 2, 3):
        index.exclude(index.groups[place], "by hand")
    before = values(index), index.total(cc.tokens)
    index.update([*AGENT[:5], said("other words"), *AGENT[6:]])
    assert [group.excluded for group in index.groups] == [None, "by hand", "by hand", "by hand", None, None, None]
    assert (values(index), index.total(cc.tokens)) == (before[0], before[1] + 5)


def test_an_excluded_group_that_reaches_behind_the_change_comes_back() -> None:
    """C2: it may no longer be the same group."""
    messages = [user(), call("a"), user("two"), result("a"), said()]
    index = index_of(messages)
    index.exclude(index.groups[1], "by hand")
    index.update([*messages[:2], said("changed"), *messages[3:]])
    assert index.included_positions() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kept", [0, 1, 3, 8])
def test_update_notices_a_shortened_past(kept: int) -> None:
    """The known messages behind the end are gone."""
    index = index_of(AGENT)
    index.value(cc.tokens)
    assert index.update(AGENT[:kept]) == cc.IndexUpdate(read=0, first_changed=kept, shortened=True)
    assert index.snapshot() == index_of(AGENT[:kept]).snapshot()
    assert values(index) == values(index_of(AGENT[:kept]))


def test_update_notices_another_and_shorter_past() -> None:
    index = index_of(AGENT)
    update = index.update([*AGENT[:2], user("other")])
    assert update == cc.IndexUpdate(read=1, first_changed=2, shortened=True)
    assert [group.positions for group in index.groups] == [(0,), (1,), (2,)]


def test_equal_messages_in_other_objects_are_no_change() -> None:
    """K8: but the caller's current objects are the ones to give back; nothing is counted again."""
    counter = RecordingCounter()
    index = index_of(AGENT, counter=counter)
    index.exclude(index.groups[1], "by hand")
    index.value(cc.tokens)
    counter.counted.clear()
    copies = [dict(message) for message in AGENT]
    assert index.update(copies) == cc.IndexUpdate(read=0)
    assert all(ours is copies[p] for ours, p in zip(index.included_messages(), index.included_positions(), strict=True))
    assert index.value(cc.tokens) == 30
    assert counter.counted == []


def test_the_newest_message_that_grew_in_place_is_seen() -> None:
    """C2: while it is streamed, it is counted anew at every update, and grouping stays as it is."""
    newest = said("I th")
    index = index_of([user("one"), said("two"), newest])
    index.exclude(index.groups[0], "by hand")
    assert index.value(cc.tokens) == 3 + 4
    newest["content"] = "I think so"
    assert index.update([user("one"), *index.included_messages()]).first_changed == 2
    assert index.value(cc.tokens) == 3 + 10
    assert index.groups[0].excluded == "by hand"


def test_the_newest_message_that_got_a_call_in_place_is_grouped_anew() -> None:
    """C2 and G2: a streamed message may grow a call, whose result then joins it."""
    newest = said("let me look")
    index = index_of([user(), newest])
    newest["tool_calls"] = call("a")["tool_calls"]
    history = [user(), newest, result("a")]
    index.update([index.included_messages()[0], *history[1:]])
    assert [(g.positions, g.kind) for g in index.groups] == [
        ((0,), cc.GroupKind.USER),
        ((1, 2), cc.GroupKind.TOOL_CALL),
    ]


def test_a_pin_that_changed_is_a_change() -> None:
    """G6: an equal message in another object may be pinned where the first was not."""
    first, twin = user("twin"), user("twin")
    index = index_of([first, said()], pinned=[twin])
    assert index.update([twin, *index.included_messages()[1:]]).first_changed == 0
    assert index.groups[0].pinned


def test_a_message_that_cannot_be_read_leaves_the_index_as_it_was() -> None:
    index = index_of(AGENT)
    before = index.snapshot()
    with pytest.raises(cc.MessageError, match=r"^messages\[3\]"):
        index.update([*AGENT[:3], {"content": "no role"}])
    assert index.snapshot() == before


# -- refresh ----------------------------------------------------------------------------------------


def test_edits_in_place_are_found() -> None:
    """C2: a refresh reads every message anew, and says which changed; only their counts are forgotten."""
    counter = RecordingCounter()
    messages = [user("one"), said("two"), user("three")]
    index = index_of(messages, counter=counter)
    index.exclude(index.groups[1], "by hand")
    assert index.total(cc.tokens) == 11
    messages[0]["content"] = "first"
    messages[1]["content"] = "second"
    counter.counted.clear()
    assert index.value(cc.tokens) == 8  # not seen yet
    assert index.refresh() == (0, 1)
    assert index.refresh() == ()
    assert (index.value(cc.tokens), index.total(cc.tokens)) == (10, 16)
    assert counter.counted == ["first", "second"]
    assert index.groups[1].excluded == "by hand"


def test_an_edit_that_changes_groups_regroups() -> None:
    """C2: from the edit on, exclusions come back."""
    messages = [user("one"), said("two"), user("three"), said("four"), user()]
    index = index_of(messages)
    for place in (0, 3):
        index.exclude(index.groups[place], "by hand")
    messages[1]["tool_calls"] = call("a")["tool_calls"]
    assert index.refresh() == (1,)
    assert index.groups[1].kind is cc.GroupKind.TOOL_CALL
    assert [group.excluded for group in index.groups] == ["by hand", None, None, None, None]


# -- formats ----------------------------------------------------------------------------------------


def test_a_format_that_shows_late_reads_the_list_anew() -> None:
    """Text alone reads alike in all formats; the first message that tells settles it, counts and all."""
    index = index_of([user(), said()], counter=len)
    assert index.format.name == "openai_chat"
    before = index.value(cc.tokens)
    index.extend(anthropic_step("a"))
    assert index.format.name == "anthropic"
    named = index_of([user(), said(), *anthropic_step("a")], counter=len, format="anthropic")
    assert index.snapshot() == named.snapshot()
    assert values(index) == values(named)
    assert index.value(cc.tokens) > before


def test_a_format_that_shows_late_brings_its_rules() -> None:
    """K7: what was out of the list before it was known to be Anthropic's keeps to the rule of the first message."""
    index = index_of([user(), said(), said("b"), user("two"), said()])
    index.exclude(index.groups[0], "by hand")
    assert index.included_positions() == [1, 2, 3, 4]
    index.update([*index_messages(index), *anthropic_step("a")])
    assert index.format.name == "anthropic"
    assert index.included_positions()[0] == 0


def index_messages(index: cc.MessageIndex) -> list[Any]:
    return [message for group in index.groups for message in index.messages_of(group)]


def test_a_format_that_shows_in_a_changed_message() -> None:
    """C2: a change is also a chance to tell."""
    messages = [user(), said(), user("two")]
    index = index_of(messages)
    index.update([messages[0], call("a", format="anthropic"), messages[2]])
    assert index.format.name == "anthropic"
    assert index.groups[1].kind is cc.GroupKind.TOOL_CALL


def test_a_format_is_settled_once() -> None:
    """A format that is known is not detected again: a foreign message is read by its rules, or refused."""
    index = index_of([user(), *step("a")])
    index.extend([said(), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}])
    assert index.format.name == "openai_chat"
    named = index_of([user()], format="anthropic")
    with pytest.raises(cc.MessageError, match=r"^messages\[1\]\.role"):
        named.extend([result("a")])


def test_an_update_that_cannot_be_read_changes_nothing() -> None:
    """All or nothing: not even equal objects have taken the place of those that stood there."""
    history = [user("one"), said("two")]
    index = cc.MessageIndex.from_messages(history, counter=characters_counter())
    with pytest.raises(cc.MessageError, match=r"^messages\[2\]"):
        index.update([dict(history[0]), dict(history[1]), {"role": "nobody"}])
    assert [id(message) for message in index.included_messages()] == [id(message) for message in history]


def test_a_list_may_tell_its_format_late() -> None:
    """Plain text reads alike in all formats; the first item that only one has decides for the whole list."""
    plain = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]
    items = [
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seen"},
    ]
    index = cc.MessageIndex.from_messages(plain, counter=len)
    grown = [plain[0], *items, plain[1]]
    assert index.update(grown) == cc.IndexUpdate(4, 1)
    assert index.format.name == "openai_responses"
    assert index.included_messages() == grown
    reducer = cc.as_chat_reducer(cc.TruncationStrategy(trigger=cc.messages > 9), counter=len, hooks=())
    assert reducer(plain) == plain
    assert reducer(grown) == grown
    assert index.update([*plain]).first_changed == 1
