"""Tables as CSV for spreadsheets and gradebooks, in which no text can be taken for a formula.

A spreadsheet takes a cell for a formula that begins with = + - or @, for some also behind spaces and in full
width. What stands in quotes is one cell where cells are parted at commas; where they are parted at semicolons
or tabs, one may begin inside a text. Wherever a formula could begin, an apostrophe is put before it: one more
where there are some already, so that taking one away gives the text back.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence

from dpsim.checks import InputError

Cell = str | int | float | None

_UNSEEN = "\\x00-\\x20\\x7f-\\xa0\\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_SIGNS = "=+@\\-"  # and their full, small, raised and lowered forms
_SIGNS += "\uff1d\uff0b\uff20\uff0d\ufe66\ufe62\ufe6b\ufe63\u207a\u207b\u207c"
_SIGNS += "\u208a\u208b\u208c\u2a75\u2a76\ufb29"
_BEGINS = re.compile(rf"(^|[;\t\r\n])(?=['\"{_UNSEEN}]*[{_SIGNS}]|'*[\t\r\n])")


def rows(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The table as CSV: commas, CRLF, every text in quotes, numbers bare. To be stored as UTF-8.

    InputError where a row has more or fewer cells than the header, and for a number that is not finite.
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([text_cell(name) for name in header])
    for row in rows:
        if len(row) != len(header):
            raise InputError("row", f"must have {len(header)} cells", list(row))
        writer.writerow([_cell(value) for value in row])
    return written.getvalue()


def text_cell(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula."""
    return _BEGINS.sub(r"\1'", text.encode("utf-8", "replace").decode())


def _cell(value: Cell) -> str | int | float:
    if value is None or isinstance(value, str):
        return text_cell(value or "")
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise InputError("cell", "must be a finite number", value)
    return float(value)
