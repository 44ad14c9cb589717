"""Handles: the name of a text is the hash of what it says.

So the same text has one handle, a text never changes under its handle, what is read back can be checked, and a
handle, being letters and digits of a fixed number, can't name anything outside of the store.
"""

from __future__ import annotations

import hashlib
import re

from .._text import shown
from ._errors import HandleError

PREFIX = "offload-"
PATTERN = PREFIX + "[0-9a-f]{64}"
_HANDLE = re.compile(PATTERN)


def handle_of(text: str) -> str:
    """The handle under which a store keeps this text: ``offload-`` and the SHA-256 of its UTF-8.

    >>> handle_of("hello")
    'offload-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
    """
    return handle_of_bytes(encoded(text))


def handle_of_bytes(data: bytes) -> str:
    """The handle of a text that is encoded already."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def checked_handle(handle: object) -> str:
    """The handle, if it is one to the letter; :class:`HandleError` if not."""
    if not isinstance(handle, str) or not _HANDLE.fullmatch(handle):
        got = repr(handle) if isinstance(handle, str) and len(handle) <= 100 else shown(handle)
        raise HandleError(f"handle must be 'offload-' and 64 of the digits 0-9a-f, got {got}")
    return handle


def encoded(text: str) -> bytes:
    """As UTF-8. A lone surrogate, which a broken escape in JSON makes, is kept; the file is no strict UTF-8 then."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """The text that :func:`encoded` made these bytes of."""
    return data.decode("utf-8", "surrogatepass")


def whole_characters(data: bytes) -> int:
    """How many of these bytes are whole characters: what is behind them begins one that is cut.

    The incremental decoder of the standard library can't do this where a surrogate is cut.

    >>> whole_characters("aé".encode()[:2])
    1
    """
    for back, byte in enumerate(reversed(data[-3:]), 1):
        if byte < 0x80:
            break
        if byte >= 0xC0:  # The first byte of a character says how many it has.
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needs > back else len(data)
    return len(data)
