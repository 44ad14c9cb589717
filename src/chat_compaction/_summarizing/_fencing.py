"""The fence: what stands inside is data, and nothing inside can look like the end of it or like another speaker.

Every line of ours in a request begins with a word that is made of a digest of the conversation and occurs nowhere
in it. It looks random, nobody who writes into a conversation can hit it, and the same conversation always gets the
same, so that equal requests are equal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from .._marks import defused
from ._request import SummaryEntry

_DIGITS = 8
_HEADER = re.compile(rf"\[(?=[0-9a-fA-F]{{{_DIGITS}}} (?:user|assistant|tool|system|summary|begin|end|keep)\b)")


def harmless(text: str) -> str:
    """A text where nothing looks like our fence or our mark."""
    return _HEADER.sub("(", defused(text))


def nonce_for(texts: Sequence[str]) -> str:
    """A word that none of these texts holds."""
    whole = "\n".join(texts)
    folded, digest = whole.lower(), whole.encode("utf-8", "surrogatepass")
    while True:
        digest = hashlib.sha256(digest).digest()
        nonce = digest.hex()[:_DIGITS]
        if nonce not in folded:
            return nonce


def fenced(entries: Sequence[SummaryEntry], keep: Sequence[str], nonce: str) -> str:
    """The conversation between the lines of our fence, each speaker under a line of its own."""
    lines = [f"[{nonce} begin]"]
    for entry in entries:
        lines += (header(entry, nonce), entry.text)
    if keep:
        lines += (f"[{nonce} keep]", *keep)
    return "\n".join([*lines, f"[{nonce} end]"])


def header(entry: SummaryEntry, nonce: str) -> str:
    """The line above what somebody said; a name is no place for a line of one's own."""
    speaker = " ".join(entry.speaker.replace("[", "(").replace("]", ")").split())
    return f"[{nonce} {speaker[:80]}]"


def repeats_fence(answer: str, nonce: str) -> bool:
    """Whether an answer has lines of our fence: then it is a copy of the request and no summary."""
    return f"[{nonce}" in answer
