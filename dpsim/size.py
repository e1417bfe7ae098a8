"""How large a scenario's trace will be, known without making it: whoever runs one asks first."""

from __future__ import annotations

from dpsim.checks import InputError
from dpsim.reduction import NEEDS_COUNT
from dpsim.scenario import Scenario
from dpsim.timeline import buckets
from dpsim.trace import MAX_EVENTS, MAX_VALUES

# Logits that the run and the comparison's trajectories may compute; ten million are about a second of work.
MAX_WORK = 50_000_000
TRAJECTORIES = 8  # the run, one device, five schemes, an own table


def count_events(scenario: Scenario) -> int:
    """An upper bound on the events of a scenario's trace, without making it."""
    size, micro = scenario.world_size, max(scenario.micro_batches)
    rows = _most_rows(scenario.algorithm, size) + 1  # one may be sent twice
    total = 0
    for step in range(min(scenario.steps, 2)):
        made = len(buckets(scenario, step))
        syncs = micro if scenario.buckets.sync_every_micro_batch else 1
        counted = int(scenario.reduction in NEEDS_COUNT)
        spans = size * (2 + syncs + micro * (1 + made))
        each = spans + 2 * rows * (syncs * made + counted)
        total += each if step == 0 else each * (scenario.steps - 1)
    return total


def _most_rows(algorithm: str, size: int) -> int:
    if algorithm in ("tree", "parameter-server"):
        return 2 * (size - 1)
    return 2 * size * (size - 1)  # ring; halving-doubling has no more


def check_size(scenario: Scenario) -> None:
    """InputError where the trace would be too large to hold."""
    events = count_events(scenario)
    if events > MAX_EVENTS:
        rule = f"must have at most {MAX_EVENTS} events (ranks x rounds x buckets x steps)"
        raise InputError("scenario", rule, events)
    batch, model = scenario.batch, scenario.model
    if batch.lengths is not None:
        tokens = sum(batch.lengths)
    else:
        tokens = sum(map(len, batch.tokens or ())) or batch.count * batch.max_length
    work = tokens * (model.vocabulary if model.kind != "given" else 1) * scenario.steps * TRAJECTORIES
    if work > MAX_WORK:
        rule = f"must need at most {MAX_WORK} logits (tokens x vocabulary x steps x {TRAJECTORIES})"
        raise InputError("scenario", rule, work)
    per_step = scenario.world_size * scenario.model.size * (2 + 4 * max(scenario.micro_batches))
    if per_step * scenario.steps > MAX_VALUES:
        rule = f"must have at most {MAX_VALUES} numbers (ranks x parameters x micro-batches x steps)"
        raise InputError("scenario", rule, per_step * scenario.steps)
