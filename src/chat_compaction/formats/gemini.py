"""Gemini contents: ``role`` and ``parts``, calls in ``functionCall``, results in ``functionResponse``.

Reads dicts as sent, in camelCase or snake_case, and the ``google-genai`` package's own objects. A
message without a role is the user's. Calls and results have an id or none; without one they are tied by
order and name. ``thoughtSignature`` is never text: it is encrypted, stays on its part, and is bound to
that part, not to what stands before it. The system instruction and the tools travel apart from the list:
give them as ``reserved`` tokens.

Google does not publish the frame of a message; 2 tokens are our estimate, one more than the sample of its
token counting page shows for a prompt (11 for a text of 10).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from .._text import shown
from ..counters import GeminiMediaCosts, MediaCosts
from ._base import (
    MAPPINGS,
    PAIRS,
    Format,
    Place,
    changed,
    cut_list,
    get,
    is_list,
    is_object,
    items,
    kind_of,
    module_of,
    read_as,
    role_of,
    string,
    wrong,
)
from ._media import media
from ._opaque import json_text, opaque
from ._writing import json_object, read_back, replaced
from .rules import CallAfterUser, EmptyContent, FirstUser, NotAdjacent, Rule

_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.TOOL}
_CALLS = ("functionCall", "toolCall")
_RESULTS = ("functionResponse", "toolResponse")
_DATA = ("inlineData", "fileData")
_OUTPUT = {"executableCode": "code", "codeExecutionResult": "output"}
_SIGNS = ("thoughtSignature", "thought")
_SNAKE = {
    name: re.sub("([A-Z])", r"_\1", name).lower()
    for name in (*_CALLS, *_RESULTS, *_DATA, *_OUTPUT, *_SIGNS, "toolType", "mimeType", "mediaResolution")
}
_KINDS = (*_CALLS, *_RESULTS, *_DATA, *_OUTPUT)


@attrs.frozen(repr=False)
class GeminiFormat(Format):
    """Contents of Google's Gemini API and of Vertex AI."""

    name: ClassVar[str] = "gemini"
    overhead: ClassVar[int] = 2
    media_costs: ClassVar[MediaCosts] = GeminiMediaCosts()
    default_rules: ClassVar[tuple[Rule, ...]] = (
        *PAIRS,
        NotAdjacent(turns=1),
        FirstUser(),
        CallAfterUser(),
        EmptyContent(spaces="allowed"),
    )

    def claims(self, raw: Any) -> bool:
        """The role ``model``, ``parts`` that are named by their keys, or a ``google`` object."""
        if module_of(raw) == "google" or get(raw, "role") == "model":
            return True
        parts = get(raw, "parts")
        return is_list(parts) and any(map(_owns, parts))

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = role_of(raw, _ROLES, here, self.name) if get(raw, "role") else "user"
        parts = get(raw, "parts")
        if parts is None and get(raw, "content") is not None:
            raise wrong((*here, "parts"), f"is missing {read_as(self.name)}")
        return Message(_ROLES[role], tuple([self._part(part, at) for part, at in items(parts, here, "parts")]))

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return cut_list(raw, "parts", parts)

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a part with a signature stays as it is.

        So does what Google's own tools were asked and found. A result stays under the key that it has, or is the
        ``output``.
        """
        parts = get(raw, "parts") or ()
        written = {number: _saying_instead(parts[number], text) for number, text in texts.items()}
        return None if None in written.values() else changed(raw, parts=replaced(parts, written))

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; an object of Google's beside objects of Google's."""
        name = {Role.ASSISTANT: "model", Role.USER: "user"}.get(role)
        content = {"role": name, "parts": [{"text": text}]}
        if name is None:
            return None
        return content if isinstance(raw, MAPPINGS) else type(raw).model_validate(content)

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; the ids of Google's own tools can't be chosen."""
        parts = list(get(raw, "parts"))
        for name in ("functionCall", "functionResponse"):
            for key in (name, _SNAKE[name]):
                body = get(parts[part], key)
                if body is not None:
                    parts[part] = changed(parts[part], **{key: changed(body, id=call_id)})
                    return changed(raw, parts=parts)
        return None

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; results stay apart from what the user says."""
        messages = [self.read(raw, 0) for raw in (first, second)]
        if messages[0].role is not messages[1].role or messages[0].answers is not messages[1].answers:
            return None
        return changed(first, parts=[*(get(first, "parts") or ()), *(get(second, "parts") or ())])

    # -- reading -------------------------------------------------------------------------------

    def _part(self, part: Any, here: Place) -> Part:
        kind = _kind(part)
        if not kind:
            return self._text(part, here)
        body, at = _field(part, kind), (*here, kind)
        if not is_object(body):
            raise wrong(at, f"must be an object, got {shown(body)}")
        if kind in _CALLS:
            return Part(PartKind.TOOL_CALL, json_text(get(body, "args")), _tool(body, at), _id(body, at))
        if kind in _RESULTS:
            inner = [self._part(item, place) for item, place in items(get(body, "parts"), at, "parts")]
            shown_too = tuple([one for item in inner for one in item.media])
            text = response_text(get(body, "response"))
            return Part(PartKind.TOOL_RESULT, text, _tool(body, at), _id(body, at), shown_too)
        if kind in _DATA:
            # By MIME type; a link to YouTube goes without one.
            unnamed = "" if _field(body, "mimeType") else "video"
            return Part(PartKind.MEDIA, media=(media(unnamed, body, detail=_field(part, "mediaResolution")),))
        key = _OUTPUT[kind]
        return Part(PartKind.OPAQUE, string(get(body, key), at, key))

    def _text(self, part: Any, here: Place) -> Part:
        """Text, a thought, or a signature that has a part for itself."""
        text = string(get(part, "text"), here, "text")
        if _field(part, "thought") is True or (not text and _field(part, "thoughtSignature")):
            return Part(PartKind.REASONING, text)
        if get(part, "text") is not None or not isinstance(part, MAPPINGS) or not part:
            return Part(PartKind.TEXT, text)
        if kind_of(part):
            raise wrong(here, f"has a type, as parts of other formats have {read_as(self.name)}")
        return opaque(part)


def _owns(part: Any) -> bool:
    if module_of(part) == "google":
        return True
    # Other formats with ``parts`` give each a ``type``, or are objects.
    return isinstance(part, MAPPINGS) and not kind_of(part) and bool(_kind(part) or "text" in part)


def response_text(response: Any) -> str:
    """What a function answers: the API has an object there, which often holds one text and nothing else."""
    key = response_key(response)
    return json_text(response if key is None else response[key])


def response_key(response: Any) -> str | None:
    """The one key of a response that is just a text."""
    if not isinstance(response, MAPPINGS) or len(response) != 1:
        return None
    [(key, value)] = response.items()
    return key if isinstance(key, str) and isinstance(value, str) else None


def _saying_instead(part: Any, text: str) -> Any | None:
    """The part with another text; None for those that only Google writes."""
    if _field(part, "thoughtSignature"):
        return None
    kind = _kind(part)
    if not kind:
        return changed(part, text=text)
    name = kind if get(part, kind) is not None else _SNAKE[kind]
    body = get(part, name)
    if kind == "functionCall":
        arguments = json_object(text)
        return None if arguments is None else changed(part, **{name: changed(body, args=arguments)})
    if kind == "functionResponse":
        return changed(part, **{name: answered(body, text)})
    return None


def answered(body: Any, text: str) -> Any:
    """A function's response that is just this text."""
    response = {response_key(get(body, "response")) or "output": text}
    if isinstance(body, MAPPINGS):
        return {key: value for key, value in {**body, "response": response}.items() if key != "parts"}
    return changed(body, response=response, **({"parts": None} if get(body, "parts") else {}))


def _field(raw: Any, name: str) -> Any:
    """A field by its camelCase name, or as Python spells it."""
    value = get(raw, name)
    return get(raw, _SNAKE[name]) if value is None else value


def _kind(part: Any) -> str:
    """The field that says what a part is; empty for text, and where we know none."""
    return next((name for name in _KINDS if _field(part, name) is not None), "")


def _tool(body: Any, here: Place) -> str:
    """The name of a function, or the type of a tool that Google runs."""
    kind = _field(body, "toolType")
    return string(get(body, "name"), here, "name") if kind is None else str(getattr(kind, "value", kind))


def _id(body: Any, here: Place) -> str | None:
    return string(get(body, "id"), here, "id") or None
