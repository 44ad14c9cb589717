"""What counts for media and encrypted reasoning, which no counter sees (rule C1)."""

from __future__ import annotations

import attrs

from .._validators import non_negative


@attrs.frozen(kw_only=True)
class MediaCosts:
    """Tokens for each part that is not text, one flat figure a kind.

    The length of the base64 says nothing about the tokens, so it is never used (rule C1). Providers go by size and
    length, which these figures do not see: set what fits your media. Where providers differ, the default is on the
    high side, since a context that is counted too small overflows.

    ``image``
        1,600: Anthropic scales an image down to about that, width x height / 750. From Claude Opus 4.7 on the limit is
        three times higher. Gemini takes 258 for each tile of 768 x 768 pixels, and by default 1,120 from version 3 on.
    ``audio``
        1,920: a minute at the 32 tokens a second of Gemini. OpenAI takes 10 a second, so 600.
    ``document``
        10,000: a PDF of four pages at Anthropic's 1,500 to 3,000 tokens a page; Gemini takes 258 to 560 a page.
    ``video``
        17,400: a minute at Gemini's 258 tokens for one frame a second and 32 for the sound. Version 3 takes 70 a frame.
    ``encrypted_reasoning``
        640: the mean over 123 recorded responses of OpenAI Codex of the reasoning tokens behind one encrypted item.
        Other encrypted content, such as that of a search result, costs the same.
    ``other``
        1,600, as an image: any kind that is not listed here.

    Raises:
        TypeError, ValueError: if a cost is not an int of 0 or more.
    """

    image: int = attrs.field(default=1_600, validator=non_negative)
    audio: int = attrs.field(default=1_920, validator=non_negative)
    document: int = attrs.field(default=10_000, validator=non_negative)
    video: int = attrs.field(default=17_400, validator=non_negative)
    encrypted_reasoning: int = attrs.field(default=640, validator=non_negative)
    other: int = attrs.field(default=1_600, validator=non_negative)

    def cost(self, kind: str) -> int:
        """The tokens of one part of a kind: the name of a field; any other kind costs ``other``."""
        return int(getattr(self, kind)) if kind in _KINDS else self.other


_KINDS = frozenset(field.name for field in attrs.fields(MediaCosts))
