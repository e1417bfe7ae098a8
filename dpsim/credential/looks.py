"""What a certificate looks like on paper and as a picture: its colours, its ring, its letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

FONTS = Path(__file__).parent / "fonts"
REGULAR, SEMIBOLD = FONTS / "regular.ttf", FONTS / "semibold.ttf"

INK, MUTED, ACCENT = "#1b2130", "#566073", "#0b5cad"
PANEL, LINE = "#f4f6fa", "#d8deea"
RANKS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")  # clockwise from the right, as on the stage
ARC = 76  # degrees of the ring that a rank's part takes
LEADING = 1.2  # from line to line, in sizes of the letters


@lru_cache
def letters() -> frozenset[str]:
    """The characters that both fonts have: Latin, Greek and Cyrillic ones."""
    from reportlab.pdfbase.ttfonts import TTFontFile

    regular, semibold = (TTFontFile(str(path)).charToGlyph for path in (REGULAR, SEMIBOLD))
    return frozenset(chr(code) for code in regular.keys() & semibold.keys() if code >= 0x20)


def composed(text: str) -> str:
    """`text` with letters and their marks in one character each, as far as there is one."""
    return unicodedata.normalize("NFC", text)


def can_be_set(text: str) -> bool:
    """Whether the fonts have every character of `text`."""
    return letters().issuperset(composed(text))


def broken(text: str, measure: Callable[[str], float], width: float) -> list[str]:
    """`text` in lines of at most `width`, broken at spaces, and inside words that are longer than a line."""
    lines = [""]
    for word in text.split(" "):
        if measure(f"{lines[-1]} {word}".lstrip()) <= width:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
            continue
        lines += [""] if lines[-1] else []
        for character in word:
            if measure(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def balanced(text: str, measure: Callable[[str], float], width: float) -> list[str]:
    """The same lines, as even in length as they can be."""
    lines = broken(text, measure, width)
    for tenths in range(5, 10):
        narrower = broken(text, measure, width * tenths / 10)
        if len(narrower) == len(lines):
            return narrower
    return lines
