"""The providers' own packages accept what comes out: of a compaction, with reasoning kept or dropped, and of a repair.

Every recorded session, and the same with messages missing, doubled and misplaced. What a package refuses as it was
recorded is nobody's fault here: each message, or each list where a package judges lists, is compared with what it was.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction.formats import FORMATS, Format, PartKind, Role
from chat_compaction.testing import characters_counter, histories
from tests import _shared

Accepts = Callable[[Sequence[Any]], bool]


def typed(type_: Any) -> Accepts:
    """Each message is one of a type, as Pydantic judges it."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(type_)

    def accepts(messages: Sequence[Any]) -> bool:
        try:
            for message in messages:
                force(adapter.validate_python(message))
        except ValidationError:
            return False
        return True

    return accepts


def force(value: Any) -> None:
    """Go through all of it: Pydantic judges what is typed as iterable only when somebody iterates."""
    if isinstance(value, str | bytes):
        return
    if isinstance(value, dict):
        force(value.values())
    elif hasattr(value, "__iter__"):
        for item in value:
            force(item)


@cache
def openai_chat() -> Accepts:
    from openai.types.chat import ChatCompletionMessageParam

    return typed(ChatCompletionMessageParam)


@cache
def openai_responses() -> Accepts:
    from openai.types.responses import ResponseInputItemParam

    return typed(ResponseInputItemParam)


@cache
def anthropic() -> Accepts:
    from anthropic.types import MessageParam

    return typed(MessageParam)


@cache
def gemini() -> Accepts:
    from google.genai import types

    return typed(types.Content)


@cache
def bedrock_converse() -> Accepts:
    """The request of ``converse``, as boto3 checks it before it sends anything."""
    from botocore.session import get_session  # type: ignore[import-untyped]
    from botocore.validate import ParamValidator  # type: ignore[import-untyped]

    service = get_session().get_service_model("bedrock-runtime")
    shape = service.operation_model("Converse").input_shape

    def accepts(messages: Sequence[Any]) -> bool:
        request = {"modelId": "model", "messages": with_bytes(list(messages))}
        return not ParamValidator().validate(request, shape).has_errors()

    return accepts


def with_bytes(value: Any) -> Any:
    """What JSON holds as text where boto3 wants bytes."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    data = ("bytes", "redactedContent")
    return {k: v.encode() if k in data and isinstance(v, str) else with_bytes(v) for k, v in value.items()}


@cache
def langchain() -> Accepts:
    from langchain_core.messages import convert_to_messages, messages_from_dict

    def accepts(messages: Sequence[Any]) -> bool:
        stored = [{"type": message["type"], "data": message} for message in messages]
        return len(convert_to_messages(messages_from_dict(stored))) == len(messages)

    return accepts


@cache
def mistral() -> Accepts:
    """The judge of requests in Mistral's own package: roles in order, and the results of calls by their ids."""
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import MistralRequestValidatorV15, ValidationMode

    validator = MistralRequestValidatorV15(mode=ValidationMode.agnostic)

    def accepts(messages: Sequence[Any]) -> bool:
        try:
            validator.validate_request(ChatCompletionRequest.from_openai(as_text(list(messages)), model="model"))
        except MistralCommonException:
            return False
        return True

    return accepts


def as_text(value: Any) -> Any:
    """What the API has as a list of parts where the package wants text."""
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if not isinstance(value, dict):
        return value
    thought = value.get("thinking") if value.get("type") == "thinking" else None
    text = "".join(part["text"] for part in thought) if isinstance(thought, list) else thought
    return {**value, "thinking": text} if thought else {key: as_text(item) for key, item in value.items()}


@dataclass(frozen=True)
class Package:
    """A package, the format that it reads, and whether it judges whole lists."""

    accepts: Callable[[], Accepts]
    format: str
    lists: bool = False
    recorded: str = ""
    """The folder of sessions, where it is not the format's own."""

    @property
    def sessions(self) -> list[list[Any]]:
        """The recorded sessions."""
        return [_shared.load_session(path) for path in _shared.recorded_sessions(self.recorded or self.format)]


PACKAGES = {
    "openai": Package(openai_chat, "openai_chat"),
    "openai-responses": Package(openai_responses, "openai_responses"),
    "anthropic": Package(anthropic, "anthropic"),
    "google-genai": Package(gemini, "gemini"),
    "boto3": Package(bedrock_converse, "bedrock_converse", lists=True),
    "langchain-core": Package(langchain, "langchain"),
    "mistral-common": Package(mistral, "mistral", lists=True, recorded="openai_chat"),
}


@dataclass
class Comparison:
    """What a package says of a history and of what came out of it."""

    package: Package
    tally: Tally[str] = field(default_factory=Tally)
    refused: list[Any] = field(default_factory=list)
    _known: dict[int, tuple[Any, bool]] = field(default_factory=dict)

    def compare(self, before: Sequence[Any], after: Sequence[Any], positions: Sequence[int]) -> None:
        """``positions`` tell where in ``before`` each message of ``after`` stood."""
        if self.package.lists:
            pairs = [(list(before), list(after))]
        else:
            pairs = [([before[place]], [message]) for place, message in zip(positions, after, strict=True)]
        for was, now in pairs:
            copies = sum(all(message is not other for other in was) for message in now)
            if self.accepts(now):
                self.tally.update(accepted=1, copies=copies)
            elif self.accepts(was):
                self.refused.append(now)
            else:
                self.tally["refused as recorded"] += 1

    def accepts(self, messages: list[Any]) -> bool:
        """What the package says; of one message it is asked once."""
        if len(messages) != 1:
            return self.package.accepts()(messages)
        known = self._known.get(id(messages[0]))
        if known is None:
            known = self._known[id(messages[0])] = messages[0], self.package.accepts()(messages)
        return known[1]


SETTINGS: tuple[tuple[Literal["keep", "drop"], float], ...] = (("keep", 0.5), ("drop", 0.5), ("drop", 0.2))


def compacted(messages: Sequence[Any], format: str) -> Iterator[tuple[list[Any], list[int]]]:
    """What is left of a history, with its reasoning and without, and the positions."""
    for bound_reasoning, share in SETTINGS:
        index = cc.MessageIndex.from_messages(
            messages, format=format, counter=characters_counter(), bound_reasoning=bound_reasoning, validate=True
        )
        limit = int(index.value(cc.tokens) * share)
        cc.TokenBudgetStrategy(limit, min_preserved_groups=1).compact(index, hooks=())
        yield index.included_messages(), index.included_positions()


def damaged(messages: Sequence[Any], seed: int) -> list[Any]:
    """A history with messages missing, doubled and misplaced."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    kept = [m for m in messages for _ in range(chance.choice((0, 1, 1, 1, 1, 1, 1, 1, 1, 2)))]
    for _ in range(len(kept) // 10):
        kept.insert(chance.randrange(len(kept)), kept.pop(chance.randrange(len(kept))))
    return kept


@pytest.mark.parametrize("name", PACKAGES)
def test_what_comes_out_is_accepted(name: str, request: pytest.FixtureRequest) -> None:
    """Rule K7, and of a repair: no message becomes one that the package refuses."""
    package = PACKAGES[name]
    comparison = Comparison(package)
    repairs = 0
    for messages in package.sessions:
        for after, positions in compacted(messages, package.format):
            comparison.compare(messages, after, positions)
        for seed in range(3):
            broken = damaged(messages, seed)
            repaired = cc.repair(broken, format=package.format, pending_turns=0)
            repairs += len(repaired.repairs)
            if not package.lists:
                comparison.compare(broken, repaired.messages, repaired.positions)
            elif not repaired.problems:
                comparison.compare(messages, repaired.messages, repaired.positions)
    _shared.told(request.config).append(f"{name}: {dict(comparison.tally)}, {repairs} repairs")
    assert comparison.refused == []
    assert comparison.tally["accepted"] > 0
    assert repairs > 0


def rewritten(format: Format, raw: Any) -> Any:
    """The message with other texts, where each part that can be written says something else."""
    parts = enumerate(format.read(raw, 0).parts)
    texts = {
        number: '{"said": "[cleared]"}' if part.kind is PartKind.TOOL_CALL else "[cleared]"
        for number, part in parts
        if part.kind in WRITABLE
    }
    written = format.with_texts(raw, texts)
    if written is not None:
        return written
    for number, text in texts.items():
        written = format.with_texts(raw, {number: text})
        raw = raw if written is None else written
    return raw


WRITABLE = (PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT)


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_written_is_accepted(name: str) -> None:
    """Rule K7: no message becomes one that the package refuses when its texts are replaced, or by one that says so."""
    package = PACKAGES[name]
    format, comparison = FORMATS[package.format], Comparison(package)
    for messages in package.sessions:
        comparison.compare(messages, [rewritten(format, raw) for raw in messages], range(len(messages)))
        for role in (Role.USER, Role.ASSISTANT):
            assert package.accepts()([format.saying(messages[0], "A summary.", role)]) or role is Role.ASSISTANT
    assert comparison.refused == []
    assert comparison.tally["copies"] > 0


@given(st.data(), st.integers(0, 60))
def test_mistral_accepts_what_is_left_of_a_random_history(data: st.DataObject, limit: int) -> None:
    """Rule K7 by Mistral's own judge of whole lists."""
    messages = data.draw(histories("mistral"))
    accepts = mistral()
    strategy = cc.TokenBudgetStrategy(limit, min_preserved_groups=1, evict="groups")
    after = cc.as_chat_reducer(strategy, format="mistral", counter=characters_counter(), hooks=()).reduce(messages)
    assert accepts(messages)
    assert accepts(after)
