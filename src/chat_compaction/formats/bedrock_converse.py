"""Bedrock Converse: content blocks named by their one key, calls in ``toolUse``, results in ``toolResult``.

Reads dicts as boto3 takes and gives them. A ``cachePoint`` says nothing and is no part. The ``system``
blocks and the tool schemas travel apart from the list: give them as ``reserved`` tokens.

What a message costs beyond its text depends on the model behind; 4 tokens are our estimate, as for
Anthropic's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from .._messages import Media, Message, Part, PartKind, Role
from .._text import shown
from ..counters import AnthropicMediaCosts, MediaCosts
from ._base import (
    MAPPINGS,
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
    read_as,
    role_of,
    string,
    wrong,
)
from ._media import media
from ._opaque import json_text, opaque
from ._parts import merged
from ._writing import json_object, read_back, replaced
from .rules import Alternation, EmptyContent, FirstUser, NotAdjacent, RepeatedId, ResultsFirst, Rule, SystemPlace

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_MEDIA = ("image", "video", "audio")
_MEMBERS = (
    *("text", "toolUse", "toolResult", "reasoningContent", *_MEDIA, "document", "guardContent", "citationsContent"),
    *("searchResult", "json", "toolAddition", "toolRemoval"),
)


@attrs.frozen(repr=False)
class BedrockConverseFormat(Format):
    """Messages of Amazon Bedrock's Converse API."""

    name: ClassVar[str] = "bedrock_converse"
    overhead: ClassVar[int] = 4
    media_costs: ClassVar[MediaCosts] = AnthropicMediaCosts()
    default_rules: ClassVar[tuple[Rule, ...]] = (
        *PAIRS,
        NotAdjacent(turns=1),
        RepeatedId(),
        FirstUser(),
        Alternation(),
        SystemPlace(),
        ResultsFirst(),
        EmptyContent(),
    )
    request_options: ClassVar[Mapping[str, Any]] = {
        "additionalModelRequestFields": {
            "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
            "anthropic_beta": ["thinking-binding-controls-2026-08-01"],
        }
    }

    def claims(self, raw: Any) -> bool:
        """A content block without a ``type``, named by a key that Converse has."""
        content = get(raw, "content")
        return is_list(content) and any(
            isinstance(block, MAPPINGS) and (_member(block) or _is_cache_point(block)) and get(block, "type") is None
            for block in content
        )

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        role = _ROLES[role_of(raw, _ROLES, here, self.name)]
        content = get(raw, "content")
        if isinstance(content, str):  # Not as boto3 takes it, but it says what it says.
            return Message(role, (Part(PartKind.TEXT, content),) if content else ())
        blocks = items(content, here, "content")
        return Message(role, tuple([self._part(block, at) for block, at in blocks if not _is_cache_point(block)]))

    # -- writing -------------------------------------------------------------------------------

    def without(self, raw: Any, parts: Collection[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a cache point leaves with all that it follows."""
        content = get(raw, "content")
        if not is_list(content):
            return None if parts else changed(raw)
        numbers = _part_numbers(content)
        dropped = {numbers[part] for part in parts}
        kept = [block for number, block in enumerate(content) if number not in dropped]
        while kept and _is_cache_point(kept[0]):
            del kept[0]
        return changed(raw, content=kept) if kept else None

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; what a provider's own tools were asked and found stays."""
        content = get(raw, "content")
        if isinstance(content, str):
            return changed(raw, content=texts.get(0, content))
        numbers = _part_numbers(content or ())
        written = {numbers[part]: _saying_instead(content[numbers[part]], text) for part, text in texts.items()}
        return None if None in written.values() else changed(raw, content=replaced(content or (), written))

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`."""
        return {"role": role.value, "content": [{"text": text}]} if role in _ROLES.values() else None

    def renamed(self, raw: Any, part: int, call_id: str) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; the ids of a provider's own tools can't be chosen."""
        blocks = list(get(raw, "content"))
        number = _part_numbers(blocks)[part]
        key = _member(blocks[number])
        body = get(blocks[number], key)
        if key not in ("toolUse", "toolResult") or get(body, "type") is not None:
            return None
        blocks[number] = changed(blocks[number], **{key: changed(body, toolUseId=call_id)})
        return changed(raw, content=blocks)

    def reordered(self, raw: Any, order: Sequence[int]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; cache points go to the end."""
        blocks = get(raw, "content")
        numbers = _part_numbers(blocks)
        return changed(raw, content=[*(blocks[numbers[n]] for n in order), *filter(_is_cache_point, blocks)])

    def joined(self, first: Any, second: Any) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a user's results come first, as Claude asks."""
        role = get(first, "role")
        if role != get(second, "role") or role == "system":
            return None
        blocks = [block for raw in (first, second) for block in _blocks(get(raw, "content"))]
        if role == "user":
            blocks.sort(key=lambda block: _member(block) != "toolResult")
        return changed(first, content=blocks)

    # -- reading -------------------------------------------------------------------------------

    def _part(self, block: Any, here: Place) -> Part:
        key = _member(block)
        body, at = get(block, key), (*here, key)
        if key == "text":
            return Part(PartKind.TEXT, string(body, here, "text"))
        if key == "toolUse":
            call_id = identity(get(_object(body, at), "toolUseId"), at, "toolUseId")
            return Part(
                PartKind.TOOL_CALL, json_text(get(body, "input")), string(get(body, "name"), at, "name"), call_id
            )
        if key == "toolResult":
            call_id = identity(get(_object(body, at), "toolUseId"), at, "toolUseId")
            inner = [self._part(item, place) for item, place in items(get(body, "content"), at, "content")]
            return merged(PartKind.TOOL_RESULT, inner, call_id=call_id)
        if key == "reasoningContent":
            return _reasoning(_object(body, at), at)
        return self._said_or_shown(key, block, here)

    def _said_or_shown(self, key: str, block: Any, here: Place) -> Part:
        body, at = get(block, key), (*here, key)
        if key in _MEDIA:
            return Part(PartKind.MEDIA, media=(media(key, get(body, "source")),))
        if key == "document":
            return _document(_object(body, at), at)
        if key == "guardContent":
            text = get(body, "text")
            inner, place = (body, at) if text is None else (text, (*at, "text"))
            return self._part(inner, place)
        if key == "citationsContent":
            texts = [
                string(get(item, "text"), place, "text") for item, place in items(get(body, "content"), at, "content")
            ]
            return Part(PartKind.TEXT, "".join(texts))
        if key == "json":
            return Part(PartKind.OPAQUE, json_text(body))
        if not key and kind_of(block):
            raise wrong(here, f"has a type, as blocks of other formats have {read_as(self.name)}")
        return opaque(body if key == "searchResult" else block)


def _member(block: Any) -> str:
    """The key that says what a block is; empty where we know none."""
    return next((key for key in _MEMBERS if get(block, key) is not None), "")


def _is_cache_point(block: Any) -> bool:
    return get(block, "cachePoint") is not None


def _part_numbers(content: Iterable[Any]) -> list[int]:
    """For each part, the number of its block."""
    return [number for number, block in enumerate(content) if not _is_cache_point(block)]


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return list(content or ())


def _saying_instead(block: Any, text: str) -> Any | None:
    """The block with another text; None for those that only a provider writes."""
    key = _member(block)
    body = get(block, key)
    if key == "text":
        return changed(block, text=text)
    if key == "guardContent":
        return changed(block, guardContent=changed(body, text=changed(get(body, "text"), text=text)))
    if key == "citationsContent":
        return changed(block, citationsContent=changed(body, content=[{"text": text}]))
    if key not in ("toolUse", "toolResult") or get(body, "type") is not None:
        return None
    if key == "toolUse":
        arguments = json_object(text)
        return None if arguments is None else changed(block, toolUse=changed(body, input=arguments))
    # A text that is empty would be refused.
    return changed(block, toolResult=changed(body, content=[{"text": text}] if text else []))


def _object(body: Any, here: Place) -> Any:
    if not is_object(body):
        raise wrong(here, f"must be an object, got {shown(body)}")
    return body


def _reasoning(body: Any, here: Place) -> Part:
    """Text with a signature, text alone (models that are not Anthropic's), or what is encrypted."""
    reasoning = get(body, "reasoningText")
    if reasoning is None:
        return Part(PartKind.REASONING, media=(Media("encrypted_reasoning"),), signed=True)
    text = string(get(reasoning, "text"), (*here, "reasoningText"), "text")
    signed = bool(get(reasoning, "signature"))
    # Thinking whose display is omitted has no text; what is sent back then is the encrypted form.
    hidden = (Media("encrypted_reasoning"),) if signed and not text else ()
    return Part(PartKind.REASONING, text, media=hidden, signed=signed)


def _document(body: Any, here: Place) -> Part:
    """Its name, which the model sees, and what it holds: text as it is, any other document at a flat cost."""
    source = get(body, "source")
    parts = [Part(PartKind.TEXT, text) for key in ("name", "context") if isinstance(text := get(body, key), str)]
    if get(source, "text") is not None:
        parts.append(Part(PartKind.TEXT, string(get(source, "text"), (*here, "source"), "text")))
    elif get(source, "content") is not None:
        blocks = items(get(source, "content"), (*here, "source"), "content")
        parts += [Part(PartKind.TEXT, string(get(block, "text"), at, "text")) for block, at in blocks]
    else:
        parts.append(Part(PartKind.MEDIA, media=(media("document", source),)))
    return merged(PartKind.MEDIA, parts)
