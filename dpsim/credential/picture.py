"""A certificate as a picture: a badge of 800 x 800 pixels, into which the credential can be baked."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from math import cos, radians, sin
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image, ImageDraw, ImageFont

from dpsim.credential.looks import (
    ACCENT,
    ARC,
    INK,
    LEADING,
    LINE,
    MUTED,
    RANKS,
    REGULAR,
    SEMIBOLD,
    balanced,
    broken,
    can_be_set,
    composed,
)  # fmt: skip
from dpsim.credential.shown import Shown

SIDE = 800
SMOOTH = 4  # the ring is drawn so many times larger
OUTER, BAND = 372, 44  # the ring's outer radius and its breadth
MIDDLE = SIDE / 2


def png(shown: Shown) -> bytes:
    """The badge: title, score, date and issuer in a ring of four ranks, on white, transparent around it. It
    bears no name: a picture is passed on further than its owner may want. The same certificate gives the same
    bytes, as long as Pillow and zlib stay the same."""
    image = _ring().copy()
    draw = ImageDraw.Draw(image)
    issuer = shown.issuer if can_be_set(shown.issuer) else str(urlsplit(shown.link).hostname)
    _write(draw, "PASSED", SEMIBOLD, MUTED, 176, 300, 30, (24,))
    _write(draw, composed(shown.title), SEMIBOLD, ACCENT, 268, 500, 120, (52, 44, 36, 30, 24))
    draw.line((MIDDLE - 60, 354, MIDDLE + 60, 354), LINE, 3)
    score = composed(shown.score).replace(" %", "\u00a0%")
    _write(draw, score, SEMIBOLD, INK, 426, 560, 100, (76, 64, 52, 40, 30))
    _write(draw, composed(shown.date), REGULAR, INK, 508, 500, 50, (34, 28, 22, 18))
    _write(draw, composed(issuer), REGULAR, MUTED, 584, 410, 70, (28, 24, 20, 16, 13))
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@lru_cache
def _ring() -> Image.Image:
    """A white disc, and the four parts of the ring with round ends, smooth."""
    image = Image.new("RGBA", (SIDE * SMOOTH, SIDE * SMOOTH), (255, 255, 255, 0))
    draw = ImageDraw.Draw(image)
    middle = MIDDLE * SMOOTH
    disc = (OUTER + 20) * SMOOTH
    draw.ellipse((middle - disc, middle - disc, middle + disc, middle + disc), "#ffffff", LINE, 2 * SMOOTH)
    outer, inner, half = OUTER * SMOOTH, (OUTER - BAND) * SMOOTH, BAND * SMOOTH / 2
    for rank, colour in enumerate(RANKS):
        angles = [radians(90 * rank + step - ARC / 2) for step in range(ARC + 1)]
        edge = [(outer, angle) for angle in angles] + [(inner, angle) for angle in reversed(angles)]
        draw.polygon([_at(middle, *each) for each in edge], colour)
        for angle in (angles[0], angles[-1]):
            draw.circle(_at(middle, outer - half, angle), half, colour)
    return image.resize((SIDE, SIDE), Image.Resampling.BOX)


def _at(middle: float, away: float, angle: float) -> tuple[float, float]:
    """The point so far from the middle at an angle, clockwise from the right."""
    return middle + away * cos(angle), middle + away * sin(angle)


def _write(
    draw: ImageDraw.ImageDraw,
    text: str,
    font: Path,
    colour: str,
    y: float,
    width: float,
    height: float,
    sizes: tuple[int, ...],
) -> None:
    """Write `text` around (MIDDLE, y), in the largest of `sizes` at which it fits into the box."""
    for size in sizes:
        letters = ImageFont.truetype(font, size, layout_engine=ImageFont.Layout.BASIC)
        lines = broken(text, letters.getlength, width)
        if len(lines) * size * LEADING <= height:
            break
    lines = balanced(text, letters.getlength, width)
    top = y - (len(lines) - 1) * size * LEADING / 2
    for i, line in enumerate(lines):
        draw.text((MIDDLE, top + i * size * LEADING), line, colour, letters, anchor="mm")
