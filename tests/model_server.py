"""A model's server on the loopback interface: speaks Chat Completions, Responses and Messages, and fails as told.

What it answers is a script: one :class:`Reply` after the other, whatever the request; the last one stays. What it was
asked is kept.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

from chat_compaction.summarizers import SummaryRequest

TEXT = "The user wants the cellar dry. Pump 7 is broken."
SAID = "the pump stands behind the blue door"
REQUEST = SummaryRequest(instructions="Summarise. Call nothing.", text=f"user: {SAID} \ud83d", max_tokens=200)
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@attrs.frozen(kw_only=True)
class Reply:
    """One answer: ``content`` is JSON, or bytes as they are; ``wait`` is ahead of it, ``drip`` between its bytes."""

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    wait: float = 0
    drip: float = 0
    hang_up: bool = False
    """Close the connection without a word."""

    @property
    def body(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else json.dumps(self.content).encode()


@attrs.frozen
class Asked:
    """One request that came in; the names of its headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


@attrs.define
class ModelServer:
    """What the server was asked, and what it will answer."""

    url: str
    replies: list[Reply] = attrs.field(factory=list)
    asked: list[Asked] = attrs.field(factory=list)
    closing: threading.Event = attrs.field(factory=threading.Event)
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def answers(self, *replies: Reply) -> None:
        self.replies[:] = replies

    def next_reply(self, asked: Asked) -> Reply:
        with self.lock:
            self.asked.append(asked)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server that runs until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.model = ModelServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield server.model
    finally:
        server.model.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gives up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.model.next_reply(Asked(self.path, headers, json.loads(body)))
        if reply.hang_up:
            return
        self._pause(reply.wait)
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        for start in range(0, len(reply.body), 1) if reply.drip else ():
            self.wfile.write(reply.body[start : start + 1])
            self.wfile.flush()
            self._pause(reply.drip)
        if not reply.drip:
            self.wfile.write(reply.body)

    def _pause(self, seconds: float) -> None:
        if seconds and self.server.model.closing.wait(seconds):
            raise ConnectionAbortedError

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


# -- answers as the providers write them -----------------------------------------------------------


def chat(text: Any = TEXT, *, stop: str | None = "stop", **message: Any) -> dict[str, Any]:
    """An answer of Chat Completions."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "small-2026",
        "choices": [
            {"index": 0, "finish_reason": stop, "message": {"role": "assistant", "content": text, **message}},
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132},
    }


def responses(*parts: dict[str, Any], status: str = "completed", output: Any = None, **more: Any) -> dict[str, Any]:
    """An answer of the Responses API: a reasoning item, then a message with these parts."""
    content = list(parts) or [output_text(TEXT)]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "small-2026",
        "status": status,
        "output": [{"id": "rs_1", "type": "reasoning", "summary": []}, message] if output is None else output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 120,
            "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 132,
        },
        **more,
    }


def output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def messages(*blocks: dict[str, Any], stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    """An answer of the Messages API: thinking, then these blocks."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small-2026",
        "content": [thinking, *(blocks or [{"type": "text", "text": TEXT}])],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 15,
            "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": 100,
            "output_tokens": 12,
        },
        **more,
    }


def failure(status: int, code: str = "some_code", **headers: str) -> Reply:
    """A refusal whose text repeats what was asked, as some gateways do."""
    content = {"error": {"message": f"cannot answer: {SAID}", "type": "some_error", "code": code}}
    return Reply(status=status, content=content, headers={name.replace("_", "-"): v for name, v in headers.items()})
