"""Answers (rules S3 and S4): what is no summary is refused, and what must be kept is in it word for word."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_compaction._marks import CLOSING, OPENING, mark
from chat_compaction._summarizing import SummaryEntry
from chat_compaction._summarizing._answers import SummaryRefusedError, checked_answer
from chat_compaction._summarizing._must_keep import HEAD, as_must_keep, facts_in, with_facts
from chat_compaction._summarizing._request_text import make_request
from tests.build import call, index_of, result, said, user

ENTRIES = [
    SummaryEntry("user", "How many crates are in bay one? Please count them twice."),
    SummaryEntry("assistant", "There are three crates in bay one. I counted them twice."),
]
REQUEST, NONCE = make_request(ENTRIES, max_tokens=100)
WHOLE = "\n".join(entry.text for entry in ENTRIES)


# -- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", " \n\t ", mark(""), mark("  \n ")])
def test_nothing_is_no_summary(answer: str) -> None:
    with pytest.raises(SummaryRefusedError, match="the summary is empty"):
        checked_answer(answer, NONCE, REQUEST)


@pytest.mark.parametrize(
    ("answer", "what"), [(None, "None"), (b"text", "a bytes"), ({"text": "x"}, "a dict"), (3, "3")]
)
def test_what_is_no_text_is_no_summary(answer: Any, what: str) -> None:
    """A response object that nobody read the text out of; the error says what it was, and nothing of it."""
    with pytest.raises(SummaryRefusedError, match=f"gave {what} and no text"):
        checked_answer(answer, NONCE, REQUEST)


@pytest.mark.parametrize(
    "answer",
    [
        REQUEST.text,
        REQUEST.prompt,
        REQUEST.text[:60],
        f"Sure! Here it is:\n{REQUEST.text}",
        WHOLE,
        WHOLE.replace("\n", "  "),
        WHOLE[20:-20],
        mark(WHOLE),
    ],
)
def test_the_conversation_itself_is_no_summary(answer: str) -> None:
    """With the fence or without, whole or cut, with other white space."""
    with pytest.raises(SummaryRefusedError, match="the conversation itself"):
        checked_answer(answer, NONCE, REQUEST)


@pytest.mark.parametrize(
    "answer", [ENTRIES[1].text, "There are three crates in bay one.", "Three crates, counted twice."]
)
def test_a_sentence_of_the_conversation_may_be_one(answer: str) -> None:
    """An extractive summariser copies, sentence by sentence."""
    assert checked_answer(f"\n {answer} ", NONCE, REQUEST) == answer


def test_a_merge_may_be_the_summaries_of_the_parts() -> None:
    """They are summaries already."""
    merge, nonce = make_request(ENTRIES, max_tokens=100, purpose="merge")
    assert checked_answer(WHOLE, nonce, merge) == WHOLE


def test_an_answer_holds_no_mark_and_no_fence_of_ours() -> None:
    """S1: no summary in a summary, whatever the summariser was told to write."""
    text = checked_answer(f"Tea. {mark('Coffee.')} [0123abcd user] more", NONCE, REQUEST)
    assert OPENING not in text
    assert CLOSING not in text
    assert "(0123abcd user] more" in text
    assert checked_answer(mark("Tea was made."), NONCE, REQUEST) == "Tea was made."


# -- what must be kept ---------------------------------------------------------------------------------

TICKET = re.compile(r"[A-Z]{3}-\d+")
MESSAGES = [
    user("Fix ABC-12 and ABC-7, the code is swordfish."),
    call("a"),
    result("a", "ABC-12 is closed, see XYZ-1"),
    said("Done with ABC-12."),
]


def facts(keep: Any, messages: Sequence[Any] = MESSAGES) -> list[str]:
    index = index_of(messages)
    return facts_in(index, range(len(messages)), as_must_keep(keep))


def test_texts_patterns_and_functions_find_it() -> None:
    """Each once, in the order of the conversation, in what was said, called and answered."""
    assert facts("swordfish") == ["swordfish"]
    assert facts("catfish") == []
    assert facts(TICKET) == ["ABC-12", "ABC-7", "XYZ-1"]
    assert facts(["swordfish", TICKET]) == ["swordfish", "ABC-12", "ABC-7", "XYZ-1"]
    assert facts(()) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, ["Done with ABC-12."]),
        (False, []),
        (None, []),
        ("a text of its own", ["a text of its own"]),
        (["one", "two", 3, ""], ["one", "two"]),
    ],
)
def test_a_function_sees_the_callers_message(answer: Any, expected: list[str]) -> None:
    """True: all of its words."""
    assert facts(lambda message: answer if message is MESSAGES[3] else False) == expected


def test_it_is_found_in_an_earlier_summary_too() -> None:
    """So that it survives any number of passes."""
    assert facts(TICKET, [user(mark(f"Tickets.\n\n{HEAD}\n- ABC-12")), said("more")]) == ["ABC-12"]


@pytest.mark.parametrize(
    ("keep", "error", "text"),
    [
        (3, TypeError, "must_keep must be texts, compiled patterns or functions, got 3"),
        ([3], TypeError, "must_keep must be texts, compiled patterns or functions, got 3 in it"),
        ("", ValueError, "must_keep must hold no empty text or pattern, got '' in it"),
        (re.compile(""), ValueError, "must_keep must hold no empty text or pattern, got re.compile('') in it"),
        (re.compile(b"x"), TypeError, "must_keep must be texts, compiled patterns or functions, got a Pattern in it"),
    ],
)
def test_wrong_arguments(keep: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        as_must_keep(keep)
    assert str(caught.value) == text


def test_an_async_function_is_refused() -> None:
    """Its coroutine would count as true."""

    async def keep(message: Any) -> bool:
        return True

    with pytest.raises(TypeError, match="must_keep must be a plain function"):
        as_must_keep(keep)


def count(texts: Sequence[str]) -> list[int]:
    return list(map(len, texts))


def test_what_is_lost_is_appended_and_what_is_there_is_not_said_twice() -> None:
    """S4: verified, not hoped for."""
    assert with_facts("ABC-1 is done.", ["ABC-1", "ABC-2", "two\nlines"], 200, count) == (
        f"ABC-1 is done.\n\n{HEAD}\n- ABC-2\n- two\nlines",
        0,
    )
    assert with_facts("ABC-1 is done.", ["ABC-1"], 200, count) == ("ABC-1 is done.", 0)
    assert with_facts("ABC-1 is done.", [], 200, count) == ("ABC-1 is done.", 0)


def test_the_body_makes_room_and_what_it_loses_by_that_is_appended_too() -> None:
    body = f"{'It went on and on. ' * 10}ABC-1"
    text, left_out = with_facts(body, ["ABC-1", "ABC-2"], 120, count)
    assert left_out == 0
    assert len(text) <= 120
    assert text.endswith(f"(cut)\n\n{HEAD}\n- ABC-1\n- ABC-2")


def test_where_there_is_no_room_for_all_as_many_as_fit_are_kept() -> None:
    """The short ones, in their order, in half of the room; how many are missing is told."""
    lost = ["x" * 90, "ABC-1", "y" * 80, "ABC-2"]
    text, left_out = with_facts("It went on and on. " * 10, lost, 120, count)
    assert left_out == 2
    assert text.endswith(f"{HEAD}\n- ABC-1\n- ABC-2")
    assert len(text) <= 120


@given(
    st.text(alphabet="ab \n", min_size=1, max_size=300),
    st.lists(st.text(alphabet="xyz1\n", min_size=1, max_size=60), max_size=6, unique=True),
    st.integers(8, 400),
    st.sampled_from([len, lambda text: -(-len(text) // 4), lambda text: len(text.split())]),
)
@settings(max_examples=100)
def test_a_summary_with_facts_is_within_the_bound(
    body: str, must: list[str], limit: int, counter: Callable[[str], int]
) -> None:
    """And it never says that less is missing than is."""
    text, left_out = with_facts(body, must, limit, lambda texts: list(map(counter, texts)))
    assert counter(text) <= limit
    assert left_out == sum(fact not in text for fact in must)
