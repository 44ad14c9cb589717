"""Configuration as plain data: what it says, what it refuses and where, and that nothing runs that nobody allowed."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._batch._canonical import canonical
from chat_compaction.config import ConfigError, ConfigFault, from_config, to_config
from chat_compaction.config._keys import _SETTINGS
from chat_compaction.config._registry import STRATEGIES, SUMMARIZERS
from chat_compaction.strategies.clip import ClipStrategy
from chat_compaction.strategies.function import FunctionStrategy, strategy
from chat_compaction.strategies.pipeline import FirstOf, PipelineStrategy
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.strategies.tool_result import ToolResultStrategy
from chat_compaction.summarizers import EndpointSummarizer, OpenAISummarizer

TRIGGER = cc.tokens > 8_000
TRUNCATION: dict[Any, Any] = {"strategy": "truncation", "trigger": "tokens > 8000"}


def faults(config: Any, *, allow_imports: bool = False) -> list[str]:
    """All that is wrong with a configuration, each with its path."""
    with pytest.raises(ConfigError) as caught:
        from_config(config, allow_imports=allow_imports)
    return [str(fault) for fault in caught.value.faults]


def fault(config: Any, *, allow_imports: bool = False) -> str:
    (one,) = faults(config, allow_imports=allow_imports)
    return one


def both_ways(made: cc.CompactionStrategy, config: dict[str, Any], *, allow_imports: bool = False) -> None:
    """The configuration gives the strategy, and the strategy the configuration."""
    assert from_config(config, allow_imports=allow_imports) == made
    assert to_config(made, allow_imports=allow_imports) == config


# -- what it says ------------------------------------------------------------------------------------


def test_only_what_is_not_at_its_default_is_written() -> None:
    """A configuration reads as somebody would have written it."""
    both_ways(cc.TruncationStrategy(trigger=TRIGGER), TRUNCATION)
    both_ways(
        cc.TruncationStrategy(trigger=TRIGGER, target=cc.tokens <= 4_000, keep_last_user=False),
        {**TRUNCATION, "target": "tokens <= 4000", "keep_last_user": False},
    )


def test_a_value_that_is_at_its_default_may_be_said() -> None:
    assert from_config({**TRUNCATION, "min_preserved_groups": 8}) == cc.TruncationStrategy(trigger=TRIGGER)


def test_predicates_are_texts() -> None:
    """What ``parse_predicate`` reads, and what ``repr`` prints."""
    trigger = (cc.tokens > 8_000) | ((cc.turns > 40) & (cc.tool_groups > 0))
    both_ways(
        cc.TruncationStrategy(trigger=trigger),
        {"strategy": "truncation", "trigger": "(tokens > 8000) | ((turns > 40) & (tool_groups > 0))"},
    )
    config = {"strategy": "truncation", "trigger": "fraction_of_window(0.5, window=16000) or turns > 40"}
    assert from_config(config).trigger == (cc.tokens > 8_000) | (cc.turns > 40)


def test_arguments_have_the_names_that_the_constructor_has() -> None:
    """Not those of the attributes: ``evict`` is the argument."""
    both_ways(
        cc.TokenBudgetStrategy(8_000, target_tokens=4_000, evict="groups"),
        {"strategy": "token_budget", "max_tokens": 8000, "target_tokens": 4000, "evict": "groups"},
    )


def test_strategies_stand_in_strategies() -> None:
    """A pipeline is its stages, whatever these are made of."""
    clear = ToolResultStrategy(trigger=TRIGGER, only_tools=["read_*", "search"], clear_tool_inputs=["write"])
    budget = cc.TokenBudgetStrategy(8_000)
    both_ways(
        PipelineStrategy(clear, FirstOf(budget, cc.TruncationStrategy(trigger=TRIGGER)), trigger=cc.turns > 3),
        {
            "strategy": "pipeline",
            "stages": [
                {
                    "strategy": "tool_result",
                    "trigger": "tokens > 8000",
                    "only_tools": ["read_*", "search"],
                    "clear_tool_inputs": ["write"],
                },
                {"strategy": "first_of", "stages": [{"strategy": "token_budget", "max_tokens": 8000}, TRUNCATION]},
            ],
            "trigger": "turns > 3",
        },
    )


def test_a_summarizer_is_a_table_with_its_kind() -> None:
    """And it names the variable that holds the key, never the key."""
    summarizer = EndpointSummarizer("https://api.example.com/v1", "small", api_key_env="EXAMPLE_KEY", timeout=30)
    both_ways(
        SummarizationStrategy(
            summarizer, trigger=TRIGGER, must_keep=["TICKET-7", re.compile(r"\bE\d+", re.IGNORECASE)]
        ),
        {
            "strategy": "summarization",
            "summarizer": {
                "kind": "endpoint",
                "base_url": "https://api.example.com/v1",
                "model": "small",
                "api_key_env": "EXAMPLE_KEY",
                "timeout": 30,
            },
            "trigger": "tokens > 8000",
            "must_keep": ["TICKET-7", {"pattern": r"\bE\d+", "flags": ["IGNORECASE"]}],
        },
    )


def test_options_of_a_request_are_handed_on_as_they_are() -> None:
    """No table in them has a meaning here, whatever its keys are."""
    options = {"thinking": {"kind": "enabled", "strategy": "clip", "pattern": [1, 2.5, None, True]}, "seed": 7}
    summarizer = EndpointSummarizer("https://api.example.com/v1", "small", options=options)
    config = to_config(SummarizationStrategy(summarizer, trigger=TRIGGER))
    assert config["summarizer"]["options"] == options
    made = from_config(config)
    assert isinstance(made, SummarizationStrategy)
    assert made.summarizer == summarizer


def test_a_client_of_an_sdk_is_made_by_the_sdk_when_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment of the SDK; until then nothing is needed, and the strategy is a value like any other."""
    config = {
        "strategy": "summarization",
        "summarizer": {"kind": "openai", "model": "small"},
        "trigger": "tokens > 8000",
    }
    made = from_config(config)
    assert to_config(made) == config
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301
    assert canonical(made) == canonical(from_config(config))
    assert isinstance(made, SummarizationStrategy)
    assert isinstance(made.summarizer, OpenAISummarizer)
    asked: list[dict[str, Any]] = []
    client = types.SimpleNamespace(
        chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=lambda **request: asked.append(request)))
    )
    monkeypatch.setattr("openai.OpenAI", lambda: client)
    made.summarizer.client.chat.completions.create(model="small")
    assert asked == [{"model": "small"}]
    assert not hasattr(made.summarizer.client, "__fspath__")
    assert not hasattr(made.summarizer.client.chat, "__fspath__")


def test_false_stands_for_none_where_an_argument_may_be_none() -> None:
    """TOML has no null."""
    from chat_compaction.offload import OffloadStore
    from chat_compaction.strategies.offload import OffloadStrategy

    both_ways(
        OffloadStrategy(OffloadStore("memory://config"), trigger=TRIGGER, recall_tool=None),
        {"strategy": "offload", "store": {"url": "memory://config"}, "trigger": "tokens > 8000", "recall_tool": False},
    )
    assert from_config({**TRUNCATION, "target": None}) == from_config({**TRUNCATION, "target": False})


def test_a_sequence_may_be_given_for_a_list() -> None:
    assert from_config({"strategy": "clip", "trigger": "tokens > 8000", "kinds": ("user",)}) == ClipStrategy(
        trigger=TRIGGER, kinds=["user"]
    )


def test_every_name_of_ours_is_there() -> None:
    """Each stands for the class of that name, and every strategy that we ship has one."""
    for name in STRATEGIES.ours:
        cls = STRATEGIES.load(name)
        assert issubclass(cls, cc.CompactionStrategy)
        assert STRATEGIES.name_of(cls) == name
        assert re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Strategy")).lower() == name
    exported = {getattr(cc, name) for name in cc.__all__ if name.endswith("Strategy") or name == "FirstOf"}
    exported.discard(cc.CompactionStrategy)
    assert exported <= {STRATEGIES.load(name) for name in STRATEGIES.ours}
    for name in SUMMARIZERS.ours:
        assert SUMMARIZERS.name_of(SUMMARIZERS.load(name)) == name


# -- what is wrong with it ---------------------------------------------------------------------------


def test_every_fault_is_told_with_its_path() -> None:
    """All at once, so that one run of an editor mends them."""
    config = {
        "strategy": "pipeline",
        "stages": [
            {"strategy": "tool_results", "trigger": "tokens > 8000"},
            {"strategy": "truncation", "trigger": "tokens > 8k", "min_preserved_group": 4},
            {"strategy": "token_budget", "max_tokens": "8000"},
            {"trigger": "tokens > 8000"},
            {"strategy": "clip", "trigger": "tokens > 1", "kinds": ["user", "assistent", 3]},
            "truncation",
        ],
        "keep_last_user": "yes",
    }
    found = faults(config)
    assert found.pop(6).startswith("stages[4].kinds[2]: expected one of 'tool_result', ")
    assert found == [
        "stages[0].strategy: there is no strategy 'tool_results'; did you mean 'tool_result'?",
        "stages[1].trigger: cannot read the predicate 'tokens > 8k': expected '&', '|' or the end, found 'k' at "
        "character 11; expected something like 'tokens > 8000 | turns > 40'",
        "stages[1].min_preserved_group: unknown key; did you mean 'min_preserved_groups'?",
        'stages[2].max_tokens: expected a whole number, got "8000"',
        f"stages[3].strategy: is missing: the name of a strategy; expected one of {', '.join(map(repr, _names()))}",
        "stages[4].kinds[1]: there is no 'assistent' here; did you mean 'assistant'?",
        "stages[5]: expected a table with the key 'strategy', got \"truncation\"",
        'keep_last_user: expected true or false, got "yes"',
    ]


def _names() -> list[str]:
    return sorted(STRATEGIES.names())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "expected a table with the key 'strategy', got null"),
        ([TRUNCATION], "expected a table with the key 'strategy', got [{\"strategy\""),
        ({"strategy": 7}, "strategy: expected a text, got 7"),
        ({"strategy": "truncation"}, "trigger: is missing"),
        ({**TRUNCATION, "trigger": 8000}, "trigger: expected a predicate such as 'tokens > 8000', got 8000"),
        ({**TRUNCATION, "trigger": None}, "trigger: expected a predicate such as 'tokens > 8000', got null"),
        ({**TRUNCATION, "min_preserved_groups": True}, "min_preserved_groups: expected a whole number, got true"),
        ({**TRUNCATION, "min_preserved_groups": 2.0}, "min_preserved_groups: expected a whole number, got 2.0"),
        ({**TRUNCATION, "min_preserved_groups": -1}, "min_preserved_groups: must be an int of 0 or more, got -1"),
        ({**TRUNCATION, "keep_last_user": 1}, "keep_last_user: expected true or false, got 1"),
        ({**TRUNCATION, 3: 1}, "3: unknown key; expected one of "),
        ({**TRUNCATION, "a b": 1}, '"a b": unknown key; expected one of '),
        ({**TRUNCATION, "target": "tokens <= 9000"}, "target: must"),
        (
            {"strategy": "token_budget", "max_tokens": 5, "target_tokens": 6},
            "target_tokens: must be at most max_tokens",
        ),
        ({"strategy": "token_budget", "max_tokens": 5, "evict": 3}, "evict: expected one of 'turns-then-groups', "),
        ({"strategy": "pipeline"}, "stages: must"),
        (
            {"strategy": "pipeline", "stages": {"clear": TRUNCATION}},
            'stages: expected a list of tables, such as [[stages]] in TOML, got {"clear": {',
        ),
        (
            {"strategy": "ToolResultStrategy"},
            "strategy: there is no strategy 'ToolResultStrategy'; did you mean 'tool_result'?",
        ),
        ({"strategy": "cc.FirstOf"}, "strategy: there is no strategy 'cc.FirstOf'; did you mean 'first_of'?"),
        ({"strategy": "clip", "trigger": "tokens > 1", "head_share": "half"}, "head_share: expected a number, got "),
        (
            {"strategy": "tool_result", "trigger": "tokens > 1", "clear_tool_inputs": 3},
            "clear_tool_inputs: expected true or false or a list, got 3",
        ),
        (
            {"strategy": "tool_result", "trigger": "tokens > 1", "only_tools": ["a", 3]},
            "only_tools[1]: expected a text, got 3",
        ),
        (
            {"strategy": "offload", "trigger": "tokens > 1", "store": {"url": "memory://x"}, "preview": [1]},
            "preview: expected a list of 2, got [1]",
        ),
        (
            {"strategy": "offload", "trigger": "tokens > 1", "store": {"max_bytes": 7}},
            "store.url: is missing",
        ),
        (
            {"strategy": "offload", "trigger": "tokens > 1", "store": "offloaded"},
            'store: expected a table such as { url = ... }, got "offloaded"',
        ),
        ({**TRUNCATION, "must_keep": ["x"]}, "must_keep: unknown key; expected one of "),
        ({"strategy": "clip", "trigger": "tokens > 1", "must_keep": 3}, "must_keep: expected a list, got 3"),
        ({"strategy": "clip", "trigger": "tokens > 1", "must_keep": ""}, "must_keep: must hold no empty text"),
        (
            {"strategy": "clip", "trigger": "tokens > 1", "must_keep": {"pattern": "("}},
            "must_keep.pattern: cannot read the pattern '(': ",
        ),
        (
            {"strategy": "summarization", "trigger": "tokens > 1", "summarizer": "endpoint"},
            "summarizer: expected a table with the key 'kind', got \"endpoint\"",
        ),
        (
            {"strategy": "summarization", "trigger": "tokens > 1", "summarizer": {"kind": "openia", "model": "m"}},
            "summarizer.kind: there is no kind 'openia'; did you mean 'openai'?",
        ),
        (
            {"strategy": "summarization", "trigger": "tokens > 1", "summarizer": {"kind": "OpenAISummarizer"}},
            "summarizer.kind: there is no kind 'OpenAISummarizer'; did you mean 'openai'?",
        ),
        (
            {
                "strategy": "summarization",
                "trigger": "tokens > 1",
                "summarizer": {"kind": "endpoint", "model": "m", "base_url": "https://a.example/v1/chat/completions"},
            },
            "summarizer.base_url: must be what stands ahead of /chat/completions, got ",
        ),
        (
            {"strategy": "summarization", "trigger": "tokens > 1", "summarizer": {"kind": "openai"}},
            "summarizer.model: is missing",
        ),
        (
            {
                "strategy": "summarization",
                "trigger": "tokens > 1",
                "summarizer": {"kind": "openai", "model": "m"},
                "must_keep": [{"pattern": "("}],
            },
            "must_keep[0].pattern: cannot read the pattern '(': ",
        ),
    ],
)
def test_a_fault_names_the_value_and_what_was_expected(config: Any, expected: str) -> None:
    assert fault(config).startswith(expected)


def test_what_belongs_to_a_stage_is_told_where() -> None:
    """The stage that takes it, the first that lacks it if there are several."""
    summarization, budget = {"strategy": "summarization", "trigger": "turns > 4"}, {"strategy": "token_budget"}
    summarizer = {"kind": "extractive"}
    config: dict[str, Any] = {"strategy": "pipeline", "stages": [budget, summarization], "summarizer": summarizer}
    where = "summarizer: unknown key here; it belongs to stages[1], in TOML as [stages.summarizer] right below it"
    assert faults(config) == [
        "stages[0].max_tokens: is missing",
        "stages[1].summarizer: is missing",
        where,
    ]
    config["stages"] = [{**summarization, "summarizer": summarizer}, summarization, "clip"]
    assert where in faults(config)
    config["stages"] = [{**summarization, "summarizer": summarizer}]
    assert fault(config) == where.replace("stages[1]", "stages[0]")
    config = {"strategy": "first_of", "stages": [budget], "max_tokens": 8000}
    assert faults(config)[1] == "max_tokens: unknown key here; it belongs to stages[0]"
    wrong: list[Any] = [[{"strategy": 3}], [{"strategy": "none"}], [[]], "clip", None]
    for stages in wrong:
        assert "summarizer: unknown key; expected one of " in "".join(
            faults({"strategy": "pipeline", "stages": stages, "summarizer": summarizer})
        )


def test_what_a_reducer_takes_is_no_argument_of_a_strategy() -> None:
    """Each such name is told from a slip of the pen, with the option of the command if there is one."""
    given = set(inspect.signature(cc.as_chat_reducer).parameters) - {"strategy"}
    assert given == _SETTINGS.keys()
    from chat_compaction.cli._compact import compact

    options = {option for parameter in compact.params for option in parameter.opts}
    assert options >= {option for option in _SETTINGS.values() if option}
    said = {one.partition(":")[0]: one for one in faults({**TRUNCATION, **dict.fromkeys(given, 1)})}
    assert said.keys() == given
    assert said["reserved"] == (
        "reserved: unknown key; not of the strategy, but an argument of as_chat_reducer, or the option --reserved"
    )
    assert said["hooks"] == "hooks: unknown key; not of the strategy, but an argument of as_chat_reducer"
    # Elsewhere these are words like any other.
    summarizer = {"kind": "extractive", "format": 1}
    config = {"strategy": "summarization", "trigger": "turns > 4", "summarizer": summarizer}
    assert fault(config).startswith("summarizer.format: unknown key; expected one of ")


@pytest.mark.parametrize("section", [TRUNCATION, {"stages": []}])
def test_a_strategy_in_a_section_is_not_looked_for(section: Any) -> None:
    """The section is told, beside the name that is missing."""
    first, second = faults({"compaction": section, "summarizer": {"kind": "extractive"}, "trigger": "turns > 4"})
    assert first == "compaction: unknown key; what a strategy takes stands beside its name, and not in a section"
    assert second.startswith("strategy: is missing: the name of a strategy; expected one of 'clip', ")


@pytest.mark.parametrize("one", ["TICKET-7", {"pattern": r"\bE\d+", "flags": ["IGNORECASE"]}])
@pytest.mark.parametrize(
    "strategy",
    [
        {"strategy": "clip", "trigger": "tokens > 8000"},
        {"strategy": "tool_result", "trigger": "tokens > 8000"},
        {"strategy": "summarization", "trigger": "tokens > 8000", "summarizer": {"kind": "extractive"}},
        {"strategy": "context_window", "window": 9000, "max_output": 900, "summarizer": {"kind": "extractive"}},
    ],
    ids=lambda strategy: strategy["strategy"],
)
def test_one_thing_to_keep_needs_no_list(strategy: dict[str, Any], one: Any) -> None:
    """As in Python; what is written is a list."""
    made = from_config({**strategy, "must_keep": one})
    assert made == from_config({**strategy, "must_keep": [one]})
    assert to_config(made) == {**strategy, "must_keep": [one]}


def test_arguments_that_came_later_are_written_and_read() -> None:
    both_ways(
        cc.DeduplicateStrategy(trigger=TRIGGER, clear_at_least=500),
        {"strategy": "deduplicate", "trigger": "tokens > 8000", "clear_at_least": 500},
    )


def test_a_long_value_is_shortened() -> None:
    text = fault({**TRUNCATION, "min_preserved_groups": "x" * 1_000})
    assert text.startswith('min_preserved_groups: expected a whole number, got "xxxx')
    assert len(text) < 150


def test_an_error_is_a_value_error_with_its_faults() -> None:
    with pytest.raises(ConfigError) as caught:
        from_config({**TRUNCATION, "a": 1, "b": 2})
    assert isinstance(caught.value, cc.CompactionError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.source is None
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (again.faults, str(again)) == (caught.value.faults, str(caught.value))
    assert [one.path for one in caught.value.faults] == ["a", "b"]
    assert str(ConfigError([ConfigFault("", "is empty")], "a.toml")) == "a.toml: is empty"
    assert str(ConfigError([ConfigFault("x", "y"), ConfigFault("z", "w")], "a.toml")) == "a.toml: x: y\na.toml: z: w"


def test_wrong_arguments_are_wrong_use() -> None:
    with pytest.raises(TypeError, match="strategy must be a CompactionStrategy, got 3"):
        to_config(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allow_imports must be True or False, got 1"):
        from_config(TRUNCATION, allow_imports=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allow_imports must be True or False, got 1"):
        to_config(cc.TruncationStrategy(trigger=TRIGGER), allow_imports=1)  # type: ignore[arg-type]


# -- secrets -----------------------------------------------------------------------------------------


SECRETS: list[tuple[dict[str, Any], str]] = [
    ({"storage_options": {"key": "AKIA"}}, "storage_options.key"),
    ({"storage_options": {"client": {"aws_secret_access_key": "x"}}}, "storage_options.client.aws_secret_access_key"),
    ({"storage_options": {"headers": [{"Authorization": "Bearer x"}]}}, "storage_options.headers[0].Authorization"),
    ({"url": "sftp://user:hunter2@host/path"}, "url"),
]


@pytest.mark.parametrize(("store", "path"), SECRETS, ids=[path for _, path in SECRETS])
def test_secrets_are_refused(store: dict[str, Any], path: str) -> None:
    """A configuration is shared; keys stand in the environment. The fault does not repeat them."""
    text = fault({"strategy": "offload", "trigger": "tokens > 1", "store": {"url": "memory://secrets", **store}})
    assert text.startswith(f"store.{path}: is a")
    assert "no place in a configuration: the environment has it" in text
    assert "hunter2" not in text


def test_secrets_are_not_written() -> None:
    from chat_compaction.offload import OffloadStore
    from chat_compaction.strategies.offload import OffloadStrategy

    store = OffloadStore("memory://secrets", storage_options={"skip_instance_cache": True, "token": "hunter2"})
    with pytest.raises(ConfigError, match=r"^store.storage_options.token: is a secret") as caught:
        to_config(OffloadStrategy(store, trigger=TRIGGER))
    assert "hunter2" not in str(caught.value)


# -- imports -----------------------------------------------------------------------------------------


class Mood(Enum):
    CALM = "calm"
    CROSS = "cross"


class Tone(StrEnum):
    """Its members are texts."""

    LOUD = "loud"
    LOW = "low"


@attrs.frozen
class Detail:
    """A value of its own class in a strategy: a table that needs no name."""

    depth: int = 1
    mood: Mood = Mood.CALM


@attrs.frozen(kw_only=True)
class Attrs(cc.CompactionStrategy):
    detail: Detail | None = None
    weights: dict[str, float] = attrs.Factory(dict)
    moods: frozenset[Mood] = frozenset()
    patterns: list[re.Pattern[str]] = attrs.Factory(list)
    anything: Any = None
    pair: tuple[int, str] = (1, "one")
    judge: Callable[[Any], object] | None = None
    tone: Tone | None = None
    budget: cc.TokenBudgetStrategy | None = None

    def compact_core(self, index: cc.MessageIndex) -> None:
        """Nothing."""


@dataclasses.dataclass(frozen=True)
class Data(cc.CompactionStrategy):
    trigger: cc.Predicate
    most: int = 2

    def compact_core(self, index: cc.MessageIndex) -> None:
        """Nothing."""


class Plain(cc.CompactionStrategy):
    def __init__(self, limit: int, note: str = "") -> None:
        super().__init__(trigger=cc.messages > limit)
        self.limit, self.note = limit, note

    def compact_core(self, index: cc.MessageIndex) -> None:
        """Nothing."""


class Forgetful(Plain):
    def __init__(self, limit: int, size: int = 0) -> None:
        super().__init__(limit)


class Unresolved(Plain):
    def __init__(self, limit: NowhereDefined) -> None:  # type: ignore[name-defined]  # noqa: F821
        super().__init__(limit)


class Called:
    """An object that is called as a function."""

    def __call__(self, strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> None:
        """Nothing."""


BYTES: Any = re.compile(b"x")


def judge(index: Any) -> bool:
    return bool(index)


@cc.predicate
def odd(index: cc.MessageIndex) -> bool:
    return index.value(cc.messages) % 2 == 1


@strategy(trigger=TRIGGER)
def oldest(strategy: cc.CompactionStrategy, index: cc.MessageIndex) -> bool:
    return strategy.evict(index, strategy.candidates(index), "oldest")


HERE = __name__


def test_classes_of_your_own_are_import_paths_where_that_is_allowed() -> None:
    """An attrs class, a dataclass, and a plain one; each with the arguments that its constructor has."""
    made = Attrs(
        trigger=TRIGGER,
        detail=Detail(depth=2, mood=Mood.CROSS),
        weights={"a": 1.5},
        moods=frozenset({Mood.CROSS, Mood.CALM}),
        patterns=[re.compile("x")],
        anything=["a", 1, None],
        pair=(2, "two"),
        judge=judge,
    )
    config = {
        "strategy": f"{HERE}:Attrs",
        "trigger": "tokens > 8000",
        "detail": {"depth": 2, "mood": "cross"},
        "weights": {"a": 1.5},
        "moods": ["calm", "cross"],
        "patterns": [{"pattern": "x"}],
        "anything": ["a", 1, None],
        "pair": [2, "two"],
        "judge": {"import": f"{HERE}:judge"},
    }
    both_ways(made, config, allow_imports=True)
    data = {"strategy": f"{HERE}:Data", "trigger": "tokens > 8000", "most": 3}
    both_ways(Data(TRIGGER, most=3), data, allow_imports=True)
    plain = {"strategy": f"{HERE}:Plain", "limit": 7}
    assert to_config(from_config(plain, allow_imports=True), allow_imports=True) == plain


def test_what_is_wrong_with_classes_of_your_own() -> None:
    """Their arguments are read by their types, as those of ours are."""
    config = {"strategy": f"{HERE}:Attrs", "trigger": "tokens > 8000"}
    for name, value, expected in (
        ("detail", 3, "detail: expected a table, got 3"),
        ("detail", {"depth": "deep"}, 'detail.depth: expected a whole number, got "deep"'),
        ("detail", {"mood": "clam"}, "detail.mood: there is no 'clam' here; did you mean 'calm'?"),
        ("detail", {"kind": "extractve"}, "detail.kind: there is no kind 'extractve'; did you mean 'extractive'?"),
        ("tone", "loudly", "tone: there is no 'loudly' here; did you mean 'loud'?"),
        ("weights", [1], "weights: expected a table, got [1]"),
        ("weights", {"a": "b"}, 'weights.a: expected a number, got "b"'),
        ("patterns", ["x"], "patterns[0]: expected a table with the key 'pattern', got \"x\""),
        ("patterns", [{"pattern": "x", "flags": ["IGNORE"]}], "patterns[0].flags[0]: there is no 'IGNORE' here"),
        ("pair", [1, 2], "pair[1]: expected a text, got 2"),
        (
            "anything",
            {"when": dataclasses},
            "anything.when: expected a text, a number, true or false, a list or a table",
        ),
        ("budget", TRUNCATION, "budget: expected a TokenBudgetStrategy, got TruncationStrategy("),
    ):
        assert fault({**config, name: value}, allow_imports=True).startswith(expected)
    made = Attrs(trigger=TRIGGER, tone=Tone.LOUD, budget=cc.TokenBudgetStrategy(5))
    said = {"tone": "loud", "budget": {"strategy": "token_budget", "max_tokens": 5}}
    both_ways(made, {**config, **said}, allow_imports=True)


def test_functions_are_import_paths_where_that_is_allowed() -> None:
    """A reducer, a predicate, a function that was decorated."""
    both_ways(
        cc.ReducerStrategy(judge, TRIGGER),
        {"strategy": "reducer", "reducer": {"import": f"{HERE}:judge"}, "trigger": "tokens > 8000"},
        allow_imports=True,
    )
    both_ways(
        cc.TruncationStrategy(trigger=odd),
        {"strategy": "truncation", "trigger": {"import": f"{HERE}:odd"}},
        allow_imports=True,
    )
    both_ways(
        attrs.evolve(oldest, min_preserved_groups=3),
        {
            "strategy": "function",
            "function": {"import": f"{HERE}:oldest"},
            "trigger": "tokens > 8000",
            "min_preserved_groups": 3,
        },
        allow_imports=True,
    )
    assert from_config({"strategy": f"{HERE}:oldest", "keep_last_user": False}, allow_imports=True) == attrs.evolve(
        oldest, keep_last_user=False
    )


def test_what_a_class_may_be_any_of_is_told_by_its_keys() -> None:
    """An argument of no type takes a strategy, a summariser, a pattern, an import."""
    inner = cc.TruncationStrategy(trigger=TRIGGER)
    config: dict[str, Any] = {"strategy": f"{HERE}:Attrs", "trigger": "tokens > 8000"}
    for value, said in (
        (inner, TRUNCATION),
        (cc.EstimateCounter(scale=1.2), {"kind": "estimate", "scale": 1.2}),
        (re.compile("x"), {"pattern": "x"}),
        (judge, {"import": f"{HERE}:judge"}),
        ("text", "text"),
    ):
        both_ways(Attrs(trigger=TRIGGER, anything=value), {**config, "anything": said}, allow_imports=True)


@pytest.fixture
def bomb(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Imports that are tried."""
    tried: list[str] = []

    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            tried.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    return tried


IMPORTS = [
    ({"strategy": "bomb:Strategy"}, "strategy"),
    ({**TRUNCATION, "trigger": {"import": "bomb:odd"}}, "trigger"),
    ({"strategy": "reducer", "trigger": "tokens > 1", "reducer": {"import": "bomb:f"}}, "reducer"),
    ({"strategy": "tool_result", "trigger": "tokens > 1", "placeholder": {"import": "bomb:f"}}, "placeholder"),
    ({"strategy": "pipeline", "stages": [{"strategy": "bomb:Strategy"}]}, "stages[0].strategy"),
]


@pytest.mark.parametrize(("config", "path"), IMPORTS, ids=[path for _, path in IMPORTS])
def test_nothing_is_imported_that_nobody_allowed(config: dict[str, Any], path: str, bomb: list[str]) -> None:
    """A configuration that can import any module is a program."""
    assert fault(config).startswith(f"{path}: 'bomb:")
    assert "only a program that allows it may (allow_imports=True)" in fault(config)
    assert "bomb" not in bomb


def test_what_cannot_be_imported_is_a_fault() -> None:
    def said(path: str) -> str:
        config = {"strategy": "reducer", "trigger": "tokens > 1", "reducer": {"import": path}}
        return fault(config, allow_imports=True).removeprefix("reducer: ")

    assert said("no_such_module:f") == (
        "cannot import 'no_such_module:f': ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert (
        said("json:nothing") == "cannot import 'json:nothing': AttributeError: module 'json' has no attribute 'nothing'"
    )
    assert said("json").startswith("expected an import path such as 'package.module:name' and nothing else, got 'json'")
    assert said("sys:maxsize").startswith("must be callable, got ")
    config = {**TRUNCATION, "trigger": {"import": f"{HERE}:judge"}}
    assert fault(config, allow_imports=True).startswith(f"trigger: '{HERE}:judge' must be a predicate, got <function")
    config = {"strategy": "json:dumps"}
    assert "must be a class of strategies or a decorated function, got <function" in fault(config, allow_imports=True)
    config = {"strategy": f"{HERE}:Unresolved"}
    assert "cannot tell the arguments" in fault(config, allow_imports=True)


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (cc.ReducerStrategy(lambda messages: messages, TRIGGER), "reducer"),
        (cc.TruncationStrategy(trigger=odd | TRIGGER), "trigger"),
        (FunctionStrategy(lambda strategy, index: None, trigger=TRIGGER), "function"),
        (FunctionStrategy(Called(), trigger=TRIGGER), "function"),
        (PipelineStrategy(Attrs(trigger=TRIGGER, weights={3: 1.0})), "stages[0].weights.3"),  # type: ignore[dict-item]
        (Attrs(trigger=TRIGGER, anything=object()), "anything"),
        (Attrs(trigger=TRIGGER, patterns=[BYTES]), "patterns[0]"),
        (Forgetful(3), "size"),
    ],
    ids=["lambda", "predicate", "function", "object of a function", "key", "object", "bytes", "forgetful"],
)
def test_what_has_no_name_cannot_be_written(made: cc.CompactionStrategy, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        to_config(made, allow_imports=True)
    assert [one.path for one in caught.value.faults] == [path]
    assert "cannot be written" in str(caught.value)


def test_an_import_path_is_not_written_unless_it_is_allowed() -> None:
    """Whoever reads it back would have to allow it, too."""
    for made in (cc.ReducerStrategy(judge, TRIGGER), Attrs(trigger=TRIGGER), cc.TruncationStrategy(trigger=odd)):
        with pytest.raises(ConfigError, match="can only be written as something to import: allow_imports=True does"):
            to_config(made)
