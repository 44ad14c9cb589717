"""The command line; it needs the extra ``cli``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]

_EXTRA = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command ``chat-compaction`` with these arguments, by default those of the process, and exit.

    The status is 0 when done, 1 where the history does not fit, or (``check``) breaks a rule, 2 for wrong use and
    for what cannot be read or written.
    """
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"chat-compaction: error: the command needs {' and '.join(missing)}; "
            'install them with: pip install "chat-compaction[cli]"\n'
        )
        sys.exit(2)
    from ._app import app

    app.main(arguments, prog_name="chat-compaction")
    raise AssertionError("app.main always exits")
