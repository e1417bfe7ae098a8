"""What every replica really has, where what goes wrong in the exchange may leave each with something else.

The ways of reducing are compared by formula, and no formula knows of a chunk that was dropped. So what such a
run comes to is read from its trace, on the rank that is furthest off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsim.comparison import Comparison, Outcome, compare
from dpsim.reduction import AS_EXCHANGED, cosine, norm, reduction, relative_l2_error
from dpsim.scenario import Scenario
from dpsim.trace import Floats, Trace


def exchanges_otherwise(scenario: Scenario) -> bool:
    """Whether what the ranks get is not what the formula of their reduction says."""
    return bool(scenario.exchange.edit) or scenario.hangs


def differ(replicas: Floats) -> bool:
    """Whether two rows of [R, P] are not the same, bit for bit."""
    return any(replica.tobytes() != replicas[0].tobytes() for replica in replicas)


def apart(replicas: Floats) -> float:
    """The largest difference between two rows of [R, P] in one column."""
    return float(np.max(replicas.max(axis=0) - replicas.min(axis=0), initial=0.0))


def furthest_from(replicas: Floats, one: int) -> int:
    """The row of [R, P] that is furthest from row `one`; the lowest of equals."""
    return int(np.argmax([norm(replica - replicas[one]) for replica in replicas]))


def worst_rank(trace: Trace, references: Sequence[Floats | None]) -> int:
    """The rank whose gradient is furthest from one device's in any step; the lowest of equals.

    `references` are one device's gradients, an entry per step.
    """
    off = np.zeros(trace.scenario.world_size)
    for t in range(trace.steps):
        reference = references[t]
        if reference is not None and not trace.undefined[t]:
            off = np.maximum(off, [norm(own - reference) for own in trace.reduced[t]])
    return int(off.argmax())


def as_exchanged(trace: Trace, one_device: Outcome) -> Outcome:
    """What the run comes to on its worst rank. The loss is that of all ranks, weighed by the reduction."""
    rank, steps = worst_rank(trace, one_device.gradient), range(trace.steps)
    gradients = [trace.gradient(t, rank) for t in steps]
    pairs = [(g, one_device.gradient[t]) for t, g in enumerate(gradients)]
    table = reduction(trace.scenario.reduction, trace.valid_tokens[0], trace.scenario.micro_batches)
    losses = [None if trace.undefined[t] else float(table.combine(trace.loss_sums[t])) for t in steps]
    return Outcome(
        AS_EXCHANGED,
        tuple(gradients),
        tuple(losses),
        trace.parameters[:, rank],
        tuple(None if g is None or r is None else relative_l2_error(g, r) for g, r in pairs),
        tuple(None if g is None or r is None else cosine(g, r) for g, r in pairs),
        trace.undefined[0],
        None,
    )


def beside(trace: Trace) -> Comparison:
    """All schemes beside one device, by formula; where the exchange goes wrong the run itself as well, and
    that is then what was chosen."""
    ways = compare(trace.scenario)
    if not exchanges_otherwise(trace.scenario):
        return ways
    own = as_exchanged(trace, ways.one_device)
    return replace(ways, schemes=ways.schemes | {AS_EXCHANGED: own}, chosen=AS_EXCHANGED)
