"""Answers of a model, by the API they come from: the text, and why it is none.

An answer may be an object of an SDK or the JSON itself; both are read alike. Everything that is not surely the whole
of a summary is a :class:`SummaryError`, which never has words of the answer in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ._errors import Reason, SummaryError

# Servers of open models leave the reasoning in the text, unless they are told otherwise.
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@attrs.frozen(kw_only=True)
class SummaryUsage:
    """What one answer cost, by the provider's own count: input (cached or not) and output, reasoning included."""

    model: str
    input_tokens: int
    output_tokens: int


OnUsage = Callable[[SummaryUsage], object]


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path of names and numbers, in objects or in JSON; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list | tuple) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
    return value


def a_word(value: object) -> str:
    """A code that a server sent, if it is surely no more than a code, in brackets."""
    return f" ({value})" if isinstance(value, str) and _WORD.fullmatch(value) else ""


def error_code(answer: Any) -> str:
    """The code of an error of the OpenAI kind, or its type."""
    return a_word(at(answer, "error", "code")) or a_word(at(answer, "error", "type"))


# -- chat completions ------------------------------------------------------------------------------

_CHAT_STOPS: dict[str, Reason] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "filtered",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "error": "unavailable",
}


def chat_text(answer: Any) -> str:
    """The text of an answer of Chat Completions.

    Compatible servers have stop reasons of their own for "done", so only those are refused which are known.
    """
    if at(answer, "error"):
        raise SummaryError("unavailable", _STOPPED["unavailable"] + error_code(answer))
    message = at(answer, "choices", 0, "message")
    if message is None:
        raise _malformed("no choices[0].message")
    stop = at(answer, "choices", 0, "finish_reason")
    if stop in _CHAT_STOPS:
        raise _stopped(_CHAT_STOPS[stop], stop)
    if at(message, "refusal"):
        raise _stopped("refused", None)
    return _whole(_THINKING.sub("", "".join(_texts(at(message, "content"), "text"))))


# -- responses -------------------------------------------------------------------------------------

_INCOMPLETE: dict[str, Reason] = {"content_filter": "filtered"}


def responses_text(answer: Any) -> str:
    """The text of an answer of the Responses API."""
    status = at(answer, "status")
    if status == "incomplete":
        why = at(answer, "incomplete_details", "reason")
        raise _stopped(_INCOMPLETE.get(why, "truncated"), why)
    if status != "completed":
        raise _stopped("unavailable", at(answer, "error", "code") or status)
    texts: list[str] = []
    for item in _items(at(answer, "output"), "output"):
        kind = at(item, "type")
        if kind == "message":
            content = at(item, "content")
            if any(at(part, "type") == "refusal" for part in content or ()):
                raise _stopped("refused", None)
            texts.extend(_texts(content, "output_text"))
        elif isinstance(kind, str) and kind.endswith("_call"):
            raise _stopped("tool_call", kind)
    return _whole("".join(texts))


# -- messages --------------------------------------------------------------------------------------

_DONE = ("end_turn", "stop_sequence")
_MESSAGE_STOPS: dict[str, Reason] = {
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
    "tool_use": "tool_call",
    "pause_turn": "tool_call",
}


def messages_text(answer: Any) -> str:
    """The text of an answer of Anthropic's Messages API."""
    stop = at(answer, "stop_reason")
    if stop in _MESSAGE_STOPS:
        raise _stopped(_MESSAGE_STOPS[stop], at(answer, "stop_details", "category") or stop)
    if stop not in _DONE:
        raise _malformed(f"no known stop_reason{a_word(stop)}")
    return _whole("".join(_texts(_items(at(answer, "content"), "content"), "text")))


# -- all of them -----------------------------------------------------------------------------------


def usage_of(answer: Any, model: str) -> SummaryUsage | None:
    """What an answer cost, under the names of any of the three APIs; None where it does not say."""
    usage = at(answer, "usage")
    read = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
    if read[0] is None:
        cached = [_number(usage, f"cache_{kind}_input_tokens") or 0 for kind in ("creation", "read")]
        fresh = _number(usage, "input_tokens")
        read = None if fresh is None else fresh + sum(cached), _number(usage, "output_tokens")
    if read[0] is None or read[1] is None:
        return None
    named = at(answer, "model")
    return SummaryUsage(model=named if isinstance(named, str) else model, input_tokens=read[0], output_tokens=read[1])


def _number(usage: Any, name: str) -> int | None:
    number = at(usage, name)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _items(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise _malformed(f"no list as {name}")
    return value


def _texts(content: Any, kind: str) -> Iterator[str]:
    """The texts in a content, which is one text, or a list of parts; reasoning and other parts are passed over."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list | tuple) else ():
        text = at(part, "text")
        if at(part, "type") == kind and isinstance(text, str):
            yield text


def _whole(text: str) -> str:
    if not text.strip():
        raise SummaryError("empty", "the model's answer has no text")
    return text.strip()


_STOPPED: dict[str, str] = {
    "truncated": "the model's answer was cut off",
    "refused": "the model refused to answer",
    "filtered": "a content filter stopped the model's answer",
    "tool_call": "the model called a tool, though none was offered, and gave no summary",
    "unavailable": "the provider reported a failure in place of an answer",
}


def _stopped(reason: Reason, code: object) -> SummaryError:
    return SummaryError(reason, _STOPPED[reason] + a_word(code))


def _malformed(what: str) -> SummaryError:
    return SummaryError("malformed", f"the answer is not what the API promises: {what}")
