"""What a user installs: the wheel, in an empty environment, with no source tree in sight."""

import itertools
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from chat_compaction.counters import TokenizerCounter
from chat_compaction.counters._checks import CHECKS
from tests._shared import ROOT, o200k_tokenizer
from tests.test_counters_backends import hard_texts

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

REDUCE = """
import chat_compaction as cc
history = [{"role": "user", "content": f"question {i} " * 50} for i in range(20)]
strategy = cc.TruncationStrategy(trigger=cc.tokens > 400, min_preserved_groups=1)
kept = cc.as_chat_reducer(strategy, format="openai_chat").reduce(history)
assert 0 < len(kept) < 20 and kept[-1] is history[-1]
print(cc.__version__, cc.__file__)
"""

TYPED = """
import chat_compaction as cc
strategy: cc.CompactionStrategy = cc.TokenBudgetStrategy(max_tokens=8_000)
strategy.no_such_name
"""


INSTALLED = """
import chat_compaction as cc
counter = cc.counters.resolve_counter(None)
print(counter.name, counter.exact, *counter.count_many(["hello world", "lone \\ud800", "x" * 1000]))
"""

OFFLINE = """
import socket
def refuse(*arguments): raise AssertionError("a connection was opened")
socket.socket.connect = socket.getaddrinfo = refuse
"""

COUNTED = """
import json, chat_compaction as cc
counter = cc.counters.resolve_counter("o200k_base")
print(json.dumps(counter.count_many(json.load(open("texts.json", encoding="utf-8")))))
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command far from the source tree, deaf to the variables that could lead Python back to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def check_run(*command: str | Path, cwd: Path) -> str:
    """Runs a command that must succeed; gives its standard output."""
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(requirement: str, folder: Path) -> Path:
    """A new environment with one requirement in it; gives the folder of its commands."""
    check_run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    add(requirement, commands)
    return commands


def add(requirement: str, commands: Path) -> None:
    """One requirement more, by our own pip: an environment with one of its own takes seconds to make."""
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python")]
    check_run(*pip, "install", "--quiet", requirement, cwd=commands.parent)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the repository as it stands."""
    folder = tmp_path_factory.mktemp("wheel")
    check_run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and no extra."""
    return install(str(wheel), tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(scope="module")
def with_cli(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and its ``cli`` extra."""
    return install(f"{wheel}[cli]", tmp_path_factory.mktemp("cli") / "venv")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module of the source tree and ``py.typed`` are in the wheel; tests, docs and examples are not."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert names == expected | {"chat_compaction/py.typed"}


def test_it_runs_without_the_source(bare: Path, tmp_path: Path) -> None:
    """The installed package reduces a history from Python, and knows its version."""
    version, path = check_run(bare / "python", "-c", REDUCE, cwd=tmp_path).split(maxsplit=1)
    assert version == PROJECT["version"]
    assert Path(path.strip()).is_relative_to(bare.parent)


def test_the_core_needs_three_packages(wheel: Path) -> None:
    """Everything but attrs, structlog and tokenizers is an extra."""
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    lines = zipfile.ZipFile(wheel).read(metadata).decode("utf-8").splitlines()
    required = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    core = {line.split("<")[0].split(">")[0] for line in required if "extra ==" not in line}
    assert core == {"attrs", "structlog", "tokenizers"}


def test_type_checkers_see_the_types(bare: Path, tmp_path: Path) -> None:
    """``py.typed`` works: mypy takes the types from the installed package, and finds the one mistake."""
    (tmp_path / "user.py").write_text(TYPED, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(bare / "python"), "user.py"]
    done = run(*mypy, cwd=tmp_path)
    assert done.stdout.splitlines()[0] == (
        'user.py:4: error: "CompactionStrategy" has no attribute "no_such_name"  [attr-defined]'
    ), done.stdout + done.stderr
    assert "Found 1 error" in done.stdout


@pytest.mark.parametrize("arguments", [["--version"], ["compact", "session.json"]], ids=["version", "compact"])
def test_the_command_without_its_extra_says_what_to_install(bare: Path, tmp_path: Path, arguments: list[str]) -> None:
    """One line on standard error that names the extra, status 2 (wrong use), no traceback."""
    done = run(bare / "chat-compaction", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "chat-compaction[cli]" in done.stderr


def test_the_command_compacts_the_example(with_cli: Path, tmp_path: Path) -> None:
    """With its extra, the installed command compacts a session; the messages are all it writes to standard output."""
    session = ROOT / "examples" / "release-agent.json"
    budget = ["--max-tokens", "8000", "--target-tokens", "4000"]
    kept = json.loads(check_run(with_cli / "chat-compaction", "compact", session, *budget, cwd=tmp_path))
    messages = json.loads(session.read_text(encoding="utf-8"))
    assert 0 < len(kept) < len(messages)
    assert kept[0] == messages[0]
    assert kept[-1] == messages[-1]
    assert PROJECT["version"] in check_run(with_cli / "chat-compaction", "--version", cwd=tmp_path)


@pytest.mark.parametrize("package", ["rs-bpe", "bpe-openai"])
def test_an_installed_vocabulary_counts(wheel: Path, tmp_path: Path, package: str) -> None:
    """The second layer of counters, with the real packages: what carries a vocabulary is used, and is exact (C3)."""
    commands = install(str(wheel), tmp_path / "venv")
    add(package, commands)
    shown = check_run(commands / "python", "-c", INSTALLED, cwd=tmp_path)
    assert shown.split() == [f"{package}:o200k_base", "True", "2", "3", "125"]


@pytest.fixture(scope="module")
def with_exact(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and its ``exact`` extra."""
    return install(f"{wheel}[exact]", tmp_path_factory.mktemp("exact") / "venv")


def test_the_extra_counts_exactly(with_exact: Path, tmp_path: Path) -> None:
    """One extra away, and with no network, is an exact count (C3)."""
    shown = check_run(with_exact / "python", "-c", OFFLINE + INSTALLED, cwd=tmp_path)
    assert shown.split() == ["splintr-rs:o200k_base", "True", "2", "3", "125"]


def test_the_extra_counts_as_tokenizers_does(with_exact: Path, tmp_path: Path) -> None:
    """C3: hard texts, a long s behind an apostrophe and names of special tokens among them, by the real package."""
    texts = [
        *hard_texts(4_000),
        *CHECKS,
        "I'\u017f'm <|think|>",
        *map("".join, itertools.product("xI1'\u017fm ", repeat=4)),
    ]
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    counts = json.loads(check_run(with_exact / "python", "-c", OFFLINE + COUNTED, cwd=tmp_path))
    expected = TokenizerCounter(o200k_tokenizer()).count_many(texts)
    assert [text for text, count, right in zip(texts, counts, expected, strict=True) if count != right] == []


def test_without_the_extra_its_name_says_what_to_install(bare: Path, tmp_path: Path) -> None:
    """What was asked for by name is not replaced by an estimate."""
    done = run(bare / "python", "-c", COUNTED, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ValueError: counter 'o200k_base' needs a package that has it: pip install \"chat-compaction[exact]\""
    )
