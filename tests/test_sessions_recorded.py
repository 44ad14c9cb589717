"""Every recorded session of the formats that agents and frameworks store: all that was said is read, base64 is not."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.formats import Format, PartKind
from chat_compaction.formats.gemini_cli import GeminiCLIFormat
from chat_compaction.formats.langchain import LangChainFormat
from chat_compaction.formats.pi_session import PiSessionFormat
from chat_compaction.formats.sharegpt import ShareGPTFormat
from tests._shared import load_session, recorded_sessions

FORMATS: list[Format] = [GeminiCLIFormat(), LangChainFormat(), PiSessionFormat(), ShareGPTFormat()]
SPOKEN = {"content", "text", "thinking", "reasoning_content", "value", "summary", "command", "output", "subject"}
SPOKEN |= {"description"}
SILENT = {"details", "resultDisplay", "usage", "artifact", "response_metadata", "thinkingSignature", "metadata"}
CASES = [(format, path) for format in FORMATS for path in recorded_sessions(format.name)]
IDS = [f"{format.name}-{path.stem}" for format, path in CASES]


def spoken(value: Any, key: str = "") -> Iterator[str]:
    """The texts for the model in a recorded message, by the names of their fields; taken without a reader."""
    if isinstance(value, str) and key in SPOKEN:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from spoken(item, key)
    elif isinstance(value, dict) and value.get("type") not in ("info", "error", "warning"):
        for name, item in value.items():
            if name not in SILENT and not (name == "description" and "displayName" in value):
                yield from spoken(item, name)


@pytest.mark.parametrize(("format", "path"), CASES, ids=IDS)
def test_every_text_is_read(format: Format, path: Path) -> None:
    """C1: each text is in some part of its message; what looks like base64 is in none. Nothing is changed (K8)."""
    messages = load_session(path)
    before = copy.deepcopy(messages)
    for position, raw in enumerate(messages):
        parts = format.read(raw, position).parts
        text = "\n".join(f"{part.name}\n{part.text}" for part in parts)
        for words in spoken(raw):
            # By words: in what is counted as JSON, quotes and line breaks are escaped.
            pieces = re.findall(r"[A-Za-z0-9]{3,}", words)[:200]
            missing = [piece for piece in pieces if piece not in text]
            assert not missing, (position, missing[:5])
        assert not any(re.search(r"[A-Za-z0-9+/]{4000}", part.text) for part in parts)
    assert messages == before


@pytest.mark.parametrize(("format", "path"), CASES, ids=IDS)
def test_nothing_is_wrong_but_what_is(format: Format, path: Path) -> None:
    """The one problem in recorded sessions: pi's user interrupted six calls. Reading gives the same objects back."""
    messages = load_session(path)
    index = cc.MessageIndex.from_messages(messages, format=format)
    assert all(ours is theirs for ours, theirs in zip(index.included_messages(), messages, strict=True))
    expected = 6 if format.name == "pi_session" else 0
    assert [problem.rule for problem in index.problems] == ["unanswered_call"] * expected


@pytest.mark.parametrize(("format", "path"), CASES, ids=IDS)
def test_parts_are_numbered_as_they_are_taken_out(format: Format, path: Path) -> None:
    """What ``without`` takes out by its number is what stands there: a text, or reasoning, and nothing else."""
    for raw in load_session(path)[:60]:
        parts = format.read(raw, 0).parts
        for number, part in enumerate(parts):
            cut = format.without(raw, {number})
            if cut is not None and part.kind in (PartKind.TEXT, PartKind.REASONING):
                assert format.read(cut, 0).parts == parts[:number] + parts[number + 1 :]
