"""Runs the examples in README.md and docs/ and compares what they print with what stands below them.

- A ``python`` block is executed; the blocks of a page share one namespace.
- A ``text`` block is what the example above it printed; an exception prints its name and text.
- A ``console`` block is a terminal: a line after ``$`` is a command (a backslash continues it), and what follows is
  all that it printed.
- A ``sh`` block is not run: it installs or sets up.

``...`` in what is printed stands for anything. Examples run in a folder of their own that has the repository's
``examples`` in it.
"""

import io
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import attrs
import structlog
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser

from tests._shared import ROOT

RUN = frozenset({"python", "text", "console"})
NOT_RUN = frozenset({"none", "sh"})
_SHELL = shutil.which("bash") or "bash"


@attrs.define
class Page:
    """One page being run."""

    path: Path
    printed: str = ""
    """What the latest example printed and no block has claimed yet."""

    def run(self) -> int:
        """Runs every example in order; gives how many there were."""
        evaluators = {"python": self._python, "text": self._text, "console": self._console}
        parsers = [CodeBlockParser(language, evaluator) for language, evaluator in evaluators.items()]
        document = Document.parse(str(self.path), *parsers)
        document.namespace["__name__"] = "example"
        examples = list(document.examples())
        for example in examples:
            example.evaluate()
        assert not self.printed, f"{self.path.name}: the last example printed what no block shows:\n{self.printed}"
        return len(examples)

    def _python(self, example: Example) -> str | None:
        if self.printed:
            return f"the example above printed what no block shows:\n{self.printed}"
        code = compile("\n" * example.line + example.parsed, example.path, "exec", dont_inherit=True)
        out = io.StringIO()
        with redirect_stdout(out):
            try:
                exec(code, example.namespace)  # noqa: S102 - running them is the point
            except Exception as error:
                out.write(f"{type(error).__name__}: {error}\n")
        self.printed = out.getvalue()
        return None

    def _text(self, example: Example) -> str | None:
        printed, self.printed = self.printed, ""
        return _difference(example.parsed, printed)

    def _console(self, example: Example) -> str | None:
        for command, shown in _commands(example.parsed):
            done = subprocess.run(
                [_SHELL, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            difference = _difference(shown, done.stdout)
            if difference is not None:
                return f"$ {command}\n{difference}"
        return None


def _difference(shown: str, printed: str) -> str | None:
    """None where they are the same, but for white space at the ends of lines."""
    shown, printed = (
        "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n" for text in (shown, printed)
    )
    if OutputChecker().check_output(shown, printed, ELLIPSIS):
        return None
    return f"--- shown\n{shown}--- printed\n{printed}---"


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a terminal, and what it printed."""
    lines = block.splitlines()
    assert lines[0].startswith("$ "), f"a console block begins with a command, not {lines[0]!r}"
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        stop = start
        while lines[stop].endswith("\\"):
            stop += 1
        yield "\n".join(lines[start : stop + 1])[2:], "\n".join(lines[stop + 1 : end])


def languages(path: Path) -> set[str]:
    """The languages of the fenced blocks of a page; directives such as ``{note}`` aside."""
    lines = path.read_text(encoding="utf-8").splitlines()
    fences = [line.strip().lstrip("`") for line in lines if line.strip().startswith("```")]
    return {fence for fence in fences[::2] if not fence.startswith("{")}


@contextmanager
def terminal(folder: Path) -> Iterator[None]:
    """A folder to run examples in, the installed commands on the path, and a program that configured no logging."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    saved_folder, saved_environment = Path.cwd(), dict(os.environ)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.update(COLUMNS="100", NO_COLOR="1", PATH=path)
    os.chdir(folder)
    try:
        with _unconfigured_logging():
            yield
    finally:
        os.chdir(saved_folder)
        os.environ.clear()
        os.environ.update(saved_environment)


@contextmanager
def _unconfigured_logging() -> Iterator[None]:
    """Logging as it is before anybody configures it; afterwards it is as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
