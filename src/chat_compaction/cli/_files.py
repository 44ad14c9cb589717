"""Reading the input and writing the outputs: all or nothing, and never half a file."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, BinaryIO

from .._errors import SessionError
from ._click import Failure
from ._session import Session, parse_session


def shown(source: str) -> str:
    """What a message calls an input or output; a name that is no Unicode is made readable."""
    return "standard input" if source == "-" else os.fsencode(source).decode("utf-8", "replace")


def read_session(source: str) -> Session:
    """The session in a file, or with ``-`` on standard input."""
    try:
        data = _binary(sys.stdin, "input").read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise SessionError(f"{shown(source)}: {_reason(error)}") from None
    return parse_session(data, shown(source))


def write_output(text: str) -> None:
    """Write to standard output, in UTF-8 and with line breaks as they are, and flush."""
    stream = _binary(sys.stdout, "output")
    stream.write(text.encode("utf-8"))
    stream.flush()


def check_output(name: str) -> None:
    """Refuse a file that cannot be written, before any work is done for it."""
    path = Path(name)
    if path.is_dir():
        raise Failure(f"{shown(name)}: is a folder; expected a file")
    if not path.parent.is_dir():
        raise Failure(f"{shown(name)}: there is no folder {shown(str(path.parent))}")


def write_files(texts: Mapping[str, str]) -> None:
    """Write each text to its file: all of them, or on any failure none, so that what was there stays.

    A device or a pipe is written to as it is: nothing can take its place.
    """
    staged: list[tuple[Path, Path]] = []
    name = ""
    try:
        for name, text in texts.items():
            if not Path(name).exists() or Path(name).is_file():
                # The file behind a link, so that the link stays one.
                target = Path(os.path.realpath(name))
                staged.append((target.with_name(f".chat-compaction-{secrets.token_hex(4)}.tmp"), target))
                _stage(*staged[-1], text)
        for name, text in texts.items():
            if Path(name).exists() and not Path(name).is_file():
                Path(name).write_bytes(text.encode("utf-8"))
        for temporary, target in staged:
            name = str(target)
            temporary.replace(target)
    except OSError as error:
        raise Failure(f"{shown(name)}: {_reason(error)}") from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def _stage(temporary: Path, target: Path, text: str) -> None:
    """Write the text beside its target, on the same file system, with the target's permissions."""
    with temporary.open("xb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, temporary)


def _binary(stream: IO[str] | None, name: str) -> BinaryIO:
    if stream is None:
        raise Failure(f"standard {name} is closed")
    return stream.buffer  # type: ignore[attr-defined, no-any-return]


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]
