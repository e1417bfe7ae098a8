"""The tiny models against torch autograd in float64: loss sums, gradient sums, the order of parameters."""

from __future__ import annotations

import autograd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios

from dpsim.batch import GlobalBatch, global_batch
from dpsim.model import initial_parameters, local_sums, tensors, token_sums, whole_sums
from dpsim.scenario import Batch, Model, Scenario


@law(90)
@given(scenarios(kinds=("bigram", "scalar")))
def test_the_sums_of_every_micro_batch_are_those_of_torch_autograd(scenario: Scenario) -> None:
    batch, start = global_batch(scenario), initial_parameters(scenario)
    for r, row in enumerate(batch.assignment):
        for k, cell in enumerate(row):
            tokens, labels = [batch.tokens[i] for i in cell], [batch.labels[i] for i in cell]
            loss, gradient = autograd.sums(scenario.model, start, tokens, labels)
            mine = local_sums(scenario, batch, start, r, k)
            assert mine.loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
            assert mine.gradient == pytest.approx(gradient, rel=1e-11, abs=1e-12)
            assert mine.valid_tokens == autograd.valid(labels)


@law(60)
@given(scenarios(kinds=("bigram", "scalar")))
def test_the_sums_of_one_device_are_those_of_torch_autograd(scenario: Scenario) -> None:
    batch, start = global_batch(scenario), initial_parameters(scenario)
    loss, gradient = autograd.sums(scenario.model, start, batch.tokens, batch.labels)
    mine = whole_sums(scenario, batch, start)
    assert mine.loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert mine.gradient == pytest.approx(gradient, rel=1e-11, abs=1e-12)


def test_the_bigram_model_orders_its_parameters_as_embedding_then_output_then_bias() -> None:
    model = Model(kind="bigram", vocabulary=4, width=3)
    assert tensors(model) == (("E", 12), ("W", 12), ("b", 4))
    assert model.size == 28


def test_the_bias_gradient_of_one_token_is_probability_minus_one_hot() -> None:
    model = Model(kind="bigram", vocabulary=2, width=1)
    batch = GlobalBatch((np.array([1]),), (np.array([0]),), (((0,),),))
    mine = token_sums(model, batch, np.zeros(model.size), (0,))
    assert mine.loss == pytest.approx(np.log(2))
    assert mine.gradient.tolist() == [0, 0, 0, 0, -0.5, 0.5]  # E and W meet zeros


def test_the_scalar_model_multiplies_its_number_with_each_parameter() -> None:
    model = Model(kind="scalar", vocabulary=2)
    batch = GlobalBatch((np.array([3]),), (np.array([1]),), (((0,),),))
    mine = token_sums(model, batch, np.zeros(2), (0,))
    assert tensors(model) == (("w", 2),)
    assert mine.gradient.tolist() == [1.5, -1.5]  # 3 (p - onehot)


def test_masked_tokens_change_nothing() -> None:
    tokens, labels = [[1, 2, 0, 3]], [[2, 0, 3, 1]]
    masked = [[*tokens[0], 3, 1]], [[*labels[0], -100, -100]]
    both = [
        Scenario(name="m", world_size=1, model=Model(vocabulary=4), batch=Batch(tokens=t, labels=y))
        for t, y in ((tokens, labels), masked)
    ]
    start = initial_parameters(both[0])
    first, second = (whole_sums(s, global_batch(s), start) for s in both)
    assert first.gradient.tolist() == second.gradient.tolist()
    assert (first.loss, first.valid_tokens) == (second.loss, second.valid_tokens)


def test_a_batch_without_a_valid_token_has_zero_sums_and_no_nan() -> None:
    batch = Batch(lengths=[3, 2], valid=[0, 0])
    scenario = Scenario(name="none", world_size=1, batch=batch)
    mine = whole_sums(scenario, global_batch(scenario), initial_parameters(scenario))
    assert (mine.loss, mine.valid_tokens, np.count_nonzero(mine.gradient)) == (0.0, 0, 0)


@pytest.mark.parametrize("size", [30.0, 800.0, 1e4])
def test_large_logits_do_not_overflow(size: float) -> None:
    model = Model(kind="scalar", vocabulary=3)
    batch = GlobalBatch((np.array([1, -2]),), (np.array([0, 2]),), (((0,),),))
    start = np.array([size, -size, 0.5])
    loss, gradient = autograd.sums(model, start, batch.tokens, batch.labels)
    mine = token_sums(model, batch, start, (0,))
    assert mine.loss == pytest.approx(loss, rel=1e-12)
    assert mine.gradient == pytest.approx(gradient, rel=1e-12, abs=1e-300)


@law(50)
@given(st.integers(0, 2**32 - 1), st.sampled_from((("bigram", 5), ("scalar", 7))))
def test_every_initial_parameter_differs_from_every_other(seed: int, kind: tuple[str, int]) -> None:
    model = Model(kind=kind[0], vocabulary=kind[1])
    scenario = Scenario(name="s", seed=seed, model=model, batch=Batch(lengths=[1]))
    start = initial_parameters(scenario)
    assert len(np.unique(start)) == model.size
