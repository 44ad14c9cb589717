"""The pages in docs/: every example runs and prints what is shown, and the reference pages leave nothing out."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import typing
from pathlib import Path
from types import ModuleType

import attrs
import pytest

import chat_compaction as cc
from chat_compaction import counters, formats, triggers
from chat_compaction.formats import FORMATS, Format, rules
from tests._examples import NOT_RUN, RUN, Page, languages, terminal
from tests._shared import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN_PAGES = [page for page in PAGES if languages(page) & RUN]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(cc.__path__, "chat_compaction.")
    if not module.name.endswith("__main__")
)
RULES = {rule.name: rule for name in rules.__all__ if issubclass(rule := getattr(rules, name), rules.Rule)}
del RULES[rules.Rule.name]  # The base.


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


def names_in(text: str) -> list[str]:
    """What stands in backticks, but for texts in quotes."""
    return re.findall(r"`(\w+)`", text)


@pytest.mark.parametrize("page", RUN_PAGES, ids=name_of)
def test_every_example_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    """Python blocks and commands of a page run in order, and their output is the one on the page."""
    with terminal(tmp_path / "terminal"):
        assert Page(page).run() > 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_escapes(page: Path) -> None:
    """A block in another language would be an example that nobody runs."""
    assert languages(page) <= RUN | NOT_RUN


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    """The examples in docstrings print what they show."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_errors_page_has_every_exception() -> None:
    """Each public exception has a section of its own on the errors page, and stands in the tree of ``_errors``."""
    names = {name for name in cc.__all__ if name.endswith("Error")}
    assert names == set(re.findall(r"^## (\w+Error)$", text_of("errors.md"), re.MULTILINE))
    tree = (importlib.import_module("chat_compaction._errors").__doc__ or "").partition("Wrong")[0]
    assert names == set(re.findall(r"\b(?!ValueError)[A-Z]\w+Error\b", tree))
    for name in names:
        assert issubclass(getattr(cc, name), cc.CompactionError)


def test_the_errors_page_says_which_are_value_errors() -> None:
    """The page counts the errors that are a ``ValueError`` too: the first seven of its table."""
    table = re.findall(r"^\| \[`(\w+)`\]", text_of("errors.md"), re.MULTILINE)
    assert [issubclass(getattr(cc, name), ValueError) for name in table] == [True] * 7 + [False] * 3


def test_the_report_page_has_every_field() -> None:
    """Each field of a report stands in the table of fields, and those of its parts on the page."""
    page = text_of("report.md")
    documented = {name for row in re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE) for name in row.split("`")[1::2]}
    assert {field.name for field in attrs.fields(cc.CompactionReport)} <= documented
    for part in (cc.Exclusion, cc.Blocker, cc.Problem, cc.Repair):
        assert all(f"`{field.name}`" in page for field in attrs.fields(part))


def test_the_report_page_has_every_rule_and_reason() -> None:
    """What is reported in every format, and every reason for which a group may not leave, is explained."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/chat_compaction").glob("_*.py"))
    own = set(re.findall(r'Problem\(\w+(?:\.\w+)?, "(\w+)"', source))
    everywhere = {rule.name for rule in Format.default_rules}
    constants = (node.value for node in ast.walk(ast.parse(_source("_floor"))) if isinstance(node, ast.Constant))
    reasons = {value for value in constants if isinstance(value, str) and value.isidentifier()}
    assert own == {"rejoined"}
    assert reasons >= {"pinned", "floor", "last_user"}
    page = text_of("report.md")
    assert {name for name in own | everywhere | reasons if f"| `{name}` |" not in page} == set()
    (held_back,) = re.findall(r"^\| (.*), or the name of a rule of yours \|", page, re.MULTILINE)
    seams = {name for name, rule in RULES.items() if _overrides(rule, "check_seam")}
    assert names_in(held_back) == sorted(seams)


def _overrides(rule: type[rules.Rule], method: str) -> bool:
    return getattr(rule, method) is not getattr(rules.Rule, method)


def _source(module: str) -> str:
    return inspect.getsource(importlib.import_module(f"chat_compaction.{module}"))


def test_the_api_page_has_every_public_name() -> None:
    """Each name of the package is on the API page; a module by its full name."""
    page = text_of("api.md")
    for name in cc.__all__:
        shown = f"`chat_compaction.{name}`" if inspect.ismodule(getattr(cc, name)) else name
        assert re.search(rf"(?<!\w){re.escape(shown)}(?!\w)", page), name


@pytest.mark.parametrize("module", [formats, rules], ids=lambda module: module.__name__)
def test_the_api_page_has_what_formats_are_made_of(module: ModuleType) -> None:
    """Each public name of these modules is on the API page, by its full path."""
    documented = set(re.findall(rf":: {re.escape(module.__name__)}\.(\w+)(?!\w|\.)", text_of("api.md")))
    values = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert documented == values


def test_the_reducer_page_has_every_argument() -> None:
    """Each argument of ``as_chat_reducer`` stands in the table, with its default."""
    parameters = [p for p in inspect.signature(cc.as_chat_reducer).parameters.values() if p.name != "strategy"]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text_of("reducer.md"), re.MULTILINE))
    assert rows == {p.name: repr(p.default).replace("'", '"') for p in parameters}


def test_the_triggers_page_has_every_metric_and_factory() -> None:
    """Each metric and each named factory is on the page."""
    page = text_of("triggers.md")
    for name in triggers.__all__:
        value = getattr(triggers, name)
        if isinstance(value, cc.Metric):
            assert f"| `cc.{name}` |" in page
        elif inspect.isfunction(value):
            assert f"{name}(" in page or f"`{name}`" in page, name


def test_the_counting_page_has_the_media_costs() -> None:
    """The table of flat costs is that of ``MediaCosts``."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", text_of("counting.md"), re.MULTILINE)
    assert {name: int(cost) for name, cost in rows} == attrs.asdict(counters.MediaCosts())


def test_the_formats_page_has_every_format() -> None:
    """The table of formats says of each its rules beside the pairs and its overhead, and links its page."""
    row = r"^\| \[`(\w+)`\]\(formats/\1\.md\) \|[^|]*\|([^|]*)\| (\d+) tokens \|"
    rows = re.findall(row, text_of("formats.md"), re.MULTILINE)
    pairs = {rule.name for rule in Format.default_rules}
    expected = {
        name: ([rule.name for rule in format.rules if rule.name not in pairs], format.overhead)
        for name, format in FORMATS.items()
    }
    assert {name: (names_in(beside), int(overhead)) for name, beside, overhead in rows} == expected
    assert all(pairs <= {rule.name for rule in format.rules} for format in FORMATS.values())


def test_the_formats_page_has_every_rule() -> None:
    """The table of rules says of each its class, whether it repairs, and which formats have it, with which setting."""
    rows = re.findall(
        r"^\| `(\w+)` \| `([A-Z]\w+)` \|[^|]+\| ([^|]+) \| ([^|]+) \|$", text_of("formats.md"), re.MULTILINE
    )
    for name, kind, repair, having in rows:
        assert RULES[name].__name__ == kind
        assert (repair == "nothing") is not _overrides(RULES[name], "repair"), name
        settings = {f.name: attrs.astuple(rule) for f in FORMATS.values() for rule in f.rules if rule.name == name}
        assert (set(FORMATS) if having == "all" else set(names_in(having))) == set(settings), name
        shown = dict(re.findall(r"`(\w+)` \((\w+)\)", having))
        assert shown == {format: str(*setting) for format, setting in settings.items() if setting}, name
    assert sorted(row[0] for row in rows) == sorted(RULES)


def test_every_format_has_a_page() -> None:
    """The page of a format is named after it, names all of its rules, and gives its overhead."""
    assert {path.stem for path in (DOCS / "formats").iterdir()} == set(FORMATS)
    for name, format in FORMATS.items():
        page = text_of(f"formats/{name}.md")
        assert page.startswith(f"# `{name}`")
        assert {rule.name for rule in format.rules} <= set(names_in(page)), name
        assert re.search(rf"\b{format.overhead} tokens\b", page), name


def test_the_strategies_page_has_every_way_to_evict_and_the_floor() -> None:
    """Each value of ``evict`` has a row, and each argument of the floor its defaults."""
    page = text_of("strategies.md")
    evict = typing.get_type_hints(cc.TokenBudgetStrategy.__init__)["evict"]
    assert set(re.findall(r'^\| `"([\w-]+)"` \|', page, re.MULTILINE)) == set(typing.get_args(evict))
    floor = page.partition("## What every strategy keeps")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", floor, re.MULTILINE))
    budget = {field.name: field.default for field in attrs.fields(cc.TokenBudgetStrategy)}
    for field in attrs.fields(cc.CompactionStrategy):
        if field.name not in ("trigger", "target"):
            numbers = re.findall(r"\d+|True|False", rows.pop(field.name))
            assert numbers == list(dict.fromkeys([repr(field.default), repr(budget[field.name])]))
    assert not rows


def test_the_rules_page_has_every_rule() -> None:
    """Each rule that a docstring, a test or a page cites by number has one row; none is listed twice."""
    rules = re.findall(r"^\| ([GCKS]\d+) \|", text_of("rules.md"), re.MULTILINE)
    cited = {
        rule
        for folder, pattern in (("src", "*.py"), ("tests", "*.py"), ("docs", "*.md"))
        for path in (ROOT / folder).rglob(pattern)
        for rule in re.findall(r"\b[GCKS]\d{1,2}\b", path.read_text(encoding="utf-8"))
    }
    assert len(rules) == len(set(rules))
    assert cited <= set(rules)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=name_of)
def test_no_page_says_left(page: Path) -> None:
    """The word means both what went and what stays: pages say "removed" and "kept" (the glossary's promise)."""
    ours = re.sub(r"^```(console|text)$.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r".*\bleft\b.*", ours) == []


def test_the_command_line_page_has_every_command() -> None:
    """Each command has a section with its help, which the run of the page compares with ``--help``."""
    from chat_compaction.cli._app import app

    page = text_of("cli.md")
    for name in ("", *app.commands):
        command = f"chat-compaction {name}".strip()
        assert f"## {command}\n\n```console\n$ {command} --help\n" in page
