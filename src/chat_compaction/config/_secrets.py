"""Keys and passwords have no place in a configuration: files of that kind are shared, and end up in repositories."""

from __future__ import annotations

import re

_NAMES = {"key", "secret", "token", "password", "passphrase", "credential", "credentials", "authorization", "apikey"}
_NAMES |= {f"{of}_key" for of in ("access", "account", "api", "secret", "secret_access", "aws_secret_access", "x_api")}
_NAMES |= {f"{of}_token" for of in ("access", "auth", "aws_session", "bearer", "refresh", "sas", "session")}
_NAMES |= {"client_secret", "connection_string"}
_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]*:[^/?#@\s]+@", re.IGNORECASE)


def check_name(name: str) -> None:
    """Raise ValueError for the name of a secret in a table that may hold any names."""
    if name.lower().replace("-", "_") in _NAMES:
        raise ValueError("is a secret, which has no place in a configuration: the environment has it")


def check_text(text: str) -> None:
    """Raise ValueError for an address with a password in it."""
    if _WITH_PASSWORD.match(text):
        raise ValueError("is an address with a password, which has no place in a configuration: the environment has it")
