"""A provider that holds a request to what Anthropic documents of preserved thinking, and to a little more.

It knows nothing of the package. For each signed thinking block it remembers the prefix behind which it issued it: the
content of every message ahead of the block, thinking included, byte for byte as JSON. It refuses a request

- in which a signed block comes back behind anything else, unless the request asks for ``drop_block`` and its beta
  value says that it may;
- in which only some of the thinking is left out: of one message, or of the messages behind the first change;
- that asks for ``drop_block`` without the beta value, as the real one does.

Source: Anthropic, "Preserved thinking" and "Prefix checks on thinking blocks" (platform.claude.com, 2026).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BETA = "thinking-binding-controls-2026-08-01"
MISMATCH = "The block is bound to a different conversation."


class Refused(Exception):  # noqa: N818 - what a provider does
    """An HTTP 400; ``positions`` are the messages of the request to blame."""

    def __init__(self, text: str, positions: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.positions = tuple(positions)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _anthropic_signature(block: Any) -> str | None:
    """The signature of a thinking block, unsigned thinking too; None for any other block."""
    if not isinstance(block, Mapping) or block.get("type") not in ("thinking", "redacted_thinking"):
        return None
    return str(block.get("signature") or block.get("data") or "")


def _bedrock_signature(block: Any) -> str | None:
    body = block.get("reasoningContent") if isinstance(block, Mapping) else None
    if body is None:
        return None
    return str(body["reasoningText"].get("signature", "") if "reasoningText" in body else body["redactedContent"])


def _anthropic_options(request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    return request.get("thinking", {}), request.get("betas", ())


def _bedrock_options(request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    fields = request.get("additionalModelRequestFields", {})
    return fields.get("thinking", {}), fields.get("anthropic_beta", ())


_SIGNATURES = {"anthropic": _anthropic_signature, "bedrock_converse": _bedrock_signature}
_OPTIONS = {"anthropic": _anthropic_options, "bedrock_converse": _bedrock_options}


@dataclass
class StrictProvider:
    """What was issued, and the judge of what comes back."""

    format: str = "anthropic"
    _prefixes: dict[str, bytes] = field(default_factory=dict)
    """By signature, a digest of the prefix that the block was issued behind."""
    _thoughts: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    """By a message's content without thinking, the signatures that it was issued with."""
    _siblings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By signature, those of its message, in order."""
    _plain: set[bytes] = field(default_factory=set)
    """Contents without thinking that were also issued just so: nothing was left out there."""

    def issue(self, messages: Sequence[Any], start: int = 0) -> None:
        """Remember every signed block of a conversation from a position on, each behind what stands ahead of it."""
        for position, message, found in self._walk(messages):
            if position < start or message["role"] != "assistant":
                continue
            signatures = tuple(signature for signature, _ in found)
            self._prefixes.update(found)
            self._siblings.update(dict.fromkeys(signatures, signatures))
            if signatures:
                self._thoughts[self._bare(message)] = signatures
            else:
                self._plain.add(self._bare(message))

    def receive(self, messages: Sequence[Any], **request: Any) -> None:
        """Take a request, or refuse it."""
        drops = self._drops(request)
        wrong = self.mismatched(messages)
        torn = self._torn(messages, wrong)
        if torn:
            raise Refused("Only some of the thinking was left out.", torn)
        if wrong and not drops:
            raise Refused(f"messages.{wrong[0]}: {MISMATCH}", wrong)

    def mismatched(self, messages: Sequence[Any]) -> tuple[int, ...]:
        """The positions of messages with a signed block that was issued behind something else."""
        return tuple(
            position
            for position, _, found in self._walk(messages)
            if any(self._prefixes.get(signature) != digest for signature, digest in found)
        )

    def signed(self, message: Any) -> bool:
        """Whether a message holds a signed block."""
        return bool(self.marks(message))

    def marks(self, message: Any) -> list[str]:
        """The signatures in a message."""
        return [signature for signature in map(self._signature, _blocks(message)) if signature]

    def without_thinking(self, message: Any) -> dict[str, Any]:
        """The message without any thinking, signed or not."""
        content = message["content"]
        kept = content if isinstance(content, str) else [b for b in content if self._signature(b) is None]
        return {**message, "content": kept}

    # -- how it judges -------------------------------------------------------------------------

    def _drops(self, request: Mapping[str, Any]) -> bool:
        thinking, betas = _OPTIONS[self.format](request)
        asked = thinking.get("block_binding", {}).get("prefix_mismatch_behavior")
        if asked is not None and (BETA not in betas or thinking.get("type") not in ("adaptive", "enabled")):
            raise Refused(f"block_binding needs the beta value {BETA}, and a type of thinking")
        return bool(asked == "drop_block")

    def _walk(self, messages: Sequence[Any]) -> Iterator[tuple[int, Any, list[tuple[str, bytes]]]]:
        """Each message with its signed blocks: signature, and a digest of what stands ahead of the block."""
        ahead = hashlib.sha256()
        for position, message in enumerate(messages):
            ahead.update(_json(message["role"]))
            found = []
            for block in _blocks(message):
                signature = self._signature(block)
                if signature:
                    found.append((signature, ahead.digest()))
                ahead.update(_json(block))
            yield position, message, found

    def _bared(self, messages: Sequence[Any]) -> list[int]:
        """The messages that were issued with thinking and came without any."""
        return [
            position
            for position, message in enumerate(messages)
            if message["role"] == "assistant" and not self.signed(message)
            for bare in [self._bare(message)]
            if bare in self._thoughts and bare not in self._plain
        ]

    def _torn(self, messages: Sequence[Any], wrong: Sequence[int]) -> list[int]:
        """Messages with only some of their thinking, or with thinking while others behind the change have none."""
        bared = self._bared(messages)
        # The first block that was left out, or that is behind a change.
        first = min([*wrong, *bared], default=len(messages))
        torn = []
        for position, message in enumerate(messages):
            own = set(self.marks(message))
            issued = {other for one in own for other in self._siblings.get(one, ())}
            if own and (issued != own or (bared and position >= first)):
                torn.append(position)
        return torn

    def _signature(self, block: Any) -> str | None:
        return _SIGNATURES[self.format](block)

    def _bare(self, message: Any) -> bytes:
        return _json(self.without_thinking(message))


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return [content] if isinstance(content, str) else list(content)
