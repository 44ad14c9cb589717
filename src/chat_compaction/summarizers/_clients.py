"""Summarisers on the clients of the SDKs, sync or async. No SDK is imported here: whoever has a client has it."""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import attrs

from .._summarizing import SummaryRequest
from .._validators import a_plain_function, non_negative, one_of
from ..counters._adapters import encodable
from ._answers import OnUsage, at, chat_text, messages_text, responses_text, usage_of
from ._values import a_text, at_least, copied, free_of, repr_of

CHAT = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "tools", "functions", "stream", "n"})
_RESPONSES = frozenset(
    {"instructions", "input", "max_output_tokens", "background", "conversation", "previous_response_id"}
)
_MESSAGES = frozenset({"model", "messages", "system", "max_tokens", "tools", "mcp_servers", "stream"})

LimitField = Literal["max_tokens", "max_completion_tokens"]
limit_fields = one_of(("max_tokens", "max_completion_tokens"))
a_window = attrs.validators.optional(at_least(1))
a_usage_hook = attrs.validators.optional(a_plain_function)


def chat_payload(
    request: SummaryRequest, model: str, limit_field: str, reasoning_tokens: int, more: dict[str, Any]
) -> dict[str, Any]:
    """The request in the terms of Chat Completions: orders and data apart, no tools."""
    return {
        **more,
        "model": model,
        "messages": [
            {"role": "system", "content": encodable(request.instructions)},
            {"role": "user", "content": encodable(request.text)},
        ],
        limit_field: request.max_tokens + reasoning_tokens,
    }


def read(answer: Any, text_of: Callable[[Any], str], model: str, on_usage: OnUsage | None) -> str:
    """The text of an answer; what it cost is told first, since a useless answer costs the same."""
    usage = usage_of(answer, model) if on_usage is not None else None
    if on_usage is not None and usage is not None:
        try:
            on_usage(usage)
        except Exception:
            logging.getLogger("chat_compaction").exception("on_usage %r failed", on_usage)
    return text_of(answer)


class _ClientSummarizer(ABC):
    """Asks a client of an SDK. What the client raises goes to the strategy, which restores everything (rule S3)."""

    __slots__ = ()

    model: str
    on_usage: OnUsage | None

    def __call__(self, request: SummaryRequest) -> str | Awaitable[str]:
        """The summary; where the client is async, something to await."""
        answer = self._asked(request)
        return self._awaited(answer) if inspect.isawaitable(answer) else self._read(answer)

    async def _awaited(self, answer: Awaitable[Any]) -> str:
        return self._read(await answer)

    def _read(self, answer: Any) -> str:
        return read(answer, self._text_of, self.model, self.on_usage)

    @abstractmethod
    def _asked(self, request: SummaryRequest) -> Any:
        """What the client gives: an answer, or a coroutine."""

    @property
    @abstractmethod
    def _text_of(self) -> Callable[[Any], str]:
        """How the answer is read."""

    def __repr__(self) -> str:
        return repr_of(self)


def _has(path: tuple[str, ...], expected: str) -> Callable[[object, attrs.Attribute[Any], object], None]:
    def validator(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if isinstance(value, type) or not callable(at(value, *path)):
            raise TypeError(f"{attribute.alias} must be {expected}, got {type(value).__name__}")

    return validator


@attrs.frozen(repr=False)
class OpenAISummarizer(_ClientSummarizer):
    """Summarises with an ``openai.OpenAI`` or ``openai.AsyncOpenAI`` client, or one that has the same methods.

    ``api`` is ``"chat"`` (Chat Completions) or ``"responses"``, there with ``store=False``: the provider keeps
    nothing. ``options`` are further arguments of the request, such as ``{"reasoning_effort": "low"}``.
    ``limit_field`` is how Chat Completions is told the bound of the answer. ``reasoning_tokens`` come on top of that
    bound, for models that think before they answer. ``window`` is how many tokens the model takes. ``on_usage``
    gets a :class:`SummaryUsage` for each answer. Timeouts and retries are the client's.
    """

    client: Any = attrs.field(
        eq=False, repr=False, validator=_has(("chat", "completions", "create"), "an openai.OpenAI or AsyncOpenAI")
    )
    model: str = attrs.field(validator=a_text)
    api: Literal["chat", "responses"] = attrs.field(
        default="chat", kw_only=True, validator=one_of(("chat", "responses"))
    )
    options: dict[str, Any] = attrs.field(
        factory=dict, kw_only=True, converter=copied, validator=free_of(CHAT | _RESPONSES), hash=False
    )
    limit_field: LimitField = attrs.field(default="max_completion_tokens", kw_only=True, validator=limit_fields)
    reasoning_tokens: int = attrs.field(default=0, kw_only=True, validator=non_negative)
    window: int | None = attrs.field(default=None, kw_only=True, validator=a_window)
    on_usage: OnUsage | None = attrs.field(default=None, kw_only=True, eq=False, repr=False, validator=a_usage_hook)

    def _asked(self, request: SummaryRequest) -> Any:
        if self.api == "chat":
            payload = chat_payload(request, self.model, self.limit_field, self.reasoning_tokens, self.options)
            return self.client.chat.completions.create(**payload)
        arguments = {
            "store": False,
            **self.options,
            "model": self.model,
            "instructions": encodable(request.instructions),
            "input": encodable(request.text),
            "max_output_tokens": request.max_tokens + self.reasoning_tokens,
        }
        return self.client.responses.create(**arguments)

    @property
    def _text_of(self) -> Callable[[Any], str]:
        return chat_text if self.api == "chat" else responses_text


@attrs.frozen(repr=False)
class AnthropicSummarizer(_ClientSummarizer):
    """Summarises with an ``anthropic.Anthropic`` or ``AsyncAnthropic`` client, or one for Bedrock, Vertex or Foundry.

    ``options`` are further arguments of the request, such as ``{"thinking": {"type": "adaptive"}}``;
    thinking comes out of ``reasoning_tokens``, which are allowed on top of the bound of the answer. ``window`` is how
    many tokens the model takes. ``on_usage`` gets a :class:`SummaryUsage` for each answer. Timeouts and retries are
    the client's.
    """

    client: Any = attrs.field(
        eq=False, repr=False, validator=_has(("messages", "create"), "an anthropic.Anthropic or AsyncAnthropic")
    )
    model: str = attrs.field(validator=a_text)
    options: dict[str, Any] = attrs.field(
        factory=dict, kw_only=True, converter=copied, validator=free_of(_MESSAGES), hash=False
    )
    reasoning_tokens: int = attrs.field(default=0, kw_only=True, validator=non_negative)
    window: int | None = attrs.field(default=None, kw_only=True, validator=a_window)
    on_usage: OnUsage | None = attrs.field(default=None, kw_only=True, eq=False, repr=False, validator=a_usage_hook)

    def _asked(self, request: SummaryRequest) -> Any:
        return self.client.messages.create(
            **self.options,
            model=self.model,
            system=encodable(request.instructions),
            messages=[{"role": "user", "content": encodable(request.text)}],
            max_tokens=request.max_tokens + self.reasoning_tokens,
        )

    @property
    def _text_of(self) -> Callable[[Any], str]:
        return messages_text
