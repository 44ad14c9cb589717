"""Looking into data without decoding it; the size of an image.

Only the bytes that are asked for are decoded: base64 is read in place, three bytes for each four characters. What is
broken, or of a kind that is not read here, has no size. Every loop is bounded: hostile data costs a fraction of a
millisecond.

No library does this for us: imagesize and Pillow want the bytes decoded, and the core has no other use for them.
"""

from __future__ import annotations

import binascii
import struct

import attrs

HOPS = 256
"""Segments, chunks or boxes that are stepped over at most."""

_WRAPPED = 1 << 18
"""Characters that are read at most where base64 is wrapped, and has to be joined first."""


@attrs.frozen(eq=False, repr=False)
class Data:
    """Bytes, or base64 from ``start`` on, to look into. ``size`` is how many bytes there are, None if not known."""

    raw: str | bytes | bytearray | memoryview
    start: int = 0
    size: int | None = None

    @classmethod
    def of(cls, raw: str | bytes | bytearray | memoryview, start: int = 0) -> Data:
        """Text is base64, plain or URL-safe, in one line or in many."""
        if not isinstance(raw, str):
            return cls(raw, size=len(raw))
        if len(raw[start : start + 128].split()) > 1:
            return cls("".join(raw[start : start + _WRAPPED].split()))
        end = raw[-8:]
        return cls(raw, start, (len(raw) - start - len(end) + len(end.rstrip("= \r\n"))) * 3 // 4)

    def at(self, offset: int, count: int) -> bytes:
        """The bytes that stand there, fewer at the end; ValueError if they are no base64."""
        if not isinstance(self.raw, str):
            return bytes(self.raw[offset : offset + count])
        first = self.start + offset // 3 * 4
        text = self.raw[first : self.start + -(-(offset + count) // 3) * 4].rstrip("= \r\n")
        text = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
        return binascii.a2b_base64(text, strict_mode=True)[offset % 3 :][:count]


def pixels(data: Data) -> tuple[int, int] | None:
    """Width and height of a PNG, JPEG, GIF or WebP."""
    head = data.at(0, 30)
    size = None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        size = struct.unpack_from(">II", head, 16)
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = struct.unpack_from("<HH", head, 6)
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg(data)
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp(head)
    return (size[0], size[1]) if size and min(size) > 0 else None


def _jpeg(data: Data) -> tuple[int, ...] | None:
    """The frame stands behind segments of any length: profiles, EXIF with its thumbnail."""
    offset = 2
    for _ in range(HOPS):
        head = data.at(offset, 9)
        if len(head) < 4 or head[0] != 0xFF:
            return None
        marker = head[1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return struct.unpack_from(">HH", head, 5)[::-1]
        if marker in (0xD9, 0xDA):  # The end, or pixels before any frame.
            return None
        # A marker may be preceded by any number of 0xFF, and a few have no length.
        alone = 0xD0 <= marker <= 0xD8 or marker == 0x01
        offset += 1 if marker == 0xFF else 2 if alone else 2 + int.from_bytes(head[2:4], "big")
    return None


def _webp(head: bytes) -> tuple[int, ...] | None:
    """One of three kinds: lossy, lossless, or with more in it (transparency, animation)."""
    kind = head[12:16]
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return tuple([side & 0x3FFF for side in struct.unpack_from("<HH", head, 26)])
    if kind == b"VP8L" and head[20:21] == b"\x2f":
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(head) == 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return None
