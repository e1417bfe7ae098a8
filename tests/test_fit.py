"""The line through measured times, against lines that are known and against numpy.polyfit."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.fit import fit_line

SIZES = (8, 128, 1024, 8192, 65536, 524288)


@law(200)
@given(st.integers(0, 10**6), st.integers(1, 10**6), st.sets(st.integers(0, 10**6), min_size=2, max_size=8))
def test_a_line_is_found_again(fixed: int, each: int, amounts: set[int]) -> None:
    """Nanoseconds and picoseconds, as exact fractions."""
    known = Fraction(fixed + 1, 10**9), Fraction(each, 10**12)
    seconds = [float(known[0] + known[1] * amount) for amount in sorted(amounts)]
    found = fit_line("messages", sorted(amounts), seconds)
    assert found.error < 1e-9
    for amount, taken in zip(sorted(amounts), seconds, strict=True):
        assert found.at(amount) == pytest.approx(taken, rel=1e-9)
    if max(amounts) * each >= fixed:  # else the digits of the slope are lost in what is fixed
        assert found.each_s == pytest.approx(float(known[1]), rel=1e-6)


@law(200)
@given(st.integers(0, 2**32 - 1), st.floats(0.001, 0.3))
def test_noisy_times_give_the_weighted_least_squares_of_numpy(seed: int, noise: float) -> None:
    """polyfit's weights multiply the residuals, so 1 / t is 1 / t² on their squares."""
    chance = Random(seed)
    seconds = [(1e-4 + size / 1e9) * (1 + chance.uniform(-noise, noise)) for size in SIZES]
    each, fixed = np.polyfit(SIZES, seconds, 1, w=1 / np.array(seconds))
    found = fit_line("messages", SIZES, seconds)
    assert (found.fixed_s, found.each_s) == pytest.approx((fixed, each), rel=1e-6)
    worst = max(abs(found.at(x) - t) / t for x, t in zip(SIZES, seconds, strict=True))
    assert found.error == pytest.approx(worst, rel=1e-9)


def test_a_size_that_took_ten_times_too_long_hardly_moves_the_line() -> None:
    seconds = [1e-4 + size / 1e9 for size in SIZES]
    seconds[2] *= 10
    found = fit_line("messages", SIZES, seconds)
    assert found.fixed_s == pytest.approx(1e-4, rel=0.1)
    assert 1 / found.each_s == pytest.approx(1e9, rel=0.1)
    assert found.error == pytest.approx(0.9, rel=0.1)  # and the error says that something was odd


def test_a_fixed_cost_is_not_below_zero_and_the_line_is_then_the_best_through_zero() -> None:
    seconds = [1.0, 3.0]  # over 1 and 2: the line through both starts at -1
    found = fit_line("passes", (1, 2), seconds)
    assert found.fixed_s == 0
    # The least (e - 1)² + (2e / 3 - 1)²: its derivative is 0 at e = (1 + 2 / 3) / (1 + 4 / 9) = 15 / 13.
    assert found.each_s == pytest.approx(15 / 13, rel=1e-12)
    assert found.error == pytest.approx(1 - 2 * 15 / 13 / 3, rel=1e-12)


def test_where_it_may_be_flat_more_costs_nothing_instead_of_less() -> None:
    """The least (f / 1 - 1)² + (f / 2 - 1)²: its derivative is 0 at f = (1 + 1 / 2) / (1 + 1 / 4) = 6 / 5."""
    found = fit_line("passes", (8, 32), (2.0, 1.0), may_be_flat=True)
    assert (found.fixed_s, found.each_s) == (pytest.approx(6 / 5), 0)
    rising = (8, 32), (1.0, 2.0)
    assert fit_line("passes", *rising, may_be_flat=True) == fit_line("passes", *rising)


@pytest.mark.parametrize(
    ("amounts", "seconds", "message"),
    [
        ((1, 2, 4), (3.0, 2.0, 1.0), "messages: must take longer the more there is of it"),
        ((1, 2, 4), (1.0, 1.0, 1.0), "messages: must take longer the more there is of it"),
        ((8, 8), (1.0, 2.0), "messages: must be measured for two amounts or more"),
        ((8, 9), (1.0,), "messages: must be measured for two amounts or more"),
        ((1, 2), (0.0, 1.0), "messages: must have taken a time above 0"),
        ((1, 2), (1.0, float("nan")), "messages: must have taken a time above 0"),
    ],
)
def test_what_no_line_fits_is_a_sentence(
    amounts: tuple[int, ...], seconds: tuple[float, ...], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        fit_line("messages", amounts, seconds)
