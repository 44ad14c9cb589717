"""The judge itself: it accepts what the providers accept and names what they refuse."""

from typing import Any

import pytest

from tests.legality import faults, new_faults

USER: dict[str, Any] = {"role": "user", "content": "Hello."}
SYSTEM: dict[str, Any] = {"role": "system", "content": "Be brief."}
ANSWER: dict[str, Any] = {"role": "assistant", "content": "Done."}


def calls(*ids: str) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def uses(*ids: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": kind, "id": i, "name": "look", "input": {}} for i in ids]}


def results(*ids: str, kind: str = "tool_result") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": kind, "tool_use_id": i, "content": "ok"} for i in ids]}


SERVER: dict[str, Any] = {
    "role": "assistant",
    "content": [*uses("s", kind="server_tool_use")["content"], *results("s")["content"]],
}

VALID: dict[str, list[list[dict[str, Any]]]] = {
    "openai_chat": [
        [],
        [SYSTEM, USER, ANSWER],
        [ANSWER, USER],
        [USER, calls("a", "b"), result("b"), result("a"), ANSWER],
        [USER, calls("a"), result("a"), calls("a"), result("a")],
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "ok"},
        ],
    ],
    "anthropic": [
        [],
        [USER, uses("a", "b"), results("b", "a"), ANSWER],
        [USER, uses("a"), uses("b"), results("a"), results("b")],
        [USER, SERVER, ANSWER],
        [USER, uses("m", kind="mcp_tool_use"), results("m", kind="mcp_tool_result")],
        [SYSTEM, USER],
    ],
}

INVALID = [
    ("openai_chat", [USER, result("a")], ["orphan_result"]),
    ("openai_chat", [USER, calls("a"), ANSWER], ["unanswered_call"]),
    ("openai_chat", [calls("a", "b"), result("a")], ["unanswered_call"]),
    ("openai_chat", [calls("a", "a"), result("a")], ["unanswered_call"]),
    ("openai_chat", [calls("a"), result("a"), result("a")], ["second_result"]),
    ("openai_chat", [calls("a"), USER, result("a")], ["not_adjacent"]),
    ("openai_chat", [result("a"), calls("a")], ["orphan_result", "unanswered_call"]),
    ("anthropic", [ANSWER, USER], ["first_role"]),
    ("anthropic", [SYSTEM, ANSWER, USER], ["first_role"]),
    ("anthropic", [USER, uses("a"), USER, ANSWER], ["unanswered_call"]),
    ("anthropic", [USER, uses("a"), USER, ANSWER, results("a")], ["not_adjacent"]),
    ("anthropic", [results("a")], ["orphan_result"]),
    ("anthropic", [USER, uses("a"), results("a", "a")], ["second_result"]),
]


@pytest.mark.parametrize("format_name", VALID)
def test_what_a_provider_accepts_has_no_faults(format_name: str) -> None:
    for messages in VALID[format_name]:
        assert faults(messages, format_name) == [], messages


@pytest.mark.parametrize(("format_name", "messages", "kinds"), INVALID)
def test_what_a_provider_refuses_is_named(format_name: str, messages: list[Any], kinds: list[str]) -> None:
    assert [fault.kind for fault in faults(messages, format_name)] == kinds


def test_a_result_answers_the_newest_call_of_its_id_that_is_still_open() -> None:
    """Rule G2, as the judge reads it: by id and occurrence."""
    messages = [calls("a"), calls("a"), result("a")]
    assert [(fault.kind, fault.position) for fault in faults(messages, "openai_chat")] == [("unanswered_call", 0)]


@pytest.mark.parametrize(
    ("format_name", "before", "keep", "kinds"),
    [
        ("openai_chat", [USER, calls("a"), result("a"), ANSWER], (0, 2, 3), ["orphan_result"]),
        ("openai_chat", [USER, calls("a"), result("a"), ANSWER], (0, 1, 3), ["unanswered_call"]),
        ("openai_chat", [USER, calls("a"), result("a"), ANSWER], (3, 1, 0, 2), ["not_adjacent"]),
        ("openai_chat", [calls("a"), result("a"), calls("a"), result("a")], (0, 3), ["other_call"]),
        ("openai_chat", [calls("a"), result("a"), result("a")], (0, 2), ["other_call"]),
        ("openai_chat", [calls("a"), result("a"), result("a")], (0, 1), []),
        ("openai_chat", [calls("a"), USER, calls("a"), result("a"), result("a")], (0, 1, 4), []),
        ("openai_chat", [USER, calls("a"), USER], (1, 2), []),
        ("anthropic", [USER, uses("a"), results("a"), USER], (1, 2, 3), ["first_role"]),
        ("anthropic", [ANSWER, USER, ANSWER], (2,), []),
        ("anthropic", [USER, uses("a"), results("a"), ANSWER], (0, 2, 3), ["orphan_result"]),
    ],
)
def test_only_what_became_worse_counts(
    format_name: str, before: list[Any], keep: tuple[int, ...], kinds: list[str]
) -> None:
    """Rule K7: valid stays valid, and a fault that was there already is none of the compaction's."""
    before = [dict(message) for message in before]
    after = [before[position] for position in keep]
    assert [fault.kind for fault in new_faults(before, after, format_name)] == kinds
