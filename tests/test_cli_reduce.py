"""`dpsim reduce`: the published cases from a file and from standard input, any table against exact fractions.

All that is printed is checked: the five schemes, why one is undefined, how much a token counts, errors and
cosines against the token-weighted mean, by their definitions in numpy.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Capture, answer, standard_input, strict_json
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.reduce_input import reduce_report
from dpsim.scenario import SCHEMES

PUBLISHED = json.loads((Path(__file__).parent / "reference" / "token_weighting.json").read_text("utf-8"))
CASES = [pytest.param(case, id=case["id"]) for case in PUBLISHED["cases"]]

Counts = list[list[int]]


def exact_weights(scheme: str, counts: Counts) -> list[list[Fraction]] | None:
    """The table w[r][k] of the design's section 4 in exact fractions, None where it divides by zero."""
    ranks, total = len(counts), sum(map(sum, counts))
    divisor = {
        "token_weighted": lambda row, n: total,
        "mean_of_rank_means": lambda row, n: ranks * sum(row),
        "mean_of_micro_batch_means": lambda row, n: ranks * len(row) * n,
        "token_weighted_not_compensated": lambda row, n: ranks * total,
        "sum_over_world_size": lambda row, n: ranks,
    }[scheme]
    try:
        return [[Fraction(1, divisor(row, n)) for n in row] for row in counts]
    except ZeroDivisionError:
        return None


def exact_value(weights: list[list[Fraction]], sums: list[list[list[Fraction]]]) -> list[float]:
    """The sum of w[r][k] S[r][k], component by component."""
    cells = [(w, s) for row, line in zip(weights, sums, strict=True) for w, s in zip(row, line, strict=True)]
    return [float(sum(w * s[i] for w, s in cells)) for i in range(len(sums[0][0]))]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def check_reduction(found: dict[str, Any], case: dict[str, Any]) -> None:
    """Everything that `reduce` printed for these counts and sums, against exact fractions."""
    counts = case["valid_tokens"]
    sums = [[list(map(Fraction, as_list(cell))) for cell in row] for row in case["gradient_sums"]]
    plain = not isinstance(case["gradient_sums"][0][0], list)
    total = sum(map(sum, counts))
    tables = {scheme: exact_weights(scheme, counts) for scheme in SCHEMES}
    values = {s: None if w is None else exact_value(w, sums) for s, w in tables.items()}
    right = values["token_weighted"]
    assert found["valid_tokens_total"] == total
    assert set(found["undefined"]) == {scheme for scheme, w in tables.items() if w is None}
    for scheme, value in values.items():
        error, cosine = found["relative_l2_error"][scheme], found["cosine"][scheme]
        weights = found["token_weight"][scheme]
        if value is None:
            assert (found[scheme], error, cosine, weights) == (None, None, None, None)
            continue
        assert isinstance(found[scheme], float if plain else list)
        assert as_list(found[scheme]) == pytest.approx(value, rel=1e-9, abs=1e-12)
        if total:
            exact = [[float(w * total) for w in row] for row in tables[scheme]]
            assert np.array(weights) == pytest.approx(np.array(exact), rel=1e-12)
        if right is None or not any(right):
            assert cosine is None
            assert error == (0.0 if right is not None and value == right else None)
            continue
        mine, reference = np.array(value), np.array(right)
        norm = np.linalg.norm
        assert error == pytest.approx(norm(mine - reference) / norm(reference), rel=1e-9, abs=1e-12)
        if any(value):
            assert cosine == pytest.approx(mine @ reference / (norm(mine) * norm(reference)), abs=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_reduce_gives_the_published_value_of_every_scheme(
    case: dict[str, Any], way: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = json.dumps({key: case[key] for key in ("gradient_sums", "valid_tokens")})
    (tmp_path / "input.json").write_text(written, "utf-8")
    standard_input(monkeypatch, written)
    found = answer(capsys, "reduce", tmp_path / "input.json" if way == "file" else "-")
    check_reduction(found, case)
    for scheme, expected in case["expect"].items():
        if scheme not in SCHEMES:  # two keys explain, they are no schemes
            continue
        if isinstance(expected, str):
            assert (found[scheme], f"undefined: {found['undefined'][scheme]}") == (None, expected)
        else:
            assert found[scheme] == pytest.approx(expected, rel=1e-9, abs=0)


def test_reduce_takes_decimals_written_as_text() -> None:
    written = {"valid_tokens": [[1, 1, 1]], "gradient_sums": [["0.5", "-1e2", "+.25"]]}
    assert reduce_report(json.dumps(written))["sum_over_world_size"] == -99.25


def test_reduce_without_a_valid_token_divides_by_nothing() -> None:
    found = reduce_report('{"valid_tokens": [[0], [0]], "gradient_sums": [[1], [5]]}')
    assert found["sum_over_world_size"] == 3.0
    assert set(found["undefined"]) == set(SCHEMES) - {"sum_over_world_size"}
    assert found["undefined"]["token_weighted"] == "no rank has a valid token: N = 0"
    assert found["token_weight"] == dict.fromkeys(SCHEMES)


@law(100)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.data())
def test_reduce_equals_exact_fractions_on_any_table(ranks: int, micro: int, length: int, data: Any) -> None:
    def table(cell: st.SearchStrategy[Any]) -> Any:
        row = st.lists(cell, min_size=micro, max_size=micro)
        return data.draw(st.lists(row, min_size=ranks, max_size=ranks))

    entry = st.integers(-1000, 1000)
    cell = st.lists(entry, min_size=length, max_size=length) if length else entry
    case = {"valid_tokens": table(st.integers(0, 50)), "gradient_sums": table(cell)}
    check_reduction(strict_json(json.dumps(reduce_report(json.dumps(case)))), case)
