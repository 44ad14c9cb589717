r"""Sound bounds of a count, for a fraction of what counting costs.

A byte-level tokenizer cuts the UTF-8 form of a text into tokens of one byte or more: it can never have more tokens than
bytes. That holds for whatever the vocabulary is, as long as nothing makes the text longer first.

There is no such lower bound worth having. Of o200k's expression follows that each word but those behind ``\\n/`` begins
a token; on recorded sessions that is 18 % of the tokens, at a cost that the fastest backends come near. So below stands
only what is certain: a text that is not empty has a token.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Bounds = Callable[[str], tuple[int, int]]

# Pre-tokenizers that cut and may drop, but never add: ByteLevel behind them sees no more than the text.
_CUTS = frozenset(
    {
        "BertPreTokenizer",
        "CharDelimiterSplit",
        "Digits",
        "FixedLength",
        "Punctuation",
        "Split",
        "UnicodeScripts",
        "Whitespace",
        "WhitespaceSplit",
    }
)


def byte_bounds(text: str) -> tuple[int, int]:
    """Bounds for any byte-level tokenizer: at most one token a byte, and at least one if there is any text.

    Give it to a :class:`FunctionCounter` that asks such a tokenizer, as tiktoken's are. A lone surrogate is taken as
    the three bytes of U+FFFD, which is what counters put in its place.
    """
    size = len(text)
    return (1 if size else 0), size if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _at_most_bytes(text: str) -> tuple[int, int]:
    """Bounds where text may be dropped or unknown."""
    return 0, byte_bounds(text)[1]


def _composed(text: str) -> tuple[int, int]:
    """Bounds behind the normal form C, which makes UTF-8 at most three times as long (UAX 15) and keeps ASCII."""
    least, size = byte_bounds(text)
    return least, size if size == len(text) else 3 * size


def tokenizer_bounds(tokenizer: Tokenizer) -> Bounds | None:
    """What follows for this tokenizer, or None where nothing does.

    Followed are byte-level BPE models with no normalizer or with NFC, where no step adds a space or a prefix.
    Post-processors add special tokens alone, and a token that was added takes one byte of the text or more.
    """
    try:
        normalizers = _steps(tokenizer.normalizer, "normalizers")
        cuts = _steps(tokenizer.pre_tokenizer, "pretokenizers")
    except Exception:  # a step written in Python cannot tell what it is, and raises a bare Exception
        return None
    if not (_is_plain_bpe(tokenizer) and _ends_in_bytes(cuts) and normalizers in ([], [{"type": "NFC"}])):
        return None
    if not (_keeps_all(cuts) and _knows_all_bytes(tokenizer)):
        return None if normalizers else _at_most_bytes
    return _composed if normalizers else byte_bounds


def _steps(step: Any, members: str) -> list[dict[str, Any]]:
    """A normalizer or pre-tokenizer as the list of its steps, sequences unfolded."""
    return _unfolded(json.loads(step.__getstate__()), members) if step is not None else []


def _unfolded(state: dict[str, Any], members: str) -> list[dict[str, Any]]:
    if state["type"] != "Sequence":
        return [state]
    return [step for member in state[members] for step in _unfolded(member, members)]


def _is_plain_bpe(tokenizer: Tokenizer) -> bool:
    """Whether the model says at most one token for each character that it is given."""
    from tokenizers.models import BPE

    model = tokenizer.model
    return isinstance(model, BPE) and not model.byte_fallback


def _ends_in_bytes(cuts: list[dict[str, Any]]) -> bool:
    """Whether the last cut makes one character of each byte, and nothing before it or in it adds any."""
    *before, last = cuts or [{"type": ""}]
    is_bytes = last["type"] == "ByteLevel" and not last["add_prefix_space"]
    return is_bytes and all(step["type"] in _CUTS for step in before)


def _keeps_all(cuts: list[dict[str, Any]]) -> bool:
    """Whether no cut drops what it cuts at."""
    keeping = {"Digits", "FixedLength", "Punctuation", "Split", "ByteLevel"}
    return all(step["type"] in keeping and step.get("behavior") != "Removed" for step in cuts)


def _knows_all_bytes(tokenizer: Tokenizer) -> bool:
    """Whether each byte by itself is a token, wherever in a word it stands."""
    from tokenizers.pre_tokenizers import ByteLevel

    model = tokenizer.model
    affixes = (model.continuing_subword_prefix, model.end_of_word_suffix)
    return not any(affixes) and all(tokenizer.token_to_id(byte) is not None for byte in ByteLevel.alphabet())
