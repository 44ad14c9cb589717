"""The summariser on any OpenAI-compatible endpoint, sync and async, against a real server on the loopback interface."""

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from email.utils import formatdate
from time import monotonic, time
from typing import Any

import attrs
import httpx2
import pytest

from chat_compaction.summarizers import EndpointSummarizer, ExtractiveSummarizer, SummaryError, SummaryUsage
from chat_compaction.summarizers._http import retry_after
from tests.model_server import REQUEST, SAID, TEXT, ModelServer, Reply, chat, failure, model_server

KEY = "sk-something-secret"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


Ask = Callable[..., str]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: ModelServer) -> Ask:
    """Asks the server through a new summariser."""
    return lambda **more: answer_of(summarizer(server, asynchronous=request.param, **more))


def summarizer(server: ModelServer, **more: Any) -> EndpointSummarizer:
    return EndpointSummarizer(f"{server.url}/v1", "small", **{"backoff": 0.001, "timeout": 5, **more})


def answer_of(summarizer: EndpointSummarizer) -> str:
    answer = summarizer(REQUEST)
    assert isinstance(answer, Awaitable) is summarizer.asynchronous
    return answer if isinstance(answer, str) else asyncio.run(awaited(answer))


async def awaited(answer: Awaitable[str]) -> str:
    return await answer


# -- a good answer ---------------------------------------------------------------------------------


def test_what_is_asked_and_answered(ask: Ask, server: ModelServer) -> None:
    """Orders and data apart, the bound of the answer, no tools (rule S2), and no key where none is named."""
    server.answers(Reply(content=chat()))
    told: list[SummaryUsage] = []
    assert ask(on_usage=told.append, options={"temperature": 0}) == TEXT
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": REQUEST.instructions},
            {"role": "user", "content": f"user: {SAID} \ufffd"},
        ],
        "max_tokens": 200,
        "temperature": 0,
    }
    assert told == [SummaryUsage(model="small-2026", input_tokens=120, output_tokens=12)]


def test_the_bound_of_a_model_that_thinks(ask: Ask, server: ModelServer) -> None:
    """Reasoning comes on top of the answer, under the name that the server knows."""
    server.answers(Reply(content=chat()))
    ask(limit_field="max_completion_tokens", reasoning_tokens=1_000)
    assert server.asked[0].body["max_completion_tokens"] == 1_200
    assert "max_tokens" not in server.asked[0].body


def test_the_key_is_that_of_the_environment(ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read at each call, without the line end that a file has."""
    server.answers(Reply(content=chat()))
    monkeypatch.setenv("SUMMARY_KEY", f"{KEY}\n")
    ask(api_key_env="SUMMARY_KEY")
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [None, "", "  ", "a\nb", "schlüssel"])
def test_no_key_is_an_error(ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    """A variable that is not set, or holds what can't be a key, stops the call before anything is sent."""
    if key is not None:
        monkeypatch.setenv("SUMMARY_KEY", key)
    with pytest.raises(SummaryError, match=r"^the environment variable SUMMARY_KEY holds no key$") as caught:
        ask(api_key_env="SUMMARY_KEY")
    assert caught.value.reason == "no_key"
    assert server.asked == []


DIALECTS: dict[str, tuple[Any, str]] = {
    "reasoning in the text": (chat(f"<think>\nWhat {SAID}?\n</think>\n\n{TEXT}"), TEXT),
    "a tag elsewhere": (chat(f"{TEXT} <think>no</think>"), f"{TEXT} <think>no</think>"),
    "parts": (chat([{"type": "thinking", "thinking": []}, {"type": "text", "text": TEXT}]), TEXT),
    "another reason to stop": (chat(TEXT, stop="eos"), TEXT),
    "no reason to stop": (chat(TEXT, stop=None), TEXT),
    "the least": ({"choices": [{"message": {"content": TEXT}}]}, TEXT),
    "usage of another type": ({**chat(TEXT), "usage": {"prompt_tokens": "many"}}, TEXT),
}


@pytest.mark.parametrize("case", DIALECTS)
def test_dialects_of_compatible_servers(server: ModelServer, case: str) -> None:
    """Reasoning in the text, content in parts, stop reasons of their own, answers with the least in them."""
    content, expected = DIALECTS[case]
    server.answers(Reply(content=content))
    assert answer_of(summarizer(server, on_usage=lambda usage: None)) == expected


# -- answers that are no summary -------------------------------------------------------------------


USELESS: dict[str, tuple[Any, str]] = {
    "cut off": (chat("The user", stop="length"), "truncated"),
    "cut off, by Mistral": (chat("The user", stop="model_length"), "truncated"),
    "filtered": (chat("", stop="content_filter"), "filtered"),
    "failed half way": (chat("The user", stop="error"), "unavailable"),
    "tool": (chat(None, stop="tool_calls"), "tool_call"),
    "refused": (chat(None, refusal="I can't."), "refused"),
    "reasoning alone": (chat("<think>Hm.</think>"), "empty"),
    "a part without text": (chat([{"type": "text"}]), "empty"),
    "an error with status 200": ({"error": {"code": 503, "type": "overloaded", "message": SAID}}, "unavailable"),
    "choices of another type": ({"choices": {}}, "malformed"),
    "a list": ([], "malformed"),
    "a text": (SAID, "malformed"),
    "a page": (b"<html>" + SAID.encode(), "malformed"),
    "deep": (b"[" * 100_000, "malformed"),
    "no UTF-8": (b'"\xff"', "malformed"),
    "nothing": (b"", "malformed"),
}


@pytest.mark.parametrize("case", USELESS)
def test_an_answer_that_is_no_whole_summary_is_an_error(server: ModelServer, case: str) -> None:
    """Never taken for a summary, never asked again, and the error says why without a word of the answer (S3)."""
    content, reason = USELESS[case]
    server.answers(Reply(content=content))
    with pytest.raises(SummaryError) as caught:
        answer_of(summarizer(server))
    assert caught.value.reason == reason
    assert SAID not in "".join(traceback.format_exception(caught.value))
    assert len(server.asked) == 1


# -- servers that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_it_asks_again(ask: Ask, server: ModelServer, status: int) -> None:
    """After a rate limit or a failure of the server, as often as it was told."""
    server.answers(failure(status), failure(status), Reply(content=chat()))
    assert ask() == TEXT
    assert len(server.asked) == 3


def test_it_asks_again_after_a_lost_connection(ask: Ask, server: ModelServer) -> None:
    """A server that hangs up is one that failed."""
    server.answers(Reply(hang_up=True), Reply(content=chat()))
    assert ask() == TEXT
    server.answers(Reply(hang_up=True))
    with pytest.raises(SummaryError, match=r"RemoteProtocolError$") as caught:
        ask(retries=0)
    assert caught.value.reason == "unavailable"


def test_it_gives_up(ask: Ask, server: ModelServer) -> None:
    """After ``retries`` further tries; the error has the status and the code, and no word of the body."""
    server.answers(failure(503))
    with pytest.raises(SummaryError, match=r"answered with status 503 \(some_code\)$") as caught:
        ask(retries=1)
    assert caught.value.reason == "unavailable"
    assert len(server.asked) == 2
    assert SAID not in "".join(traceback.format_exception(caught.value))


def test_a_failure_without_a_code(server: ModelServer) -> None:
    """A gateway that fails with a page of its own, or with JSON of another kind."""
    server.answers(Reply(status=502, content=SAID.encode()), Reply(status=502, content=[SAID]))
    for _ in range(2):
        with pytest.raises(SummaryError, match=r"answered with status 502$"):
            answer_of(summarizer(server, retries=0))


@pytest.mark.parametrize("status", [302, 400, 401, 404, 413])
def test_what_will_not_change_is_not_asked_again(ask: Ask, server: ModelServer, status: int) -> None:
    """A request that the server will not take fails at once; redirects are not followed, the key stays here."""
    server.answers(failure(status, location="https://elsewhere.example/"))
    with pytest.raises(SummaryError, match=f"answered with status {status}") as caught:
        ask()
    assert caught.value.reason == "rejected"
    assert len(server.asked) == 1


def test_it_waits_as_long_as_the_server_asks(ask: Ask, server: ModelServer) -> None:
    """Not as long as it would by itself."""
    server.answers(failure(429, retry_after="0.05"), Reply(content=chat()))
    started = monotonic()
    assert ask(backoff=4) == TEXT
    assert 0.05 <= monotonic() - started < 4


def test_it_does_not_wait_beyond_its_time(ask: Ask, server: ModelServer) -> None:
    """A server that asks to come back in an hour fails the call at once, and the error says how long it asked."""
    server.answers(failure(429, retry_after="3600"))
    with pytest.raises(SummaryError, match=r"status 429 \(some_code\), and asks to come back in 3600 s$") as caught:
        ask()
    assert caught.value.reason == "rate_limited"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30),
        ({"retry-after": formatdate(900_000, usegmt=True)}, 0),
        ({"retry-after": "Wed, 99 Oct 99999999 07:28:00 GMT"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: Mapping[str, str], expected: float | None) -> None:
    """Seconds, a date, or milliseconds; nonsense is nothing."""
    assert retry_after(headers, 1_000_000) == expected


def test_nobody_listens(ask: Ask) -> None:
    """No connection: the error says so in the words of the operating system."""
    with model_server() as gone:
        pass
    with pytest.raises(SummaryError, match="ConnectError: ") as caught:
        answer_of(summarizer(gone, retries=1))
    assert caught.value.reason == "unavailable"


@pytest.mark.parametrize(
    "reply", [Reply(content=chat(), wait=0.3), Reply(content=chat(), drip=0.01)], ids=["slow", "drip"]
)
def test_one_bound_of_time_for_the_whole_call(ask: Ask, server: ModelServer, reply: Reply) -> None:
    """A server that is silent, and one that sends a byte now and then, are given up in time, and not asked again."""
    server.answers(reply)
    started = time()
    with pytest.raises(SummaryError, match=r"no whole answer from .*/chat/completions within 0\.05 s$") as caught:
        ask(timeout=0.05)
    assert caught.value.reason == "timeout"
    assert len(server.asked) == 1
    assert time() - started < 5  # Only that it does not wait for the end.


def test_time_that_is_up_before_the_next_try(server: ModelServer) -> None:
    """The bound holds for all tries together: what is gone is not given again."""
    server.answers(failure(503, retry_after="0.02"))
    with pytest.raises(SummaryError):
        answer_of(summarizer(server, timeout=0.05, retries=50))
    assert len(server.asked) <= 3


def test_an_answer_without_end(ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger than any summary is not read to its end."""
    monkeypatch.setattr("chat_compaction.summarizers._http._LARGEST", 1_000)
    server.answers(Reply(content=chat("x" * 2_000)))
    with pytest.raises(SummaryError, match=r"is larger than 1,000 bytes$") as caught:
        ask()
    assert caught.value.reason == "malformed"


def test_a_cancellation_goes_through(server: ModelServer) -> None:
    """A cancelled call ends at once, and its connection with it."""
    server.answers(Reply(content=chat(), wait=0.3))

    async def cancelled() -> None:
        async with asyncio.timeout(0.05):
            await summarizer(server, asynchronous=True)(REQUEST)  # type: ignore[misc]

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())


def test_nothing_secret_is_logged(
    ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the key nor the conversation, in no log at any level, by nobody; nor in an error."""
    monkeypatch.setenv("SUMMARY_KEY", KEY)
    server.answers(failure(503), failure(400))
    with caplog.at_level(logging.DEBUG), pytest.raises(SummaryError) as caught:
        ask(api_key_env="SUMMARY_KEY")
    assert len(server.asked) == 2
    everything = caplog.text + "".join(traceback.format_exception(caught.value))
    assert KEY not in everything
    assert SAID not in everything


# -- a client of the caller's ----------------------------------------------------------------------


def test_a_client_of_the_callers_is_used_and_stays_open(server: ModelServer) -> None:
    """For proxies, certificates and further headers; whoever opened it closes it."""
    server.answers(Reply(content=chat()))
    with httpx2.Client(headers={"x-team": "cellar"}) as client:
        one = summarizer(server, client=client)
        assert one(REQUEST) == one(REQUEST) == TEXT
        assert not client.is_closed
    assert [asked.headers["x-team"] for asked in server.asked] == ["cellar"] * 2


def test_an_async_client_of_the_callers(server: ModelServer) -> None:
    """The same for async code."""
    server.answers(Reply(content=chat()))

    async def asked() -> None:
        async with httpx2.AsyncClient(headers={"x-team": "cellar"}) as client:
            one = summarizer(server, client=client, asynchronous=True)
            assert [await one(REQUEST), await one(REQUEST)] == [TEXT, TEXT]  # type: ignore[misc]
            assert not client.is_closed

    asyncio.run(asked())
    assert [asked.headers["x-team"] for asked in server.asked] == ["cellar"] * 2


# -- values ----------------------------------------------------------------------------------------

URL = "https://models.example/v1"


@pytest.mark.parametrize(
    "summarizer",
    [
        EndpointSummarizer(URL, "small"),
        EndpointSummarizer(URL, "small", "SUMMARY_KEY", timeout=5, retries=0, backoff=1.5, asynchronous=True),
        EndpointSummarizer(URL, "small", options={"temperature": 0}, reasoning_tokens=9, window=8_192),
        EndpointSummarizer(URL, "small", limit_field="max_completion_tokens", on_usage=print),
    ],
    ids=repr,
)
def test_its_repr_makes_it(summarizer: EndpointSummarizer) -> None:
    """A summariser is a value: equal to its equal, hashable, printed as what makes it."""
    made = eval(repr(summarizer))  # noqa: S307
    assert made == summarizer
    assert hash(made) == hash(summarizer)
    assert summarizer != attrs.evolve(summarizer, model="large")
    assert repr(EndpointSummarizer(URL, "small")) == f"EndpointSummarizer(base_url='{URL}', model='small')"


_URL = "base_url must be a URL such as 'https://example.com/v1', without a user, a query or a fragment"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": 3}, f"{_URL}, got 3"),
        ({"base_url": "models.example/v1"}, f"{_URL}, got 'models.example/v1'"),
        ({"base_url": "ftp://models.example"}, f"{_URL}, got 'ftp://models.example'"),
        ({"base_url": "http://[::1"}, f"{_URL}, got 'http://[::1'"),
        ({"base_url": "http://a:99999"}, f"{_URL}, got 'http://a:99999'"),
        ({"base_url": f"https://me:{KEY}@a/v1"}, f"{_URL}; keys come from the environment: api_key_env"),
        (
            {"base_url": "https://a/v1/chat/completions/"},
            "base_url must be what stands ahead of /chat/completions, got 'https://a/v1/chat/completions/'",
        ),
        ({"base_url": f"https://a/v1?key={KEY}"}, f"{_URL}; keys come from the environment: api_key_env"),
        (
            {"api_key_env": KEY},
            "api_key_env must be the name of an environment variable that holds the key, such as 'OPENAI_API_KEY', "
            "and not the key itself; got another str",
        ),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, got 0"),
        ({"timeout": None}, "timeout must be a number of seconds above 0, got None"),
        ({"timeout": float("inf")}, "timeout must be a number of seconds above 0, got inf"),
        ({"backoff": True}, "backoff must be a number of seconds above 0, got True"),
        ({"retries": -1}, "retries must be an int of 0 or more, got -1"),
        ({"asynchronous": 1}, "asynchronous must be True or False, got 1"),
        (
            {"options": {"stream": True}},
            "options must be further arguments of the request, got 'stream', which a summariser sets itself or does "
            "without",
        ),
        ({"client": "a"}, "client must be an httpx2.Client where asynchronous is False, got str"),
        (
            {"client": "a", "asynchronous": True},
            "client must be an httpx2.AsyncClient where asynchronous is True, got str",
        ),
    ],
    ids=str,
)
def test_wrong_arguments_fail_at_construction(arguments: dict[str, Any], message: str) -> None:
    """One string that names the argument, its value, unless that may be a secret, and what was expected."""
    with pytest.raises((TypeError, ValueError)) as caught:
        EndpointSummarizer(**{"base_url": URL, "model": "small", **arguments})
    assert caught.value.args == (message,)


def test_the_module_loads_no_package_of_an_extra() -> None:
    """What a summariser needs is imported when one is made."""
    program = (
        "import sys, chat_compaction.summarizers;"
        "print({'httpx2', 'openai', 'anthropic', 'sentencex', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: EndpointSummarizer(URL, "small"),
            'EndpointSummarizer needs the package httpx2: pip install "chat-compaction[endpoint]"',
        ),
        (
            lambda: ExtractiveSummarizer(),
            'ExtractiveSummarizer needs the package sentencex: pip install "chat-compaction[extractive]"',
        ),
    ],
    ids=["endpoint", "extractive"],
)
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object], message: str) -> None:
    """The error comes at once, and says how to get it; one that comes from within a package stays what it is."""
    for name in ("httpx2", "sentencex"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        make()
    assert str(caught.value) == message

    def broken(name: str) -> None:
        raise ModuleNotFoundError("No module named 'anyio'", name="anyio")

    monkeypatch.setattr("chat_compaction.summarizers._values.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="anyio"):
        make()
