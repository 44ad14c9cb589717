"""Output files: all or nothing, and never half of one."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chat_compaction import SessionError
from chat_compaction.cli._click import Failure
from chat_compaction.cli._files import check_output, same_file, write_outputs, writing


def test_files_are_written(tmp_path: Path) -> None:
    """New files appear and old ones are replaced, in UTF-8 and with line breaks as they are."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("before")
    write_outputs([(str(old), "é\n"), (str(new), "1\r\n")])
    assert old.read_bytes() == b"\xc3\xa9\n"
    assert new.read_bytes() == b"1\r\n"
    assert sorted(tmp_path.iterdir()) == [new, old]


@pytest.mark.parametrize("broken", ["fsync", "replace", "open"])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """A disk that fills up, or a file that cannot be replaced: old outputs stay whole, and no temporary file does."""
    old = tmp_path / "old"
    old.write_text("before")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace"), "open": (Path, "open")}[broken], fail)
    with pytest.raises(Failure, match="no space left on device"):
        write_outputs([(str(old), "after"), (str(tmp_path / "new"), "after")])
    monkeypatch.undo()
    assert old.read_text() == "before"
    assert list(tmp_path.iterdir()) == [old]


def test_a_file_that_fails_keeps_the_others_from_being_written(tmp_path: Path) -> None:
    """The messages are not written where the report cannot be: half of an answer misleads."""
    with pytest.raises(Failure, match=r"report\.json: no such file or directory"):
        write_outputs([(str(tmp_path / "out"), "after"), (str(tmp_path / "gone" / "report.json"), "after")])
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while writing is no failure of writing, but it cleans up all the same."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_outputs([(str(tmp_path / "out"), "after")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    """A replaced file keeps its permissions, a new one has the usual ones, and a link stays a link."""
    old, link, new = tmp_path / "old", tmp_path / "link", tmp_path / "new"
    old.write_text("before")
    old.chmod(0o640)
    link.symlink_to(old)
    usual = tmp_path / "usual"
    usual.touch()
    write_outputs([(str(link), "after"), (str(new), "new")])
    assert link.is_symlink()
    assert old.read_text() == "after"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    """What is no regular file, such as /dev/null or a shell's >(command), must never be replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_outputs([(str(pipe), "after")])
    reader.join()
    assert read == ["after"]
    assert pipe.is_fifo()


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    """A folder, or a file in a folder that does not exist, is refused by name."""
    with pytest.raises(Failure, match=f"{tmp_path}: is a folder"):
        check_output(str(tmp_path))
    with pytest.raises(Failure, match=f"there is no folder {tmp_path / 'gone'}"):
        check_output(str(tmp_path / "gone" / "out.json"))
    with pytest.raises(Failure, match="aaa: file name too long"):
        check_output(str(tmp_path / ("a" * 300)))
    with pytest.raises(Failure, match="embedded null byte"):
        check_output("a\0b")
    check_output(str(tmp_path / "new.json"))


def test_files_are_put_in_place_when_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that takes no more, or a report that cannot be put in place, leaves the messages as they were."""
    output, report = tmp_path / "session.json", tmp_path / "report.json"
    output.write_text("before")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("chat_compaction.cli._files.write_output", fail)
        with pytest.raises(OSError, match="No space left"):
            write_outputs([("-", "messages"), (str(report), "report")])
    assert list(tmp_path.iterdir()) == [output]

    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: fail() if to == report else replace(self, to))
    with pytest.raises(Failure, match=r"report\.json: no space left"):
        write_outputs([(str(output), "messages"), (str(report), "report")])
    assert output.read_text() == "before"
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="descriptors with names")
@pytest.mark.parametrize("link", [None, "link"])
@pytest.mark.parametrize("flags", [os.O_APPEND, os.O_TRUNC])
def test_an_open_descriptor_is_written_to_not_what_is_behind_it(tmp_path: Path, link: str | None, flags: int) -> None:
    """/dev/stdout, /dev/fd/N and links to them stand for a file that is open, such as a log: it is continued."""
    log = tmp_path / "log"
    log.write_text("before\n")
    descriptor = os.open(log, os.O_WRONLY | flags)
    name = f"/dev/fd/{descriptor}"
    if link:
        (tmp_path / link).symlink_to(name)
        name = str(tmp_path / link)
    inode = log.stat().st_ino
    try:
        write_outputs([(name, "messages\n")])
        os.write(descriptor, b"after\n")
    finally:
        os.close(descriptor)
    before = "before\n" if flags == os.O_APPEND else ""
    assert log.read_text() == f"{before}messages\nafter\n"
    assert log.stat().st_ino == inode
    assert (tmp_path / "link").is_symlink() is bool(link)


@pytest.mark.parametrize("number", [987_654, 10**30])
def test_a_descriptor_that_is_not_open_is_named(number: int) -> None:
    """Nothing can be written to it."""
    with pytest.raises(Failure, match=rf"^/dev/fd/{number}: "):
        write_outputs([(f"/dev/fd/{number}", "messages")])


def test_files_are_the_same_by_any_name(tmp_path: Path) -> None:
    """By links of both kinds and by standard streams, and before a file is there; /dev/null may be named twice."""
    file, other = tmp_path / "file", tmp_path / "other"
    assert same_file(str(file), str(tmp_path / "." / "file"), 0)
    file.touch()
    assert not same_file(str(file), str(other), 0)
    other.symlink_to(file)
    assert same_file(str(file), str(other), 0)
    other.unlink()
    other.hardlink_to(file)
    assert same_file(str(file), str(other), 0)
    with file.open("rb") as stream:
        assert same_file(str(other), "-", stream.fileno())
    assert not same_file(os.devnull, os.devnull, 0)
    assert not same_file(str(file), "a\0b", 0)


def test_a_text_may_come_in_pieces(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """It is never held as a whole; standard output gets nothing of one that cannot be made to its end."""
    write_outputs([(str(tmp_path / "out"), lambda: iter(["é", "\n"]))])
    assert (tmp_path / "out").read_bytes() == b"\xc3\xa9\n"

    def breaks() -> Iterator[str]:
        yield "half"
        raise SessionError("no more")

    for name in ("-", str(tmp_path / "out")):
        with pytest.raises(SessionError, match="no more"):
            write_outputs([(name, breaks), (str(tmp_path / "report"), "report")])
    assert capfdbinary.readouterr().out == b""
    assert (tmp_path / "out").read_bytes() == b"\xc3\xa9\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_lines_are_put_in_place_at_the_end(tmp_path: Path) -> None:
    """A report that grows line by line replaces the old one when it is whole, with its permissions, or not at all."""
    path = tmp_path / "report.jsonl"
    path.write_text("before")
    path.chmod(0o640)

    def interrupted() -> None:
        with writing(str(path)) as write:
            write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    with writing(str(path)) as write:
        write("one\n")
        write("\ud800\n")
        assert path.read_text() == "before"
    assert path.read_text() == "one\n\\ud800\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with (
        pytest.raises(Failure, match=r"gone/report\.jsonl: no such file"),
        writing(str(tmp_path / "gone/report.jsonl")),
    ):
        pass
    assert list(tmp_path.iterdir()) == [path]
