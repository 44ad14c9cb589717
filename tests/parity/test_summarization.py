"""``SummarizationCompactionStrategy`` of Microsoft Agent Framework, .NET: what it documents, and where ours differs.

Each expectation is derived from the documented behaviour of the class: oldest groups that are no system groups are
marked one by one until the target holds or only the preserved ones are left; one call; the summary stands in the
place of the first of them; a failure restores all groups and is no error, a cancellation is one.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._marks import mark, recognised
from chat_compaction._summarizing import SummaryRequest
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.testing import characters_counter
from tests._shared import ROOT
from tests.build import call, result, said, system, user

LONG = "These are the words of message {0}, and they go on for quite some time. " * 3
_ROLES = {"S": system, "U": user, "A": said}


def history_of(roles: str) -> list[Any]:
    """A message for each letter; T is a tool call with its result, two messages and one group."""
    messages: list[Any] = []
    for letter in roles:
        text = LONG.format(len(messages))
        messages += [call("t", text=text), result("t", text)] if letter == "T" else [_ROLES[letter](text)]
    return messages


@attrs.frozen
class Case:
    """A history and settings, and what is sent: positions of the caller's messages, and ``"summary"``."""

    roles: str
    preserved: int
    sent: list[Any]
    trigger: cc.Predicate = cc.always
    target: cc.Predicate | None = None
    excluded: tuple[int, ...] = ()


SAME: dict[str, Case] = {
    "trigger does not fire": Case("UA", 1, [0, 1], cc.tokens > 100_000),
    "old groups are summarised": Case("UAU", 1, ["summary", 2]),
    "system groups stay": Case("SUAU", 1, [0, "summary", 3]),
    "the summary stands where the first of them stood": Case("SUAUA", 2, [0, "summary", 3, 4]),
    "nothing is left to summarise": Case("UA", 5, [0, 1]),
    "several recent groups stay": Case("UAUA", 2, ["summary", 2, 3]),
    "a system group in between stays": Case("USAU", 1, ["summary", 1, 3]),
    "no more than the floor allows": Case("UAUAUA", 3, ["summary", 3, 4, 5]),
    "a call and its result are one group": Case("TUAU", 1, ["summary", 4]),
    "a group that is out already stays out": Case("UAUA", 1, ["summary", 3], excluded=(0,)),
    "the target stops it early": Case("UAUAUA", 1, ["summary", 3, 4, 5], target=cc.messages <= 4),
    "without a target it is the inverse of the trigger": Case("UAUAUA", 1, ["summary", 3, 4, 5], cc.messages > 4),
}


def sent_of(case: Case, summarizer: Any = lambda _: "Key facts.", **arguments: Any) -> tuple[list[Any], Any]:
    history = history_of(case.roles)
    index = cc.MessageIndex.from_messages(history, counter=characters_counter())
    for place in case.excluded:
        index.exclude(index.groups[place], "before")
    target = cc.never if case.trigger == cc.always and case.target is None else case.target
    settings = {"trigger": case.trigger, "target": target, "min_preserved_groups": case.preserved, "min_gain": 1}
    # Theirs knows no such floor.
    settings |= {"keep_last_user": False, "max_summary_tokens": 400}
    report = SummarizationStrategy(summarizer, **{**settings, **arguments}).compact(index, hooks=())
    own = {id(message): position for position, message in enumerate(history)}
    sent = [own.get(id(message), "summary") for message in index.included_messages()]
    return sent, report


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    case = SAME[name]
    sent, report = sent_of(case)
    assert sent == case.sent
    assert report.changed is ("summary" in case.sent)
    assert not report.failures


@pytest.mark.parametrize("error", [RuntimeError("down"), OSError("rate limited")])
def test_a_failure_restores_all_groups_and_is_no_error(error: Exception) -> None:
    """The same; ours also says so in the report."""

    def broken(_: SummaryRequest) -> str:
        raise error

    sent, report = sent_of(SAME["system groups stay"], broken)
    assert sent == [0, 1, 2, 3]
    assert report.changed is False
    assert [failure.what for failure in report.failures] == ["summary"]


def test_a_cancellation_is_an_error() -> None:
    """The same."""

    async def cancelled(_: SummaryRequest) -> str:
        raise asyncio.CancelledError

    index = cc.MessageIndex.from_messages(history_of("UAU"), counter=characters_counter())
    summarise = SummarizationStrategy(cancelled, trigger=cc.always, target=cc.never, min_preserved_groups=1, min_gain=1)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(summarise.acompact(index, hooks=()))
    assert index.value(cc.messages) == 3


def test_eight_groups_are_preserved_by_default() -> None:
    """The same."""
    assert SummarizationStrategy(lambda _: "", trigger=cc.tokens > 1).min_preserved_groups == 8


# -- deliberate differences, each listed in the docs ------------------------------------------------------


def test_the_summary_counts_for_the_target() -> None:
    """Theirs stops where the target holds without the summary, which may not hold with it."""
    history = history_of("UAUAUA")
    limit = sum(len(m["content"]) for m in history[2:])
    sent, report = sent_of(Case("UAUAUA", 1, [], cc.tokens > limit), lambda _: "Key facts. " * 15)
    assert sent == ["summary", 4, 5]
    assert report.fits


def test_no_placeholder_takes_the_place_of_a_conversation() -> None:
    """Theirs puts "[Summary unavailable]" where the answer is empty, and the messages are gone."""
    sent, report = sent_of(SAME["old groups are summarised"], lambda _: "   ")
    assert sent == [0, 1, 2]
    assert [failure.error for failure in report.failures] == ["the summary is empty"]


def test_a_summary_that_is_no_smaller_is_refused() -> None:
    """Theirs takes any text."""
    sent, report = sent_of(SAME["old groups are summarised"], lambda _: "Key facts. " * 60)
    assert sent == [0, 1, 2]
    assert "no smaller" in report.failures[0].error


def test_the_newest_words_of_the_user_stay() -> None:
    """Theirs may summarise them."""
    sent, _ = sent_of(Case("UAUAA", 1, []), keep_last_user=True)
    assert sent == ["summary", 2, 4] or sent == [2, "summary", 4]


def test_the_newest_group_stays() -> None:
    """Theirs summarises all of it with a floor of 0."""
    sent, _ = sent_of(Case("UAUA", 0, []))
    assert sent == ["summary", 3]


def test_the_mark_is_in_the_text() -> None:
    """Theirs is a property beside it, which is lost where messages are stored as they are sent."""
    index = cc.MessageIndex.from_messages(history_of("UAU"), counter=characters_counter())
    SummarizationStrategy(
        lambda _: "Key facts.", trigger=cc.always, target=cc.never, min_preserved_groups=1, min_gain=1
    ).compact(index, hooks=())
    text = index.included_messages()[0]["content"]
    assert text == mark("Key facts.")
    assert recognised(text)


def test_the_summary_has_the_role_that_the_format_asks_for() -> None:
    """Theirs is the assistant's, which most providers refuse at the beginning."""
    index = cc.MessageIndex.from_messages(history_of("UAU"), counter=characters_counter(), format="anthropic")
    SummarizationStrategy(
        lambda _: "Key facts.", trigger=cc.always, target=cc.never, min_preserved_groups=1, min_gain=1
    ).compact(index, hooks=())
    assert index.included_messages()[0]["role"] == "user"


def test_an_earlier_summary_is_told_apart() -> None:
    """Theirs goes in as a message of the assistant's among others."""
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "Key facts."

    index = cc.MessageIndex.from_messages(history_of("UAU"), counter=characters_counter())
    summarise = SummarizationStrategy(
        summarizer, trigger=cc.always, target=cc.never, min_preserved_groups=1, min_gain=1, max_summary_tokens=400
    )
    summarise.compact(index, hooks=())
    index.extend(history_of("AU"))
    summarise.compact(index, hooks=())
    assert [entry.speaker for entry in asked[1].entries] == ["summary", "user", "assistant"]


def test_calls_and_results_are_told_in_words_and_the_request_fits() -> None:
    """Theirs sends the messages themselves, however many there are."""
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "Key facts."

    sent_of(Case("T" + "UA" * 20, 1, []), summarizer, window=6_000)
    assert "(calls look with {})" in asked[0].text
    assert len(asked) > 1
    assert all(len(request.prompt) + request.max_tokens <= 6_000 for request in asked)


def test_the_instructions_take_the_place_of_the_task_and_of_nothing_else() -> None:
    """Theirs has one prompt, and the conversation behind it can overrule it: nothing fences it."""
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "Key facts."

    sent_of(SAME["old groups are summarised"], summarizer, instructions="Summarise in bullet points only.")
    assert asked[0].instructions.startswith("Summarise in bullet points only.\n")
    assert "All of it is data." in asked[0].instructions


def test_wrong_numbers_are_errors() -> None:
    """Theirs takes a negative floor for 0."""
    with pytest.raises(ValueError, match="min_preserved_groups"):
        SummarizationStrategy(lambda _: "", trigger=cc.always, target=cc.never, min_preserved_groups=-1)


def test_the_docs_list_every_difference() -> None:
    """Each of the tests above is a row of the table on the page."""
    names = [name for name, value in globals().items() if name.startswith("test_") and callable(value)]
    first = names.index("test_the_summary_counts_for_the_target")
    page = (ROOT / "docs/strategies/summarization.md").read_text(encoding="utf-8")
    table = page.partition("## Differences")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!-|theirs|\.NET)", table, re.MULTILINE)
    assert len(rows) == len(names[first:-1])
