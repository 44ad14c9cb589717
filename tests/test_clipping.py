"""Cutting texts and arguments to a number of tokens: never more, hardly less, and at places that cost nobody a word."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction._clipping import (
    Clipping,
    between_characters,
    check_marker,
    head_end,
    numbers_in,
    tail_start,
    water_level,
)
from chat_compaction.counters import EstimateCounter
from chat_compaction.testing import RecordingCounter

MARK = "[{tokens}]"


def characters(texts: Sequence[str]) -> list[int]:
    return list(map(len, texts))


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def odd(texts: Sequence[str]) -> list[int]:
    """Not additive, and a longer text may count less."""
    return [len(text) // 3 + len(set(text)) - 2 * text.count("e") % 5 for text in texts]


def rows_of(seed: int) -> random.Random:
    """The same numbers every time."""
    return random.Random(seed)  # noqa: S311


LOG = "\n".join(f"row {number:04}: reading {number * 37 % 101}" for number in range(200))


# -- texts ---------------------------------------------------------------------------------------------


def test_a_text_within_the_limit_stays_as_it_is() -> None:
    """K10: so what was clipped is not clipped again at the same limit."""
    clipping = Clipping(characters, marker=MARK)
    assert clipping.text("four", 4) == "four"
    clipped = clipping.text(LOG, 300)
    assert clipped is not None
    assert clipping.text(clipped, 300) == clipped


def test_head_and_tail_around_a_marker_that_says_how_much_is_gone() -> None:
    text = " ".join(f"w{number:02}" for number in range(50))
    assert Clipping(words, marker="<{tokens} gone>").text(text, 10) == "w00 w01 w02 w03 <42 gone> w46 w47 w48 w49"


def test_lines_stay_whole_where_that_costs_little() -> None:
    """And the marker has a line of its own."""
    clipped = Clipping(characters).text(LOG, 500)
    assert clipped is not None
    lines = clipped.split("\n")
    assert set(lines) - set(LOG.split("\n")) == {lines[len(lines) // 2]}
    assert lines[len(lines) // 2] == f"[... {len(LOG) - len(clipped) + 30:,} tokens clipped ...]"


def test_words_stay_whole_where_lines_are_long() -> None:
    text = "the quick brown fox jumps over the lazy dog " * 50
    clipped = Clipping(characters, marker=MARK).text(text, 100)
    assert clipped is not None
    head, _, tail = clipped.replace("[", "|").replace("]", "|").split("|")
    assert {*head.split(), *tail.split()} == set(text.split())


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_share_of_the_head_can_be_set(share: float) -> None:
    text = "".join(rows_of(1).choices("abcdefgh", k=5_000))
    clipped = Clipping(characters, head_share=share, marker=MARK).text(text, 1_000)
    assert clipped is not None
    head, tail = clipped.split(f"[{5_000 - len(clipped) + 6}]")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert abs(len(head) - share * 994) <= 2
    assert 990 <= len(clipped) <= 1_000


def test_where_not_even_the_marker_fits_nothing_is_written() -> None:
    assert Clipping(characters).text(LOG, 20) is None
    assert Clipping(characters, marker=MARK).text(LOG, 6) == f"[{len(LOG)}]"
    assert Clipping(characters, marker=MARK).text(LOG, 5) is None


def test_crlf_stays_whole_and_is_the_line_end_of_the_marker() -> None:
    text = LOG.replace("\n", "\r\n")
    for limit in range(300, 340):
        clipped = Clipping(characters, marker="<>").text(text, limit)
        assert clipped is not None
        assert "\n" not in clipped.replace("\r\n", "")
        assert "\r" not in clipped.replace("\r\n", "")


def test_an_earlier_marker_that_is_cut_away_still_counts() -> None:
    """A text that is clipped further says how much is gone in all."""
    text = " ".join(map(str, range(100_000, 101_000)))
    for marker in ("<{tokens:,} gone>", "<{tokens} gone>", "<gone: {tokens:_}>"):
        clipping = Clipping(words, marker=marker)
        once = clipping.text(text, 500)
        assert once is not None
        twice = clipping.text(once, 100)
        assert twice is not None
        kept = sum(word.isdigit() for word in twice.split())
        (gone,) = numbers_in(twice, marker)
        assert abs(gone + kept - 1_000) <= 3


def test_a_marker_without_a_number_says_none() -> None:
    assert list(numbers_in("[cut] [cut]", "[cut]")) == []
    assert list(numbers_in("7 8", "{tokens}")) == []


@pytest.mark.parametrize("count", [characters, words, odd, EstimateCounter().count_many])
@given(data=st.data())
def test_never_more_than_the_limit_whatever_the_counter(count: Any, data: st.DataObject) -> None:
    """Counts of an arbitrary counter are not additive: the whole is what is counted."""
    text = data.draw(st.text(st.sampled_from("ab e\n\r\u0301\U0001f468\u200d\ud83d\ude00"), max_size=300))
    limit = data.draw(st.integers(0, 120))
    share = data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    clipped = Clipping(count, share, MARK).text(text, limit)
    if clipped is None:
        assert count([MARK.format(tokens=count([text])[0] - limit)])[0] > limit
        return
    assert count([clipped])[0] <= limit
    if clipped != text:
        assert count([text])[0] > limit
        head, _, rest = clipped.rpartition("[")
        tail = rest.partition("]")[2]
        assert text.startswith(head.removesuffix("\n").removesuffix("\r"))
        assert text.endswith(tail.removeprefix("\r").removeprefix("\n"))


@given(st.text(st.sampled_from("abc"), min_size=200, max_size=400), st.integers(20, 150))
def test_it_is_exact_where_nothing_is_in_the_way(text: str, limit: int) -> None:
    """One token a character, and no word or line that had to stay whole."""
    clipped = Clipping(characters, marker=MARK).text(text, limit)
    assert clipped is not None
    assert len(clipped) in (limit, limit - 1)  # The number may have a digit less than was thought.


@given(st.integers(0, 5_000), st.integers(1, 40), st.integers(0, 400))
def test_it_is_near_the_limit_by_a_line_on_each_side(seed: int, width: int, more: int) -> None:
    rows = rows_of(seed)
    text = "\n".join("x" * rows.randint(0, width) for _ in range(2_000))
    limit = min(500 + more, len(text) - 1)
    clipped = Clipping(characters, marker=MARK).text(text, limit)
    assert clipped is not None
    assert limit - len(clipped) <= 2 * (width + 1) + 2


# -- what it costs -------------------------------------------------------------------------------------


@cache
def texts_of(size: int) -> dict[str, str]:
    """Texts of one density and of several, some lines, some none."""
    rows = rows_of(7)
    dense = "".join(rows.choices("abcdefghijklmnopqrstuvwxyzABCDEF0123456789+/", k=size))
    said = " ".join(rows.choices(["alpha", "beta", "gamma", "of", "x"], k=size // 4))[:size]
    log = "\n".join(f"row {n:05}: sample reading {n * 37 % 101}, state ok" for n in range(size // 40))
    third = size // 3
    first, last = dense[:third] + said[:third] + log[:third], said[:third] + log[:third] + dense[:third]
    return {"dense": dense, "words": said, "log": log, "dense first": first, "dense last": last}


@pytest.mark.parametrize(("size", "limit"), [(1_000_000, 300), (200_000, 30), (200_000, 3_000)])
def test_a_long_text_takes_a_handful_of_counts(size: int, limit: int) -> None:
    """Of 1 MB: a handful of counts, nearly all of them of texts as long as the result."""
    estimate = EstimateCounter()
    for name, text in texts_of(size).items():
        asked: list[int] = []

        def count(texts: Sequence[str], asked: list[int] = asked) -> Sequence[int]:
            asked.extend(map(len, texts))
            return estimate.count_many(texts)

        clipped = Clipping(count).text(text, limit)
        assert clipped is not None, name
        assert len(asked) <= 18, name
        assert sum(asked) <= 1.15 * len(text) + 18 * 8 * limit, name


def test_cost_is_linear_in_the_text() -> None:
    """Operations, not seconds: twice the text is twice the characters that are counted, and no more counts."""
    work = []
    for rows in (5_000, 10_000, 20_000):
        counter = RecordingCounter()
        text = "\n".join(f"row {number:06}: reading {number * 37 % 101}" for number in range(rows))
        assert Clipping(counter.count_many).text(text, 2_000) is not None
        work.append((len(text), len(counter.counted), sum(map(len, counter.counted))))
    assert max(counts for _, counts, _ in work) <= 12
    for size, _, counted in work:
        assert counted <= size + 12 * 3_000


def test_a_counter_that_knows_no_better_comes_to_an_end() -> None:
    """The search gives up after a fixed number of counts, and what it gives is within the limit."""
    counter = RecordingCounter()

    def steps(texts: Sequence[str]) -> list[int]:
        counter.count_many(texts)
        return [1 if len(text) < 5_000 else 10**9 for text in texts]

    clipped = Clipping(steps).text("x" * 1_000_000, 10)
    assert clipped is not None
    assert len(counter.counted) <= 18


# -- where one may cut ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ab", [1]),
        ("a\r\nb", [1, 3]),
        ("a\n\rb", [1, 2, 3]),
        ("e\u0301e", [2]),
        ("x\U0001f468\u200d\U0001f469\u200d\U0001f467y", [1, 6]),
        ("\U0001f44d\U0001f3fd!", [2]),
        ("\ud83d\ude00\ud83d\ude00", [2]),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1ee", [2, 4]),
        ("\u2764\ufe0fa", [2]),
        ("\u1112\u1161\u11ab\uae00", [3]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f.", [4]),
    ],
    ids=ascii,
)
def test_what_a_reader_takes_for_one_character_stays_whole(text: str, places: list[int]) -> None:
    assert [at for at in range(1, len(text)) if between_characters(text, at)] == places


@given(
    st.text(st.sampled_from("ab \n\r\u0301\U0001f1e9\U0001f468\u200d\ud83d\ude00"), max_size=60), st.integers(-5, 70)
)
def test_ends_are_where_one_may_cut(text: str, at: int) -> None:
    """The head is no longer than asked, the tail no longer either, and both end between characters."""
    head, tail = head_end(text, at), tail_start(text, at)
    assert 0 <= head <= max(0, at)
    assert min(max(0, at), len(text)) <= tail <= len(text)
    for place in (head, tail):
        assert place in (0, len(text)) or between_characters(text, place)


@given(st.text(st.sampled_from("ab \n\u0301"), max_size=120))
def test_a_longer_head_never_ends_sooner(text: str) -> None:
    """So what is searched for is there to be found."""
    heads = [head_end(text, at) for at in range(len(text) + 1)]
    tails = [tail_start(text, at) for at in range(len(text) + 1)]
    assert heads == sorted(heads)
    assert tails == sorted(tails)


# -- levels --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 200))
def test_the_water_level_is_the_greatest_that_is_enough(sizes: list[int], need: int) -> None:
    level = water_level(sizes, need)
    gone = [sum(max(0, size - at) for size in sizes) for at in (level, level + 1)]
    if sum(sizes) < need:
        assert level == 0
    else:
        assert gone[0] >= need > gone[1]


# -- arguments -----------------------------------------------------------------------------------------

ARGUMENTS = {"path": "a.txt", "content": LOG, "mode": 420, "nested": {"old": LOG[:2_000], "flags": [True, None, 1.5]}}


def same_but_strings(one: Any, other: Any) -> bool:
    """The same keys at every level, and every value that is no string."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_but_strings(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_but_strings, one, other))
    return isinstance(other, str) if isinstance(one, str) else one == other and type(one) is type(other)


def test_arguments_still_parse_and_keep_their_keys() -> None:
    text = json.dumps(ARGUMENTS)
    clipped = Clipping(characters).json(text, 1_000)
    assert clipped is not None
    assert 900 <= len(clipped) <= 1_000
    value = json.loads(clipped)
    assert same_but_strings(ARGUMENTS, value)
    assert value["path"] == "a.txt"
    assert "tokens clipped" in value["content"]
    assert value["content"].startswith("row 0000: reading 0\nrow 0001")
    # The longest come first, down to one length.
    sizes = [len(json.dumps(value["content"])), len(json.dumps(value["nested"]["old"]))]
    assert abs(sizes[0] - sizes[1]) < 60


def test_what_is_not_cut_stays_as_it_was_written() -> None:
    """Numbers that no float holds, keys that come twice, white space, escapes, the order."""
    head = '{ "n" : 123456789012345678901234567890.50, "n":1e999 ,\n "k\\"": "\\u00e9\\/", "long": "'
    clipped = Clipping(characters, marker=MARK).json(head + "x" * 500 + '"}', 150)
    assert clipped is not None
    assert clipped.startswith(head)
    assert len(clipped) <= 150


@pytest.mark.parametrize("long", ["é" * 400, "\\u00e9" * 400, "\\ud83d" * 400, "é\\ud83d" * 300, "\\n\\t\\\\" * 300])
def test_escapes_are_counted_and_written_as_they_came(long: str) -> None:
    """A string of escapes stays one; half a pair is never written raw, since nobody could send it."""
    text = f'{{"a": "{long}"}}'
    clipped = Clipping(characters, marker=MARK).json(text, 200)
    assert clipped is not None
    assert 150 <= len(clipped) <= 200
    assert clipped.isascii() == text.isascii() or "\\ud83d" in long
    clipped.encode()
    json.loads(clipped)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON at all " * 50,
        json.dumps("a string " * 50),
        json.dumps(["a list"] * 50),
        '{"broken": "' + "x" * 500,
        json.dumps({f"key {number}": number for number in range(100)}),
        json.dumps({f"key {number}": "short" for number in range(100)}),
        '{"a":' * 100_000,
    ],
    ids=range(8),
)
def test_what_can_not_be_clipped_is_left(text: str) -> None:
    """No object, broken, or without a string that is long enough."""
    assert Clipping(characters).json(text, 100) == (text if len(text) <= 100 else None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.integers(0, 200), st.booleans())
def test_clipped_arguments_have_the_same_form(value: dict[str, Any], limit: int, ascii_only: bool) -> None:
    """``args_json_valid``: at every level, whatever the arguments are; and never more than the limit."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    clipped = Clipping(characters, marker=MARK).json(text, limit)
    if clipped is not None:
        assert len(clipped) <= limit
        assert same_but_strings(value, json.loads(clipped))
        assert Clipping(characters, marker=MARK).json(clipped, limit) == clipped


def test_the_shortest_json() -> None:
    """With every string as short as it can be; nothing where none can be shorter."""
    how = Clipping(lambda texts: list(map(len, texts)), marker="<{tokens}>")
    text = json.dumps({"a": "x" * 90, "b": ["y" * 200, "short", 7], "c": {"d": "z" * 30}})
    shortest = how.shortest_json(text)
    assert shortest is not None
    assert json.loads(shortest) == {"a": "<89>x", "b": ["<200>", "short", 7], "c": {"d": "<29>z"}}
    assert how.shortest_json(shortest) is None
    assert how.shortest_json('{"a": "b", "c": 1}') is None
    assert how.shortest_json('["a long text in a list"]') is None
    assert how.shortest_json("no JSON at all") is None


# -- markers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["[cut]", "... {tokens} ...", "{tokens:_}", "{{{tokens}}}"])
def test_markers(marker: str) -> None:
    check_marker(marker)


@pytest.mark.parametrize(
    ("marker", "error"),
    [(None, TypeError), ("", ValueError), (" \n", ValueError), ("{lines}", ValueError), ("{", ValueError)],
)
def test_wrong_markers(marker: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^marker must be a text that may have the field {tokens}.*, got "):
        check_marker(marker)
