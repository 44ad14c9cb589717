"""Counters made of what the caller has: a function, or a tokenizer of the tokenizers package."""

from __future__ import annotations

import gzip
import inspect
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ._bounds import Bounds, tokenizer_bounds
from ._protocol import checked_count

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# An encoding holds about a hundred bytes for each token, so what is encoded at a time is bounded, in characters.
_BATCH = 1_000_000


def _name(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise TypeError(f"{attribute.alias} must be a str that is not empty, or None, got {value!r}")


def _flag(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{attribute.name} must be True or False, got {value!r}")


def _one_text(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise TypeError(f"{attribute.name} must be a plain function from one text to its tokens, got {value!r}")


def _bounds(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not callable(value) or inspect.iscoroutinefunction(value)):
        raise TypeError(
            f"{attribute.name} must be a plain function from one text to the least and the most, or None, got {value!r}"
        )


@attrs.frozen(repr=False)
class FunctionCounter:
    """A counter on any function from one text to its number of tokens.

    ``name`` defaults to ``"function:"`` and the function's own name. Say ``exact=True`` if the function asks a
    tokenizer (rule C3), and ``framing=False`` if only text is to be counted: neither tool calls nor names, media or
    the overhead of a message. ``bounds`` may be a function from a text to what its count is surely not below and not
    above, for much less than counting costs: :func:`byte_bounds` for any byte-level tokenizer.

    Raises:
        TypeError: on construction, if ``function`` is no plain function or another argument has the wrong type.
    """

    function: Callable[[str], int] = attrs.field(validator=_one_text)
    _name: str | None = attrs.field(default=None, validator=_name)
    exact: bool = attrs.field(default=False, validator=_flag)
    framing: bool = attrs.field(default=True, validator=_flag)
    bounds: Bounds | None = attrs.field(default=None, validator=_bounds)

    @property
    def name(self) -> str:
        """What it counts by."""
        return self._name or f"function:{_name_of(self.function)}"

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, in order.

        Raises:
            CounterError: if the function returns anything but an int of 0 or more.
        """
        return [checked_count(self.function(text), self.name, text) for text in texts]

    def __repr__(self) -> str:
        given = f", name={self._name!r}" if self._name else ""
        exact = ", exact=True" if self.exact else ""
        framing = "" if self.framing else ", framing=False"
        bounds = f", bounds={_name_of(self.bounds)}" if self.bounds else ""
        return f"FunctionCounter({_name_of(self.function)}{given}{exact}{framing}{bounds})"


def _name_of(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


@attrs.frozen(eq=False, repr=False)
class TokenizerCounter:
    """A counter on a ``Tokenizer`` of the tokenizers package: exact for its vocabulary.

    Only text is encoded: no special tokens are added, and truncation or padding set on the tokenizer has no effect on
    counts, nor is it changed. ``name`` defaults to the kind and size of the vocabulary. Two counters are equal if they
    are the same object.

    Raises:
        TypeError: if ``tokenizer`` is not of the tokenizers package, or ``name`` no str.
        ValueError: if ``tokenizer`` truncates or pads and cannot be copied.
    """

    tokenizer: Tokenizer
    _name: str | None = attrs.field(default=None, validator=_name)
    _copies: list[Tokenizer] = attrs.field(init=False, factory=list)
    _bounds: list[Bounds | None] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        from tokenizers import Tokenizer

        if not isinstance(self.tokenizer, Tokenizer):
            raise TypeError(f"tokenizer must be a tokenizers.Tokenizer, got {self.tokenizer!r}")
        self._unlimited()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], name: str | None = None) -> TokenizerCounter:
        """A counter on the ``tokenizer.json`` at ``path``, plain or gzipped (``.json.gz``).

        ``name`` defaults to ``"tokenizers:"`` and the file's name up to ``.json`` or ``.tokenizer.json``.

        Raises:
            ValueError: if there is no such file, or it holds no tokenizer.
        """
        file = Path(path)
        return cls(_load(file), name or f"tokenizers:{_stem(file)}")

    @property
    def name(self) -> str:
        """By which vocabulary it counts."""
        model = type(self.tokenizer.model).__name__
        return self._name or f"tokenizers:{model}-{self.tokenizer.get_vocab_size()}"

    @property
    def exact(self) -> bool:
        """True: a tokenizer counts (rule C3)."""
        return True

    @property
    def bounds(self) -> Bounds | None:
        """What is certain of a text's count without counting: bytes for a byte-level BPE, else None.

        The tokenizer is looked at once; a normalizer that it is given later is not seen.
        """
        if not self._bounds:
            self._bounds.append(tokenizer_bounds(self.tokenizer))
        return self._bounds[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, in order. A lone surrogate counts as the replacement character U+FFFD."""
        tokenizer = self._unlimited()
        # Without offsets it is about twice as fast; tokenizers before 0.20.1 do not have it.
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        return [
            len(encoding)
            for batch in _batches(map(encodable, texts), _BATCH)
            for encoding in encode(batch, add_special_tokens=False)
        ]

    def _unlimited(self) -> Tokenizer:
        """The tokenizer, or a copy while the caller's truncates or pads, which others may turn on at any time."""
        if self.tokenizer.truncation is None and self.tokenizer.padding is None:
            return self.tokenizer
        if not self._copies:
            self._copies.append(_unlimited_copy(self.tokenizer))
        return self._copies[0]

    def __repr__(self) -> str:
        return f"TokenizerCounter(<tokenizer>, name={self.name!r})"


def _unlimited_copy(tokenizer: Tokenizer) -> Tokenizer:
    try:
        copy = type(tokenizer).from_str(tokenizer.to_str())
    except Exception as error:  # what tokenizers raises for a part written in Python is a bare Exception
        raise ValueError(
            "tokenizer must be one that can be copied, or that neither truncates nor pads, "
            f"got truncation={tokenizer.truncation}, padding={tokenizer.padding}: {error}"
        ) from error
    copy.no_truncation()
    copy.no_padding()
    return copy


def _load(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        raw = file.read_bytes()
        return Tokenizer.from_str((gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("utf-8"))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
    except Exception as error:  # tokenizers raises a bare Exception for a file that it cannot read
        reason = str(error)
    raise ValueError(
        f"path must name a tokenizer of the tokenizers package, .json or .json.gz, got {str(file)!r}: {reason}"
    )


def _stem(file: Path) -> str:
    return re.sub(r"(\.tokenizer)?\.json(\.gz)?$", "", file.name) or file.name


def encodable(text: str) -> str:
    """The text with each lone surrogate, which has no UTF-8 form, replaced by U+FFFD; a pair becomes its character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _batches(texts: Iterator[str], characters: int) -> Iterator[list[str]]:
    """The texts in lists of at most so many characters, or of one text."""
    batch: list[str] = []
    held = 0
    for text in texts:
        if batch and held + len(text) > characters:
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += len(text)
    if batch:
        yield batch
