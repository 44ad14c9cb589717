"""Bounds of a count, and for which tokenizers they follow."""

import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from chat_compaction.counters import (
    EstimateCounter,
    FunctionCounter,
    TokenizerCounter,
    bounds_of,
    byte_bounds,
)
from tests import _shared

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = [("a", "b"), ("ab", "ab"), ("\u0120", "a"), ("\u00c3", "\u00a9"), ("l", "l")]
ANY_TEXT = st.text(
    st.one_of(st.sampled_from("ab \n\u00e9\u0390\U0001d160\ud83d\ude00\u0301<|"), st.characters(codec=None))
)


def byte_level(
    *before: Any, normalizer: Any = None, prefix_space: bool = False, alphabet: Any = ALPHABET, **options: Any
) -> Tokenizer:
    """A small byte-level BPE, with what a real one may have besides."""
    tokens = [*alphabet, *("".join(pair) for pair in MERGES if set("".join(pair)) <= set(alphabet))]
    merges = [pair for pair in MERGES if "".join(pair) in tokens]
    tokenizer = Tokenizer(models.BPE({token: place for place, token in enumerate(tokens)}, merges, **options))
    steps = [*before, pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=not before)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if before else steps[0]
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer


def with_added_tokens() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.add_tokens([AddedToken("<|", lstrip=True, rstrip=True), AddedToken("a b", normalized=True)])
    tokenizer.add_special_tokens(["\u00e9\u0301"])
    tokenizer.post_processor = processors.TemplateProcessing("<| $A <|", None, [("<|", tokenizer.token_to_id("<|"))])
    return tokenizer


def split(behavior: str) -> Any:
    return pre_tokenizers.Split(Regex(r"\s+|\d"), behavior)


BOUNDED = {
    "as GPT-2": byte_level(),
    "as o200k": byte_level(split("isolated")),
    "as DeepSeek": byte_level(split("merged_with_next"), pre_tokenizers.Digits(individual_digits=True)),
    "no normalizer in a sequence": byte_level(normalizer=normalizers.Sequence([])),
    "as Qwen": byte_level(split("isolated"), normalizer=normalizers.NFC()),
    "added tokens": with_added_tokens(),
    "drops white space": byte_level(pre_tokenizers.WhitespaceSplit()),
    "drops what it splits at": byte_level(split("removed")),
    "a byte is missing": byte_level(alphabet=ALPHABET[5:]),
    "one token for all unknown": byte_level(alphabet=ALPHABET[5:], unk_token=ALPHABET[9], fuse_unk=True),
    "a suffix": byte_level(end_of_word_suffix="</w>"),
    "drops merges": byte_level(dropout=0.5),
    "nested": byte_level(pre_tokenizers.Sequence([split("isolated"), pre_tokenizers.Punctuation()])),
}


class Custom:
    """A step written in Python: it cannot be looked at."""

    def pre_tokenize(self, pretok: Any) -> None:
        """Leave the text in one piece."""

    def normalize(self, normalized: Any) -> None:
        normalized.append("more and more")


UNBOUNDED = {
    "adds a space": byte_level(prefix_space=True),
    "lowers, which may be longer": byte_level(normalizer=normalizers.Lowercase()),
    "decomposes": byte_level(normalizer=normalizers.NFD()),
    "composes more than once": byte_level(normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.NFC()])),
    "prepends": byte_level(normalizer=normalizers.Prepend("\u2581")),
    "bytes of bytes": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "marks spaces": byte_level(pre_tokenizers.Metaspace()),
    "bytes of what is unknown": byte_level(byte_fallback=True),
    "written in Python": byte_level(normalizer=normalizers.Normalizer.custom(Custom())),
    "cut in Python": byte_level(pre_tokenizers.PreTokenizer.custom(Custom())),
    "no bytes": Tokenizer(models.BPE({"a": 0}, [])),
    "words": Tokenizer(models.WordLevel({"?": 0}, "?")),
    "unigram": Tokenizer(models.Unigram([("a", 0.0)])),
}


@pytest.mark.parametrize("tokenizer", BOUNDED.values(), ids=BOUNDED)
@given(text=ANY_TEXT)
def test_the_bounds_of_a_tokenizer_are_sound(tokenizer: Tokenizer, text: str) -> None:
    """C4: where bounds are given, no text has fewer tokens than the one or more than the other."""
    counter = TokenizerCounter(tokenizer)
    bounds = bounds_of(counter)
    assert bounds is not None
    least, most = bounds(text)
    assert 0 <= least <= counter.count_many([text])[0] <= most


@pytest.mark.parametrize("tokenizer", UNBOUNDED.values(), ids=UNBOUNDED)
def test_no_bounds_where_none_follow(tokenizer: Tokenizer) -> None:
    """C4: whatever may make a text longer than its bytes gives no bounds."""
    assert bounds_of(TokenizerCounter(tokenizer)) is None


@pytest.mark.parametrize(
    ("tokenizer", "text", "bounds"),
    [
        ("as o200k", "", (0, 0)),
        ("as o200k", "four", (1, 4)),
        ("as o200k", "caf\u00e9", (1, 5)),
        ("as o200k", "\ud800", (1, 3)),
        ("as Qwen", "four", (1, 4)),
        ("as Qwen", "\U0001d160", (1, 12)),
        ("drops white space", "   ", (0, 3)),
        ("a byte is missing", "x", (0, 1)),
    ],
)
def test_how_tight_they_are(tokenizer: str, text: str, bounds: tuple[int, int]) -> None:
    """One token a byte, and one at least where nothing can be dropped; ASCII is its own normal form."""
    found = TokenizerCounter(BOUNDED[tokenizer]).bounds
    assert found is not None
    assert found(text) == bounds


def test_the_normal_form_c_at_most_triples() -> None:
    """What the bound behind NFC stands on: decomposing a character triples its bytes at most, composing adds none."""
    composed = normalizers.NFC()
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if "\ud800" <= character <= "\udfff":
            continue
        size = len(character.encode())
        apart = unicodedata.normalize("NFD", character)
        assert len(apart.encode()) <= 3 * size
        assert len(unicodedata.normalize("NFC", apart).encode()) <= len(apart.encode())
        assert len(composed.normalize_str(character).encode()) <= 3 * size


def test_a_tokenizer_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for the bounds again costs nothing."""
    from chat_compaction.counters import _adapters

    looks: list[Tokenizer] = []

    def look(tokenizer: Tokenizer) -> None:
        looks.append(tokenizer)

    monkeypatch.setattr(_adapters, "tokenizer_bounds", look)
    counter = TokenizerCounter(byte_level())
    assert counter.bounds is counter.bounds is None
    assert looks == [counter.tokenizer]


def test_o200k_is_bounded_by_bytes() -> None:
    """The shared vocabulary is a byte-level BPE; a text that reaches the bound shows that there is no better one."""
    counter = TokenizerCounter(_shared.o200k_tokenizer())
    assert counter.bounds is byte_bounds
    assert counter.count_many(["\x00\x01\x02"]) == [byte_bounds("\x00\x01\x02")[1]]


def test_words_are_no_lower_bound() -> None:
    """Why the lower bound is what it is: two words may be one token."""
    text = ",\n/"
    assert len(text.split()) > TokenizerCounter(_shared.o200k_tokenizer()).count_many([text])[0] == 1


class TestBoundsOf:
    def test_a_function_has_none(self) -> None:
        """C4: for an arbitrary function nothing is assumed."""
        assert bounds_of(FunctionCounter(len)) is None

    def test_a_function_may_be_given_some(self) -> None:
        """A function that asks a byte-level tokenizer is bounded by bytes."""
        counter = FunctionCounter(len, exact=True, bounds=byte_bounds)
        assert bounds_of(counter) is byte_bounds
        assert repr(counter) == "FunctionCounter(len, exact=True, bounds=byte_bounds)"
        assert counter != FunctionCounter(len, exact=True)

    @pytest.mark.parametrize("wrong", [3, (0, 1), "bytes"])
    def test_what_is_no_function(self, wrong: Any) -> None:
        """Wrong arguments fail at construction."""
        text = "bounds must be a plain function from one text to the least and the most, or None, got "
        with pytest.raises(TypeError, match=f"^{re.escape(text + repr(wrong))}$"):
            FunctionCounter(len, bounds=wrong)

    def test_a_counter_of_ones_own(self) -> None:
        """Any counter may have a method of that name, or None."""

        class Own:
            name, exact = "own", True

            def count_many(self, texts: Any) -> list[int]:
                return [len(text) for text in texts]

            def bounds(self, text: str) -> tuple[int, int]:
                return len(text) // 2, 2 * len(text)

        class Without(Own):
            bounds: Any = None

        found: Callable[[str], tuple[int, int]] | None = bounds_of(Own())
        assert found is not None
        assert found("four") == (2, 8)
        assert bounds_of(Without()) is None

    @given(ANY_TEXT)
    def test_the_estimate(self, text: str) -> None:
        """Whatever the estimate says of its bounds is so."""
        counter = EstimateCounter()
        bounds = bounds_of(counter)
        if bounds is not None:
            least, most = bounds(text)
            assert least <= counter.count_many([text])[0] <= most


def test_scripts_drop_what_is_only_spaces() -> None:
    """A cut by scripts loses such a text, so nothing is certain to be left of any."""
    counter = TokenizerCounter(byte_level(pre_tokenizers.UnicodeScripts()))
    (count,) = counter.count_many(["  "])
    low, high = (counter.bounds or byte_bounds)("  ")
    assert count == 0
    assert (low, high) == (0, 2)
