"""What a ``counter`` argument means."""

import pickle
import socket
import sys
from collections.abc import Sequence
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
    bounds_of,
    byte_bounds,
    framing_of,
    resolve_counter,
)
from chat_compaction.counters import _backends as backends
from chat_compaction.counters._adapters import encodable
from chat_compaction.counters._checks import CHECKS

MODULES = ("splintr", "rs_bpe", "rs_bpe.bpe", "tiktoken", "bpe_openai", "bpe_openai._bindings", "fastokens")
RIGHT = {encodable(text): count for text, count in CHECKS.items()}


def right(text: str) -> int:
    """Passes every check; any other text has as many tokens as characters."""
    return RIGHT.get(text, len(text))


@pytest.fixture
def no_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no package with a vocabulary were installed, and none had been asked for."""
    monkeypatch.setattr(backends, "_loaded", {})
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, None)


def install(monkeypatch: pytest.MonkeyPatch, package: str, count: Any = right) -> list[str]:
    """Put a package in place whose tokenizer counts with ``count``; gives what was asked for, name by name."""
    loads: list[str] = []

    def load(name: str = "o200k_base") -> Any:
        loads.append(name)
        assert name == "o200k_base"
        return SimpleNamespace(count=count)

    name = {"rs-bpe": "rs_bpe.bpe", "bpe-openai": "bpe_openai._bindings"}[package]
    module: Any = ModuleType(name)
    if package == "rs-bpe":
        module.openai = SimpleNamespace(o200k_base=load)
    else:
        module.tokenizer_for_encoding = load
    monkeypatch.setitem(sys.modules, name.partition(".")[0], ModuleType(package))
    monkeypatch.setitem(sys.modules, name, module)
    return loads


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

    @pytest.mark.parametrize("package", ["rs-bpe", "bpe-openai"])
    def test_an_installed_tokenizer(self, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
        """The second layer: a package that carries its vocabulary counts, and gives its name (C3)."""
        install(monkeypatch, package)
        counter = resolve_counter()
        assert (counter.name, counter.exact, framing_of(counter)) == (f"{package}:o200k_base", True, True)
        assert counter.count_many(["abc", ""]) == [3, 0]
        assert bounds_of(counter) is byte_bounds

    def test_the_fastest_that_loads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The layers have an order."""
        install(monkeypatch, "bpe-openai")
        install(monkeypatch, "rs-bpe")
        assert resolve_counter().name == "rs-bpe:o200k_base"

    def test_a_broken_package_is_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A default never fails: the next layer counts."""
        broken: Any = ModuleType("rs_bpe.bpe")
        monkeypatch.setitem(sys.modules, "rs_bpe", ModuleType("rs_bpe"))
        monkeypatch.setitem(sys.modules, "rs_bpe.bpe", broken)
        assert resolve_counter() == EstimateCounter()
        install(monkeypatch, "bpe-openai")
        backends._loaded.clear()
        assert resolve_counter().name == "bpe-openai:o200k_base"

    @pytest.mark.parametrize("text", [text for text, count in CHECKS.items() if count != len(text)], ids=ascii)
    def test_a_package_that_counts_otherwise_is_passed_over(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        """C3: exact or not at all, whichever of the checked texts it gets wrong, and it is not loaded again."""
        sent = encodable(text)
        loads = install(monkeypatch, "rs-bpe", lambda asked: len(asked) if asked == sent else right(asked))
        assert resolve_counter() == resolve_counter() == EstimateCounter()
        assert len(loads) == 1
        with pytest.raises(
            ValueError, match=r"^counter 'rs-bpe:o200k_base' counts 1 of \d+ texts otherwise than o200k"
        ):
            resolve_counter("rs-bpe:o200k_base")

    def test_a_package_that_panics_is_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a package written in Rust raises when it panics is no Exception; what stops the program still does."""

        class PanicException(BaseException):
            pass

        def panic(text: str) -> int:
            raise PanicException("at the disco")

        def stop(text: str) -> int:
            raise KeyboardInterrupt

        install(monkeypatch, "rs-bpe", panic)
        assert resolve_counter() == EstimateCounter()
        with pytest.raises(ValueError, match=r"does not load: PanicException: at the disco"):
            resolve_counter("rs-bpe:o200k_base")
        install(monkeypatch, "bpe-openai", stop)
        backends._loaded.clear()
        with pytest.raises(KeyboardInterrupt):
            resolve_counter()

    def test_loaded_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asking again costs nothing and gives the same counter."""
        loads = install(monkeypatch, "rs-bpe")
        assert resolve_counter() is resolve_counter()
        assert len(loads) == 1

    def test_decided_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All that counts in a process counts alike; what is installed later can be asked for by its name."""
        assert resolve_counter() == EstimateCounter()
        install(monkeypatch, "rs-bpe")
        assert resolve_counter() == EstimateCounter()
        assert resolve_counter("o200k_base").name == "rs-bpe:o200k_base"

    def test_lone_surrogates_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The packages refuse what has no UTF-8 form; the layer does not."""
        install(monkeypatch, "rs-bpe", lambda text: RIGHT.get(text, len(text.encode())))
        assert resolve_counter().count_many(["b\ud800"]) == [4]

    def test_a_copy_finds_its_package_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In another process it is loaded there; the repr is the code that makes it."""
        install(monkeypatch, "rs-bpe")
        counter = resolve_counter()
        assert pickle.loads(pickle.dumps(counter)) is counter  # noqa: S301
        assert repr(counter) == "resolve_counter('rs-bpe:o200k_base')"
        assert eval(repr(counter)) is counter  # noqa: S307

    def test_no_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Resolution never opens a connection."""

        def refuse(*_: object) -> None:
            raise AssertionError("a connection was opened")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        assert resolve_counter() == EstimateCounter()


@pytest.mark.usefixtures("no_backends")
class TestByName:
    def test_the_vocabulary(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The fastest that is installed, never an estimate."""
        install(monkeypatch, "bpe-openai")
        assert resolve_counter("o200k_base").name == "bpe-openai:o200k_base"

    def test_the_vocabulary_where_nothing_has_it(self) -> None:
        """The error says what to install."""
        with pytest.raises(
            ValueError, match=r'^counter .o200k_base. needs .*: pip install "chat-compaction\[exact\]"$'
        ):
            resolve_counter("o200k_base")

    def test_one_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Named, a slower one is taken too."""
        install(monkeypatch, "rs-bpe")
        install(monkeypatch, "bpe-openai")
        assert resolve_counter("bpe-openai:o200k_base").name == "bpe-openai:o200k_base"

    @pytest.mark.parametrize("package", ["splintr-rs", "rs-bpe", "tiktoken", "bpe-openai", "fastokens"])
    def test_a_package_that_is_not_installed(self, package: str) -> None:
        """What was asked for by name is not replaced by something else."""
        with pytest.raises(ValueError, match=f"^counter '{package}:o200k_base' needs what is not installed: "):
            resolve_counter(f"{package}:o200k_base")

    @pytest.mark.parametrize("name", ["gpt-4o", "cl100k_base", "rs-bpe", "rs-bpe:cl100k_base", "other:o200k_base", ""])
    def test_any_other_name_is_a_path(self, name: str) -> None:
        """A model's name is not looked up anywhere: the error says that a file was expected."""
        with pytest.raises(ValueError, match=rf"^counter must be .* got '{name}', which is no file$"):
            resolve_counter(name)


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
        assert str(caught.value).startswith("counter must be a Counter, 'o200k_base', a function from a text to its")
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
