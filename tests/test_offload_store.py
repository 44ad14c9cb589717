"""The store of offloaded texts: what was put there comes back, whole or by range, and nothing else does."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import fsspec  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chat_compaction as cc
from chat_compaction import offload
from chat_compaction.offload import (
    HandleError,
    OffloadError,
    OffloadStore,
    StoreFullError,
    _excerpt,
    _store,
    handle_of,
)
from tests.offload_faults import (
    TEXT,
    WRITE_FAULTS,
    FaultyFileSystem,
    fault,
    faulty_store,
    first_then_fails,
    full_after,
    raises,
)

# Whatever a str can hold, halves of surrogate pairs too; line feeds and what other tools take for line ends are likely.
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\r\u2028\x0b ab\ud83d\ude00"), max_size=60)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OffloadStore]:
    """A store on a real folder, and one in memory."""
    url = str(tmp_path / "store") if request.param == "local" else f"memory://{tmp_path.name}"
    yield OffloadStore(url)
    with suppress(FileNotFoundError):
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# -- putting and recalling ---------------------------------------------------------------------------


def test_a_text_comes_back(store: OffloadStore) -> None:
    """The handle says what the text is; the same text has one handle, and one file."""
    handle = store.put(TEXT)
    assert handle == handle_of(TEXT) == "offload-" + hashlib.sha256(TEXT.encode()).hexdigest()
    assert store.recall(handle) == TEXT
    assert store.put(TEXT) == handle
    assert store.put("") == handle_of("")
    assert store.recall(handle_of("")) == ""


def test_the_file_is_the_text(tmp_path: Path) -> None:
    """Plain UTF-8 under the handle's name, which any tool reads; nothing else is in the folder."""
    handle = OffloadStore(tmp_path / "a" / "b").put("ä\r\n")
    assert (tmp_path / "a" / "b" / f"{handle}.txt").read_bytes() == b"\xc3\xa4\r\n"
    assert files_in(tmp_path / "a" / "b") == [f"{handle}.txt"]


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    """Idempotent: a file of the right name and size is only looked at."""
    store = faulty_store(tmp_path)
    store.put(TEXT)
    FaultyFileSystem.asked.clear()
    store.put(TEXT)
    assert [name for name, _ in FaultyFileSystem.asked] == ["info"]


def test_a_file_of_the_wrong_size_is_written_anew(tmp_path: Path) -> None:
    """What another program cut short is no text of ours."""
    store = OffloadStore(tmp_path)
    file = tmp_path / f"{store.put(TEXT)}.txt"
    file.write_bytes(b"line 1")
    assert store.recall(store.put(TEXT)) == TEXT


@given(text=ANY_TEXT)
def test_any_text_comes_back(text: str) -> None:
    """Lone surrogates, carriage returns and all."""
    store = OffloadStore("memory://any")
    assert store.recall(store.put(text)) == text


@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_only_texts_are_put(text: Any) -> None:
    with pytest.raises(TypeError, match="text must be a str, got"):
        OffloadStore("memory://any").put(text)


def test_async(store: OffloadStore) -> None:
    """The same, in a thread."""

    async def both() -> str:
        return await store.arecall(await store.aput("one\ntwo"), 2)

    assert asyncio.run(both()) == "two"


def test_the_loop_goes_on_while_a_text_is_put(tmp_path: Path) -> None:
    """A file system that answers late does not stop other tasks."""
    store, go_on = faulty_store(tmp_path), threading.Event()

    def late(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        assert go_on.wait(30)
        return real(*args, **kwargs)

    async def other() -> None:
        go_on.set()

    async def both() -> str:
        putting = asyncio.create_task(store.aput(TEXT))
        await asyncio.sleep(0)
        await other()
        return await putting

    with fault("pipe_file", late):
        assert store.recall(asyncio.run(both())) == TEXT


@pytest.mark.parametrize("same", [True, False], ids=["one text", "many texts"])
def test_threads_may_put_at_once(store: OffloadStore, same: bool) -> None:
    """Of the same text or of others: each is whole, and there is one of each."""
    texts = [f"{0 if same else number}: {TEXT}" for number in range(8)]
    start, handles = threading.Barrier(8), []

    def put(text: str) -> None:
        start.wait()
        handles.append(store.put(text))
        assert store.recall(handle_of(text)) == text

    threads = [threading.Thread(target=put, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(handles) == set(map(handle_of, texts))
    assert len(handles) == 8
    if Path(store.url).is_dir():
        assert files_in(Path(store.url)) == sorted({f"{handle}.txt" for handle in handles})


# -- ranges ------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    """A line ends with a line feed, which is part of it, and with nothing else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


@given(text=ANY_TEXT, start=st.integers(1, 70), size=st.integers(1, 70), piece=st.integers(1, 9), unit=...)
def test_any_range_is_what_a_slice_gives(text: str, start: int, size: int, piece: int, unit: _excerpt.Unit) -> None:
    """From 1, both ends included; wherever the pieces are cut in which the file is read."""
    store = OffloadStore("memory://ranges")
    handle = store.put(text)
    whole = list(text) if unit == "characters" else lines_of(text)
    with mock.patch.multiple(_store, _FIRST_PIECE=piece, _LARGEST_PIECE=piece):
        assert store.recall(handle, start, start + size - 1, unit=unit) == "".join(whole[start - 1 : start + size - 1])
        assert store.recall(handle, start, unit=unit) == "".join(whole[start - 1 :])
        assert store.recall(handle, end=size, unit=unit) == "".join(whole[:size])
        assert store.recall(handle) == text


def test_no_more_is_read_than_needed(tmp_path: Path) -> None:
    """The first lines of a large text cost one small read."""
    store = faulty_store(tmp_path)
    text = "0123456789abcde\n" * 500_000
    handle = store.put(text)

    def read(*arguments: Any, **more: Any) -> int:
        FaultyFileSystem.asked.clear()
        store.recall(handle, *arguments, **more)
        reads = [given for name, given in FaultyFileSystem.asked if name == "cat_file"]
        return sum(given["end"] - given["start"] for given in reads)

    assert read(1, 10) == 1 << 16
    assert read(1, 10, unit="characters") == 1 << 16
    assert read(5_000, 5_001) < 1 << 18
    assert read(499_999) == len(text)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"start": 0}, ValueError, "start must be an int of 1 or more, or None, got 0"),
        ({"end": -1}, ValueError, "end must be an int of 1 or more, or None, got -1"),
        ({"start": True}, TypeError, "start must be an int of 1 or more, or None, got True"),
        ({"end": "9"}, TypeError, "end must be an int of 1 or more, or None, got '9'"),
        ({"start": 3, "end": 2}, ValueError, "end must be at least start (3), got 2"),
        ({"unit": "bytes"}, ValueError, "unit must be one of 'lines', 'characters', got 'bytes'"),
    ],
    ids=str,
)
def test_wrong_ranges(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    store = OffloadStore("memory://ranges")
    with pytest.raises(error) as caught:
        store.recall(store.put("text"), **arguments)
    assert str(caught.value) == message


# -- searching ---------------------------------------------------------------------------------------


def test_search() -> None:
    """Each line that holds the words, in any case, with its number."""
    store = OffloadStore("memory://search")
    handle = store.put("one\nTWO two\nthree\ntwo.")
    assert [(hit.line, hit.character, hit.text) for hit in store.search(handle, "two")] == [
        (2, 5, "TWO two"),
        (4, 19, "two."),
    ]
    assert len(store.search(handle, "two", limit=1)) == 1
    assert store.search(handle, "four") == ()
    # No pattern of regular expressions.
    assert [hit.line for hit in store.search(handle, ".")] == [4]


def test_search_in_a_very_long_line() -> None:
    """What is around a hit is shown, and each of several in one line that are far apart."""
    store = OffloadStore("memory://search")
    text = "x" * 1_000 + "needle" + "y" * 1_000 + "needle" + "z"
    hits = store.search(store.put(text), "needle")
    assert [(hit.line, hit.character) for hit in hits] == [(1, 1_001), (1, 2_007)]
    assert [len(hit.text) for hit in hits] == [206, 107]
    for hit in hits:
        assert store.recall(handle_of(text), hit.character, hit.character + 5, unit="characters") == "needle"


@given(text=ANY_TEXT, wanted=ANY_TEXT.filter(bool))
def test_search_finds_where_it_is(text: str, wanted: str) -> None:
    """A hit's line and character are those at which the words stand."""
    store = OffloadStore("memory://search")
    handle = store.put(text + wanted + text)
    found = store.search(handle, wanted)
    assert found
    for hit in found:
        there = store.recall(handle, hit.character, hit.character + len(wanted) - 1, unit="characters")
        assert there.lower() == wanted.lower() or re.fullmatch(re.escape(wanted), there, re.IGNORECASE)
        assert (text + wanted + text).count("\n", 0, hit.character - 1) == hit.line - 1


def test_what_can_not_be_searched_for() -> None:
    store = OffloadStore("memory://search")
    handle = store.put("text")
    with pytest.raises(ValueError, match="text must be what to look for, got ''"):
        store.search(handle, "")
    with pytest.raises(TypeError, match="text must be a str, got 7"):
        store.search(handle, 7)  # type: ignore[arg-type]


# -- handles can't reach outside ---------------------------------------------------------------------

HEX = "0" * 64
HOSTILE: list[Any] = [
    "",
    "offload-",
    HEX,
    f"offload-{HEX[:-1]}",
    f"offload-{HEX}0",
    f"offload-{HEX}\n",
    f"\noffload-{HEX}",
    f"offload-{HEX}.txt",
    f"OFFLOAD-{HEX}",
    f"offload-{'A' * 64}",
    "offload-" + "\u0660" * 64,
    f"offload-{HEX[:-1]}\uff10",
    f"offload-{HEX[:-1]}\x00",
    "../secret",
    f"../offload-{HEX}",
    f"offload-{HEX}/../../secret",
    "offload-" + "../" * 21 + "x",
    "offload-" + "%2e%2e%2f" * 7 + "x",
    "/etc/passwd",
    "C:\\secret",
    "..\\secret",
    "file:///etc/passwd",
    "s3://other/secret",
    "memory://other/secret",
    "simplecache::s3://other",
    "~/.ssh/id_rsa",
    "*",
    "x" * 10_000,
]
NO_HANDLES = [None, 7, b"offload-" + HEX.encode(), ["offload-" + HEX], {"handle": HEX}]


@pytest.mark.parametrize("handle", [*HOSTILE, *NO_HANDLES], ids=map(str, range(len(HOSTILE + NO_HANDLES))))
def test_hostile_handles(handle: Any, tmp_path: Path) -> None:
    """A handle is one to the letter, or the file system is not even asked."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    store = faulty_store(tmp_path)
    with pytest.raises(HandleError, match=r"^handle must be 'offload-' and 64 of the digits 0-9a-f, got ") as caught:
        store.recall(handle)
    assert len(str(caught.value)) < 200
    assert isinstance(caught.value, ValueError)
    assert FaultyFileSystem.asked == []


@given(handle=st.text())
def test_no_other_text_is_a_handle(handle: str) -> None:
    with pytest.raises(HandleError):
        OffloadStore("memory://any").recall(handle)


@pytest.mark.parametrize("range_", [(), (1, 1)], ids=["all", "range"])
def test_a_link_in_the_store_is_not_followed(tmp_path: Path, range_: tuple[int, ...]) -> None:
    """Neither read through, also where no hash is checked, nor written through."""
    secret = tmp_path / "secret"
    secret.write_text(TEXT)
    store = OffloadStore(tmp_path / "store")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / f"{handle_of(TEXT)}.txt").symlink_to(secret)
    refused = f"^{handle_of(TEXT)} is refused: what has its name in the store is no plain file$"
    with pytest.raises(OffloadError, match=refused):
        store.recall(handle_of(TEXT), *range_)
    with pytest.raises(OffloadError, match=refused):
        store.put(TEXT)
    assert secret.read_text() == TEXT
    assert files_in(tmp_path / "store") == [f"{handle_of(TEXT)}.txt"]


def test_a_link_to_a_folder_gets_no_file(tmp_path: Path) -> None:
    """A move into what has the name of a text would land in the folder behind it."""
    outside, folder = tmp_path / "outside", tmp_path / "store"
    outside.mkdir()
    folder.mkdir()
    (folder / f"{handle_of('text')}.txt").symlink_to(outside, target_is_directory=True)
    with pytest.raises(OffloadError, match="no plain file"):
        OffloadStore(folder).put("text")
    assert files_in(outside) == []


def test_a_folder_or_a_pipe_is_no_text(tmp_path: Path) -> None:
    """Reading a pipe would wait forever."""
    store = OffloadStore(tmp_path)
    (tmp_path / f"{handle_of('folder')}.txt").mkdir()
    os.mkfifo(tmp_path / f"{handle_of('pipe')}.txt")
    for name in ("folder", "pipe"):
        with pytest.raises(OffloadError, match="no plain file"):
            store.recall(handle_of(name))


# -- reading what is not there, or not what it was ---------------------------------------------------


def test_a_text_that_is_gone(store: OffloadStore) -> None:
    """The error names the handle."""
    handle = handle_of("never put")
    with pytest.raises(OffloadError) as caught:
        store.recall(handle)
    assert str(caught.value) == f"{handle} is not in the store"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"line 200", b"line 201"),
        lambda data: data + b"more",
        lambda data: data[:-20],
        lambda data: b"",
        lambda data: b"\xff" + data[1:],
    ],
    ids=["other words", "more", "less", "empty", "no UTF-8"],
)
def test_a_damaged_text(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """A read that comes to the end is held against the hash, a range too."""
    store = OffloadStore(tmp_path)
    handle = store.put(TEXT)
    file = tmp_path / f"{handle}.txt"
    file.write_bytes(damage(file.read_bytes()))
    for piece, arguments in itertools.product((7, 1 << 16), ((), (190,), (1, 10_000))):
        with mock.patch.object(_store, "_FIRST_PIECE", piece), pytest.raises(OffloadError) as caught:
            store.recall(handle, *arguments)
        assert str(caught.value) == f"{handle} is damaged: what is in the store is not what was put there"


def test_a_text_that_gets_shorter_while_it_is_read(tmp_path: Path) -> None:
    """No endless loop: it is damaged."""
    store = faulty_store(tmp_path)
    handle = store.put(TEXT)
    with fault("cat_file", lambda *_, **__: b""), pytest.raises(OffloadError, match="is damaged"):
        store.recall(handle)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied", "/private/path"), "PermissionError, Permission denied"),
        (TimeoutError("https://key:secret@host"), "TimeoutError"),
        (RuntimeError("https://key:secret@host"), "RuntimeError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("operation", ["info", "cat_file"])
def test_reading_fails(tmp_path: Path, operation: str, error: Exception, reason: str) -> None:
    """What the file system says is the cause; our text has no path, address or key in it."""
    store = faulty_store(tmp_path)
    handle = store.put(TEXT)
    with fault(operation, raises(error)), pytest.raises(OffloadError) as caught:
        store.recall(handle)
    assert str(caught.value) == f"{handle} cannot be read: {reason}"
    assert caught.value.__cause__ is error


# -- writing fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITE_FAULTS)
def test_writing_fails(tmp_path: Path, name: str) -> None:
    """At every step: an error that names the handle, and no part of the text in the store.

    All is well once the fault is gone.
    """
    store = faulty_store(tmp_path)
    with fault(*WRITE_FAULTS[name]), pytest.raises(OffloadError) as caught:
        store.put(TEXT)
    assert str(caught.value).startswith(f"{handle_of(TEXT)} cannot be written: ")
    assert "secret" not in str(caught.value)
    # What a move that never happened has put aside is all that may be there.
    assert [file for file in files_in(tmp_path / "store") if not file.endswith(".part")] == []
    assert name == "move does nothing" or files_in(tmp_path / "store") == []
    assert store.recall(store.put(TEXT)) == TEXT


def test_a_move_that_fails_when_it_is_done(tmp_path: Path) -> None:
    """Told as a failure, though the text is there: whole, and found by the next put."""
    store = faulty_store(tmp_path)
    with fault("mv", first_then_fails), pytest.raises(OffloadError, match="ConnectionResetError, Connection reset"):
        store.put(TEXT)
    assert store.recall(handle_of(TEXT)) == TEXT


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)], ids=lambda error: type(error).__name__)
def test_an_interruption_leaves_no_part(tmp_path: Path, error: BaseException) -> None:
    store = faulty_store(tmp_path)
    with fault("mv", raises(error)), pytest.raises(type(error)):
        store.put(TEXT)
    assert files_in(tmp_path / "store") == []


def test_an_object_store_gets_a_text_in_place(tmp_path: Path) -> None:
    """A file appears there when it is whole; to move one would be to copy it. Its size is checked."""
    store = OffloadStore(f"memory://{tmp_path.name}")
    memory = type(fsspec.filesystem("memory"))
    with mock.patch.object(memory, "mv", side_effect=AssertionError), mock.patch.object(memory, "makedirs") as makedirs:
        assert store.recall(store.put(TEXT)) == TEXT
    assert not makedirs.called
    with mock.patch.object(memory, "pipe_file"), pytest.raises(OffloadError, match="the file is not there"):
        store.put("another")


# -- max_bytes ---------------------------------------------------------------------------------------


def test_a_full_store(tmp_path: Path) -> None:
    """What does not fit is refused; what is there already is no question of room."""
    store = OffloadStore(tmp_path, max_bytes=10)
    assert store.put("12345")
    with pytest.raises(StoreFullError) as caught:
        store.put("123456")
    expected = "cannot be written: its 6 bytes and the 5 in the store exceed max_bytes (10)"
    assert str(caught.value) == f"{handle_of('123456')} {expected}"
    assert store.put("12345") == handle_of("12345")
    assert store.put("abcde")
    with pytest.raises(StoreFullError):
        store.put("x")


def test_room_that_somebody_made_is_seen(tmp_path: Path) -> None:
    """Where it seems to be full the store is measured anew; and at first, what others put there counts."""
    first, second = (OffloadStore(tmp_path, max_bytes=10) for _ in range(2))
    handle = first.put("1234567")
    with pytest.raises(StoreFullError):
        second.put("abcdefg")
    (tmp_path / f"{handle}.txt").unlink()
    assert second.put("abcdefg")


def test_what_could_not_be_written_takes_no_room(tmp_path: Path) -> None:
    store = faulty_store(tmp_path, max_bytes=10)
    with fault("_open", full_after(0)), pytest.raises(OffloadError, match="OSError, No space on device"):
        store.put("1234567")
    assert store.put("abcdefg")


def test_measuring_is_rare(tmp_path: Path) -> None:
    """K13: a store with many texts is listed once, not at each put."""
    store = OffloadStore(tmp_path, max_bytes=10_000)
    with mock.patch.object(type(store._fs), "ls", side_effect=type(store._fs).ls, autospec=True) as ls:
        for number in range(50):
            store.put(str(number))
    assert ls.call_count == 1


def test_a_limit_holds_for_threads(tmp_path: Path) -> None:
    """Of those that put at the same moment, only so many get in as there is room for."""
    store, errors = OffloadStore(tmp_path, max_bytes=45), []

    def put(number: int) -> None:
        try:
            store.put(f"{number:10}")
        except StoreFullError as error:
            errors.append(error)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == len(threads) - len(files_in(tmp_path)) == 4


# -- the store as a value ----------------------------------------------------------------------------


def test_a_store_is_a_value(tmp_path: Path) -> None:
    """Equal to its equal, hashable, sent to another process."""
    store = OffloadStore(tmp_path, max_bytes=7)
    assert eval(repr(store)) == store == OffloadStore(str(tmp_path), max_bytes=7)  # noqa: S307
    assert hash(store) == hash(attrs.evolve(store))
    assert store != OffloadStore(tmp_path)
    again = pickle.loads(pickle.dumps(store))  # noqa: S301
    assert again == store
    assert again.recall(store.put("text")) == "text"
    with pytest.raises(AttributeError):
        store.url = "elsewhere"  # type: ignore[misc]


def test_a_relative_folder_is_the_one_of_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its folder finds its texts again."""
    monkeypatch.chdir(tmp_path)
    store = OffloadStore("store")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.put("text")
    assert files_in(tmp_path / "store") == [f"{handle_of('text')}.txt"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://user:pass@word@host/folder", "memory://***@host/folder"),
        ("memory://host/folder?sig=secret", "memory://host/folder?***"),
        ("memory://host/folder", "memory://host/folder"),
    ],
)
def test_no_secret_is_shown(url: str, shown: str) -> None:
    """Neither a password in the URL nor an option: only its name."""
    store = OffloadStore(url, storage_options={"secret_key": "s3cr3t", "global_store": True})
    assert repr(store) == f"OffloadStore({shown!r}, storage_options=<secret_key, global_store>)"


def test_options_reach_the_file_system(tmp_path: Path) -> None:
    store = OffloadStore(tmp_path, storage_options={"auto_mkdir": True})
    assert store._fs.auto_mkdir is True


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"url": ""}, ValueError, "url must be a folder or a URL such as 's3://bucket/folder', got ''"),
        ({"url": None}, TypeError, "url must be a folder or a URL such as 's3://bucket/folder', got None"),
        ({"url": b"bytes"}, TypeError, "url must be a folder or a URL such as 's3://bucket/folder', got a bytes"),
        ({"storage_options": "key"}, TypeError, "storage_options must be a mapping of names to values, got a str"),
        ({"storage_options": {1: 2}}, TypeError, "storage_options must be a mapping of names to values, got a dict"),
        ({"max_bytes": -1}, ValueError, "max_bytes must be an int of 0 or more, got -1"),
        ({"max_bytes": True}, TypeError, "max_bytes must be an int of 0 or more, got True"),
        (
            {"storage_options": {"asynchronous": True}},
            ValueError,
            "storage_options must be without 'asynchronous': aput and arecall work with any file system",
        ),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        OffloadStore(**{"url": "memory://any", **arguments})
    assert str(caught.value) == text


def test_an_unknown_file_system_is_refused_when_the_store_is_made() -> None:
    with pytest.raises(ValueError, match=r"^url must be .* that fsspec knows: .*, got 'nowhere://\*\*\*@x'$"):
        OffloadStore("nowhere://user:pass@x")


def test_without_fsspec() -> None:
    """The error says what to install."""
    with (
        mock.patch.dict(sys.modules, {"fsspec.core": None}),
        pytest.raises(ImportError, match=r"install chat-compaction\[offload\]"),
    ):
        OffloadStore("memory://any")


def test_errors_are_ours() -> None:
    """One root for all that goes wrong on purpose."""
    assert issubclass(HandleError, OffloadError)
    assert issubclass(StoreFullError, OffloadError)
    assert issubclass(OffloadError, cc.CompactionError)


def test_every_public_name_is_there() -> None:
    """The package loads a name when it is first used, and ``dir`` knows all of them."""
    assert set(offload.__all__) <= set(dir(offload))
    assert {getattr(offload, name).__module__ for name in offload.__all__} == {"chat_compaction.offload"}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        offload.nothing  # type: ignore[attr-defined]  # noqa: B018
