"""The published cases of wrong loss reductions, and the five schemes against exact fractions.

The cases are in reference/token_weighting.json, each with the issue that it comes from.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios

from dpsim.comparison import compare
from dpsim.forms import preset
from dpsim.reduction import cosine, reduction, relative_l2_error, token_weight
from dpsim.scenario import SCHEMES, Batch, Model, Scenario
from dpsim.simulate import simulate

PUBLISHED = json.loads((Path(__file__).parent / "reference" / "token_weighting.json").read_text("utf-8"))
CASES = [
    pytest.param(case, scheme, id=f"{case['id']}-{scheme}")
    for case in PUBLISHED["cases"]
    for scheme in SCHEMES
    if scheme in case["expect"]
]
GUIDE = PUBLISHED["end_to_end"][0]["expect"]


def sums_of(case: dict[str, Any]) -> np.ndarray:
    """The gradient sums [R, K, P] of a case; decimals may be written as text."""
    table = np.array(case["gradient_sums"]).astype(np.float64)
    return table if table.ndim == 3 else table[:, :, None]


def scenario_of(case: dict[str, Any], scheme: str) -> Scenario:
    """A case as a scenario: one sequence per micro-batch, as long as it has valid tokens."""
    sums, counts = sums_of(case), np.array(case["valid_tokens"])
    return Scenario(
        name=case["id"],
        world_size=len(counts),
        reduction=scheme,
        model=Model(kind="given", gradient_sums=sums.tolist(), parameters=[1.0] * sums.shape[2]),
        batch=Batch(lengths=counts.ravel().tolist(), micro_batches=counts.shape[1]),
    )


@pytest.mark.parametrize(("case", "scheme"), CASES)
def test_a_published_case_through_the_table_the_trace_and_the_comparison(
    case: dict[str, Any], scheme: str
) -> None:
    scenario, expected = scenario_of(case, scheme), case["expect"][scheme]
    table = reduction(scheme, np.array(case["valid_tokens"]))
    made, compared = simulate(scenario), compare(scenario).schemes[scheme]
    if isinstance(expected, str):
        assert f"undefined: {table.undefined}" == expected
        assert made.undefined == (table.undefined,)
        assert compared.undefined == table.undefined
        assert (made.gradient(0), compared.gradient, compared.loss) == (None, (None,), (None,))
        return
    right = np.atleast_1d(expected)
    assert table.undefined is None
    assert table.combine(sums_of(case)) == pytest.approx(right, rel=1e-9, abs=0)
    assert made.gradient(0) == pytest.approx(right, rel=1e-9, abs=0)
    assert compared.gradient[0] == pytest.approx(right, rel=1e-9, abs=0)
    reference = np.atleast_1d(case["expect"]["token_weighted"])
    assert compare(scenario).one_device.gradient[0] == pytest.approx(reference, rel=1e-9, abs=0)
    gap = np.linalg.norm(right - reference) / np.linalg.norm(reference)
    assert compared.relative_l2_error[0] == pytest.approx(gap, rel=1e-6, abs=1e-9)


def test_an_empty_rank_stays_undefined_and_no_nan_travels() -> None:
    scenario = preset("empty-rank")
    for scheme in ("mean_of_rank_means", "mean_of_micro_batch_means"):
        made = simulate(Scenario(**{**vars(scenario), "reduction": scheme, "steps": 2}))
        assert made.gradient(0) is None
        assert "rank 0 has no valid token" in str(made.undefined[0])
        assert made.parameters.tolist() == [[[2.0]] * 3] * 3  # they stay
        arrays = (made.payload, made.scaled, made.reduced, made.parameters, made.loss_sums)
        assert all(np.all(np.isfinite(array)) for array in arrays)
        assert "NaN" not in made.to_json()
    compared = compare(scenario)
    assert compared.schemes["token_weighted"].gradient[0] == pytest.approx([1.75])


def test_a_batch_without_a_valid_token_skips_the_optimizer_in_every_scheme() -> None:
    for scheme in (*SCHEMES, [[0.5], [0.5]]):
        batch = Batch(lengths=[2, 2], valid=[0, 0])
        scenario = Scenario(name="none", world_size=2, reduction=scheme, batch=batch)
        made, compared = simulate(scenario), compare(scenario)
        assert made.gradient(0) is None
        assert made.undefined[0]
        assert made.parameters[1].tobytes() == made.parameters[0].tobytes()
        assert len(made.events.where(kind=6)) == 0
        assert all(o.gradient == (None,) for o in (compared.one_device, *compared.schemes.values()))


@pytest.mark.parametrize("scheme", [s for s in SCHEMES if s in GUIDE["gradient"]])
def test_the_accelerate_guide_end_to_end(scheme: str) -> None:
    guide = preset("accelerate-doc")
    scenario = Scenario(**{**vars(guide), "reduction": scheme})
    made, compared = simulate(scenario), compare(scenario).schemes[scheme]
    assert made.valid_tokens[0].tolist() == [[10, 42], [26, 58]]
    size = GUIDE["gradient"][scheme]
    for gradient in (made.gradient(0), compared.gradient[0]):
        assert gradient == pytest.approx([-size, size], rel=1e-9)
    for after in (made.parameters[1, 0], made.parameters[1, 1], compared.parameters[1]):
        assert after == pytest.approx(GUIDE["weights_after"][scheme], rel=1e-9)
    if f"loss_{scheme}" in GUIDE:
        assert compared.loss[0] == pytest.approx(GUIDE[f"loss_{scheme}"], rel=1e-9)


def test_the_accelerate_guide_prints_0_2117_and_0_3172() -> None:
    made = simulate(preset("accelerate-doc"))
    assert [round(float(w), 4) for w in made.parameters[1, 0]] == [0.2117, 0.3172]


def exact_weight(scheme: str, counts: list[list[int]], r: int, k: int) -> Fraction:
    """w[r][k] of the design's section 4."""
    ranks, total = len(counts), sum(map(sum, counts))
    return {
        "token_weighted": lambda: Fraction(1, total),
        "mean_of_rank_means": lambda: Fraction(1, ranks * sum(counts[r])),
        "mean_of_micro_batch_means": lambda: Fraction(1, ranks * len(counts[r]) * counts[r][k]),
        "token_weighted_not_compensated": lambda: Fraction(1, ranks * total),
        "sum_over_world_size": lambda: Fraction(1, ranks),
    }[scheme]()


def is_undefined(scheme: str, counts: list[list[int]]) -> bool:
    if scheme == "mean_of_rank_means":
        return any(sum(row) == 0 for row in counts)
    if scheme == "mean_of_micro_batch_means":
        return any(n == 0 for row in counts for n in row)
    return scheme != "sum_over_world_size" and sum(map(sum, counts)) == 0


count_tables = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=6)


@law(200)
@given(count_tables, st.sampled_from(SCHEMES), st.integers(0, 2**32 - 1))
def test_every_scheme_equals_its_exact_fractions(counts: list[list[int]], scheme: str, seed: int) -> None:
    micro, most = tuple(map(len, counts)), max(map(len, counts))
    padded = np.array([row + [0] * (most - len(row)) for row in counts])
    table = reduction(scheme, padded, micro)
    assert (table.undefined is not None) == is_undefined(scheme, counts)
    assert np.all(np.isfinite(table.weights))
    weights = token_weight(table, padded)
    if table.undefined:
        assert weights is None
        return
    sums = np.random.default_rng(seed).integers(-99, 99, padded.shape)
    cells = [(r, k) for r, row in enumerate(counts) for k in range(len(row))]
    sums[[[k >= n for k in range(most)] for n in micro]] = 0
    exact = sum(exact_weight(scheme, counts, r, k) * int(sums[r, k]) for r, k in cells)
    assert table.combine(sums[..., None])[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
    if padded.sum() == 0:
        assert weights is None
        return
    for r, k in cells:
        expected = exact_weight(scheme, counts, r, k) * int(padded.sum())
        assert weights[r, k] == pytest.approx(float(expected), rel=1e-12)
    if scheme == "token_weighted":
        assert all(weights[r, k] == pytest.approx(1.0, rel=1e-15) for r, k in cells)


def test_a_table_of_one_s_own_is_taken_as_it_is() -> None:
    table = reduction(((0.5, 0.25), (1.0,)), np.array([[1, 2], [3, 0]]), (2, 1))
    assert table.weights.tolist() == [[0.5, 0.25], [1.0, 0.0]]
    assert token_weight(table, np.array([[1, 2], [3, 0]])).tolist() == [[3.0, 1.5], [6.0, 0.0]]


@law(50)
@given(scenarios())
def test_the_trace_and_the_comparison_agree_on_the_chosen_reduction(scenario: Scenario) -> None:
    made, compared = simulate(scenario), compare(scenario)
    outcome = compared.schemes[compared.chosen]
    for t in range(scenario.steps):
        mine, other = made.gradient(t), outcome.gradient[t]
        assert (mine is None) == (other is None)
        assert made.parameters[t + 1, 0] == pytest.approx(outcome.parameters[t + 1], rel=1e-6, abs=1e-7)
        if mine is not None and t == 0:
            assert mine == pytest.approx(other, rel=1e-11, abs=1e-12)
            loss = float((reduction_weights(scenario, made.valid_tokens[0]) * made.loss_sums[0]).sum())
            assert outcome.loss[0] == pytest.approx(loss, rel=1e-11, abs=1e-12)


def reduction_weights(scenario: Scenario, counts: np.ndarray) -> np.ndarray:
    return reduction(scenario.reduction, counts, scenario.micro_batches).weights


def test_errors_of_size_and_of_direction() -> None:
    right = np.array([3.0, 4.0])
    assert relative_l2_error(right, right) == 0.0
    assert relative_l2_error(2 * right, right) == 1.0  # only the size is wrong
    assert cosine(2 * right, right) == pytest.approx(1.0, abs=1e-15)
    assert relative_l2_error(-right, right) == 2.0
    assert cosine(-right, right) == pytest.approx(-1.0, abs=1e-15)
    assert cosine(np.array([4.0, -3.0]), right) == 0.0  # only the direction is wrong


def test_errors_against_a_zero_vector_are_null() -> None:
    zero, other = np.zeros(2), np.array([1.0, 0.0])
    assert relative_l2_error(zero, zero) == 0.0
    assert relative_l2_error(other, zero) is None
    assert relative_l2_error(zero, other) == 1.0
    assert cosine(zero, other) is None
    assert cosine(other, zero) is None
    assert cosine(zero, zero) is None


def test_errors_of_tiny_and_huge_numbers_neither_vanish_nor_overflow() -> None:
    for size in (1e-200, 1e-300, 1e100, 1e200):
        vector = np.array([3.0, 4.0]) * size
        assert relative_l2_error(1.5 * vector, vector) == pytest.approx(0.5)
        assert cosine(vector, vector) == pytest.approx(1.0)
