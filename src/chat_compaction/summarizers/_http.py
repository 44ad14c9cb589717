"""One question to an HTTP server and its answer, with retries, inside one bound of time; for sync and async code.

This module needs httpx2 and is imported where a request is made. Nothing that it raises or logs has the body of a
request or its headers in it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from time import monotonic, time
from typing import Any

import attrs
import httpx2

from .._effects import Core, Effect
from ._answers import error_code
from ._errors import Reason, SummaryError

# What may go well the next time; 529 is "overloaded" at Anthropic and others.
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# A summary is some thousand tokens. Who sends more than this is no model.
_LARGEST = 16 * 1024 * 1024
# What we wait at most unasked.
_LONGEST_WAIT = 8.0


@attrs.frozen(repr=False)
class Call:
    """One POST of JSON: all tries together take at most ``timeout`` seconds, and there are at most ``retries`` more."""

    url: str
    payload: Mapping[str, Any]
    headers: Mapping[str, str]
    timeout: float
    retries: int
    backoff: float


@attrs.frozen(repr=False)
class Reply:
    """What a server sent back: the status, how long it asks us to wait, the body."""

    status: int
    retry_after: float | None
    body: bytes


Send = Callable[[Call, float], "Reply | Awaitable[Reply]"]
Sleep = Callable[[float], "Awaitable[None] | None"]


def asking(call: Call, send: Send, sleep: Sleep) -> Core[Any]:
    """Ask until there is an answer, and give back its JSON; a :class:`SummaryError` where there is none in time."""
    deadline = monotonic() + call.timeout
    for tried in range(call.retries + 1):
        failure, wait = None, None
        try:
            reply = yield Effect(send, (call, deadline))
        except httpx2.TimeoutException as error:
            raise _too_late(call) from error
        except httpx2.TransportError as error:
            failure = SummaryError("unavailable", f"no answer from {call.url}: {_told(error)}")
            failure.__cause__ = error
        else:
            if 200 <= reply.status < 300:
                return _parsed(reply)
            failure, wait = _refused(reply, call), reply.retry_after
        again = failure.reason in ("unavailable", "rate_limited") and tried < call.retries
        wait = _unasked(call.backoff, tried) if wait is None else wait
        if not again or monotonic() + wait >= deadline:
            raise failure
        yield Effect(sleep, (wait,))
    raise AssertionError("the last try returns or raises")  # pragma: no cover


def send(client: httpx2.Client, call: Call, deadline: float) -> Reply:
    """One try."""
    with client.stream(
        "POST", call.url, content=_body(call), headers=_headers(call), timeout=_rest(call, deadline)
    ) as response:
        body = bytearray()
        for chunk in response.iter_bytes():
            _add(body, chunk, call, deadline)
    return Reply(response.status_code, retry_after(response.headers, time()), bytes(body))


async def asend(client: httpx2.AsyncClient, call: Call, deadline: float) -> Reply:
    """:func:`send` for async code."""
    async with client.stream(
        "POST", call.url, content=_body(call), headers=_headers(call), timeout=_rest(call, deadline)
    ) as response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            _add(body, chunk, call, deadline)
    return Reply(response.status_code, retry_after(response.headers, time()), bytes(body))


def _body(call: Call) -> bytes:
    # Not the client's own JSON, which fails on a lone surrogate; escaped, it is as valid as any character.
    return json.dumps(call.payload).encode("ascii")


def _headers(call: Call) -> dict[str, str]:
    return {"content-type": "application/json", "accept": "application/json", **call.headers}


def _rest(call: Call, deadline: float) -> float:
    rest = deadline - monotonic()
    if rest <= 0:
        raise _too_late(call)
    return rest


def _add(body: bytearray, chunk: bytes, call: Call, deadline: float) -> None:
    """A server that sends a byte now and then never runs into the timeout of a client; this is where it ends."""
    body += chunk
    if len(body) > _LARGEST:
        raise SummaryError("malformed", f"the answer of {call.url} is larger than {_LARGEST:,} bytes")
    _rest(call, deadline)


def _too_late(call: Call) -> SummaryError:
    return SummaryError("timeout", f"no whole answer from {call.url} within {call.timeout:g} s")


def _told(error: httpx2.TransportError) -> str:
    """What went wrong; the text of the operating system where it could not be reached, else only the kind."""
    text = f": {error}" if isinstance(error, httpx2.ConnectError) and str(error) else ""
    return type(error).__name__ + text


def _refused(reply: Reply, call: Call) -> SummaryError:
    reason: Reason = "rejected"
    if reply.status == 429:
        reason = "rate_limited"
    elif reply.status in _AGAIN or reply.status >= 500:
        reason = "unavailable"
    try:
        content = json.loads(reply.body)
    except (ValueError, RecursionError):
        content = None
    later = "" if reply.retry_after is None else f", and asks to come back in {reply.retry_after:g} s"
    return SummaryError(reason, f"{call.url} answered with status {reply.status}{error_code(content)}{later}")


def _parsed(reply: Reply) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        # The error of the parser carries the whole text.
        raise SummaryError("malformed", f"the answer is no JSON ({type(error).__name__})") from None


def _unasked(backoff: float, tried: int) -> float:
    """Twice as long each time, and never quite the same, lest many that failed together come back together."""
    longest: float = min(_LONGEST_WAIT, backoff * 2**tried)
    return longest * random.uniform(0.75, 1)  # noqa: S311


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds a server asks to wait: a number, a date, or milliseconds under another name."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    number = _number(asked)
    if number is not None or asked is None:
        return number
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
