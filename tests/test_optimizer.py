"""The optimizers against torch.optim over several steps in float64; clipping against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import law, numbers, optimizers

from dpsim.optimizer import clip, clip_factor, initial_state, step
from dpsim.scenario import Batch, Model, Optimizer, Scenario
from dpsim.simulate import simulate

vectors = hnp.arrays(np.float64, 6, elements=numbers(-3, 3))


def torch_optimizer(chosen: Optimizer, parameter: torch.Tensor) -> torch.optim.Optimizer:
    if chosen.kind == "adam":
        betas = (chosen.beta1, chosen.beta2)
        return torch.optim.Adam([parameter], chosen.learning_rate, betas, chosen.epsilon)
    momentum = chosen.momentum if chosen.kind == "momentum" else 0.0
    return torch.optim.SGD([parameter], chosen.learning_rate, momentum)


@law(90)
@given(optimizers(clips=False), vectors, st.lists(vectors, min_size=1, max_size=5))
def test_every_step_is_that_of_torch_optim(
    chosen: Optimizer, start: np.ndarray, gradients: list[np.ndarray]
) -> None:
    parameter = torch.tensor(start, requires_grad=True)
    other = torch_optimizer(chosen, parameter)
    mine, state = start, initial_state(start)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        other.step()
        mine, state = step(chosen, mine, gradient, state)
        assert mine == pytest.approx(parameter.detach().numpy(), rel=1e-12, abs=1e-12)


@law(50)
@given(optimizers(clips=False), hnp.arrays(np.float64, (3, 5), elements=numbers(-2, 2)))
def test_a_world_of_replicas_steps_as_each_of_them_would_alone(chosen: Optimizer, start: np.ndarray) -> None:
    gradient = np.flip(start, axis=1)
    world, _ = step(chosen, start, gradient, initial_state(start))
    for r in range(3):
        alone, _ = step(chosen, start[r], gradient[r], initial_state(start[r]))
        assert alone.tobytes() == world[r].tobytes()


@law(60)
@given(vectors, numbers(0.01, 8))
def test_clipping_is_min_of_one_and_limit_over_norm(gradient: np.ndarray, limit: float) -> None:
    size = float(np.sqrt((gradient**2).sum()))
    expected = gradient * min(1.0, limit / size) if size else gradient
    assert clip(gradient, limit) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert np.linalg.norm(clip(gradient, limit)) <= limit * (1 + 1e-12)


@law(50)
@given(vectors, numbers(0.5, 8))
def test_clipping_agrees_with_torch_where_torch_s_epsilon_does_not_show(
    gradient: np.ndarray, limit: float
) -> None:
    parameter = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    parameter.grad = torch.tensor(gradient)
    torch.nn.utils.clip_grad_norm_([parameter], limit)
    assert clip(gradient, limit) == pytest.approx(parameter.grad.numpy(), rel=1e-5, abs=1e-6)


def test_no_limit_and_a_zero_gradient_leave_the_gradient_as_it_is() -> None:
    gradient = np.array([3.0, 4.0])
    assert clip(gradient, None) is gradient
    assert clip(np.zeros(2), 0.5).tolist() == [0.0, 0.0]
    assert clip_factor(np.array([0.0, 1.0, 4.0]), 2.0).tolist() == [1.0, 1.0, 0.5]


def two_ranks(clip_when: str | None) -> np.ndarray:
    """Rank means [6, 8] (norm 10) and [0, 2] (norm 2), one token each; the update at learning rate 1."""
    chosen = Optimizer(learning_rate=1.0)
    if clip_when is not None:
        chosen = Optimizer(learning_rate=1.0, clip_norm=2.5, clip=clip_when)
    model = Model(kind="given", gradient_sums=[[[6, 8]], [[0, 2]]], parameters=[0, 0])
    batch = Batch(lengths=[1, 1])
    scenario = Scenario(name="c", world_size=2, model=model, batch=batch, optimizer=chosen)
    return -simulate(scenario).parameters[1, 0]


def test_clipping_before_the_average_shortens_each_rank_and_after_it_the_average() -> None:
    assert two_ranks(None) == pytest.approx([3, 5])
    # before: ([1.5, 2] + [0, 2]) / 2; after: [3, 5] scaled to the norm 2.5
    assert two_ranks("before") == pytest.approx([0.75, 2.0])
    assert two_ranks("after") == pytest.approx(np.array([3, 5]) * 2.5 / np.sqrt(34))
