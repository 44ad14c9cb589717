"""What users' own tests get: counters and random histories."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.testing import RecordingCounter, characters_counter, histories
from tests import legality
from tests.build import call, result, user
from tests.legality import FORMATS


def test_characters_counter() -> None:
    """One token a character of text; nothing for calls, names or framing."""
    index = cc.MessageIndex.from_messages([user("four"), call("a"), result("a", "ok")], counter=characters_counter())
    assert index.value(cc.tokens) == 6
    assert (index.counter.name, index.counter.exact) == ("characters", False)


def test_recording_counter() -> None:
    """It says what was counted, and when; with ``framing=True`` everything that is sent counts."""
    counter = RecordingCounter()
    index = cc.MessageIndex.from_messages([user("four"), call("a")], counter=counter)
    assert counter.counted == []
    assert index.value(cc.tokens) == 4
    assert counter.counted == ["four"]
    framed = cc.MessageIndex.from_messages([user("four"), call("a")], counter=RecordingCounter(framing=True))
    assert framed.value(cc.tokens) == 4 + 4 + 4 + len("look") + len("{}")


@given(st.data(), st.sampled_from(FORMATS))
def test_histories_are_such_as_the_provider_takes(data: st.DataObject, format: str) -> None:
    """By the rules that the providers document; a call may wait at the very end."""
    messages = data.draw(histories(format))
    # Lists of the Responses API may leave calls to the server, by what they hold.
    found = legality.faults(messages, format)
    assert all(fault.kind == "unanswered_call" and fault.position == len(messages) - 1 for fault in found)
    assert cc.MessageIndex.from_messages(messages, format=format).problems == ()


@given(st.data(), st.sampled_from(FORMATS))
def test_hostile_histories_can_be_read(data: st.DataObject, format: str) -> None:
    """Every one of them, and every message is an object of its own."""
    messages = data.draw(histories(format, hostile=True))
    index = cc.MessageIndex.from_messages(messages, format=format, counter=characters_counter())
    assert len(index) == len(messages) == len({id(message) for message in messages})


# The first one that is found will do: it need not be made small.
once = settings(max_examples=2000, database=None, phases=[Phase.generate])


def has(rule: str) -> Any:
    return lambda messages: any(
        p.rule == rule for p in cc.MessageIndex.from_messages(messages, format="anthropic").problems
    )


@pytest.mark.parametrize("rule", [rule.name for rule in cc.formats.AnthropicFormat().rules])
def test_hostile_histories_break_every_rule(rule: str) -> None:
    assert find(histories("anthropic", hostile=True), has(rule), settings=once)


@pytest.mark.parametrize("format", ["morse", "auto", None], ids=repr)
def test_an_unknown_format(format: Any) -> None:
    with pytest.raises(ValueError, match=r"^format must be one of 'openai_chat', .*'anthropic', .*, got "):
        histories(format)


def test_hypothesis_is_imported_only_when_it_is_needed() -> None:
    """It is no dependency of the package."""
    program = "import sys, chat_compaction.testing as t; t.characters_counter(); assert 'hypothesis' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
