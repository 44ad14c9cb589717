"""An independent judge of message lists, by the rules that the providers document.

It shares nothing with the package's own reading, grouping or rules: it looks at raw dicts (``tests.wire``), and knows

- everywhere: a result answers a call that was made before it, and every call is answered, once. Which call goes by id
  and occurrence: the newest earlier call of its id that is still open; without an id by order, the first open call of
  the newest message that has one, of the same name if there is one;
- OpenAI chat completions and what speaks it, LangChain: results stand directly behind the message that called;
- Mistral: that, and no user or system message comes behind a tool's, no system message behind the assistant's;
- OpenAI Responses: reasoning is followed by what it led to, and an item of the model's stays with the reasoning it
  came with. A list that refers to the server's items, or begins with a result, may answer calls that it does not hold;
- Anthropic: results stand in the turn behind the call (consecutive messages of one role are one turn), ahead of all
  else in it and in their message; what the provider runs itself is answered on its own side; the first message is a
  user's, or holds what the API made of all before it; ids are unique; a system message comes behind the user's turn or
  a server tool's result, and ahead of the assistant's, or last; no text is empty;
- Bedrock Converse: that, and the two roles alternate;
- Gemini: as many results as calls, in the turn behind them; a turn with calls comes behind the user's;
- ShareGPT: a user's message first, and the two sides alternate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.wire import FORMATS, SYSTEM, Said, said

__all__ = ["FORMATS", "SYSTEM", "Fault", "Judge", "Link", "faults", "faults_of", "links", "new_faults"]


@dataclass(frozen=True)
class Fault:
    """Something in a list that a provider forbids; ``position`` is the message to blame."""

    kind: str
    detail: str
    position: int
    call_id: str = ""


@dataclass(frozen=True)
class Link:
    """A call and its result, by position; one of them is None where there is no other."""

    call_id: str
    call: int | None
    result: int | None
    called_before: bool = True
    """For a result without an open call: whether its id was ever called."""


# -- calls and results -------------------------------------------------------------------------------


def links(messages: Sequence[Any], format_name: str) -> list[Link]:
    """Which result answers which call; also the calls and the results that stand alone."""
    return _links(said(messages, format_name))


@dataclass
class _Open:
    """A call, or a reference that may be one, that waits for its result."""

    position: int
    key: str
    name: str
    refers: bool = False


def _links(history: Sequence[Said]) -> list[Link]:
    found: list[Link] = []
    waiting: list[_Open] = []
    called: set[str] = set()
    for position, message in enumerate(history):
        if message.refers:
            waiting.append(_Open(position, "", "", refers=True))
        for piece in message.pieces:
            if piece.kind == "call":
                waiting.append(_Open(position, piece.key, piece.name))
                called.add(piece.key)
            elif piece.kind == "result":
                call = _answered(waiting, called, piece.key, piece.name)
                known = bool(piece.key) and piece.key in called
                found.append(Link(piece.key or piece.name, call.position if call else None, position, known))
                if call is not None:
                    waiting.remove(call)
    return [*found, *(Link(call.key or call.name, call.position, None) for call in waiting if not call.refers)]


def _answered(waiting: list[_Open], called: set[str], key: str, name: str) -> _Open | None:
    """The open call that a result answers."""
    if key and key in called:
        return next((call for call in reversed(waiting) if call.key == key), None)
    may = [call for call in waiting if not (key and call.key)]
    newest = [call for call in may if call.position == may[-1].position]
    return next((call for call in newest if name and call.name == name), next(iter(newest), None))


# -- the whole list ----------------------------------------------------------------------------------


def faults(messages: Sequence[Any], format_name: str, complete: bool | None = None) -> list[Fault]:
    """Everything in the list that the format's provider forbids.

    ``complete`` says whether the list holds every call that its results answer; None asks the list.
    """
    return faults_of(said(messages, format_name), format_name, complete)


def faults_of(history: Sequence[Said], format_name: str, complete: bool | None = None) -> list[Fault]:
    """:func:`faults` of what was read already."""
    known = complete if complete is not None else format_name != "openai_responses" or _is_complete(history)
    found = list(_RESULTS[format_name](history, _links(history)))
    found = [fault for fault in found if known or fault.kind != "orphan_result"]
    return [*found, *(fault for rule in _ORDER[format_name] for fault in rule(history))]


def _is_complete(history: Sequence[Said]) -> bool:
    first = next((message for message in history if message.side not in ("system", "mark")), None)
    return not any(message.refers for message in history) and not (first and first.has("result"))


_BY_COUNT = (
    *("first_role", "alternation", "system_place", "results_first", "user_after_tool", "system_after_answer"),
    *("call_place", "unequal_results"),
)
"""Faults of two neighbours: who is to blame changes with what leaves."""


def new_faults(
    before: Sequence[Any], after: Sequence[Any], format_name: str, places: Sequence[int] | None = None
) -> list[Fault]:
    """The faults of ``after`` that ``before`` has not: valid stays valid, invalid never gets worse.

    ``places`` are the positions in ``before`` at which the messages of ``after`` stand, rewritten ones too; without
    them messages are told apart by identity. Of the faults that are about neighbours only the number counts.
    """
    return Judge(before, format_name).new_faults(after, places)


class Judge:
    """:func:`new_faults` for many lists that are made of the same one, which is read once."""

    def __init__(self, before: Sequence[Any], format_name: str) -> None:
        self.format = format_name
        self._before = list(before)
        self._place = {id(message): position for position, message in enumerate(before)}
        # One object may stand at several places.
        self._where = [self._place[id(message)] for message in before]
        self._said = said(before, format_name)
        self.faults = faults_of(self._said, format_name)
        complete = _is_complete(self._said) if format_name == "openai_responses" else None
        self._complete = complete
        self._known = Counter(_key(fault, self._where) for fault in faults_of(self._said, format_name, complete))
        self.links = _links(self._said)
        self._pairs = {_pair(link, self._where) for link in self.links}

    def new_faults(self, after: Sequence[Any], places: Sequence[int] | None = None) -> list[Fault]:
        """The faults of a list that the first one has not."""
        # One that nobody knows stands at a place of its own.
        strange = len(self._before)
        where = [self._place.get(id(m), strange + p) for p, m in enumerate(after)]
        if places is not None:
            where = [self._where[place] for place in places]
        own = [place < strange and self._before[place] is message for place, message in zip(where, after, strict=True)]
        history = [
            self._said[place] if is_own else said([message], self.format)[0]
            for place, message, is_own in zip(where, after, own, strict=True)
        ]
        known, new = self._known.copy(), [*self._strangers(history, where), *self._parted(after, history, where, own)]
        for fault in faults_of(history, self.format, self._complete):
            key = _key(fault, where)
            if known[key]:
                known[key] -= 1
            else:
                new.append(fault)
        return new

    def _strangers(self, history: Sequence[Said], where: Sequence[int]) -> list[Fault]:
        """Results that answer another message's call than they did, which a reused id hides from the provider."""
        return [
            Fault("other_call", f"messages[{link.result}] answered another {link.call_id!r}", link.result, link.call_id)
            for link in _links(history)
            if link.call is not None and link.result is not None and _pair(link, where) not in self._pairs
        ]

    def _parted(
        self, after: Sequence[Any], history: Sequence[Said], where: Sequence[int], own: Sequence[bool]
    ) -> list[Fault]:
        """Items of the model's that lost the reasoning that they came with, and reasoning that lost its item."""
        if self.format != "openai_responses":
            return []
        kept = set(_partners(history, where))
        # What was written anew is no item of the model's, unless it still says so by its id.
        here = {
            place: number
            for number, (place, message, is_own) in enumerate(zip(where, after, own, strict=True))
            if is_own or message.get("id")
        }
        return [
            Fault("parted_reasoning", f"messages[{here[one]}] lost what it came with", here[one])
            for pair in _partners(self._said, self._where)
            if pair not in kept
            for one in pair
            if one in here
        ]


def _key(fault: Fault, where: Sequence[int]) -> tuple[str, str, int]:
    return (fault.kind, fault.call_id, 0 if fault.kind in _BY_COUNT else where[fault.position])


def _pair(link: Link, where: Sequence[int]) -> tuple[str | int | None, ...]:
    return (link.call_id, *(None if position is None else where[position] for position in (link.call, link.result)))


def _partners(history: Sequence[Said], where: Sequence[int]) -> list[tuple[int, int]]:
    """Each item of the model's and the newest reasoning ahead of it in the same response, by place."""
    pairs: list[tuple[int, int]] = []
    thought: int | None = None
    for place, item in zip(where, history, strict=True):
        if item.side != "assistant":
            thought = None
        elif item.only("thought"):
            thought = place
        elif thought is not None:
            pairs.append((thought, place))
    return pairs


# -- where results may stand ---------------------------------------------------------------------------


def _paired(history: Sequence[Said], found: Sequence[Link]) -> Iterator[Fault]:
    for link in found:
        if link.result is None:
            assert link.call is not None
            detail = f"messages[{link.call}] calls {link.call_id!r}, which has no result"
            yield Fault("unanswered_call", detail, link.call, link.call_id)
        elif link.call is None:
            kind = "second_result" if link.called_before else "orphan_result"
            detail = f"messages[{link.result}] answers no open call {link.call_id!r}"
            yield Fault(kind, detail, link.result, link.call_id)


def _at_once(history: Sequence[Said], found: Sequence[Link]) -> Iterator[Fault]:
    """Nothing but results stands between a call and its result."""
    yield from _paired(history, found)
    blocks = _numbers(history, lambda one, other: other.side == "tool")
    yield from _far(history, found, lambda call, result: blocks[result] > blocks[call])


def _in_next_turn(history: Sequence[Said], found: Sequence[Link]) -> Iterator[Fault]:
    """The result stands in the turn behind the call's, and no message ahead of it there says something else."""
    yield from _paired(history, found)
    turns = _numbers(history, lambda one, other: _speaker(one) == _speaker(other))

    def is_far(call: int, result: int) -> bool:
        ahead = [history[p] for p in range(call + 1, result) if turns[p] == turns[result]]
        return turns[result] > turns[call] + 1 or any(not message.only("result") for message in ahead)

    yield from _far(history, found, is_far)


def _far(history: Sequence[Said], found: Sequence[Link], is_far: Callable[[int, int], bool]) -> Iterator[Fault]:
    for link in found:
        if link.call is None or link.result is None or history[link.result].side == "assistant":
            continue  # One on the model's side is the provider's own.
        if is_far(link.call, link.result):
            detail = f"messages[{link.result}] answers {link.call_id!r} of messages[{link.call}], but not next to it"
            yield Fault("not_adjacent", detail, link.result, link.call_id)


def _numbers(history: Sequence[Said], joins: Callable[[Said, Said], bool]) -> list[int]:
    """A number for each message, that of the one before where it joins it."""
    numbers = [0] * len(history)
    for position, (one, other) in enumerate(pairwise(history), 1):
        numbers[position] = numbers[position - 1] + (not joins(one, other))
    return numbers


def _speaker(message: Said) -> str:
    return "user" if message.side == "tool" else message.side


# -- who speaks when -----------------------------------------------------------------------------------


def _spoken(history: Sequence[Said], *asides: str) -> list[tuple[int, Said]]:
    return [(p, m) for p, m in enumerate(history) if m.side not in ("mark", "unsent", *asides)]


def _first_user(history: Sequence[Said]) -> Iterator[Fault]:
    for position, message in _spoken(history, "system")[:1]:
        if message.side != "user" and not message.has("compaction"):
            yield Fault("first_role", f"messages[{position}] is the first and no user's", position)


def _alternation(history: Sequence[Said]) -> Iterator[Fault]:
    for (_, one), (position, other) in pairwise(_spoken(history)):
        parallel = one.side == other.side == "tool"
        if not parallel and "system" not in (one.side, other.side) and _speaker(one) == _speaker(other):
            yield Fault("alternation", f"messages[{position}] is of the same side as the one ahead", position)


def _mistral_order(history: Sequence[Said]) -> Iterator[Fault]:
    for (_, one), (position, other) in pairwise(_spoken(history)):
        if one.side == "tool" and other.side == "user":
            yield Fault("user_after_tool", f"messages[{position}] follows a tool's", position)
        if one.side in ("tool", "assistant") and other.side == "system":
            yield Fault("system_after_answer", f"messages[{position}] follows the {one.side}'s", position)


def _system_place(history: Sequence[Said]) -> Iterator[Fault]:
    """Several system messages in a row count as one; those that come first are to blame, not what follows them."""
    head = next((place for place, one in enumerate(history) if one.side not in ("system", "mark")), len(history))
    nobody, anybody = Said("nobody"), Said("mark")
    for one, (position, other) in pairwise([(0, nobody), *enumerate(history), (len(history), anybody)]):
        ahead = one[1]
        by_server = ahead.side == "assistant" and ahead.pieces[-1:] and ahead.pieces[-1].kind == "result"
        if other.side == "system" and ahead.side not in ("system", "user", "tool", "mark") and not by_server:
            yield Fault("system_place", f"messages[{position}] is a system message and not behind the user's", position)
        if position > head and ahead.side == "system" and other.side not in ("system", "assistant", "mark"):
            yield Fault("system_place", f"messages[{position}] follows a system message, and is the user's", position)


def _results_first(history: Sequence[Said]) -> Iterator[Fault]:
    """In a message of the user's, results stand ahead of all else."""
    for position, message in enumerate(history):
        others = [piece.kind != "result" for piece in message.pieces]
        if message.side == "user" and others != sorted(others):
            yield Fault("results_first", f"messages[{position}] has results behind other content", position)


def _call_place(history: Sequence[Said]) -> Iterator[Fault]:
    """A turn with calls comes behind the user's or behind results."""
    for one, (position, other) in pairwise([(0, Said("user")), *enumerate(history)]):
        if other.side == "assistant" and other.has("call") and one[1].side == "assistant" and not one[1].has("call"):
            yield Fault("call_place", f"messages[{position}] calls behind another message of the model", position)


def _equal_results(history: Sequence[Said]) -> Iterator[Fault]:
    """Behind a turn with calls comes one with as many results; behind the last one, it may still come."""
    turns = _numbers(history, lambda one, other: _speaker(one) == _speaker(other))
    counts: Counter[int] = Counter()
    for turn, message in zip(turns, history, strict=True):
        counts[turn] += message.count("call") - message.count("result")
    for position, turn in enumerate(turns):
        starts = position == 0 or turns[position - 1] != turn
        if starts and history[position].side == "assistant" and turn < turns[-1] and counts[turn] + counts[turn + 1]:
            detail = f"the turn from messages[{position}] on has other results than calls"
            yield Fault("unequal_results", detail, position)


# -- what a message holds ------------------------------------------------------------------------------


def _thought_alone(history: Sequence[Said]) -> Iterator[Fault]:
    for position, message in enumerate(history):
        if message.only("thought") and message.side == "assistant":
            behind = history[position + 1] if position + 1 < len(history) else None
            if behind is None or behind.side != "assistant":
                yield Fault("thought_alone", f"messages[{position}] is reasoning that led to nothing", position)


def _unique_ids(history: Sequence[Said]) -> Iterator[Fault]:
    seen: set[str] = set()
    for position, message in enumerate(history):
        for piece in message.pieces:
            if piece.kind == "call" and piece.key in seen:
                yield Fault("repeated_id", f"messages[{position}] calls {piece.key!r} once more", position, piece.key)
            if piece.kind == "call":
                seen.add(piece.key)


def _empty(is_empty: Callable[[Said], bool]) -> Callable[[Sequence[Said]], Iterator[Fault]]:
    def rule(history: Sequence[Said]) -> Iterator[Fault]:
        for position, message in enumerate(history):
            last = position == len(history) - 1 and message.side == "assistant"  # It may just be being written.
            if message.side not in ("mark", "unsent") and not last and is_empty(message):
                yield Fault("empty", f"messages[{position}] is empty, or a text in it", position)

    return rule


def _empty_for_anthropic(message: Said) -> bool:
    texts = [piece.text for piece in message.pieces if piece.kind == "text"]
    return "" in texts or not message.pieces or (message.only("text") and not "".join(texts).strip())


def _blank_for_bedrock(message: Said) -> bool:
    return not message.pieces or any(piece.kind == "text" and not piece.text.strip() for piece in message.pieces)


def _empty_for_gemini(message: Said) -> bool:
    return not message.pieces or any(piece.kind == "text" and not piece.text for piece in message.pieces)


_CLAUDE = (_unique_ids, _first_user, _system_place, _results_first)

_RESULTS = {
    **dict.fromkeys(("openai_chat", "mistral", "langchain"), _at_once),
    **dict.fromkeys(("anthropic", "bedrock_converse", "gemini"), _in_next_turn),
    **dict.fromkeys(("openai_responses", "sharegpt", "gemini_cli", "pi_session"), _paired),
}
_ORDER: dict[str, tuple[Callable[[Sequence[Said]], Iterator[Fault]], ...]] = {
    **dict.fromkeys(FORMATS, ()),
    "mistral": (_mistral_order,),
    "openai_responses": (_thought_alone,),
    "anthropic": (*_CLAUDE, _empty(_empty_for_anthropic)),
    "bedrock_converse": (*_CLAUDE, _alternation, _empty(_blank_for_bedrock)),
    "gemini": (_first_user, _call_place, _equal_results, _empty(_empty_for_gemini)),
    "sharegpt": (_first_user, _alternation),
}
