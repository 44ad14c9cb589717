"""OpenAI chat completions: ``role`` and ``content``, calls in ``tool_calls``, results in ``tool`` messages.

Reads dicts as sent and the objects of the ``openai``, ``mistralai`` and ``ollama`` packages, and what gateways and
local servers make of the same shape. ``developer`` is a system role. The deprecated ``function_call`` and
its ``function`` message are a call and its result, tied by the function's name. Ollama's calls have no
id, and its results name the tool: they are tied by order and name.

Reasoning that is sent back stands under different names: ``reasoning_content`` (DeepSeek, Qwen and many
servers), ``reasoning`` (Groq, OpenRouter, vLLM), ``thinking`` (Ollama), ``reasoning_details`` (OpenRouter),
``thinking_blocks`` (LiteLLM); where the same is there twice, it counts once. Or it is a part of the content,
``thinking`` (Mistral; Claude behind a gateway).

The overhead of 4 tokens a message is 3 for the frame and 1 for the role, from OpenAI's cookbook
"How to count tokens with tiktoken" (2023 to 2025, models from gpt-3.5-turbo-0613 on).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from .._messages import MEDIA, REASONING, TEXT, TOOL, TOOL_CALL, TOOL_RESULT, Media, Message, Part, Role
from .._text import shown
from ..counters import MediaCosts, OpenAIMediaCosts
from ._base import (
    PAIRS,
    Format,
    Place,
    changed,
    get,
    identity,
    is_list,
    is_object,
    items,
    kind_of,
    part_kind,
    read_as,
    role_of,
    string,
    wrong,
)
from ._media import media
from ._opaque import json_text, opaque
from ._openai_chat import (
    THOUGHT_LISTS,
    THOUGHT_TEXTS,
    answering,
    given,
    joined_content,
    kept,
    rewritten,
    saying_instead,
)
from ._parts import merged
from ._writing import own_list, read_back
from .rules import NotAdjacent, Rule

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_MEDIA = {
    "image_url": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "file": "document",
    "document_url": "document",
    "video_url": "video",
}
_OWN_ROLES = ("tool", "function")  # OpenAI Responses has the role "developer" too.
_OWN_KEYS = ("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content", "reasoning_details")
_JOINED_LISTS = (*THOUGHT_LISTS, "images", "tool_calls")
_JOINED_TEXTS = (*THOUGHT_TEXTS, "refusal")

_RARE = frozenset(
    {"parts", "name", "tool_name", "images", "refusal", "audio", "function_call", *THOUGHT_LISTS, *THOUGHT_TEXTS}
)
"""Fields that most messages are without."""

_Piece = tuple[Part, str, int | None]
"""A part, the field that it stands in, and its number in there where that is a list."""

_OTHERS = ("tool-call", "tool-result")
"""Parts of Vercel's AI SDK, whose messages have the same roles."""


@attrs.frozen(repr=False)
class OpenAIChatFormat(Format):
    """Messages of OpenAI's chat completions API, and of the many servers that speak it."""

    name: ClassVar[str] = "openai_chat"
    overhead: ClassVar[int] = 4
    media_costs: ClassVar[MediaCosts] = OpenAIMediaCosts()
    default_rules: ClassVar[tuple[Rule, ...]] = (*PAIRS, NotAdjacent())

    def claims(self, raw: Any) -> bool:
        """A role, a key or a part type that no other format has; or an ``openai`` object of the chat API."""
        if type(raw).__module__.startswith("openai.types.chat") or get(raw, "role") in _OWN_ROLES:
            return True
        if any(get(raw, key) is not None for key in _OWN_KEYS):
            return True
        content = get(raw, "content")
        return is_list(content) and any(kind_of(part) in _MEDIA for part in content)

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = role_of(raw, _ROLES, here, self.name)
        usual, content = _is_usual(raw), get(raw, "content")
        if role == "tool" and usual and isinstance(content, str):
            return Message(TOOL, (Part(TOOL_RESULT, content, "", self._call_id(raw, here, "tool_call_id")),))
        if not usual and content is None and is_list(get(raw, "parts")):
            raise wrong((position, "parts"), f"is no field of OpenAI's chat {read_as(self.name)}")
        parts = tuple([part for part, _, _ in self._pieces(raw, role, here)])
        name = "" if usual else string(given(raw, "name"), here, "name")
        if role == "tool":
            name = name or ("" if usual else string(given(raw, "tool_name"), here, "tool_name"))
            call_id = self._call_id(raw, here, "tool_call_id")
            # Without an id the name is what ties the result to its call; it is sent, and counts, once.
            result = merged(TOOL_RESULT, parts, name="" if call_id else name, call_id=call_id)
            return Message(TOOL, (result,), name if call_id else "")
        if role == "function":
            called = f"function:{identity(get(raw, 'name'), here, 'name')}"
            parts = (merged(TOOL_RESULT, parts, call_id=called),)
        return Message(_ROLES[role], parts, name)

    # -- reading the pieces of a message -------------------------------------------------------

    def _pieces(self, raw: Any, role: str, here: Place) -> list[_Piece]:
        """The parts of a message in the order in which they are numbered."""
        usual, speaks = _is_usual(raw), role == "assistant"
        pieces = [] if usual or not speaks else list(self._reasoning(raw))
        content = given(raw, "content")
        if isinstance(content, str):
            pieces.append((Part(TEXT, content), "content", None))
        elif content is not None:
            listed = enumerate(items(content, here, "content", "a string or a list"))
            pieces += [(self._part(item, at), "content", number) for number, (item, at) in listed]
        if not usual:
            pieces += self._beside_content(raw, here)
        return [*pieces, *self._calls(raw, here)] if speaks else pieces

    def _reasoning(self, raw: Any) -> Iterator[_Piece]:
        for key in THOUGHT_LISTS:
            details = get(raw, key)
            if is_list(details) and details:
                yield from ((_thought(detail), key, number) for number, detail in enumerate(details))
                return
        for key in THOUGHT_TEXTS:
            text = get(raw, key)
            if isinstance(text, str) and text:
                yield Part(REASONING, text), key, None
                return

    def _beside_content(self, raw: Any, here: Place) -> Iterator[_Piece]:
        images = get(raw, "images")
        if is_list(images):
            yield from ((_medium("image", image), "images", number) for number, image in enumerate(images))
        refusal = string(given(raw, "refusal"), here, "refusal")
        if refusal:
            yield Part(TEXT, refusal), "refusal", None
        audio = get(raw, "audio")
        if get(audio, "id") or get(audio, "data"):
            yield _medium("audio", audio), "audio", None

    def _part(self, item: Any, here: Place) -> Part:
        kind = part_kind(item, here, self.name)
        if kind in ("text", "refusal"):
            return Part(TEXT, string(get(item, kind), here, kind))
        if kind in ("thinking", "redacted_thinking"):
            return _thought(item)
        if kind in _OTHERS:  # Read as some part, its call and result would come apart.
            raise wrong((*here, "type"), f"must be a part of OpenAI's chat, got {kind!r} {read_as(self.name)}")
        return _medium(_MEDIA[kind], get(item, kind)) if kind in _MEDIA else opaque(item)

    def _calls(self, raw: Any, here: Place) -> Iterator[_Piece]:
        for number, (call, at) in enumerate(items(given(raw, "tool_calls"), here, "tool_calls")):
            call_id = self._call_id(call, at, "id")
            kind, arguments = ("function", "arguments") if get(call, "custom") is None else ("custom", "input")
            yield self._call(get(call, kind), (*at, kind), call_id, arguments), "tool_calls", number
        legacy = None if _is_usual(raw) else get(raw, "function_call")
        # Some servers send an empty one along with every answer.
        if legacy is not None and (not is_object(legacy) or get(legacy, "name") or get(legacy, "arguments")):
            called = f"function:{get(legacy, 'name')}"
            yield self._call(legacy, (*here, "function_call"), called, "arguments"), "function_call", None

    def _call(self, body: Any, here: Place, call_id: str | None, arguments: str) -> Part:
        if not is_object(body):
            raise wrong(here, f"must be an object, got {shown(body)}")
        name = string(get(body, "name"), here, "name")
        return Part(TOOL_CALL, json_text(get(body, arguments)), name, call_id)

    def _call_id(self, raw: Any, here: Place, key: str) -> str | None:
        """The id of a call, or of the call that a message answers; None where the server gives none."""
        return string(given(raw, key), here, key) or None

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; reasoning by itself is nothing that could be sent."""
        role = get(raw, "role")
        if role in _OWN_ROLES:
            return None
        gone: dict[str, set[int | None]] = {}
        stays = False
        for number, (part, key, place) in enumerate(self._pieces(raw, role, (0,))):
            if number in parts:
                gone.setdefault(key, set()).add(place)
            elif part.kind is not REASONING:
                stays = True
        if not stays:
            return None
        fields = {key: kept(get(raw, key), places) for key, places in gone.items()}
        if not fields.keys().isdisjoint((*THOUGHT_LISTS, *THOUGHT_TEXTS)):
            # The same reasoning may stand there under another name as well.
            fields |= {key: None for key in (*THOUGHT_LISTS, *THOUGHT_TEXTS) if key not in fields}
        return rewritten(raw, fields)

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what a custom tool takes may be any text."""
        role = get(raw, "role")
        if role in _OWN_ROLES:
            return answering(raw, texts[0])
        pieces = self._pieces(raw, role, (0,))
        fields: dict[str, Any] = {}
        for number, text in texts.items():
            _, key, place = pieces[number]
            written = saying_instead(key, get(raw, key) if place is None else get(raw, key)[place], text)
            if written is None:
                return None
            if place is None:
                fields[key] = written
            else:
                own_list(fields, raw, key)[place] = written
        return changed(raw, **fields)

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return None if role is TOOL else {"role": role.value, "content": text}

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; the id of a deprecated call is the name of its function."""
        role = get(raw, "role")
        if role in _OWN_ROLES:
            return changed(raw, tool_call_id=call_id) if role == "tool" else None
        _, key, number = self._pieces(raw, role, (0,))[part]
        if key != "tool_calls" or number is None:
            return None
        calls = list(get(raw, "tool_calls"))
        calls[number] = changed(calls[number], id=call_id)
        return changed(raw, tool_calls=calls)

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; results, sound and signed reasoning stay by themselves."""
        if get(first, "role") != get(second, "role") or given(first, "name") != given(second, "name"):
            return None
        views = self.read(first, 0), self.read(second, 0)
        both = first, second
        if any(view.role is TOOL or view.signed for view in views):
            return None
        if any(get(raw, "audio") or get(raw, "function_call") for raw in both):
            return None
        fields: dict[str, Any] = {"content": joined_content(*(given(raw, "content") for raw in both))}
        for key in _JOINED_LISTS:
            fields[key] = [item for raw in both for item in given(raw, key) or ()]
        for key in _JOINED_TEXTS:
            fields[key] = "\n\n".join([text for raw in both if (text := given(raw, key))])
        joined = {key: value for key, value in fields.items() if value}
        return changed(first, **joined)


def _is_usual(raw: Any) -> bool:
    """Whether a message has none of the rare fields: one look at a dict, where an object may answer for any."""
    return isinstance(raw, dict) and _RARE.isdisjoint(raw)


def _medium(kind: str, carrier: Any = None) -> Part:
    return Part(MEDIA, media=(media(kind, carrier),))


def _thought(detail: Any) -> Part:
    """One piece of reasoning: text (Mistral: a list of parts), a summary, or encrypted ``data``."""
    text = next((text for key in ("text", "summary", "thinking") if (text := get(detail, key)) is not None), "")
    hidden = (Media("encrypted_reasoning"),) if get(detail, "data") else ()
    if is_list(text):  # Mistral's, which no signature binds.
        return Part(REASONING, "\n".join(map(_words, text)), media=hidden)
    said = text if isinstance(text, str) else opaque(text).text
    return Part(REASONING, said, media=hidden, signed=_signed(detail))


def _signed(detail: Any) -> bool:
    """Whether it is Anthropic's, who alone binds reasoning to what stands before it; ``format`` is OpenRouter's."""
    written_by = get(detail, "format")
    if isinstance(written_by, str) and written_by:
        return written_by.startswith("anthropic") and bool(get(detail, "signature") or get(detail, "data"))
    return bool(get(detail, "signature")) or kind_of(detail) == "redacted_thinking"


def _words(part: Any) -> str:
    text = get(part, "text")
    return text if isinstance(text, str) else opaque(part).text
