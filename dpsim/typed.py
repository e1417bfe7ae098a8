"""Numbers as people type them, in rows: one line a rank, micro-batches parted by semicolons."""

from __future__ import annotations

import re

from dpsim.checks import InputError
from dpsim.wording import MINUS

MAX_CHARACTERS = 20_000
PLAIN = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?", re.IGNORECASE)

Cell = tuple[float, ...]


def numbers(name: str, text: str) -> Cell:
    """The numbers in one line, parted by spaces or commas: "8, 4 2"; a Unicode minus is a minus."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(name, f"must have at most {MAX_CHARACTERS} characters", len(text))
    found = []
    for word in re.split(r"[,\s]+", text.replace(MINUS, "-").strip()):
        if not word:
            continue
        try:
            value = (
                float(word) if re.fullmatch(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?", word, re.ASCII | re.I) else None
            )
        except ValueError:
            value = None
        if value is None:
            raise InputError(name, "must be numbers parted by spaces or commas", word)
        found.append(value)
    return tuple(found)


def wholes(name: str, text: str) -> tuple[int, ...]:
    """The whole numbers in one line."""
    values = numbers(name, text)
    for value in values:
        if not value.is_integer():
            raise InputError(name, "must be whole numbers", value)
    return tuple(int(v) for v in values)


def table(name: str, text: str) -> tuple[tuple[Cell, ...], ...]:
    """Rows [R][K] of numbers: a line a rank, a semicolon between micro-batches; blank lines do not count."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(name, f"must have at most {MAX_CHARACTERS} characters", len(text))
    rows = [line for line in text.splitlines() if line.strip()]
    return tuple(
        tuple(numbers(f"{name}[{r}][{k}]", cell) for k, cell in enumerate(line.split(";")))
        for r, line in enumerate(rows)
    )


def written(values: tuple[float, ...] | tuple[int, ...]) -> str:
    """The numbers as one line that reads back as they are."""
    return ", ".join(f"{v:.15g}" for v in values)


def written_table(rows: tuple[tuple[tuple[float, ...], ...], ...]) -> str:
    """A table as lines that read back as they are."""
    return "\n".join("; ".join(written(cell) for cell in row) for row in rows)
