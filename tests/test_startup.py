"""What is loaded when: the root loads nothing, a name its module, and a format's name that format."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction import formats
from chat_compaction._loading import LazyMapping
from chat_compaction.formats import FORMATS, OpenAIChatFormat

# What a program may do without, and what of the standard library takes long to load.
HEAVY = {"attr", "attrs", "click", "hypothesis", "rich", "structlog", "tokenizers"}
HEAVY |= {"asyncio", "dataclasses", "decimal", "email", "importlib.metadata", "inspect", "json", "logging", "pathlib"}

LOADED = """
import sys
before = set(sys.modules)
{work}
print(sorted(set(sys.modules) - before))
"""


def loaded_by(work: str) -> set[str]:
    """The modules that some work loads in a fresh interpreter."""
    return set(ast.literal_eval(output_of(LOADED.format(work=work))))


def output_of(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def ours(modules: set[str]) -> set[str]:
    return {name.removeprefix("chat_compaction.") for name in modules if name.startswith("chat_compaction")}


# -- the root --------------------------------------------------------------------------------------


def test_the_root_loads_nothing() -> None:
    """Importing the package costs what one small module costs: no attrs, no tokenizers, none of our own modules."""
    loaded = loaded_by("import chat_compaction")
    assert ours(loaded) == {"chat_compaction", "_loading"}
    assert loaded.isdisjoint(HEAVY)
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"chat_compaction"}


def test_a_name_loads_what_it_needs_and_attrs() -> None:
    """No structlog, tokenizers, rich or hypothesis; nor what a predicate has no use for."""
    loaded = loaded_by("import chat_compaction as cc; cc.tokens > 8_000")
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"attr", "attrs", "chat_compaction"}
    assert ours(loaded) == {"chat_compaction", "_loading", "_predicates", "_validators"}


def imported(module: Any) -> dict[str, set[str]]:
    """The names that a package imports for the type checker only, by the module that they come from."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {node.module or "": {alias.name for alias in node.names} for node in imports}


def test_what_the_type_checker_sees_is_what_there_is() -> None:
    """The root lists its names for both, and each one is where it says."""
    found = imported(cc)
    assert found.pop("") == set(cc._MODULES)
    assert found == {home: set(names) for home, names in cc._HOMES.items()}
    assert sorted([*cc._MODULES, *(name for names in found.values() for name in names)]) == cc.__all__
    assert all(
        getattr(cc, name) is getattr(sys.modules[f"chat_compaction.{home}"], name)
        for home in found
        for name in found[home]
    )


def test_what_the_type_checker_sees_of_the_formats_is_what_there_is() -> None:
    """The same of the formats."""
    found = imported(formats)
    assert found.pop("_sessions") == {"Session", "read_session"}
    assert found == {name: {type(format).__name__} for name, format in FORMATS.items()}
    assert all(getattr(formats, name).__name__ == name for names in found.values() for name in names)
    assert set(formats.__all__) <= set(dir(formats))


def test_a_star_import_and_dir_know_every_name() -> None:
    """Also while nothing is loaded yet."""
    program = """
import chat_compaction as cc
names = dir(cc)
from chat_compaction import *
print(set(cc.__all__) <= set(names), "__version__" in names, set(cc.__all__) <= set(globals()))
"""
    assert output_of(program) == "True True True"


@pytest.mark.parametrize("package", ["chat_compaction", "chat_compaction.formats"])
def test_no_other_name_is_made_up(package: str) -> None:
    """An unknown name is the error that any module gives."""
    program = f"""
import {package} as package
try:
    package.nothing
except AttributeError as error:
    print(error)
"""
    assert output_of(program) == f"module {package!r} has no attribute 'nothing'"


def test_the_modules_of_the_root_are_attributes() -> None:
    """``cc.testing`` needs no import of its own."""
    program = f"""
import chat_compaction as cc
print([getattr(cc, name).__name__ for name in {cc._MODULES!r}])
"""
    assert output_of(program) == repr([f"chat_compaction.{name}" for name in cc._MODULES])


def test_what_a_user_meets_names_the_public_path() -> None:
    """A report, its parts and an error are of ``chat_compaction``, though nobody named their classes."""
    program = """
import chat_compaction as cc
strategy = cc.TruncationStrategy(trigger=cc.groups > 2, min_preserved_groups=1)
reducer = cc.as_chat_reducer(strategy, counter=len, hooks=())
messages, report = reducer.reduce_with_report([{"role": "user", "content": "Hello."}] * 9)
try:
    reducer([{"role": "nobody"}])
except ValueError as error:
    print({type(value).__module__ for value in (reducer, report, report.excluded[0], error)})
"""
    assert output_of(program) == "{'chat_compaction'}"


def test_threads_may_race_for_a_name() -> None:
    """Each gets the same thing, whoever comes first."""
    program = """
import sys, threading
import chat_compaction as cc
sys.setswitchinterval(1e-5)
found, start = [], threading.Barrier(8)

def work(names):
    start.wait()
    found.append({name: getattr(cc, name) for name in names})

threads = [threading.Thread(target=work, args=(cc.__all__[::step],)) for step in (1, -1) * 4]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), all(each[name] is getattr(cc, name) for each in found for name in cc.__all__))
"""
    assert output_of(program) == "8 True"


VALUES = [
    cc.TokenBudgetStrategy(8_000, target_tokens=4_000),
    cc.TruncationStrategy(trigger=(cc.tokens > 8_000) | ~(cc.turns < 40)),
    cc.tokens > 8_000,
    cc.GroupKind.USER,
    cc.Problem(3, "a_rule", "is broken"),
    cc.MediaCosts(image=7),
    cc.EstimateCounter(),
    OpenAIChatFormat(),
]
UNPICKLED = """
import pickle, sys
print(repr(pickle.loads(bytes.fromhex(sys.argv[1]))))
"""


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_can_be_sent_to_another_process(value: Any) -> None:
    """Pickles name the public path, which loads what it needs in a process that has loaded nothing."""
    assert output_of(UNPICKLED, pickle.dumps(value).hex()) == repr(value)


# -- the formats -----------------------------------------------------------------------------------


def test_a_format_loads_when_it_is_asked_for() -> None:
    """By name or by class; looking at the names loads none."""
    asked = "from chat_compaction.formats import FORMATS; list(FORMATS), 'gemini' in FORMATS, len(FORMATS)"
    assert not ours(loaded_by(asked)) & {f"formats.{name}" for name in FORMATS}
    for way in ("FORMATS; FORMATS['sharegpt']", "resolve_format; resolve_format('sharegpt')", "ShareGPTFormat"):
        loaded = ours(loaded_by(f"from chat_compaction.formats import {way}"))
        assert loaded & {f"formats.{name}" for name in FORMATS} == {"formats.sharegpt"}


def test_the_formats_are_a_mapping_by_name() -> None:
    """In the order in which detection asks them; each is made once."""
    assert list(FORMATS)[:1] == ["langchain"]
    assert [format.name for format in FORMATS.values()] == list(FORMATS)
    assert len(FORMATS) == len(set(FORMATS)) == 10
    assert FORMATS["gemini"] is FORMATS["gemini"]
    assert dict(FORMATS) == FORMATS
    assert "carrier_pigeon" not in FORMATS
    assert FORMATS.get("carrier_pigeon") is None
    with pytest.raises(KeyError, match="carrier_pigeon"):
        FORMATS["carrier_pigeon"]
    assert repr(FORMATS).startswith("<langchain, ")


def test_a_value_is_made_once() -> None:
    """Of a lazy mapping, when it is asked for; a failure to make it is no missing key."""
    made: list[str] = []

    def make(name: str) -> str:
        if name == "bad":
            raise ImportError(name)
        made.append(name)
        return name.upper()

    mapping = LazyMapping(("one", "two", "bad"), make)
    assert ("two" in mapping, made) == (True, [])
    assert (mapping["two"], mapping["two"], made) == ("TWO", "TWO", ["two"])
    with pytest.raises(ImportError):
        mapping.get("bad")


REDUCED = """
import chat_compaction as cc
reducer = cc.as_chat_reducer(cc.TokenBudgetStrategy(20), counter=len, format="openai_chat")
assert len(reducer([{"role": "user", "content": f"question {i}"} for i in range(10)])) < 10
"""


def test_a_first_call_loads_what_it_needs() -> None:
    """With the format named: no other format, no session files, no data of media, nothing for tests, no logging."""
    loaded = loaded_by(REDUCED)
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"attr", "attrs", "chat_compaction"}
    assert loaded.isdisjoint({"asyncio", "decimal", "email", "importlib.metadata", "logging"})
    assert ours(loaded) & {f"formats.{name}" for name in FORMATS} == {"formats.openai_chat"}
    assert not {name for name in ours(loaded) if name.startswith(("formats._sessions", "formats._media._", "testing"))}


# -- the command -----------------------------------------------------------------------------------

VERSION = """
import sys
sys.argv = ["chat-compaction", "--version"]
from chat_compaction.cli import main
try:
    main()
except SystemExit:
    pass
"""


def test_the_version_of_the_command_loads_click_and_no_command() -> None:
    """``chat-compaction --version`` says it and needs nothing else: no rich, no attrs."""
    loaded = loaded_by(VERSION)
    assert ours(loaded) == {"chat_compaction", "_errors", "_loading", "_text", "cli", "cli._app", "cli._click"}
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"chat_compaction", "click"}


def test_a_command_loads_by_its_name() -> None:
    """And no other does."""
    loaded = ours(loaded_by(VERSION.replace("--version", "inspect").replace('inspect"', 'inspect", "--help"')))
    assert {"cli._inspect", "cli._compact", "cli._check"} & loaded == {"cli._inspect"}
