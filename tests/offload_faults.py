"""A local file system of which any operation can be made to fail, and texts to put there."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from chat_compaction.offload import OffloadStore

Fault = Callable[..., Any]
TEXT = "".join(f"line {number}: äöü 🙂\n" for number in range(1, 201))


class FaultyFileSystem(LocalFileSystem):  # type: ignore[misc]
    """``faulty://``: real files; ``faults`` are asked instead of the operation of their name."""

    protocol = "faulty"
    cachable = False
    faults: ClassVar[dict[str, Fault]] = {}
    asked: ClassVar[list[tuple[str, Any]]] = []
    """The operations, and what they were given behind the path."""

    def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.asked.append((name, kwargs or args[1:]))
        real = getattr(super(), name)
        fault = self.faults.get(name)
        return fault(real, *args, **kwargs) if fault else real(*args, **kwargs)

    def pipe_file(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("pipe_file", *args, **kwargs)

    def cat_file(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("cat_file", *args, **kwargs)

    def mv(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("mv", *args, **kwargs)

    def info(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("info", *args, **kwargs)

    def makedirs(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("makedirs", *args, **kwargs)

    def _open(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("_open", *args, **kwargs)


fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)


def faulty_store(folder: Path, **arguments: Any) -> OffloadStore:
    FaultyFileSystem.asked.clear()
    return OffloadStore(f"faulty://{folder.as_posix()}/store", **arguments)


@contextmanager
def fault(name: str, what: Fault) -> Iterator[None]:
    FaultyFileSystem.faults[name] = what
    try:
        yield
    finally:
        del FaultyFileSystem.faults[name]


def raises(error: BaseException) -> Fault:
    """Fails at once."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def nothing(*_: Any, **__: Any) -> None:
    """Says that it is done, and did nothing."""


def half(real: Callable[..., Any], path: str, data: bytes, **kwargs: Any) -> None:
    """Writes the first half, and says that it is done."""
    real(path, data[: len(data) // 2], **kwargs)


def other_bytes(real: Callable[..., Any], path: str, data: bytes, **kwargs: Any) -> None:
    """Writes as many bytes, one of them another one."""
    real(path, bytes([data[0] ^ 1]) + data[1:], **kwargs)


def first_then_fails(real: Callable[..., Any], source: str, target: str, **kwargs: Any) -> None:
    """Moves, and then loses the connection."""
    real(source, target, **kwargs)
    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def full_after(size: int) -> Fault:
    """What is opened takes so many bytes, and then there is no space."""

    def opened(real: Callable[..., Any], path: str, mode: str = "rb", **kwargs: Any) -> Any:
        file = real(path, mode=mode, **kwargs)
        return _Small(file, size) if "w" in mode else file

    return opened


class _Small:
    """A file on a disk that is nearly full."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self.room = file, room

    def __enter__(self) -> _Small:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> int:
        self.file.write(data[: self.room])
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space on device")
        return len(data)


WRITE_FAULTS: dict[str, tuple[str, Fault]] = {
    "folder not permitted": ("makedirs", raises(PermissionError(errno.EACCES, "Permission denied"))),
    "open not permitted": ("_open", raises(PermissionError(errno.EACCES, "Permission denied"))),
    "write times out": ("pipe_file", raises(TimeoutError("timed out"))),
    "write fails with an error of its own": ("pipe_file", raises(RuntimeError("https://key:secret@host failed"))),
    "full at once": ("_open", full_after(0)),
    "full after some bytes": ("_open", full_after(1_000)),
    "half is written": ("pipe_file", half),
    "another byte is written": ("pipe_file", other_bytes),
    "nothing is written": ("pipe_file", nothing),
    "reading back fails": ("cat_file", raises(OSError(errno.EIO, "Input/output error"))),
    "move fails": ("mv", raises(OSError(errno.EIO, "Input/output error"))),
    "move does nothing": ("mv", nothing),
    "looking fails": ("info", raises(TimeoutError("timed out"))),
}
"""By name: the operation of the file system that fails, and how."""
