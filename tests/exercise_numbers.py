"""The numbers that stand in the question of an exercise."""

from __future__ import annotations

import re
from fractions import Fraction

NUMBERS = re.compile(r"(?<![\w.])−?\d+(?:\.\d+)?")


def numbers(text: str) -> list[Fraction]:
    """The numbers in a text, exactly, in their order."""
    return [Fraction(found.replace("−", "-")) for found in NUMBERS.findall(text)]
