"""Output files: all or nothing, and never half of one."""

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from chat_compaction.cli._click import Failure
from chat_compaction.cli._files import check_output, write_files


def test_files_are_written(tmp_path: Path) -> None:
    """New files appear and old ones are replaced, in UTF-8 and with line breaks as they are."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("before")
    write_files({str(old): "é\n", str(new): "1\r\n"})
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
        write_files({str(old): "after", str(tmp_path / "new"): "after"})
    monkeypatch.undo()
    assert old.read_text() == "before"
    assert list(tmp_path.iterdir()) == [old]


def test_a_file_that_fails_keeps_the_others_from_being_written(tmp_path: Path) -> None:
    """The messages are not written where the report cannot be: half of an answer misleads."""
    with pytest.raises(Failure, match=r"report\.json: no such file or directory"):
        write_files({str(tmp_path / "out"): "after", str(tmp_path / "gone" / "report.json"): "after"})
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while writing is no failure of writing, but it cleans up all the same."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files({str(tmp_path / "out"): "after"})
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
    write_files({str(link): "after", str(new): "new"})
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
    write_files({str(pipe): "after"})
    reader.join()
    assert read == ["after"]
    assert pipe.is_fifo()


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    """A folder, or a file in a folder that does not exist, is refused by name."""
    with pytest.raises(Failure, match=f"{tmp_path}: is a folder"):
        check_output(str(tmp_path))
    with pytest.raises(Failure, match=f"there is no folder {tmp_path / 'gone'}"):
        check_output(str(tmp_path / "gone" / "out.json"))
    check_output(str(tmp_path / "new.json"))
