"""The packages that count o200k_base: each counts as the reference does, or is none of ours."""

import base64
import gzip
import random
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from chat_compaction.counters import Counter, TokenizerCounter
from chat_compaction.counters import _backends as backends
from chat_compaction.counters import _ranks as ranks
from chat_compaction.counters._adapters import encodable
from chat_compaction.counters._checks import CHECKS
from tests import _shared

pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")  # of bpe-openai

PACKAGES = {
    "splintr-rs": "splintr",
    "rs-bpe": "rs_bpe",
    "tiktoken": "tiktoken",
    "bpe-openai": "bpe_openai",
    "fastokens": "fastokens",
}
FORMATS = ("anthropic", "gemini", "langchain", "openai_chat", "openai_responses")


@cache
def reference() -> TokenizerCounter:
    return TokenizerCounter(_shared.o200k_tokenizer())


@cache
def rank_file() -> bytes:
    """The vocabulary as tiktoken has it, made of the shared one."""
    byte_of = {character: value for value, character in byte_characters().items()}
    vocabulary = _shared.o200k_tokenizer().get_vocab(with_added_tokens=False)
    return ranks.written(
        bytes(map(byte_of.__getitem__, token)) for token in sorted(vocabulary, key=vocabulary.__getitem__)
    )


def byte_characters() -> dict[int, str]:
    """By byte, the character that stands for it in a byte-level vocabulary: itself where it can be seen."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(0x100) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(0x100 + place) for place, byte in enumerate(rest)}


@pytest.fixture(scope="session")
def tiktoken_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as tiktoken leaves it behind."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / ranks._CACHED).write_bytes(rank_file())
    return folder


@pytest.fixture(scope="session")
def counters(tiktoken_cache: Path) -> dict[str, Counter]:
    """The counter on each package that is installed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tiktoken_cache))
        return {package: backends.backend(package) for package, module in PACKAGES.items() if find_spec(module)}


@pytest.fixture(params=PACKAGES)
def counter(request: pytest.FixtureRequest, counters: dict[str, Counter]) -> Counter:
    """The counter on one package."""
    if request.param not in counters:
        pytest.skip(f"{request.param} is not installed")
    return counters[request.param]


def test_the_checks_are_right() -> None:
    """What a backend is asked first is what the reference says."""
    assert dict(zip(CHECKS, reference().count_many(list(CHECKS)), strict=True)) == CHECKS


def test_the_expression_is_the_vocabularys_own() -> None:
    """What cuts texts here is what cuts them in the vocabulary's file."""
    state = _shared.o200k_tokenizer().pre_tokenizer.__getstate__().decode()
    assert pre_tokenizers.Split(Regex(ranks.PATTERN), "isolated").__getstate__().decode() in state


@cache
def characters() -> dict[str, list[str]]:
    """All characters that have a UTF-8 form, by category."""
    found: dict[str, list[str]] = {}
    for number in range(sys.maxunicode + 1):
        if not 0xD800 <= number <= 0xDFFF:
            found.setdefault(unicodedata.category(chr(number)), []).append(chr(number))
    return found


PIECES = [
    *("<|endoftext|>", "<|endofprompt|>", "<|im_start|>", "<|think|>", "<|/user|>", "<|", "|>", "</s>", "[INST]"),
    *(" ", "  ", "\t", "\n", "\r\n", "\n/", "\r/", "/", "\x85", "\xa0", "\u2028", "\u3000", "\u180e", "\u200b", "\x1c"),
    *("'s", "'S", "'ll", "'RE", "'\u017f", "\u017f", "'\u212a", "''", "\u2019s", "don't", "I'M", "'\u0130"),
    *(
        "\U0001f469\u200d\U0001f467",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "1\ufe0f\u20e3",
        "e\u0301",
        "\u094d",
    ),
    *(
        "hello",
        "World",
        "HTTPServer",
        "snake_case",
        "0",
        "12",
        "1234567",
        "3.14",
        "!",
        "!!!",
        "...",
        "://",
        "{",
        "->",
        "#",
    ),
    *("\u4f60\u597d", "\uc548\ub155", "\u0645\u0631", "\u0928\u092e", "\u01c5", "\u02b0", "\u216b", "\u00bd", "\ud800"),
]


def hard_texts(many: int) -> list[str]:
    """Texts of pieces and of characters of each kind, the rare kinds as often as the others."""
    chance = random.Random(11)  # noqa: S311
    kinds = list(characters().values())

    def piece() -> str:
        return chance.choice(PIECES) if chance.random() < 0.6 else chance.choice(chance.choice(kinds))

    return ["".join(piece() for _ in range(chance.choice((1, 2, 3, 5, 8, 13, 40)))) for _ in range(many)]


@cache
def hard() -> tuple[list[str], list[int]]:
    texts = hard_texts(12_000)
    return texts, reference().count_many(texts)


def test_counts_as_the_reference_does(counter: Counter) -> None:
    """C3: the same counts on hard texts: scripts, emoji, marks, white space, surrogates, names of special tokens."""
    texts, counts = hard()
    assert [
        text for text, count, right in zip(texts, counter.count_many(texts), counts, strict=True) if count != right
    ] == []


def test_every_character_counts_as_the_reference_does(counter: Counter) -> None:
    """C3: each character that there is, between letters, digits, line ends and apostrophes."""
    for start in range(0, sys.maxunicode + 1, 0x4000):
        block = [chr(number) for number in range(start, start + 0x4000, 1 if start < 0x4000 else 61)]
        texts = [f"a{c}b {c}{c} 1{c}\n{c}'s{c}A" for c in block if not "\ud800" <= c <= "\udfff"]
        assert list(counter.count_many(texts)) == reference().count_many(texts)


def test_any_text_counts_as_the_reference_does(counters: dict[str, Counter]) -> None:
    """C3: whatever text a machine can think of."""

    @given(st.text(st.characters(codec=None)))
    def check(text: str) -> None:
        counts = {package: list(counter.count_many([text])) for package, counter in counters.items()}
        assert counts == dict.fromkeys(counters, reference().count_many([text]))

    check()


@cache
def recorded() -> tuple[list[str], list[int]]:
    """The texts of the recorded sessions, each once."""
    texts = list(
        dict.fromkeys(
            text for name in FORMATS for path in recorded_paths(name) for text in strings(_shared.load_session(path))
        )
    )
    return texts, reference().count_many(texts)


def recorded_paths(name: str) -> list[Path]:
    folder = _shared.shared_dir() / "data" / "sessions" / name
    return sorted(folder.glob("*.json"))


def strings(value: Any) -> Iterator[str]:
    """All strings in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings(member)


@pytest.mark.slow
def test_recorded_sessions_count_as_the_reference_does(counter: Counter) -> None:
    """C3: every string of every recorded session."""
    texts, counts = recorded()
    assert len(texts) > 10_000
    assert list(counter.count_many(texts)) == counts


MEGABYTES = {
    "one letter": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "spaces before a word": " " * 1_000_000 + "x",
    "tabs": "\t" * 1_200_000 + "x",
    "no-break spaces": "\xa0" * 1_200_000,
    "lines": "\n" * 1_000_000,
    "lines and spaces": "\n " * 700_000 + "x",
    "base64": base64.b64encode(random.Random(1).randbytes(750_000)).decode(),  # noqa: S311
    "a line": "/usr/lib/x.so:" * 70_000,
    "marks": "!" + "\u0301" * 300_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", MEGABYTES.values(), ids=MEGABYTES)
def test_a_megabyte_of_anything_is_counted(counter: Counter, text: str) -> None:
    """No text is too long or too monotonous for a backend: it neither gives up nor counts otherwise."""
    assert list(counter.count_many([text])) == expected(text)


@cache
def expected(text: str) -> list[int]:
    return reference().count_many([text])


class TestLongBlanks:
    @pytest.mark.parametrize("before", [0, 1, 7, 9, 10, 11, 35])
    @pytest.mark.parametrize("size", [19, 20, 25, 100])
    def test_a_run_of_twice_the_size_is_seen(self, before: int, size: int) -> None:
        """Wherever it begins and whatever follows."""
        assert backends.has_long_blank("x" * before + " \t\n\xa0" * (size // 4 + 1) + "x" * 50, 10)

    @pytest.mark.parametrize("text", ["", " ", " " * 9, ("x" + " " * 9) * 20, "x" * 100])
    def test_shorter_runs_are_not(self, text: str) -> None:
        """Ordinary text takes the ordinary way."""
        assert not backends.has_long_blank(text, 10)

    @pytest.mark.parametrize("text", [" " * 300, "x " * 50 + "\n" * 99 + " y'\u017f", "\r\n\t \n/" * 40, ""])
    def test_pieces_are_those_of_the_vocabulary(self, text: str) -> None:
        """Cutting first and encoding each piece changes no count."""
        cut = backends.pieces(text)
        assert "".join(cut) == text
        assert sum(reference().count_many(cut)) == reference().count_many([text])[0]


class TestRankFile:
    @pytest.fixture(autouse=True)
    def _nothing_shipped(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(ranks, "_SHIPPED", {})
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "nothing"))
        for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
            monkeypatch.delenv(name, raising=False)

    def test_it_is_the_published_one(self) -> None:
        """The shared vocabulary and the pinned hash are of one file; writing and parsing are inverse."""
        parsed = ranks.parsed(rank_file())
        assert len(parsed) == ranks.SIZE
        assert ranks.written(parsed) == rank_file()

    @pytest.mark.parametrize("name", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
    def test_in_tiktokens_cache(self, monkeypatch: pytest.MonkeyPatch, tiktoken_cache: Path, name: str) -> None:
        """Where tiktoken was told to keep it."""
        monkeypatch.setenv(name, str(tiktoken_cache))
        assert ranks.rank_file() == rank_file()

    def test_in_the_folder_for_temporary_files(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Where tiktoken keeps it by default."""
        folder = tmp_path / "data-gym-cache"
        folder.mkdir()
        (folder / ranks._CACHED).write_bytes(rank_file())
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
        assert ranks.rank_file() == rank_file()

    def test_in_a_package(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Shipped by a package, which is not imported for it."""
        data = tmp_path / "ships_ranks"
        data.mkdir()
        (data / "__init__.py").write_text("raise SystemExit('imported')")
        (data / "ranks.gz").write_bytes(gzip.compress(rank_file(), 1))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(ranks, "_SHIPPED", {"not_here": "x", "ships_ranks": "ranks.gz"})
        assert ranks.rank_file() == rank_file()

    @pytest.mark.parametrize(
        "spoil",
        [lambda raw: raw[:-9], lambda raw: raw.replace(b" 5\n", b" 6\n"), lambda raw: b""],
        ids=["cut", "changed", "empty"],
    )
    def test_another_content_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spoil: Callable[[bytes], bytes]
    ) -> None:
        """C3: a folder for temporary files is anybody's: what has not the pinned hash is no vocabulary."""
        (tmp_path / ranks._CACHED).write_bytes(spoil(rank_file()))
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
        with pytest.raises(FileNotFoundError, match="the vocabulary o200k_base is not on this disk"):
            ranks.rank_file()

    def test_a_package_without_a_folder_is_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever stands under its name: nothing, a module that was made by hand, a module of one file."""
        monkeypatch.setitem(sys.modules, "by_hand", ModuleType("by_hand"))
        monkeypatch.setitem(sys.modules, "none", None)
        assert [ranks.folders(name) for name in ("by_hand", "none", "absent", "bisect")] == [[], [], [], []]

    @pytest.mark.parametrize("cache", ["", "nowhere"])
    def test_nowhere(self, monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
        """An empty name turns tiktoken's cache off."""
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", cache)
        with pytest.raises(FileNotFoundError):
            ranks.rank_file()

    def test_without_it_tiktoken_does_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What it does not find, tiktoken fetches; here it is not asked to."""
        pytest.importorskip("tiktoken")
        monkeypatch.setattr(backends, "_loaded", {})
        with pytest.raises(
            ValueError, match="counter 'tiktoken:o200k_base' needs what is not installed: the vocabulary"
        ):
            backends.backend("tiktoken")
        assert "tiktoken" not in backends._loaded


class Splintr:
    """As splintr-rs has it: special tokens are seen unless one asks otherwise, and U+017F is no s."""

    made: list[str]

    def __init__(self) -> None:
        self.made = []

    def from_pretrained(self, name: str) -> Any:
        assert name == "o200k_base"
        return SimpleNamespace(
            encode_flat=lambda text: bytes(4 * (0 if "<|" in text else right(text))),
            encode_ordinary=lambda text: [0] * right(text),
            decode_token_bytes=lambda place: str(place).encode(),
        )

    def from_bytes(self, content: bytes, pattern: str) -> Any:
        self.made.append(pattern)
        assert ranks.parsed(content)[b"199997"] == 199_997
        return SimpleNamespace(encode_flat=lambda text: bytes(4 * 99))


def right(text: str) -> int:
    """Passes every check; any other text has as many tokens as characters."""
    return RIGHT.get(text, len(text))


RIGHT = {encodable(text): count for text, count in CHECKS.items()}


def test_what_splintr_overlooks_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: names of special tokens are text, and U+017F is an s; the second tokenizer is made when a text needs it."""
    splintr: Any = ModuleType("splintr")
    splintr.Tokenizer = Splintr()
    monkeypatch.setitem(sys.modules, "splintr", splintr)
    monkeypatch.setattr(backends, "_loaded", {})
    counter = backends.backend("splintr-rs")
    assert counter.count_many(["plain", "<|pad|>"]) == [5, 7]
    assert splintr.Tokenizer.made == []
    assert counter.count_many(["x'\u017f", "y'\u017f'm"]) == [99, 99]
    assert splintr.Tokenizer.made == [ranks.PLAIN_PATTERN]


def test_what_fastokens_overlooks_is_mended(monkeypatch: pytest.MonkeyPatch, tiktoken_cache: Path) -> None:
    """C3: it reads the rank file, and a second time, with an expression that knows a long s, when a text needs it."""
    made: list[str] = []

    def from_tiktoken(path: str, pattern: str, special_tokens: dict[str, int]) -> Any:
        assert Path(path).read_bytes() == rank_file()
        assert special_tokens == {}
        made.append(pattern)
        return SimpleNamespace(encode=lambda text, add_special_tokens: [0] * (len(made) - 1 or right(text)))

    fastokens: Any = ModuleType("fastokens")
    fastokens.Tokenizer = SimpleNamespace(from_tiktoken=from_tiktoken)
    monkeypatch.setitem(sys.modules, "fastokens", fastokens)
    monkeypatch.setattr(backends, "_loaded", {})
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tiktoken_cache))
    counter = backends.backend("fastokens")
    assert counter.count_many(["plain"]) == [5]
    assert made == [ranks.PATTERN]
    assert counter.count_many(["x'\u017f"]) == [1]
    assert made == [ranks.PATTERN, ranks.PLAIN_PATTERN]


@pytest.mark.parametrize(
    "text", [" " * 210_000 + "x", "a\n" + "\t" * 205_000 + " <|endoftext|>"], ids=["spaces", "tabs"]
)
def test_a_long_blank_counts_as_the_reference_does(counter: Counter, text: str) -> None:
    """Where tiktoken takes another way, the counts are the same."""
    assert backends.has_long_blank(text)
    assert list(counter.count_many([text])) == expected(text)


def test_why_gigatoken_is_no_backend(tiktoken_cache: Path, tmp_path: Path) -> None:
    """C3: it counts the newest characters in its own way; once it does not, it may join."""
    gigatoken = pytest.importorskip("gigatoken.gigatoken_rs")
    path = tmp_path / "o200k_base.tiktoken"
    path.write_bytes(rank_file())
    tokenizer = gigatoken.BPETokenizer.from_tiktoken(path, "o200k", {})
    text = "a\u088fb \u088f\u088f 1\u088f\n\u088f's\u088fA"
    assert len(tokenizer.encode(text)) != CHECKS[text]
