"""SGD, momentum and Adam as pure functions, with torch's conventions, and clipping to a norm.

All work on arrays whose last axis is the parameters, so a whole world of replicas [R, P] takes its step
at once, each row exactly as it would alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError
from dpsim.scenario import Optimizer

Floats = NDArray[np.float64]


RUNAWAY = 1e50  # products and squares of such parameters stay finite in float64


@dataclass(frozen=True, eq=False)
class State:
    """What the optimizer keeps between steps: steps taken, first and second moment (like the parameters)."""

    taken: int
    first: Floats
    second: Floats


def initial_state(parameters: Floats) -> State:
    """The state before the first step."""
    return State(0, np.zeros_like(parameters), np.zeros_like(parameters))


def step(chosen: Optimizer, parameters: Floats, gradient: Floats, state: State) -> tuple[Floats, State]:
    """Parameters and state after one step; InputError where the parameters run away.

    Formulas: torch.optim.SGD (dampening 0) and torch.optim.Adam.
    """
    new, kept = _step(chosen, parameters, gradient, state)
    if not np.all(np.abs(new) <= RUNAWAY):
        rule = f"must be small enough for the parameters to stay below {RUNAWAY:g} (step {kept.taken})"
        raise InputError("optimizer.learning_rate", rule, chosen.learning_rate)
    return new, kept


def _step(chosen: Optimizer, parameters: Floats, gradient: Floats, state: State) -> tuple[Floats, State]:
    rate, taken = chosen.learning_rate, state.taken + 1
    if chosen.kind == "sgd":
        return parameters - rate * gradient, State(taken, state.first, state.second)
    if chosen.kind == "momentum":
        velocity = chosen.momentum * state.first + gradient
        return parameters - rate * velocity, State(taken, velocity, state.second)
    first = chosen.beta1 * state.first + (1 - chosen.beta1) * gradient
    second = chosen.beta2 * state.second + (1 - chosen.beta2) * gradient**2
    corrected = first / (1 - chosen.beta1**taken)
    scale = np.sqrt(second / (1 - chosen.beta2**taken)) + chosen.epsilon
    return parameters - rate * corrected / scale, State(taken, first, second)


def norms(vectors: Floats) -> Floats:
    """The L2 norm along the last axis, scaled first so that no square overflows or vanishes."""
    largest = np.max(np.abs(vectors), axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(scale[..., 0] * np.linalg.norm(vectors / scale, axis=-1), np.float64)


def clip_factor(norm: Floats, limit: float) -> Floats:
    """min(1, limit / norm), element by element; 1 for a zero norm."""
    return np.minimum(1.0, np.divide(limit, norm, out=np.ones_like(norm), where=norm > 0))


def clip(gradient: Floats, limit: float | None) -> Floats:
    """`gradient`, shortened to norm `limit` along the last axis where it is longer."""
    if limit is None:
        return gradient
    return gradient * clip_factor(norms(gradient)[..., None], limit)
