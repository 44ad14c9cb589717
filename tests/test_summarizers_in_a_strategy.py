"""The ready-made summarisers under the strategy that asks them: what a failure leaves behind, sync and async."""

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from chat_compaction import EstimateCounter, MessageIndex, tokens
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.summarizers import EndpointSummarizer, ExtractiveSummarizer, Summarizer
from tests.model_server import TEXT, ModelServer, Reply, chat, failure, model_server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


def history(turns: int = 30) -> list[dict[str, Any]]:
    pairs = (
        (
            {
                "role": "user",
                "content": f"Pump {turn} in hall {turn * 7 % 13} is broken. Please order part {turn * 31}.",
            },
            {"role": "assistant", "content": f"Part {turn * 31} for pump {turn} is ordered from Nordic Pumps."},
        )
        for turn in range(turns)
    )
    return [{"role": "system", "content": "You mend pumps."}, *(message for pair in pairs for message in pair)]


def strategy_of(summarizer: Summarizer) -> SummarizationStrategy:
    return SummarizationStrategy(
        summarizer, trigger=tokens > 800, target=tokens <= 500, max_summary_tokens=200, min_preserved_groups=4
    )


def index_of(messages: list[dict[str, Any]]) -> MessageIndex:
    return MessageIndex.from_messages(messages, counter=EstimateCounter())


def endpoint(server: ModelServer, **more: Any) -> EndpointSummarizer:
    return EndpointSummarizer(f"{server.url}/v1", "small", retries=0, **more)


def test_sentences_stand_for_the_oldest_groups() -> None:
    """Without a model the history fits, nothing of the caller's is changed (rule K8), and one summary stands in it."""
    messages = history()
    before = copy.deepcopy(messages)
    strategy = strategy_of(ExtractiveSummarizer(counter=EstimateCounter()))
    index = index_of(messages)
    report = strategy.compact(index)
    assert report.changed
    assert report.fits
    assert report.failures == ()
    assert messages == before
    assert "Please order part" in str(index.included_messages()[1]["content"])
    assert index.value(tokens) <= 500


def test_round_after_round_there_is_one_summary() -> None:
    """An earlier summary is folded into the next, and does not grow beyond its bound (rule S2)."""
    strategy = strategy_of(ExtractiveSummarizer(counter=EstimateCounter()))
    messages: list[dict[str, Any]] = []
    for _ in range(4):
        index = index_of([*messages, *history()])
        assert strategy.compact(index).fits
        messages = index.included_messages()
        assert sum("- user: " in str(message["content"]) for message in messages) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_endpoint_is_asked(server: ModelServer, asynchronous: bool) -> None:
    """In a plain call and in an async one; what it says stands in the history."""
    server.answers(Reply(content=chat()))
    index = index_of(history())
    strategy = strategy_of(endpoint(server, asynchronous=asynchronous))
    report = asyncio.run(strategy.acompact(index)) if asynchronous else strategy.compact(index)
    assert report.changed
    assert TEXT in str(index.included_messages()[1]["content"])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (failure(503), "answered with status 503"),
        (Reply(content=chat("The user", stop="length")), "was cut off"),
        (Reply(content=b"<html>"), "no JSON"),
        (Reply(content=chat(), wait=0.3), "within 0.05 s"),
    ],
    ids=["failing", "cut off", "malformed", "slow"],
)
def test_a_failure_restores_everything_and_shows(
    server: ModelServer, reply: Reply, told: str, asynchronous: bool
) -> None:
    """Failure restores everything and shows in the report, without a word of the conversation (rule S3)."""
    server.answers(reply)
    messages = history()
    index = index_of(messages)
    strategy = strategy_of(endpoint(server, timeout=0.05 if reply.wait else 5, asynchronous=asynchronous))
    report = asyncio.run(strategy.acompact(index)) if asynchronous else strategy.compact(index)
    assert not report.changed
    assert index.included_messages() == messages
    (shown,) = report.failures
    assert "SummaryError" in str(shown.error)
    assert told in str(shown)
    assert "Pump 0" not in str(shown)
