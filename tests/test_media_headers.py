"""The size of media, read from the header of its data: images, sound, film, documents.

The files are made here, byte by byte, so that each is what the format's specification says and nothing more.
"""

import base64
import struct
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.counters import AnthropicMediaCosts, GeminiMediaCosts, MediaCosts, OpenAIMediaCosts
from chat_compaction.formats import FORMATS, Media, PartKind
from chat_compaction.formats._media import MOST_PAGES, MOST_PIXELS, MOST_SECONDS, _pdf, media
from chat_compaction.formats._media._headers import Data
from tests._shared import load_session, recorded_sessions

# -- encoders ------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 64)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def jpeg(width: int, height: int, *ahead: bytes, frame: int = 0xC0) -> bytes:
    sof = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    scan = segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + b"\x12\x34"
    return b"\xff\xd8" + b"".join(ahead) + segment(frame, sof) + scan + b"\xff\xd9"


def exif(size: int) -> bytes:
    """A long one, with the JPEG of a thumbnail in it, as cameras write."""
    thumbnail = jpeg(160, 120)
    return segment(0xE1, b"Exif\0\0" + thumbnail + b"\xff\xc0" * ((size - len(thumbnail)) // 2))


def gif(width: int, height: int, version: bytes = b"GIF89a") -> bytes:
    return version + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff;"


def riff(kind: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    body = kind + b"".join(
        name + struct.pack("<I", len(part)) + part + b"\0" * (len(part) % 2) for name, part in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_lossy(width: int, height: int) -> bytes:
    return riff(
        b"WEBP", (b"VP8 ", b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height) + b"\0" * 20)
    )


def webp_lossless(width: int, height: int) -> bytes:
    return riff(b"WEBP", (b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14 | 1 << 28) + b"\0" * 20))


def webp_extended(width: int, height: int) -> bytes:
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return riff(b"WEBP", (b"VP8X", b"\x10\0\0\0" + canvas), (b"ALPH", b"\0" * 9))


def wav(seconds: float, *, extra: bytes = b"", declared: int | None = None) -> bytes:
    rate = 24_000 * 2
    sound = b"\0" * int(seconds * rate)
    form = (b"fmt ", struct.pack("<HHIIHH", 1, 1, 24_000, rate, 2, 16))
    chunks = [form, (b"LIST", extra), (b"data", sound)] if extra else [form, (b"data", sound)]
    whole = riff(b"WAVE", *chunks)
    if declared is None:
        return whole
    at = whole.rindex(b"data") + 4
    return whole[:at] + struct.pack("<I", declared) + whole[at + 4 :]


def flac(seconds: float, rate: int = 44_100) -> bytes:
    bits = rate << 44 | 1 << 41 | 15 << 36 | int(seconds * rate)
    return b"fLaC" + b"\x80\0\0\x22" + b"\0" * 10 + struct.pack(">Q", bits) + b"\0" * 16


def mp3(frames: int, *, head: int = 0xFFFB9004, ahead: bytes = b"", xing: int | None = None) -> bytes:
    """Frames of 128 kbit/s at 44.1 kHz, in stereo: 417 bytes and 1,152 samples each."""
    frame = struct.pack(">I", head) + b"\0" * 413
    first = frame
    if xing is not None:
        tag = b"Xing" + struct.pack(">II", 1, xing)
        first = frame[:36] + tag + frame[36 + len(tag) :]
    return ahead + first + frame * (frames - 1)


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body) + 8) + kind + body


def mp4(seconds: float, *, version: int = 0, film: int = 3000, last: bool = False, large: bool = False) -> bytes:
    scale, length = 1000, int(seconds * 1000)
    times = struct.pack(">QQIQ" if version else ">IIII", 0, 0, scale, length)
    moov = box(b"moov", box(b"mvhd", bytes([version, 0, 0, 0]) + times + b"\0" * 80))
    data = struct.pack(">I4sQ", 1, b"mdat", film + 16) + b"\0" * film if large else box(b"mdat", b"\0" * film)
    return box(b"ftyp", b"isom\0\0\2\0") + (data + moov if last else moov + data)


def pdf(pages: int, *, edits: int = 0) -> bytes:
    """A catalog, a tree of pages and a table of where they are; and the tree again for each edit, a page longer."""
    out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
    catalog = len(out)
    out += b"1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    tree = len(out)
    out += b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count %d >>\nendobj\n" % pages
    table = len(out)
    out += b"xref\n0 3\n0000000000 65535 f \n%010d 00000 n \n%010d 00000 n \n" % (catalog, tree)
    out += b"trailer\n<< /Size 3 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % table
    for edit in range(edits):
        tree, before = len(out), table
        out += b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count %d >>\nendobj\n" % (pages + edit + 1)
        table = len(out)
        out += b"xref\n0 1\n0000000000 65535 f \n2 1\n%010d 00000 n \n" % tree
        out += b"trailer\n<< /Size 3 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n" % (before, table)
    return out


def linearized(pages: int, *, grown: bytes = b"") -> bytes:
    """Its first object says how many pages there are, and how long the file is: until it is edited."""
    text = (
        b"%%PDF-1.5\n1 0 obj\n<< /Linearized 1 /L %010d /H [1 2] /O 9 /E 5 /N %d /T 7 >>\nendobj\nstartxref\n0\n%%%%EOF"
    )
    return text % (len(text % (0, pages)), pages) + grown


IMAGES: dict[str, Callable[[int, int], bytes]] = {
    "png": png,
    "jpeg": jpeg,
    "jpeg, progressive": lambda w, h: jpeg(w, h, frame=0xC2),
    "jpeg, long exif": lambda w, h: jpeg(w, h, exif(60_000), exif(60_001), segment(0xE2, b"ICC_PROFILE\0" * 99)),
    "jpeg, fill bytes": lambda w, h: jpeg(w, h, b"\xff\xff\xff" + segment(0xC4, b"\0" * 20), b"\xff\x01"),
    "gif": gif,
    "gif 87": lambda w, h: gif(w, h, b"GIF87a"),
    "webp, lossy": webp_lossy,
    "webp, lossless": webp_lossless,
    "webp, extended": webp_extended,
}
SOUNDS = {
    "wav": (wav(1.5), 1.5),
    "wav, more chunks": (wav(1.5, extra=b"odd"), 1.5),
    "wav, of a stream": (wav(1.5, declared=0xFFFFFFFF), 1.5),
    "wav, cut off": (wav(1.5, declared=10**6), 1.5),
    "flac": (flac(2.5), 2.5),
    "mp3": (mp3(100), 100 * 1152 / 44_100),
    "mp3, tagged": (mp3(100, ahead=b"ID3\4\0\0\0\0\1\x49" + b"\xff" * 201), 100 * 1152 / 44_100),
    "mp3, of varying rate": (mp3(9, xing=700), 700 * 1152 / 44_100),
    "mp4": (mp4(12.5), 12.5),
    "mp4, long numbers": (mp4(12.5, version=1), 12.5),
    "mp4, header last": (mp4(12.5, last=True), 12.5),
    "mp4, large box": (mp4(12.5, last=True, large=True), 12.5),
}


def urls(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# How data travels: as bytes of any kind, as base64 of any kind, alone or in what carries it.
CARRIERS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64, url-safe": urls,
    "base64, wrapped": lambda data: base64.encodebytes(data).decode(),
    "base64, ends in a newline": lambda data: base64.b64encode(data).decode() + "\n",
    "data url": lambda data: "data:image/x;name=a;base64," + base64.b64encode(data).decode(),
    "anthropic": lambda data: {"type": "base64", "media_type": "image/x", "data": base64.b64encode(data).decode()},
    "bedrock": lambda data: {"bytes": data},
    "openai_chat": lambda data: {"url": "data:image/x;base64," + base64.b64encode(data).decode(), "detail": "auto"},
    "gemini": lambda data: SimpleNamespace(mime_type="image/x", data=data),
    "openai_responses": lambda data: {"image_url": "data:image/x;base64," + base64.b64encode(data).decode()},
}


# -- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("kind", IMAGES)
def test_images_have_their_size(kind: str, carrier: str) -> None:
    """C1: width and height are those of the header, however the data travels."""
    found = media("image", CARRIERS[carrier](IMAGES[kind](1234, 567)))
    assert (found.kind, found.width, found.height) == ("image", 1234, 567)


@given(st.integers(1, 16_383), st.integers(1, 16_383), st.sampled_from(sorted(IMAGES)))
def test_any_size(width: int, height: int, kind: str) -> None:
    """C1: whatever the size is."""
    found = media("image", base64.b64encode(IMAGES[kind](width, height)).decode())
    assert (found.width, found.height) == (width, height)


@pytest.mark.parametrize("carrier", ["bytes", "base64", "base64, url-safe", "base64, ends in a newline"])
@pytest.mark.parametrize("kind", SOUNDS)
def test_recordings_have_their_length(kind: str, carrier: str) -> None:
    """C1: the seconds of a recording or a film are those of the header, or of its bit rate."""
    data, seconds = SOUNDS[kind]
    for medium in ("audio", "video"):
        found = media(medium, CARRIERS[carrier](data))
        assert found.kind == medium
        assert found.seconds == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize("carrier", ["bytes", "base64", "base64, url-safe", "base64, ends in a newline"])
@pytest.mark.parametrize(
    ("data", "pages"), [(pdf(7), 7), (pdf(7, edits=1), 8), (pdf(7, edits=3), 10), (linearized(12), 12)]
)
def test_documents_have_their_pages(data: bytes, pages: int, carrier: str) -> None:
    """C1: the pages of a PDF, where its plain tables tell."""
    assert media("document", CARRIERS[carrier](data)) == Media("document", pages=pages)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        png(0, 5),
        png(5, 5)[:20],
        b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
        jpeg(5, 5)[:8],
        jpeg(5, 5)[:2],
        jpeg(5, 0),
        b"\xff\xd8" + segment(0xDA, b"\0" * 8),
        b"\xff\xd8" + b"\xff\xe1\x00\x00" * 400,
        b"\xff\xd8" + b"\xff" * 4000,
        b"\xff\xd8\x00\x00\x00\x00",
        gif(5, 5)[:8],
        riff(b"WEBP", (b"VP8 ", b"\0" * 20)),
        riff(b"WEBP", (b"VP8L", b"\0" * 20)),
        riff(b"WEBP", (b"VP8X", b"\0" * 4)),
        riff(b"WEBP", (b"VP9 ", b"\0" * 20)),
        b"<svg xmlns='http://www.w3.org/2000/svg' width='5' height='5'/>",
        pdf(3),
    ],
)
def test_broken_images_have_no_size(data: bytes) -> None:
    """C1: what is cut off, empty, or no image that we read, counts as an image of unknown size."""
    for carrier in CARRIERS.values():
        found = media("image", carrier(data))
        assert (found.width, found.height) == (None, None)


@pytest.mark.parametrize(
    "data",
    [
        wav(1)[:30],
        wav(1).replace(b"fmt ", b"fmtx"),
        riff(b"WAVE", *[(b"junk", b"")] * 300),
        base64.encodebytes(wav(1, declared=0xFFFFFFFF)).decode(),
        flac(0),
        flac(1)[:12],
        b"fLaC\x81" + flac(1)[5:],
        mp3(3),
        mp3(1, ahead=mp3(5)),
        mp3(4) + mp3(20, head=0xFFFBA004),
        mp3(20, head=0xFFFBF004),
        mp3(20, head=0xFFFB0004),
        mp3(20, head=0xFFFB9C04),
        mp3(20, head=0xFFEB9004),
        mp3(20, head=0xFFFD9004),
        base64.encodebytes(mp3(20)).decode(),
        b"ID3\4\0\0\x7f\x7f\x7f\x7f",
        mp4(0),
        mp4(1)[:40],
        box(b"ftyp", b"isom") + box(b"moov", box(b"trak", b"\0" * 20)),
        box(b"ftyp", b"isom") + b"\0\0\0\4mdat",
        box(b"ftyp", b"isom") + box(b"free", b"") * 300,
        b"OggS" + b"\0" * 40,
    ],
)
def test_broken_recordings_have_no_length(data: Any) -> None:
    """C1: nor has a recording whose header does not tell, or where its bit rate varies."""
    assert media("audio", data) == Media("audio")


@pytest.mark.parametrize(
    "data",
    [
        pdf(7)[:-40],
        pdf(7).replace(b"xref\n0", b"xrex\n0"),
        pdf(7).replace(b"/Root", b"/Boot"),
        pdf(7).replace(b"/Pages 2", b"/Pages 9"),
        pdf(7).replace(b"2 0 obj", b"4 0 obj"),
        pdf(7).replace(b"/Type /Pages", b"/Type /Other"),
        pdf(7).replace(b"/Count", b"/Sount"),
        pdf(7).replace(b"startxref\n", b"startxref\n9"),
        linearized(12, grown=b"\n% edited since"),
        base64.encodebytes(pdf(7)).decode(),
        b"PK\3\4" + b"\0" * 40,
    ],
)
def test_documents_that_do_not_tell_have_no_pages(data: Any) -> None:
    """C1: nothing is guessed; an edited file is not what its first lines say."""
    assert media("document", data) == Media("document")


# -- sizes that cannot be true --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["png", "webp, extended"])
@pytest.mark.parametrize(("width", "height"), [(MOST_PIXELS + 1, 5), (5, MOST_PIXELS + 1), (2**24, 2**24)])
def test_an_image_is_not_wider_than_any(kind: str, width: int, height: int) -> None:
    """C1: a side that no image has is a lie, and the size is not known; the longest that may be is taken."""
    assert media("image", IMAGES[kind](width, height)) == Media("image")
    most = min(width, MOST_PIXELS), min(height, MOST_PIXELS)
    assert media("image", IMAGES[kind](*most)) == Media("image", *most)


@pytest.mark.parametrize(
    "data",
    [
        mp4(MOST_SECONDS + 1),
        mp4(10**12, version=1),
        flac(60_000_000_000, rate=1),
        flac(MOST_SECONDS + 1, rate=1),
        mp3(9, xing=0xFFFFFFFF),
        base64.encodebytes(wav(1.5, declared=0xFFFFFFF0).replace(struct.pack("<I", 48_000), b"\1\0\0\0")).decode(),
    ],
)
def test_a_recording_is_not_longer_than_any(data: Any) -> None:
    """C1: nobody sends more than a day of sound."""
    assert media("audio", data) == Media("audio")
    assert media("video", data) == Media("video")


def test_the_longest_recording_is_taken() -> None:
    """C1: the cap itself may be true."""
    assert media("video", mp4(MOST_SECONDS)).seconds == MOST_SECONDS
    assert media("audio", flac(MOST_SECONDS, rate=1)).seconds == MOST_SECONDS


@pytest.mark.parametrize("count", [0, MOST_PAGES + 1, 10**19, 10**4_298])
@pytest.mark.parametrize("make", [pdf, linearized], ids=["table", "linearized"])
def test_a_document_has_not_more_pages_than_any(make: Callable[[int], bytes], count: int) -> None:
    """C1: neither no page nor more of them than any document has."""
    assert media("document", make(count)) == Media("document")
    assert media("document", make(MOST_PAGES)).pages == MOST_PAGES


LONG = b"9" * 900


@pytest.mark.parametrize(
    "data",
    [
        pdf(10**4_298),
        linearized(10**500),
        pdf(7, edits=1).replace(b"/Prev ", b"/Prev " + LONG),
        pdf(7).replace(b"/Root ", b"/Root " + LONG),
        pdf(7).replace(b"/Pages 2", b"/Pages " + LONG),
        pdf(7).replace(b"startxref\n", b"startxref\n" + LONG),
        pdf(7).replace(b"xref\n0 3", b"xref\n0 " + LONG),
        linearized(7).replace(b"/L ", b"/L " + LONG),
    ],
)
def test_long_numbers_are_not_converted(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: reading digits costs by their square, so what is too long for a number of a file is none."""
    converted: list[int] = []

    def spied(digits: bytes) -> int:
        converted.append(len(digits))
        return int(digits)

    monkeypatch.setattr(_pdf, "int", spied, raising=False)
    media("document", data)
    assert max(converted, default=0) <= 32


# -- what carries it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "data", "mime", "found"),
    [
        ("image", "https://example.com/a.png", "", "image"),
        ("image", {"type": "url", "url": "https://example.com/a.png"}, "", "image"),
        ("image", {"type": "file", "file_id": "file_1"}, "", "image"),
        ("document", {"s3Location": {"uri": "s3://a/b.pdf"}}, "", "document"),
        ("image", None, "", "image"),
        ("image", 7, "", "image"),
        ("image", ["a"], "", "image"),
        ("image", "data:application/pdf;base64,AAAA", "", "document"),
        ("document", {"file_data": "data:image/png;base64,AAAA"}, "", "image"),
        ("image", "data:,text", "", "image"),
        ("image", "data:" + "x" * 600, "", "image"),
        ("", b"", "audio/wav", "audio"),
        ("", b"", "video/mp4; codecs=avc1", "video"),
        ("", b"", "IMAGE/PNG", "image"),
        ("", {"mimeType": "video/mp4", "fileUri": "gs://a/b"}, "", "video"),
        ("", b"", "application/pdf", "document"),
        ("", b"", "text/csv", "document"),
        ("", b"", "", "document"),
        ("other", b"", "text/csv", "other"),
        ("image", b"", "application/pdf", "document"),
    ],
)
def test_the_kind_is_what_the_data_says(kind: str, data: Any, mime: str, found: str) -> None:
    """C1: a MIME type wins over what the part calls itself; a URL is not fetched and has no size."""
    assert media(kind, data, mime) == Media(found)


@pytest.mark.parametrize(
    ("carrier", "detail", "found"),
    [
        ({"url": "https://example.com", "detail": "low"}, "", "low"),
        ({"url": "https://example.com", "detail": "low"}, "high", "high"),
        ({"url": "https://example.com", "detail": None}, None, ""),
        ("https://example.com", "MEDIA_RESOLUTION_ULTRA_HIGH", "ultra_high"),
        ("https://example.com", {"level": "MEDIA_RESOLUTION_LOW"}, "low"),
        ("https://example.com", SimpleNamespace(level="MEDIA_RESOLUTION_LOW"), "low"),
        ("https://example.com", {"numTokens": 5}, ""),
        ("https://example.com", 5, ""),
    ],
)
def test_the_detail(carrier: Any, detail: Any, found: str) -> None:
    """C1: the resolution that a message asks for, in one vocabulary."""
    assert media("image", carrier, detail=detail) == Media("image", detail=found)


class Hostile:
    """An object whose every field raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_a_hostile_object_has_no_size() -> None:
    """Reading never fails for what is not needed."""
    assert media("image", Hostile()) == Media("image")
    assert media("image", "https://example.com", detail=Hostile()) == Media("image")


MAGIC = st.sampled_from(
    [
        b"",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\xff\xd8\xff",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBPVP8 ",
        b"RIFF\0\0\0\0WEBPVP8L",
        b"RIFF\0\0\0\0WEBPVP8X",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"fLaC",
        b"\0\0\0\x08ftyp",
        b"ID3\4\0\0\0\0\0\0",
        b"\xff\xfb",
        b"%PDF-1.4 startxref 0",
        b"%PDF-1.4 xref\n0 1\n startxref 9",
        b"%PDF-1.5 /Linearized /L 90 /N",
    ]
)
KINDS = st.sampled_from(["image", "audio", "video", "document", "other"])


@given(MAGIC, st.binary(max_size=300), KINDS, st.sampled_from(sorted(CARRIERS)))
def test_arbitrary_bytes_never_raise(magic: bytes, rest: bytes, kind: str, carrier: str) -> None:
    """C1: hostile data has no size, or a positive one."""
    found = media(kind, CARRIERS[carrier](magic + rest))
    assert all(size is None or size >= 0 for size in (found.width, found.height, found.pages, found.seconds))
    assert (found.width is None) == (found.height is None)


@given(KINDS, st.text(max_size=300) | st.binary(max_size=300) | st.integers() | st.lists(st.integers()), st.text())
def test_arbitrary_values_never_raise(kind: str, data: Any, mime: str) -> None:
    """C1: whatever stands where data should."""
    assert isinstance(media(kind, data, mime), Media)
    assert isinstance(media(kind, {"data": data, "detail": mime}), Media)


@pytest.mark.parametrize("kind", ["jpeg, long exif", "png", "webp, extended"])
def test_little_is_decoded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: of a large image, a few bytes are looked at, wherever they stand."""
    looked: list[int] = []
    original = Data.at

    def at(self: Data, offset: int, count: int) -> bytes:
        looked.append(count)
        return original(self, offset, count)

    monkeypatch.setattr(Data, "at", at)
    data = base64.b64encode(IMAGES[kind](1234, 567) + b"\0" * 3_000_000).decode()
    assert media("image", data).width == 1234
    assert sum(looked) < 120


# -- formats -------------------------------------------------------------------------------------

PICTURE, SOUND, PAGES = (base64.b64encode(data).decode() for data in (png(1920, 1080), wav(2), pdf(3)))


def block(kind: str, mime: str, data: str) -> dict[str, Any]:
    return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}


# What a user sends in each format, and what stands there.
SENT: list[tuple[str, type[MediaCosts], list[dict[str, Any]], list[Media]]] = [
    (
        "openai_chat",
        OpenAIMediaCosts,
        [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "high"}},
            {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAGES}"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        ],
        [
            Media("image", 1920, 1080, detail="high"),
            Media("audio", seconds=2.0),
            Media("document", pages=3),
            Media("image", detail="low"),
        ],
    ),
    (
        "openai_responses",
        OpenAIMediaCosts,
        [
            {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "original"},
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAGES}"},
            {"type": "input_file", "file_id": "file_1"},
        ],
        [Media("image", 1920, 1080, detail="original"), Media("document", pages=3), Media("document")],
    ),
    (
        "anthropic",
        AnthropicMediaCosts,
        [
            block("image", "image/png", PICTURE),
            block("document", "application/pdf", PAGES),
            {"type": "tool_result", "tool_use_id": "a", "content": [block("image", "image/png", PICTURE)]},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        ],
        [Media("image", 1920, 1080), Media("document", pages=3), Media("image", 1920, 1080), Media("image")],
    ),
    (
        "bedrock_converse",
        AnthropicMediaCosts,
        [
            {"image": {"format": "png", "source": {"bytes": png(1920, 1080)}}},
            {"document": {"format": "pdf", "name": "a", "source": {"bytes": pdf(3)}}},
            {"video": {"format": "mp4", "source": {"bytes": mp4(2)}}},
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b"}}}},
        ],
        [Media("image", 1920, 1080), Media("document", pages=3), Media("video", seconds=2.0), Media("image")],
    ),
    (
        "gemini",
        GeminiMediaCosts,
        [
            {
                "inlineData": {"mimeType": "image/png", "data": PICTURE},
                "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
            },
            {"inline_data": {"mime_type": "audio/wav", "data": SOUND}},
            {"inlineData": {"mimeType": "application/pdf", "data": PAGES}},
            {"fileData": {"fileUri": "https://youtu.be/a"}},
        ],
        [
            Media("image", 1920, 1080, detail="low"),
            Media("audio", seconds=2.0),
            Media("document", pages=3),
            Media("video"),
        ],
    ),
]


@pytest.mark.parametrize(("name", "costs", "content", "found"), SENT, ids=[name for name, *_ in SENT])
def test_formats_read_the_size(
    name: str, costs: type[MediaCosts], content: list[dict[str, Any]], found: list[Media]
) -> None:
    """C1: what each format reads, and the costs of its provider."""
    key = "parts" if name == "gemini" else "content"
    message = FORMATS[name].read({"role": "user", key: content}, 0)
    assert [one for part in message.parts for one in part.media] == found
    assert FORMATS[name].media_costs == costs()


@pytest.mark.parametrize(
    ("name", "images", "urls", "sounds"),
    [
        ("openai_chat", 1, 1, 2),
        ("openai_responses", 4, 0, 0),
        ("anthropic", 3, 0, 0),
        ("gemini", 2, 1, 2),
        ("bedrock_converse", 8, 0, 0),
    ],
)
def test_recorded_media_has_a_size(name: str, images: int, urls: int, sounds: int) -> None:
    """C1: every image and every recording that was really sent; of an image behind a URL nothing is known."""
    messages = [message for path in recorded_sessions(name) for message in load_session(path)]
    parts = [part for message in messages for part in FORMATS[name].read(message, 0).parts]
    found = [one for part in parts if part.kind is not PartKind.OPAQUE for one in part.media]
    pictures = [one for one in found if one.kind == "image"]
    assert (len(pictures), len([one for one in pictures if not one.width])) == (images + urls, urls)
    assert [one.kind for one in found if one.seconds] == ["audio"] * sounds
