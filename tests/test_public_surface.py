"""The public surface: names and signatures. A change here is one for users."""

import inspect
from typing import Any

import pytest

import chat_compaction as cc

NAMES = [
    "Blocker",
    "ChatReducer",
    "CompactionError",
    "CompactionReport",
    "CompactionStrategy",
    "ContextOverflowError",
    "Counter",
    "CounterError",
    "Effect",
    "EstimateCounter",
    "Exclusion",
    "Explanation",
    "FormatError",
    "FunctionCounter",
    "GroupKind",
    "IndexSnapshot",
    "IndexUpdate",
    "InvalidHistoryError",
    "MediaCosts",
    "MessageError",
    "MessageGroup",
    "MessageIndex",
    "Metric",
    "Predicate",
    "PredicateSyntaxError",
    "Problem",
    "ProtectedGroupError",
    "ReducerStrategy",
    "Repair",
    "Repaired",
    "SessionError",
    "SessionResult",
    "StrategyError",
    "TokenBudgetStrategy",
    "TokenizerCounter",
    "TruncationStrategy",
    "all_of",
    "always",
    "any_of",
    "as_chat_reducer",
    "compact_sessions",
    "counters",
    "formats",
    "fraction_of_window",
    "groups",
    "groups_exceed",
    "has_tool_calls",
    "instrumentation",
    "messages",
    "messages_exceed",
    "never",
    "parse_predicate",
    "predicate",
    "repair",
    "testing",
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
READING = "counter=None, format='auto', pinned=None, reserved=0"
SIGNATURES = {
    "as_chat_reducer": f"(strategy, *, {READING}, on_invalid='keep', on_overflow='report', hooks=None, "
    "pending_turns=1, media_costs=None, bound_reasoning='keep', validate=False)",
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
    "CompactionStrategy.compact_core": "(self, index)",
    "CompactionStrategy.candidates": "(self, index)",
    "CompactionStrategy.candidate_turns": "(self, index)",
    "CompactionStrategy.reached": "(self, index)",
    "CompactionStrategy.evict": "(self, index, units, reason)",
    "CompactionStrategy.compact": "(self, index, *, on_overflow='report', hooks=None)",
    "CompactionStrategy.acompact": "(self, index, *, on_overflow='report', hooks=None)",
    "Effect": "(function, args=())",
    "MessageIndex.from_messages": f"(messages, *, {READING}, pending_turns=1, media_costs=None, "
    "bound_reasoning='keep', validate=False)",
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
