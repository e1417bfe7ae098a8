"""The same scenario on other numbers of ranks: how much more it gets done, by the clock."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dpsim.edits import with_world_size
from dpsim.metrics import one_device_step_time, step_metrics
from dpsim.scenario import Scenario
from dpsim.simulate import simulate


@lru_cache(maxsize=256)
def speedup(scenario: Scenario, ranks: int) -> float | None:
    """How many times the tokens per second of one rank `ranks` of them handle, where each keeps its share of
    the batch, so that the global batch grows with them.

    None where a step takes no time, and where the tiny gradient has fewer elements than there are ranks: it
    could not be cut into as many chunks, and would travel longer than the large one it stands for.
    """
    if scenario.model.size < ranks:
        return None
    alone, together = (_step_time(with_world_size(scenario, r)) for r in (1, ranks))
    return ranks * alone / together if alone is not None and together else None


@lru_cache(maxsize=256)
def speedup_same_batch(scenario: Scenario, ranks: int) -> float | None:
    """How many times as fast `ranks` ranks are through with the batch of the scenario as one device.

    None as above, and where the batch is laid down rank by rank: by hand, or as the
    gradient sums of the model 'given'.
    """
    by_rank = scenario.model.gradient_sums is not None or scenario.batch.assignment is not None
    if scenario.model.size < ranks or by_rank or not isinstance(scenario.batch.micro_batches, int):
        return None
    reduction = scenario.reduction if isinstance(scenario.reduction, str) else "token_weighted"
    speeds = scenario.compute.speed
    if speeds is not None:
        speeds = (speeds + (1.0,) * ranks)[:ranks]
    compute = replace(scenario.compute, speed=speeds)
    together = _step_time(replace(scenario, world_size=ranks, reduction=reduction, compute=compute))
    return one_device_step_time(scenario) / together if together else None


def _step_time(scenario: Scenario) -> float | None:
    return step_metrics(simulate(scenario), 0).step_time_s
