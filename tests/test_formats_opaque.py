"""What counts of parts of unknown type, and of arguments (rule C1)."""

import base64
import datetime
import hashlib
import json
from types import MappingProxyType
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.formats import Media, Part, PartKind
from chat_compaction.formats._opaque import json_text, opaque

BASE64 = "iVBORw0KGgo+/" * 400 + "=="
HASHES = "\n".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(20))


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    type: str = "brand_new"
    words: str | None = None
    inner: Any = None


@pytest.mark.parametrize(
    ("raw", "text", "kinds"),
    [
        ({"type": "x"}, "", ()),
        ({"type": "x", "words": "é\n", "n": 1.5, "yes": True, "none": None}, '{"words":"é\\n","n":1.5,"yes":true}', ()),
        ({"type": "x", "deep": [{"type": "y", "id": "z", "words": [None, "a"]}]}, '{"deep":[{"words":["a"]}]}', ()),
        ({"cache_control": {"ttl": "5m"}, "citations": [{"cited_text": "a"}], "signature": BASE64}, "", ()),
        ({"encrypted_index": BASE64, "caller": {"type": "direct"}}, "", ()),
        ({"encrypted_content": BASE64, "words": "a"}, '{"words":"a"}', ("encrypted_reasoning",)),
        ({"encrypted_content": None, "encrypted_stdout": "short"}, "", ("encrypted_reasoning",)),
        ({"data": BASE64}, "", ("other",)),
        ({"data": {"words": "a"}}, '{"data":{"words":"a"}}', ()),
        ({"data": "words that are no base64 " * 40}, f'{{"data":"{"words that are no base64 " * 40}"}}', ()),
        ({"data": base64.encodebytes(b"binary" * 400).decode()}, "", ("other",)),
        ({"data": base64.encodebytes(b"binary" * 400).decode().replace("\n", "\r\n")}, "", ("other",)),
        ({"stdout": BASE64, "text": BASE64}, f'{{"stdout":"{BASE64}","text":"{BASE64}"}}', ()),
        ({"files": HASHES}, json.dumps({"files": HASHES}, separators=(",", ":")), ()),
        ({"data": "Zm9v"}, '{"data":"Zm9v"}', ()),
        ({"data": b"bytes"}, "", ("other",)),
        ({"url": f"data:image/png;base64,{BASE64}"}, "", ("image",)),
        (
            {"url": "data:audio/wav;rate=8000;base64,AAAA", "more": ["data:video/mp4;base64,AAAA"]},
            '{"more":[]}',
            ("audio", "video"),
        ),
        ({"url": f"data:application/pdf;base64,{BASE64}"}, "", ("document",)),
        ({"url": f"data:;base64,{BASE64}"}, "", ("document",)),
        ({"url": "data: not a URL"}, '{"url":"data: not a URL"}', ()),
        ({"url": "https://example.com/a.png"}, '{"url":"https://example.com/a.png"}', ()),
        (MappingProxyType({"words": "a", "more": MappingProxyType({"b": 1})}), '{"words":"a","more":{"b":1}}', ()),
        (
            Model.model_validate({"words": "a", "extra": [Model(inner={"encrypted_content": BASE64})]}),
            None,
            ("encrypted_reasoning",),
        ),
        ({"when": datetime.date(2026, 1, 2), "pair": (1, 2)}, '{"when":"2026-01-02","pair":[1,2]}', ()),
    ],
)
def test_opaque_parts(raw: Any, text: str | None, kinds: tuple[str, ...]) -> None:
    """C1: text, numbers and keys count as JSON; media and what is encrypted flat, wherever it stands."""
    kept = '{"words":"a","extra":[{"inner":{}}]}' if text is None else text
    assert opaque(raw) == Part(PartKind.OPAQUE, kept, media=tuple(map(Media, kinds)))


def _nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"words": "bottom"}
    for _ in range(depth):
        inner = {"inner": inner}
    return inner


def test_deep_and_circular_parts() -> None:
    """No depth and no circle makes reading fail; what no provider would take counts nothing."""
    assert "bottom" in opaque(_nested(100)).text
    assert opaque(_nested(100_000)) == Part(PartKind.OPAQUE)
    circle: dict[str, Any] = {"data": BASE64}
    circle["left"] = circle["right"] = circle
    assert opaque(circle) == Part(PartKind.OPAQUE)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        (0, "0"),
        ({}, "{}"),
        ({"a": None, "b": [1, "é"]}, '{"a":null,"b":[1,"é"]}'),
        (Model(words="a"), '{"type":"brand_new","words":"a"}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ({(1, 2): "a key that is no string"}, ""),
        ({"a": Unprintable()}, ""),
        (_nested(100_000), ""),
    ],
)
def test_json_text(value: Any, text: str) -> None:
    """C1: arguments count as compact JSON, a string as it is; counting them never fails."""
    assert json_text(value) == text


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(_json)
def test_json_text_is_json(value: Any) -> None:
    """What counts is what would be sent."""
    assert isinstance(value, str) or value is None or json.loads(json_text(value)) == value


@given(st.dictionaries(st.text(), _json, max_size=4), st.binary(min_size=200, max_size=3000))
def test_no_base64_counts_by_its_length(fields: dict[str, Any], data: bytes) -> None:
    """C1: adding media to a part of unknown type adds one flat cost and no text, whatever its length."""
    encoded = base64.b64encode(data).decode()
    plain, loaded = opaque(fields), opaque({**fields, "payload": encoded, "url": f"data:image/png;base64,{encoded}"})
    assert loaded.text == opaque({k: v for k, v in fields.items() if k not in ("payload", "url")}).text
    assert sorted(media.kind for media in loaded.media) == sorted([*(m.kind for m in plain.media), "other", "image"])
