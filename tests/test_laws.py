"""Laws 1, 2 and 7: the values of a step, its replicas, and its written forms.

Laws 3 and 4 are in test_laws_collectives.py, laws 5 and 6 in test_laws_time.py.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import autograd
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from strategies import ONCE_SHARDS, law, optimizers, scenarios

from dpsim import forms
from dpsim.batch import global_batch
from dpsim.comparison import compare
from dpsim.scenario import Batch, Scenario
from dpsim.simulate import count_events, simulate
from dpsim.trace_files import from_json, load, save

SIMPLE = optimizers(("sgd", "momentum"), clips=False)


def one_device(scenario: Scenario, start: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Gradient of the first step and parameters after each, by torch on the whole batch at once."""
    batch, chosen = global_batch(scenario), scenario.optimizer
    parameter = torch.tensor(start, requires_grad=True)
    momentum = chosen.momentum if chosen.kind == "momentum" else 0.0
    optimizer = torch.optim.SGD([parameter], chosen.learning_rate, momentum)
    count, first, after = autograd.valid(batch.labels), None, []
    for _ in range(scenario.steps):
        optimizer.zero_grad()
        loss = autograd.loss_sum(scenario.model, parameter, batch.tokens, batch.labels) / count
        loss.backward()
        first = parameter.grad.numpy().copy() if first is None else first
        optimizer.step()
        after.append(parameter.detach().numpy().copy())
    return first, after


@law(80)
@given(
    scenarios(
        kinds=("bigram", "scalar"),
        shards=ONCE_SHARDS,
        schemes=("token_weighted",),
        optimizer=SIMPLE,
    )
)
def test_law_1_token_weighted_equals_one_device_for_every_partition(scenario: Scenario) -> None:
    assume(autograd.valid(global_batch(scenario).labels) > 0)
    made = simulate(scenario)
    first, after = one_device(scenario, made.parameters[0, 0])
    assert made.gradient(0) == pytest.approx(first, rel=1e-9, abs=1e-11)
    for t in range(scenario.steps):
        assert made.parameters[t + 1, 0] == pytest.approx(after[t], rel=1e-8, abs=1e-9)


@law(50)
@given(scenarios(kinds=("given",), schemes=("token_weighted",), optimizer=SIMPLE))
def test_law_1_given_sums_divide_by_all_valid_tokens_as_exact_fractions_do(scenario: Scenario) -> None:
    count = sum(scenario.batch.valid or ())
    assume(count > 0)
    cells = [cell for row in scenario.model.gradient_sums or () for cell in row]
    exact = [sum(map(Fraction, column)) / count for column in zip(*cells, strict=True)]
    assert simulate(scenario).gradient(0) == pytest.approx([float(x) for x in exact], rel=1e-12, abs=1e-13)


def test_law_1_a_sampler_that_repeats_gives_3_833_where_the_batch_gives_4_5() -> None:
    scenario = Scenario(name="ten", batch=Batch(lengths=[1] * 10, shard="strided"))
    dealt = [i for row in global_batch(scenario).assignment for cell in row for i in cell]
    assert Fraction(sum(dealt), len(dealt)) == Fraction(23, 6)
    assert Fraction(sum(range(10)), 10) == Fraction(9, 2)


@law(40)
@given(scenarios(kinds=("bigram", "scalar"), shards=("strided",), schemes=("token_weighted",)))
def test_law_1_the_reference_of_a_repeating_sampler_is_the_batch_before_dealing(scenario: Scenario) -> None:
    batch = global_batch(scenario)
    assume(autograd.valid(batch.labels) > 0)
    dealt = [i for row in batch.assignment for cell in row for i in cell]
    unclipped = replace(scenario, optimizer=replace(scenario.optimizer, clip_norm=None))
    made, compared = simulate(unclipped), compare(unclipped)
    gradients = []
    for order in (dealt, range(len(batch.tokens))):
        labels = [batch.labels[i] for i in order]
        tokens = [batch.tokens[i] for i in order]
        _, total = autograd.sums(scenario.model, made.parameters[0, 0], tokens, labels)
        gradients.append(total / autograd.valid(labels))
    assert made.gradient(0) == pytest.approx(gradients[0], rel=1e-9, abs=1e-11)
    assert compared.one_device.gradient[0] == pytest.approx(gradients[1], rel=1e-9, abs=1e-11)


@law(50)
@given(scenarios())
def test_law_2_all_replicas_hold_the_same_parameters_bit_for_bit(scenario: Scenario) -> None:
    made = simulate(scenario)
    for t in range(scenario.steps):
        assert len({row.tobytes() for row in made.reduced[t]}) == 1
        assert len({row.tobytes() for row in made.parameters[t + 1]}) == 1


@law(60)
@given(scenarios())
def test_law_7_the_same_scenario_gives_the_same_trace(scenario: Scenario) -> None:
    first = simulate(scenario)
    assert simulate(forms.from_dict(forms.to_dict(scenario, full=True))).to_json() == first.to_json()
    assert len(first.events) <= count_events(scenario)


@law(40)
@given(scenarios(max_ranks=5))
def test_law_7_a_trace_survives_saving_and_loading(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario
) -> None:
    made, path = simulate(scenario), tmp_path_factory.getbasetemp() / "kept.json"
    save(made, path)
    again = load(path)
    assert again.to_json() == made.to_json() == from_json(made.to_json()).to_json()
    assert again.scenario == scenario
    assert again.parameters.tobytes() == made.parameters.tobytes()
    assert again.events.start_s.tobytes() == made.events.start_s.tobytes()
    assert again.valid_tokens.dtype == np.int64


@law(90)
@given(scenarios())
def test_law_7_a_scenario_survives_toml_url_and_json(scenario: Scenario) -> None:
    assert forms.from_toml(forms.to_toml(scenario)) == scenario
    assert forms.from_query(forms.to_query(scenario)) == scenario
    assert forms.from_dict(forms.to_dict(scenario)) == scenario
    assert forms.from_dict(forms.to_dict(scenario, full=True)) == scenario


@pytest.mark.parametrize("name", forms.preset_names())
def test_law_7_every_preset_survives_and_simulates(name: str) -> None:
    scenario = forms.preset(name)
    assert scenario.name == name
    assert forms.from_toml(forms.to_toml(scenario)) == scenario
    assert forms.from_query(forms.to_query(scenario)) == scenario
    if scenario.world_size <= 8:
        made = simulate(scenario)
        assert from_json(made.to_json()).to_json() == made.to_json()
