"""The tool with which an agent reads back what left its conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import attrs

from .._text import shown, some
from .._validators import check_choice
from ._errors import OffloadError
from ._excerpt import UNITS, Unit, check_range
from ._handles import checked_handle
from ._store import OffloadStore
from ._threads import in_thread

TOOL_NAME = "recall_offloaded"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # What every provider takes.
_HITS = 50

_DESCRIPTION = (
    "Read back a text that was moved out of this conversation to save space: where you see '[offloaded: ... kept as "
    "offload-...]', only a preview is shown. Gives the whole text or a range of it, at most {most:,} characters at a "
    "time, or with `search` the places where it holds some words."
)
_PARAMETERS: dict[str, dict[str, Any]] = {
    "handle": {"type": "string", "description": "The handle: 'offload-' and 64 hexadecimal digits, exactly as shown."},
    "start": {"type": "integer", "description": "The first line (or character) to read, counted from 1. Default: 1."},
    "end": {"type": "integer", "description": "The last line (or character) to read, included. Default: the last."},
    "unit": {
        "type": "string",
        "enum": list(UNITS),
        "description": "What start and end count. Default: lines. Characters are for very long lines.",
    },
    "search": {
        "type": "string",
        "description": "Instead of reading a range, find these exact words (upper and lower case are the same).",
    },
}


def recall_tool(store: OffloadStore, *, name: str = TOOL_NAME, max_characters: int = 20_000) -> RecallTool:
    """The tool with which an agent reads back from this store; see :class:`RecallTool`.

    >>> tool = recall_tool(OffloadStore("memory://docs"))
    >>> tool.definition("anthropic")["name"]
    'recall_offloaded'
    >>> tool.call({"handle": "../secrets"})
    "Error: handle must be 'offload-' and 64 of the digits 0-9a-f, got '../secrets'"
    """
    return RecallTool(store, name=name, max_characters=max_characters)


def _a_store(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, OffloadStore):
        raise TypeError(f"{attribute.alias} must be an OffloadStore, got {shown(value)}")


def _a_tool_name(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{attribute.alias} must be a str, got {value!r}")
    if not _NAME.fullmatch(value):
        raise ValueError(f"{attribute.alias} must be 1 to 64 of the characters a-z A-Z 0-9 _ -, got {value!r}")


def _one_or_more(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.alias} must be an int of 1 or more, got {value!r}")
    if value < 1:
        raise ValueError(f"{attribute.alias} must be an int of 1 or more, got {value!r}")


@attrs.frozen
class RecallTool:
    """A tool of an agent: its definition for the request, and what to call when the model calls it.

    ``max_characters``: so much of a text one call gives at the most; a last line in brackets says what it was, and
    how to go on.
    """

    store: OffloadStore = attrs.field(validator=_a_store)
    name: str = attrs.field(default=TOOL_NAME, kw_only=True, validator=_a_tool_name)
    max_characters: int = attrs.field(default=20_000, kw_only=True, validator=_one_or_more)

    def definition(self, format: str) -> dict[str, Any]:
        """What goes into the list of tools of a request.

        ``format``: ``"openai_chat"`` (also for Mistral and most compatible servers, and for LangChain's
        ``bind_tools``), ``"openai_responses"``, ``"anthropic"``, ``"gemini"`` or ``"bedrock_converse"``.
        """
        check_choice("format", format, tuple(_SHAPES))
        schema = {"type": "object", "properties": deepcopy(_PARAMETERS), "required": ["handle"]}
        return _SHAPES[format](self.name, _DESCRIPTION.format(most=self.max_characters), schema)

    def call(self, arguments: str | Mapping[str, Any]) -> str:
        """The result for the model, from the arguments of its call: JSON or an object.

        Never raises for what the model or the store does: wrong arguments, an unknown handle and a store that can't be
        read give a text that begins with ``Error:`` and says what is wrong.
        """
        try:
            asked = _Asked.of(arguments)
            return self._found(asked) if asked.search else self._read(asked)
        except (OffloadError, TypeError, ValueError) as error:
            return f"Error: {error}"

    async def acall(self, arguments: str | Mapping[str, Any]) -> str:
        """:meth:`call` for async code: it runs in a thread."""
        return await in_thread(self.call, arguments)

    def _read(self, asked: _Asked) -> str:
        check_range(asked.start, asked.end, asked.unit)
        start, most = asked.start or 1, self.max_characters
        found = self.store._excerpt(asked.handle, start, asked.end, asked.unit, most)
        text, number, thing = found.text, found.character, "characters"
        if not text:
            return f"[nothing: the text ends ahead of {asked.unit} {start}]"
        whole_lines = text.rfind("\n") + 1 if len(text) == most and not found.ends else len(text)
        if asked.unit == "lines" and whole_lines:
            text, number, thing = text[:whole_lines], start, "lines"
        size = len(text) if thing == "characters" else len(text.removesuffix("\n").split("\n"))
        last = number + size - 1
        goes_on = "the end of the text" if found.ends else f"go on with start={last + 1}"
        if thing != asked.unit and not found.ends:
            goes_on += f' and unit="{thing}"'
        # A line brings its own line feed; characters are shown to the letter.
        text = text if thing == "lines" and text.endswith("\n") else f"{text}\n"
        return f"{text}[{thing} {number}-{last}; {goes_on}]"

    def _found(self, asked: _Asked) -> str:
        hits = self.store.search(asked.handle, asked.search, limit=_HITS + 1)
        lines, room = [], self.max_characters
        for hit in hits[:_HITS]:
            line = f"line {hit.line}, character {hit.character}: {hit.text}"[:room]
            room -= len(line)
            lines.append(line)
            if not room:
                break
        more = ", and there are more" if len(lines) < len(hits) else ""
        return "\n".join([*lines, f"[{some(len(lines), 'place')} found{more}]"])


@attrs.frozen
class _Asked:
    """The arguments of a call, read as kindly as they can be understood."""

    handle: str
    start: int | None
    end: int | None
    unit: Unit
    search: str

    @classmethod
    def of(cls, arguments: object) -> _Asked:
        given = _object(arguments)
        for name in given:
            if name not in _PARAMETERS:
                raise ValueError(f"arguments must be among {', '.join(_PARAMETERS)}, got {name[:50]!r}")
        if "handle" not in given:
            raise ValueError("handle is missing: give it exactly as it was shown")
        unit, search = given.get("unit", "lines"), given.get("search", "")
        check_choice("unit", unit, UNITS)
        if not isinstance(search, str):
            raise TypeError(f"search must be a string, got {shown(search)}")
        return cls(checked_handle(given["handle"]), _number("start", given), _number("end", given), unit, search)


def _object(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise ValueError("arguments must be a JSON object, and this is no JSON") from None
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments must be a JSON object, got {shown(arguments)}")
    # A provider's strict mode sends null for what the model leaves out.
    return {str(name): value for name, value in arguments.items() if value is not None}


def _number(name: str, given: Mapping[str, Any]) -> int | None:
    """A number, also as models write it at times: 3.0, or "3"."""
    value = given.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
        return int(value)
    return value


def _openai_chat(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _openai_responses(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


def _anthropic(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


def _gemini(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"functionDeclarations": [{"name": name, "description": description, "parameters": schema}]}


def _bedrock_converse(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "description": description, "inputSchema": {"json": schema}}}


_SHAPES: dict[str, Callable[[str, str, dict[str, Any]], dict[str, Any]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock_converse": _bedrock_converse,
}
