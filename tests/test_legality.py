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


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


DIRECTIVE: dict[str, Any] = {"role": "system", "content": [], "output_config": {"effort": "low"}}
SUMMARY: dict[str, Any] = {"role": "assistant", "content": [{"type": "compaction", "content": "All so far."}]}

THOUGHT: dict[str, Any] = {"type": "reasoning", "summary": []}
HOSTED: dict[str, Any] = {"type": "web_search_call", "id": "ws_1"}


def item(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def part(key: str, role: str = "model", **body: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{key: body}]}


SAYS: dict[str, Any] = {"parts": [{"text": "Hello."}]}
MODEL_SAYS: dict[str, Any] = {"role": "model", "parts": [{"text": "Done."}]}
MODEL_CALLS: dict[str, Any] = {"role": "model", "parts": [{"functionCall": {"name": "look"}}] * 2}
MODEL_RESULTS: dict[str, Any] = {"role": "user", "parts": [{"functionResponse": {"name": "look"}}] * 2}

SAYS_BEDROCK: dict[str, Any] = {"role": "user", "content": [{"text": "Hello."}, {"cachePoint": {"type": "default"}}]}
USE_BEDROCK: dict[str, Any] = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "look"}}]}
RESULT_BEDROCK: dict[str, Any] = {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": []}}]}


def turn(speaker: str, value: str = "Hello.") -> dict[str, Any]:
    return {"from": speaker, "value": value}


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
        [USER, SYSTEM, SYSTEM, ANSWER],
        [USER, uses("a"), results("a"), SYSTEM],
        [USER, SERVER, SYSTEM, ANSWER],
        [USER, DIRECTIVE, USER, DIRECTIVE, ANSWER],
        [SUMMARY, USER, ANSWER, SUMMARY, USER],
        [USER, uses("c", kind="server_tool_use"), uses("a"), results("a"), results("c", kind="x_tool_result")],
        [USER, uses("a"), {"role": "user", "content": [*results("a")["content"], text("And?")]}],
        [USER, {"role": "assistant", "content": [text("\n\n"), *uses("a")["content"]]}, results("a")],
    ],
    "mistral": [[SYSTEM, USER, SYSTEM, calls("a"), result("a"), ANSWER, USER], [USER, ANSWER, ANSWER, USER, USER]],
    "openai_responses": [
        [ANSWER, USER, THOUGHT, item("a"), THOUGHT, item("b"), output("b"), USER, output("a")],
        [THOUGHT, HOSTED, THOUGHT, ANSWER, {"type": "compaction", "encrypted_content": "x"}, USER],
        [output("before"), ANSWER, output("more")],
        [USER, {"type": "item_reference", "id": "fc_1"}, output("before"), {"id": "fc_2"}, output("more")],
    ],
    "gemini": [
        [SAYS, MODEL_CALLS, MODEL_RESULTS, MODEL_CALLS, MODEL_RESULTS, SAYS, MODEL_SAYS, MODEL_SAYS],
        [SAYS, part("function_call", name="x", id="1"), part("function_response", "user", name="x", id="1")],
    ],
    "bedrock_converse": [
        [SAYS_BEDROCK, USE_BEDROCK, RESULT_BEDROCK, {"role": "assistant", "content": [{"text": "."}]}]
    ],
    "langchain": [
        [
            {"type": "human", "content": "Hello."},
            {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "a", "name": "look", "args": {}}]}},
            {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": {"content": "ok", "tool_call_id": "a"}},
        ]
    ],
    "sharegpt": [
        [turn("system"), turn("human"), turn("function_call"), turn("observation"), turn("gpt"), turn("human")],
        [turn("human"), turn("gpt", "<tool_call>{}</tool_call>"), turn("observation")],
    ],
    "gemini_cli": [
        [
            {"type": "user", "content": "Hello."},
            {"type": "gemini", "content": "", "toolCalls": [{"id": "a", "name": "look", "result": [{"text": "ok"}]}]},
        ]
    ],
    "pi_session": [
        [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "look", "arguments": {}}]},
            {"role": "bashExecution", "command": "ls", "output": ""},
            {"role": "toolResult", "toolCallId": "a", "toolName": "look", "content": []},
        ]
    ],
}

LATE: dict[str, Any] = {"role": "user", "content": [text("And?"), *results("a")["content"]]}
INVALID = [
    ("openai_chat", [USER, result("a")], ["orphan_result"]),
    ("openai_chat", [USER, calls("a"), ANSWER], ["unanswered_call"]),
    ("openai_chat", [calls("a", "b"), result("a")], ["unanswered_call"]),
    ("openai_chat", [calls("a", "a"), result("a")], ["unanswered_call"]),
    ("openai_chat", [calls("a"), result("a"), result("a")], ["second_result"]),
    ("openai_chat", [calls("a"), USER, result("a")], ["not_adjacent"]),
    ("openai_chat", [result("a"), calls("a")], ["orphan_result", "unanswered_call"]),
    ("anthropic", [ANSWER, USER], ["first_role"]),
    ("anthropic", [SYSTEM, ANSWER, USER], ["first_role", "system_place"]),
    ("anthropic", [USER, uses("a"), USER, ANSWER], ["unanswered_call"]),
    ("anthropic", [USER, uses("a"), USER, ANSWER, results("a")], ["not_adjacent"]),
    ("anthropic", [results("a")], ["orphan_result"]),
    ("anthropic", [USER, uses("a"), results("a", "a")], ["second_result"]),
    ("anthropic", [SYSTEM, USER], ["system_place"]),
    ("anthropic", [USER, ANSWER, SYSTEM, ANSWER], ["system_place"]),
    ("anthropic", [USER, SYSTEM, USER], ["system_place"]),
    ("anthropic", [USER, uses("a"), results("a"), uses("a"), results("a")], ["repeated_id"]),
    ("anthropic", [USER, uses("a"), USER, results("a")], ["not_adjacent"]),
    ("anthropic", [USER, uses("a"), LATE], ["results_first"]),
    ("anthropic", [USER, {"role": "assistant", "content": [text("")]}, USER], ["empty"]),
    ("anthropic", [{"role": "user", "content": " \n"}, ANSWER], ["empty"]),
    ("mistral", [USER, calls("a"), result("a"), USER], ["user_after_tool"]),
    ("mistral", [USER, ANSWER, SYSTEM, USER], ["system_after_answer"]),
    ("openai_responses", [USER, THOUGHT, USER], ["thought_alone"]),
    ("openai_responses", [USER, output("a")], ["orphan_result"]),
    ("openai_responses", [USER, item("a"), USER], ["unanswered_call"]),
    ("gemini", [MODEL_CALLS, MODEL_RESULTS], ["first_role"]),
    ("gemini", [SAYS, MODEL_SAYS, MODEL_CALLS, MODEL_RESULTS], ["call_place"]),
    ("gemini", [SAYS, MODEL_CALLS, SAYS], ["unanswered_call", "unanswered_call", "unequal_results"]),
    ("gemini", [{"role": "user", "parts": []}, MODEL_SAYS], ["empty"]),
    ("bedrock_converse", [SAYS_BEDROCK, SAYS_BEDROCK], ["alternation"]),
    ("bedrock_converse", [USE_BEDROCK, RESULT_BEDROCK], ["first_role"]),
    ("bedrock_converse", [{"role": "user", "content": [{"text": " "}, {"text": "x"}]}], ["empty"]),
    ("sharegpt", [turn("human"), turn("gpt"), turn("gpt")], ["alternation"]),
    ("sharegpt", [turn("gpt"), turn("human")], ["first_role"]),
    ("sharegpt", [turn("human"), turn("gpt"), turn("observation")], ["orphan_result"]),
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
        ("openai_responses", [USER, THOUGHT, item("a"), output("a")], (0, 2, 3), ["parted_reasoning"]),
        ("openai_responses", [USER, THOUGHT, ANSWER, item("a"), output("a")], (0, 1, 3, 4), ["parted_reasoning"]),
        ("openai_responses", [USER, {"id": "fc_1"}, output("x"), USER, output("y")], (0, 3, 4), []),
        ("mistral", [USER, ANSWER, USER, SYSTEM, ANSWER], (0, 1, 3, 4), ["system_after_answer"]),
        ("bedrock_converse", [SAYS_BEDROCK, SAYS_BEDROCK, SAYS_BEDROCK], (0, 2), []),
    ],
)
def test_only_what_became_worse_counts(
    format_name: str, before: list[Any], keep: tuple[int, ...], kinds: list[str]
) -> None:
    """Rule K7: valid stays valid, and a fault that was there already is none of the compaction's."""
    before = [dict(message) for message in before]
    after = [before[position] for position in keep]
    assert [fault.kind for fault in new_faults(before, after, format_name)] == kinds
