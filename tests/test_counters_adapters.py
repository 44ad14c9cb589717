"""Counters made of a function or of a tokenizer."""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from chat_compaction import CompactionError
from chat_compaction.counters import Counter, CounterError, FunctionCounter, TokenizerCounter, framing_of
from chat_compaction.counters import _adapters as adapters
from tests import _shared


def words_tokenizer() -> Tokenizer:
    """One token for each character that is no space: small, and easy to check by hand."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, "?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    )
    return tokenizer


class Doubled:
    """A callable object."""

    def __call__(self, text: str) -> int:
        return 2 * len(text)


class TestFunctionCounter:
    def test_counts_each_text(self) -> None:
        """The function is asked once for each text, in order."""
        assert FunctionCounter(len).count_many(["four", "", "à"]) == [4, 0, 1]

    def test_is_a_counter_that_frames_and_does_not_claim_a_tokenizer(self) -> None:
        """C3: a function is no tokenizer unless its caller says so."""
        counter = FunctionCounter(len)
        assert isinstance(counter, Counter)
        assert counter.exact is False
        assert framing_of(counter) is True
        assert FunctionCounter(len, exact=True).exact is True
        assert framing_of(FunctionCounter(len, framing=False)) is False

    @pytest.mark.parametrize(
        ("counter", "name"),
        [
            (FunctionCounter(len), "function:len"),
            (FunctionCounter(Doubled()), "function:Doubled"),
            (FunctionCounter(Doubled().__call__), "function:Doubled.__call__"),
            (FunctionCounter(len, "o200k_base"), "o200k_base"),
        ],
    )
    def test_name(self, counter: FunctionCounter, name: str) -> None:
        """C3: the name says by what it counts."""
        assert counter.name == name

    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            ({}, "FunctionCounter(len)"),
            (
                {"name": "n", "exact": True, "framing": False},
                "FunctionCounter(len, name='n', exact=True, framing=False)",
            ),
        ],
    )
    def test_repr_is_the_code_that_makes_it(self, arguments: dict[str, Any], shown: str) -> None:
        """A value prints as the expression that built it."""
        counter = FunctionCounter(len, **arguments)
        assert repr(counter) == shown
        assert eval(shown) == counter  # noqa: S307

    def test_equal_by_function(self) -> None:
        """Two counters are equal if they ask the same function the same way."""
        assert FunctionCounter(len) == FunctionCounter(len)
        assert hash(FunctionCounter(len)) == hash(FunctionCounter(len))
        assert FunctionCounter(len) != FunctionCounter(lambda text: len(text))
        assert FunctionCounter(len) != FunctionCounter(len, framing=False)

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (-1, "-1"),
            (True, "True"),
            (1.0, "1.0"),
            (None, "None"),
            ("secret", "a value of type str"),
            ([1, 2], "a value of type list"),
        ],
    )
    def test_what_is_no_count(self, value: Any, shown: str) -> None:
        """The error names counter, value and the length of the text, and shows nothing of the text itself."""
        counter = FunctionCounter(lambda text: value, name="mine")
        with pytest.raises(CounterError) as caught:
            counter.count_many(["private text"])
        assert str(caught.value) == (
            f"counter 'mine' must return an int of 0 or more for each text, got {shown} for a text of 12 characters"
        )
        assert isinstance(caught.value, CompactionError)
        assert isinstance(caught.value, ValueError)

    def test_what_the_function_raises_passes_through(self) -> None:
        """The caller's own error is more telling than any of ours."""

        def broken(text: str) -> int:
            raise KeyError(text)

        with pytest.raises(KeyError):
            FunctionCounter(broken).count_many(["a"])

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ({"function": 3}, "function must be a plain function from one text to its tokens, got 3"),
            ({"function": len, "name": ""}, "name must be a str that is not empty, or None, got ''"),
            ({"function": len, "name": 3}, "name must be a str that is not empty, or None, got 3"),
            ({"function": len, "exact": 1}, "exact must be True or False, got 1"),
            ({"function": len, "framing": None}, "framing must be True or False, got None"),
        ],
    )
    def test_wrong_arguments(self, arguments: dict[str, Any], text: str) -> None:
        """Wrong arguments fail at construction, with the argument's name, its value and what was expected."""
        with pytest.raises(TypeError) as caught:
            FunctionCounter(**arguments)
        assert str(caught.value) == text

    def test_a_coroutine_function_is_refused(self) -> None:
        """Counting is plain: a coroutine would be taken for a count."""

        async def count(text: str) -> int:
            return len(text)

        wrong: Callable[[str], Any] = count
        with pytest.raises(TypeError, match="function must be a plain function"):
            FunctionCounter(wrong)


class TestTokenizerCounter:
    def test_counts_each_text(self) -> None:
        """C3: exact, by the vocabulary that its name tells."""
        counter = TokenizerCounter(words_tokenizer())
        assert isinstance(counter, Counter)
        assert counter.exact is True
        assert counter.name == "tokenizers:WordLevel-1"
        assert counter.count_many(["a bc", "", "d"]) == [3, 0, 1]
        assert counter.count_many([]) == []

    def test_name_and_repr(self) -> None:
        """The name may be given; the tokenizer stays out of the repr."""
        counter = TokenizerCounter(words_tokenizer(), name="mine")
        assert counter.name == "mine"
        assert repr(counter) == "TokenizerCounter(<tokenizer>, name='mine')"

    def test_equal_only_to_itself(self) -> None:
        """Two tokenizers cannot be compared, so two counters are not equal."""
        tokenizer = words_tokenizer()
        counter = TokenizerCounter(tokenizer)
        assert counter == counter
        assert counter != TokenizerCounter(tokenizer)

    def test_adds_no_special_tokens(self) -> None:
        """C1: what is sent is counted, not what a model's template adds."""
        from tokenizers import processors

        tokenizer = words_tokenizer()
        tokenizer.add_special_tokens(["[CLS]"])
        tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", None, [("[CLS]", 1)])
        assert len(tokenizer.encode("ab")) == 3
        assert TokenizerCounter(tokenizer).count_many(["ab"]) == [2]

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_truncation_and_padding_do_not_falsify_counts(self, when: str) -> None:
        """Limits set on the tokenizer, before or after, change no count; and the caller's object is not changed."""
        tokenizer = words_tokenizer()
        counter = TokenizerCounter(tokenizer) if when == "after" else None
        tokenizer.enable_truncation(2)
        tokenizer.enable_padding(length=5)
        counter = counter or TokenizerCounter(tokenizer)
        assert counter.count_many(["abc", "a"]) == [3, 1]
        assert tokenizer.truncation is not None
        assert tokenizer.padding is not None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        assert counter.count_many(["abc", "a"]) == [3, 1]

    def test_a_tokenizer_that_truncates_and_cannot_be_copied_is_refused(self) -> None:
        """Better no counter than one whose counts are wrong."""

        class Custom:
            def pre_tokenize(self, pretok: Any) -> None:
                """Leave the text in one piece."""

        tokenizer = words_tokenizer()
        tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Custom())
        assert TokenizerCounter(tokenizer).count_many(["ab"]) == [1]
        tokenizer.enable_truncation(1)
        with pytest.raises(ValueError, match="tokenizer must be one that can be copied, or that neither trunc"):
            TokenizerCounter(tokenizer)

    def test_lone_surrogates_are_counted(self) -> None:
        """Text cut in the middle of a character, as streams have it, does not raise."""
        counter = TokenizerCounter(words_tokenizer())
        assert counter.count_many(["a\ud83d", "\ud83d\ude00", "\udc00\ud800"]) == [2, 1, 2]

    @pytest.mark.parametrize("sizes", [[3], [0, 0], [4, 3, 3, 9, 1], [10] * 3, []])
    def test_batches_are_bounded(self, sizes: list[int]) -> None:
        """No batch holds more than the bound, except a text that alone does; order and texts are kept."""
        texts = ["x" * size for size in sizes]
        batches = list(adapters._batches(iter(texts), 6))
        assert [text for batch in batches for text in batch] == texts
        assert all(sum(map(len, batch)) <= 6 or len(batch) == 1 for batch in batches)
        assert all(batches)

    def test_counts_the_same_in_any_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a batch ends makes no difference."""
        texts = ["a bc", "", "def", "g" * 50]
        counter = TokenizerCounter(words_tokenizer())
        whole = counter.count_many(texts)
        monkeypatch.setattr(adapters, "_BATCH", 4)
        assert counter.count_many(texts) == whole == [3, 0, 3, 50]

    def test_without_the_fast_batch_method(self) -> None:
        """Versions of tokenizers before encode_batch_fast count the same."""

        class Old:
            truncation = padding = None

            def encode_batch(self, texts: list[str], add_special_tokens: bool = True) -> list[str]:
                assert not add_special_tokens
                return texts

        counter = TokenizerCounter(words_tokenizer())
        object.__setattr__(counter, "tokenizer", Old())
        assert counter.count_many(["abc"]) == [3]

    @pytest.mark.parametrize("wrong", [None, "o200k_base", len])
    def test_not_a_tokenizer(self, wrong: Any) -> None:
        """Wrong arguments fail at construction."""
        with pytest.raises(TypeError, match=r"tokenizer must be a tokenizers\.Tokenizer, got "):
            TokenizerCounter(wrong)

    @given(st.text(st.characters(codec=None)))
    def test_any_text_becomes_encodable(self, text: str) -> None:
        """A text that has a UTF-8 form is kept as it is; any other gets one, character for character or pair."""
        sent = adapters.encodable(text)
        sent.encode()
        try:
            text.encode()
        except UnicodeEncodeError:
            assert "\ufffd" in sent or len(sent) < len(text)
        else:
            assert sent is text


class TestFromFile:
    @pytest.mark.parametrize(
        ("file", "name"),
        [
            ("small.tokenizer.json", "tokenizers:small"),
            ("small.json", "tokenizers:small"),
            ("small.tokenizer.json.gz", "tokenizers:small"),
            ("v1.2.json.gz", "tokenizers:v1.2"),
            ("vocabulary", "tokenizers:vocabulary"),
        ],
    )
    def test_plain_and_gzipped(self, tmp_path: Path, file: str, name: str) -> None:
        """The name comes from the file's name; both forms count alike."""
        raw = words_tokenizer().to_str().encode()
        path = tmp_path / file
        path.write_bytes(gzip.compress(raw) if file.endswith(".gz") else raw)
        for given_path in (path, str(path)):
            counter = TokenizerCounter.from_file(given_path)
            assert counter.name == name
            assert counter.count_many(["abc"]) == [3]
        assert TokenizerCounter.from_file(path, name="mine").name == "mine"

    @pytest.mark.parametrize(
        ("file", "content", "reason"),
        [
            ("absent.json", None, "No such file or directory"),
            ("broken.json", b"{", "EOF while parsing"),
            ("empty.json", b"", "EOF while parsing"),
            ("other.json", b"{}", "Model missing"),
            ("latin.json", b"\xe9", "utf-8"),
            ("plain.json.gz", b"{}", "Not a gzipped file"),
            ("cut.json.gz", gzip.compress(b"{}" * 99, mtime=0)[:20], "ended before"),
            ("torn.json.gz", gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 30, "invalid block type"),
        ],
    )
    def test_what_cannot_be_read(self, tmp_path: Path, file: str, content: bytes | None, reason: str) -> None:
        """The error names the argument, the file, what was expected and why it failed."""
        path = tmp_path / file
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ValueError, match="path must name a tokenizer of the tokenizers package") as caught:
            TokenizerCounter.from_file(path)
        assert repr(str(path)) in str(caught.value)
        assert reason in str(caught.value)

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        """A path to a folder is refused like any other that cannot be read."""
        with pytest.raises(ValueError, match="path must name a tokenizer"):
            TokenizerCounter.from_file(tmp_path)

    def test_o200k(self) -> None:
        """The shared vocabulary, by its path, counts what its publisher's encoder counts."""
        path = _shared.shared_dir() / "data" / "tokenizers" / "o200k_base.tokenizer.json.gz"
        counter = TokenizerCounter.from_file(path)
        assert counter.name == "tokenizers:o200k_base"
        assert counter.count_many(["hello world", "", "<|endoftext|>", "你好世界", " " * 128]) == [2, 0, 7, 2, 1]


def test_importing_counters_loads_no_tokenizers() -> None:
    """Heavy packages are imported where they are used: importing counters costs little."""
    import subprocess

    code = (
        "import sys, chat_compaction.counters as c; c.EstimateCounter().count_many(['text']);"
        "print(*sorted({'tokenizers', 'structlog', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
