"""A summariser on any endpoint that speaks Chat Completions: a provider, a gateway, or a server of your own."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import attrs

from .._effects import arun, run
from .._summarizing import SummaryRequest
from .._validators import a_bool, non_negative
from ._answers import OnUsage, chat_text
from ._clients import CHAT, LimitField, a_usage_hook, a_window, chat_payload, limit_fields, read
from ._errors import SummaryError
from ._values import a_text, copied, free_of, needed, repr_of, seconds

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _a_base_url(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    expected = "a URL such as 'https://example.com/v1', without a user, a query or a fragment"
    if not isinstance(value, str):
        raise TypeError(f"{attribute.alias} must be {expected}, got {value!r}")
    try:
        parts = urlsplit(value)
        bare = parts.username is parts.password is None and not parts.query and not parts.fragment
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        path = parts.path.rstrip("/")
    except ValueError:
        bare, valid, path = "@" not in value and "?" not in value, False, ""
    if not bare:  # A secret may stand there, which no error may show.
        raise ValueError(f"{attribute.alias} must be {expected}; keys come from the environment: api_key_env")
    if not valid:
        raise ValueError(f"{attribute.alias} must be {expected}, got {value!r}")
    if path.endswith("/chat/completions"):
        raise ValueError(f"{attribute.alias} must be what stands ahead of /chat/completions, got {value!r}")


def _a_variable(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Whoever passes the key itself must not find it in a log."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            f"{attribute.alias} must be the name of an environment variable that holds the key, such as "
            f"'OPENAI_API_KEY', and not the key itself; got another {type(value).__name__}"
        )


@attrs.frozen(repr=False)
class EndpointSummarizer:
    """Summarises with any endpoint that speaks OpenAI's Chat Completions, over httpx2.

    ``base_url`` is what stands ahead of ``/chat/completions``. The key comes from the environment variable that
    ``api_key_env`` names, at each call, so that no configuration and no repr has it. ``timeout`` bounds the whole of
    a call, in seconds: all tries, the waits between them and a server that sends slowly. Up to ``retries`` times it
    is asked again after a failed connection, status 429 or a failure of the server: after ``backoff`` seconds, then
    twice as long, or as long as the server asks; where that goes beyond ``timeout``, the call fails at once.

    ``asynchronous=True`` makes the call something to await, for ``acompact`` and ``areduce``; without it an event
    loop stands still meanwhile. ``options``, ``limit_field``, ``reasoning_tokens``, ``window`` and ``on_usage`` are
    those of :class:`OpenAISummarizer`. A ``client`` of yours, an ``httpx2.Client`` or, with ``asynchronous=True``,
    an ``httpx2.AsyncClient``, is for proxies, certificates and further headers; you close it. Without one, each call
    opens one and closes it.

    Every failure is a :class:`SummaryError`.
    """

    base_url: str = attrs.field(validator=_a_base_url)
    model: str = attrs.field(validator=a_text)
    api_key_env: str | None = attrs.field(default=None, validator=attrs.validators.optional(_a_variable))
    timeout: float = attrs.field(default=60.0, kw_only=True, validator=seconds)
    retries: int = attrs.field(default=2, kw_only=True, validator=non_negative)
    backoff: float = attrs.field(default=0.5, kw_only=True, validator=seconds)
    asynchronous: bool = attrs.field(default=False, kw_only=True, validator=a_bool)
    options: dict[str, Any] = attrs.field(
        factory=dict, kw_only=True, converter=copied, validator=free_of(CHAT), hash=False
    )
    limit_field: LimitField = attrs.field(default="max_tokens", kw_only=True, validator=limit_fields)
    reasoning_tokens: int = attrs.field(default=0, kw_only=True, validator=non_negative)
    window: int | None = attrs.field(default=None, kw_only=True, validator=a_window)
    on_usage: OnUsage | None = attrs.field(default=None, kw_only=True, eq=False, repr=False, validator=a_usage_hook)
    client: Any = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        httpx2 = needed("httpx2", type(self).__name__, "endpoint")
        kind = "AsyncClient" if self.asynchronous else "Client"
        if self.client is not None and not isinstance(self.client, getattr(httpx2, kind)):
            raise TypeError(
                f"client must be an httpx2.{kind} where asynchronous is {self.asynchronous}, "
                f"got {type(self.client).__name__}"
            )

    def __call__(self, request: SummaryRequest) -> str | Awaitable[str]:
        """The summary; with ``asynchronous=True``, something to await."""
        return self._acall(request) if self.asynchronous else self._call(request)

    def _call(self, request: SummaryRequest) -> str:
        from time import sleep

        import httpx2

        from ._http import asking, send

        client = self.client or httpx2.Client()
        try:
            return self._read(run(asking(self._asked(request), partial(send, client), sleep)))
        finally:
            if self.client is None:
                client.close()

    async def _acall(self, request: SummaryRequest) -> str:
        import httpx2
        from anyio import sleep

        from ._http import asend, asking

        client = self.client or httpx2.AsyncClient()
        try:
            return self._read(await arun(asking(self._asked(request), partial(asend, client), sleep)))
        finally:
            if self.client is None:
                await client.aclose()

    def _asked(self, request: SummaryRequest) -> Any:
        from ._http import Call

        payload = chat_payload(request, self.model, self.limit_field, self.reasoning_tokens, self.options)
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        return Call(url, payload, self._authorization(), self.timeout, self.retries, self.backoff)

    def _authorization(self) -> dict[str, str]:
        if self.api_key_env is None:
            return {}
        key = os.environ.get(self.api_key_env, "").strip()
        # A header that the client refuses would stand in its error.
        if not key or not key.isascii() or not key.isprintable():
            raise SummaryError("no_key", f"the environment variable {self.api_key_env} holds no key")
        return {"authorization": f"Bearer {key}"}

    def _read(self, answer: Any) -> str:
        return read(answer, chat_text, self.model, self.on_usage)

    def __repr__(self) -> str:
        return repr_of(self)
