"""A certificate on paper: one page of A4 landscape as PDF, with a code for the page that verifies it."""

from __future__ import annotations

import re
from functools import partial
from io import BytesIO
from urllib.parse import urlsplit

from reportlab.graphics.barcode.qrencoder import QRCode, QRErrorCorrectLevel
from reportlab.lib.pagesizes import A4, landscape
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from dpsim.credential.looks import (
    ACCENT,
    ARC,
    INK,
    LEADING,
    LINE,
    MUTED,
    PANEL,
    RANKS,
    REGULAR,
    SEMIBOLD,
    balanced,
    broken,
    can_be_set,
    composed,
)  # fmt: skip
from dpsim.credential.shown import NAMED, NAMELESS, Shown

NORMAL, STRONG = "DpsimSans", "DpsimSans-Semibold"
# Chinese, Japanese and Korean: readers of PDF have letters of their own for them, so the file holds none.
CHINESE, JAPANESE, KOREAN = "STSong-Light", "HeiseiMin-W3", "HYSMyeongJo-Medium"
pdfmetrics.registerFont(TTFont(NORMAL, str(REGULAR)))
pdfmetrics.registerFont(TTFont(STRONG, str(SEMIBOLD)))
for each in (CHINESE, JAPANESE, KOREAN):
    pdfmetrics.registerFont(UnicodeCIDFont(each))

_KANA, _HANGUL = re.compile("[\u3041-\u30ff]"), re.compile("[\uac00-\ud7a3]")
_EAST_ASIAN = re.compile("[ -~·\u3001-\u301f\u3041-\u30ff\u4e00-\u9fa5\uac00-\ud7a3\uff01-\uff5e]+")

WIDTH, HEIGHT = landscape(A4)
EDGE, COLUMN = 56.0, 500.0  # the text's left edge and its width; the ring stands beside it
FOOT, CODE = 146.0, 112.0  # height of the panel below, and side of the code in it

OTHER_LETTERS = (
    f"The name stands in the credential: this file has no letters of its own for its script. {NAMED}"
)


def pdf(shown: Shown) -> bytes:
    """The page. The same certificate gives the same bytes, so the dates of the file itself say nothing."""
    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), invariant=1, pageCompression=1, lang="en")
    canvas.setTitle(f"Certificate: {composed(shown.title)}")
    canvas.setAuthor(shown.issuer)
    canvas.setSubject(" · ".join(filter(None, (shown.name, shown.score, shown.date, shown.link))))
    canvas.setKeywords(shown.id)
    canvas.setCreator("dpsim")
    canvas.setViewerPreference("DisplayDocTitle", "true")
    _ring(canvas, shown, WIDTH - 168, 384, 104)
    _said(canvas, shown)
    _facts(canvas, shown)
    _foot(canvas, shown)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def east_asian(text: str) -> str | None:
    """The font for a text in Chinese, Japanese or Korean, and None for other scripts: those whose letters are
    joined, stacked or run from the right are left out rather than set wrongly."""
    if not _EAST_ASIAN.fullmatch(text) or (_HANGUL.search(text) and _KANA.search(text)):
        return None
    return KOREAN if _HANGUL.search(text) else JAPANESE if _KANA.search(text) else CHINESE


def _said(canvas: Canvas, shown: Shown) -> None:
    """Who passed what. The file has no letters for some names, and a reader may have none either, so there
    the sentence is whole without the name."""
    _write(canvas, "dpsim", STRONG, INK, EDGE, 547, COLUMN, 20, (15,))
    y = _write(canvas, "This certifies that", NORMAL, MUTED, EDGE, 462, COLUMN, 20, (14,)) - 6
    name = composed(shown.name).strip()
    if name and can_be_set(name):
        y = _write(canvas, name, STRONG, INK, EDGE, y, COLUMN, 80, (36, 30, 24, 20, 17, 14))
    else:
        who = "the learner whom the credential names" if name else "the holder of one browser’s key"
        y = _write(canvas, who, STRONG, INK, EDGE, y, COLUMN, 40, (27,))
        if font := east_asian(name):
            y = _write(canvas, name, font, INK, EDGE, y - 4, COLUMN, 44, (26, 22, 17, 14, 12))
    y = _write(canvas, "has passed", NORMAL, MUTED, EDGE, y - 10, COLUMN, 20, (14,))
    _write(canvas, composed(shown.title), STRONG, ACCENT, EDGE, y - 6, COLUMN, 66, (26, 22, 18, 14))


def _facts(canvas: Canvas, shown: Shown) -> None:
    """Date and issuer in a row. An issuer whose name cannot be set is named by the host of the link."""
    issuer = shown.issuer if can_be_set(shown.issuer) else str(urlsplit(shown.link).hostname)
    x = EDGE
    for label, value, width in (("Date", shown.date, 200), ("Issued by", issuer, WIDTH - 2 * EDGE - 220)):
        _write(canvas, label, NORMAL, MUTED, x, 222, width, 14, (10.5,))
        _write(canvas, composed(value), STRONG, INK, x, 205, width, 44, (17, 14, 11, 9))
        x += width + 20


def _foot(canvas: Canvas, shown: Shown) -> None:
    """The panel: the code, where it leads, the id, and what all this proves."""
    canvas.setFillColor(PANEL)
    canvas.rect(0, 0, WIDTH, FOOT, stroke=0, fill=1)
    canvas.setFillColor(LINE)
    canvas.rect(0, FOOT, WIDTH, 1, stroke=0, fill=1)
    low = (FOOT - CODE) / 2
    _code(canvas, shown.link, EDGE, low)
    x, top = EDGE + CODE + 24, FOOT - low
    width = WIDTH - EDGE - x
    y = _write(canvas, "Verify this certificate", STRONG, INK, x, top, width, 16, (12,))
    bottom = _write(canvas, shown.link, NORMAL, ACCENT, x, y - 2, width, 26, (11, 10, 9, 8, 7, 6))
    canvas.linkURL(shown.link, (x, bottom, x + width, y - 2))
    y = _write(canvas, f"Id {composed(shown.id)}", NORMAL, MUTED, x, bottom - 4, width, 14, (10, 8))
    note = NAMELESS if not shown.name.strip() else NAMED if can_be_set(shown.name) else OTHER_LETTERS
    _write(canvas, note, NORMAL, INK, x, y - 9, width, 42, (10, 9))


def _code(canvas: Canvas, link: str, x: float, y: float) -> None:
    """The link as a QR code on white, with the margin that readers need."""
    code = QRCode(None, QRErrorCorrectLevel.M)
    code.addData(link)
    code.make()
    count = code.getModuleCount()
    side = CODE / (count + 8)
    canvas.setFillColor("#ffffff")
    canvas.roundRect(x, y, CODE, CODE, 6, stroke=0, fill=1)
    canvas.setFillColor(INK)
    squares = canvas.beginPath()  # one path, so that no reader draws seams between its squares
    for row, modules in enumerate(code.modules):
        for column, dark in enumerate(modules):
            if dark:
                squares.rect(x + (column + 4) * side, y + CODE - (row + 5) * side, side, side)
    canvas.drawPath(squares, stroke=0, fill=1)


def _ring(canvas: Canvas, shown: Shown, x: float, y: float, radius: float) -> None:
    """Four ranks in a ring, each part in its colour, around the score."""
    canvas.setLineCap(1)
    canvas.setLineWidth(radius * 0.15)
    for rank, colour in enumerate(RANKS):
        canvas.setStrokeColor(colour)
        box = (x - radius, y - radius, x + radius, y + radius)
        canvas.arc(*box, startAng=-90 * rank - ARC / 2, extent=ARC)
    width = radius * 1.4
    left = x - width / 2
    top = _write(canvas, "Score", NORMAL, MUTED, left, y + 38, width, 16, (12,), middle=True)
    score = composed(shown.score).replace(" %", "\u00a0%")
    _write(canvas, score, STRONG, INK, left, top - 2, width, 64, (26, 22, 17, 14, 11), middle=True)


def _write(
    canvas: Canvas,
    text: str,
    font: str,
    colour: str,
    x: float,
    top: float,
    width: float,
    height: float,
    sizes: tuple[float, ...],
    middle: bool = False,
) -> float:
    """Write `text` below `top`, in the largest of `sizes` at which it fits into the box, from its left edge
    or around its middle. The lower edge of what was written."""
    for size in sizes:
        measure = partial(pdfmetrics.stringWidth, fontName=font, fontSize=size)
        lines = broken(text, measure, width)
        if len(lines) * size * LEADING <= height:
            break
    if middle:
        lines = balanced(text, measure, width)
    canvas.setFont(font, size)
    canvas.setFillColor(colour)
    for i, line in enumerate(lines):
        spare = width - pdfmetrics.stringWidth(line, font, size) if middle else 0
        canvas.drawString(x + spare / 2, top - size - i * size * LEADING, line)
    return top - len(lines) * size * LEADING
