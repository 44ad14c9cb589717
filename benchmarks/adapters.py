"""The peers: who takes a message list and a token budget, and has a release that installs beside the others.

Each is made as its documentation recommends for this task, on its own message types; converting to them is not timed.
Adapters are as small as they can be. Where a peer takes a function that counts, it gets the plain function that the
unit is measured with, and nothing remembers its counts: none of them does so as it is shipped, but agent-framework,
which keeps them on its messages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .contenders import Backend, Contender, Limits, Reduce
from .conversations import Message, text_of

# -- peers that take dicts -----------------------------------------------------------------------------


def _agentstate(backend: Backend, limits: Limits) -> Reduce:
    package = import_module("agentstate_reducer")
    config = package.ReducerConfig(
        max_tokens=limits.budget,
        target_tokens=limits.target,
        token_counter=lambda message: backend.count(text_of(message)),
    )
    reducer = package.MessageReducer(config=config)
    return lambda history: list(reducer.reduce(history).surviving)


def _ctx_compact(backend: Backend, limits: Limits) -> Reduce:
    compact = import_module("ctx_compact").compact

    def count(message: Message) -> int:
        return backend.count(text_of(message))

    return lambda history: list(compact(history, max_tokens=limits.budget, count_tokens=count).messages)


def _turnsafe(backend: Backend, limits: Limits) -> Reduce:
    fit = import_module("turnsafe").fit

    def count(message: Message) -> int:
        return backend.count(text_of(message))

    return lambda history: list(fit(history, limits.budget, "openai", counter=count))


def _litellm(backend: Backend, limits: Limits) -> Reduce:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Else its import asks the network.
    trim = import_module("litellm.utils").trim_messages
    return lambda history: list(trim(history, model="gpt-4o", max_tokens=limits.budget))


# -- peers with messages of their own ------------------------------------------------------------------


def _arguments(call: Message) -> Any:
    return json.loads(call["function"]["arguments"])


def _to_langchain(history: Sequence[Message]) -> list[Any]:
    return list(import_module("langchain_core.messages").convert_to_messages(list(history)))


def _langchain(backend: Backend, limits: Limits) -> Reduce:
    trim = import_module("langchain_core.messages").trim_messages

    def count(message: Any) -> int:
        calls = getattr(message, "tool_calls", ())
        text = message.content + "".join(call["name"] + json.dumps(call["args"]) for call in calls)
        return backend.count(text)

    def counts(messages: list[Any]) -> int:
        return sum(map(count, messages))

    return lambda history: list(
        trim(
            history,
            max_tokens=limits.budget,
            token_counter=counts,
            strategy="last",
            start_on="human",
            include_system=True,
        )
    )


def _to_framework(history: Sequence[Message]) -> list[Any]:
    package = import_module("agent_framework")

    def contents(one: Message) -> list[Any]:
        if one["role"] == "tool":
            return [package.Content.from_function_result(one["tool_call_id"], result=one["content"])]
        calls = ((call["id"], call["function"]) for call in one.get("tool_calls", ()))
        return [
            *([one["content"]] if one["content"] else []),
            *(package.Content.from_function_call(key, it["name"], arguments=it["arguments"]) for key, it in calls),
        ]

    return [package.Message(one["role"], contents(one)) for one in history]


@dataclass(frozen=True)
class _FrameworkTokenizer:
    count: Callable[[str], int]

    def count_tokens(self, text: str) -> int:
        return self.count(text)


def _framework(strategy: Callable[[Any, Any, Limits], Any]) -> Callable[[Backend, Limits], Reduce]:
    def make(backend: Backend, limits: Limits) -> Reduce:
        package = import_module("agent_framework")
        tokenizer = _FrameworkTokenizer(backend.count)
        made = strategy(package, tokenizer, limits)
        return lambda history: finished(package.apply_compaction(history, strategy=made, tokenizer=tokenizer))

    return make


def _truncation(package: Any, tokenizer: Any, limits: Limits) -> Any:
    return package.TruncationStrategy(max_n=limits.budget, compact_to=limits.target, tokenizer=tokenizer)


def _composed(package: Any, tokenizer: Any, limits: Limits) -> Any:
    strategies = [package.SlidingWindowStrategy(keep_last_groups=60)]
    return package.TokenBudgetComposedStrategy(token_budget=limits.budget, tokenizer=tokenizer, strategies=strategies)


def _to_pydantic(history: Sequence[Message]) -> list[Any]:
    package = import_module("pydantic_ai.messages")
    names = {call["id"]: call["function"]["name"] for one in history for call in one.get("tool_calls", ())}

    def convert(one: Message) -> Any:
        if one["role"] == "assistant":
            text = [package.TextPart(one["content"])] if one["content"] else []
            calls = (
                package.ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in one.get("tool_calls", ())
            )
            return package.ModelResponse([*text, *calls])
        if one["role"] == "tool":
            part = package.ToolReturnPart(names[one["tool_call_id"]], one["content"], one["tool_call_id"])
        else:
            part = (package.SystemPromptPart if one["role"] == "system" else package.UserPromptPart)(one["content"])
        return package.ModelRequest([part])

    return [convert(one) for one in history]


def _pydantic(backend: Backend, limits: Limits) -> Reduce:
    package = import_module("pydantic_ai_summarization")

    def count(message: Any) -> int:
        texts = (
            part.tool_name + part.args if part.part_kind == "tool-call" else part.content for part in message.parts
        )
        return backend.count("".join(texts))

    processor = package.create_sliding_window_processor(
        trigger=("tokens", limits.budget),
        keep=("tokens", limits.target),
        keep_head=("messages", 1),
        token_counter=lambda messages: sum(map(count, messages)),
    )
    return lambda history: finished(processor(history))


def _to_convopack(history: Sequence[Message]) -> list[Any]:
    return list(import_module("convopack.providers").from_openai(history))


@dataclass(frozen=True)
class _PackTokenizer:
    count: Callable[[str], int]
    name: str = "plain"

    def count_message(self, message: Any) -> int:
        return self.count("".join(map(self._text, message.content)))

    def count_messages(self, messages: Sequence[Any]) -> int:
        return sum(map(self.count_message, messages))

    def _text(self, block: Any) -> str:
        if block.kind == "tool_use":
            return str(block.name) + json.dumps(block.input)
        return str(block.text if block.kind == "text" else block.content)


def _convopack(backend: Backend, limits: Limits) -> Reduce:
    package = import_module("convopack")
    packer = package.Packer(
        budget=limits.budget,
        tokenizer=_PackTokenizer(backend.count),
        strategy=package.Recency(),
        pin=("system", "last_user"),
    )
    return lambda history: list(packer.pack(history).kept)


def _to_llama(history: Sequence[Message]) -> list[Any]:
    package = import_module("llama_index.core.llms")
    return [
        package.ChatMessage(
            role=one["role"],
            content=one["content"],
            additional_kwargs={key: one[key] for key in ("tool_calls", "tool_call_id") if key in one},
        )
        for one in history
    ]


def _llama(backend: Backend, limits: Limits) -> Reduce:
    memory = import_module("llama_index.core.memory")

    def reduce(history: list[Any]) -> list[Any]:
        # It wants a list of tokens, of which it takes the length.
        buffer = memory.ChatMemoryBuffer.from_defaults(
            chat_history=history, token_limit=limits.budget, tokenizer_fn=lambda text: range(backend.count(text))
        )
        return list(buffer.get())

    return reduce


def _to_autogen(history: Sequence[Message]) -> list[Any]:
    package, core = import_module("autogen_core.models"), import_module("autogen_core")

    def convert(one: Message) -> Any:
        if one["role"] == "system":
            return package.SystemMessage(content=one["content"])
        if one["role"] == "user":
            return package.UserMessage(content=one["content"], source="user")
        if one["role"] == "tool":
            result = package.FunctionExecutionResult(
                content=one["content"], name="tool", call_id=one["tool_call_id"], is_error=False
            )
            return package.FunctionExecutionResultMessage(content=[result])
        calls = [
            core.FunctionCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in one.get("tool_calls", ())
        ]
        thought = (one["content"] or None) if calls else None
        return package.AssistantMessage(content=calls or one["content"], thought=thought, source="assistant")

    return [convert(one) for one in history]


@dataclass(frozen=True)
class _AutogenClient:
    """As much of a model client as the context asks: it counts."""

    count: Callable[[str], int]

    def count_tokens(self, messages: Sequence[Any], *, tools: Sequence[Any] = ()) -> int:
        return sum(self.count(self._text(message)) for message in messages)

    def _text(self, message: Any) -> str:
        if isinstance(message.content, str):
            return message.content
        parts = (getattr(one, "content", None) or one.name + one.arguments for one in message.content)
        return (getattr(message, "thought", None) or "") + "".join(parts)


def _autogen(backend: Backend, limits: Limits) -> Reduce:
    package = import_module("autogen_core.model_context")
    client = _AutogenClient(backend.count)

    def reduce(history: list[Any]) -> list[Any]:
        context = package.TokenLimitedChatCompletionContext(client, token_limit=limits.budget, initial_messages=history)
        return list(finished(context.get_messages()))

    return reduce


def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing, without the cost of an event loop."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("the coroutine waits for something")


PEERS = (
    Contender(
        "agentstate-reducer",
        "`MessageReducer(ReducerConfig(max_tokens=budget, target_tokens=target, token_counter=...))`",
        _agentstate,
        "agentstate-reducer",
    ),
    Contender("ctx-compact", "`compact(messages, max_tokens=budget, count_tokens=...)`", _ctx_compact, "ctx-compact"),
    Contender("turnsafe", '`fit(messages, budget, "openai", counter=...)`', _turnsafe, "turnsafe", copies=True),
    Contender(
        "convopack",
        '`Packer(budget=budget, strategy=Recency(), pin=("system", "last_user"), tokenizer=...)`',
        _convopack,
        "convopack",
        convert=_to_convopack,
        read=_to_convopack,
    ),
    Contender(
        "langchain-core",
        '`trim_messages(max_tokens=budget, strategy="last", start_on="human", include_system=True, token_counter=...)`',
        _langchain,
        "langchain-core",
        convert=_to_langchain,
        read=_to_langchain,
    ),
    Contender(
        "agent-framework, truncation",
        "`TruncationStrategy(max_n=budget, compact_to=target)` through `apply_compaction`, which keeps counts and "
        "exclusions on the messages",
        _framework(_truncation),
        "agent-framework-core",
        convert=_to_framework,
        keeps=True,
    ),
    Contender(
        "agent-framework, token budget",
        "`TokenBudgetComposedStrategy(token_budget=budget, strategies=[SlidingWindowStrategy(keep_last_groups=60)])`, "
        "likewise",
        _framework(_composed),
        "agent-framework-core",
        convert=_to_framework,
        keeps=True,
    ),
    Contender(
        "pydantic-ai, sliding window",
        '`create_sliding_window_processor(trigger=("tokens", budget), keep=("tokens", target), '
        'keep_head=("messages", 1), token_counter=...)` '
        "of `summarization-pydantic-ai`: pydantic-ai has the hook, not a processor",
        _pydantic,
        "summarization-pydantic-ai",
        convert=_to_pydantic,
    ),
    Contender(
        "autogen-core",
        "`TokenLimitedChatCompletionContext(client, token_limit=budget)`, the client counts",
        _autogen,
        "autogen-core",
        convert=_to_autogen,
    ),
    Contender(
        "llama-index-core",
        "`ChatMemoryBuffer.from_defaults(token_limit=budget, tokenizer_fn=...)`, which counts content only",
        _llama,
        "llama-index-core",
        convert=_to_llama,
    ),
    Contender(
        "litellm",
        '`trim_messages(messages, model="gpt-4o", max_tokens=budget)`, which counts with its own tiktoken',
        _litellm,
        "litellm",
        copies=True,
        tokenizers=("tiktoken",),
    ),
)
