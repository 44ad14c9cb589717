"""The public surface: names and signatures. A change here is one for users."""

import inspect
from typing import Any

import pytest

import chat_compaction as cc

NAMES = [
    "BackgroundDelivery",
    "Blocker",
    "ChatReducer",
    "ClipStrategy",
    "CompactionError",
    "CompactionReport",
    "CompactionStrategy",
    "ConfigError",
    "ContextOverflowError",
    "ContextWindowStrategy",
    "Counter",
    "CounterError",
    "DeduplicateStrategy",
    "Departure",
    "DropMediaStrategy",
    "DropReasoningStrategy",
    "Effect",
    "EstimateCounter",
    "Exclusion",
    "Explanation",
    "Failure",
    "FirstOf",
    "FormatError",
    "FunctionCounter",
    "FunctionStrategy",
    "GroupKind",
    "IndexSnapshot",
    "IndexUpdate",
    "InvalidHistoryError",
    "MediaCosts",
    "MessageError",
    "MessageGroup",
    "MessageIndex",
    "Metric",
    "OffloadStrategy",
    "PipelineStrategy",
    "Predicate",
    "PredicateSyntaxError",
    "Problem",
    "ProtectedGroupError",
    "ProviderCompactionStrategy",
    "ReducerStrategy",
    "Repair",
    "Repaired",
    "Replacement",
    "SessionError",
    "SessionResult",
    "SlidingWindowStrategy",
    "StrategyError",
    "SummarizationStrategy",
    "TokenBudgetStrategy",
    "TokenizerCounter",
    "ToolResultStrategy",
    "ToolUse",
    "TruncationStrategy",
    "UsedTool",
    "all_of",
    "always",
    "any_of",
    "as_chat_reducer",
    "compact_sessions",
    "config",
    "counters",
    "dump_config",
    "formats",
    "fraction_of_window",
    "from_config",
    "groups",
    "groups_exceed",
    "has_tool_calls",
    "instrumentation",
    "list_tool_uses",
    "load_config",
    "messages",
    "messages_exceed",
    "never",
    "offload",
    "parse_predicate",
    "predicate",
    "repair",
    "strategy",
    "summarizers",
    "testing",
    "to_config",
    "tokens",
    "tokens_below",
    "tokens_exceed",
    "tool_groups",
    "tool_groups_exceed",
    "triggers",
    "turns",
    "turns_exceed",
]

BASE = "target=None, min_preserved_groups=8, min_preserved_messages=0, keep_last_user=True, preserve_system=True"
KEPT = "summary_key=None, on_excluded=None"
FLOORED = "target=None, min_preserved_messages=0, keep_last_user=True, preserve_system=True"
STAGED = "target=None, min_preserved_groups=0, min_preserved_messages=0, keep_last_user=False, preserve_system=False"
READING = "counter=None, format='auto', pinned=None, reserved=0"
SIGNATURES = {
    "as_chat_reducer": f"(strategy, *, {READING}, on_invalid='keep', on_overflow='report', hooks=None, "
    f"pending_turns=1, media_costs=None, bound_reasoning='keep', validate=False, {KEPT})",
    "compact_sessions": f"(sessions, strategy, *, output=None, jobs=1, force=False, {READING}, on_invalid='keep', "
    "on_overflow='report', hooks=None, pending_turns=1, media_costs=None, bound_reasoning='keep', validate=False)",
    "ChatReducer.__call__": "(self, history)",
    "ChatReducer.reduce": "(self, history)",
    "ChatReducer.areduce": "(self, history)",
    "ChatReducer.reduce_with_report": "(self, history)",
    "ChatReducer.areduce_with_report": "(self, history)",
    "TruncationStrategy": f"(*, trigger, {BASE})",
    "TokenBudgetStrategy": "(max_tokens, *, keep_last_user=True, preserve_system=True, target_tokens=None, "
    "max_turns=None, min_preserved_messages=2, evict='turns-then-groups', min_preserved_groups=1)",
    "ReducerStrategy": f"(reducer, trigger, *, {BASE})",
    "CompactionStrategy": f"(*, trigger, {BASE})",
    "FunctionStrategy": f"(function, *, trigger, {BASE})",
    "strategy": f"(*, trigger, {BASE})",
    "PipelineStrategy": f"(*strategies, stages=(), trigger=None, {STAGED})",
    "FirstOf": f"(*strategies, stages=(), trigger=None, {STAGED})",
    "ContextWindowStrategy": "(window, max_output, summarizer=None, *, min_preserved_messages=0, keep_last_user=True, "
    "preserve_system=True, must_keep=(), tool_results_at=0.5, clip_above=0.1, summarize_at=None, truncate_at=0.8, "
    "room=0.5, keep_tool_uses=3, min_preserved_groups=2)",
    "SlidingWindowStrategy": f"(*, trigger, {FLOORED}, min_preserved_turns=1, keep_first_turns=0, "
    "keep_first_groups=0, min_preserved_groups=1)",
    "ToolResultStrategy": f"(*, trigger, {FLOORED}, style='clear', keep_tool_uses=3, only_tools=None, "
    "exclude_tools=(), min_tokens=0, clear_at_least=0, clear_tool_inputs=False, "
    "placeholder='[old tool result removed]', formatter=None, must_keep=(), min_preserved_groups=1)",
    "DropReasoningStrategy": f"(*, trigger, {FLOORED}, keep_turns=1, keep_tool_turns=None, min_preserved_groups=0)",
    "CompactionStrategy.compact_core": "(self, index)",
    "CompactionStrategy.candidates": "(self, index)",
    "CompactionStrategy.candidate_turns": "(self, index)",
    "CompactionStrategy.reached": "(self, index)",
    "CompactionStrategy.evict": "(self, index, units, reason)",
    "CompactionStrategy.compact": "(self, index, *, on_overflow='report', hooks=None)",
    "CompactionStrategy.acompact": "(self, index, *, on_overflow='report', hooks=None)",
    "CompactionStrategy.plan": "(self, history, **settings)",
    "CompactionStrategy.rewritable": "(self, index)",
    "CompactionStrategy.run_stage": "(self, index, stage, keep=None)",
    "CompactionStrategy.undo": "(self, index)",
    "CompactionStrategy.fits": "(self, index)",
    "Effect": "(function, args=(), *, planned=<_Unplanned.UNPLANNED: 'unplanned'>, blocking=False)",
    "BackgroundDelivery": "(receiver, *, max_waiting=1000, when_full='wait')",
    "from_config": "(config, *, allow_imports=False)",
    "to_config": "(strategy, *, allow_imports=False)",
    "load_config": "(path, *, format=None, allow_imports=False)",
    "dump_config": "(strategy, path, *, format=None, allow_imports=False)",
    "MessageIndex.from_messages": f"(messages, *, {READING}, pending_turns=1, media_costs=None, "
    f"bound_reasoning='keep', validate=False, {KEPT})",
    "MessageIndex.rewrite": "(self, group, messages, reason)",
    "MessageIndex.summarize": "(self, groups, text, reason)",
    "MessageIndex.restore": "(self, group)",
    "MessageIndex.view": "(self, position)",
    "MessageIndex.raw": "(self, position)",
    "MessageIndex.positions_of": "(self, group)",
    "MessageIndex.tool_uses": "(self, group)",
    "MessageIndex.count_texts": "(self, texts)",
    "MessageIndex.size_of": "(self, position, message)",
    "MessageIndex.report_failure": "(self, what, error)",
    "MessageIndex.extend": "(self, messages)",
    "MessageIndex.update": "(self, history)",
    "MessageIndex.exclude": "(self, group, reason)",
    "MessageIndex.include": "(self, *groups)",
    "MessageIndex.value": "(self, metric)",
    "MessageIndex.total": "(self, metric)",
    "MessageIndex.exceeds": "(self, metric, limit)",
    "MessageIndex.known": "(self, metric)",
    "MessageIndex.refresh": "(self)",
    "MessageIndex.tokens_of": "(self, group)",
    "MessageIndex.messages_of": "(self, group)",
    "MessageIndex.included_messages": "(self)",
    "MessageIndex.snapshot": "(self)",
    "all_of": "(*predicates)",
    "any_of": "(*predicates)",
    "predicate": "(function)",
    "parse_predicate": "(text)",
    "repair": "(messages, *, format='auto', pending_turns=1)",
    "formats.rules.NotAdjacent": "(turns=0)",
    "formats.Format.read": "(self, raw, position)",
    "formats.Format.claims": "(self, raw)",
    "formats.Format.with_rules": "(self, *rules)",
    "formats.Format.without_rules": "(self, *names)",
    "formats.Format.without": "(self, raw, parts)",
    "formats.Format.renamed": "(self, raw, part, call_id)",
    "formats.Format.joined": "(self, first, second)",
    "formats.read_session": "(path)",
    "tokens_exceed": "(limit)",
    "fraction_of_window": "(fraction, *, window)",
    "TokenizerCounter": "(tokenizer, name=None)",
    "TokenizerCounter.from_file": "(path, name=None)",
    "FunctionCounter": "(function, name=None, exact=False, framing=True, bounds=None)",
    "EstimateCounter": "(*, scale=1.0)",
    "counters.resolve_counter": "(counter=None)",
    "counters.shared_cache": "(counter)",
    "counters.bounds_of": "(counter)",
    "counters.byte_bounds": "(text)",
    "MediaCosts": "(*, image=1600, audio=1920, document=10000, video=17400, encrypted_reasoning=640, other=1600)",
    "testing.characters_counter": "()",
    "testing.histories": "(format='openai_chat', hostile=False)",
}


def named(path: str) -> Any:
    found: Any = cc
    for name in path.split("."):
        found = getattr(found, name)
    return found


def bare(signature: inspect.Signature) -> str:
    """A signature without its types."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def test_the_names() -> None:
    """These names are public, and sorted so that a new one is seen in review."""
    assert cc.__all__ == sorted(cc.__all__)
    assert cc.__all__ == NAMES
    assert all(hasattr(cc, name) for name in NAMES)


def test_nothing_else_is_public() -> None:
    """A name without an underscore that is not listed would be used all the same."""
    found = {name for name, value in vars(cc).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert found - {"TYPE_CHECKING"} <= set(NAMES)


@pytest.mark.parametrize("path", SIGNATURES)
def test_the_signatures(path: str) -> None:
    """What users may pass, and what they get when they pass nothing."""
    assert bare(inspect.signature(named(path))) == SIGNATURES[path]


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isclass(getattr(cc, name))])
def test_classes_name_the_path_they_are_imported_from(name: str) -> None:
    """A traceback and ``help()`` show no private module."""
    assert not any(part.startswith("_") for part in getattr(cc, name).__module__.split("."))


def test_the_version() -> None:
    """``__version__`` is that of the installed package; no other name is made up."""
    assert cc.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        named("nothing")
