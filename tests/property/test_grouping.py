"""Grouping over random histories, hostile ones too, against the slow and obvious way (rules G1 to G6)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.testing import characters_counter
from tests.naive import History
from tests.property.drawing import KNOWN, Drawn, drawn_histories


def shown(index: cc.MessageIndex) -> list[tuple[Any, ...]]:
    """The groups of an index in the words of the oracle."""
    return [(list(g.positions), g.kind.value, g.turn, g.pinned, g.pending) for g in index.groups]


def expected(history: History) -> list[tuple[Any, ...]]:
    """The groups of the oracle."""
    return [(g.positions, g.kind, g.turn, g.pinned, g.pending) for g in history.groups]


@given(drawn_histories())
def test_groups_partition_the_history(drawn: Drawn) -> None:
    """G1: every message is in exactly one group, groups stand by their first message, and projection keeps order."""
    index = drawn.index()
    positions = [position for group in index.groups for position in group.positions]
    assert sorted(positions) == list(range(len(drawn.messages)))
    assert all(list(group.positions) == sorted(group.positions) for group in index.groups)
    assert [group.positions[0] for group in index.groups] == sorted(group.positions[0] for group in index.groups)
    projected = index.included_messages()
    assert len(projected) == len(drawn.messages)
    assert all(ours is theirs for ours, theirs in zip(projected, drawn.messages, strict=True))


@given(drawn_histories(*KNOWN), st.integers(0, 3))
def test_groups_are_what_the_rules_say(drawn: Drawn, pending_turns: int) -> None:
    """G2 to G6: pairs by id and occurrence, kinds, turns, pins and what is pending."""
    history = History(drawn.messages, drawn.format, drawn.pinned, pending_turns)
    assert shown(drawn.index(pending_turns=pending_turns)) == expected(history)


@given(drawn_histories(), st.data())
def test_pieces_group_like_the_whole(drawn: Drawn, data: st.DataObject) -> None:
    """Reading a history in pieces gives the same groups, problems and totals as reading it at once."""
    whole = drawn.index()
    pieces = Drawn([], drawn.format, drawn.pinned, drawn.messages).index()
    at = 0
    while at < len(drawn.messages):
        size = data.draw(st.integers(1, len(drawn.messages) - at))
        pieces.extend(drawn.messages[at : at + size])
        at += size
    assert pieces.snapshot() == whole.snapshot()
    assert pieces.problems == whole.problems
    assert [pieces.total(metric) for metric in METRICS] == [whole.total(metric) for metric in METRICS]


METRICS = (cc.tokens, cc.messages, cc.groups, cc.turns, cc.tool_groups)


@given(st.sampled_from(KNOWN), st.data())
def test_a_format_found_late_reads_like_one_that_is_named(format: str, data: st.DataObject) -> None:
    """A list whose format shows only later is read anew from its start (only text reads alike in all formats)."""
    drawn = data.draw(drawn_histories(format))
    named = drawn.index()
    cut = data.draw(st.integers(0, len(drawn.messages)))
    found = cc.MessageIndex.from_messages(drawn.messages[:cut], pinned=drawn.pins, counter=characters_counter())
    found.extend(drawn.messages[cut:])
    if found.format is named.format:
        assert found.snapshot() == named.snapshot()
    else:
        # Nothing in the list told: it is text alone.
        assert all(set(message) == {"role", "content"} for message in drawn.messages)
        contents = [message["content"] for message in drawn.messages if isinstance(message["content"], list)]
        assert {block["type"] for content in contents for block in content} <= {"text"}
