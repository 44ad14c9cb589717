"""Fit and judge the weights of ``EstimateCounter`` against o200k_base.

Run it with ``python benchmarks/fit_estimate.py``. It needs ``tokenizers`` and the shared data (recorded sessions and
the o200k_base vocabulary): the directory that the environment variable CHAT_COMPACTION_SHARED names, else ``../shared``
beside the repository. It prints

- the fitted weights next to those in ``chat_compaction.counters._estimate`` (round them and write them there by hand),
- the error per session, of characters / 4 and of the estimate, on the sources fitted on and on the other half,
- the same for weights fitted on the other half, which says how far the choice of half matters,
- the ratio of estimate to exact count for languages and for texts that are hard to estimate.

How a weight is fitted: a piece of the text costs one token plus weight x excess (see ``_shape``), so the weight of a
kind is its tokens above one, summed over all pieces of the kind, divided by its summed excess. That keeps the total
of each kind right, which matters more to a budget than the single piece.

What is held out are the weights only: the kinds themselves were chosen with an eye on both halves, so the errors on
the half held out are a little too good. Text from elsewhere is the better judge.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from chat_compaction.counters import _estimate as estimate
from chat_compaction.counters._estimate import EstimateCounter

Weights = dict[str, float]
Session = tuple[str, str, list[str], int]  # file, source, texts, exact tokens
FIXED = {"run", "space", "digits"}  # set by what the vocabulary holds, see the comment at _WEIGHTS

# Article 1 of the Universal Declaration of Human Rights.
LANGUAGES = {
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
    "und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
    "conciencia, deben comportarse fraternalmente los unos con los otros.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
    "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i "
    "sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají "
    "spolu jednat v duchu bratrství.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
    "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được tạo hoá "
    "ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
    "должны поступать в отношении друг друга в духе братства.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
    "повинні діяти у відношенні один до одного в дусі братерства.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με "
    "λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג "
    "איש ברעהו ברוח של אחווה.",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل بعضهم بعضًا "
    "بروح الإخاء.",
    "fa": "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل و وجدان هستند و "
    "باید نسبت به یکدیگر با روح برادری رفتار کنند.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन "
    "प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "zh-Hant": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神互相對待。",
    "ja": "すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 "
    "부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
}

# Not text that a model reads: ids, signatures, media.
SKIPPED_KEYS = frozenset(
    {
        "api",
        "bytes",
        "call_id",
        "data",
        "encrypted_content",
        "finish_reason",
        "id",
        "media_type",
        "mimeType",
        "mime_type",
        "model",
        "parentUuid",
        "provider",
        "redacted_content",
        "responseId",
        "role",
        "signature",
        "status",
        "textSignature",
        "thinkingSignature",
        "thoughtSignature",
        "thought_signature",
        "timestamp",
        "toolCallId",
        "tool_call_id",
        "tool_use_id",
        "type",
        "url",
        "uuid",
    }
)
ARGUMENT_KEYS = frozenset({"input", "args", "arguments"})
ENCODED = re.compile(r"data:|[A-Za-z0-9+/=_-]{4000}")


def shared_data() -> Path:
    """The directory with the recorded sessions; ends the program, saying where it looked, when there is none."""
    root = Path(os.environ.get("CHAT_COMPACTION_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (root / "data" / "sessions").is_dir():
        sys.exit(f"no recorded sessions under {root}/data: set CHAT_COMPACTION_SHARED to the shared directory")
    return root / "data"


def texts_of(value: Any, key: str = "") -> Iterator[str]:
    """Every text in a message of any format; tool arguments as compact JSON."""
    if isinstance(value, str):
        if value and key not in SKIPPED_KEYS and not ENCODED.match(value):
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item, key)
    elif isinstance(value, dict) and key in ARGUMENT_KEYS:
        yield json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from texts_of(item, name)


def sources(data: Path) -> dict[str, str]:
    """The source repository of every session file, from the tables of INDEX.md."""
    found, section = {}, ""
    for line in (data / "INDEX.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif name := re.match(r"\| (\S+\.json) \|", line):
            source = re.search(r"([\w.-]+/[\w.-]+)(\([^)]*\))?@", line)
            found[f"{section}/{name[1]}"] = source[1] if source else "unknown"
    return found


def exact_counter(data: Path) -> Callable[[Iterable[str]], list[int]]:
    """Exact counts by o200k_base, remembered."""
    from tokenizers import Tokenizer

    packed = (data / "tokenizers" / "o200k_base.tokenizer.json.gz").read_bytes()
    tokenizer = Tokenizer.from_str(gzip.decompress(packed).decode())
    known: dict[str, int] = {}

    def count(texts: Iterable[str]) -> list[int]:
        wanted = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
        new = list(dict.fromkeys(text for text in wanted if text not in known))
        for start in range(0, len(new), 1000):
            batch = new[start : start + 1000]
            encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            known.update(zip(batch, map(len, encoded), strict=True))
        return [known[text] for text in wanted]

    return count


def load(data: Path, count: Callable[[Iterable[str]], list[int]]) -> list[Session]:
    """The recorded sessions that hold text."""
    found = []
    origin = sources(data)
    for path in sorted((data / "sessions").glob("*/*.json")):
        name = f"{path.parent.name}/{path.name}"
        texts = list(texts_of(json.loads(path.read_text(encoding="utf-8"))))
        if texts:
            found.append((name, origin[name], texts, sum(count(texts))))
    return found


def halves(sessions: list[Session]) -> tuple[list[Session], list[Session]]:
    """The sessions to fit on and those held out: every other source, by name."""
    names = sorted({session[1] for session in sessions}, key=str.lower)
    chosen = set(names[::2])
    return [s for s in sessions if s[1] in chosen], [s for s in sessions if s[1] not in chosen]


def fit(texts: Iterable[str], count: Callable[[Iterable[str]], list[int]]) -> Weights:
    """The weight of each kind of piece that occurs in the texts with an excess."""
    seen = Counter[str]()
    for text in texts:
        seen.update(estimate._PIECES.findall(text))
    above, excess = Counter[str](), Counter[str]()
    for piece, tokens in zip(seen, count(seen), strict=True):
        kind, units = estimate._shape(piece)
        above[kind] += seen[piece] * (tokens - 1)
        excess[kind] += seen[piece] * units
    return {kind: above[kind] / excess[kind] for kind in above if excess[kind]}


def fit_sessions(sessions: list[Session], count: Callable[[Iterable[str]], list[int]]) -> Weights:
    """Weights from sessions and languages, each text once; what neither contains, and the fixed, as built in."""
    fitted = fit({*LANGUAGES.values(), *(text for session in sessions for text in session[2])}, count)
    return {**estimate._WEIGHTS, **{kind: weight for kind, weight in fitted.items() if kind not in FIXED}}


def estimated(texts: Iterable[str], weights: Weights) -> float:
    """The estimate with other weights than the built-in ones."""
    total = 0.0
    for text in texts:
        shapes = map(estimate._shape, estimate._PIECES.findall(text))
        total += max(1, round(sum(1 + weights[kind] * units for kind, units in shapes))) if text else 0
    return total


def error_row(label: str, sessions: list[Session], guess: Callable[[list[str]], float]) -> str:
    """One row of the table of errors: median, 95th percentile and largest error per session, as shares."""
    errors = sorted(abs(guess(texts) / tokens - 1) for _, _, texts, tokens in sessions)
    high = errors[min(len(errors) - 1, int(0.95 * len(errors)))]
    return f"{label:38} {len(errors):5} {statistics.median(errors):8.1%} {high:8.1%} {errors[-1]:8.1%}"


def hard_texts() -> dict[str, str]:
    """Texts that characters / 4 gets wrong by far."""
    rng = random.Random(1)
    raw = rng.randbytes(30_000)
    return {
        "base64": base64.b64encode(raw).decode(),
        "base32": base64.b32encode(raw).decode(),
        "hexadecimal": raw.hex(),
        "digits": "".join(rng.choices("0123456789", k=30_000)),
        "random lower-case letters": "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=30_000)),
        "one letter (a)": "a" * 30_000,
        "one letter (z)": "z" * 30_000,
        "spaces": " " * 30_000,
        "newlines": "\n" * 30_000,
        "tabs and spaces": "\t " * 15_000,
        "dashes": "-" * 30_000,
        "box drawing": "├── src\n│   └── main.py\n" * 500,
        "emoji": "🎉😀👍" * 3_000,
        "JSON numbers": "0.1234, " * 3_000,
    }


def main() -> None:
    """Print the weights and the tables of errors."""
    data = shared_data()
    count = exact_counter(data)
    sessions = load(data, count)
    parts = dict(zip(("fitted", "held out"), halves(sessions), strict=True))
    weights = fit_sessions(parts["fitted"], count)
    swapped = fit_sessions(parts["held out"], count)

    for half, part in parts.items():
        print(f"{half}: {', '.join(sorted({source for _, source, _, _ in part}))}")
    print(f"\n{'weight':14} {'built in':>9} {'fitted':>9} {'other half':>11}")
    for kind, built_in in estimate._WEIGHTS.items():
        print(f"{kind:14} {built_in:9.3f} {weights[kind]:9.3f} {swapped[kind]:11.3f}")

    print(f"\n{'error per session':38} {'count':>5} {'median':>8} {'95 %':>8} {'largest':>8}")
    counter = EstimateCounter()
    for half, part in parts.items():
        for label, chosen in ((half, part), (f"{half}, 1,000 tokens and more", [s for s in part if s[3] >= 1000])):
            print(error_row(f"characters / 4, {label}", chosen, lambda texts: sum(map(len, texts)) / 4))
            print(error_row(f"estimate, {label}", chosen, lambda texts: sum(counter.count_many(texts))))
    print(error_row("weights of the held out half, fitted", parts["fitted"], lambda texts: estimated(texts, swapped)))

    print(f"\n{'estimate / exact':30} {'estimate':>9} {'characters / 4':>15}")
    for label, text in {**LANGUAGES, **hard_texts()}.items():
        (exact,), (guess,) = count([text]), counter.count_many([text])
        print(f"{label:30} {guess / exact:9.2f} {len(text) / 4 / exact:15.2f}")


if __name__ == "__main__":
    main()
