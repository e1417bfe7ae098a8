"""Where clipping or Adam hides a fault, held against the updates themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsim.comparison import compare
from dpsim.forms import preset
from dpsim.hiding import hidden_faults
from dpsim.scenario import Optimizer, Scenario

FIRST = preset("first-screen")
CONSTANT = ["token_weighted_not_compensated", "sum_over_world_size"]  # wrong by a constant factor alone


def found(optimizer: Optimizer, base: Scenario = FIRST) -> list[tuple[str, str]]:
    scenario = replace(base, optimizer=optimizer)
    return [(hidden.scheme, hidden.by) for hidden in hidden_faults(scenario, compare(scenario))]


def test_adam_hides_a_constant_factor() -> None:
    assert found(Optimizer(kind="adam")) == [(name, "Adam") for name in CONSTANT]


def test_clipping_to_a_small_norm_hides_it_too() -> None:
    assert found(Optimizer(clip_norm=0.1)) == [(name, "Clipping") for name in CONSTANT]


def test_a_norm_that_nothing_reaches_hides_nothing() -> None:
    assert found(Optimizer(clip_norm=1e6)) == []


@pytest.mark.parametrize("kind", ["sgd", "momentum"])
def test_plain_gradient_steps_hide_nothing(kind: str) -> None:
    assert found(Optimizer(kind=kind)) == []


def test_with_equal_counts_a_right_naive_mean_is_not_called_a_fault() -> None:
    equal = replace(FIRST, batch=replace(FIRST.batch, valid=(5, 5, 5, 5)))
    assert ("mean_of_rank_means", "Adam") not in found(Optimizer(kind="adam"), equal)


def test_a_rank_without_tokens_and_no_tokens_at_all_say_nothing_wrong() -> None:
    for valid in ((0, 5, 5, 5), (0, 0, 0, 0)):
        none = replace(FIRST, batch=replace(FIRST.batch, valid=valid))
        assert "mean_of_rank_means" not in [name for name, _ in found(Optimizer(kind="adam"), none)]


def test_the_sentence_names_both_shares() -> None:
    scenario = replace(FIRST, optimizer=Optimizer(kind="adam"))
    ways = compare(scenario)
    first = hidden_faults(scenario, ways)[0].in_words()
    assert first.startswith("Adam hides a fault here: under “token-weighted, average not compensated”")
    assert "off by 75 %" in first
    assert "by less than 0.01 %" in first
