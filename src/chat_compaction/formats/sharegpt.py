"""ShareGPT conversations: ``from`` and ``value``, as data sets for fine-tuning have them.

The roles are those of LLaMA-Factory's data set documentation and their usual other names; ``role`` and
``content`` may stand for ``from`` and ``value``. A call is the whole text of a ``function_call``, or of a
``gpt`` message with ``<tool_call>`` in it; calls have no ids, so results are tied to them by order.

Such lists are made into a chat template of the model's before they are sent; 4 tokens a message are our
estimate for its frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from .._messages import Message, Part, PartKind, Role
from .._text import shown
from ._base import MAPPINGS, PAIRS, Format, changed, get, string, wrong
from ._writing import read_back
from .rules import Alternation, FirstUser, Rule

_ROLES = {
    "human": Role.USER,
    "user": Role.USER,
    "gpt": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "bing": Role.ASSISTANT,
    "bard": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "function_call": Role.ASSISTANT,
    "observation": Role.TOOL,
    "tool": Role.TOOL,
    "function_response": Role.TOOL,
    "tool_response": Role.TOOL,
}
_USUAL = {Role.USER: "human", Role.ASSISTANT: "gpt", Role.SYSTEM: "system"}
_OPENAI = {Role.USER: "user", Role.ASSISTANT: "assistant"}
_CALL_TAG = "<tool_call>"


@attrs.frozen(repr=False)
class ShareGPTFormat(Format):
    """Messages of a ShareGPT conversation."""

    name: ClassVar[str] = "sharegpt"
    overhead: ClassVar[int] = 4
    default_rules: ClassVar[tuple[Rule, ...]] = (*PAIRS, FirstUser(), Alternation())

    def claims(self, raw: Any) -> bool:
        """Both ``from`` and ``value``, which no other format has."""
        return isinstance(raw, MAPPINGS) and "from" in raw and "value" in raw

    def read(self, raw: Any, position: int) -> Message:
        """One message; see :class:`~chat_compaction.formats.Format`."""
        here = (position,)
        speaker, content = _keys(raw)
        name = get(raw, speaker)
        if not isinstance(name, str) or name not in _ROLES:
            what = "is missing" if name is None else f"must be one of {', '.join(_ROLES)}, got {shown(name)}"
            raise wrong((*here, speaker), f"{what} (read as {self.name!r}; format= names another)")
        text = string(get(raw, content), here, content)
        role = _ROLES[name]
        kind = PartKind.TEXT
        if role is Role.TOOL:
            kind = PartKind.TOOL_RESULT
        elif name == "function_call" or (role is Role.ASSISTANT and _CALL_TAG in text):
            kind = PartKind.TOOL_CALL
        # A result without text is a result all the same.
        return Message(role, (Part(kind, text),) if text or kind is not PartKind.TEXT else ())

    @read_back
    def with_texts(self, raw: Any, texts: Mapping[int, str]) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a call holds the tool's name, too, and stays as it is."""
        if self.read(raw, 0).calls:
            return None
        return changed(raw, **{_keys(raw)[1]: texts[0]})

    def saying(self, raw: Any, text: str, role: Role = Role.ASSISTANT) -> Any | None:
        """See :class:`~chat_compaction.formats.Format`; a text that would be taken for a call can't be said."""
        speaker, content = _keys(raw)
        names = _OPENAI if get(raw, speaker) in _OPENAI.values() else _USUAL
        if role not in names or (role is Role.ASSISTANT and _CALL_TAG in text):
            return None
        return {speaker: names[role], content: text}

    def joined(self, first: Any, second: Any) -> Any | None:
        """One message with both texts, where one speaker says both; calls and results are never joined."""
        views = (self.read(first, 0), self.read(second, 1))
        if any(part.kind is not PartKind.TEXT for view in views for part in view.parts):
            return None
        if views[0].role is not views[1].role:
            return None
        texts = (get(message, _keys(message)[1]) for message in (first, second))
        return changed(first, **{_keys(first)[1]: "\n\n".join(text for text in texts if text)})


def _keys(raw: Any) -> tuple[str, str]:
    """The fields for who speaks and for what is said."""
    speaker = "role" if get(raw, "from") is None and get(raw, "role") is not None else "from"
    content = "content" if get(raw, "value") is None and get(raw, "content") is not None else "value"
    return speaker, content
