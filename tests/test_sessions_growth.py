"""Reading the file of an agent is linear in it, whatever its lines are (rule K13): operations counted, never timed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chat_compaction.formats._sessions import parse_session
from tests.test_growth import MOST, growth

Entry = dict[str, Any]


# -- Claude Code -----------------------------------------------------------------------------------


def line(number: int, kind: str = "user", parent: str | None = "", **fields: Any) -> Entry:
    """A line that hangs on the one ahead, if no other parent is given."""
    above = (f"u{number - 1}" if number else None) if parent == "" else parent
    message = {"role": kind, "content": [{"type": "text", "text": "x"}]}
    return {"uuid": f"u{number}", "parentUuid": above, "type": kind, "message": message, **fields}


def said(number: int, name: str, **fields: Any) -> Entry:
    entry = line(number, "assistant", **fields)
    return {**entry, "message": {**entry["message"], "id": name}}


def sidechain(n: int) -> list[Entry]:
    """One without ``agentId``: its first line names it."""
    return [line(i, isSidechain=True) for i in range(n)]


def sidechain_from_the_end(n: int) -> list[Entry]:
    return sidechain(n)[::-1]


def sidechain_in_a_circle(n: int) -> list[Entry]:
    return [line(0, parent=f"u{n - 1}", isSidechain=True), *sidechain(n)[1:]]


def sidechains(n: int) -> list[Entry]:
    return [line(i, parent=None, isSidechain=True) for i in range(n)]


def user_lines(n: int) -> list[Entry]:
    """In a row, which become one message."""
    return [line(i) for i in range(n)]


def results_in_a_row(n: int) -> list[Entry]:
    lines = [said(0, "m"), *(line(i) for i in range(1, n))]
    for i, entry in enumerate(lines[1::2]):
        entry["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{i}"}]
    return lines


def one_message(n: int) -> list[Entry]:
    """Lines of one ``message.id``."""
    return [line(0), *(said(i, "m") for i in range(1, n))]


def interleaved_messages(n: int) -> list[Entry]:
    return [line(0), *(said(i, f"m{i % 2}") for i in range(1, n))]


def beside(n: int) -> list[Entry]:
    """All hang on the first line, as the results of parallel calls do."""
    return [line(0), *(said(i, "m", parent="u0") for i in range(1, n))]


def kept(n: int) -> list[Entry]:
    """A compaction that kept half of the lines; the other half hangs on its anchor."""
    metadata = {"preservedMessages": {"anchorUuid": "s", "uuids": [f"u{i}" for i in range(n // 2)]}}
    boundary = {"uuid": "b", "type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}
    summary = {**line(0, parent="b"), "uuid": "s"}
    more = [line(i, parent="s") for i in range(n // 2, n)]
    return [*(line(i) for i in range(n // 2)), boundary, summary, *more]


# -- Codex -----------------------------------------------------------------------------------------


def entry(kind: str, **payload: Any) -> Entry:
    return {"type": kind, "payload": payload}


def item(text: str, role: str = "user") -> Entry:
    return entry("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


BACK = entry("event_msg", type="thread_rolled_back", num_turns=1)


def compactions(n: int) -> list[Entry]:
    """Whose result was not recorded."""
    return [entry("compacted", message="short") for _ in range(n)]


def compactions_between_items(n: int) -> list[Entry]:
    return [one for i in range(n) for one in (item(f"{i}"), item("a", "assistant"), entry("compacted", message="s"))]


def compactions_behind_items(n: int) -> list[Entry]:
    return [*(item(f"{i}") for i in range(n)), *compactions(n)]


def compactions_of_developers(n: int) -> list[Entry]:
    """Nothing opens a turn, and everything is kept."""
    return [one for i in range(n) for one in (item(f"{i}", "developer"), entry("compacted", message="s"), BACK)]


def rollbacks(n: int) -> list[Entry]:
    """Of one turn each, behind many."""
    return [*(item(f"{i}") for i in range(n)), *([item("more"), BACK] * n)]


def rollbacks_without_turns(n: int) -> list[Entry]:
    return [*(item(f"{i}", "assistant") for i in range(n)), *([BACK] * n)]


def rollbacks_of_compactions(n: int) -> list[Entry]:
    return [*(item(f"{i}") for i in range(n)), *([entry("compacted", message="s"), item("more"), BACK] * n)]


# -- Gemini CLI and pi -----------------------------------------------------------------------------

GEMINI = {"sessionId": "s", "projectHash": "p"}
PI = {"type": "session", "cwd": "/", "version": 3}


def rewinds(n: int) -> list[Entry]:
    """Of one message each, behind many."""
    messages = [{"id": f"{i}", "type": "user", "content": "x"} for i in range(n)]
    return [GEMINI, *messages, *([{"id": "more", "type": "user"}, {"$rewindTo": "more"}] * n)]


def replaced(n: int) -> list[Entry]:
    return [GEMINI, *({"id": f"{i % 2}", "type": "user", "content": "x"} for i in range(n))]


def pi_compactions(n: int) -> list[Entry]:
    """Each keeps all."""
    entries = [{"id": f"{i}", "parentId": f"{i - 1}", "type": "compaction", "firstKeptEntryId": "0"} for i in range(n)]
    return [PI, *entries]


def pi_branches(n: int) -> list[Entry]:
    entries = [{"id": f"{i}", "parentId": f"{i // 2}", "type": "message", "message": {}} for i in range(n)]
    return [PI, *entries]


SHAPES = [
    sidechain,
    sidechain_from_the_end,
    sidechain_in_a_circle,
    sidechains,
    user_lines,
    results_in_a_row,
    one_message,
    interleaved_messages,
    beside,
    kept,
    compactions,
    compactions_between_items,
    compactions_behind_items,
    compactions_of_developers,
    rollbacks,
    rollbacks_without_turns,
    rollbacks_of_compactions,
    rewinds,
    replaced,
    pi_compactions,
    pi_branches,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_reading_is_linear(shape: Callable[[int], list[Entry]]) -> None:
    """K13: eight times the lines are eight times the work."""

    def prepare(n: int) -> Callable[[], object]:
        data = "".join(json.dumps(one) + "\n" for one in shape(n)).encode()
        assert parse_session(data, "session").source
        return lambda: parse_session(data, "session")

    assert growth(prepare, 32) < MOST
