"""Reading the input and writing the outputs: never half a file, and files last of all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, BinaryIO

import attrs

from .._errors import SessionError
from ..formats._sessions import Session, parse_session
from ._click import Failure, tell, usage_error

Pieces = Callable[[], Iterable[str]]
"""What gives a text in pieces, as often as it is asked: it may be too big to be held as a whole."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?P<process>\d+)(?:/task/\d+)?)/fd/(?P<number>\d{1,9})")


def shown(source: str) -> str:
    """What a message calls an input or output; a name that is no Unicode is made readable."""
    return "standard input" if source == "-" else os.fsencode(source).decode("utf-8", "replace")


def read_session(source: str, sidechain: str | None = None) -> Session:
    """The session in a file, or with ``-`` on standard input; or one of its sidechains, by its name."""
    try:
        with nullcontext(_binary(sys.stdin, "input")) if source == "-" else Path(source).open("rb") as stream:
            session = parse_session(stream, shown(source))
    except SessionError:
        raise
    except (OSError, ValueError) as error:
        raise SessionError(f"{shown(source)}: {reason_of(error)}") from None
    if sidechain is None:
        return session
    if sidechain not in session.sidechains:
        names = f"one of {', '.join(session.sidechains)}" if session.sidechains else "of a session that has some"
        usage_error(f"--sidechain must be {names}, got {sidechain} for {shown(source)}")
    return attrs.evolve(session, messages=session.sidechains[sidechain], notes=(), sidechains={})


def tell_notes(session: Session, source: str) -> None:
    """Say on standard error what of a file is not among the messages."""
    for note in session.notes:
        tell(f"{shown(source)}: {note}")


def write_output(text: str | Pieces) -> None:
    """Write to standard output, in UTF-8 and with line breaks as they are, and flush."""
    stream = _binary(sys.stdout, "output")
    stream.writelines(_encoded(text))
    stream.flush()


def _encoded(text: str | Pieces) -> Iterator[bytes]:
    return (piece.encode("utf-8") for piece in ((text,) if isinstance(text, str) else text()))


def check_output(name: str) -> None:
    """Refuse a file that cannot be written, before any work is done for it."""
    path = Path(name)
    try:
        folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise Failure(f"{shown(name)}: there is no folder {shown(str(path.parent))}") from None
        return
    except (OSError, ValueError) as error:
        raise Failure(f"{shown(name)}: {reason_of(error)}") from None
    if folder:
        raise Failure(f"{shown(name)}: is a folder; expected a file")


def same_file(name: str, other: str, stream: int) -> bool:
    """Whether two names are of one file, also by links; the other may be ``-``, a standard stream by its number."""
    try:
        first, second = os.stat(name), os.stat(stream if other == "-" else other)  # noqa: PTH116
    except FileNotFoundError:
        return other != "-" and os.path.realpath(name) == os.path.realpath(other)
    except (OSError, ValueError):
        return False
    # A terminal, or /dev/null, may be any number of things.
    return os.path.samestat(first, second) and not stat.S_ISCHR(first.st_mode)


def refuse_agents_own(session: Session, source: str, option: str, output: str) -> None:
    """Refuse to replace an agent's JSON Lines, which hold more than messages, by a list of messages."""
    if session.source and session.shape != "object" and output != "-" and same_file(output, source, 0):
        usage_error(
            f"{option} must be another file than a session of {session.source}, which holds more than messages, "
            f"got {shown(output)} for both"
        )


def write_outputs(outputs: Sequence[tuple[str, str | Pieces]]) -> None:
    """Write each text to the file of that name, or with ``-`` to standard output.

    Files are put in place last, when everything is written: on a failure until then, each stays as it was. A
    pipe, a device or an open descriptor such as /dev/stdout is written to as it is: nothing can take its place.
    """
    streams: list[tuple[str, str | Pieces]] = []
    staged: list[tuple[str, Path, Path]] = []
    name = ""
    try:
        for name, text in outputs:
            if name == "-" or _is_stream(name):
                for _ in _encoded(text):
                    pass  # What cannot be made fails here: what a stream has taken cannot be taken back.
                streams.append((name, text))
            else:
                target = Path(_target(name))
                temporary = _beside(target)
                staged.append((name, temporary, target))
                _stage(temporary, target, text)
        for name, text in streams:
            _write_stream(name, text)
        # The messages last: they may replace the session, which must not go where the report cannot be written.
        for name, temporary, target in reversed(staged):  # noqa: B007  # an error names it
            temporary.replace(target)
    except OSError as error:
        if name == "-":
            raise
        raise Failure(f"{shown(name)}: {reason_of(error)}") from None
    finally:
        for _, temporary, _ in staged:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(name: str) -> Iterator[Callable[[str], object]]:
    """Write a file line by line; it is put in place at the end, if all went well. A stream is written to as it is."""
    try:
        if _is_stream(name):
            with _opened(name) as stream:
                yield lambda text: stream.write(text.encode("utf-8", "backslashreplace"))
            return
        target = Path(_target(name))
        temporary = _beside(target)
        try:
            with temporary.open("xb") as file:
                yield lambda text: file.write(text.encode("utf-8", "backslashreplace"))
            _like(target, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{shown(name)}: {reason_of(error)}") from None


def _target(name: str) -> str:
    """Where the links of a name lead, but not what an open descriptor leads to: that may be shared with others."""
    path = name
    for _ in range(40):  # as many as Linux follows
        folder, base = os.path.split(path)
        path = os.path.join(os.path.realpath(folder), base)  # noqa: PTH118
        if _DESCRIPTOR.fullmatch(path) or not os.path.islink(path):  # noqa: PTH114
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))  # noqa: PTH115, PTH118, PTH120
    return path


def _is_stream(name: str) -> bool:
    return bool(_DESCRIPTOR.fullmatch(_target(name))) or (Path(name).exists() and not Path(name).is_file())


def _write_stream(name: str, text: str | Pieces) -> None:
    if name == "-":
        write_output(text)
        return
    with _opened(name) as stream:
        stream.writelines(_encoded(text))


def _opened(name: str) -> BinaryIO:
    """A pipe, a device or a descriptor, opened to be written to."""
    target = _target(name)
    found = _DESCRIPTOR.fullmatch(target)
    if found and found["process"] in (None, str(os.getpid())):
        # Itself, since what it leads to, opened again, would have a position of its own.
        descriptor = os.dup(int(found["number"]))
    else:
        descriptor = os.open(target, os.O_WRONLY | os.O_APPEND)
    return open(descriptor, "wb")  # noqa: PTH123  # the caller closes it


def _beside(target: Path) -> Path:
    """A name beside a file, on the same file system."""
    return target.with_name(f".chat-compaction-{secrets.token_hex(4)}.tmp")


def _stage(temporary: Path, target: Path, text: str | Pieces) -> None:
    """Write the text beside its target, on the same file system, with the target's permissions."""
    with temporary.open("xb") as file:
        file.writelines(_encoded(text))
        file.flush()
        os.fsync(file.fileno())
    _like(target, temporary)


def _like(target: Path, temporary: Path) -> None:
    """Give a file the permissions of the one that it takes the place of."""
    if target.exists():
        shutil.copymode(target, temporary)


def _binary(stream: IO[str] | None, name: str) -> BinaryIO:
    if stream is None:
        raise Failure(f"standard {name} is closed")
    return stream.buffer  # type: ignore[attr-defined, no-any-return]


def reason_of(error: Exception) -> str:
    """Why something cannot be read or written, as the rest of a sentence."""
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]
