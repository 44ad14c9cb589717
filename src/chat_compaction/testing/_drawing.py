"""Random histories in no format: turns of text, reasoning and calls, or lines that break every rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from ._lines import Call, Line

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    Lines = SearchStrategy[list[Line]]


@attrs.frozen(kw_only=True)
class Habits:
    """What a provider takes, and what it does not.

    ``turn``: ``"free"``, ``"answered"`` (behind results the assistant speaks), ``"calls_first"`` (no call behind
    the assistant's words), or ``"strict"`` (that, and it speaks once, at the end). ``system``: where system messages
    may stand. ``unnamed``: calls may be without an id. ``late``: results may stand anywhere behind their call.
    ``server``: a list may begin in the middle, since the server knows the rest.
    """

    turn: Literal["free", "answered", "calls_first", "strict"] = "free"
    system: Literal["nowhere", "behind_user", "head_or_behind_user", "anywhere"] = "nowhere"
    most_calls: int = 3
    unnamed: bool = False
    late: bool = False
    server: bool = False


def named(lines: Sequence[Line], unnamed: bool) -> Iterator[Line]:
    """The lines with a name for each call that has none yet, calls that are answered cut into call and results."""
    late: list[Line] = []
    for number, line in enumerate(lines):
        calls = tuple([_named(call, number, nth, unnamed) for nth, call in enumerate(line.calls)])
        if calls and not line.order:  # A call that waits is the last of all.
            yield from late
            late = []
        line = attrs.evolve(line, calls=calls, number=number)
        yield line
        yield from late
        late = []
        if line.order:
            results = tuple([calls[nth] for nth in line.order])
            late = [attrs.evolve(line, role="user", reasoning=None, calls=(), results=results, order=(), follows=True)]
        if not line.late:
            yield from late
            late = []
    yield from late


def _named(call: Call, number: int, nth: int, unnamed: bool) -> Call:
    """Nine letters and digits, as Mistral wants."""
    return call if call.id or unnamed else attrs.evolve(call, id=f"call{number:03}{nth:02}")


def valid_lines(habits: Habits) -> Lines:
    """Lines that the provider takes: turns, and perhaps a last one with a call that waits for its result."""
    from hypothesis import strategies as st

    system = _lines(role=st.just("system"))
    head = st.lists(system, max_size=2 if habits.system in ("head_or_behind_user", "anywhere") else 0)
    server = _seldom(_lines(role=st.just("server")), habits.server)
    between = _seldom(system, habits.system == "anywhere")
    waiting = st.lists(_lines(calls=_calls(habits).map(lambda calls: calls[:1])), max_size=1)
    nothing: Lines = st.just([])
    last = nothing | st.builds(_joined, _turn(habits, ends=False), waiting)
    turns = st.lists(st.builds(_joined, between, _turn(habits)), min_size=1, max_size=5).map(
        lambda some: _joined(*some)
    )
    return st.builds(_joined, head, server, turns, last)


def hostile_lines(habits: Habits) -> Lines:
    """Lines of any kind in any order, and whole turns among them."""
    from hypothesis import strategies as st

    ids = st.sampled_from(["a", "b", "c", ""] if habits.unnamed else "abc")
    calls = st.lists(st.builds(Call, ids, st.sampled_from(["tool", "look"])), min_size=1, max_size=3).map(tuple)
    text = st.none() | st.sampled_from(["", " "]) | st.text(max_size=20)
    anyone = st.sampled_from(["user", "assistant", "system", *(["server"] if habits.server else ())])
    line = st.one_of(
        _lines(role=anyone, text=text, media=st.booleans()),
        _lines(role=st.just("user"), text=text),
        _lines(text=st.none(), reasoning=_some()),
        _lines(text=text, reasoning=st.none() | _some(), calls=calls),
        _lines(role=st.just("user"), text=text, results=calls),
        _lines(role=st.sampled_from(["user", "assistant"]), text=text, calls=calls, results=calls),
    )
    return st.lists(st.lists(line, min_size=1, max_size=3) | _turn(habits), max_size=10).map(
        lambda some: _joined(*some)
    )


def _joined(*pieces: Sequence[Line]) -> list[Line]:
    return [line for piece in pieces for line in piece]


def _some() -> SearchStrategy[str]:
    from hypothesis import strategies as st

    return st.text(min_size=1, max_size=20).filter(str.strip)


def _lines(**fields: SearchStrategy[Any]) -> SearchStrategy[Line]:
    from hypothesis import strategies as st

    return st.builds(Line, **{"text": _some(), "look": st.integers(0, 59), **fields})


def _seldom(line: SearchStrategy[Line], may: bool = True) -> Lines:
    """None of it, or one."""
    from hypothesis import strategies as st

    some: tuple[Lines, Lines] = (st.just([]), line.map(lambda found: [found]))
    return st.sampled_from([0, 0, 0, 1] if may else [0]).flatmap(lambda count: some[count])


def _calls(habits: Habits) -> SearchStrategy[tuple[Call, ...]]:
    from hypothesis import strategies as st

    call = st.builds(Call, st.just(""), st.sampled_from(["tool", "look"]))
    return st.lists(call, min_size=1, max_size=habits.most_calls).map(tuple)


def _turn(habits: Habits, ends: bool = True) -> Lines:
    """The user's words, and what came of them; with ``ends=False`` such that a call may be next."""
    from hypothesis import strategies as st

    thought = st.none() | _some()
    opened = _lines(role=st.just("user"), media=st.booleans())
    said = _lines(reasoning=thought, media=st.booleans())
    orders = [st.permutations(range(count)).map(tuple) for count in range(habits.most_calls + 1)]
    called = _lines(
        text=st.just("") | _some(),
        reasoning=thought,
        calls=_calls(habits),
        late=st.booleans() if habits.late else st.just(False),
    ).flatmap(lambda line: orders[len(line.calls)].map(lambda order: attrs.evolve(line, order=order)))
    steps = {
        "free": st.lists(said | called, max_size=4),
        "answered": st.lists(said | called, max_size=4).flatmap(lambda some: _closed(some, said)),
        "calls_first": st.builds(_joined, st.lists(called, max_size=3), st.lists(said, max_size=2)),
        "strict": st.builds(lambda calls, last: [*calls, last], st.lists(called, max_size=3), said),
    }
    aside = _seldom(_lines(role=st.just("system")), habits.system != "nowhere")
    body = steps[habits.turn] if ends else st.lists(called, max_size=2)
    return st.builds(lambda first, system, rest: [first, *(system if rest else ()), *rest], opened, aside, body)


def _closed(steps: list[Line], said: SearchStrategy[Line]) -> Lines:
    """The same, with the assistant's words at the end where results would stand there."""
    from hypothesis import strategies as st

    return said.map(lambda last: [*steps, last]) if steps and steps[-1].calls else st.just(steps)
