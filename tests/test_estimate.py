"""The estimate: how near it is to o200k_base, and that nothing makes it fail."""

import statistics
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fit_estimate as bench
from chat_compaction.counters import CountCache, Counter, EstimateCounter, TokenizerCounter, framing_of
from chat_compaction.counters import _estimate as estimate
from tests import _shared

# Other sentences than those fitted on: Article 3 of the Universal Declaration of Human Rights.
SENTENCES = {
    "en": "Everyone has the right to life, liberty and security of person.",
    "de": "Jeder hat das Recht auf Leben, Freiheit und Sicherheit der Person.",
    "fr": "Tout individu a droit à la vie, à la liberté et à la sûreté de sa personne.",
    "pl": "Każdy człowiek ma prawo do życia, wolności i bezpieczeństwa swej osoby.",
    "ru": "Каждый человек имеет право на жизнь, на свободу и на личную неприкосновенность.",
    "uk": "Кожна людина має право на життя, на свободу і на особисту недоторканність.",  # noqa: RUF001
    "el": "Κάθε άτομο έχει δικαίωμα στη ζωή, την ελευθερία και την προσωπική του ασφάλεια.",
    "ar": "لكل فرد الحق في الحياة والحرية وسلامة شخصه.",
    "he": "כל אדם יש לו הזכות לחיים, לחרות ולבטחון אישי.",
    "hi": "प्रत्येक व्यक्ति को जीवन, स्वाधीनता और वैयक्तिक सुरक्षा का अधिकार है।",
    "zh": "人人有权享有生命、自由和人身安全。",
    "ja": "すべて人は、生命、自由及び身体の安全に対する権利を有する。",
    "ko": "모든 사람은 생명과 신체의 자유와 안전에 대한 권리를 가진다.",
}


def count(text: str) -> int:
    """The estimate of one text."""
    return EstimateCounter().count_many([text])[0]


def exact(text: str) -> int:
    """The count of one text by o200k_base."""
    return TokenizerCounter(_shared.o200k_tokenizer()).count_many([text])[0]


def test_a_counter_that_says_what_it_is() -> None:
    """C3: an estimate, by its name and its flag; a frozen value without state."""
    counter = EstimateCounter()
    assert isinstance(counter, Counter)
    assert (counter.name, counter.exact, framing_of(counter)) == ("estimate", False, True)
    assert counter == EstimateCounter()
    assert repr(counter) == "EstimateCounter()"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        counter.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),
        ("a", 1),
        ("\ud800", 1),
        ("Hello, world!", 4),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("def main() -> None:\n    return None\n", 10),
        ("1234567890", 4),
        ("🎉", 2),
    ],
)
def test_small_texts(text: str, tokens: int) -> None:
    """Nothing is 0 and something at least 1; simple text is a token a word, mark or three digits."""
    assert count(text) == tokens


@given(st.lists(st.text(st.characters(codec=None))))
def test_any_texts(texts: list[str]) -> None:
    """Each text has a count of its own: 0 for the empty one, else at least 1, and at most a few a character."""
    counts = EstimateCounter().count_many(texts)
    assert counts == [count(text) for text in texts]
    for text, tokens in zip(texts, counts, strict=True):
        assert min(len(text), 1) <= tokens <= 4 * len(text)


@given(st.text(st.characters(codec=None)) | st.text(st.sampled_from("aZ9 \t\n_-é中한—🎉\u2028\x00")))
def test_the_pieces_are_the_text(text: str) -> None:
    """Every character is in one piece; and a piece is short, so that remembering it is cheap."""
    pieces = estimate._PIECES.findall(text)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= 82 for piece in pieces)
    assert all(estimate._shape(piece)[0] in estimate._WEIGHTS and estimate._shape(piece)[1] >= 0 for piece in pieces)


@pytest.mark.parametrize("unit", ["a", "A", " ", "\t", "\n", " \n", "\t ", "-", "中", "é", "🎉", "aB", "x y", "\ud800"])
def test_hostile_lengths(unit: str) -> None:
    """A megabyte of anything is counted in proportion to its length."""
    small, large = count(unit * 12_500), count(unit * 100_000)
    assert large == pytest.approx(8 * small, rel=0.01)


@pytest.mark.parametrize("language", SENTENCES)
def test_languages(language: str) -> None:
    """No script is off by a factor of two, where characters / 4 counts a third of Chinese."""
    text = SENTENCES[language]
    assert 0.6 <= count(text) / exact(text) <= 1.6


@pytest.mark.parametrize("kind", sorted(set(bench.hard_texts()) - {"random lower-case letters"}))
def test_hard_texts(kind: str) -> None:
    """Encoded data, numbers and long runs of one character stay within about a factor of two."""
    text = bench.hard_texts()[kind]
    assert 0.47 <= count(text) / exact(text) <= 2.01


def session_errors(sessions: list[bench.Session]) -> tuple[list[float], list[float]]:
    """The errors per session, sorted, of the estimate and of characters / 4."""
    cache = CountCache(EstimateCounter())
    ours = sorted(abs(sum(cache.count_many(texts)) / tokens - 1) for _, _, texts, tokens in sessions)
    quarter = sorted(abs(sum(map(len, texts)) / 4 / tokens - 1) for _, _, texts, tokens in sessions)
    return ours, quarter


@pytest.mark.slow
def test_recorded_sessions() -> None:
    """On sources that it was not fitted on it beats characters / 4 clearly; and the weights are the fit's."""
    data = _shared.shared_dir() / "data"
    counts = bench.exact_counter(data)
    fitted, held_out = bench.halves(bench.load(data, counts))
    ours, quarter = session_errors(held_out)
    at_95 = int(0.95 * len(ours))
    assert len(ours) >= 50
    assert statistics.median(ours) <= 0.025 < 0.08 <= statistics.median(quarter)
    assert ours[at_95] <= 0.08 < 0.35 <= quarter[at_95]
    assert bench.fit_sessions(fitted, counts) == pytest.approx(estimate._WEIGHTS, rel=0.05)


def test_the_fit_says_when_its_data_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run without the shared data, the script ends with one line that says what to set."""
    monkeypatch.setenv("CHAT_COMPACTION_SHARED", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no recorded sessions under .* set CHAT_COMPACTION_SHARED"):
        bench.main()
