"""Where offloaded texts are: any file system of fsspec, each text a file under the hash of what it says."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

import attrs

from .._text import shown
from .._validators import non_negative
from ._errors import OffloadError, damaged, failed
from ._excerpt import Excerpt, Hit, Unit, check_range, excerpt, hits
from ._handles import PREFIX, checked_handle, decoded, encoded, handle_of_bytes, whole_characters
from ._quota import Quota
from ._threads import in_thread

# Nobody sees a part of a file there before it is whole; and to move one is to copy it and delete the first.
_WHOLE_OR_NOT_AT_ALL = {"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci"}
_FIRST_PIECE, _LARGEST_PIECE = 1 << 16, 1 << 22
_SECRETS = re.compile(r"(://)[^/]*(@)|(\?).*")


class TextStore(Protocol):
    """What :class:`~chat_compaction.OffloadStrategy` needs of a store."""

    def put(self, text: str) -> Any:
        """Keep a text and return ``handle_of(text)``; whoever gets that may forget the text.

        May be an ``async def`` where the strategy is run by ``acompact``; a plain function is called in a thread there.
        """
        ...


def _a_url(value: object) -> str:
    url = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(url, str):
        raise TypeError(f"url must be a folder or a URL such as 's3://bucket/folder', got {shown(value)}")
    if not url:
        raise ValueError("url must be a folder or a URL such as 's3://bucket/folder', got ''")
    return url


def _options(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"storage_options must be a mapping of names to values, got {shown(value)}")
    if value.get("asynchronous"):
        raise ValueError("storage_options must be without 'asynchronous': aput and arecall work with any file system")
    return dict(value)


@attrs.frozen(repr=False)
class OffloadStore:
    r"""Texts under the hash of what they say, on any file system that fsspec knows.

    ``url`` is a local folder, or a URL (``memory://``, ``s3://bucket/folder``, ``sftp://...``), and
    ``storage_options`` are what fsspec's file system takes: keys, endpoints, timeouts. Neither they nor a password
    in the URL are in the repr. ``max_bytes`` is how much the store may hold, None for no limit; it is counted by this
    object, so several processes that write to one store may go beyond it by what they write at the same moment.

    A store may be used from several threads. Needs the extra ``offload``.

    >>> store = OffloadStore("memory://docs")
    >>> handle = store.put("one\ntwo\nthree\n")
    >>> store.recall(handle, 2, 3)
    'two\nthree\n'
    """

    url: str = attrs.field(converter=_a_url)
    storage_options: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, converter=_options, hash=False)
    max_bytes: int | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(non_negative))
    _fs: Any = attrs.field(init=False, eq=False)
    _root: str = attrs.field(init=False, eq=False)
    _quota: Quota | None = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        fs, root = _opened(self.url, self.storage_options)
        object.__setattr__(self, "_fs", fs)
        object.__setattr__(self, "_root", root.rstrip("/"))
        object.__setattr__(self, "_quota", None if self.max_bytes is None else Quota(self.max_bytes))

    def __repr__(self) -> str:
        options = f", storage_options=<{', '.join(self.storage_options)}>" if self.storage_options else ""
        limit = "" if self.max_bytes is None else f", max_bytes={self.max_bytes}"
        return f"OffloadStore({_without_secrets(self.url)!r}{options}{limit})"

    # -- writing -------------------------------------------------------------------------------

    def put(self, text: str) -> str:
        """Keep a text and return its handle; the same text always has the same one.

        When this returns, the whole text is in the store. A file of its name and size is taken for it, and nothing
        is written. Otherwise the text is written under another name, read back, held against its hash, and moved into
        place; object stores, where a file appears only when it is whole, get it in place.

        Raises:
            StoreFullError: the store would exceed ``max_bytes``.
            OffloadError: it can't be written, or what was written is not the text.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {shown(text)}")
        data = encoded(text)
        handle = handle_of_bytes(data)
        try:
            if self._size(handle) != len(data):
                self._write(handle, data)
        except OffloadError:
            raise
        except Exception as error:
            raise failed(handle, "written", error) from error
        return handle

    async def aput(self, text: str) -> str:
        """:meth:`put` for async code: it runs in a thread, and the loop goes on meanwhile.

        On a cancellation the write may still be completed: the text is then in the store, and nobody has its handle.
        """
        return await in_thread(self.put, text)

    def _write(self, handle: str, data: bytes) -> None:
        room = nullcontext() if self._quota is None else self._quota.room(handle, len(data), self._used)
        with room:
            self._write_whole(handle, data)

    def _write_whole(self, handle: str, data: bytes) -> None:
        path = self._path(handle)
        if _protocols(self._fs) & _WHOLE_OR_NOT_AT_ALL:
            self._fs.pipe_file(path, data)
        else:
            self._write_beside(handle, data, path)
        if self._size(handle) != len(data):
            raise OffloadError(f"{handle} cannot be written: the file system says it did, and the file is not there")

    def _write_beside(self, handle: str, data: bytes, path: str) -> None:
        beside = f"{self._root}/.{handle}.{os.urandom(8).hex()}.part"
        self._fs.makedirs(self._root, exist_ok=True)
        try:
            self._fs.pipe_file(beside, data)
            if handle_of_bytes(self._fs.cat_file(beside)) != handle:
                raise OffloadError(f"{handle} cannot be written: what was written reads otherwise")
            self._fs.mv(beside, path)
        except BaseException:
            with suppress(Exception):
                self._fs.rm_file(beside)
            raise

    def _used(self) -> int:
        """The bytes of all files in the store."""
        self._fs.invalidate_cache(self._root)
        try:
            return sum(entry["size"] for entry in self._fs.ls(self._root, detail=True) if entry["type"] == "file")
        except FileNotFoundError:
            return 0

    # -- reading -------------------------------------------------------------------------------

    def recall(self, handle: str, start: int | None = None, end: int | None = None, *, unit: Unit = "lines") -> str:
        """Read a text back, or a range of it.

        ``start`` and ``end`` are numbers of lines, or with ``unit="characters"`` of characters; they count from 1, and
        both ends are included, as in ``sed``. None is the first, or the last. Behind the end there is
        nothing, and no error. Nothing behind the range is read, and no more of the text is held in memory than the
        range and one piece (4 MiB at most). A read that comes to the end of the text is checked against the hash.

        Raises:
            HandleError: ``handle`` is no handle.
            OffloadError: there is no such text, it can't be read, or it is not what was put there.
        """
        check_range(start, end, unit)
        return self._excerpt(handle, start, end, unit).text

    async def arecall(
        self, handle: str, start: int | None = None, end: int | None = None, *, unit: Unit = "lines"
    ) -> str:
        """:meth:`recall` for async code: it runs in a thread."""
        return await in_thread(self.recall, handle, start, end, unit=unit)

    def search(self, handle: str, text: str, *, limit: int = 50) -> tuple[Hit, ...]:
        """Where a stored text holds ``text``, whatever the case: the first ``limit`` places.

        No regular expression: one that a model writes could run forever.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {shown(text)}")
        if not text:
            raise ValueError("text must be what to look for, got ''")
        return tuple(islice(hits(self.recall(handle), text), limit))

    def _excerpt(self, handle: str, start: int | None, end: int | None, unit: Unit, most: int | None = None) -> Excerpt:
        handle = checked_handle(handle)
        try:
            return excerpt(self._pieces(handle), start, end, unit, most)
        except OffloadError:
            raise
        except UnicodeDecodeError:
            raise damaged(handle) from None  # It would quote the text.
        except Exception as error:
            raise failed(handle, "read", error) from error

    def _pieces(self, handle: str) -> Iterator[tuple[str, bool]]:
        """The text in pieces, and of each whether it is the last; before that is given, the hash is checked."""
        size = self._size(handle)
        if size is None:
            raise OffloadError(f"{handle} is not in the store")
        path, digest, at, step, rest = self._path(handle), hashlib.sha256(), 0, _FIRST_PIECE, b""
        while at < size:
            data = self._fs.cat_file(path, start=at, end=min(at + step, size))
            if not data:
                break
            digest.update(data)
            at, step = at + len(data), min(2 * step, _LARGEST_PIECE)
            if at < size:
                data = rest + data
                whole = whole_characters(data)
                rest = data[whole:]
                yield decoded(data[:whole]), False
            else:
                rest += data
        if PREFIX + digest.hexdigest() != handle:
            raise damaged(handle)
        yield decoded(rest), True

    # -- files ---------------------------------------------------------------------------------

    def _path(self, handle: str) -> str:
        return f"{self._root}/{checked_handle(handle)}.txt"

    def _size(self, handle: str) -> int | None:
        """The bytes of a stored text, None where there is none.

        A link or a folder of its name is refused: it would lead out of the store.
        """
        self._fs.invalidate_cache(self._root)
        try:
            info = self._fs.info(self._path(handle))
        except FileNotFoundError:
            return None
        if info.get("type") != "file" or info.get("islink"):
            raise OffloadError(f"{handle} is refused: what has its name in the store is no plain file")
        return int(info["size"])


def _opened(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        core = import_module("fsspec.core")
    except ImportError as error:
        raise ImportError("OffloadStore needs fsspec: install chat-compaction[offload]") from error
    try:
        fs, root = core.url_to_fs(url, **options)
    except ValueError as error:
        known = f"must be a folder or a URL of a file system that fsspec knows: {error}"
        raise ValueError(f"url {known}, got {_without_secrets(url)!r}") from None
    return fs, root


def _without_secrets(url: str) -> str:
    return _SECRETS.sub(r"\1\3***\2", url)


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
