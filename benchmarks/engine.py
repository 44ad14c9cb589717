"""What the engine costs beside the work that nobody can avoid, as ratios taken in one run.

Usage: ``python benchmarks/engine.py [SESSION.json] [--messages 4000] [--tokenizer FILE]``

The session (by default the example of this repository) is repeated up to the number of messages.
The units are ``json.loads`` of the same messages for what reads them, and counting each message
once for what decides about them. Ratios hold where seconds do not: the machine may be busy.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import chat_compaction as cc

EXAMPLE = Path(__file__).parent.parent / "examples" / "release-agent.json"
RUNS = 7


def stretched(messages: list[Any], length: int) -> list[Any]:
    """The session again and again, as objects and texts of their own, in a whole number of copies.

    Equal texts would be counted once for all copies.
    """
    numbered = (f"{copy}: " for copy in range(max(1, length // len(messages))))
    return [
        {**message, "content": number + message["content"]} if isinstance(message.get("content"), str) else message
        for number in numbered
        for message in deepcopy(messages)
    ]


def timed(work: Callable[[], object]) -> float:
    """The median of a few runs, in seconds."""
    times = []
    for _ in range(RUNS):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return median(times)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--messages", type=int, default=4_000)
    parser.add_argument("--tokenizer", help="a tokenizer file; by default the estimate")
    options = parser.parse_args()
    history = stretched(json.loads(options.session.read_text()), options.messages)
    text = json.dumps(history)
    counter = cc.TokenizerCounter.from_file(options.tokenizer) if options.tokenizer else cc.EstimateCounter()

    def index() -> cc.MessageIndex:
        return cc.MessageIndex.from_messages(history, counter=counter)

    def reducer(limit: int) -> cc.ChatReducer:
        return cc.as_chat_reducer(cc.TokenBudgetStrategy(limit, target_tokens=limit // 2), counter=counter, hooks=())

    parse = timed(lambda: json.loads(text))
    count = timed(lambda: index().value(cc.tokens)) - (read := timed(index))
    total = index().value(cc.tokens)
    warm = reducer(10 * total)
    warm(history)
    rows = [
        ("reading and grouping", read / parse, "json.loads"),
        ("a cold call that compacts to a tenth", timed(lambda: reducer(total // 10)(history)) / count, "counting once"),
        ("a warm call that has nothing to do", timed(lambda: warm(history)) / count, "counting once"),
    ]
    print(f"{len(history)} messages, {total:,} tokens by {counter.name}; {RUNS} runs each, medians")
    for name, ratio, unit in rows:
        print(f"{name:40} {ratio:8.3f} x {unit}")


if __name__ == "__main__":
    main()
