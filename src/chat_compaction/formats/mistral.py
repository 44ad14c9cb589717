"""Mistral's chat completions: OpenAI's shape, with rules of its own about who speaks after whom.

Reads dicts as sent and the ``mistralai`` package's own objects. Reasoning is a part of the content, ``thinking``,
which holds a list of parts. A call's id of ``"null"`` is the package's word for none.

Mistral does not publish the frame of a message; 4 tokens are our estimate.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from ._base import PAIRS, Place, get, is_list, kind_of, module_of
from .openai_chat import OpenAIChatFormat
from .rules import FirstUser, NotAdjacent, Rule, SystemAfterUser, UserAfterTool


@attrs.frozen(repr=False)
class MistralFormat(OpenAIChatFormat):
    """Messages of Mistral's chat completions API."""

    name: ClassVar[str] = "mistral"
    default_rules: ClassVar[tuple[Rule, ...]] = (*PAIRS, NotAdjacent(), FirstUser(), UserAfterTool(), SystemAfterUser())

    def claims(self, raw: Any) -> bool:
        """A part type or a shape of one that only this format has; or a ``mistralai`` object."""
        if module_of(raw) == "mistralai":
            return True
        content = get(raw, "content")
        return is_list(content) and any(map(_is_own, content))

    def _call_id(self, raw: Any, here: Place, key: str) -> str | None:
        call_id = super()._call_id(raw, here, key)
        return None if call_id == "null" else call_id


def _is_own(part: Any) -> bool:
    kind = kind_of(part)
    return kind == "document_url" or (kind == "thinking" and is_list(get(part, "thinking")))
