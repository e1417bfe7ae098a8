"""Figures of waiting and of hiding: what a straggler costs, how likely one is, what a last bucket exposes.

Those of waiting are of the first step, those of buckets of the last: the very first step uses one bucket.
"""

from __future__ import annotations

import numpy as np

from dpsim.collectives import build
from dpsim.network import cost
from dpsim.run_figures import Family, Run, percent
from dpsim.timeline import BUCKET_CAP_BYTES, FIRST_BUCKET_BYTES, buckets, clock
from dpsim.trace import BACKWARD
from dpsim.wording import duration, number, size

SLOW_CHANCE = 0.01  # how likely one rank is to be slow in a step, where a lesson asks for all of them


def _gradient_bytes(run: Run) -> float:
    return run.scenario.bytes_per_element * run.scenario.model.size


def _clocked(run: Run, algorithm: str) -> float:
    """The all-reduce of the whole gradient on the clock, with queues at ports, after an even start."""
    schedule = build(algorithm, run.scenario.world_size, run.scenario.model.size)
    ready = np.zeros(run.scenario.world_size)
    _, ends = clock(schedule, run.scenario.network, run.scenario.bytes_per_element, ready)
    return float(np.max(ends, initial=0.0))


def _last_bucket(run: Run) -> float:
    """How long the all-reduce of the last step's last bucket takes: no backward is left to hide it."""
    network, last = run.scenario.network, buckets(run.scenario, run.scenario.steps - 1)[-1]
    amount = (last.stop - last.start) * run.scenario.bytes_per_element
    ranks, collective = run.scenario.world_size, run.scenario.collective
    return cost(collective, ranks, amount, network.latency_s, network.bandwidth_bytes_per_s).time_s


def _backward(run: Run, bucket: int | None = None) -> float:
    """How long the slowest rank computes backward in the last step, in all or until a bucket is full."""
    events = run.trace.events
    rows = events.where(step=run.trace.steps - 1, kind=BACKWARD)
    if bucket is not None:
        rows = rows[events.bucket[rows] <= bucket]
    spent = np.zeros(run.scenario.world_size)
    np.add.at(spent, events.rank[rows], events.end_s[rows] - events.start_s[rows])
    return float(spent.max())


def _shared(run: Run) -> float | None:
    wait = run.metrics.wait_s
    return None if wait is None else float(wait.max()) / run.scenario.world_size


def _held_up(run: Run, rank: int) -> float | None:
    wait, exposed = run.metrics.wait_s, run.metrics.exposed_communication_s
    return None if wait is None or exposed is None else float(wait[rank]) + exposed


def _mebibytes(value: float) -> str:
    return f"{number(value / 2**20)} MiB"


WAITS: dict[str, Family] = {
    "chunk_time": Family(
        "how long a chunk takes without the latency",
        (),
        lambda run: (
            _gradient_bytes(run) / run.scenario.world_size / run.scenario.network.bandwidth_bytes_per_s
        ),
        duration,
    ),
    "clock_time": Family(
        "an algorithm's time on the clock, which knows queues at ports", ("algorithm",), _clocked, duration
    ),
    "all_sent": Family(
        "2(R-1) gradients: what all ranks of a ring send together",
        (),
        lambda run: 2 * (run.scenario.world_size - 1) * _gradient_bytes(run),
        size,
    ),
    "shared_delay": Family(
        "the longest wait divided by R: wrong as what a straggler costs", (), _shared, duration
    ),
    "in_all_reduce": Family(
        "how long a rank is held up from the end of its backward to the barrier",
        ("rank",),
        _held_up,
        duration,
    ),
    "other_time": Family(
        "what of a step is neither computing nor waiting nor exposed: scatter, count, optimizer",
        (),
        lambda run: float((run.metrics.scatter_s + run.metrics.count_s).max()) + run.metrics.optimizer_s,
        duration,
    ),
    "slow_chance": Family(
        "how likely a rank is to be slow, an assumption", (), lambda run: 100 * SLOW_CHANCE, percent
    ),
    "some_slow": Family(
        "how likely at least one of R ranks is to be slow, 1 - (1 - p)^R",
        (),
        lambda run: 100 * (1 - (1 - SLOW_CHANCE) ** run.scenario.world_size),
        percent,
    ),
    "slow_chances_added": Family(
        "R p: wrong for the same", (), lambda run: 100 * SLOW_CHANCE * run.scenario.world_size, percent
    ),
    "last_backward": Family(
        "how long the slowest rank computes backward in the last step", (), _backward, duration
    ),
    "first_ready": Family(
        "how much of that until the first bucket is full", (), lambda run: _backward(run, 0), duration
    ),
    "last_bucket_time": Family("how long the last bucket's all-reduce takes", (), _last_bucket, duration),
    "torch_cap": Family("torch's own cap of a bucket", (), lambda run: BUCKET_CAP_BYTES, _mebibytes),
    "torch_first_cap": Family("that of the first bucket", (), lambda run: FIRST_BUCKET_BYTES, _mebibytes),
}
