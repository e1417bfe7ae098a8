"""CSV for spreadsheets: no text is a formula, numbers stay numbers, and every text can be had back.

How a spreadsheet reads a file is modelled by Python's csv reader: with commas, as the file is written, and
with semicolons or tabs, as spreadsheets of other countries and their import windows have it.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.csv_cells import Cell, rows

SIGNS = "=+-@"
FULL = {c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.normalize("NFKC", c)[0] in set(SIGNS)}
UNSEEN = "".join(c for c in map(chr, range(0x3001)) if unicodedata.category(c) in ("Zs", "Cc", "Zl", "Zp"))

nasty = st.text(
    st.sampled_from([*SIGNS, *sorted(FULL), *" \t\r\n'\";,|a1\ufeff\u200b\u00a0\u3000"]), max_size=12
)
texts = nasty | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def read(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def formula(cell: str) -> bool:
    """Whether a spreadsheet would take a cell for a formula: spaces aside, of any width, even in quotes."""
    seen = unicodedata.normalize("NFKC", cell.lstrip(UNSEEN + '"\ufeff\u200b'))
    return seen[:1] in set(SIGNS) or cell[:1] in set("\t\r\n")


def had_back(cell: str) -> str:
    """The text of a cell: every apostrophe that was put before a would-be formula taken away."""

    def one_less(found: re.Match[str]) -> str:
        rest = cell[found.end() :]
        return found[1] if formula(rest.lstrip("'")) or formula(rest.replace("'", "")) else found[0]

    return re.sub(r"(^|[;\t\r\n])'", one_less, cell)


@law(1000)
@given(st.lists(st.tuples(texts, texts, numbers), max_size=4))
@example([("=1+1", "@SUM(A1)", -3.5)])
@example([("+4", "-4", -4)])
@example([("  =1", "\u00a0=1", 0)])
@example([("\uff1d1", "\uff0bA1", 0)])
@example([("\t=1", "\r=1", 0)])
@example([("a;=1", "a\n=1", 0)])
@example([("'=1", "''=1", 0)])
@example([('"=1', "a;'\"\t=1", 0)])
def test_no_text_is_a_formula_however_the_file_is_read(table: list[tuple[str, str, float]]) -> None:
    written = rows(("one", "=two", "three"), table)
    for delimiter in (",", ";", "\t"):
        for line in read(written, delimiter):
            for i, cell in enumerate(line):
                number = delimiter == "," and i == 2
                assert number or not formula(cell), (delimiter, cell)
    for line in written.split("\r\n"):  # even by a reader that knows no quotes at line ends
        assert not formula(line)


@law(1000)
@given(st.lists(st.tuples(texts, numbers), max_size=4))
@example([("'=1", -1)])
@example([(" '\t;= ", -1)])
@example([("  \t=", -1)])
@example([("'tis 'so'", 0.1)])
def test_every_value_can_be_had_back(table: list[tuple[str, float]]) -> None:
    header, *found = read(rows(("name", "score"), table))
    assert header == ["name", "score"]
    assert [(had_back(text), float(number)) for text, number in found] == [(t, float(n)) for t, n in table]


@pytest.mark.parametrize("sign", sorted(FULL))
def test_every_form_of_a_sign_is_known(sign: str) -> None:
    assert rows([f"{sign}1"], []) == f'"\'{sign}1"\r\n'


@pytest.mark.parametrize(
    "text", ["Ada", "x = 1", "3-4", "a@b.example", "1+1", "'tis", "−2", "", "a;b", "{=1}"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert read(rows(["text"], [[text]])) == [["text"], [text]]


def test_a_table_is_written_as_gradebooks_read_it() -> None:
    table: list[list[Cell]] = [["Ada, Countess", -0.5, 3], ['say "hi"', 1e-07, -12], [None, 0.0, 10**400]]
    assert rows(["name", "gain", "count"], table) == (
        '"name","gain","count"\r\n"Ada, Countess",-0.5,3\r\n"say ""hi""",1e-07,-12\r\n"",0.0,1'
        + "0" * 400
        + "\r\n"
    )
    assert rows(["name"], [["\ud800"]]).encode() == b'"name"\r\n"?"\r\n'  # half a character


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"^cell: must be a finite number"):
        rows(["score"], [[value]])


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"^row: must have 2 cells"):
        rows(["name", "score"], [["Ada"]])
