"""Strategies of other packages, by entry point: from a real distribution on the path, loaded by name and only then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction.config import ConfigError, from_config, to_config
from tests._cli import run, session, write

MODULE = """
import attrs
import chat_compaction as cc
from chat_compaction.strategies.function import strategy


@attrs.frozen(kw_only=True)
class BiggestFirst(cc.CompactionStrategy):
    most: int = 3
    inner: cc.CompactionStrategy | None = None

    def compact_core(self, index):
        biggest = sorted(self.candidates(index), key=index.tokens_of, reverse=True)
        self.evict(index, biggest[: self.most], "biggest")


@strategy(trigger=cc.messages > 3, min_preserved_groups=1)
def oldest(strategy, index):
    strategy.evict(index, strategy.candidates(index), "oldest")


def first_words(request):
    return request.text[:10]


@attrs.frozen
class Words:
    number: int = 10

    def __call__(self, request):
        return request.text[: self.number]


NOTHING = 3
"""
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution: modules, and entry points as installers write them."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def installed(name: str, entry_points: str, **modules: str) -> Path:
        info = tmp_path / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        for module, text in modules.items():
            (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        return tmp_path

    yield installed
    for module in set(sys.modules) - before:
        if module.startswith("acme"):
            del sys.modules[module]


@pytest.fixture
def acme(install: Install) -> Path:
    """A package that adds strategies and summarisers."""
    return install(
        "acme-compaction",
        "[chat_compaction.strategies]\n"
        "a_broken = acme_broken:BiggestFirst\n"
        "biggest_first = acme_strategies:BiggestFirst\n"
        "acme_oldest = acme_strategies:oldest\n"
        "truncation = acme_strategies:Hostile\n"
        "broken = acme_broken:BiggestFirst\n"
        "missing = acme_strategies:Missing\n"
        "nothing = acme_strategies:NOTHING\n"
        "[chat_compaction.summarizers]\n"
        "first_words = acme_strategies:first_words\n"
        "words = acme_strategies:Words\n",
        acme_strategies=MODULE,
        acme_broken="1 / 0\n",
    )


def fault(config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config)
    (one,) = caught.value.faults
    return str(one)


def test_a_class_of_another_package_is_known_by_its_name(acme: Path) -> None:
    """With its arguments, in compositions, both ways, and without anything being allowed."""
    config = {
        "strategy": "first_of",
        "stages": [
            {
                "strategy": "biggest_first",
                "trigger": "tokens > 8000",
                "most": 4,
                "inner": {"strategy": "truncation", "trigger": "turns > 4"},
            },
            {"strategy": "truncation", "trigger": "tokens > 8000"},
        ],
    }
    strategy = from_config(config)
    assert repr(strategy).startswith("FirstOf(")
    assert "BiggestFirst(trigger=tokens > 8000, " in repr(strategy)
    assert to_config(strategy) == config
    assert fault({"strategy": "biggest_first", "trigger": "turns > 4", "mots": 3}) == (
        "mots: unknown key; did you mean 'most'?"
    )


def test_a_decorated_function_of_another_package_has_its_decorators_arguments(acme: Path) -> None:
    """And those of the table take their place."""
    strategy = from_config({"strategy": "acme_oldest"})
    assert repr(strategy) == "FunctionStrategy(oldest, trigger=messages > 3, min_preserved_groups=1)"
    assert to_config(strategy) == {"strategy": "acme_oldest"}
    changed = from_config({"strategy": "acme_oldest", "trigger": "messages > 9"})
    assert changed == attrs.evolve(strategy, trigger=cc.messages > 9)
    assert to_config(changed) == {"strategy": "acme_oldest", "trigger": "messages > 9"}
    assert fault({"strategy": "acme_oldest", "function": 3}).startswith("function: unknown key")


def test_a_summarizer_of_another_package(acme: Path) -> None:
    """A class takes its arguments, a function takes none."""
    for summarizer in ({"kind": "words", "number": 7}, {"kind": "words"}, {"kind": "first_words"}):
        config = {"strategy": "summarization", "summarizer": summarizer, "trigger": "turns > 4"}
        assert to_config(from_config(config)) == config
    config = {"strategy": "summarization", "summarizer": {"kind": "first_words", "x": 1}, "trigger": "turns > 4"}
    assert fault(config) == "summarizer.x: unknown key"


def test_nothing_is_loaded_that_is_not_named(acme: Path) -> None:
    """A package that is installed and not used does nothing."""
    from_config({"strategy": "truncation", "trigger": "turns > 4"})
    assert fault({"strategy": "biggest_frst"}) == (
        "strategy: there is no strategy 'biggest_frst'; did you mean 'biggest_first'?"
    )
    assert not {"acme_strategies", "acme_broken"} & set(sys.modules)


def test_our_names_cannot_be_taken_over(acme: Path) -> None:
    """What a configuration says does not change with what is installed."""
    strategy = from_config({"strategy": "truncation", "trigger": "turns > 4"})
    assert type(strategy) is cc.TruncationStrategy


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "broken",
            "the strategy 'broken' of acme-compaction (acme_broken:BiggestFirst) cannot be loaded: "
            "ZeroDivisionError: division by zero",
        ),
        (
            "missing",
            "the strategy 'missing' of acme-compaction (acme_strategies:Missing) cannot be loaded: "
            "AttributeError: module 'acme_strategies' has no attribute 'Missing'",
        ),
        (
            "nothing",
            "'nothing' of acme-compaction (acme_strategies:NOTHING) must be a class of strategies "
            "or a decorated function, got 3",
        ),
    ],
)
def test_a_broken_package_is_named(acme: Path, name: str, expected: str) -> None:
    assert fault({"strategy": name}) == f"strategy: {expected}"


def test_two_packages_with_one_name_are_both_named(acme: Path, install: Install) -> None:
    """Which of them is meant, nobody knows; the same thing twice is no conflict."""
    entry = (
        "[chat_compaction.strategies]\nbiggest_first = acme_other:BiggestFirst\nacme_oldest = acme_strategies:oldest\n"
    )
    install("acme-other", entry, acme_other=MODULE)
    assert fault({"strategy": "biggest_first"}) == (
        "strategy: more than one package has the strategy 'biggest_first': "
        "acme-compaction (acme_strategies:BiggestFirst) and acme-other (acme_other:BiggestFirst)"
    )
    assert from_config({"strategy": "acme_oldest"}).min_preserved_groups == 1


def test_an_argument_with_the_name_of_the_key_is_refused(install: Install) -> None:
    """It could not be given."""
    module = (
        "import attrs, chat_compaction as cc\n"
        "@attrs.frozen(kw_only=True)\n"
        "class Around(cc.CompactionStrategy):\n"
        "    strategy: int = 3\n"
        "    def compact_core(self, index): pass\n"
    )
    install("acme-around", "[chat_compaction.strategies]\naround = acme_around:Around\n", acme_around=module)
    assert fault({"strategy": "around", "trigger": "turns > 4"}) == (
        "Around has an argument strategy, which in a configuration is the key for its name"
    )


def test_the_command_line_knows_them(acme: Path, tmp_path: Path) -> None:
    config = tmp_path / "compaction.toml"
    config.write_text('strategy = "acme_oldest"\n', encoding="utf-8")
    path = write(tmp_path / "session.json", session())
    result = run("compact", path, "--config", config, "--counter", "estimate")
    assert result.exit_code == 0, result.stderr
    assert "reached the target messages <= 3" in result.stderr
