"""The data that several projects share: recorded sessions, conformance cases, vocabularies.

It stands outside the repository, at the path in ``CHAT_COMPACTION_SHARED`` or beside the repository as
``shared``. Where it is absent, a test that asks for it is skipped (a module, if it asks while it is imported);
with ``CHAT_COMPACTION_REQUIRE_SHARED=1`` it fails instead, so that a run that should have it can't pass without.
"""

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

_TOLD = pytest.StashKey[list[str]]()
"""What tests have to tell at the end of a run."""


def told(config: pytest.Config) -> list[str]:
    """The lines to show when all tests have run, whichever process they ran in."""
    return config.stash.setdefault(_TOLD, [])


ROOT = Path(__file__).resolve().parent.parent


def shared_dir() -> Path:
    """The folder of shared data."""
    path = Path(os.environ.get("CHAT_COMPACTION_SHARED") or ROOT.parent / "shared")
    if not path.is_dir():
        if os.environ.get("CHAT_COMPACTION_REQUIRE_SHARED") == "1":
            pytest.fail(f"no shared data at {path}, and CHAT_COMPACTION_REQUIRE_SHARED=1")
        pytest.skip("no shared data; set CHAT_COMPACTION_SHARED", allow_module_level=True)
    return path


def recorded_sessions(format_name: str) -> list[Path]:
    """The recorded sessions of one format, in a fixed order; never empty."""
    folder = shared_dir() / "data" / "sessions" / format_name
    paths = sorted(folder.glob("*.json"))
    if not paths:
        pytest.fail(f"no recorded sessions in {folder}")
    return paths


def load_session(path: Path) -> list[Any]:
    """The messages of a recorded session, fresh objects at every call."""
    messages = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(messages, list)
    return messages


@cache
def o200k_tokenizer() -> Tokenizer:
    """The o200k_base vocabulary, loaded once."""
    path = shared_dir() / "data" / "tokenizers" / "o200k_base.tokenizer.json.gz"
    return Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode("utf-8"))
