"""What a test came to: how many of its questions were answered right, and whether that passes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsim.checks import whole

MOST_QUESTIONS = 10_000  # of one test
PASS = Fraction(4, 5)  # of all questions; exactly so many are enough


@dataclass(frozen=True)
class Score:
    """So many `right` answers to `of` questions. What was not answered is not right."""

    right: int
    of: int

    def __post_init__(self) -> None:
        whole("score.of", self.of, 1, MOST_QUESTIONS)
        whole("score.right", self.right, 0, self.of)

    @property
    def passed(self) -> bool:
        """Whether it is enough: an exact fraction, so that nothing is rounded in anybody's favour."""
        return self.right * PASS.denominator >= self.of * PASS.numerator


def needed(of: int) -> int:
    """The fewest right answers to `of` questions that pass."""
    return -(-of * PASS.numerator // PASS.denominator)
