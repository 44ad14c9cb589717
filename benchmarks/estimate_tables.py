"""How far the estimate is off: exact counts, errors, and the tables of docs/counting.md."""

from __future__ import annotations

import gzip
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import estimate_texts as texts
from benchmarks.estimate_texts import Session
from chat_compaction.counters._estimate import EstimateCounter

Count = Callable[[Iterable[str]], list[int]]
Guess = Callable[[Sequence[str]], list[float]]

SHARED_VOCABULARIES = ("o200k_base", "cl100k_base")
RANGES = (
    (0.48, "below 0.48"),
    (0.75, "0.48 to 0.75"),
    (0.95, "0.75 to 0.95"),
    (1.05, "0.95 to 1.05"),
    (1.33, "1.05 to 1.33"),
    (2.01, "1.33 to 2.0"),
    (math.inf, "above 2.0"),
)


def exact_counter(path: Path) -> Count:
    """Exact counts by a tokenizer.json, plain or packed, remembered."""
    from tokenizers import Tokenizer

    packed = path.read_bytes()
    tokenizer = Tokenizer.from_str((gzip.decompress(packed) if path.suffix == ".gz" else packed).decode())
    known: dict[str, int] = {}

    def count(wanted: Iterable[str]) -> list[int]:
        wanted = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in wanted]
        new = list(dict.fromkeys(text for text in wanted if text not in known))
        for start in range(0, len(new), 1000):
            batch = new[start : start + 1000]
            encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            known.update(zip(batch, map(len, encoded), strict=True))
        return [known[text] for text in wanted]

    return count


def shared_vocabularies(data: Path) -> dict[str, Count]:
    """The vocabularies of the shared data, o200k_base first."""
    return {name: exact_counter(data / "tokenizers" / f"{name}.tokenizer.json.gz") for name in SHARED_VOCABULARIES}


class Errors(NamedTuple):
    """How far some guesses are off: how many there are, and the median and the 95th percentile of the share."""

    number: int
    median: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.1%} | {self.high:.1%}".replace("%", " %")


def errors(pairs: Iterable[tuple[float, float]]) -> Errors:
    """Of pairs of a guess and an exact count above zero."""
    shares = sorted(abs(guess / exact - 1) for guess, exact in pairs)
    return Errors(len(shares), statistics.median(shares), shares[min(len(shares) - 1, int(0.95 * len(shares)))])


def per_message(sessions: Iterable[Session], count: Count | Guess) -> list[list[float]]:
    """The tokens of each message of each session."""
    return [[sum(count(message)) for message in session.messages] for session in sessions]


def estimated(counter: EstimateCounter) -> Guess:
    """Guesses by the counter."""
    return lambda wanted: [float(tokens) for tokens in counter.count_many(wanted)]


def quarters(wanted: Sequence[str]) -> list[float]:
    """Characters / 4."""
    return [len(text) / 4 for text in wanted]


def judged(sessions: Sequence[Session], count: Count, guess: Guess) -> tuple[Errors, Errors]:
    """The errors per session and per message."""
    guesses, exact = per_message(sessions, guess), per_message(sessions, count)
    by_session = errors((sum(g), sum(e)) for g, e in zip(guesses, exact, strict=True))
    by_message = errors(pair for g, e in zip(guesses, exact, strict=True) for pair in zip(g, e, strict=True))
    return by_session, by_message


def scale_for(sessions: Sequence[Session], count: Count) -> float:
    """The scale of a vocabulary: the median over the sessions of the exact count divided by the estimate."""
    guesses, exact = per_message(sessions, estimated(EstimateCounter())), per_message(sessions, count)
    return round(statistics.median(sum(e) / sum(g) for g, e in zip(guesses, exact, strict=True)), 2)


def summary(fitted: Sequence[Session], held_out: Sequence[Session], vocabularies: dict[str, Count]) -> list[str]:
    """A row for each vocabulary, on the sources held out."""
    rows = []
    for name, count in vocabularies.items():
        scale = scale_for(fitted, count)
        guesses: dict[str, Guess] = {name: estimated(EstimateCounter())}
        if abs(scale - 1) > 0.015:
            guesses[f"{name}, `scale={scale:g}`"] = estimated(EstimateCounter(scale=scale))
        guesses[f"{name}, characters / 4"] = quarters
        for label, guess in guesses.items():
            by_session, by_message = judged(held_out, count, guess)
            rows.append(f"| {label} | {by_session} | {by_message} |")
    return rows


def by_source(held_out: Sequence[Session], vocabularies: dict[str, Count]) -> list[str]:
    """A row for each source held out and each vocabulary, without a scale."""
    rows = []
    for source in sorted({session.source for session in held_out}, key=str.lower):
        chosen = [session for session in held_out if session.source == source]
        for name, count in vocabularies.items():
            by_session, by_message = judged(chosen, count, estimated(EstimateCounter()))
            sizes = f"{by_session.number} | {by_message.number:,}"
            rows.append(f"| {source} | {sizes} | {name} | {by_session} | {by_message} |")
    return rows


def other_texts(vocabularies: dict[str, Count]) -> list[str]:
    """A row for each vocabulary: the files of Python's standard library."""
    files = texts.standard_library()
    rows = []
    for name, count in vocabularies.items():
        ours, quarter = (judged(files, count, guess)[0] for guess in (estimated(EstimateCounter()), quarters))
        rows.append(
            f"| Python {sys.version_info[0]}.{sys.version_info[1]} | {ours.number} | {name} | {ours} | {quarter} |"
        )
    return rows


def ratios(wanted: dict[str, str], count: Count) -> list[str]:
    """A row for each range of the estimate divided by the exact count, and how many characters / 4 has in it."""
    exact = count(wanted.values())
    guesses = estimated(EstimateCounter())(list(wanted.values()))
    ours = {label: guess / tokens for label, guess, tokens in zip(wanted, guesses, exact, strict=True)}
    quarter = [len(text) / 4 / tokens for text, tokens in zip(wanted.values(), exact, strict=True)]
    rows, low = [], 0.0
    for high, title in RANGES:
        within = "; ".join(f"{label} {ratio:.2f}" for label, ratio in ours.items() if low <= ratio < high)
        rows.append(f"| {title} | {within or '-'} | {sum(low <= ratio < high for ratio in quarter)} |")
        low = high
    return rows


def tables(fitted: Sequence[Session], held_out: Sequence[Session], vocabularies: dict[str, Count]) -> str:
    """What the page says in figures."""
    count = vocabularies["o200k_base"]
    session_and_message = "session, median | session, 95 % | message, median | message, 95 %"
    parts: list[tuple[str, str, list[str]]] = [
        (
            f"The error on {len(held_out)} recorded sessions from sources that the weights were not fitted on:",
            f"vocabulary | {session_and_message}",
            summary(fitted, held_out, vocabularies),
        ),
        (
            "The same by source, without a scale:",
            f"source | sessions | messages | vocabulary | {session_and_message}",
            by_source(held_out, vocabularies),
        ),
        (
            "On the files of Python's standard library, which it was not fitted on either:",
            "of | files | vocabulary | median | 95 % | characters / 4, median | characters / 4, 95 %",
            other_texts(vocabularies),
        ),
        (
            "Estimate divided by the exact count of o200k_base, for paragraphs in languages that were fitted on:",
            "range | estimate | characters / 4, of how many",
            ratios(texts.LANGUAGES, count),
        ),
        (
            "And for texts that are hard. Of base64, hexadecimal and letters at random another draw was fitted on; for "
            "the rest some weights were set by hand, with an eye on it:",
            "range | estimate | characters / 4, of how many",
            ratios(texts.hard_texts(), count),
        ),
    ]
    return "\n\n".join("\n".join([title, "", f"| {head} |", rule(head), *rows]) for title, head, rows in parts)


def rule(head: str) -> str:
    """The line below the head of a table."""
    return "| " + " | ".join("---" for _ in head.split(" | ")) + " |"
