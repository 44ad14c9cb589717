"""What a ``counter`` argument means."""

import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pytest
from tokenizers import Tokenizer, models

from chat_compaction.counters import (
    Counter,
    EstimateCounter,
    FunctionCounter,
    TokenizerCounter,
    framing_of,
    resolve_counter,
)
from chat_compaction.counters import _resolve as resolving
from tests import _shared

BACKENDS = ("rs_bpe", "bpe_openai")
MODULES = ("rs_bpe", "rs_bpe.bpe", "bpe_openai", "bpe_openai._bindings")


@pytest.fixture
def no_backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if no package with a vocabulary were installed."""
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, None)
    resolving._rs_bpe.cache_clear()
    resolving._bpe_openai.cache_clear()
    yield
    resolving._rs_bpe.cache_clear()
    resolving._bpe_openai.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, package: str, count: Any) -> None:
    """Put a package in place whose tokenizer counts with ``count``."""
    tokenizer = SimpleNamespace(count=count)
    name = {"rs_bpe": "rs_bpe.bpe", "bpe_openai": "bpe_openai._bindings"}[package]
    module: Any = ModuleType(name)
    if package == "rs_bpe":
        module.openai = SimpleNamespace(o200k_base=lambda: tokenizer)
    else:
        module.tokenizer_for_encoding = {"o200k_base": tokenizer}.__getitem__
    monkeypatch.setitem(sys.modules, package, ModuleType(package))
    monkeypatch.setitem(sys.modules, name, module)


@attrs.define
class Own:
    """A user's counter: a plain class with the three members."""

    name: Any = "own"
    exact: Any = True

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)


class TestTheCallersOwn:
    @pytest.mark.parametrize("counter", [Own(), EstimateCounter(), FunctionCounter(len)])
    def test_a_counter_is_taken_as_it_is(self, counter: Counter) -> None:
        """The first layer: what the caller passes, the same object."""
        assert resolve_counter(counter) is counter

    def test_a_function(self) -> None:
        """Any function from a text to its tokens."""
        assert resolve_counter(len) == FunctionCounter(len)

    def test_a_tokenizer(self) -> None:
        """A tokenizer of the tokenizers package, which is not copied."""
        tokenizer = Tokenizer(models.WordLevel({"?": 0}, "?"))
        counter = resolve_counter(tokenizer)
        assert isinstance(counter, TokenizerCounter)
        assert counter.tokenizer is tokenizer

    def test_a_path(self, tmp_path: Path) -> None:
        """The path of a tokenizer file, as a string or a path."""
        path = tmp_path / "small.json"
        Tokenizer(models.WordLevel({"?": 0}, "?")).save(str(path))
        assert resolve_counter(path).name == resolve_counter(str(path)).name == "tokenizers:small"

    def test_a_name_is_no_path(self) -> None:
        """A vocabulary's name is not looked up anywhere: the error says that a file was expected."""
        with pytest.raises(ValueError, match=r"^counter must be .* got 'o200k_base', which is no file$"):
            resolve_counter("o200k_base")

    def test_framing_is_the_counters_own(self) -> None:
        """A counter without the member frames; only False turns it off."""
        assert framing_of(Own()) is True
        assert framing_of(FunctionCounter(len, framing=False)) is False


@pytest.mark.usefixtures("no_backends")
class TestTheDefault:
    def test_an_estimate_where_nothing_is_installed(self) -> None:
        """The last layer needs nothing, and says that it is an estimate (C3)."""
        assert resolve_counter() == resolve_counter(None) == EstimateCounter()
        assert resolve_counter().exact is False

    @pytest.mark.parametrize(
        ("package", "name"), [("rs_bpe", "rs-bpe:o200k_base"), ("bpe_openai", "bpe-openai:o200k_base")]
    )
    def test_an_installed_tokenizer(self, monkeypatch: pytest.MonkeyPatch, package: str, name: str) -> None:
        """The second layer: a package that carries its vocabulary counts, and gives its name (C3)."""
        install(monkeypatch, package, len)
        counter = resolve_counter()
        assert (counter.name, counter.exact, framing_of(counter)) == (name, True, True)
        assert counter.count_many(["abc", ""]) == [3, 0]

    def test_the_first_layer_that_loads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The layers have an order."""
        install(monkeypatch, "bpe_openai", len)
        install(monkeypatch, "rs_bpe", len)
        assert resolve_counter().name == "rs-bpe:o200k_base"

    def test_a_broken_package_is_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A default never fails: the next layer counts."""
        broken: Any = ModuleType("rs_bpe.bpe")
        monkeypatch.setitem(sys.modules, "rs_bpe", ModuleType("rs_bpe"))
        monkeypatch.setitem(sys.modules, "rs_bpe.bpe", broken)
        assert resolve_counter() == EstimateCounter()
        install(monkeypatch, "bpe_openai", len)
        assert resolve_counter().name == "bpe-openai:o200k_base"

    def test_loaded_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asking again costs nothing and gives the same counter."""
        install(monkeypatch, "rs_bpe", len)
        assert resolve_counter() is resolve_counter()

    def test_lone_surrogates_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The packages refuse what has no UTF-8 form; the layer does not."""
        install(monkeypatch, "rs_bpe", lambda text: len(text.encode()))
        assert resolve_counter().count_many(["a\ud800"]) == [4]

    def test_no_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Resolution never opens a connection."""

        def refuse(*_: object) -> None:
            raise AssertionError("a connection was opened")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        assert resolve_counter() == EstimateCounter()


@pytest.mark.parametrize("package", BACKENDS)
def test_installed_packages_count_as_tokenizers_does(package: str) -> None:
    """With the real package: the same counts as o200k_base of tokenizers, hard texts included."""
    pytest.importorskip(package)
    layer = {"rs_bpe": resolving._rs_bpe, "bpe_openai": resolving._bpe_openai}[package]
    texts = [
        "",
        "hello world",
        "<|endoftext|>",
        "a\ud800",
        "\ud83d\ude00",
        "你好世界",
        " \n\n  x",
        "naïve",
        "a" * 1_000,
    ]
    counter = layer()
    assert counter.count_many(texts) == TokenizerCounter(_shared.o200k_tokenizer()).count_many(texts)
    assert counter.count_many(["word " * 250_000]) == [250_001]


class Tiktoken:
    """An encoding as tiktoken has it: no counter, but something that encodes."""

    def encode(self, text: str) -> list[int]:
        return [0] * len(text)


class CallableEncoding(Tiktoken):
    """As transformers has it: calling it gives no count either."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}


def of_module(kind: type[Any], module: str) -> Any:
    """An object whose class says that it comes from another module."""
    return type(kind.__name__, (kind,), {"__module__": module})()


class TestWhatIsNoCounter:
    @pytest.mark.parametrize(
        ("wrong", "hint"),
        [
            (
                of_module(Tiktoken, "tiktoken.core"),
                "pass lambda text: len(encoding.encode(text, disallowed_special=()))",
            ),
            (
                of_module(Tiktoken, "bpe_openai.tokenizer"),
                "pass lambda text: len(encoding.encode(text, disallowed_special=()))",
            ),
            (
                of_module(CallableEncoding, "transformers.models"),
                "pass its backend_tokenizer, or lambda text: len(tokenizer.encode(text, add_special_tokens=False))",
            ),
            (CallableEncoding(), "pass lambda text: len(tokenizer.encode(text))"),
            (SimpleNamespace(count_many=len), "which lacks name and exact"),
            (SimpleNamespace(count_many=len, name="n"), "which lacks exact"),
        ],
    )
    def test_the_error_says_how_to_make_one(self, wrong: Any, hint: str) -> None:
        """An encoder is not guessed at: the error gives the line to write."""
        with pytest.raises(TypeError) as caught:
            resolve_counter(wrong)
        assert str(caught.value).startswith("counter must be a Counter, a function from a text to its tokens, ")
        assert str(caught.value).endswith(hint)

    @pytest.mark.parametrize("wrong", [3, 1.5, True, b"path", [len], {}])
    def test_anything_else(self, wrong: Any) -> None:
        """The error names the argument and the value, and hints at nothing."""
        with pytest.raises(TypeError) as caught:
            resolve_counter(wrong)
        assert str(caught.value).endswith(f"the path of a tokenizer.json or None, got {wrong!r}")

    @pytest.mark.parametrize("wrong", [EstimateCounter, Own, int])
    def test_a_class(self, wrong: type[Any]) -> None:
        """The class instead of an instance is told apart from a function."""
        with pytest.raises(TypeError, match=f"got the class {wrong.__name__}: make an instance"):
            resolve_counter(wrong)

    @pytest.mark.parametrize("wrong", [Own(name=None), Own(exact="yes")])
    def test_members_of_the_wrong_type(self, wrong: Own) -> None:
        """C3: the report shows name and exact, so their types are checked."""
        with pytest.raises(TypeError, match="counter must have a str name, a bool exact and a method count_many, got"):
            resolve_counter(wrong)

    def test_a_coroutine_function(self) -> None:
        """A function that has to be awaited is no counter."""

        async def count(text: str) -> int:
            return len(text)

        with pytest.raises(TypeError, match="function must be a plain function"):
            resolve_counter(count)

    def test_without_tokenizers_imported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Resolution does not import tokenizers to find out that something is none."""
        monkeypatch.delitem(sys.modules, "tokenizers")
        assert resolve_counter(len) == FunctionCounter(len)
        assert "tokenizers" not in sys.modules
