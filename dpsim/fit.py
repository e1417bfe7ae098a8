"""A straight line through measured times: seconds = fixed + each x amount.

Messages and passes are measured over amounts that differ a thousandfold, so every point counts by its
relative error: weights 1 / t², the usual ones where the error grows with the value. A time that is too long
counts less, too. Whoever measures hands over one median per amount, so that what else a machine was doing now
and then does not move the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsim.checks import InputError


@dataclass(frozen=True)
class Line:
    """`fixed_s` seconds for any amount and `each_s` for each unit of it. `error` is the largest relative
    error, |fitted - measured| / measured, among the points that it was fitted to."""

    fixed_s: float
    each_s: float
    error: float

    def at(self, amount: float) -> float:
        """Seconds for `amount`."""
        return self.fixed_s + self.each_s * amount


@dataclass(frozen=True)
class Points:
    """What was measured: seconds, medians, over amounts (tokens or bytes), and the line through it."""

    amounts: tuple[int, ...]
    seconds: tuple[float, ...]
    line: Line


def fit_line(
    field: str, amounts: Sequence[float], seconds: Sequence[float], *, may_be_flat: bool = False
) -> Line:
    """The line of least squared relative errors with fixed_s >= 0; `field` says what was measured.

    InputError where times are not positive, where there are fewer than two amounts, or where more does not
    take longer: then no line says what one more costs. Where it `may_be_flat`, one more costs nothing then.
    """
    x, t = np.array(amounts, np.float64), np.array(seconds, np.float64)
    if len(x) != len(t) or len(np.unique(x)) < 2:
        raise InputError(field, "must be measured for two amounts or more", list(amounts))
    if not (np.all(np.isfinite(t)) and np.all(t > 0)):
        raise InputError(field, "must have taken a time above 0 for every amount", list(seconds))
    weight = (t.min() / t) ** 2  # the same but for a factor, and never too large
    centre_x, centre_t = np.average(x, weights=weight), np.average(t, weights=weight)
    each = float(np.sum(weight * (x - centre_x) * (t - centre_t)) / np.sum(weight * (x - centre_x) ** 2))
    fixed = float(centre_t - each * centre_x)
    if each <= 0 and may_be_flat:
        fixed, each = float(centre_t), 0.0
    elif each <= 0:
        rule = "must take longer the more there is of it, or no line fits: measure again on a quiet machine"
        raise InputError(field, rule, list(seconds))
    elif fixed < 0:  # the sum of squares is convex: its least value with fixed >= 0 lies on the edge
        fixed, each = 0.0, float(np.sum(weight * x * t) / np.sum(weight * x * x))
    return Line(fixed, each, float(np.max(np.abs(fixed + each * x - t) / t)))
