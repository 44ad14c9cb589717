"""Messages of Gemini CLI's session files: ``type``, ``content``, and a model's ``thoughts`` and ``toolCalls``.

One message of the model holds its calls *and* their results, so they never part. Read is what Gemini CLI
sends when it resumes: messages of the types ``info``, ``error`` and ``warning`` are for the eye only, and so
are a user's commands (``/help``), which begin with ``/`` or ``?``: they count nothing and open no turn.
Thoughts are sent as text; where the content has thoughts or calls of its own (newer versions), it stands for
all, and the fields beside it are not counted again.

What is sent are contents of the Gemini API, whose frame Google does not publish; 2 tokens are our estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from .._text import shown
from ..counters import GeminiMediaCosts, MediaCosts
from ._base import Format, Place, changed, get, is_object, items, string, wrong
from ._media import media
from ._opaque import json_text, opaque
from ._parts import merged
from ._writing import json_object, own_list, read_back
from .gemini import answered, response_key

_TYPES = ("user", "gemini", "info", "error", "warning")
_UNSENT = Message(Role.ASSISTANT)
_SEEN_ONLY = ("/", "?", "<session_context>", "<hook_context>")

_Located = tuple[Part, str, int]
"""A part, the field that it stands in, and its number there."""


@attrs.frozen(repr=False)
class GeminiCLIFormat(Format):
    """Messages as Gemini CLI records them."""

    name: ClassVar[str] = "gemini_cli"
    overhead: ClassVar[int] = 2
    media_costs: ClassVar[MediaCosts] = GeminiMediaCosts()

    def claims(self, raw: Any) -> bool:
        """The type ``gemini``, or another type beside a time and no role."""
        kind = get(raw, "type")
        return kind == "gemini" or (kind in _TYPES and get(raw, "timestamp") is not None and _has_content(raw))

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        kind = get(raw, "type")
        if kind not in _TYPES:
            what = f"must be one of {', '.join(_TYPES)}, got {shown(kind)}" if kind else "is missing"
            raise wrong((*here, "type"), f"{what} (read as {self.name!r}; format= names another)")
        if kind not in ("user", "gemini"):
            return _UNSENT
        parts = tuple([part for part, _, _ in self._located(raw, here)])
        if kind == "user":
            first = parts[0].text if parts else ""
            return _UNSENT if first.lstrip().startswith(_SEEN_ONLY) else Message(Role.USER, parts)
        return Message(Role.ASSISTANT, parts)

    def _located(self, raw: Any, here: Place) -> list[_Located]:
        content = list(self._content(raw, here))
        if get(raw, "type") == "user":
            return content
        whole = any(part.kind in (PartKind.REASONING, PartKind.TOOL_CALL) for part, _, _ in content)
        thoughts = [] if whole else list(self._thoughts(raw, here))
        return [*thoughts, *content, *self._calls(raw, here, whole)]

    def _content(self, raw: Any, here: Place) -> Iterator[_Located]:
        content = get(raw, "content")
        if isinstance(content, str):
            if content:
                yield Part(PartKind.TEXT, content), "content", 0
            return
        pieces = [content] if is_object(content) else content
        for number, piece in enumerate(_objects(pieces, here, "content")):
            yield _part(piece), "content", number

    def _thoughts(self, raw: Any, here: Place) -> Iterator[_Located]:
        for number, (thought, at) in enumerate(items(get(raw, "thoughts"), here, "thoughts")):
            texts = (string(get(thought, key), at, key) for key in ("subject", "description"))
            yield Part(PartKind.REASONING, "\n".join(text for text in texts if text)), "thoughts", number

    def _calls(self, raw: Any, here: Place, whole: bool) -> Iterator[_Located]:
        """Each call, and its result where it has one; only results where the content holds the calls."""
        for number, (call, at) in enumerate(items(get(raw, "toolCalls"), here, "toolCalls")):
            call_id = get(call, "id")
            if call_id is not None and not isinstance(call_id, str):
                raise wrong((*at, "id"), f"must be a string, got {shown(call_id)}")
            name = string(get(call, "name"), at, "name")
            if not whole:
                yield Part(PartKind.TOOL_CALL, json_text(get(call, "args")), name, call_id), "toolCalls", number
            result = get(call, "result")
            if result:
                yield merged(PartKind.TOOL_RESULT, _result(result), name=name, call_id=call_id), "toolCalls", number

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a call leaves with its result, a result alone."""
        located = self._located(raw, (0,))
        gone = [located[number] for number in parts]
        fields: dict[str, Any] = {}
        for key in ("thoughts", "content"):
            numbers = {number for _, field, number in gone if field == key}
            if numbers:
                fields[key] = _cut(get(raw, key), numbers)
        calls = {number: part.kind for part, field, number in gone if field == "toolCalls"}
        calls.update({n: part.kind for part, field, n in gone if field == "toolCalls" and part.kind is _CALL})
        if calls:
            fields["toolCalls"] = [
                changed(call, result=None) if number in calls else call
                for number, call in enumerate(get(raw, "toolCalls"))
                if calls.get(number) is not _CALL
            ]
        kept = changed(raw, **fields)
        return kept if self._located(kept, (0,)) else None

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what is shown of a result to the eye stays."""
        located = self._located(raw, (0,))
        fields: dict[str, Any] = {}
        for part, text in texts.items():
            found, key, number = located[part]
            listed = isinstance(get(raw, key), list | tuple)
            one = own_list(fields, raw, key)[number] if listed else get(raw, key)
            written = _saying_instead(one, key, found.kind, text)
            if written is None:
                return None
            if listed:
                fields[key][number] = written
            else:
                fields[key] = written
        return changed(raw, **fields)

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what a user's text begins with may make it a command."""
        kind = {Role.ASSISTANT: "gemini", Role.USER: "user"}.get(role)
        if kind is None or (kind == "user" and text.lstrip().startswith(_SEEN_ONLY)):
            return None
        own = {key: value for key in ("id", "timestamp") if (value := get(raw, key)) is not None}
        return {**own, "type": kind, "content": text}

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a call and its result share the id."""
        _, field, number = self._located(raw, (0,))[part]
        if field != "toolCalls":
            return None
        calls = list(get(raw, "toolCalls"))
        result = get(calls[number], "result")
        fields: dict[str, Any] = {"id": call_id}
        if isinstance(result, list):
            fields["result"] = [_renamed(piece, call_id) for piece in result]
        calls[number] = changed(calls[number], **fields)
        return changed(raw, toolCalls=calls)


_CALL = PartKind.TOOL_CALL


def _has_content(raw: Any) -> bool:
    return get(raw, "content") is not None and get(raw, "role") is None


def _objects(pieces: Any, here: Place, key: str) -> Iterator[Any]:
    """The parts of a content; a bare string is a part of text."""
    texts = [{"text": piece} if isinstance(piece, str) else piece for piece in pieces] if _iterates(pieces) else pieces
    for piece, _ in items(texts, here, key, "a string, a part or a list of them"):
        yield piece


def _iterates(pieces: Any) -> bool:
    return isinstance(pieces, list | tuple)


def _part(piece: Any) -> Part:
    """One part of the Gemini API."""
    text = get(piece, "text")
    if isinstance(text, str):
        return Part(PartKind.REASONING if get(piece, "thought") else PartKind.TEXT, text)
    call = get(piece, "functionCall")
    if is_object(call):
        name, call_id = get(call, "name"), get(call, "id")
        return Part(
            PartKind.TOOL_CALL,
            json_text(get(call, "args")),
            name if isinstance(name, str) else "",
            call_id if isinstance(call_id, str) else None,
        )
    data = get(piece, "inlineData") or get(piece, "fileData")
    return Part(PartKind.MEDIA, media=(media("", data),)) if is_object(data) else opaque(piece)


def _result(result: Any) -> list[Part]:
    """What a result holds: text, or parts of the Gemini API, most often a ``functionResponse``."""
    if isinstance(result, str):
        return [Part(PartKind.TEXT, result)]
    pieces = result if isinstance(result, list) else [result]
    parts = []
    for piece in pieces:
        response = get(piece, "functionResponse") if is_object(piece) else None
        if is_object(response):
            said = get(response, "response")
            key = response_key(said)
            parts.append(opaque(said if key is None else said[key]))
            parts += [_part(nested) for nested in get(response, "parts") or () if is_object(nested)]
        else:
            parts.append(_part(piece) if is_object(piece) else opaque(piece))
    return parts


def _saying_instead(given: Any, key: str, kind: PartKind, text: str) -> Any | None:
    """A piece of the content, a call or a result with another text."""
    if isinstance(given, str):
        return text
    if key == "content" and kind is PartKind.TEXT:
        return changed(given, text=text)
    if kind is PartKind.TOOL_RESULT:
        return changed(given, result=_answer(get(given, "result"), get(given, "id"), get(given, "name"), text))
    arguments = json_object(text)
    if arguments is None:
        return None
    if key == "toolCalls":
        return changed(given, args=arguments)
    return changed(given, functionCall=changed(get(given, "functionCall"), args=arguments))


def _answer(result: Any, call_id: Any, name: Any, text: str) -> Any:
    """A result that is just this text: one response, as Gemini CLI sends it, or a string where it was one."""
    if isinstance(result, str):
        return text
    pieces = result if isinstance(result, list) else [result]
    responses = (get(piece, "functionResponse") for piece in pieces if is_object(piece))
    body = next(filter(is_object, responses), {"id": call_id, "name": name})
    return [{"functionResponse": answered(body, text)}]


def _renamed(piece: Any, call_id: str) -> Any:
    response = get(piece, "functionResponse") if is_object(piece) else None
    return changed(piece, functionResponse=changed(response, id=call_id)) if is_object(response) else piece


def _cut(value: Any, numbers: set[int]) -> Any:
    if isinstance(value, list | tuple):
        return [item for number, item in enumerate(value) if number not in numbers]
    return ""
