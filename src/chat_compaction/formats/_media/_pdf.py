"""How many pages a PDF has, where its plain tables tell: a linearized file, or one with a cross-reference table.

Where the tables are compressed (streams, from PDF 1.5 on), nothing is said rather than something guessed.
"""

from __future__ import annotations

import re

from ._headers import Data

_UPDATES = 8
"""Tables that are looked through at most: a file has one more each time it was edited."""

_SECTIONS = 32

_OBJECT = 1 << 14
"""Bytes of an object that are read at most: the root of all pages may list them all before it says how many."""

_DIGITS = 20
"""Of a number, at most: more than any offset needs, zeros in front included. Longer ones are none, not converted."""

Section = tuple[int, int, int]
"""The number of the first object, how many there are, and where their entries begin."""

Table = tuple[list[Section], bytes]
"""The sections of a table, and its trailer."""


def pages(data: Data) -> int | None:
    """The pages that the file says it has."""
    head = data.at(0, 1024)
    if not head.startswith(b"%PDF-") or data.size is None:
        return None
    linearized = b"/Linearized" in head and _number(rb"/L\s+(\d+)", head) == data.size
    return _number(rb"/N\s+(\d+)", head) if linearized else _counted(data, data.size)


def _number(pattern: bytes, text: bytes) -> int | None:
    found = re.search(pattern, text)
    return _whole(found[1]) if found else None


def _whole(digits: bytes) -> int | None:
    return int(digits) if len(digits) <= _DIGITS else None


def _counted(data: Data, size: int) -> int | None:
    """The count of the root of all pages, found from the end: trailer, catalog, root."""
    begin = max(0, size - 1024)
    starts = re.findall(rb"startxref\s+(\d+)", data.at(begin, 1024))
    tables = _tables(data, _whole(starts[-1])) if starts else []
    root = next((number for _, trailer in tables if (number := _number(rb"/Root\s+(\d+)", trailer)) is not None), None)
    catalog = _object(data, tables, root)
    tree = _object(data, tables, _number(rb"/Pages\s+(\d+)", catalog))
    return _number(rb"/Count\s+(\d+)", tree) if re.search(rb"/Type\s*/Pages", tree) else None


def _tables(data: Data, offset: int | None) -> list[Table]:
    """Each table, the newest first."""
    found: list[Table] = []
    while offset is not None and len(found) < _UPDATES:
        if data.at(offset, 4) != b"xref":
            break
        sections, offset = _sections(data, offset + 4)
        trailer = data.at(offset, 1024).partition(b"startxref")[0]
        found.append((sections, trailer))
        offset = _number(rb"/Prev\s+(\d+)", trailer)
    return found


def _sections(data: Data, offset: int) -> tuple[list[Section], int]:
    """The sections of a table, of 20 bytes an object, and where they end."""
    found: list[Section] = []
    while len(found) < _SECTIONS and (head := re.match(rb"\s*(\d+) (\d+)\s*[\r\n]", data.at(offset, 32))):
        begin = offset + head.end()
        found.append((int(head[1]), int(head[2]), begin))
        offset = begin + 20 * int(head[2])
    return found, offset


def _object(data: Data, tables: list[Table], number: int | None) -> bytes:
    """The first bytes of an object, empty where it is not to be found."""
    if number is None:
        return b""
    for sections, _ in tables:
        for first, count, begin in sections:
            if first <= number < first + count:
                entry = data.at(begin + 20 * (number - first), 20)
                text = data.at(int(entry[:10]), _OBJECT).partition(b"endobj")[0]
                return text if re.match(rb"\s*%d\s" % number, text) else b""
    return b""
