"""Counters of o200k_base on whichever package is installed: exact, or not at all.

Each is checked when it is loaded: a version that counts otherwise is refused rather than believed. Where a package is
known to differ from the reference, tokenizers, its corner case is mended here, or the package is no backend.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from . import _ranks as ranks
from ._adapters import encodable
from ._bounds import byte_bounds
from ._checks import CHECKS

VOCABULARY = "o200k_base"
_LONG_S = "'\u017f"
# tiktoken's engine goes back over white space on a stack of a million entries, and panics where it ends.
_BLANK = 100_000


@attrs.frozen(repr=False)
class BackendCounter:
    """Counts by o200k_base; ``name`` says which package does it. Equal by name; a copy finds its package again."""

    name: str
    _count: Callable[[str], int] = attrs.field(eq=False)

    exact = True
    bounds = staticmethod(byte_bounds)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, in order. A lone surrogate counts as the replacement character U+FFFD."""
        count = self._count
        return [count(text if text.isascii() else encodable(text)) for text in texts]

    def __reduce__(self) -> tuple[Any, ...]:
        return backend, (self.name.partition(":")[0],)

    def __repr__(self) -> str:
        return f"resolve_counter({self.name!r})"


def _splintr() -> Callable[[str], int]:
    module = import_module("splintr").Tokenizer
    tokenizer = module.from_pretrained(VOCABULARY)
    # Without special tokens it hands over bytes, not a list; with any in the text, it must be told to see none.
    flat, ordinary = tokenizer.encode_flat, tokenizer.encode_ordinary

    def plain() -> Callable[[str], int]:
        content = ranks.written(map(tokenizer.decode_token_bytes, range(ranks.SIZE)))
        encode = module.from_bytes(content, ranks.PLAIN_PATTERN).encode_flat
        return lambda text: len(encode(text)) // 4

    return _mended(lambda text: len(ordinary(text)) if "<|" in text else len(flat(text)) // 4, plain)


def _mended(count: Callable[[str], int], plain: Callable[[], Callable[[str], int]]) -> Callable[[str], int]:
    """``count``, but for what two packages overlook: U+017F is an s, so that what it makes of "'s" is a contraction.

    That takes a second tokenizer, with an expression that says so. Hardly a text needs it: it is made when one does.
    """
    plain = cache(plain)
    return lambda text: plain()(text) if _LONG_S in text else count(text)


def _rs_bpe() -> Callable[[str], int]:
    count: Callable[[str], int] = import_module("rs_bpe.bpe").openai.o200k_base().count
    return count


def _bpe_openai() -> Callable[[str], int]:
    # The bindings, since the package's own Encoding refuses a text of more than 200,000 tokens.
    count: Callable[[str], int] = import_module("bpe_openai._bindings").tokenizer_for_encoding(VOCABULARY).count
    return count


def _tiktoken() -> Callable[[str], int]:
    if not ranks.folders("tiktoken"):
        raise ImportError("No module named 'tiktoken'")
    # Not get_encoding, which fetches what it does not find. The file comes first, since the import takes its time.
    table = ranks.parsed(ranks.rank_file())
    encoding = import_module("tiktoken").Encoding(
        VOCABULARY, pat_str=ranks.PATTERN, mergeable_ranks=table, special_tokens={}
    )
    encode, encode_piece = encoding.encode_ordinary, encoding._encode_single_piece

    def count(text: str) -> int:
        if has_long_blank(text):
            return sum(len(encode_piece(piece)) for piece in pieces(text))
        return len(encode(text))

    return count


def has_long_blank(text: str, size: int = _BLANK) -> bool:
    """Whether some ``size`` characters in a row are white space; sure where twice as many are, in linear time."""
    return len(text) >= size and any(text[start : start + size].isspace() for start in range(0, len(text), size))


def pieces(text: str) -> list[str]:
    """What the vocabulary's expression makes of the text, cut by the reference."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    return [piece for piece, _ in Split(Regex(ranks.PATTERN), "isolated").pre_tokenize_str(text)]


def _fastokens() -> Callable[[str], int]:
    module = import_module("fastokens").Tokenizer
    content = ranks.rank_file()

    def made(pattern: str) -> Callable[[str], int]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "o200k_base.tiktoken")
            path.write_bytes(content)
            encode = module.from_tiktoken(str(path), pattern=pattern, special_tokens={}).encode
        return lambda text: len(encode(text, add_special_tokens=False))

    return _mended(made(ranks.PATTERN), lambda: made(ranks.PLAIN_PATTERN))


# In the order in which they are taken: by speed, and of two that are alike the one that loads sooner. gigatoken is
# none: its table of characters is newer than that of the others, so that it counts the newest scripts in its own way.
_MAKERS: dict[str, Callable[[], Callable[[str], int]]] = {
    "splintr-rs": _splintr,
    "rs-bpe": _rs_bpe,
    "tiktoken": _tiktoken,
    "bpe-openai": _bpe_openai,
    "fastokens": _fastokens,
}
_MENDS = frozenset({"splintr-rs", "fastokens"})
# What takes seconds to load is taken only by its name.
_SLOW = frozenset({"fastokens"})
_loaded: dict[str, BackendCounter | str] = {}
"""By package, or None's choice: the counter, or why there is none."""


def backend(package: str) -> BackendCounter:
    """The counter on one package, loaded and checked once.

    Raises:
        ValueError: if the package is not installed, finds no vocabulary, fails, or counts otherwise than it must.
    """
    known = _loaded.get(package) or _try(package)
    if isinstance(known, str):
        raise ValueError(known)
    return known


def _try(package: str) -> BackendCounter | str:
    """The counter, or why there is none: remembered, unless the package or the file may still come."""
    name = f"{package}:{VOCABULARY}"
    try:
        counter = BackendCounter(name, _MAKERS[package]())
        # What takes a vocabulary of its own, which is made when it is needed, would take longer than all the rest.
        checks = {text: count for text, count in CHECKS.items() if package not in _MENDS or _LONG_S not in text}
        counts = counter.count_many(list(checks))
    except (ImportError, FileNotFoundError) as error:
        return f"counter {name!r} needs what is not installed: {error}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a package written in Rust panics with a BaseException
        _loaded[package] = f"counter {name!r} does not load: {type(error).__name__}: {error}"
        return _loaded[package]
    wrong = sum(count != right for count, right in zip(counts, checks.values(), strict=True))
    _loaded[package] = (
        f"counter {name!r} counts {wrong} of {len(checks)} texts otherwise than {VOCABULARY} does" if wrong else counter
    )
    return _loaded[package]


def default() -> BackendCounter | None:
    """The fastest, decided once: all that counts in a process counts alike, and to find nothing takes a millisecond."""
    if VOCABULARY not in _loaded:
        _loaded[VOCABULARY] = fastest() or f"nothing counts {VOCABULARY}"
    found = _loaded[VOCABULARY]
    return found if isinstance(found, BackendCounter) else None


def fastest() -> BackendCounter | None:
    """The first that loads, of those that load in less than a second."""
    for package in _MAKERS:
        if package not in _SLOW:
            try:
                return backend(package)
            except ValueError:
                continue
    return None


def named(name: str) -> BackendCounter | None:
    """The counter that a name means: ``"o200k_base"``, or with a package before it; None if it is no such name.

    Raises:
        ValueError: if it is one, and nothing that is installed counts so.
    """
    package, _, vocabulary = name.rpartition(":")
    if vocabulary != VOCABULARY or (package and package not in _MAKERS):
        return None
    if package:
        return backend(package)
    counter = fastest()
    if counter is None:
        raise ValueError(f'counter {VOCABULARY!r} needs a package that has it: pip install "chat-compaction[exact]"')
    return counter
