"""The estimate: how near it is to what a tokenizer counts, and that nothing makes it fail, slow or large."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import estimate_tables as tables
from benchmarks import estimate_texts as texts
from benchmarks import fit_estimate as bench
from benchmarks.estimate_texts import Session
from chat_compaction.counters import Counter, EstimateCounter, bounds_of, framing_of
from chat_compaction.counters import _estimate as estimate
from tests import _shared
from tests.test_growth import MOST, operations

# Other sentences than those fitted on, each with its exact count by o200k_base: Article 3 of the Universal Declaration
# of Human Rights.
SENTENCES = {
    "en": ("Everyone has the right to life, liberty and security of person.", 13),
    "de": ("Jeder hat das Recht auf Leben, Freiheit und Sicherheit der Person.", 14),
    "fr": ("Tout individu a droit à la vie, à la liberté et à la sûreté de sa personne.", 20),
    "pl": ("Każdy człowiek ma prawo do życia, wolności i bezpieczeństwa swej osoby.", 21),
    "ru": ("Каждый человек имеет право на жизнь, на свободу и на личную неприкосновенность.", 21),
    "uk": ("Кожна людина має право на життя, на свободу і на особисту недоторканність.", 23),  # noqa: RUF001
    "el": ("Κάθε άτομο έχει δικαίωμα στη ζωή, την ελευθερία και την προσωπική του ασφάλεια.", 28),
    "ar": ("لكل فرد الحق في الحياة والحرية وسلامة شخصه.", 15),
    "he": ("כל אדם יש לו הזכות לחיים, לחרות ולבטחון אישי.", 16),
    "hi": ("प्रत्येक व्यक्ति को जीवन, स्वाधीनता और वैयक्तिक सुरक्षा का अधिकार है।", 21),
    "zh": ("人人有权享有生命、自由和人身安全。", 13),
    "ja": ("すべて人は、生命、自由及び身体の安全に対する権利を有する。", 24),
    "ko": ("모든 사람은 생명과 신체의 자유와 안전에 대한 권리를 가진다.", 20),
}

# The exact counts by o200k_base of the texts in benchmarks/estimate_texts.py.
HARD = {
    "base64": 2715,
    "base64 in lines": 2685,
    "base32": 3062,
    "hexadecimal": 2262,
    "hexadecimal, capitals": 2331,
    "hexadecimal, bytes apart": 2723,
    "SHA-256": 2233,
    "UUIDs": 2378,
    "letters and digits at random": 2060,
    "lower-case letters at random": 1548,
    "capitals at random": 1726,
    "ASCII at random": 2260,
    "punctuation at random": 1995,
    "DNA": 1546,
    "binary": 1000,
    "digits": 1000,
    "a table of whole numbers": 2814,
    "a table of decimals": 2622,
    "IP addresses": 799,
    "timestamps": 1399,
    "JSON, compact": 1320,
    "JSON, indented": 2400,
    "minified JavaScript": 640,
    "SVG": 1380,
    "assembly": 780,
    "LaTeX": 820,
    "snake_case": 530,
    "CamelCase": 539,
    "prose in capitals": 421,
    "URLs": 1312,
    "percent-encoded": 1125,
    "Unicode escapes": 1078,
    "a listing of files": 1139,
    "a Markdown table": 840,
    "box drawing": 720,
    "one letter (a)": 375,
    "one letter (z)": 1500,
    "two letters": 751,
    "spaces": 24,
    "newlines": 188,
    "tabs": 188,
    "tabs and spaces": 1500,
    "newlines and spaces": 751,
    "lines that end in CR LF": 800,
    "dashes": 47,
    "NUL": 1500,
    "control characters": 2985,
    "emoji": 1200,
    "emoji, joined": 1700,
    "flags": 1200,
    "mathematical letters": 1200,
    "full width": 600,
    "half-width kana": 900,
    "Braille": 2970,
    "block elements": 800,
    "private use": 2896,
    "accented letters at random": 1017,
    "combining marks": 1200,
    "rare ideographs": 1185,
    "cuneiform": 1192,
    "Amharic": 77,
    "Armenian": 21,
    "Burmese": 32,
    "Cherokee": 61,
    "Georgian": 20,
    "Inuktitut": 43,
    "Khmer": 38,
    "Lao": 54,
    "Sinhala": 19,
    "Tamil": 20,
    "Tibetan": 87,
    "Finnish": 24,
    "Indonesian": 20,
    "Latin": 18,
    "Norwegian": 18,
    "Swahili": 17,
    "English and Chinese": 340,
    "Japanese and code": 280,
}
LANGUAGES = {
    "de": 38,
    "fr": 41,
    "es": 38,
    "pt": 37,
    "pl": 53,
    "cs": 50,
    "tr": 46,
    "vi": 50,
    "ru": 41,
    "uk": 55,
    "el": 71,
    "he": 50,
    "ar": 44,
    "fa": 44,
    "hi": 54,
    "th": 63,
    "zh": 37,
    "zh-Hant": 41,
    "ja": 71,
    "ko": 51,
}
ANY_TEXT = st.text(st.characters(codec=None)) | st.text(st.sampled_from("aaZZ9 \t\n\r_-é中한—🎉\u0301\u2028\x00\ud800"))


def count(text: str) -> int:
    """The estimate of one text."""
    return EstimateCounter().count_many([text])[0]


# -- the counter ---------------------------------------------------------------------------------------


def test_a_counter_that_says_what_it_is() -> None:
    """C3: an estimate, by its name and its flag; a frozen value without state."""
    counter = EstimateCounter()
    assert isinstance(counter, Counter)
    assert (counter.name, counter.exact, framing_of(counter)) == ("estimate", False, True)
    assert counter == EstimateCounter()
    assert repr(counter) == "EstimateCounter()"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        counter.scale = 2.0  # type: ignore[misc]


def test_a_scale_multiplies_the_counts() -> None:
    """For another vocabulary; its counts are not mixed with those of another scale, so it is another name (C2)."""
    text = "The quick brown fox jumps over the lazy dog. " * 10
    scaled = EstimateCounter(scale=1.5)
    assert scaled.count_many([text, "", "a"]) == [round(1.5 * count(text)), 0, 2]
    assert EstimateCounter(scale=0.01).count_many(["a"]) == [1]
    assert (scaled.name, repr(scaled)) == ("estimate*1.5", "EstimateCounter(scale=1.5)")
    assert scaled != EstimateCounter()
    assert eval(repr(scaled)) == scaled  # noqa: S307


@pytest.mark.parametrize(("scale", "error"), [(0, ValueError), (-1.0, ValueError), (101, ValueError)])
@pytest.mark.parametrize("as_float", [int, float])
def test_a_scale_out_of_range(scale: float, error: type[Exception], as_float: Callable[[float], float]) -> None:
    """A number above 0 and up to 100: the error names it."""
    with pytest.raises(error, match=r"^scale must be a number above 0 and up to 100, got -?\d"):
        EstimateCounter(scale=as_float(scale))


@pytest.mark.parametrize("scale", ["1.2", True, None, [1]])
def test_a_scale_that_is_no_number(scale: object) -> None:
    """Neither text nor a bool."""
    with pytest.raises(TypeError, match=r"^scale must be a number above 0 and up to 100, got "):
        EstimateCounter(scale=scale)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scale"):
        EstimateCounter(scale=float("nan"))


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


@given(st.lists(ANY_TEXT), st.sampled_from([1.0, 1.07, 3, 0.2]))
def test_any_texts(given_texts: list[str], scale: float) -> None:
    """Each text has a count of its own, 0 for the empty one, else at least 1, and within the bounds (rule C4)."""
    counter = EstimateCounter(scale=scale)
    counts = counter.count_many(given_texts)
    bounds = bounds_of(counter)
    assert bounds is not None
    for text, tokens in zip(given_texts, counts, strict=True):
        assert [tokens] == counter.count_many([text])
        assert type(tokens) is int
        low, high = bounds(text)
        assert min(len(text), 1) <= low <= tokens <= high


def test_bounds_cut_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked in order not to count: at most a token a character in ASCII, at least one in the longest piece."""
    monkeypatch.delattr(estimate, "_cutter")
    bounds = EstimateCounter().bounds
    assert bounds("") == (0, 0)
    assert bounds("a" * 1290) == (10, 1290)
    assert bounds("é" * 1291) == (11, 3873)


# -- how near it is --------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", SENTENCES)
def test_other_sentences(language: str) -> None:
    """Prose in scripts of all kinds is right within a quarter, where characters / 4 counts a third of Chinese."""
    text, exact = SENTENCES[language]
    assert 0.8 <= count(text) / exact <= 1.25


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_languages(language: str) -> None:
    """The paragraphs fitted on are right within 30 %."""
    assert 0.75 <= count(texts.LANGUAGES[language]) / LANGUAGES[language] <= 1.3


def test_hard_texts() -> None:
    """No blow-up: what it has never seen is right within a factor of two, and most within a third."""
    ratios = {label: count(text) / HARD[label] for label, text in texts.hard_texts().items()}
    assert {label: ratio for label, ratio in ratios.items() if not 0.48 <= ratio <= 2.01} == {}
    assert sum(0.75 <= ratio <= 1.34 for ratio in ratios.values()) >= 0.7 * len(ratios)
    quarters = [len(text) / 4 / HARD[label] for label, text in texts.hard_texts().items()]
    assert sum(0.75 <= ratio <= 1.34 for ratio in quarters) <= 0.25 * len(quarters)


@pytest.mark.parametrize(
    ("label", "low", "high"),
    [
        ("hexadecimal", 0.95, 1.05),
        ("UUIDs", 0.95, 1.05),
        ("base64", 0.85, 1.1),
        ("digits", 0.99, 1.01),
        ("a table of decimals", 0.95, 1.05),
        ("minified JavaScript", 0.9, 1.1),
        ("JSON, compact", 0.9, 1.1),
        ("URLs", 0.95, 1.05),
    ],
)
def test_what_tools_print(label: str, low: float, high: float) -> None:
    """What agents meet every day, and characters / 4 counts a third to two thirds of."""
    text = texts.hard_texts()[label]
    assert low <= count(text) / HARD[label] <= high
    assert len(text) / 4 / HARD[label] <= 0.76


@pytest.mark.parametrize(("first", "last", "exact"), [(0x4E00, 0x9FFF, 2.0), (0xAC00, 0xD7A3, 2.4)])
def test_characters_that_nobody_writes(first: int, last: int, exact: float) -> None:
    """Ideographs or syllables drawn at random are rare ones, dearer than the estimate says: within a factor of four."""
    text = "".join(map(chr, range(first, last, 7)))
    assert 0.25 <= count(text) / (exact * len(text)) <= 1


# -- what it costs -----------------------------------------------------------------------------------------


@given(ANY_TEXT)
def test_the_pieces_are_the_text(text: str) -> None:
    """Every character is in one piece, and in one part of it; a piece is short, and all it has has a weight."""
    pieces = estimate._cutter(estimate._PIECES)(text)
    assert "".join(pieces) == "".join(estimate._parts(text)) == text
    assert all(0 < len(piece) <= estimate._LONGEST_PIECE for piece in pieces)
    for part in estimate._parts(text):
        features = estimate._features(part)
        assert all(times >= 0 for times in features.values())
        unknown = features.keys() - estimate._weights().keys()
        assert all(feature.endswith(", word") for feature in unknown)


def test_the_scripts_are_in_order() -> None:
    """A character is looked up by bisection, and the last range ends where Unicode does."""
    ends = estimate._SCRIPT_ENDS
    assert ends == sorted(ends)
    assert ends[-1] == chr(sys.maxunicode)


@pytest.mark.parametrize("pattern", [estimate._PIECES, estimate._PARTS])
def test_no_repetition_is_unbounded(pattern: str) -> None:
    """What an expression does with one piece of a hostile text has a bound, so that time is linear (K13)."""
    code = re.sub(r"\\.|\[(?:\\.|[^\]\\])+\]", "x", re.sub(r"\s# .*", "", pattern))
    assert "{1,64}" in code or "{1,24}" in code
    assert not re.search(r"[*]|(?<!\?|\})\+|\{\d+,\}", code), code
    assert max(map(int, re.findall(r",(\d+)\}", code))) <= 130


UNITS = ["a", "A", " ", "\t", "\n", " \n", "\t ", "-", "中", "é", "🎉", "aB", "x y", "\ud800", "e\u0301", "1", "\r\n"]


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_lengths(unit: str) -> None:
    """A megabyte of anything is counted in proportion to its length."""
    small, large = count(unit * 12_500), count(unit * 100_000)
    assert large == pytest.approx(8 * small, rel=0.02)


def numbered(size: int) -> str:
    """A text in which no piece occurs twice, so that each has to be priced."""
    return " ".join(f"{chr(97 + number % 26)}{'bcdfghjk'[number % 8]}{chr(0x4E00 + number)}" for number in range(size))


@pytest.mark.parametrize("text", [*(unit * 64 for unit in UNITS), None])
def test_linear_operations(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """K13: eight times the text is at most eight times the work, though nothing is remembered."""
    monkeypatch.setattr(estimate, "_MOST_KNOWN", 0)
    monkeypatch.setattr(estimate, "_LONGEST_KNOWN", 0)
    monkeypatch.setattr(estimate, "_cost_of_part", estimate._cost_of_part.__wrapped__)
    small, large = (numbered(64), numbered(512)) if text is None else (text * 4, text * 32)
    count(small)
    assert operations(lambda: count(large)) <= MOST * operations(lambda: count(small))


def test_a_piece_is_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that was seen costs no more than cutting it and looking its pieces up: no operation for a piece."""
    monkeypatch.setattr(estimate, "_KNOWN", estimate._Known())
    text = "The quick brown fox jumps over the lazy dog.\n"
    count(text)
    assert operations(lambda: count(text)) == operations(lambda: count(100 * text))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In number, and by the length of each: hostile text fills no memory, and is counted the same."""
    monkeypatch.setattr(estimate, "_KNOWN", known := estimate._Known())
    before = count(numbered(1000))
    monkeypatch.setattr(estimate, "_MOST_KNOWN", 100)
    assert count(numbered(1000)) == before
    assert count("-" * 200 + " " * 200) > 1
    assert 0 < len(known) <= len(numbered(1000))
    known.clear()
    assert count(numbered(1000)) == before
    assert 0 < len(known) <= 100
    assert max(map(len, known)) <= estimate._LONGEST_KNOWN


@pytest.mark.slow
def test_memory() -> None:
    """Counting a text takes memory in proportion to the text, and keeps at most some tens of megabytes."""
    words = " ".join(f"{number:x}".translate(str.maketrans("0123456789", "ghijklmnop")) for number in range(200_000))
    tracemalloc.start()
    count(words)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    estimate._KNOWN.clear()
    assert kept <= 30_000_000
    assert peak <= kept + 40 * len(words)


def test_importing_compiles_nothing() -> None:
    """The expressions are compiled, and the weights read, by the first count."""
    code = (
        "import chat_compaction.counters._estimate as e;"
        "assert e._cutter.cache_info().currsize == e._weights.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the fit and its tables --------------------------------------------------------------------------------


def two_tokens_if_rare(pieces: Iterable[str]) -> list[int]:
    """A vocabulary in which a piece with "zq" has three tokens, and a hash before a word a token of its own."""
    return [1 + 2 * ("zq" in piece) + (len(piece) > 1 and piece[0] == "#") for piece in pieces]


def test_the_fit_finds_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rare pair and a mark before a word get what they cost, a common word nothing."""
    monkeypatch.setattr(texts, "LANGUAGES", {})
    monkeypatch.setattr(texts, "random_texts", list)
    session = Session("toy", [["the the#the thezq " * 20_000], [" zqt then they#they"]])
    weights = bench.fit([session], two_tokens_if_rare)
    above = {
        word: sum(weights[feature] * times for feature, times in estimate._features(word).items())
        for word in (" the", "#the", " thezq")
    }
    assert above[" the"] < 0.1
    assert above["#the"] == pytest.approx(1, abs=0.1)
    assert above[" thezq"] == pytest.approx(2, abs=0.1)


def test_the_module_of_weights_is_python() -> None:
    """Every pair, and every mark, whether the fit met it or not, in hundredths."""
    found: dict[str, object] = {}
    exec(bench.weights_module({"th": -0.123, "\t": 0.28, "length 1": -1.0, '"': 0.5}), found)  # noqa: S102
    pairs, fitted = found["PAIRS"], found["FITTED"]
    assert isinstance(pairs, str)
    rows = [row.split() for row in pairs.strip().splitlines()]
    assert [len(row) for row in rows] == 26 * [26]
    assert rows[19][7] == "-12"
    assert rows[0][0] == "35"
    assert isinstance(fitted, dict)
    assert (fitted["\t"], fitted["length 1"], fitted["~"], fitted['"']) == (28, -100, 50, 50)


def test_errors_are_shares() -> None:
    """The median and the 95th percentile, without a sign."""
    found = tables.errors([(110, 100), (90, 100), (100, 100), (150, 100)])
    assert found.number == 4
    assert found.median == pytest.approx(0.1)
    assert found.high == pytest.approx(0.5)
    assert str(found) == "10.0 % | 50.0 %"


def test_only_the_generated_part_of_the_page_is_replaced() -> None:
    """What is written by hand stays; without the marks nothing is written."""
    page = f"Before.\n{bench.BEGIN}\nold\n{bench.END}\nAfter.\n"
    new = bench.written(page, "new")
    assert new == f"Before.\n{bench.BEGIN}\n\nnew\n\n{bench.END}\nAfter.\n"
    assert bench.written(new, "new") == new
    with pytest.raises(ValueError, match="in the page"):
        bench.written("Nothing.", "new")


@pytest.mark.slow
def test_the_weights_and_the_tables_are_the_benchmarks() -> None:
    """The package has the weights of the fit, and the page what the benchmark writes; the aims of the estimate hold."""
    data = _shared.shared_dir() / "data"
    vocabularies = tables.shared_vocabularies(data)
    fitted, held_out = texts.halves(texts.sessions(data))
    weights = bench.fit(fitted, vocabularies["o200k_base"])
    assert bench.weights_module(weights) == bench.WEIGHTS.read_text(encoding="utf-8")

    page = bench.PAGE.read_text(encoding="utf-8").partition(bench.BEGIN)[2].partition(bench.END)[0]
    rows = [*tables.summary(fitted, held_out, vocabularies), *tables.by_source(held_out, vocabularies)]
    rows += tables.ratios(texts.LANGUAGES, vocabularies["o200k_base"])
    rows += tables.ratios(texts.hard_texts(), vocabularies["o200k_base"])
    missing = [row for row in rows if row not in page]
    if "Python {}.{} ".format(*sys.version_info) in page:
        missing += [row for row in tables.other_texts(vocabularies) if row not in page]
    assert missing == []

    for count_exactly in vocabularies.values():
        by_session, by_message = tables.judged(held_out, count_exactly, tables.estimated(EstimateCounter()))
        assert by_session.number >= 50
        assert by_session.median <= 0.03
        assert by_session.high <= 0.08
        assert by_message.median <= 0.04


def test_the_page_has_more_vocabularies() -> None:
    """The tables have at least two beside o200k_base, and say how the rest was counted."""
    page = bench.PAGE.read_text(encoding="utf-8").partition(bench.BEGIN)[2].partition(bench.END)[0]
    for name in ("o200k_base", "cl100k_base", "Claude 2", "DeepSeek V3"):
        assert f"| {name} |" in page
        assert f"| {name}, characters / 4 |" in page


def test_the_fit_says_when_its_data_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run without the shared data, the script ends with one line that says what to set."""
    monkeypatch.setenv("CHAT_COMPACTION_SHARED", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no recorded sessions under .* set CHAT_COMPACTION_SHARED"):
        bench.main([])
