"""The texts that the estimate is fitted to and judged by: recorded sessions, languages, and texts made to be hard."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import string
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


class Session(NamedTuple):
    """A recorded session: the texts of each of its messages, those without text left out."""

    source: str
    messages: list[list[str]]


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


def sessions(data: Path) -> list[Session]:
    """The recorded sessions that hold text, in a fixed order."""
    origin = sources(data)
    found = []
    for path in sorted((data / "sessions").glob("*/*.json")):
        messages = [list(texts_of(message)) for message in json.loads(path.read_text(encoding="utf-8"))]
        if any(messages):
            found.append(Session(origin[f"{path.parent.name}/{path.name}"], [texts for texts in messages if texts]))
    return found


def halves(found: list[Session]) -> tuple[list[Session], list[Session]]:
    """The sessions to fit on and those held out: every other source, by name."""
    names = sorted({session.source for session in found}, key=str.lower)
    chosen = set(names[::2])
    return [s for s in found if s.source in chosen], [s for s in found if s.source not in chosen]


def standard_library() -> list[Session]:
    """The modules of Python's standard library, each a session of one message."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return [Session("Python's standard library", [[path.read_text(encoding="utf-8")]]) for path in paths]


def random_texts() -> list[str]:
    """Letters that are no words: what the weights of rare pairs are fitted on, beside the recorded sessions."""
    rng = random.Random(1)
    letters = "".join(rng.choices(string.ascii_lowercase + " " * 5, k=30_000))
    return [base64.b64encode(rng.randbytes(30_000)).decode(), letters, rng.randbytes(20_000).hex()]


def hard_texts() -> dict[str, str]:
    """Texts that have nothing of prose, or that nothing in the recorded sessions is like."""
    rng = random.Random(7)

    def lines(count: int, line: Any) -> str:
        return "\n".join(line(number) for number in range(count))

    def characters(first: int, last: int, count: int = 1000) -> str:
        return "".join(chr(rng.randrange(first, last)) for _ in range(count))

    def some(alphabet: str, count: int = 3000) -> str:
        return "".join(rng.choices(alphabet, k=count))

    words = ["get", "user", "name", "from", "http", "request", "handler", "cache", "ttl", "idx"]
    points = [{"id": number, "value": rng.random(), "tags": ["a", "b"]} for number in range(60)]
    return {
        "base64": base64.b64encode(rng.randbytes(3000)).decode(),
        "base64 in lines": lines(60, lambda _: base64.urlsafe_b64encode(rng.randbytes(48)).decode()),
        "base32": base64.b32encode(rng.randbytes(3000)).decode(),
        "hexadecimal": rng.randbytes(2000).hex(),
        "hexadecimal, capitals": rng.randbytes(2000).hex().upper(),
        "hexadecimal, bytes apart": lines(80, lambda _: rng.randbytes(16).hex(" ")),
        "SHA-256": lines(60, lambda _: rng.randbytes(32).hex()),
        "UUIDs": lines(100, lambda _: str(uuid.UUID(bytes=rng.randbytes(16)))),
        "letters and digits at random": some(string.ascii_letters + string.digits),
        "lower-case letters at random": some(string.ascii_lowercase),
        "capitals at random": some(string.ascii_uppercase),
        "ASCII at random": some(string.printable),
        "punctuation at random": some(string.punctuation),
        "DNA": some("ACGT"),
        "binary": some("01"),
        "digits": some(string.digits),
        "a table of whole numbers": lines(60, lambda _: ",".join(str(rng.randrange(10**7)) for _ in range(12))),
        "a table of decimals": lines(60, lambda _: "\t".join(f"{rng.gauss(0, 100):.4f}" for _ in range(8))),
        "IP addresses": lines(100, lambda _: ".".join(str(rng.randrange(256)) for _ in range(4))),
        "timestamps": lines(100, lambda _: f"2026-{rng.randrange(1, 13):02}-11T{rng.randrange(24):02}:00:00Z"),
        "JSON, compact": json.dumps(points, separators=(",", ":")),
        "JSON, indented": json.dumps(points, indent=4),
        "minified JavaScript": 'function(e,t,n){"use strict";var r=n(1);t.a=function(e){return e&&e.b?e:{c:e}}};' * 20,
        "SVG": '<path d="M12.5 3.2c0-1.1.9-2 2-2s2 .9 2 2-.9 2-2 2-2-.9-2-2zm-4.3 7.1l3.2-1.1z"/>' * 20,
        "assembly": "mov rax, qword ptr [rbp-0x18]\nlea rdi, [rip+0x2ee3]\ncall 0x401136 <printf@plt>\n" * 20,
        "LaTeX": r"\frac{\partial f}{\partial x_{i}} = \sum_{j=1}^{n} a_{ij} x_j + \mathcal{O}(x^2) \quad" * 20,
        "snake_case": lines(100, lambda _: "_".join(rng.choices(words, k=4))),
        "CamelCase": lines(100, lambda _: "".join(word.title() for word in rng.choices(words, k=4))),
        "prose in capitals": "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG. " * 30,
        "URLs": lines(60, lambda number: f"https://example.com/{rng.randbytes(8).hex()}?q={number}&v=1"),
        "percent-encoded": "".join(f"%{byte:02X}" for byte in rng.randbytes(500)),
        "Unicode escapes": "".join(f"\\u{rng.randrange(0x4E00, 0x9FFF):04x}" for _ in range(300)),
        "a listing of files": lines(
            60, lambda number: f"-rw-r--r-- 1 root root {rng.randrange(10**6):7} file_{number}.txt"
        ),
        "a Markdown table": "| a | b | c |\n|---|---|---|\n" * 60,
        "box drawing": "├── src\n│   └── main.py\n" * 60,
        "one letter (a)": "a" * 3000,
        "one letter (z)": "z" * 3000,
        "two letters": "ha" * 1500,
        "spaces": " " * 3000,
        "newlines": "\n" * 3000,
        "tabs": "\t" * 3000,
        "tabs and spaces": "\t " * 1500,
        "newlines and spaces": "\n " * 1500,
        "lines that end in CR LF": "line of text\r\n" * 200,
        "dashes": "-" * 3000,
        "NUL": "\0" * 3000,
        "control characters": characters(1, 32, 3000),
        "emoji": "🎉😀👍" * 300,
        "emoji, joined": "👨‍👩‍👧‍👦🏳️‍🌈" * 100,
        "flags": "🇩🇪🇫🇷🇯🇵" * 100,
        "mathematical letters": "𝐀𝐁𝐂𝑥𝑦" * 100,
        "full width": "ＡＢＣａｂｃ１２３" * 60,
        "half-width kana": "ｱｲｳｴｵ" * 100,
        "Braille": characters(0x2800, 0x28FF),
        "block elements": "█▓▒░" * 200,
        "private use": characters(0xE000, 0xF8FF),
        "accented letters at random": characters(0xC0, 0x100),
        "combining marks": "e\u0301\u0303\u0308" * 300,
        "rare ideographs": characters(0x20000, 0x2A6D0, 300),
        "cuneiform": characters(0x12000, 0x12399, 300),
        "Amharic": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው",
        "Armenian": "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով",
        "Burmese": "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊",
        "Cherokee": "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ",
        "Georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით",
        "Inuktitut": "ᐃᓄᓕᒫᑦ ᐊᓂᖅᑎᕆᔪᓕᒫᑦ",
        "Khmer": "មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព ក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរ",
        "Lao": "ມະນຸດທຸກຄົນເກີດມາມີສິດເສລີພາບ",
        "Sinhala": "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත",
        "Tamil": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்",
        "Tibetan": "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང༌།",
        "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
        "Indonesian": "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama.",
        "Latin": "Omnes homines liberi aequique dignitate atque iuribus nascuntur.",
        "Norwegian": "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter.",
        "Swahili": "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.",
        "English and Chinese": "Run `make test` 之后再提交,then push 到 main 分支。" * 20,
        "Japanese and code": "関数 `parse_args()` は list[str] を返します。\n" * 20,
    }
