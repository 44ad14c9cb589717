"""Configuration files: TOML, YAML and JSON say the same, and what is wrong with a file names it and the place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import chat_compaction as cc
from chat_compaction.config import ConfigError, dump_config, dumps_config, load_config, loads_config, to_config
from chat_compaction.config._registry import STRATEGIES, SUMMARIZERS
from chat_compaction.strategies.pipeline import PipelineStrategy
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.strategies.tool_result import ToolResultStrategy
from chat_compaction.summarizers import EndpointSummarizer
from tests._shared import ROOT

FORMATS = ["toml", "yaml", "json"]
SAME = {
    "toml": """
strategy = "pipeline"
[[stages]]
strategy = "tool_result"
trigger = "tokens > 8_000"
only_tools = ["read_*"]

[[stages]]
strategy = "summarization"
trigger = "tokens > 12000"
summarizer = { kind = "endpoint", base_url = "http://localhost:8080/v1", model = "small" }
""",
    "yaml": """
strategy: pipeline
stages:
- strategy: tool_result
  trigger: tokens > 8_000
  only_tools: ["read_*"]
- strategy: summarization
  trigger: tokens > 12000
  summarizer:
    kind: endpoint
    base_url: http://localhost:8080/v1
    model: small
""",
    "json": """
{"strategy": "pipeline", "stages": [
  {"strategy": "tool_result", "trigger": "tokens > 8_000", "only_tools": ["read_*"]},
  {"strategy": "summarization", "trigger": "tokens > 12000",
   "summarizer": {"kind": "endpoint", "base_url": "http://localhost:8080/v1", "model": "small"}}
]}
""",
}
STRATEGY = PipelineStrategy(
    ToolResultStrategy(trigger=cc.tokens > 8_000, only_tools=["read_*"]),
    SummarizationStrategy(EndpointSummarizer("http://localhost:8080/v1", "small"), trigger=cc.tokens > 12_000),
)


def fault(text: str, format: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loads_config(text, format)
    return str(caught.value)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_says_the_same(format: Any, tmp_path: Path) -> None:
    """As text and as a file, in and out."""
    assert loads_config(SAME[format], format) == STRATEGY
    assert loads_config(dumps_config(STRATEGY, format), format) == STRATEGY
    path = tmp_path / f"compaction.{format}"
    dump_config(STRATEGY, path)
    assert load_config(path) == load_config(str(path)) == STRATEGY
    assert path.read_text(encoding="utf-8") == dumps_config(STRATEGY, format)
    dump_config(STRATEGY, tmp_path / "compaction.conf", format=format)
    assert load_config(tmp_path / "compaction.conf", format=format) == STRATEGY


def test_what_is_written_is_what_others_read() -> None:
    """The texts are of their formats, as any other program reads them, and hold what ``to_config`` says."""
    data = to_config(STRATEGY)
    assert tomllib.loads(dumps_config(STRATEGY, "toml")) == data
    assert yaml.safe_load(dumps_config(STRATEGY, "yaml")) == data
    assert json.loads(dumps_config(STRATEGY, "json")) == data


def test_toml_is_written_as_people_write_it() -> None:
    """Stages and what is in them are tables of their own."""
    assert dumps_config(STRATEGY, "toml") == (
        'strategy = "pipeline"\n\n'
        '[[stages]]\nstrategy = "tool_result"\ntrigger = "tokens > 8000"\nonly_tools = ["read_*"]\n\n'
        '[[stages]]\nstrategy = "summarization"\ntrigger = "tokens > 12000"\n\n'
        '[stages.summarizer]\nkind = "endpoint"\nbase_url = "http://localhost:8080/v1"\nmodel = "small"\n'
    )


@pytest.mark.parametrize("format", FORMATS)
def test_texts_of_any_script_come_back(format: Any) -> None:
    """Line breaks, quotes, characters that are no letters."""
    hard = "ä\n'\"\\ \t\u2028\u00a0{kind} # : - \x7f \U0001f600 ${HOME} %s"
    summarizer = EndpointSummarizer("http://localhost/v1", hard)
    strategy = SummarizationStrategy(summarizer, trigger=cc.turns > 4, must_keep=[hard, "no", "1", "null", "~"])
    assert loads_config(dumps_config(strategy, format), format) == strategy


def test_the_environment_is_never_read_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """``${HOME}`` is a text like any other."""
    monkeypatch.setenv("MODEL", "big")
    config = {"kind": "endpoint", "base_url": "http://localhost/v1", "model": "${MODEL}"}
    text = json.dumps({"strategy": "summarization", "trigger": "turns > 4", "summarizer": config})
    made = loads_config(text, "json")
    assert isinstance(made, SummarizationStrategy)
    assert isinstance(made.summarizer, EndpointSummarizer)
    assert made.summarizer.model == "${MODEL}"


# -- what is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_fault_names_the_file_and_the_path(format: Any, tmp_path: Path) -> None:
    path = tmp_path / f"compaction.{format}"
    path.write_text(SAME[format].replace("tokens > 12000", "tokens > 12k"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: stages[1].trigger: cannot read the predicate 'tokens > 12k': ")
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("toml", "a = = 1", "broken TOML: Invalid value (at line 1, column 5)"),
        ("toml", "a = 1\na = 2", "broken TOML: Cannot overwrite a value"),
        ("json", '{"a": 1,}', "broken JSON: "),
        ("json", "", "broken JSON: Expecting value: line 1 column 1 (char 0)"),
        ("json", '{"a": 1, "a": 2}', "broken JSON: the key 'a' stands twice in a table"),
        ("json", '{"b": [{"a": 1, "a": 2}]}', "broken JSON: the key 'a' stands twice in a table"),
        ("yaml", "a: [1", "broken YAML: expected ',' or ']', but got '<stream end>' (at line 1, column 6)"),
        ("yaml", "b:\n- a: 1\n  a: 2", "broken YAML: the key 'a' stands twice in a table"),
        ("yaml", "a: \x01", "broken YAML: "),
        ("yaml", "a: 1\n---\na: 2", "broken YAML: "),
        ("yaml", "", "expected a table with the key 'strategy', got null"),
        ("yaml", "just words", "expected a table with the key 'strategy', got \"just words\""),
        ("yaml", "strategy: truncation\ntrigger: 2026-11-30", "trigger: expected a predicate such as"),
        ("toml", "[strategy]", "strategy: expected a text, got {}"),
    ],
)
def test_what_is_no_file_of_its_format_is_a_fault(format: Any, text: str, expected: str) -> None:
    assert fault(text, format).startswith(expected)


def test_yaml_makes_no_objects() -> None:
    """A tag that would run code is a fault."""
    text = "strategy: !!python/object/apply:os.system [exit 1]"
    assert "could not determine a constructor for the tag" in fault(text, "yaml")


LAUGHS = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("yaml", "a: &a [*a]"),
        ("yaml", LAUGHS),
        ("json", "[" * 100_000),
        ("json", "[" + "1," * 200_000 + "1]"),
        ("toml", "a = " + "[" * 100_000),
    ],
    ids=["itself", "laughs", "deep", "long", "deep toml"],
)
def test_what_is_too_much_is_a_fault(format: Any, text: str) -> None:
    """A few lines must not take all memory, nor the stack."""
    assert fault(text, format).endswith(("nested too deeply", "more than 100,000 values"))


def test_a_file_may_begin_with_a_byte_order_mark_and_must_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "compaction.yml"
    path.write_text(SAME["yaml"], encoding="utf-8-sig")
    assert load_config(path) == STRATEGY
    path.write_bytes(b"strategy: \xff")
    with pytest.raises(ConfigError, match=r"compaction.yml: not UTF-8: invalid start byte at byte 10$"):
        load_config(path)


def test_the_ending_says_the_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^path must end with .toml, .yaml, .yml or .json, got 'compaction.ini'"):
        load_config("compaction.ini")
    with pytest.raises(ValueError, match=r"^path must end with"):
        dump_config(STRATEGY, tmp_path / "compaction")
    unknown: Any = "ini"
    for call in (load_config, loads_config):
        with pytest.raises(ValueError, match=r"^format must be one of 'toml', 'yaml', 'json', got 'ini'"):
            call("x", format=unknown)
    with pytest.raises(ValueError, match=r"^format must be one of 'toml', 'yaml', 'json', got 'ini'"):
        dumps_config(STRATEGY, unknown)
    with pytest.raises(FileNotFoundError):
        load_config(tmp_path / "none.toml")


def test_toml_has_no_null() -> None:
    """What it cannot say is told with its path; JSON and YAML can."""
    options = {"stop": [None]}
    strategy = SummarizationStrategy(
        EndpointSummarizer("http://localhost/v1", "m", options=options), trigger=cc.turns > 4
    )
    with pytest.raises(ConfigError, match=r"^summarizer.options.stop\[0\]: is null, which TOML has no word for$"):
        dumps_config(strategy, "toml")
    assert loads_config(dumps_config(strategy, "json"), "json") == strategy
    assert loads_config(dumps_config(strategy, "yaml"), "yaml") == strategy


def test_a_file_that_cannot_be_written_as_configuration_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "compaction.toml"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(ConfigError):
        dump_config(cc.ReducerStrategy(lambda messages: messages, cc.turns > 4), path)
    assert path.read_text(encoding="utf-8") == "before"


def test_a_format_is_loaded_when_it_is_needed() -> None:
    """Reading TOML needs neither PyYAML nor what writes TOML, and no strategy but the one that is named."""
    program = """
import sys
from chat_compaction.config import loads_config
loads_config('strategy = "truncation"\\ntrigger = "turns > 4"', "toml")
print([name for name in ("yaml", "tomlkit", "openai", "fsspec") if name in sys.modules])
print("chat_compaction.strategies.truncation" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "[]"


def test_the_page_has_every_name() -> None:
    """Each strategy has a row, and each kind stands in the table below."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| \[`(\w+)`\]", page, re.MULTILINE)
    assert rows == [(name, home.rpartition(":")[2]) for name, home in sorted(STRATEGIES.ours.items())]
    (kinds,) = re.findall(r"^\| a summariser.*\| a table with `kind`: (.*) \|$", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", kinds)) == set(SUMMARIZERS.ours)


def test_the_example_is_a_configuration() -> None:
    """The file that the docs show."""
    strategy = load_config(ROOT / "examples" / "compaction.toml")
    assert type(strategy) is PipelineStrategy
    assert loads_config(dumps_config(strategy, "yaml"), "yaml") == strategy
