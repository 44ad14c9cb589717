"""What counts for media and encrypted reasoning, which no counter sees (rule C1)."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

import attrs

from .._messages import Media
from .._validators import non_negative, one_of
from ._images import anthropic_tokens, gemini_tiles, openai_tokens, sides


@attrs.frozen(kw_only=True)
class MediaCosts:
    """Tokens for each part that is not text, one flat figure a kind.

    The length of the base64 says nothing about the tokens, so it is never used (rule C1). Providers go by size and
    length, which these figures do not see: set what fits your media, or take the costs of your provider,
    :class:`OpenAIMediaCosts`, :class:`AnthropicMediaCosts` or :class:`GeminiMediaCosts`. Where providers differ, the
    default is on the high side, since a context that is counted too small overflows. For a rule of your own,
    subclass this and override :meth:`cost`.

    ``image``
        1,600: about a picture of 1,000 x 1,200 pixels at Anthropic, and the most of one for its models before
        Claude 4.7. Gemini takes 1,120 for any.
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

    def cost(self, media: Media) -> int:
        """The tokens of one piece of media: the figure of its kind; any other kind costs ``other``."""
        return int(getattr(self, media.kind)) if media.kind in _KINDS else self.other


_KINDS = frozenset(field.name for field in attrs.fields(MediaCosts))


def _a_name(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{attribute.alias} must be the name of a model, got {value!r}")


@attrs.frozen(kw_only=True)
class OpenAIMediaCosts(MediaCosts):
    """OpenAI's rules: images by tiles or patches, sound by the second, a PDF by the page.

    ``model`` decides how an image is counted; fine-tuned, dated and prefixed names (``openai/gpt-4o``) are understood.
    Where it is empty or not listed, the dearer of GPT-6 and GPT-4o counts: many servers speak this format.

    - gpt-4o, gpt-4.1, gpt-5, gpt-5.1, o1, o3: a base and a figure for each tile of 512 x 512 pixels (85 and 170 for
      gpt-4o), after the image is scaled to fit 2048 x 2048 and its short side to 768; the base alone for
      ``detail="low"``.
    - gpt-5.2 and later, the minis and nanos, o4-mini: patches of 32 x 32 pixels, times 1.2 (1.5 to 2.46 for
      older small models), after the image is scaled to the limits of model and detail. From gpt-5.6 on
      ``"auto"`` and ``"original"`` scale nothing, and more than 30,000 patches are refused.

    Of an image whose size is not known, ``image`` counts, or the most that one can cost if that is less. ``audio``
    and ``document`` are for those of unknown length, ``audio_second`` and ``page`` for the rest. What the user
    says is 10 tokens a second, what the assistant says 20, hence 1,200 for a minute of unknown origin. A page of a
    PDF is sent as its text and as an image; the 3,000 tokens are our estimate, since OpenAI gives no figure.
    Deprecated small models are scaled as gpt-5.2: their own limits are published no more.

    Source: https://developers.openai.com/api/docs/guides/images-vision, "Model sizing behavior" and "Calculating
    costs", as of October 2026; https://developers.openai.com/api/docs/guides/realtime-costs for sound and
    https://developers.openai.com/api/docs/guides/file-inputs for documents, as of 2026.
    """

    image: int = attrs.field(default=3_000, validator=non_negative)
    audio: int = attrs.field(default=1_200, validator=non_negative)
    model: str = attrs.field(default="", validator=_a_name)
    page: int = attrs.field(default=3_000, validator=non_negative)
    audio_second: int = attrs.field(default=10, validator=non_negative)

    def cost(self, media: Media) -> int:
        """By size and length where they are known, else the figure of its kind."""
        if media.kind == "image":
            tokens = openai_tokens(media, self.model)
            return tokens if sides(media) else min(tokens, self.image)
        if media.kind == "audio" and media.seconds:
            return ceil(media.seconds * self.audio_second)
        if media.kind == "document" and media.pages:
            return media.pages * self.page
        return MediaCosts.cost(self, media)


@attrs.frozen(kw_only=True)
class AnthropicMediaCosts(MediaCosts):
    """Anthropic's rules: images by patches of 28 x 28 pixels, a PDF by the page.

    An image is first scaled down, its shape kept, until its long side is at most 2,576 pixels and its patches at most
    4,784; for models before Claude 4.7, which ``model`` names, 1,568 and 1,568. (Width x height / 750, given until
    2026, comes to nearly the same.) Of an image whose size is not known, ``image`` counts, or the most that one can
    cost if that is less.

    A page of a PDF is sent as its text, 1,500 to 3,000 tokens, and as an image. ``page`` is the high end of both,
    3,000 and 1,568; ``document`` is for a PDF whose pages are not known.

    Source: https://platform.claude.com/docs/en/build-with-claude/vision, and there "How Claude resizes and pads
    images" of the page on coordinates, as of September 2026;
    https://platform.claude.com/docs/en/build-with-claude/pdf-support, "Estimate your costs", as of 2026.
    """

    image: int = attrs.field(default=4_784, validator=non_negative)
    model: str = attrs.field(default="", validator=_a_name)
    page: int = attrs.field(default=4_568, validator=non_negative)

    def cost(self, media: Media) -> int:
        """By size and length where they are known, else the figure of its kind."""
        if media.kind == "image":
            tokens = anthropic_tokens(media, self.model)
            return tokens if sides(media) else min(tokens, self.image)
        if media.kind == "document" and media.pages:
            return media.pages * self.page
        return MediaCosts.cost(self, media)


_RESOLUTIONS = ("", "low", "medium", "high", "ultra_high")
_IMAGES = {"low": 280, "medium": 560, "high": 1_120, "ultra_high": 2_240}
_FRAMES = {"high": 280, "ultra_high": 280}
_PAGES = {"low": 280, "medium": 560, "high": 1_120, "ultra_high": 1_120}


@attrs.frozen(kw_only=True)
class GeminiMediaCosts(MediaCosts):
    """Gemini's rules: images by resolution or by tiles, sound and film by the second, a PDF by the page.

    From Gemini 3 on an image costs the same whatever its size: ``image``, or what a resolution says that the part
    names or the request does (``resolution``): 280 for ``"low"``, 560 for ``"medium"``, 1,120 for ``"high"``, 2,240
    for ``"ultra_high"``. So does a page of a PDF: ``page``, or 280, 560 or 1,120. A frame of a film, one a second, is
    70, or 280 from ``"high"`` on.

    For models before, which ``model`` names: 258 for an image of at most 384 x 384 pixels, else 258 for each of its
    tiles, which are two thirds of its short side, but at least 256 and at most 768 pixels wide; 258 for a page and
    for a frame, and 66 for any of them at ``"low"``.

    ``audio_second`` is 32, the older figure; Gemini 3 takes 25. A film has sound.

    Source: https://ai.google.dev/gemini-api/docs/media-resolution (updated on 2026-09-23),
    https://ai.google.dev/gemini-api/docs/tokens and https://ai.google.dev/gemini-api/docs/image-understanding, as of
    2026; that page gave the bounds of a tile for Gemini 1.5, and gives none since.
    """

    image: int = attrs.field(default=1_120, validator=non_negative)
    model: str = attrs.field(default="", validator=_a_name)
    resolution: str = attrs.field(default="", validator=one_of(_RESOLUTIONS))
    page: int = attrs.field(default=560, validator=non_negative)
    audio_second: int = attrs.field(default=32, validator=non_negative)

    def cost(self, media: Media) -> int:
        """By size, length and resolution where they are known, else the figure of its kind."""
        level = media.detail or self.resolution
        if media.kind == "audio" and media.seconds:
            return ceil(media.seconds * self.audio_second)
        visual = self._of_tiles(media, level) if _before_3(self.model) else self._of_levels(media, level)
        return MediaCosts.cost(self, media) if visual is None else visual

    def _of_levels(self, media: Media, level: str) -> int | None:
        if media.kind == "image":
            return _IMAGES.get(level, self.image)
        if media.kind == "document" and media.pages:
            return media.pages * _PAGES.get(level, self.page)
        return self._film(media, _FRAMES.get(level, 70))

    def _of_tiles(self, media: Media, level: str) -> int | None:
        one = 66 if level == "low" else 258
        size = sides(media)
        if media.kind == "image" and (size or level == "low"):
            return one * (gemini_tiles(*size) if size and level != "low" else 1)
        if media.kind == "document" and media.pages:
            return media.pages * one
        return self._film(media, one)

    def _film(self, media: Media, frame: int) -> int | None:
        if media.kind == "video" and media.seconds:
            return ceil(media.seconds * (frame + self.audio_second))
        return None


def _before_3(model: str) -> bool:
    version = re.search(r"gemini-(\d+)", model)
    return version is not None and int(version[1]) < 3
