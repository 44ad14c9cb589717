"""Asking (rule S2): every request fits into the summarizer's window, in few calls, and it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_compaction._effects import Effect, run
from chat_compaction._summarizing import SECTIONS, TASK, SummaryEntry, SummaryRequest
from chat_compaction._summarizing._answers import SummaryRefusedError
from chat_compaction._summarizing._asking import Asking
from chat_compaction._summarizing._chunking import calls_for, chunks_of, most_chunks, shortened, sizes_of
from chat_compaction._summarizing._cutting import cut_to, split

COUNTS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "quarters": lambda text: -(-len(text) // 4),
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
}
SCALE = {"characters": 4.0, "words": 0.7, "quarters": 1.0, "bytes": 4.0}
"""How much of a window each needs for the same text."""


def counting(name: str = "characters") -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: list(map(COUNTS[name], texts))


@attrs.define
class Summarizer:
    """Answers with a text of so many words at the most, and keeps the requests."""

    words: int = 20
    requests: list[SummaryRequest] = attrs.field(factory=list)

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        return f"{request.purpose} {len(self.requests)} " + "and so on " * min(self.words, request.max_tokens * 2)


def asking(summarizer: Callable[[SummaryRequest], Any], counter: str = "characters", **arguments: Any) -> Asking:
    defaults: dict[str, Any] = {"window": 8_000, "max_tokens": 400, "max_calls": 16, "task": TASK, "sections": SECTIONS}

    def effect(request: SummaryRequest) -> Effect:
        return Effect(summarizer, (request,), planned="")

    return Asking(count=counting(counter), effect=effect, **{**defaults, **arguments})


def entries(number: int, text: str = "There are three crates.\n") -> list[SummaryEntry]:
    return [SummaryEntry(("user", "assistant")[place % 2], f"{place}: {text}") for place in range(number)]


# -- one request, or several ---------------------------------------------------------------------------


def test_what_fits_is_asked_in_one_request() -> None:
    summarizer = Summarizer()
    text = run(asking(summarizer).summary(entries(20)))
    assert [asked.purpose for asked in summarizer.requests] == ["summary"]
    assert summarizer.requests[0].entries == tuple(entries(20))
    assert text.startswith("summary 1 and so on")


def test_what_does_not_goes_in_chunks_that_are_merged() -> None:
    """Every word of it is in some chunk, in order; the merge gets the summaries, and its answer is the summary."""
    summarizer = Summarizer()
    said = entries(400)
    text = run(asking(summarizer).summary(said))
    *chunks, merge = summarizer.requests
    assert {chunk.purpose for chunk in chunks} == {"chunk"}
    assert len(chunks) > 1
    assert "".join(entry.text for chunk in chunks for entry in chunk.entries) == "".join(e.text for e in said)
    assert [entry.text.split(" and")[0] for entry in merge.entries] == [f"chunk {n + 1}" for n in range(len(chunks))]
    assert {entry.speaker for entry in merge.entries} == {"summary"}
    assert merge.purpose == "merge"
    assert text.startswith(f"merge {len(chunks) + 1} ")
    assert f"this is part 2 of {len(chunks)}" in chunks[1].instructions


def test_many_summaries_of_parts_are_merged_in_rounds() -> None:
    """As many at once as fit; each round leaves fewer."""
    summarizer = Summarizer(words=200)
    run(asking(summarizer, max_tokens=1_000, max_calls=40).summary(entries(2_500)))
    merges = [request for request in summarizer.requests if request.purpose == "merge"]
    assert len(merges) > 1
    assert {request.max_tokens for request in merges[:-1]} == {summarizer.requests[0].max_tokens}
    assert summarizer.requests[0].max_tokens < merges[-1].max_tokens == 1_000


def test_a_single_huge_message_is_split() -> None:
    """At the ends of lines, and nothing is lost."""
    summarizer = Summarizer()
    huge = SummaryEntry("tool read", "".join(f"line {n}\n" for n in range(3_000)))
    run(asking(summarizer).summary([SummaryEntry("user", "read"), huge]))
    *chunks, _ = summarizer.requests
    pieces = [entry for chunk in chunks for entry in chunk.entries if entry.speaker == "tool read"]
    assert "".join(piece.text for piece in pieces) == huge.text
    assert len(pieces) == len(chunks)
    assert all(piece.text.endswith("\n") for piece in pieces)


def test_where_calls_are_few_the_longest_texts_are_shortened() -> None:
    """What is short stays word for word, an earlier summary too, and the head and the tail of what is long."""
    summarizer = Summarizer()
    old, huge = SummaryEntry("summary", "Tea was made. " * 20), SummaryEntry("tool read", f"HEAD{'x ' * 50_000}TAIL")
    run(asking(summarizer, max_calls=1).summary([old, SummaryEntry("user", "Read all of it."), huge]))
    (request,) = summarizer.requests
    assert request.entries[:2] == (old, SummaryEntry("user", "Read all of it."))
    text = request.entries[2].text
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert "tokens left out)" in text
    assert request.purpose == "summary"


@pytest.mark.parametrize("window", [1, 500, 2_900])
def test_a_window_without_room_is_refused_and_nothing_is_asked(window: int) -> None:
    """The error names the window; a call that must fail is not made."""
    summarizer = Summarizer()
    with pytest.raises(SummaryRefusedError, match=f"a window of {window:,} tokens"):
        run(asking(summarizer, window=window).summary(entries(50)))
    assert summarizer.requests == []


def test_a_counter_of_which_the_whole_is_more_than_its_parts() -> None:
    """What was planned by parts is counted again as it is sent, and made smaller until it fits."""
    summarizer = Summarizer()
    asks = attrs.evolve(
        asking(summarizer), count=lambda texts: [len(text) + max(0, len(text) - 4_000) // 4 for text in texts]
    )
    run(asks.summary(entries(300)))
    assert len(summarizer.requests) > 2
    assert all(asks.count([r.prompt])[0] + r.max_tokens <= 8_000 for r in summarizer.requests)


@pytest.mark.parametrize("per", [1, 40])
def test_a_counter_that_fits_no_plan_is_refused_before_anything_is_asked(per: int) -> None:
    """Long texts that count far more than their parts: it ends, and nothing too long is sent."""
    summarizer = Summarizer()
    asks = attrs.evolve(
        asking(summarizer), count=lambda texts: [len(text) + max(0, len(text) - 2_600) * per for text in texts]
    )
    with pytest.raises(SummaryRefusedError, match="does not fit"):
        run(asks.summary(entries(300) if per > 1 else entries(3_000)))
    assert all(asks.count([r.prompt])[0] + r.max_tokens <= 8_000 for r in summarizer.requests)


def test_a_merge_that_does_not_fit_is_not_sent() -> None:
    """S2: each request is counted as it is sent, whatever was planned."""
    summarizer = Summarizer()
    asks = attrs.evolve(
        asking(summarizer),
        count=lambda texts: [len(text) + 9_000 * (" parts of one" in text and "chunk 1" in text) for text in texts],
    )
    with pytest.raises(SummaryRefusedError, match="does not fit"):
        run(asks.summary(entries(300)))
    assert {request.purpose for request in summarizer.requests} == {"chunk"}


def test_an_error_of_the_summarizer_is_the_cause() -> None:
    def broken(_: SummaryRequest) -> str:
        raise OSError("no connection")

    with pytest.raises(SummaryRefusedError) as caught:
        run(asking(broken).summary(entries(3)))
    assert isinstance(caught.value.__cause__, OSError)


def test_only_what_a_chunk_holds_must_be_kept_there() -> None:
    """S4: a merge asks for nothing word for word; what is lost is appended at the end."""
    summarizer = Summarizer()
    said = [*entries(300), SummaryEntry("user", "ticket ABC-1")]
    run(attrs.evolve(asking(summarizer), facts=["ABC-1", "not there"]).summary(said))
    *chunks, merge = summarizer.requests
    assert [chunk.must_keep for chunk in chunks] == [*[()] * (len(chunks) - 1), ("ABC-1",)]
    assert merge.must_keep == ()


SIZES = st.lists(st.integers(0, 4_000) | st.integers(0, 40), min_size=1, max_size=25)


@given(
    SIZES,
    st.sampled_from(sorted(COUNTS)),
    st.sampled_from([600, 900, 1_300, 2_000, 6_000]),
    st.floats(0.02, 0.4),
    st.sampled_from([1, 2, 3, 5, 16]),
    st.sampled_from([0, 1, 30, 3_000]),
)
@settings(max_examples=60)
def test_every_request_fits_in_every_case(
    sizes: list[int], counter: str, window: int, share: float, max_calls: int, words: int
) -> None:
    """S2: by the counter, with its answer, whatever is said, however small the window and however long the answers."""
    summarizer, window = Summarizer(words=words), int(window * SCALE[counter])
    asks = asking(summarizer, counter, window=window, max_tokens=max(8, int(window * share)), max_calls=max_calls)
    said = [SummaryEntry("user", ("crate wörds\n" * size)[:size]) for size in sizes]
    with suppress(SummaryRefusedError):
        assert run(asks.summary(said))
    assert len(summarizer.requests) <= max_calls
    for request in summarizer.requests:
        assert asks.count([request.prompt])[0] + request.max_tokens <= 0.8 * window + 1


# -- dividing and cutting -------------------------------------------------------------------------------


@given(st.text(alphabet="ab \n漢😀", max_size=200), st.integers(1, 30), st.sampled_from(sorted(COUNTS)))
@settings(max_examples=60)
def test_a_split_text_is_whole_and_each_piece_fits(text: str, limit: int, counter: str) -> None:
    """Only a single character is ever longer."""
    count = counting(counter)
    pieces = split(text, limit, count)
    assert "".join(pieces) == text
    assert all(size <= limit or len(piece) == 1 for piece, size in zip(pieces, count(pieces), strict=True))


@given(st.text(alphabet="ab \n漢😀", max_size=200), st.integers(0, 30), st.sampled_from(sorted(COUNTS)))
@settings(max_examples=60)
def test_a_cut_text_fits(text: str, limit: int, counter: str) -> None:
    """It is the text itself, its beginning with a note, or nothing."""
    count = counting(counter)
    cut = cut_to(text, limit, count)
    assert count([cut])[0] <= limit
    assert cut in (text, "") or (cut.endswith("(cut)") and text.startswith(cut.removesuffix("(cut)").rstrip("\n")))


@given(SIZES, st.integers(1_000, 4_000))
@settings(max_examples=40)
def test_chunks_hold_everything_in_order_and_are_well_filled(sizes: list[int], room: int) -> None:
    """Each but the last is at least three quarters full, so that there are few."""
    said, count = [SummaryEntry("user", "x" * size) for size in sizes], counting()
    chunks = chunks_of(said, room, count)
    assert "".join(entry.text for chunk in chunks for entry in chunk) == "".join(entry.text for entry in said)
    filled = [sum(sizes_of(chunk, count)) for chunk in chunks]
    assert max(filled) <= room
    # What was split into pieces and joined again has fewer lines of ours than its pieces had.
    assert all(size >= room * 0.75 - 200 for size in filled[:-1])


@given(SIZES, st.integers(1_000, 20_000))
@settings(max_examples=40)
def test_shortening_touches_the_longest_only(sizes: list[int], limit: int) -> None:
    """What is left alone is no longer than what was shortened, and nothing is where all fits."""
    said, count = [SummaryEntry("user", "y " * size) for size in sizes], counting()
    short = shortened(said, limit, count)
    whole = [entry for entry, now in zip(said, short, strict=True) if entry == now]
    cut = [now for entry, now in zip(said, short, strict=True) if entry != now]
    if sum(sizes_of(said, count)) <= limit:
        assert not cut
    assert not cut or max((len(e.text) for e in whole), default=0) <= max(len(e.text) for e in cut) + 64


@pytest.mark.parametrize(
    ("calls", "at_once", "chunks"),
    [(1, 2, 1), (2, 9, 1), (3, 2, 2), (16, 4, 12), (16, 20, 15), (10**9, 10, 900_000_000)],
)
def test_how_many_chunks_so_many_calls_are_enough_for(calls: int, at_once: int, chunks: int) -> None:
    """One call a chunk, and those that merge."""
    assert most_chunks(calls, at_once) == chunks
    assert calls_for(chunks, at_once) <= calls < calls_for(chunks + 1, at_once)
