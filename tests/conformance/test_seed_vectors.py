"""The seed vectors: what the systems that this package ports do, position by position.

Departures are written into the vectors already (see the list in the documentation).
"""

import json
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "seed-vectors.json").read_text(encoding="utf-8"))[
    "vectors"
]


def by_name(vectors: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """A test for each of the vectors, by its name."""
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def strategy_of(vector: dict[str, Any]) -> cc.CompactionStrategy:
    """The strategy of a vector: its settings are the strategy's own arguments, predicates as text."""
    settings = dict(vector["settings"])
    assert settings.pop("counter") == "characters"
    for name in ("trigger", "target"):
        if settings.get(name) is not None:
            settings[name] = cc.parse_predicate(settings[name])
    if vector["strategy"] == "token_budget":
        return cc.TokenBudgetStrategy(**settings)
    assert vector["strategy"] == "truncation"
    return cc.TruncationStrategy(**settings)


def openai_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message of a vector as chat completions have it."""
    made: dict[str, Any] = {"role": message["role"], "content": message["text"]}
    if "calls" in message:
        made["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for call_id in message["calls"]
        ]
    if "result_of" in message:
        made["tool_call_id"] = message["result_of"]
    return made


def anthropic_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message of a vector as Anthropic has it: results stand in a user's message."""
    if "result_of" in message:
        block = {"type": "tool_result", "tool_use_id": message["result_of"], "content": message["text"]}
        return {"role": "user", "content": [block]}
    uses = [{"type": "tool_use", "id": call_id, "name": "look", "input": {}} for call_id in message.get("calls", ())]
    return {"role": message["role"], "content": [{"type": "text", "text": message["text"]}, *uses]}


def first_role_matters(vector: dict[str, Any]) -> bool:
    """Whether what stays does not begin with a user's message, which Anthropic's rule would change."""
    said = [m for p, m in enumerate(vector["messages"]) if p in vector["kept"] and m["role"] != "system"]
    return bool(said) and said[0]["role"] != "user"


def pins_of(vector: dict[str, Any], history: list[dict[str, Any]]) -> Any:
    """A predicate that pins what the vector pins."""
    pinned = [m for m, described in zip(history, vector["messages"], strict=True) if described.get("pinned")]
    return lambda message: any(message is one for one in pinned)


def check(vector: dict[str, Any], history: list[dict[str, Any]], format_name: str) -> None:
    """The strategy on an index and the reducer keep what the vector says, and report whether it fits."""
    strategy, counter, pinned = strategy_of(vector), cc.testing.characters_counter(), pins_of(vector, history)
    index = cc.MessageIndex.from_messages(history, counter=counter, format=format_name, pinned=pinned)
    report = strategy.compact(index, hooks=())
    assert (index.included_positions(), report.fits) == (vector["kept"], vector["fits"])

    reducer = cc.as_chat_reducer(strategy, counter=counter, format=format_name, pinned=pinned, hooks=())
    context, report = reducer.reduce_with_report(history)
    assert [id(message) for message in context] == [id(history[position]) for position in vector["kept"]]
    assert report.fits == vector["fits"]


@by_name(VECTORS)
def test_openai_chat(vector: dict[str, Any]) -> None:
    """Rules K1 to K5 on the vectors of the seeds."""
    check(vector, [openai_message(message) for message in vector["messages"]], "openai_chat")


@by_name([vector for vector in VECTORS if not first_role_matters(vector)])
def test_anthropic(vector: dict[str, Any]) -> None:
    """The same where the first message must be the user's (rule K7) and results stand in user messages (rule G5)."""
    check(vector, [anthropic_message(message) for message in vector["messages"]], "anthropic")


def test_the_vectors_cover_both_strategies() -> None:
    """A file that lost its vectors would pass everything else."""
    assert {vector["strategy"] for vector in VECTORS} == {"token_budget", "truncation"}
    assert len(VECTORS) >= 33
