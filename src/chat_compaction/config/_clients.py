"""The client of an SDK that a configuration stands for: the SDK makes it, from its own environment variables."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import attrs

_HOMES = {"openai": "openai:OpenAI", "anthropic": "anthropic:Anthropic"}


@attrs.frozen
class EnvironmentClient:
    """A client of an SDK that is made when it is first called; so it can be compared, and sent to another process."""

    sdk: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Method(self.sdk, (name,))


@attrs.frozen
class _Method:
    sdk: str
    path: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Method(self.sdk, (*self.path, name))

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        method = _client(self.sdk)
        for name in self.path:
            method = getattr(method, name)
        return method(*args, **arguments)


@cache
def _client(sdk: str) -> Any:
    module, _, name = _HOMES[sdk].partition(":")
    return getattr(import_module(module), name)()


def client_of(kind: str) -> EnvironmentClient | None:
    """The client of a kind of summariser that needs one; ModuleNotFoundError where its SDK is not installed."""
    if kind not in _HOMES:
        return None
    sdk = _HOMES[kind].partition(":")[0]
    # Looked for and not imported: that takes a second.
    if find_spec(sdk) is None:
        raise ModuleNotFoundError(f'{kind!r} needs the package {sdk}: pip install "chat-compaction[{kind}]"', name=sdk)
    return EnvironmentClient(kind)
