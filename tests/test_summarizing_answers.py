"""Answers (rules S3 and S4): what is no summary is refused, and what must be kept is in it word for word."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_compaction._marks import CLOSING, OPENING, mark, unmarked
from chat_compaction._summarizing import SummaryEntry
from chat_compaction._summarizing._answers import SummaryRefusedError, checked_answer
from chat_compaction._summarizing._kept import HEAD, parted
from chat_compaction._summarizing._must_keep import as_must_keep, facts_in, with_facts
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


@pytest.mark.parametrize(
    "keep",
    [
        TICKET,
        re.compile(r"^RULE: .*$", re.MULTILINE),
        re.compile(r"(?<=nowhere)x"),
        lambda message: False,
        "no such text",
    ],
)
def test_what_an_earlier_summary_keeps_is_carried_on(keep: Any) -> None:
    """So that it survives any number of passes, whether it is found there anew or not."""
    earlier = user(mark(f"Tickets.\n\n{HEAD}\n- ABC-12\n- 2 lines:\nRULE: a\n- b"))
    assert facts(keep, [earlier, said("more")]) == ["ABC-12", "RULE: a\n- b"]


def test_the_words_of_an_earlier_summary_are_looked_at_too() -> None:
    """By texts and patterns; a function knows messages, and is not asked."""
    earlier = user(mark(f"Tickets, ABC-7.\n\n{HEAD}\n- ABC-12"))
    asked: list[Any] = []
    assert facts([TICKET, " Tickets, ", asked.append], [earlier, said("more")]) == ["ABC-12", "ABC-7", "Tickets,"]
    assert asked == [said("more")]


@pytest.mark.parametrize(
    "section",
    ["no item", "- a\nno item", "- ", "- a\n\n- b", "- 4 lines:\na\nb", "- 1 line:\n ", "- 999999999 lines:\na"],
)
def test_what_is_not_written_as_we_do_is_no_section(section: str) -> None:
    """S1: without a key anybody can write a summary; it is words then, and texts and patterns are looked for in it."""
    body = f"See ABC-7.\n\n{HEAD}\n{section}\n- ABC-12"
    assert parted(body) == (body, [])
    assert facts(TICKET, [user(mark(body)), said("more")]) == ["ABC-7", "ABC-12"]


def test_texts_are_compared_without_white_space_around_them() -> None:
    """As they stand in a summary."""
    assert facts(" swordfish.\r\n") == ["swordfish."]


@pytest.mark.parametrize(
    ("keep", "error", "text"),
    [
        (3, TypeError, "must_keep must be texts, compiled patterns or functions, got 3"),
        ([3], TypeError, "must_keep must be texts, compiled patterns or functions, got 3 in it"),
        ("", ValueError, "must_keep must hold no empty text or pattern, got '' in it"),
        ([" \n"], ValueError, "must_keep must hold no empty text or pattern, got ' \\n' in it"),
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


def test_it_stands_at_the_end_whether_the_words_hold_it_or_not() -> None:
    """S4: verified, not hoped for; and a later summary reads it from there."""
    assert with_facts("ABC-1 is done.", ["ABC-1", "two\nlines", "3 lines:"], 200, count) == (
        f"ABC-1 is done.\n\n{HEAD}\n- ABC-1\n- 2 lines:\ntwo\nlines\n- 1 line:\n3 lines:",
        0,
    )
    assert with_facts("ABC-1 is done.", [], 200, count) == ("ABC-1 is done.", 0)


def test_a_list_of_the_summarizers_own_is_not_said_twice() -> None:
    """It is told what must be in the summary, and it may copy what an earlier one had."""
    body = f"Tickets:\n- ABC-1\n - ABC-2\n- ABC-3\n\n{HEAD}\n- ABC-1"
    assert with_facts(body, ["ABC-1", "ABC-2"], 200, count)[0] == f"Tickets:\n- ABC-3\n\n{HEAD}\n- ABC-1\n- ABC-2"
    assert with_facts(f"Done.\n{HEAD}\n- ABC-1", [], 200, count)[0] == "Done.\n- ABC-1"


def test_what_is_not_said_twice_makes_room() -> None:
    """For more of what must be kept than half of the room."""
    must = [f"ABC-{n}" for n in range(12)]
    assert with_facts("\n".join(f"- {fact}" for fact in must), must, 130, count)[1] == 0


def test_the_words_make_room() -> None:
    body = f"{'It went on and on. ' * 10}ABC-1"
    text, left_out = with_facts(body, ["ABC-1", "ABC-2"], 120, count)
    assert left_out == 0
    assert len(text) <= 120
    assert text.endswith(f"(cut)\n\n{HEAD}\n- ABC-1\n- ABC-2")


def test_where_there_is_no_room_for_all_as_many_as_fit_are_kept() -> None:
    """The first, in half of the room, so that what was kept once stays; how many are missing is told."""
    lost = ["x" * 90, "ABC-1", "y" * 80, *(f"ABC-{n}" for n in range(2, 7)), "A-7"]
    text, left_out = with_facts("It went on and on. " * 10, lost, 120, count)
    assert left_out == 4
    assert text.endswith(f"{HEAD}\n- ABC-1\n- ABC-2\n- ABC-3\n- ABC-4\n- ABC-5")
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
    """And it never says that less is missing than is; what is kept is read again as it was."""
    must = list(dict.fromkeys(fact.strip() for fact in must if fact.strip()))
    text, left_out = with_facts(body, must, limit, lambda texts: list(map(counter, texts)))
    assert counter(text) <= limit
    kept = parted(text)[1]
    assert left_out == len(must) - len(kept)
    assert kept == [fact for fact in must if fact in kept]
    assert all(fact in text for fact in kept)


@given(
    st.lists(
        st.sampled_from(["", HEAD, f"- {HEAD}", "- 2 lines:", "- 1 line:", "words", "- item", " ", "\r"]), max_size=8
    ),
    st.lists(
        st.lists(
            st.sampled_from([HEAD, "- 2 lines:", "2 lines:", "- item", "- ", "x", "", "\r", mark("y")]), min_size=1
        ),
        max_size=5,
    ),
)
@settings(max_examples=200)
def test_what_is_kept_is_read_again_whatever_it_is(body: list[str], must: list[list[str]]) -> None:
    """S4: heads, lists, empty lines and summaries in it, and a summarizer that writes the same."""
    texts = ["\n".join(lines).strip() for lines in must]
    expected = [text for text in dict.fromkeys(texts) if text]
    text, left_out = with_facts("\n".join(body).strip(), expected, 10_000, count)
    assert left_out == 0
    if text.strip():
        words, kept = parted(unmarked(mark(text)))
        assert kept == expected
        again, _ = with_facts(words, kept, 10_000, count)
        assert again.strip() == text.strip()
