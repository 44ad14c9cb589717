"""For users' own tests: counters that make arithmetic easy or record their work, and random histories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from .counters import FunctionCounter

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["RecordingCounter", "characters_counter", "histories"]


def characters_counter() -> FunctionCounter:
    """One token a character of text; nothing for calls, names, media or framing.

    >>> characters_counter().count_many(["four", ""])
    [4, 0]
    """
    return FunctionCounter(len, name="characters", framing=False)


@attrs.define
class RecordingCounter:
    """One token a character, and a record of every text that was counted, for tests of what a strategy costs.

    With ``framing=True``, calls, names and the overhead of each message count too.

    >>> counter = RecordingCounter()
    >>> counter.count_many(["four"]), counter.counted
    ([4], ['four'])
    """

    framing: bool = False
    counted: list[str] = attrs.field(init=False, factory=list)

    @property
    def name(self) -> str:
        """``"characters"``."""
        return "characters"

    @property
    def exact(self) -> bool:
        """False: no tokenizer is asked."""
        return False

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The length of each text."""
        self.counted.extend(texts)
        return [len(text) for text in texts]


def histories(format: str = "openai_chat", hostile: bool = False) -> SearchStrategy[list[dict[str, Any]]]:
    """A Hypothesis strategy of histories, as dicts of a format (``"openai_chat"`` or ``"anthropic"``).

    They are such as the provider takes: turns of text, reasoning, parallel calls with results in any order, perhaps
    with a call at the end that still waits. With ``hostile=True`` messages that break the rules stand among them:
    results without calls or far from them, ids used again, calls without results, system messages anywhere, null and
    empty content. Every one of them can be read.

    Hypothesis is imported here, and is no dependency of this package.

    Raises:
        ValueError: for another format.
    """
    if format not in _WRITERS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _WRITERS))}, got {format!r}")
    write = _WRITERS[format]
    lines = _hostile_lines() if hostile else _valid_lines(system=format == "openai_chat")
    return lines.map(lambda drawn: [message for line in _named(drawn) for message in write(line)])


# -- what is drawn -----------------------------------------------------------------------------


@attrs.frozen
class _Line:
    """One step of a history, in no format; an id of None gets a name that is used once."""

    role: str = "assistant"
    text: str | None = None
    reasoning: str | None = None
    calls: tuple[str | None, ...] = ()
    results: tuple[str | None, ...] = ()
    order: tuple[int, ...] = ()
    """The order of the results of calls that are answered at once."""


def _named(lines: Sequence[_Line]) -> Iterator[_Line]:
    """The lines with a name for each call, and a call that is answered at once cut into call and results."""
    for number, line in enumerate(lines):
        calls = tuple(f"call_{number}_{nth}" if name is None else name for nth, name in enumerate(line.calls))
        yield attrs.evolve(line, calls=calls, order=())
        if line.order:
            yield _Line("user", text=line.text, results=tuple(calls[nth] for nth in line.order))


def _turns() -> SearchStrategy[list[_Line]]:
    from hypothesis import strategies as st

    text = st.text(max_size=20)
    some = st.text(min_size=1, max_size=20)
    thought = st.none() | some
    said = st.builds(_Line, text=some, reasoning=thought)
    called = st.integers(1, 3).flatmap(
        lambda count: st.builds(
            _Line,
            text=text,
            reasoning=thought,
            calls=st.just((None,) * count),
            order=st.permutations(range(count)).map(tuple),
        )
    )
    opened = st.builds(_Line, role=st.just("user"), text=some)
    return st.builds(lambda first, rest: [first, *rest], opened, st.lists(said | called, max_size=4))


def _valid_lines(system: bool) -> SearchStrategy[list[_Line]]:
    from hypothesis import strategies as st

    some = st.text(min_size=1, max_size=20)
    head = st.lists(st.builds(_Line, role=st.just("system"), text=some), max_size=2 if system else 0)
    waiting = st.lists(st.builds(_Line, calls=st.just((None,))), max_size=1)
    return st.builds(
        lambda head, turns, waiting: [*head, *(line for turn in turns for line in turn), *waiting],
        head,
        st.lists(_turns(), min_size=1, max_size=6),
        waiting,
    )


def _hostile_lines() -> SearchStrategy[list[_Line]]:
    from hypothesis import strategies as st

    ids = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)
    text = st.none() | st.text(max_size=20)
    thought = st.none() | st.text(min_size=1, max_size=20)
    line = st.one_of(
        st.builds(_Line, role=st.sampled_from(["user", "assistant", "system"]), text=text),
        st.builds(_Line, role=st.just("user"), text=text),
        st.builds(_Line, reasoning=st.text(min_size=1, max_size=20)),
        st.builds(_Line, text=text, reasoning=thought, calls=ids),
        st.builds(_Line, role=st.just("user"), text=text, results=ids),
        st.builds(_Line, role=st.sampled_from(["user", "assistant"]), text=text, calls=ids, results=ids),
    )
    return st.lists(st.lists(line, min_size=1, max_size=3) | _turns(), max_size=10).map(
        lambda pieces: [line for piece in pieces for line in piece]
    )


# -- how it is written -------------------------------------------------------------------------


def _openai_chat(line: _Line) -> Iterator[dict[str, Any]]:
    """The line as messages of OpenAI chat completions: each result is a message of its own."""
    if line.calls or not line.results:
        # The other roles have no field for calls.
        message: dict[str, Any] = {"role": "assistant" if line.calls else line.role, "content": line.text}
        if line.reasoning is not None:
            message["reasoning_content"] = line.reasoning
        if line.calls:
            calls = [{"id": c, "type": "function", "function": {"name": "tool", "arguments": "{}"}} for c in line.calls]
            message["tool_calls"] = calls
        yield message
    for call_id in line.results:
        yield {"role": "tool", "tool_call_id": call_id, "content": line.text}


def _anthropic(line: _Line) -> Iterator[dict[str, Any]]:
    """The line as one message of Anthropic: blocks where text alone does not do, results ahead of the text."""
    blocks: list[dict[str, Any]] = []
    if line.reasoning is not None:
        blocks.append({"type": "thinking", "thinking": line.reasoning, "signature": "signed"})
    blocks += [{"type": "tool_use", "id": call, "name": "tool", "input": {}} for call in line.calls]
    blocks += [{"type": "tool_result", "tool_use_id": call, "content": line.text} for call in line.results]
    if not blocks:
        yield {"role": line.role, "content": [] if line.text is None else line.text}
        return
    if line.text:
        blocks.insert(line.reasoning is not None if line.calls else len(blocks), {"type": "text", "text": line.text})
    yield {"role": line.role, "content": blocks}


_WRITERS = {"openai_chat": _openai_chat, "anthropic": _anthropic}
