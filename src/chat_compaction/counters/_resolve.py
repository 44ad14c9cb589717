"""Which counter counts: the caller's own, an installed tokenizer, an estimate."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from . import _backends as backends
from ._adapters import FunctionCounter, TokenizerCounter
from ._estimate import EstimateCounter
from ._protocol import Counter

_EXPECTED = (
    "a Counter, 'o200k_base', a function from a text to its tokens, a tokenizers.Tokenizer, "
    "the path of a tokenizer.json"
)


def resolve_counter(counter: Any = None) -> Counter:
    """The counter that a ``counter`` argument means.

    - A :class:`Counter` is taken as it is.
    - A function from a text to its tokens becomes a :class:`FunctionCounter`, a ``tokenizers.Tokenizer`` or the path
      of its file a :class:`TokenizerCounter`.
    - ``"o200k_base"`` is the fastest exact counter of that vocabulary which is installed, ``"splintr-rs:o200k_base"``
      the one on that package; so are ``rs-bpe``, ``tiktoken``, ``bpe-openai`` and ``fastokens``.
    - None is ``"o200k_base"`` where that is installed, else :class:`EstimateCounter`. The network is never asked, and
      a package that does not load is passed over: the counter's ``name`` says which one it became.

    Raises:
        TypeError: for anything else.
        ValueError: if the file of a path cannot be read, or nothing that is installed has the vocabulary named.
    """
    if counter is None:
        return backends.default() or EstimateCounter()
    if isinstance(counter, type):
        raise TypeError(f"counter must be {_EXPECTED} or None, got the class {counter.__name__}: make an instance")
    if isinstance(counter, Counter):
        return _checked(counter)
    if isinstance(counter, str | os.PathLike):
        return _named(counter)
    if _is_tokenizer(counter):
        return TokenizerCounter(counter)
    if callable(counter) and not hasattr(counter, "encode"):
        return FunctionCounter(counter)
    raise TypeError(f"counter must be {_EXPECTED} or None, got {counter!r}{_hint(counter)}")


def _named(name: str | os.PathLike[str]) -> Counter:
    """The counter of a vocabulary's name, or of a file."""
    counter = backends.named(name) if isinstance(name, str) else None
    if counter is None and not Path(name).is_file():
        raise ValueError(f"counter must be {_EXPECTED} or None, got {str(name)!r}, which is no file")
    return counter or TokenizerCounter.from_file(name)


def _checked(counter: Counter) -> Counter:
    """The counter, if the types of its members are right."""
    if not isinstance(counter.name, str) or not isinstance(counter.exact, bool) or not callable(counter.count_many):
        raise TypeError(
            "counter must have a str name, a bool exact and a method count_many, "
            f"got {counter!r} with name {counter.name!r} and exact {counter.exact!r}"
        )
    bounds = getattr(counter, "bounds", None)
    if bounds is not None and not callable(bounds):
        raise TypeError(f"counter must have a method bounds, or None, or nothing of that name, got {bounds!r} there")
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
