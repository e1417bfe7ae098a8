"""What ``dpsim reduce`` answers: from counts and gradient sums written as JSON to the five reductions."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from dpsim.checks import LARGEST, InputError, number, sequence, whole
from dpsim.reduction import Reduction, cosine, reduction, relative_l2_error, token_weight
from dpsim.scenario import SCHEMES

MAX_RANKS = 65536
MAX_COLUMNS = 65536
MAX_CELLS = 1_000_000
MAX_TOKENS = 10**15

# JSON writers that keep decimals exact write them as strings; nothing else in quotes is a number.
DECIMAL = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")


def reduce_report(written: str) -> dict[str, Any]:
    """The schemes for `written`, {"valid_tokens": [R][K], "gradient_sums": [R][K] numbers or vectors}."""
    try:
        data = json.loads(written)
    except (ValueError, RecursionError):
        raise InputError("input", "must be a JSON object", written[:40]) from None
    keys = {"valid_tokens", "gradient_sums"}
    if not isinstance(data, dict) or set(data) != keys:
        found = sorted(data) if isinstance(data, dict) else data
        raise InputError("input", f"must have the keys {' and '.join(sorted(keys))}", found)
    counts = _counts(data["valid_tokens"])
    sums, plain = _sums(data["gradient_sums"], counts.shape)
    tables = {name: reduction(name, counts) for name in SCHEMES}
    values = {name: _value(table, sums) for name, table in tables.items()}
    right = values["token_weighted"]
    errors, cosines, weights = {}, {}, {}
    for name, value in values.items():
        known = value is not None and right is not None
        errors[name] = relative_l2_error(value, right) if known else None
        cosines[name] = cosine(value, right) if known else None
        weight = token_weight(tables[name], counts)
        weights[name] = None if weight is None else weight.tolist()
    report: dict[str, Any] = {
        name: None if value is None else (float(value[0]) if plain else value.tolist())
        for name, value in values.items()
    }
    return report | {
        "undefined": {n: t.undefined for n, t in tables.items() if t.undefined is not None},
        "valid_tokens_total": int(counts.sum()),
        "token_weight": weights,
        "relative_l2_error": errors,
        "cosine": cosines,
    }


def _counts(rows: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    table: list[list[int]] = []
    for r, row in enumerate(sequence("valid_tokens", rows, MAX_RANKS)):
        where = f"valid_tokens[{r}]"
        cells = sequence(where, row, MAX_COLUMNS, len(table[0]) if table else None)
        table.append([whole(f"{where}[{k}]", v, 0, MAX_TOKENS) for k, v in enumerate(cells)])
        if len(table) * len(cells) > MAX_CELLS:
            raise InputError("valid_tokens", f"must have at most {MAX_CELLS} entries", len(rows))
    total = sum(map(sum, table))
    if total > MAX_TOKENS:
        raise InputError("valid_tokens", f"must add up to at most {MAX_TOKENS}", total)
    return np.array(table, np.int64)


def _sums(rows: Any, shape: tuple[int, ...]) -> tuple[np.ndarray[Any, np.dtype[np.float64]], bool]:
    """The sums [R, K, P], and whether they were plain numbers."""
    ranks = sequence("gradient_sums", rows, MAX_RANKS, shape[0])
    first = ranks[0][0] if isinstance(ranks[0], list) and ranks[0] else None
    plain = not isinstance(first, list)
    length: int | None = None
    values: list[list[list[float]]] = []
    for r, row in enumerate(ranks):
        cells = sequence(f"gradient_sums[{r}]", row, MAX_COLUMNS, shape[1])
        values.append([])
        for k, cell in enumerate(cells):
            where = f"gradient_sums[{r}][{k}]"
            if isinstance(cell, list) == plain:
                kind = "a number" if plain else "a vector"
                raise InputError(where, f"must be {kind}, as the first entry is", cell)
            entries = (cell,) if plain else sequence(where, cell, MAX_CELLS, length)
            length = len(entries)
            names = [where if plain else f"{where}[{i}]" for i in range(length)]
            values[-1].append([_number(n, v) for n, v in zip(names, entries, strict=True)])
            if shape[0] * shape[1] * length > MAX_CELLS:
                raise InputError("gradient_sums", f"must have at most {MAX_CELLS} numbers", length)
    return np.array(values, np.float64), plain


def _number(name: str, value: Any) -> float:
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = float(value)
    return number(name, value, -LARGEST, LARGEST)


def _value(table: Reduction, sums: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    return None if table.undefined else table.combine(sums)
