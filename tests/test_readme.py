"""README.md: its examples run as shown, its first screen says how to start, and its strategy may be any class."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from tests._examples import NOT_RUN, RUN, Page, languages, terminal
from tests._shared import ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
STRATEGY = next(block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "class " in block)
CLASS = STRATEGY[: STRATEGY.index("\n\n\n")]

# The class of the README as it stands, and with the two decorators that people put on a class.
FIELDS = "\n    trigger: cc.Predicate\n    target: cc.Predicate | None = None\n\n    def compact_core"
VARIANTS = {
    "plain class": CLASS,
    "attrs class": f"import attrs\n@attrs.frozen\n{CLASS}",
    "dataclass": "import dataclasses\n@dataclasses.dataclass(frozen=True)\n"
    + CLASS.replace("\n    def compact_core", FIELDS, 1),
}


def test_every_example_prints_what_is_shown(tmp_path: Path) -> None:
    """Python blocks and commands run in order, and their output is the one on the page."""
    with terminal(tmp_path / "terminal"):
        assert Page(README).run() > 0
    assert languages(README) <= RUN | NOT_RUN


def test_the_first_screen() -> None:
    """Within forty lines: what it is, the two commands, and an example of at most ten lines of code with its output."""
    screen = "\n".join(TEXT.splitlines()[:40])
    sentence = TEXT.split("\n\n")[1]
    assert sentence.count(".") == 1
    assert "make demo" in screen
    assert "make test" in screen
    example = re.search(r"```python\n(.*?)```\n\n```text\n.*?```", screen, re.DOTALL)
    assert example is not None
    assert len([line for line in example[1].splitlines() if line]) <= 10


def test_the_two_commands_exist() -> None:
    """``make demo`` and ``make test`` are targets of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test", "docs"} <= set(re.findall(r"^(\w+):", makefile, re.MULTILINE))


def test_its_links_lead_somewhere() -> None:
    """Each relative link is a file of the repository, and each anchor a heading in it."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", TEXT)
    assert links
    for path, anchor in links:
        page = (ROOT / path).read_text(encoding="utf-8")
        headings = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.+)$", page, re.M)}
        assert not anchor or anchor in headings


@pytest.mark.parametrize("source", VARIANTS.values(), ids=VARIANTS)
def test_its_strategy_may_be_any_class(source: str) -> None:
    """A user's strategy works in ``as_chat_reducer`` like ours, sync and async, whatever kind of class it is."""
    namespace: dict[str, Any] = {"cc": cc}
    exec(source, namespace)  # noqa: S102 - the README's own code
    strategy = namespace["BiggestToolCallsFirst"](trigger=cc.tokens > 8_000, target=cc.tokens <= 5_000)
    history = json.loads((ROOT / "examples" / "release-agent.json").read_text(encoding="utf-8"))
    reducer = cc.as_chat_reducer(strategy, hooks=())
    context, report = reducer.reduce_with_report(history)
    assert report.strategy == "BiggestToolCallsFirst"
    assert report.stopped_by == "target"
    assert {exclusion.kind for exclusion in report.excluded} == {cc.GroupKind.TOOL_CALL}
    assert len(context) < len(history)
    assert asyncio.run(reducer.areduce(history)) == context


def test_its_strategy_is_about_ten_lines() -> None:
    """One method, and not many lines."""
    assert len([line for line in STRATEGY.splitlines() if line]) <= 10
    assert STRATEGY.count("def ") == 1
