"""Every reduction beside the one-device reference, on one scenario, straight from the formulas.

Each scheme follows its own trajectory from the same start: its own parameters, its own gradient sums there.
No collective is involved, so this is also what a trace's numbers are held against.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsim.batch import GlobalBatch, global_batch
from dpsim.checks import InputError
from dpsim.model import Floats, initial_parameters, local_sums, whole_sums
from dpsim.optimizer import clip, clip_factor, initial_state, norms
from dpsim.optimizer import step as optimizer_step
from dpsim.reduction import Reduction, cosine, reduction, relative_l2_error, token_weight
from dpsim.scenario import SCHEMES, Scenario


@dataclass(frozen=True, eq=False)
class Outcome:
    """One way of reducing, over T steps; a list entry per step, None where there is no such number.

    `gradient` (P) is what the all-reduce forms, before any clipping after it; `parameters` [T + 1, P] is the
    trajectory, `loss` the loss before the update. Errors are against the one-device trajectory.
    `token_weight` [R, K].
    """

    scheme: str
    gradient: tuple[Floats | None, ...]
    loss: tuple[float | None, ...]
    parameters: Floats
    relative_l2_error: tuple[float | None, ...]
    cosine: tuple[float | None, ...]
    undefined: str | None
    token_weight: Floats | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The one-device run and every scheme, by name; `chosen` is the scenario's own ("custom" for a table)."""

    one_device: Outcome
    schemes: dict[str, Outcome]
    chosen: str


def compare(scenario: Scenario) -> Comparison:
    """All schemes and the scenario's own table beside one device on the batch before dealing."""
    batch = global_batch(scenario)
    valid = batch.shard_counts(batch.valid)
    reference = _one_device(scenario, batch)
    tables = {name: reduction(name, valid, scenario.micro_batches) for name in SCHEMES}
    chosen = scenario.reduction if isinstance(scenario.reduction, str) else "custom"
    if chosen == "custom":
        tables[chosen] = reduction(scenario.reduction, valid, scenario.micro_batches)
    schemes = {
        name: replace(
            _trajectory(scenario, batch, table, reference),
            token_weight=token_weight(table, valid),
        )
        for name, table in tables.items()
    }
    return Comparison(reference, schemes, chosen)


def drift(ways: Comparison, name: str) -> tuple[float | None, ...]:
    """How far the parameters of a scheme are from those of one device before each step and after the last
    [T + 1]: relative L2 error; None where it is undefined."""
    own, right = ways.schemes[name], ways.one_device
    if own.undefined and own.gradient[0] is None:
        return (None,) * len(own.parameters)
    return tuple(relative_l2_error(a, b) for a, b in zip(own.parameters, right.parameters, strict=True))


def _one_device(scenario: Scenario, batch: GlobalBatch) -> Outcome:
    """One device, the whole batch in one pass, the mean over its valid tokens."""
    parameters = [initial_parameters(scenario)]
    state = initial_state(parameters[0])
    gradients: list[Floats | None] = []
    losses: list[float | None] = []
    for _ in range(scenario.steps):
        sums = whole_sums(scenario, batch, parameters[-1])
        if sums.valid_tokens == 0:
            gradients.append(None)
            losses.append(None)
            parameters.append(parameters[-1])
            continue
        gradient = sums.gradient / sums.valid_tokens
        losses.append(sums.loss / sums.valid_tokens)
        gradients.append(gradient)
        clipped = clip(gradient, scenario.optimizer.clip_norm)
        new, state = optimizer_step(scenario.optimizer, parameters[-1], clipped, state)
        parameters.append(new)
    none = "no token of the batch is valid: N = 0" if gradients[0] is None else None
    zero = tuple(None if g is None else 0.0 for g in gradients)
    same = tuple(None if g is None else cosine(g, g) for g in gradients)
    return Outcome(
        "one_device", tuple(gradients), tuple(losses), np.array(parameters), zero, same, none, None
    )


def _trajectory(scenario: Scenario, batch: GlobalBatch, table: Reduction, reference: Outcome) -> Outcome:
    micro, chosen = scenario.micro_batches, scenario.optimizer
    size, most = scenario.world_size, max(micro)
    parameters = [initial_parameters(scenario)]
    state = initial_state(parameters[0])
    gradients: list[Floats | None] = []
    losses: list[float | None] = []
    undefined = table.undefined or reference.undefined
    for _ in range(scenario.steps):
        if undefined:
            gradients.append(None)
            losses.append(None)
            parameters.append(parameters[-1])
            continue
        sums = np.zeros((size, most, scenario.model.size))
        loss = np.zeros((size, most))
        for r in range(size):
            for k in range(micro[r]):
                local = local_sums(scenario, batch, parameters[-1], r, k)
                loss[r, k], sums[r, k] = local.loss, local.gradient
        shares = np.einsum("rk,rkp->rp", table.weights, sums)
        losses.append(float(table.combine(loss)))
        if chosen.clip == "before" and chosen.clip_norm is not None:
            shares = clip_factor(norms(size * shares), chosen.clip_norm)[:, None] * shares
        gradient = shares.sum(axis=0)
        gradients.append(gradient)
        limit = chosen.clip_norm if chosen.clip == "after" else None
        try:
            new, state = optimizer_step(chosen, parameters[-1], clip(gradient, limit), state)
        except InputError:  # another way of reducing may run away where the chosen one does not
            new, undefined = parameters[-1], f"its parameters ran away in step {state.taken + 1}"
        parameters.append(new)
    pairs = list(zip(gradients, reference.gradient, strict=True))
    errors = [None if g is None or ref is None else relative_l2_error(g, ref) for g, ref in pairs]
    cosines = [None if g is None or ref is None else cosine(g, ref) for g, ref in pairs]
    return Outcome(
        table.name,
        tuple(gradients),
        tuple(losses),
        np.array(parameters),
        tuple(errors),
        tuple(cosines),
        undefined,
        None,
    )
