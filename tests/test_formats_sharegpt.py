"""ShareGPT conversations: who speaks, and what is a call or its result."""

import copy
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Message, Part, PartKind, Role
from chat_compaction.formats.sharegpt import ShareGPTFormat

TEXT, CALL, RESULT = PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT
FORMAT = ShareGPTFormat()


def says(speaker: Any, value: Any) -> dict[str, Any]:
    return {"from": speaker, "value": value}


@pytest.mark.parametrize(
    ("speaker", "role", "kind"),
    [
        ("human", Role.USER, TEXT),
        ("user", Role.USER, TEXT),
        ("gpt", Role.ASSISTANT, TEXT),
        ("assistant", Role.ASSISTANT, TEXT),
        ("system", Role.SYSTEM, TEXT),
        ("function_call", Role.ASSISTANT, CALL),
        ("observation", Role.TOOL, RESULT),
        ("tool", Role.TOOL, RESULT),
    ],
)
@pytest.mark.parametrize("keys", [("from", "value"), ("role", "content")])
def test_roles(speaker: str, role: Role, kind: PartKind, keys: tuple[str, str]) -> None:
    """The roles of LLaMA-Factory's documentation and their usual other names, under both names of the keys."""
    assert FORMAT.read(dict(zip(keys, (speaker, "words"), strict=True)), 0) == Message(role, (Part(kind, "words"),))


def test_empty_text() -> None:
    """C1: nothing is nothing; a result without text answers its call all the same."""
    assert FORMAT.read(says("gpt", ""), 0) == FORMAT.read(says("gpt", None), 0) == Message(Role.ASSISTANT)
    assert FORMAT.read(says("observation", ""), 0) == Message(Role.TOOL, (Part(RESULT),))


def test_calls_in_a_text_are_calls() -> None:
    """Hermes data sets write the call into what the model says."""
    text = 'Let me see. <tool_call>{"name": "look"}</tool_call>'
    assert FORMAT.read(says("gpt", text), 0) == Message(Role.ASSISTANT, (Part(CALL, text),))
    assert FORMAT.read(says("human", text), 0).parts[0].kind is TEXT


def test_results_are_tied_by_order() -> None:
    """G2: calls have no ids, so a result answers the newest call; each pair is a group of its own."""
    history = [says("human", "q"), says("function_call", "{}"), says("observation", "1"), says("gpt", "a")]
    history += [says("human", "q"), says("function_call", "{}"), says("observation", "2"), says("gpt", "b")]
    index = cc.MessageIndex.from_messages(history, format=FORMAT)
    assert [group.positions for group in index.groups] == [(0,), (1, 2), (3,), (4,), (5, 6), (7,)]
    assert index.problems == ()
    orphan = cc.MessageIndex.from_messages([says("human", "q"), says("observation", "1")], format=FORMAT)
    assert "orphan_result" in {problem.rule for problem in orphan.problems}


@pytest.mark.parametrize(
    ("history", "rule"),
    [
        ([says("gpt", "a"), says("human", "q")], "first_user"),
        ([says("human", "q"), says("human", "q")], "alternation"),
        ([says("human", "q"), says("gpt", "a"), says("function_call", "{}"), says("observation", "1")], "alternation"),
    ],
)
def test_rules(history: list[Any], rule: str) -> None:
    """K7: human and observation at odd places, gpt and function_call at even ones, behind a system message."""
    found = cc.MessageIndex.from_messages([says("system", "s"), *history], format=FORMAT).problems
    assert rule in {problem.rule for problem in found}


def test_detection() -> None:
    """Only the keys tell: with role and content it may be any format's."""
    assert FORMAT.claims(says("gpt", "a"))
    assert not FORMAT.claims({"role": "user", "content": "a"})
    assert not FORMAT.claims("from value")


def test_joined() -> None:
    """Two texts of one speaker become one; calls, results and texts of two speakers do not."""
    first, second = says("human", "a"), {"role": "user", "content": "b", "weight": 1}
    before = copy.deepcopy((first, second))
    assert FORMAT.joined(first, second) == says("human", "a\n\nb")
    assert (first, second) == before
    assert FORMAT.joined(says("human", ""), says("human", "b")) == says("human", "b")
    assert FORMAT.joined(first, says("gpt", "b")) is None
    assert FORMAT.joined(says("gpt", "a"), says("function_call", "{}")) is None
    assert FORMAT.without(first, {0}) is None
    assert FORMAT.renamed(says("function_call", "{}"), 0, "x") is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (says("alien", "a"), ".from must be one of human, "),
        ({"value": "a"}, ".from is missing (read as 'sharegpt'"),
        (says("gpt", ["a"]), ".value must be a string, got a list"),
        ({"role": "user", "content": 7}, ".content must be a string, got 7"),
    ],
)
def test_what_cannot_be_read(raw: Any, message: str) -> None:
    """An error names position and path."""
    with pytest.raises(cc.MessageError) as caught:
        FORMAT.read(raw, 5)
    assert str(caught.value).startswith(f"messages[5]{message}")
