"""What really ran, side by side: naive mean, token-weighted mean and one device, from their traces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsim.comparison import Comparison, Outcome
from dpsim.reduction import AS_EXCHANGED, ONE_DEVICE, cosine, reduction, relative_l2_error, token_weight
from dpsim.replicas import worst_rank
from dpsim.trace import Trace


def as_run(runs: Mapping[str, Trace | str], chosen: str) -> Comparison:
    """The same comparison as `comparison.compare` makes by formula, from traces of the same batch.

    `runs` holds a trace for each way of reducing that was run, and one for `one_device`; in place of a trace
    the reason why it did not go through. Errors are against the trace of one device. `chosen` names the run
    that is shown.
    """
    alone = runs[ONE_DEVICE]
    right = None if isinstance(alone, str) else alone
    steps = next(run.steps for run in runs.values() if isinstance(run, Trace))
    outcomes: dict[str, Outcome] = {
        name: _failed(name, run, steps) if isinstance(run, str) else _outcome(name, run, right)
        for name, run in runs.items()
    }
    return Comparison(outcomes.pop(ONE_DEVICE), outcomes, chosen)


def losses(trace: Trace) -> tuple[float | None, ...]:
    """The loss of every step, as measured and weighed by the reduction; None where it is undefined."""
    scenario = trace.scenario
    table = reduction(scenario.reduction, trace.valid_tokens[0], scenario.micro_batches)
    return tuple(
        None if trace.undefined[t] else float(table.combine(trace.loss_sums[t])) for t in range(trace.steps)
    )


def _outcome(name: str, trace: Trace, right: Trace | None) -> Outcome:
    scenario, steps = trace.scenario, range(trace.steps)
    references = tuple(right.gradient(t) if right else None for t in steps)
    rank = worst_rank(trace, references)
    gradients = tuple(trace.gradient(t, rank) for t in steps)
    pairs = [
        None if g is None or ref is None else (g, ref) for g, ref in zip(gradients, references, strict=True)
    ]
    weight = None
    if name not in (ONE_DEVICE, AS_EXCHANGED):
        table = reduction(scenario.reduction, trace.valid_tokens[0], scenario.micro_batches)
        weight = token_weight(table, trace.valid_tokens[0])
    return Outcome(
        name,
        gradients,
        losses(trace),
        trace.parameters[:, rank],
        tuple(None if pair is None else relative_l2_error(*pair) for pair in pairs),
        tuple(None if pair is None else cosine(*pair) for pair in pairs),
        trace.undefined[0],
        weight,
    )


def _failed(name: str, reason: str, steps: int) -> Outcome:
    none = (None,) * steps
    return Outcome(name, none, none, np.zeros((steps + 1, 0)), none, none, reason, None)
