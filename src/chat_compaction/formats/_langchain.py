"""The parts of a LangChain message, each with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .._messages import Media, Part, PartKind
from ._base import MAPPINGS, Place, changed, get, identity, is_list, is_object, items, kind_of, string
from ._media import media
from ._opaque import json_text, opaque
from ._parts import compaction, merged
from ._writing import arguments_like, json_object, own_list

_MEDIA = {"image_url": "image", "input_audio": "audio", "document": "document", "file": "document", "media": ""}
_MEDIA |= {kind: kind for kind in ("image", "audio", "video")}
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call", "custom_tool_call")
_SERVER_CALLS = ("server_tool_call", "server_tool_use", "mcp_tool_use")
CALL_LISTS = ("tool_calls", "invalid_tool_calls")

Located = tuple[Part, str, int]
"""A part, the field that it stands in, and its number there."""


def located(kind: str, body: Any, here: Place) -> list[Located]:
    """Every part of a message, in the order of its view."""
    calls = list(_calls(body, here)) if kind == "ai" else []
    known = {part.call_id for part, _, _ in calls}
    content = list(_content(body, here, known))
    reasoned = any(part.kind is PartKind.REASONING for part, _, _ in content)
    reasoning = list(_extra_reasoning(body)) if kind == "ai" and not reasoned else []
    return [*reasoning, *content, *calls]


def _content(body: Any, here: Place, known: set[str | None]) -> Iterator[Located]:
    content = get(body, "content")
    if isinstance(content, str):
        if content:
            yield Part(PartKind.TEXT, content), "content", 0
        return
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in _listed(content)]
    signs = _binds(body)
    for number, (block, at) in enumerate(
        items(blocks if is_list(content) else content, here, "content", "a string or a list")
    ):
        if kind_of(block) == "input_json_delta" or (kind_of(block) in _CALL_BLOCKS and call_id_of(block) in known):
            continue  # It stands among the calls, too.
        yield _part(block, at, signs), "content", number


def _listed(content: Any) -> Any:
    return content if is_list(content) else ()


def _part(block: Any, here: Place, signs: bool) -> Part:
    kind = kind_of(block)
    if kind in ("text", "refusal", "output_text"):
        text = get(block, "text") if kind != "refusal" else get(block, "refusal")
        return Part(PartKind.TEXT, string(text, here, "text"))
    if kind in ("thinking", "reasoning", "reasoning_content", "redacted_thinking"):
        return _reasoning(block, signs)
    if kind in _CALL_BLOCKS or kind in _SERVER_CALLS:
        arguments = next(
            (get(block, key) for key in ("args", "input", "arguments") if get(block, key) is not None), None
        )
        name = get(block, "name")
        return Part(PartKind.TOOL_CALL, json_text(arguments), name if isinstance(name, str) else "", call_id_of(block))
    if kind == "server_tool_result" or kind.endswith("_tool_result"):
        call_id = get(block, "tool_call_id") or get(block, "tool_use_id")
        text = opaque({key: get(block, key) for key in ("content", "output") if get(block, key) is not None})
        return merged(PartKind.TOOL_RESULT, [text], call_id=call_id if isinstance(call_id, str) else None)
    if kind == "compaction":
        return compaction(block)
    if kind not in _MEDIA:
        return opaque(block)
    data = next((get(block, key) for key in ("source", kind, "image_url", "file") if is_object(get(block, key))), block)
    base64 = get(block, "base64")
    mime = get(block, "mime_type")
    found = media(_MEDIA[kind], base64 or data, mime if isinstance(mime, str) else "", get(block, "detail") or "")
    return Part(PartKind.MEDIA, media=(found,))


def _reasoning(block: Any, signs: bool) -> Part:
    """Thinking of Anthropic's, reasoning of LangChain's own, of Bedrock's, or an item of the Responses API."""
    inner = get(block, "reasoning_content")
    inner = inner if is_object(inner) else block
    texts = (get(inner, key) for key in ("thinking", "reasoning", "text"))
    text = next((text for text in texts if isinstance(text, str)), "")
    summary = get(block, "summary")
    if not text and is_list(summary):
        text = "\n".join(t for piece in summary if isinstance(t := get(piece, "text"), str))
    signature = get(inner, "signature") or get(get(block, "extras"), "signature")
    redacted = kind_of(block) == "redacted_thinking"
    encrypted = redacted or get(block, "encrypted_content") or (signature and not text)
    flat = (Media("encrypted_reasoning"),) if encrypted else ()
    return Part(PartKind.REASONING, text, media=flat, signed=signs and bool(signature or redacted))


def _binds(body: Any) -> bool:
    """Whether a signature in here binds to what stands ahead: Google's do not."""
    provider = get(get(body, "response_metadata"), "model_provider")
    return not (isinstance(provider, str) and provider.startswith("google"))


def _calls(body: Any, here: Place) -> Iterator[Located]:
    extra = get(body, "additional_kwargs")
    found = False
    for key in CALL_LISTS:
        for number, (call, at) in enumerate(items(get(body, key), here, key)):
            found = True
            yield _call(call, at, "args"), key, number
    if found or not is_object(extra):
        return
    at = (*here, "additional_kwargs")
    for number, (call, place) in enumerate(items(get(extra, "tool_calls"), at, "tool_calls")):
        part = _call(get(call, "function") or {}, (*place, "function"), "arguments")
        yield attrs.evolve(part, call_id=call_id_of(call)), "additional_kwargs.tool_calls", number
    if is_object(get(extra, "function_call")):
        legacy = _call(get(extra, "function_call"), (*at, "function_call"), "arguments")
        yield legacy, "additional_kwargs.function_call", 0


def _call(call: Any, here: Place, arguments: str) -> Part:
    call_id = get(call, "id")
    if call_id is not None:
        identity(call_id, here, "id")
    return Part(PartKind.TOOL_CALL, json_text(get(call, arguments)), string(get(call, "name"), here, "name"), call_id)


def call_id_of(block: Any) -> str | None:
    """The id of a call that a block of the content makes: an item of the Responses API has two."""
    found = get(block, "call_id") or get(block, "id") if is_object(block) else None
    return found if isinstance(found, str) else None


def named(block: Any, call_id: str) -> Any:
    """The block with another id."""
    return changed(block, **{"call_id" if get(block, "call_id") else "id": call_id})


def said_instead(kind: str, body: Any, texts: Mapping[int, str]) -> dict[str, Any] | None:
    """The fields of a message that says something else; None where that can't be written."""
    places = located(kind, body, (0,))
    fields: dict[str, Any] = {}
    asked: dict[str, str] = {}
    for part, text in texts.items():
        found, field, number = places[part]
        if found.kind is PartKind.TOOL_CALL and found.call_id is not None:
            asked[found.call_id] = text
        if field.startswith("additional_kwargs"):
            continue
        given = get(body, field)
        written = _instead(given if isinstance(given, str) else given[number], text)
        if written is None:
            return None
        if isinstance(given, str):
            fields[field] = written
        else:
            own_list(fields, body, field)[number] = written
    if any(json_object(text) is None for text in asked.values()):
        return None
    return fields | _asked_elsewhere({**{key: get(body, key) for key in _ALSO}, **fields}, asked) if asked else fields


def _instead(given: Any, text: str) -> Any | None:
    """A text, a block or a call with another text."""
    if isinstance(given, str):
        return text
    kind = kind_of(given)
    if kind in ("text", "refusal", "output_text"):
        return changed(given, **{"refusal" if kind == "refusal" else "text": text})
    if kind in _SERVER_CALLS:
        return None
    key = next((key for key in ("args", "input", "arguments") if get(given, key) is not None), "args")
    arguments = arguments_like(get(given, key), text)
    return None if arguments is None else changed(given, **{key: arguments})


_ALSO = ("content", "additional_kwargs", "tool_call_chunks")
"""Where a call stands beside the list of calls."""


def _asked_elsewhere(fields: dict[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
    """The fields that tell of a call once more, with what it asks for now."""
    content, extra, chunks = (fields[key] for key in _ALSO)
    found: dict[str, Any] = {}
    if is_list(content):
        found["content"] = [_asking(block, asked, *_CALL_BLOCKS) for block in content]
    if is_list(get(extra, "tool_calls")):
        calls = [_asking(call, asked) for call in get(extra, "tool_calls")]
        found["additional_kwargs"] = changed(extra, tool_calls=calls)
    if is_list(chunks) and chunks:
        found["tool_call_chunks"] = [_asking(chunk, asked) for chunk in chunks]
    return found


def _asking(call: Any, asked: Mapping[str, str], *kinds: str) -> Any:
    """The call with what it asks for now, if it is one of these: in a block, in a chunk, or as OpenAI has it."""
    text = asked.get(call_id_of(call) or "")
    if text is None or (kinds and kind_of(call) not in kinds):
        return call
    inner = get(call, "function")
    if is_object(inner):
        return changed(call, function=_asking_for(inner, text))
    return _asking_for(call, text)


def _asking_for(call: Any, text: str) -> Any:
    keys = ("args", "input", "arguments", "partial_json")
    return changed(call, **{key: arguments_like(given, text) for key in keys if (given := get(call, key)) is not None})


def _extra_reasoning(body: Any) -> Iterator[Located]:
    extra = get(body, "additional_kwargs")
    if not is_object(extra):
        return
    text, item = get(extra, "reasoning_content"), get(extra, "reasoning")
    if isinstance(text, str) and text:
        yield Part(PartKind.REASONING, text), "additional_kwargs.reasoning_content", 0
    elif is_object(item):
        yield _reasoning(item, False), "additional_kwargs.reasoning", 0


def extra_without(extra: Any, fields: set[str], calls: set[str | None]) -> Any | None:
    """``additional_kwargs`` without these; None where it stays as it is."""
    if not isinstance(extra, MAPPINGS):
        return None
    keys = {field.removeprefix("additional_kwargs.") for field in fields if field.startswith("additional_kwargs.")}
    kept = {key: value for key, value in extra.items() if key not in keys or key == "tool_calls"}
    if is_list(extra.get("tool_calls")):
        kept["tool_calls"] = [call for call in extra["tool_calls"] if call_id_of(call) not in calls]
    return kept if kept != extra else None


def blocks_of(content: Any) -> list[Any]:
    """The content as a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())
