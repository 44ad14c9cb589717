"""The summariser that needs no model: what it chooses, what it keeps, and that it always does the same."""

import subprocess
import sys
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.counters import EstimateCounter, FunctionCounter
from chat_compaction.summarizers import ExtractiveSummarizer, SummaryEntry, SummaryError, SummaryRequest
from chat_compaction.summarizers._extractive import Room
from chat_compaction.summarizers._sentences import Segmenter, words_of
from tests._shared import ROOT

COUNTER = EstimateCounter()
LOG = "\n".join(f"2026-11-30 12:00:{number:02} worker {number} polled the queue" for number in range(60))
ENTRIES = (
    SummaryEntry("user", "The pump in the cellar is broken. Please order part PX-4471 before Friday. Thanks!"),
    SummaryEntry("assistant", 'I will look for part PX-4471.\n(calls search with {"part": "PX-4471"})'),
    SummaryEntry("tool search", f"{LOG}\nPX-4471 is sold by Nordic Pumps for 89 euros."),
    SummaryEntry("assistant", "Nordic Pumps sells part PX-4471 for 89 euros. Shall I order it?"),
    SummaryEntry("user", "Yes, order it from Nordic Pumps."),
)


def request_of(*entries: SummaryEntry, max_tokens: int = 120, must_keep: tuple[str, ...] = ()) -> SummaryRequest:
    return SummaryRequest(
        instructions="Summarise.", text="fenced", max_tokens=max_tokens, entries=entries, must_keep=must_keep
    )


def summary_of(*entries: SummaryEntry, max_tokens: int = 120, must_keep: tuple[str, ...] = (), **more: Any) -> str:
    summarizer = ExtractiveSummarizer(**{"counter": COUNTER, **more})
    return summarizer(request_of(*entries, max_tokens=max_tokens, must_keep=must_keep))


def tokens(text: str) -> int:
    return COUNTER.count_many([text])[0]


# -- what is chosen --------------------------------------------------------------------------------


def test_sentences_with_their_speaker_in_order() -> None:
    """Whole sentences, word for word, each with who said it; what the user wants before what a tool logged."""
    assert summary_of(*ENTRIES, max_tokens=90).splitlines() == [
        "- user: The pump in the cellar is broken.",
        "- user: Please order part PX-4471 before Friday.",
        "- assistant: Nordic Pumps sells part PX-4471 for 89 euros.",
        "- assistant: Shall I order it?",
        "- user: Yes, order it from Nordic Pumps.",
    ]


def test_at_most_so_many_sentences() -> None:
    """``sentences`` bounds the new ones, the best first."""
    (only,) = summary_of(*ENTRIES, sentences=1).splitlines()
    assert "PX-4471" in only
    assert len(summary_of(*ENTRIES, sentences=3).splitlines()) == 3


def test_nothing_is_said_twice() -> None:
    """A sentence adds what no chosen one has: the same words again add nothing."""
    entry = SummaryEntry("user", "Order the pump now. Order the pump now! Now order the pump. The roof leaks.")
    assert summary_of(entry) == "- user: Order the pump now.\n- user: The roof leaks."


def test_what_has_no_word_is_no_sentence() -> None:
    """Fences, rules and brackets are not worth a line."""
    assert summary_of(SummaryEntry("assistant", "```\n{\n  }\n---\n\n🙂\nThe pump works.")) == (
        "- assistant: The pump works."
    )


def test_a_long_sentence_is_cut() -> None:
    """A line of minified code doesn't fill the summary; it is cut between words where there are any."""
    assert summary_of(SummaryEntry("user", "pump " * 500), longest=20) == "- user: pump pump pump…"
    assert summary_of(SummaryEntry("user", "p" * 500), longest=20) == f"- user: {'p' * 19}…"


def test_of_a_long_result_both_ends_are_looked_at() -> None:
    """Its middle is the least; lines that the cut would break are passed over."""
    middle = "\n".join(f"row {number} of many, many more" for number in range(10_000))
    lines = Segmenter("en", 400).sentences([SummaryEntry("tool", f"head first\n{middle}\ntail last")])
    assert lines[0].line == "- tool: head first"
    assert lines[-1].line == "- tool: tail last"
    assert len(lines) < 200
    assert all(line.line.endswith(("more", "first", "last")) for line in lines)


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("水泵坏了。请订购零件。谢谢！", "水泵坏了。", "请订购零件。"),  # noqa: RUF001
        ("ポンプが壊れています。部品を注文してください。", "ポンプが壊れています。", "部品を注文してください。"),
        ("पंप टूटा है। पुर्जा मंगाओ।", "पंप टूटा है।", "पुर्जा मंगाओ।"),
        ("المضخة معطلة. هل تطلب القطعة؟ نعم.", "المضخة معطلة.", "هل تطلب القطعة؟"),
        ("Насос сломан. Закажите деталь!", "Насос сломан.", "Закажите деталь!"),  # noqa: RUF001
        ("Die Pumpe z.B. ist kaputt. Bestell sie!", "Die Pumpe z.B. ist kaputt.", "Bestell sie!"),
        ("ปั๊มเสีย\nสั่งอะไหล่", "ปั๊มเสีย", "สั่งอะไหล่"),
    ],
)
def test_any_language(text: str, first: str, rest: str) -> None:
    """Sentences end where they end in the script, and words are found where a script has no spaces."""
    lines = summary_of(SummaryEntry("user", text)).splitlines()
    assert f"- user: {first}" in lines
    assert f"- user: {rest}" in lines


def test_words_of_scripts_without_spaces() -> None:
    """Pairs of characters stand for words; a text that mixes scripts has both."""
    assert words_of("PX-4471 水泵坏了 ok 水") == ("px", "4471", "水泵", "泵坏", "坏了", "ok", "水")
    assert words_of("a水b") == ("a", "b", "水")


def test_a_request_with_a_text_alone() -> None:
    """A request that somebody made by hand, without entries, is summarised by its text."""
    request = SummaryRequest(instructions="", text="The pump is broken. \ud800 It leaks.", max_tokens=50)
    assert ExtractiveSummarizer(counter=COUNTER)(request) == "- user: The pump is broken.\n- user: \ufffd It leaks."


# -- what is kept ----------------------------------------------------------------------------------

EARLIER = "## Goal\n- Keep the cellar dry.\n\n- Never call on Sundays."


def test_the_lines_of_an_earlier_summary_are_kept() -> None:
    """They come first, word for word, with new sentences after them (rule S2: folded in)."""
    summary = summary_of(SummaryEntry("summary", EARLIER), *ENTRIES, max_tokens=90)
    assert summary.startswith("## Goal\n- Keep the cellar dry.\n- Never call on Sundays.\n- ")
    assert "PX-4471" in summary


def test_no_line_of_an_earlier_summary_is_too_like_another() -> None:
    """Where they fit, all stay, even one whose every word the others have."""
    earlier = "- Ask Ada, not Bob.\n- Ask Bob.\n- Not Ada."
    assert summary_of(SummaryEntry("summary", earlier)) == earlier


def test_noise_is_not_worth_its_tokens() -> None:
    """Room alone is no reason: what adds next to nothing stays out."""
    assert "Thanks!" not in summary_of(*ENTRIES, max_tokens=1_000)


def test_an_earlier_summary_leaves_room() -> None:
    """Where both want more than there is, the earlier one has half of the room."""
    earlier = "\n".join(f"- fact {number} about the cellar wall" for number in range(200))
    summary = summary_of(SummaryEntry("summary", earlier), *ENTRIES, max_tokens=120)
    kept = [line for line in summary.splitlines() if "fact" in line]
    assert 0 < tokens("\n".join(kept)) <= 60
    assert "- user: Please order part PX-4471 before Friday." in summary


def test_an_earlier_summary_has_the_room_that_nobody_needs() -> None:
    """Half is not a bound where there is little that is new, or nothing."""
    earlier = "\n".join(f"- fact {number} about wall {number * 7}" for number in range(12))
    new = SummaryEntry("user", "Good.")
    assert 60 < tokens(earlier) < 110
    assert summary_of(SummaryEntry("summary", earlier), new, max_tokens=120) == f"{earlier}\n- user: Good."
    assert summary_of(SummaryEntry("summary", earlier), max_tokens=120) == earlier


def test_its_own_summary_is_taken_over() -> None:
    """Round after round the lines stay the same: they are not wrapped again."""
    first = summary_of(*ENTRIES, max_tokens=60)
    assert summary_of(SummaryEntry("summary", first), max_tokens=60) == first
    again = summary_of(SummaryEntry("summary", first), SummaryEntry("user", "It arrived."), max_tokens=120)
    assert again == f"{first}\n- user: It arrived."


def test_what_must_be_kept_is_there_word_for_word() -> None:
    """What no chosen sentence has stands in a line of its own (rule S4)."""
    summary = summary_of(*ENTRIES, max_tokens=60, must_keep=("PX-4471", "polled the queue"))
    assert summary.count("PX-4471") >= 1
    assert summary.splitlines()[-1] == "- polled the queue"
    assert tokens(summary) <= 60


def test_what_must_be_kept_has_half_of_the_room() -> None:
    """More than that is for the strategy, which knows what it can do about it."""
    summary = summary_of(*ENTRIES, max_tokens=60, must_keep=("wall " * 100, "roof"))
    assert "wall wall" not in summary
    assert "- roof" in summary


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_tokens", [30, 100, 400])
def test_it_fits(max_tokens: int) -> None:
    """Never more tokens than the request allows, and most of them where there is enough to say."""
    entries = [SummaryEntry("user", f"Pump {n} of hall {n * 31 % 97} needs part {n * 17}.") for n in range(200)]
    size = tokens(summary_of(*entries, max_tokens=max_tokens))
    assert max_tokens // 2 <= size <= max_tokens


def test_it_fits_by_a_counter_that_does_not_add_up() -> None:
    """What lines cost together may be more than one by one: then lines leave again."""
    square = FunctionCounter(lambda text: len(text) ** 2 // 100, name="square")
    summary = summary_of(*ENTRIES, max_tokens=60, counter=square)
    assert summary
    assert len(summary) ** 2 // 100 <= 60


@pytest.mark.parametrize("entries", [(), (SummaryEntry("user", "---"),), (SummaryEntry("user", "pump " * 60),)])
def test_nothing_to_say_is_an_error(entries: tuple[SummaryEntry, ...]) -> None:
    """No sentence, or none that fits: an error, not an empty summary (rule S3)."""
    request = attrs.evolve(request_of(*entries, max_tokens=5), text="...")
    with pytest.raises(SummaryError, match=r"^no sentence of the conversation fits in 5 tokens$") as caught:
        ExtractiveSummarizer(counter=COUNTER)(request)
    assert caught.value.reason == "empty"


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool x", "summary", "bob"]), st.text())), st.data())
def test_any_text(said: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whatever stands in a conversation: a summary that fits, the same each time, or the error for an empty one."""
    entries = tuple(SummaryEntry(speaker, text) for speaker, text in said)
    request = request_of(*entries, max_tokens=data.draw(st.integers(1, 80)))
    summarizer = ExtractiveSummarizer(counter=COUNTER)
    try:
        summary = summarizer(request)
    except SummaryError:
        summary = ""
    assert tokens(summary) <= request.max_tokens
    if summary:
        assert summarizer(request) == summary


def test_the_same_in_every_process() -> None:
    """The order of sets has no part in it: a process that hashes differently chooses the same."""
    program = (
        "import sys; from tests.test_summarizers_extractive import ENTRIES, summary_of;"
        "sys.stdout.buffer.write(summary_of(*ENTRIES * 3, max_tokens=300).encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": "1"}, cwd=ROOT, capture_output=True, check=True
    )
    assert done.stdout.decode() == summary_of(*ENTRIES * 3, max_tokens=300)


@pytest.mark.parametrize("kind", ["different", "alike"])
def test_the_work_grows_with_the_conversation(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Twice as long is at most little more than twice the work: what a line adds is asked again for few of them."""
    asked = [0]
    real = Room.adds

    def counted(*arguments: Any) -> float:
        asked[0] += 1
        return real(*arguments)

    monkeypatch.setattr(Room, "adds", staticmethod(counted))

    def work(number: int) -> int:
        lines = (f"Pump {n} of hall {n * 31 % 97} has part {n % 7 if kind == 'alike' else n}." for n in range(number))
        asked[0] = 0
        summary_of(*(SummaryEntry("user", line) for line in lines), max_tokens=300)
        return asked[0]

    assert work(4_000) <= 2.5 * work(2_000)
    assert work(4_000) <= 4_000 * 4


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "summarizer",
    [
        ExtractiveSummarizer(),
        ExtractiveSummarizer(sentences=12, language="de", longest=80),
        ExtractiveSummarizer(counter=EstimateCounter()),
    ],
    ids=repr,
)
def test_its_repr_makes_it(summarizer: ExtractiveSummarizer) -> None:
    """A summariser is a value: equal to its equal, hashable, printed as what makes it."""
    made = eval(repr(summarizer))  # noqa: S307
    assert made == summarizer
    assert hash(made) == hash(summarizer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": 0}, "sentences must be an int of 1 or more, got 0"),
        ({"sentences": True}, "sentences must be an int of 1 or more, got True"),
        ({"language": ""}, "language must be a text that is not empty, got ''"),
        ({"longest": 10}, "longest must be an int of 20 or more, got 10"),
        ({"longest": 2.5}, "longest must be an int of 20 or more, got 2.5"),
    ],
    ids=str,
)
def test_wrong_arguments_fail_at_construction(arguments: dict[str, Any], message: str) -> None:
    """One string that names the argument, its value and what was expected."""
    with pytest.raises((TypeError, ValueError)) as caught:
        ExtractiveSummarizer(**arguments)
    assert caught.value.args == (message,)


def test_a_wrong_counter_fails_at_construction() -> None:
    """Not when the first summary is due."""
    with pytest.raises(TypeError, match="counter must be"):
        ExtractiveSummarizer(counter=3)
