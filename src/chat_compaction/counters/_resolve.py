"""Which counter counts: the caller's own, an installed tokenizer, an estimate."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ._adapters import FunctionCounter, TokenizerCounter, encodable
from ._estimate import EstimateCounter
from ._protocol import Counter

_EXPECTED = "a Counter, a function from a text to its tokens, a tokenizers.Tokenizer, the path of a tokenizer.json"


def resolve_counter(counter: Any = None) -> Counter:
    """The counter that a ``counter`` argument means.

    - A :class:`Counter` is taken as it is.
    - A function from a text to its tokens becomes a :class:`FunctionCounter`, a ``tokenizers.Tokenizer`` or the path
      of its file a :class:`TokenizerCounter`.
    - None is an installed tokenizer that carries its vocabulary (o200k_base of ``rs-bpe`` or ``bpe-openai``), else
      :class:`EstimateCounter`. The network is never asked, and a package that does not load is passed over: the
      counter's ``name`` says which one it became.

    Raises:
        TypeError: for anything else.
        ValueError: if the file of a path cannot be read.
    """
    if counter is None:
        return _installed() or EstimateCounter()
    if isinstance(counter, type):
        raise TypeError(f"counter must be {_EXPECTED} or None, got the class {counter.__name__}: make an instance")
    if isinstance(counter, Counter):
        return _checked(counter)
    if isinstance(counter, str | os.PathLike):
        if not Path(counter).is_file():
            raise ValueError(f"counter must be {_EXPECTED} or None, got {str(counter)!r}, which is no file")
        return TokenizerCounter.from_file(counter)
    if _is_tokenizer(counter):
        return TokenizerCounter(counter)
    if callable(counter) and not hasattr(counter, "encode"):
        return FunctionCounter(counter)
    raise TypeError(f"counter must be {_EXPECTED} or None, got {counter!r}{_hint(counter)}")


def _checked(counter: Counter) -> Counter:
    """The counter, if the types of its members are right."""
    if not isinstance(counter.name, str) or not isinstance(counter.exact, bool) or not callable(counter.count_many):
        raise TypeError(
            "counter must have a str name, a bool exact and a method count_many, "
            f"got {counter!r} with name {counter.name!r} and exact {counter.exact!r}"
        )
    return counter


def _is_tokenizer(counter: object) -> bool:
    # Whoever has a tokenizer has imported its package; importing it here would cost everybody else.
    tokenizers = sys.modules.get("tokenizers")
    return tokenizers is not None and isinstance(counter, tokenizers.Tokenizer)


def _hint(counter: object) -> str:
    """How the caller gets from what was passed to a counter."""
    module = type(counter).__module__.partition(".")[0]
    if hasattr(counter, "count_many"):
        lacking = [member for member in ("name", "exact") if not hasattr(counter, member)]
        return f", which lacks {' and '.join(lacking)}"
    if not hasattr(counter, "encode") or isinstance(counter, bytes):
        return ""
    if module in ("tiktoken", "bpe_openai"):
        return ": pass lambda text: len(encoding.encode(text, disallowed_special=()))"
    if module == "transformers":
        return ": pass its backend_tokenizer, or lambda text: len(tokenizer.encode(text, add_special_tokens=False))"
    return ": pass lambda text: len(tokenizer.encode(text))"


def _installed() -> Counter | None:
    """The first layer that loads."""
    for layer in _LAYERS:
        try:
            return layer()
        except Exception:  # noqa: S112 - a default that is missing or broken is no reason to fail
            continue
    return None


@cache
def _rs_bpe() -> Counter:
    count = import_module("rs_bpe.bpe").openai.o200k_base().count
    return FunctionCounter(lambda text: count(encodable(text)), name="rs-bpe:o200k_base", exact=True)


@cache
def _bpe_openai() -> Counter:
    # The bindings, since the package's own Encoding refuses a text of more than 200,000 tokens.
    count = import_module("bpe_openai._bindings").tokenizer_for_encoding("o200k_base").count
    return FunctionCounter(lambda text: count(encodable(text)), name="bpe-openai:o200k_base", exact=True)


_LAYERS: tuple[Callable[[], Counter], ...] = (_rs_bpe, _bpe_openai)
