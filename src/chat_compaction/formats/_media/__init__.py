"""From what a message carries to what it costs by: :class:`Media`, with the size that the data's header tells.

The length of base64 says nothing about tokens (rule C1), so it is never counted. A URL is never fetched: what it
stands for has no size, and costs a flat figure.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs

from ..._messages import Media
from .._base import get, is_object

MOST_PIXELS = 100_000
"""Of a side. More is no image that anybody sends: JPEG ends at 65,535, and all that read images far below this."""

MOST_SECONDS = 100_000
"""More than a day: no model listens or watches that long."""

MOST_PAGES = 20_000
"""Many times what any model reads at once."""

# Where data stands in what carries it: Anthropic's source and Gemini's blob; Bedrock's source; OpenAI's parts.
_DATA = ("data", "bytes", "url", "file_data", "image_url")
_MIME = ("media_type", "mime_type", "mimeType")


def media(kind: str, data: Any = None, mime: str = "", detail: Any = "") -> Media:
    """What has to be known of an image, a recording, a film or a document, to say what it costs.

    ``kind`` is what the part calls itself; a MIME type that says otherwise wins, such as that of a PDF in an
    ``image_url``; where neither is known it is a document. ``data`` is bytes, base64, a data URL, any other URL, or
    what carries one of these: the ``source`` of Anthropic and Bedrock, the ``inline_data`` of Gemini, the
    ``image_url``, ``input_audio``, ``file``, ``input_image`` and ``input_file`` of OpenAI. ``mime`` and ``detail`` are
    taken from there if they are not given. Data that is broken or hostile has no size, nor has data that claims one
    which cannot be true (:data:`MOST_PIXELS`, :data:`MOST_SECONDS`, :data:`MOST_PAGES`), and nothing raises.
    """
    found = Media(kind)
    with suppress(Exception):  # An object of the caller's may fail in any way, and so may data that is none.
        if is_object(data):
            detail = detail or get(data, "detail")
            mime = mime or _first(data, _MIME, str) or ""
            data = _first(data, _DATA, (str, bytes, bytearray, memoryview))
        start = data.find(",", 0, 512) + 1 if isinstance(data, str) and data.startswith("data:") else 0
        found = Media(_kind(kind, data[5:start] if start else mime), detail=_detail(detail))
        if data and not (isinstance(data, str) and "://" in data[:16]):
            found = _measured(found, data, start)
    return found


def _measured(found: Media, given: Any, start: int) -> Media:
    from ._headers import Data, pixels  # Here and below: most conversations carry no data.

    data = Data.of(given, start)
    if found.kind == "image":
        size = pixels(data)
        return attrs.evolve(found, width=size[0], height=size[1]) if size and max(size) <= MOST_PIXELS else found
    if found.kind == "document":
        from ._pdf import pages

        count = pages(data)
        return attrs.evolve(found, pages=count) if count and count <= MOST_PAGES else found
    from ._sound import seconds

    length = seconds(data) if found.kind in ("audio", "video") else None
    return attrs.evolve(found, seconds=length) if length is not None and length <= MOST_SECONDS else found


def _first(carrier: Any, keys: tuple[str, ...], kind: Any) -> Any:
    return next((value for key in keys if isinstance(value := get(carrier, key), kind) and value), None)


def _kind(kind: str, mime: str) -> str:
    told = mime.partition("/")[0].lower()
    if told in ("image", "audio", "video"):
        return told
    return "document" if mime.lower().startswith("application/pdf") or not kind else kind


def _detail(detail: Any) -> str:
    """A level, alone or in an object; Gemini's names have a prefix."""
    level = get(detail, "level") if is_object(detail) else detail
    return level.lower().removeprefix("media_resolution_") if isinstance(level, str) else ""
