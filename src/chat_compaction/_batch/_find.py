"""Which files are sessions, and where each is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

import attrs

from ._record import FOLDER, Records

_ENDINGS = (".json", ".jsonl")
_EXPECTED = "sessions must name files, folders or patterns"


@attrs.frozen
class Task:
    """A session file, and its path below the output folder."""

    path: Path
    name: str


def sources_of(sessions: object) -> list[Path]:
    """The files, folders and patterns that were named."""
    if isinstance(sessions, str | os.PathLike):
        return [_path(sessions)]
    if isinstance(sessions, Iterable) and not isinstance(sessions, bytes):
        return [_path(source) for source in sessions]
    raise TypeError(f"{_EXPECTED}, got {sessions!r}")


def folder_of(output: object) -> Path | None:
    """Where the outputs go; a folder that is there, or may be made."""
    if output is None:
        return None
    named = os.fspath(output) if isinstance(output, str | os.PathLike) else None
    if not isinstance(named, str):
        raise TypeError(f"output must be the path of a folder, or None, got {output!r}")
    if not named or (Path(named).exists() and not Path(named).is_dir()):
        raise ValueError(f"output must be a folder, got {named!r}")
    return Path(named)


def tasks_of(sources: Sequence[Path], output: Path | None, force: bool) -> list[Task]:
    """The sessions that are meant, in order, each once; raises ValueError where there are none.

    So it does where a session, or a file that is not ours, would be replaced.
    """
    base = _shared([path for path in sources if not _is_many(path)])
    tasks: dict[str, Task] = {}
    for task in (task for path in sources for task in _tasks(path, base, output)):
        tasks.setdefault(_place(task.path), task)
    if not tasks:
        raise ValueError(f"{_EXPECTED}, got none")
    found = list(tasks.values())
    if output is not None:
        _check_names(found, output)
        if not force:
            _check_replaced(found, output)
    return found


def is_read(path: Path, sources: Sequence[Path], output: Path | None) -> bool:
    """Whether a file would be read as a session if it were there."""
    return any(_would_give(source, path, output) for source in sources if _is_many(source))


def _would_give(source: Path, path: Path, output: Path | None) -> bool:
    base, real = _base(source), Path(_place(path))
    if not real.is_relative_to(base.resolve()):
        return False
    parts = real.relative_to(base.resolve()).parts
    fits = real.suffix in _ENDINGS if base == source else _fits(parts, source.relative_to(base).parts)
    return fits and not _is_ours(Task(path, os.path.join(*parts)), base, output)  # noqa: PTH118


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not parts or not pattern:
        return not parts and not pattern
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _place(path: Path) -> str:
    """Where a file is, by whatever way it was named; a link to another file is a file of its own."""
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _path(source: object) -> Path:
    named = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(named, str):
        raise TypeError(f"{_EXPECTED}, got {source!r} among them")
    return Path(named)


def _is_many(path: Path) -> bool:
    """Whether it is a folder or a pattern; a file may have a name that looks like a pattern."""
    return path.is_dir() or (has_magic(str(path)) and not path.exists())


def _shared(files: Sequence[Path]) -> str:
    """The folder that holds all of the files, at whatever depth: what a pattern would begin with that finds them."""
    return os.path.commonpath([path.absolute().parent for path in files]) if files else ""


def _tasks(path: Path, base_of_files: str, output: Path | None) -> list[Task]:
    if not _is_many(path):
        return [Task(path, os.path.relpath(path.absolute(), base_of_files))]
    base = _base(path)
    if base == path:
        found = [one for one in path.rglob("*") if one.suffix in _ENDINGS]
    else:
        found = list(base.glob(str(path.relative_to(base))))
    tasks = [Task(one, str(one.relative_to(base))) for one in sorted(found) if one.is_file()]
    if not (tasks := [task for task in tasks if not _is_ours(task, base, output)]):
        raise ValueError(f"{_EXPECTED}, got {str(path)!r}, where there are no sessions")
    return tasks


def _base(path: Path) -> Path:
    """The folder, or that with which a pattern begins."""
    while has_magic(str(path)) and not path.is_dir():
        path = path.parent
    return path


def _is_ours(task: Task, base: Path, output: Path | None) -> bool:
    """Whether we wrote a file ourselves, in this run or an earlier one, into a folder of what is read."""
    if FOLDER in Path(task.name).parts:
        return True
    if output is None or base.resolve() not in output.resolve().parents:
        return False
    return task.path.resolve().is_relative_to(output.resolve())


def _check_names(tasks: Iterable[Task], output: Path) -> None:
    """Refuse what would be overwritten: a session, or the output of another one."""
    sessions = {os.path.realpath(task.path) for task in tasks}
    taken: dict[str, Task] = {}
    for task in tasks:
        target = os.path.realpath(output / task.name)
        if ".." in Path(task.name).parts:
            raise ValueError(f"sessions must have a path below the output, got {task.name!r} for {str(task.path)!r}")
        if target in sessions:
            raise ValueError(
                f"output must be another folder than the one that is read, got {str(output)!r}, "
                f"where {target!r} would be overwritten"
            )
        if target in taken:
            raise ValueError(
                f"sessions must have names of their own below the output, got {str(taken[target].path)!r} "
                f"and {str(task.path)!r} for {task.name!r}"
            )
        taken[target] = task


def _check_replaced(tasks: Iterable[Task], output: Path) -> None:
    """Refuse to replace what no run of ours wrote."""
    records = Records(output)
    if not (names := [task.name for task in tasks if records.replaces(task.name)]):
        return
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    raise ValueError(
        "output must be another folder, or force=True must be given to replace files there that no earlier run wrote, "
        f"got {str(output)!r} with {str(output / names[0])!r}{more}"
    )
