"""Summarisers on the SDKs' own clients, sync and async, against a real server on the loopback interface."""

import asyncio
import logging
import pickle
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import anthropic
import attrs
import httpx2
import openai
import pytest

from chat_compaction.summarizers import (
    AnthropicSummarizer,
    OpenAISummarizer,
    SummaryError,
    SummaryRequest,
    SummaryUsage,
)
from tests.model_server import (
    PATHS,
    REQUEST,
    SAID,
    TEXT,
    ModelServer,
    Reply,
    chat,
    failure,
    messages,
    model_server,
    output_text,
    responses,
)

APIS = ("chat", "responses", "messages")
GOOD = {"chat": chat(), "responses": responses(), "messages": messages()}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


def client_of(api: str, server: ModelServer, *, asynchronous: bool, timeout: float = 5) -> Any:
    # Loading the certificates of the system takes most of the time of a test, and nothing here is encrypted.
    http = (httpx2.AsyncClient if asynchronous else httpx2.Client)(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    more: dict[str, Any] = {"api_key": "sk-test", "max_retries": 1, "timeout": timeout, "http_client": http}
    if api == "messages":
        return (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(base_url=server.url, **more)
    return (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(base_url=f"{server.url}/v1", **more)


def summarizer_of(api: str, client: Any, **more: Any) -> OpenAISummarizer | AnthropicSummarizer:
    if api == "messages":
        return AnthropicSummarizer(client, "small", **more)
    return OpenAISummarizer(client, "small", api="chat" if api == "chat" else "responses", **more)


Ask = Callable[..., str]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: ModelServer) -> Ask:
    """Asks through a new client of an API, and closes it."""

    def sync(api: str, timeout: float = 5, asked: SummaryRequest = REQUEST, **more: Any) -> str:
        with ExitStack() as stack:
            client = stack.enter_context(client_of(api, server, asynchronous=False, timeout=timeout))
            answer = summarizer_of(api, client, **more)(asked)
            assert isinstance(answer, str)
            return answer

    async def awaited(api: str, timeout: float = 5, asked: SummaryRequest = REQUEST, **more: Any) -> str:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(client_of(api, server, asynchronous=True, timeout=timeout))
            answer = summarizer_of(api, client, **more)(asked)
            assert isinstance(answer, Awaitable)
            return await answer

    return (lambda *args, **more: asyncio.run(awaited(*args, **more))) if request.param else sync


# -- a good answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_the_text_of_the_answer(ask: Ask, server: ModelServer, api: str) -> None:
    """The text alone is the summary: no reasoning, no white space around it."""
    server.answers(Reply(content=GOOD[api]))
    assert ask(api) == TEXT
    (asked,) = server.asked
    assert asked.path == PATHS[api]


@pytest.mark.parametrize("api", APIS)
def test_what_is_asked(ask: Ask, server: ModelServer, api: str) -> None:
    """Orders and data apart, the bound of the answer, no tools (rule S2); a lone surrogate breaks nothing."""
    server.answers(Reply(content=GOOD[api]))
    ask(api, reasoning_tokens=50)
    body = server.asked[0].body
    text = f"user: {SAID} \ufffd"
    expected: dict[str, dict[str, Any]] = {
        "chat": {
            "messages": [{"role": "system", "content": REQUEST.instructions}, {"role": "user", "content": text}],
            "max_completion_tokens": 250,
        },
        "responses": {
            "instructions": REQUEST.instructions,
            "input": text,
            "max_output_tokens": 250,
            "store": False,
        },
        "messages": {
            "system": REQUEST.instructions,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 250,
        },
    }
    assert body == {"model": "small", **expected[api]}


def test_options_go_into_the_request(ask: Ask, server: ModelServer) -> None:
    """Further arguments are passed on; ``store`` is one of them; the name of the bound can be the old one."""
    server.answers(Reply(content=chat()))
    ask("chat", options={"reasoning_effort": "low"}, limit_field="max_tokens")
    assert server.asked[-1].body["reasoning_effort"] == "low"
    assert server.asked[-1].body["max_tokens"] == 200
    server.answers(Reply(content=responses()))
    ask("responses", options={"store": True})
    assert server.asked[-1].body["store"] is True
    server.answers(Reply(content=messages()))
    ask("messages", options={"service_tier": "standard_only"})
    assert server.asked[-1].body["service_tier"] == "standard_only"


@pytest.mark.parametrize("api", APIS)
def test_what_an_answer_cost_is_told(ask: Ask, server: ModelServer, api: str) -> None:
    """The provider's own count, under one pair of names; what was read from a cache is input, too."""
    server.answers(Reply(content=GOOD[api]))
    told: list[SummaryUsage] = []
    ask(api, on_usage=told.append)
    assert told == [SummaryUsage(model="small-2026", input_tokens=120, output_tokens=12)]


def test_a_useless_answer_costs_the_same(ask: Ask, server: ModelServer) -> None:
    """Usage is told before an answer is refused."""
    server.answers(Reply(content=chat("The user", stop="length")))
    told: list[SummaryUsage] = []
    with pytest.raises(SummaryError):
        ask("chat", on_usage=told.append)
    assert [usage.output_tokens for usage in told] == [12]


def test_a_failing_usage_hook_costs_no_summary(ask: Ask, server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    """What was paid for is not lost to a hook; its failure is logged."""
    server.answers(Reply(content=chat()))
    with caplog.at_level(logging.ERROR, "chat_compaction"):
        assert ask("chat", on_usage=lambda usage: 1 // 0) == TEXT
    (record,) = caplog.records
    assert "on_usage" in record.getMessage()


# -- answers that are no summary -------------------------------------------------------------------

USELESS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat cut off": ("chat", chat("The user", stop="length"), "truncated"),
    "chat filtered": ("chat", chat("", stop="content_filter"), "filtered"),
    "chat refused": ("chat", chat(None, refusal="I can't."), "refused"),
    "chat tool": ("chat", chat(None, stop="tool_calls", tool_calls=[]), "tool_call"),
    "chat empty": ("chat", chat(" \n"), "empty"),
    "chat null": ("chat", chat(None), "empty"),
    "chat no choices": ("chat", {**chat(), "choices": []}, "malformed"),
    "chat null choices": ("chat", {**chat(), "choices": None}, "malformed"),
    "responses cut off": (
        "responses",
        responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "truncated",
    ),
    "responses filtered": (
        "responses",
        responses(status="incomplete", incomplete_details={"reason": "content_filter"}),
        "filtered",
    ),
    "responses failed": (
        "responses",
        responses(status="failed", error={"code": "server_error", "message": SAID}),
        "unavailable",
    ),
    "responses refused": ("responses", responses({"type": "refusal", "refusal": "I can't."}), "refused"),
    "responses tool": (
        "responses",
        responses(
            output=[{"type": "function_call", "id": "f", "call_id": "c", "name": "rm", "arguments": "{}"}],
        ),
        "tool_call",
    ),
    "responses empty": ("responses", responses(output_text("")), "empty"),
    "responses without output": ("responses", {**responses(), "output": None}, "malformed"),
    "messages cut off": ("messages", messages(stop="max_tokens"), "truncated"),
    "messages over the window": ("messages", messages(stop="model_context_window_exceeded"), "truncated"),
    "messages refused": (
        "messages",
        messages(stop="refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": None}),
        "refused",
    ),
    "messages tool": ("messages", messages(stop="tool_use"), "tool_call"),
    "messages paused": ("messages", messages(stop="pause_turn"), "tool_call"),
    "messages empty": ("messages", messages({"type": "text", "text": ""}), "empty"),
    "messages without a reason to stop": ("messages", messages(stop=None), "malformed"),
    "messages of tomorrow": ("messages", messages(stop="half_way"), "malformed"),
    "messages without content": ("messages", {**messages(), "content": None}, "malformed"),
}


@pytest.mark.parametrize("case", USELESS)
def test_an_answer_that_is_no_whole_summary_is_an_error(server: ModelServer, case: str) -> None:
    """Cut off, refused, filtered, a tool call, empty, malformed: never taken for a summary; the error says why (S3)."""
    api, content, reason = USELESS[case]
    server.answers(Reply(content=content))
    with client_of(api, server, asynchronous=False) as client, pytest.raises(SummaryError) as caught:
        summarizer_of(api, client)(REQUEST)
    assert caught.value.reason == reason
    assert SAID not in repr(caught.value)


def test_the_error_names_the_providers_word() -> None:
    """A code of the provider's stands in the text, and what is no code does not."""
    client = FakeClient(chat("x", stop="length"))
    with pytest.raises(SummaryError, match=r"^the model's answer was cut off \(length\)$"):
        OpenAISummarizer(client, "small")(REQUEST)
    client = FakeClient({"error": {"code": f"no, {SAID}"}})
    with pytest.raises(SummaryError, match=r"^the provider reported a failure in place of an answer$"):
        OpenAISummarizer(client, "small")(REQUEST)


def test_the_error_comes_through_a_pickle() -> None:
    """As from a worker process: its word and its text are the same."""
    error = pickle.loads(pickle.dumps(SummaryError("refused", "the model refused to answer")))  # noqa: S301
    assert (error.reason, str(error)) == ("refused", "the model refused to answer")


# -- what the client raises ------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_the_clients_errors_are_the_clients(ask: Ask, server: ModelServer, api: str) -> None:
    """Rate limits and failures: the client tries again as often as it was told, then its own error comes out."""
    sdk: Any = anthropic if api == "messages" else openai
    server.answers(failure(429, retry_after_ms="1"))
    with pytest.raises(sdk.RateLimitError):
        ask(api)
    assert len(server.asked) == 2
    server.answers(failure(500, retry_after_ms="1"), Reply(content=GOOD[api]))
    assert ask(api) == TEXT
    server.answers(failure(401))
    with pytest.raises(sdk.AuthenticationError):
        ask(api)


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_a_slow_server_meets_the_clients_timeout(server: ModelServer, api: str) -> None:
    """Time is bounded by the client that the caller made."""
    sdk: Any = anthropic if api == "messages" else openai
    server.answers(Reply(content=GOOD[api], wait=0.3))
    client = client_of(api, server, asynchronous=False).with_options(max_retries=0, timeout=0.03)
    with client, pytest.raises(sdk.APITimeoutError):
        summarizer_of(api, client)(REQUEST)


def test_a_cancellation_goes_through(server: ModelServer) -> None:
    """An async request that is cancelled is gone, and the client can be closed."""
    server.answers(Reply(content=chat(), wait=0.3))

    async def cancelled() -> None:
        async with client_of("chat", server, asynchronous=True) as client:
            async with asyncio.timeout(0.05):
                await summarizer_of("chat", client)(REQUEST)  # type: ignore[misc]

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())


# -- values ----------------------------------------------------------------------------------------


@attrs.define
class FakeClient:
    """As much of a client as is used: nothing is asked of a package."""

    answer: Any = None
    asked: list[dict[str, Any]] = attrs.field(factory=list)

    @property
    def chat(self) -> Any:
        return self

    @property
    def completions(self) -> Any:
        return self

    @property
    def messages(self) -> Any:
        return self

    def create(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        return self.answer


@pytest.mark.parametrize(
    "summarizer",
    [
        OpenAISummarizer(FakeClient(), "small"),
        OpenAISummarizer(FakeClient(), "small", api="responses", options={"store": True}, window=128_000),
        OpenAISummarizer(FakeClient(), "small", limit_field="max_tokens", reasoning_tokens=500, on_usage=print),
        AnthropicSummarizer(FakeClient(), "small"),
        AnthropicSummarizer(FakeClient(), "small", options={"service_tier": "auto"}, window=200_000, on_usage=print),
    ],
    ids=repr,
)
def test_equal_and_shown_without_the_client(summarizer: Any) -> None:
    """The repr has no client in it; with one it makes an equal summariser, whatever its client and its hook."""
    text = repr(summarizer)
    assert "Client" not in text
    assert "on_usage" not in text
    made = eval(  # noqa: S307
        text.replace("(", "(client=client, ", 1),
        {"client": FakeClient(), "OpenAISummarizer": OpenAISummarizer, "AnthropicSummarizer": AnthropicSummarizer},
    )
    assert made == summarizer
    assert hash(made) == hash(summarizer)
    assert summarizer != attrs.evolve(summarizer, model="large")


def test_a_summarizer_keeps_its_own_options() -> None:
    """What the caller does to a mapping afterwards changes nothing (rule K8)."""
    given = {"service_tier": "auto"}
    summarizer = AnthropicSummarizer(FakeClient(messages()), "small", options=given)
    given["service_tier"] = "standard_only"
    assert summarizer.options == {"service_tier": "auto"}
    assert summarizer(REQUEST) == TEXT


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (OpenAISummarizer, {"client": None}, "client must be an openai.OpenAI or AsyncOpenAI, got NoneType"),
        (OpenAISummarizer, {"client": openai.OpenAI}, "client must be an openai.OpenAI or AsyncOpenAI, got type"),
        (AnthropicSummarizer, {"client": "a"}, "client must be an anthropic.Anthropic or AsyncAnthropic, got str"),
        (OpenAISummarizer, {"model": " "}, "model must be a text that is not empty, got ' '"),
        (OpenAISummarizer, {"model": 4}, "model must be a text, got 4"),
        (OpenAISummarizer, {"api": "completions"}, "api must be one of 'chat', 'responses', got 'completions'"),
        (
            OpenAISummarizer,
            {"limit_field": "max"},
            "limit_field must be one of 'max_tokens', 'max_completion_tokens', got 'max'",
        ),
        (OpenAISummarizer, {"options": ["a"]}, "options must be a mapping from names to values, got ['a']"),
        (
            OpenAISummarizer,
            {"options": {"tools": []}},
            "options must be further arguments of the request, got 'tools', which a summariser sets itself or does "
            "without",
        ),
        (
            AnthropicSummarizer,
            {"options": {"max_tokens": 3}},
            "options must be further arguments of the request, got 'max_tokens', which a summariser sets itself or "
            "does without",
        ),
        (AnthropicSummarizer, {"reasoning_tokens": -1}, "reasoning_tokens must be an int of 0 or more, got -1"),
        (AnthropicSummarizer, {"window": 0}, "window must be an int of 1 or more, got 0"),
        (AnthropicSummarizer, {"window": "1"}, "window must be an int of 1 or more, got '1'"),
        (AnthropicSummarizer, {"on_usage": 3}, "on_usage must be callable, got 3"),
    ],
    ids=lambda value: None if isinstance(value, type) else str(value),
)
def test_wrong_arguments_fail_at_construction(kind: Any, arguments: dict[str, Any], message: str) -> None:
    """One string that names the argument, its value and what was expected."""
    with pytest.raises((TypeError, ValueError)) as caught:
        kind(**{"client": FakeClient(), "model": "small", **arguments})
    assert caught.value.args == (message,)
