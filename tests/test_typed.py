"""Numbers as people type them in rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.typed import MAX_CHARACTERS, numbers, table, wholes, written, written_table


def few(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One to three of these."""
    return st.lists(of, min_size=1, max_size=3)


finite = st.floats(-1e12, 1e12).map(lambda v: float(f"{v:.15g}"))


@law(200)
@given(
    st.lists(
        st.lists(st.lists(finite, min_size=1, max_size=4), min_size=1, max_size=3), min_size=1, max_size=4
    )
)
def test_what_is_written_reads_back(rows: list[list[list[float]]]) -> None:
    cells = tuple(tuple(tuple(cell) for cell in row) for row in rows)
    assert table("x", written_table(cells)) == cells
    assert numbers("x", written(cells[0][0])) == cells[0][0]


@pytest.mark.parametrize("text", ["8, 4, 2", "8 4 2", " 8,4\t2 ", "8,,4,2,", "8 4\n2"])
def test_spaces_and_commas_part_numbers(text: str) -> None:
    assert numbers("x", text) == (8, 4, 2)


def test_a_unicode_minus_is_a_minus() -> None:
    assert numbers("x", "−1.5e3 -2") == (-1500, -2)


@pytest.mark.parametrize("word", ["x", "nan", "inf", "1_000", "0x10", "1..2", "--1", "1e", "١", "<b>", "1;2"])
def test_what_is_no_number_is_named(word: str) -> None:
    with pytest.raises(InputError, match="x: must be numbers parted by spaces or commas, got "):
        numbers("x", f"1, {word}")


def test_whole_numbers_are_whole() -> None:
    assert wholes("x", "1, 2") == (1, 2)
    with pytest.raises(InputError, match=r"x: must be whole numbers, got 1.5"):
        wholes("x", "1.5")
    with pytest.raises(InputError, match=r"x: must be whole numbers"):
        wholes("x", "1e999")


def test_a_text_has_a_bound() -> None:
    for read in (numbers, table):
        with pytest.raises(InputError, match="must have at most"):
            read("x", "1 " * MAX_CHARACTERS)


def test_an_empty_cell_is_a_micro_batch_without_sequences() -> None:
    assert table("x", "0; \n\n1, 2") == (((0.0,), ()), ((1.0, 2.0),))
