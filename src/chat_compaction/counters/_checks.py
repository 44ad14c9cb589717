"""Texts and how many tokens of o200k_base they are, as tokenizers and tiktoken count: what a backend is asked first.

Each kind of text on which packages have been seen to differ is among them. tests/test_counters_backends.py holds them
against the reference.
"""

from __future__ import annotations

CHECKS: dict[str, int] = {
    "": 0,
    "hello world": 2,
    "The quick brown fox can't jump; it'LL DON'T, we're I'M.": 16,
    "snake_case camelCase HTTPServer XMLHttp2Request": 9,
    "0 12 123 1234 12345678 3.14 1e-9 \u0663\u0664 \u216b \u00bd": 29,
    "def f(x: int) -> None:\n\treturn {'a': [x, *y], **z}  # \u2026\n": 25,
    '{"path":"/usr/lib/x.so","n":-1.5e3,"ok":true}': 22,
    "a  b   c\t\td \n\n  e\r\n\r\nf \n g  ": 15,
    ",\n/\n//\r\n/ x": 5,
    "\u00a0\u2003\u3000x\u2028y\u0085z\x0b\x0c": 11,
    "\x00\x01\x1b[31m\x1c\x1f\x7f\x9f": 11,
    "<|endoftext|>": 7,
    "<|im_start|>user<|think|> <|fim_prefix|></s>[INST]": 22,
    "na\u00efve caf\u00e9 e\u0301 \u1e9e \u01c5 \ufb01 \u0130\u0131": 15,
    "x'\u017f'mdtse I'\u017f e'\u017f'Rela": 15,
    "1'\u017f'm \u212a'D": 7,
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u03ba\u03cc\u03c3\u03bc\u03b5!": 6,
    "\u4f60\u597d\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f \uc548\ub155": 6,
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd": 3,
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35": 8,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd": 11,
    "\U0001f1e9\U0001f1ea 1\ufe0f\u20e3 \u2764\ufe0f": 8,
    "\U0001d518\U00010330\U0001e900\U00020000\U000e0041\U0010fffd\ue000": 24,
    "a\u088fb \u088f\u088f 1\u088f\n\u088f's\u088fA": 26,
    "a\ud800b": 3,
    "\u1ad5 \ua7d2x\u0378": 9,
    "!\u0301\u0301's \u0301a": 7,
    " " * 1_000: 9,
    " " * 999 + "x": 10,
    "\n" * 257: 17,
    "a" * 1_000: 125,
    "\u4e2d" * 300: 300,
    "=" * 500: 9,
    "1" * 1_000: 334,
    "aB3+/" * 200: 800,
    "-- " * 100: 101,
    "\ufeff\u200b\u200d\ufffd": 4,
    "\u2500\u2500\u2514\u2192 \u2014 \u201cquoted\u201d\u2019s": 10,
}
