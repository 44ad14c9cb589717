"""How long a recording sounds or a film runs, from its header.

By the number of samples, or by size and bit rate where the bit rate is known to stay the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

from ._headers import HOPS, Data


def seconds(data: Data) -> float | None:
    """How long a WAV, FLAC or MP3 sounds, or a film or recording in MP4 runs."""
    head = data.at(0, 12)
    if head.startswith(b"RIFF") and head[8:] == b"WAVE":
        return _wav(data)
    if head.startswith(b"fLaC"):
        return _flac(data)
    if head[4:8] == b"ftyp":
        return _mp4(data)
    return _mp3(data, _behind_id3(data)) if head.startswith((b"ID3", b"\xff")) else None


def _wav(data: Data) -> float | None:
    """Bytes of sound by bytes a second. A stream says that it has no end, and then ends where the data does."""
    offset, rate = 12, 0
    for _ in range(HOPS):
        kind, size = struct.unpack("<4sI", data.at(offset, 8))
        if kind == b"fmt ":
            (rate,) = struct.unpack("<I", data.at(offset + 16, 4))
        if kind == b"data":
            there = size if data.size is None else min(size, data.size - offset - 8)
            return there / rate if rate and there < 0xFFFFFFFF else None
        offset += 8 + size + size % 2
    return None


def _flac(data: Data) -> float | None:
    if data.at(4, 1)[0] & 0x7F:  # The first block is not that of the stream.
        return None
    (bits,) = struct.unpack(">Q", data.at(18, 8))
    rate, samples = bits >> 44, bits & (1 << 36) - 1
    return samples / rate if rate and samples else None


def _boxes(data: Data, offset: int) -> Iterator[tuple[bytes, int]]:
    """The kind of each box from here on, and where its content begins."""
    for _ in range(HOPS):
        size, kind = struct.unpack(">I4s", data.at(offset, 8))
        begin = offset + 8
        if size == 1:
            (size,) = struct.unpack(">Q", data.at(begin, 8))
            begin += 8
        yield kind, begin
        if size < 8:  # 0: up to the end. Less than its own head is none.
            return
        offset += size


def _mp4(data: Data) -> float | None:
    for kind, begin in _boxes(data, 0):
        if kind == b"moov":
            header = next((at for inner, at in _boxes(data, begin) if inner == b"mvhd"), None)
            return None if header is None else _movie_length(data.at(header, 32))
    return None


def _movie_length(header: bytes) -> float | None:
    scale, length = struct.unpack_from(">IQ", header, 20) if header[0] else struct.unpack_from(">II", header, 12)
    unknown = 0xFFFFFFFF_FFFFFFFF if header[0] else 0xFFFFFFFF
    return length / scale if scale and 0 < length < unknown else None


_KBITS = {  # By MPEG version 1 or not, for layer III.
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_HERTZ = (44_100, 48_000, 32_000)


def _behind_id3(data: Data) -> int:
    head = data.at(0, 10)
    if not head.startswith(b"ID3"):
        return 0
    a, b, c, d = head[6:10]
    return 10 + (a << 21 | b << 14 | c << 7 | d)


@attrs.frozen
class _Frame:
    """The header of a frame of MP3. Frames of one bit rate follow one another at a fixed distance."""

    version: int
    kbits: int
    hertz: int
    mono: bool
    padded: int

    @property
    def samples(self) -> int:
        return 1152 if self.version == 1 else 576

    @property
    def length(self) -> int:
        return self.samples // 8 * self.kbits * 1000 // self.hertz + self.padded


def _frame(head: bytes) -> _Frame | None:
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2:  # In step, and layer III.
        return None
    version = {3: 1, 2: 2, 0: 4}.get(head[1] >> 3 & 3)
    rate, tone = head[2] >> 4, head[2] >> 2 & 3
    if version is None or rate in (0, 15) or tone == 3:
        return None
    hertz = _HERTZ[tone] // version
    return _Frame(version, _KBITS[version == 1][rate], hertz, head[3] >> 6 == 3, head[2] >> 1 & 1)


def _mp3(data: Data, begin: int) -> float | None:
    """By the number of frames where the first one tells it, else by size, if the next frames are of its bit rate."""
    first = _frame(data.at(begin, 4))
    if first is None:
        return None
    side = {(1, False): 32, (1, True): 17}.get((first.version, first.mono), 9 if first.mono else 17)
    tag = data.at(begin + 4 + side, 12)
    if tag[:4] in (b"Xing", b"Info") and tag[7] & 1:
        return int.from_bytes(tag[8:12], "big") * first.samples / first.hertz
    if data.size is None:
        return None
    offset = begin
    for _ in range(8):
        frame = _frame(data.at(offset, 4))
        if frame is None or (frame.kbits, frame.hertz) != (first.kbits, first.hertz):
            return None
        offset += frame.length
    return (data.size - begin) / (first.kbits * 125)
