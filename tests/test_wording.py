"""How numbers, times and lists are written: exact strings, and properties that hold for every number.

A written number reads back within four significant digits; a minus sign is never the hyphen of ASCII.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.wording import (
    added,
    bracketed,
    duration,
    listed,
    number,
    plural,
    ranks,
    short,
    size,
    tiny,
    vector,
)

NUMBERS = [
    (0, "0"),
    (-0.0, "0"),
    (1, "1"),
    (-2, "−2"),
    (0.625, "0.625"),
    (1 / 3, "0.3333"),
    (2.99999, "3"),
    (19.6543, "19.65"),
    (999.96, "1000"),
    (1234.4, "1234"),
    (-123_456, "−123456"),
    (999_999, "999999"),
    (1e6, "1e6"),
    (-1_234_567, "−1.235e6"),
    (0.0001, "0.0001"),
    (0.00012345, "0.0001234"),
    (0.00001, "1e−5"),
    (-1.2e-9, "−1.2e−9"),
    (1e100, "1e100"),
]


@pytest.mark.parametrize(("value", "written"), NUMBERS)
def test_a_number_has_at_most_four_significant_digits(value: float, written: str) -> None:
    assert number(value) == written


SHORT = [
    (0, "0"),
    (1, "1"),
    (-3, "−3"),
    (0.625, "0.625"),
    (0.1234, "0.123"),
    (1.2345, "1.23"),
    (9.999, "10"),
    (-12.34, "−12.3"),
    (99.96, "100"),
    (123.4, "123"),
    (99_999, "99999"),
    (123_456, "1e5"),
    (0.0004, "4e−4"),
    (-2.6e-7, "−3e−7"),
]


@pytest.mark.parametrize(("value", "written"), SHORT)
def test_a_small_cell_shows_three_digits(value: float, written: str) -> None:
    assert short(value) == written


def read(written: str) -> float:
    """A written number as a float again."""
    assert "-" not in written
    return float(written.replace("−", "-"))


floats = st.floats(-1e100, 1e100, allow_nan=False) | st.floats(-2000, 2000) | st.floats(-1e-3, 1e-3)


@law(400)
@given(floats)
def test_a_number_reads_back_within_four_significant_digits(value: float) -> None:
    assert read(number(value)) == pytest.approx(value, rel=5.001e-4, abs=0)
    assert len(number(value)) <= 11


@law(400)
@given(floats)
def test_a_small_cell_reads_back_within_its_digits_and_stays_short(value: float) -> None:
    away = 0.5 if abs(value) < 0.001 or abs(value) >= 1e5 else 0.051  # one digit there, at least two here
    assert read(short(value)) == pytest.approx(value, rel=away, abs=1e-323)
    assert len(short(value)) <= 7


SECONDS = [
    (0, "0"),
    (0.0156, "15.6 ms"),
    (0.0158000176, "15.8 ms"),
    (2.5, "2.5 s"),
    (1, "1 s"),
    (100e-6, "100 µs"),
    (2.5e-6, "2.5 µs"),
    (40e-9, "40 ns"),
    (0.25e-9, "0.25 ns"),
    (123.4, "123 s"),
]


@pytest.mark.parametrize(("seconds", "written"), SECONDS)
def test_a_duration_has_a_fitting_unit(seconds: float, written: str) -> None:
    assert duration(seconds) == written


UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


@law(400)
@given(st.floats(1e-9, 1e4) | st.floats(0.9e-3, 1.1e-3) | st.floats(0.9, 1.1))
def test_a_duration_is_a_plain_decimal_with_its_unit(seconds: float) -> None:
    """Never "1e+03 µs" for a hair less than a millisecond, nor "3.6e+03 s" for an hour."""
    written = duration(seconds)
    found = re.fullmatch(r"(\d+(?:\.\d+)?) (s|ms|µs|ns)", written)
    assert found, written
    assert float(found[1]) * UNITS[found[2]] == pytest.approx(seconds, rel=5.001e-3)


SIZES = [
    (0, "0"),
    (8, "8 B"),
    (999, "999 B"),
    (1000, "1 kB"),
    (24e6, "24 MB"),
    (40e6, "40 MB"),
    (1.5e9, "1.5 GB"),
    (2e12, "2 TB"),
]


@pytest.mark.parametrize(("count", "written"), SIZES)
def test_bytes_are_counted_in_powers_of_ten(count: float, written: str) -> None:
    assert size(count) == written


@law(200)
@given(st.integers(1, 10**15) | st.integers(999_000, 1_001_000))
def test_bytes_are_a_plain_decimal_with_their_unit(count: int) -> None:
    written = size(count)
    assert re.fullmatch(r"\d+(\.\d+)? (TB|GB|MB|kB|B)", written), written


def test_a_list_ends_with_and() -> None:
    assert [listed(["a"]), listed([0, 1]), listed([0, 1, 2])] == ["a", "0 and 1", "0, 1 and 2"]


def test_ranks_are_listed_until_there_are_more_than_eight() -> None:
    assert ranks([3]) == "rank 3"
    assert ranks([0, 2]) == "ranks 0 and 2"
    assert ranks(range(8)) == "ranks 0, 1, 2, 3, 4, 5, 6 and 7"
    assert ranks(list(range(4, 13))) == "ranks 4 to 12"
    assert ranks([0, *range(2, 11)]) == "10 ranks"


def test_one_is_singular() -> None:
    assert [plural(n, "token") for n in (0, 1, 2)] == ["0 tokens", "1 token", "2 tokens"]


def test_a_sum_is_written_with_its_signs() -> None:
    assert added([3, 5, -2]) == "3 + 5 − 2"
    assert added([-3]) == "−3"
    assert added([]) == "0"
    assert [bracketed(3), bracketed(-3)] == ["3", "(−3)"]


def test_a_vector_shows_its_first_four_entries() -> None:
    assert vector([0.5]) == "0.5"
    assert vector([1, -2.5]) == "[1, −2.5]"
    assert vector([1, 2, 3, 4]) == "[1, 2, 3, 4]"
    assert vector([1, 2, 3, 4, 5]) == "[1, 2, 3, 4, …]"


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (0.5, ".5"), (-0.058, "−.06"), (1.94, "1.9"), (-27.4, "−27"), (103, "103"), (0.004, "0.004")],
)
def test_a_very_small_cell_gets_two_decimals_and_no_zero_before_the_point(value: float, written: str) -> None:
    assert tiny(value) == written
