"""The tiny models in numpy: loss sums and gradient sums over valid tokens, by formulas one can check by hand.

With p = softmax(logits) and y the label, the loss of a token is -log p[y] and its gradient with respect to
the logits is p - onehot(y). Everything else is the chain rule of one line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.batch import GlobalBatch, Ints
from dpsim.scenario import MASKED, Model, Scenario

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sums:
    """Over the valid tokens of some sequences: the loss sum, the gradient sum (P), how many there are."""

    loss: float
    gradient: Floats
    valid_tokens: int


def tensors(model: Model) -> tuple[tuple[str, int], ...]:
    """Name and number of elements of each parameter tensor, in the order of the forward pass."""
    if model.kind == "bigram":
        table = model.vocabulary * model.width
        return (("E", table), ("W", table), ("b", model.vocabulary))
    return (("w" if model.kind == "scalar" else "theta", model.size),)


def initial_parameters(scenario: Scenario) -> Floats:
    """The P parameters every replica starts from: those chosen, else drawn from the seed, all different."""
    chosen = scenario.model.parameters
    if chosen is not None:
        return np.array(chosen, np.float64)
    return np.random.default_rng([scenario.seed, 2]).normal(0.0, 0.5, scenario.model.size)


def local_sums(
    scenario: Scenario, batch: GlobalBatch, parameters: Floats, rank: int, micro_batch: int
) -> Sums:
    """The sums of one micro-batch of one rank."""
    cell = batch.assignment[rank][micro_batch]
    if scenario.model.gradient_sums is not None:
        given = np.array(scenario.model.gradient_sums[rank][micro_batch], np.float64)
        return _given(given, parameters, int(batch.valid[list(cell)].sum()) if cell else 0)
    return token_sums(scenario.model, batch, parameters, cell)


def whole_sums(scenario: Scenario, batch: GlobalBatch, parameters: Floats) -> Sums:
    """The sums of the whole batch as one device sees it: every sequence once, in one pass."""
    if scenario.model.gradient_sums is not None:
        cells = [np.array(cell, np.float64) for row in scenario.model.gradient_sums for cell in row]
        return _given(np.sum(cells, axis=0), parameters, batch.valid_total)
    return token_sums(scenario.model, batch, parameters, tuple(range(len(batch.tokens))))


def _given(gradient: Floats, parameters: Floats, valid_tokens: int) -> Sums:
    """The loss theta . g, whose gradient is g whatever theta is."""
    return Sums(float(np.dot(parameters, gradient)), gradient, valid_tokens)


def token_sums(model: Model, batch: GlobalBatch, parameters: Floats, cell: tuple[int, ...]) -> Sums:
    """The sums over the valid tokens of the sequences in `cell`, by the model's formula."""
    empty = np.zeros(0, np.int64)
    x = np.concatenate([batch.tokens[i] for i in cell] or [empty])
    y = np.concatenate([batch.labels[i] for i in cell] or [empty])
    x, y = x[y != MASKED], y[y != MASKED]
    if len(x) == 0:
        return Sums(0.0, np.zeros(model.size), 0)
    formula = _bigram if model.kind == "bigram" else _scalar
    loss, gradient = formula(model, parameters, x, y)
    return Sums(loss, gradient, len(x))


def _cross_entropy(logits: Floats, y: Ints) -> tuple[float, Floats]:
    """The loss sum, and its gradient with respect to the logits [T, V]."""
    shifted = logits - logits.max(axis=1, keepdims=True)  # exp cannot overflow
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    slope = np.exp(log_p)
    slope[rows, y] -= 1.0
    return float(-log_p[rows, y].sum()), slope


def _bigram(model: Model, parameters: Floats, x: Ints, y: Ints) -> tuple[float, Floats]:
    """logits = E[x] W + b; parameters are E [V, d], W [d, V], b [V], flat and in this order."""
    v, d = model.vocabulary, model.width
    e, w, b = np.split(parameters, [v * d, 2 * v * d])
    e, w = e.reshape(v, d), w.reshape(d, v)
    loss, slope = _cross_entropy(e[x] @ w + b, y)
    slope_e = np.zeros((v, d))
    np.add.at(slope_e, x, slope @ w.T)
    slope_w = e[x].T @ slope
    return loss, np.concatenate([slope_e.ravel(), slope_w.ravel(), slope.sum(axis=0)])


def _scalar(model: Model, parameters: Floats, x: Ints, y: Ints) -> tuple[float, Floats]:
    """logits = x w for a number x and parameters w [V]."""
    loss, slope = _cross_entropy(x[:, None] * parameters, y)
    return loss, x.astype(np.float64) @ slope
