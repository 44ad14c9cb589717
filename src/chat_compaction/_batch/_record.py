"""What a run did to a session, kept beside the outputs, so that the next run need not do it again.

A record holds digests of the session's file, of the settings and of what was written. Only where all three are
as they were is the session passed over: times of files, which copies and checkouts change, are never asked. A file
that has no record is not ours, and is not replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from secrets import token_hex
from typing import Any

import attrs

from .._groups import GroupKind
from .._problems import Problem, Repair
from .._report import Blocker, CompactionReport, Exclusion, Failure, Replacement
from ..formats._sessions._stream import Readable

FOLDER = ".chat-compaction"
"""The folder below the output that holds records, and files while they are being written."""

_ITEMS: dict[str, Any] = {
    "excluded": Exclusion,
    "restored": Exclusion,
    "replaced": Replacement,
    "failures": Failure,
    "blocked_by": Blocker,
    "problems": Problem,
    "repairs": Repair,
}


def digest(data: bytes) -> str:
    """A digest as text."""
    return blake2b(data, digest_size=20).hexdigest()


def digest_of(path: Path) -> str | None:
    """The digest of a file; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file_digest(file, lambda: blake2b(digest_size=20)).hexdigest()
    except OSError:
        return None


class Digesting:
    """A stream that is read, and the digest of all that was read of it."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._digest = blake2b(digest_size=20)

    def read(self, size: int, /) -> bytes:
        """As the stream does."""
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        """The digest so far."""
        return self._digest.hexdigest()


@attrs.frozen
class Record:
    """What was done to one session; ``settings`` is empty where no other run could know them."""

    settings: str
    session: str
    output: str
    report: CompactionReport
    notes: tuple[str, ...] = ()


@attrs.frozen
class Records:
    """The outputs of a folder and their records."""

    output: Path

    def path(self, name: str) -> Path:
        """Where the record of a session is: by a digest, since its name may be as long as a name can be."""
        return self.output / FOLDER / f"{digest(os.fsencode(name))}.record"

    def replaces(self, name: str) -> bool:
        """Whether something is in the place of an output that no run of ours wrote, and that would be replaced."""
        target = self.output / name
        # A folder cannot be replaced by a file: that is an error of its session.
        return os.path.lexists(target) and not target.is_dir() and not os.path.lexists(self.path(name))

    def find(self, name: str) -> Record | None:
        """The record of a session; None where there is none, or it is damaged."""
        try:
            sum_, _, body = self.path(name).read_bytes().partition(b"\n")
            if sum_.decode() != digest(body):
                return None
            found = json.loads(body)
            return Record(**{**found, "report": report_of(found["report"]), "notes": tuple(found["notes"])})
        except Exception:  # Of another version, whatever that may be: as if it were not there.
            return None

    def write(self, name: str, pieces: Iterable[str], record: Callable[[str], Record]) -> Path:
        """Write an output, all of it or nothing, and ahead of it its record, which is made of its digest."""
        target = self.output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._staged(pieces) as (temporary, written):
            self._keep(name, record(written))
            temporary.replace(target)
        return target

    def _keep(self, name: str, record: Record) -> None:
        fields = {**attrs.asdict(record, recurse=False), "report": record.report.to_dict()}
        body = json.dumps(fields)
        # The output is what matters: without its record it is made again.
        with suppress(OSError), self._staged([digest(body.encode()), "\n", body]) as (temporary, _):
            temporary.replace(self.path(name))

    @contextmanager
    def _staged(self, pieces: Iterable[str]) -> Iterator[tuple[Path, str]]:
        """A file that is whole, to be put in its place, and its digest."""
        written = blake2b(digest_size=20)
        temporary = self.output / FOLDER / f"{token_hex(8)}.tmp"
        temporary.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                for piece in pieces:
                    data = piece.encode("utf-8")
                    written.update(data)
                    file.write(data)
            yield temporary, written.hexdigest()
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def report_of(data: dict[str, Any]) -> CompactionReport:
    """The report that :meth:`CompactionReport.to_dict` made plain data of, and JSON may have been."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    for name, kind in _ITEMS.items():
        fields[name] = tuple(kind(**_item(item)) for item in fields[name])
    fields["stages"] = tuple(map(report_of, fields["stages"]))
    return CompactionReport(**fields)


def _item(data: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"positions": tuple, "written": tuple, "kind": GroupKind}
    return {name: made.get(name, lambda value: value)(value) for name, value in data.items()}
