"""Which files are sessions, and where each is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from glob import has_magic
from pathlib import Path

import attrs

from ._record import FOLDER

_ENDINGS = (".json", ".jsonl")
_EXPECTED = "sessions must name files, folders or patterns"


@attrs.frozen
class Task:
    """A session file, and its path below the output folder."""

    path: Path
    name: str


def tasks_of(sessions: object, output: Path | None) -> list[Task]:
    """The sessions that are meant, in order, each once; raises ValueError where there are none."""
    if isinstance(sessions, str | os.PathLike):
        sources: list[object] = [sessions]
    elif isinstance(sessions, Iterable):
        sources = list(sessions)
    else:
        raise TypeError(f"{_EXPECTED}, got {sessions!r}")
    paths = [_path(source) for source in sources]
    base = _shared([path for path in paths if not _is_many(path)])
    tasks = {task.path: task for path in paths for task in _tasks(path, base, output)}
    if not tasks:
        raise ValueError(f"{_EXPECTED}, got none")
    found = list(tasks.values())
    if output is not None:
        _check_names(found, output)
    return found


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
    base = path
    if path.is_dir():
        found = [one for one in path.rglob("*") if one.suffix in _ENDINGS]
    else:
        while has_magic(str(base)):
            base = base.parent
        found = list(base.glob(str(path.relative_to(base))))
    tasks = [Task(one, str(one.relative_to(base))) for one in sorted(found) if one.is_file()]
    if not (tasks := [task for task in tasks if not _is_ours(task, base, output)]):
        raise ValueError(f"{_EXPECTED}, got {str(path)!r}, where there are no sessions")
    return tasks


def _is_ours(task: Task, base: Path, output: Path | None) -> bool:
    """Whether we wrote a file ourselves, in this run or an earlier one, into a folder of what is read."""
    if FOLDER in task.path.parts:
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
