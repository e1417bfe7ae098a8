"""Figures of time and traffic: what an all-reduce costs in closed form, who waits, and what is hidden.

Those whose name begins with ``last_`` are of the last step: the very first one uses one bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpsim.metrics import step_metrics
from dpsim.network import Cost, cost
from dpsim.run_figures import Family, Run, percent
from dpsim.simulate import simulate
from dpsim.timeline import buckets
from dpsim.trace import BACKWARD, FORWARD
from dpsim.wording import duration, number, size


def _gradient_bytes(run: Run) -> float:
    return run.scenario.bytes_per_element * run.scenario.model.size


def _cost(run: Run, algorithm: str | None = None) -> Cost:
    """The closed form of one all-reduce of the whole gradient, by an algorithm or by the scenario's own."""
    network = run.scenario.network
    return cost(
        algorithm or run.scenario.collective, run.scenario.world_size, _gradient_bytes(run),
        network.latency_s, network.bandwidth_bytes_per_s,
    )  # fmt: skip


def _tiny(run: Run, algorithm: str) -> float:
    """The same for one element of four bytes: next to nothing but latency."""
    network = run.scenario.network
    return cost(
        algorithm, run.scenario.world_size, 4.0, network.latency_s, network.bandwidth_bytes_per_s
    ).time_s


def _spent(run: Run, kind: int, rank: int) -> float:
    """How long a rank is busy with one kind of work in the first step."""
    events = run.trace.events
    rows = events.where(step=0, kind=kind, rank=rank)
    return float((events.end_s[rows] - events.start_s[rows]).sum())


def _even(run: Run) -> float | None:
    """The step time if every rank had the speed of the quickest."""
    quickest = (max(run.scenario.speeds),) * run.scenario.world_size
    even = replace(run.scenario, compute=replace(run.scenario.compute, speed=quickest))
    return step_metrics(simulate(even), 0).step_time_s


def _plain(run: Run) -> float | None:
    """The last step's time if nothing travelled before backward is done."""
    plain = replace(run.scenario, buckets=replace(run.scenario.buckets, overlap=False))
    return step_metrics(simulate(plain), run.scenario.steps - 1).step_time_s


def _share(part: float | None, whole: float | None) -> float | None:
    """In percent; None where one of both is unknown, as in a run that hangs."""
    return 100 * part / whole if part is not None and whole else None


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _of(values: Any, how: Callable[[Any], float]) -> float | None:
    """Something of the values of all ranks; None in a run that hangs."""
    return None if values is None else how(values)


def _hidden(run: Run) -> float | None:
    return _less(run.last.communication_s, run.last.exposed_communication_s)


TIMES: dict[str, Family] = {
    "gradient_bytes": Family("the size of the gradient", (), _gradient_bytes, size),
    "chunk_bytes": Family(
        "the size of one of R chunks", (), lambda run: _gradient_bytes(run) / run.scenario.world_size, size
    ),
    "latency": Family("the latency of a message", (), lambda run: run.scenario.network.latency_s, duration),
    "bandwidth": Family(
        "the bandwidth of a link",
        (),
        lambda run: run.scenario.network.bandwidth_bytes_per_s,
        lambda value: f"{size(value)}/s",
    ),
    "message_time": Family(
        "how long one chunk takes, latency included",
        (),
        lambda run: _cost(run, "ring").time_s / max(1, _cost(run, "ring").rounds),
        duration,
    ),
    "half_rounds": Family(
        "R - 1, the rounds of one half of a ring", (), lambda run: run.scenario.world_size - 1
    ),
    "sent_factor": Family(
        "2(R-1)/R, what a rank of a ring sends of the gradient",
        (),
        lambda run: 2 * (run.scenario.world_size - 1) / run.scenario.world_size,
    ),
    "cost_rounds": Family("the rounds of an algorithm", ("algorithm",), lambda run, a: _cost(run, a).rounds),
    "cost_time": Family(
        "its time in closed form", ("algorithm",), lambda run, a: _cost(run, a).time_s, duration
    ),
    "tiny_time": Family("the same for four bytes", ("algorithm",), _tiny, duration),
    "busiest_bytes": Family(
        "what the rank sends that sends most",
        ("algorithm",),
        lambda run, a: _cost(run, a).bytes_sent.max(),
        size,
    ),
    "forward_time": Family(
        "how long a rank computes forward", ("rank",), lambda run, r: _spent(run, FORWARD, r), duration
    ),
    "backward_time": Family(
        "how long a rank computes backward", ("rank",), lambda run, r: _spent(run, BACKWARD, r), duration
    ),
    "compute_time": Family(
        "how long a rank computes", ("rank",), lambda run, r: run.metrics.compute_s[r], duration
    ),
    "mean_compute_time": Family(
        "how long ranks compute on average", (), lambda run: run.metrics.compute_s.mean(), duration
    ),
    "shortest_compute_time": Family(
        "how long the quickest rank computes", (), lambda run: run.metrics.compute_s.min(), duration
    ),
    "longest_compute_time": Family(
        "how long the slowest rank computes", (), lambda run: run.metrics.compute_s.max(), duration
    ),
    "speed": Family("a rank's speed", ("rank",), lambda run, r: run.scenario.speeds[r]),
    "waited": Family(
        "how long all ranks wait in all", (), lambda run: _of(run.metrics.wait_s, np.sum), duration
    ),
    "longest_wait": Family(
        "the longest wait of a rank", (), lambda run: _of(run.metrics.wait_s, np.max), duration
    ),
    "idle": Family(
        "the part of all ranks' time that is spent waiting",
        (),
        lambda run: _share(_of(run.metrics.wait_s, np.mean), run.metrics.step_time_s),
        percent,
    ),
    "even_step_time": Family("the step time if all were as quick as the quickest", (), _even, duration),
    "slower": Family(
        "how much longer the step takes than if all were as quick as the quickest",
        (),
        lambda run: _share(_less(run.metrics.step_time_s, _even(run)), _even(run)),
        percent,
    ),
    "communication": Family(
        "how long the gradient travels", (), lambda run: run.metrics.communication_s, duration
    ),
    "last_step_time": Family("the last step's time", (), lambda run: run.last.step_time_s, duration),
    "last_communication": Family(
        "how long the gradient travels in the last step", (), lambda run: run.last.communication_s, duration
    ),
    "last_exposed": Family(
        "the last step's exposed communication", (), lambda run: run.last.exposed_communication_s, duration
    ),
    "last_hidden": Family("what of it is hidden behind backward", (), _hidden, duration),
    "last_hidden_share": Family(
        "the same as a part of it", (), lambda run: _share(_hidden(run), run.last.communication_s), percent
    ),
    "plain_step_time": Family("the last step's time without overlap", (), _plain, duration),
    "saved": Family(
        "how much of the step overlap saves",
        (),
        lambda run: _share(_less(_plain(run), run.last.step_time_s), _plain(run)),
        percent,
    ),
    "first_buckets": Family("the buckets of the first step", (), lambda run: len(buckets(run.scenario, 0))),
    "last_buckets": Family(
        "the buckets of the last step",
        (),
        lambda run: len(buckets(run.scenario, run.scenario.steps - 1)),
    ),
    "cap": Family("the cap of a bucket", (), lambda run: run.scenario.buckets.cap_bytes, size),
    "sync_traffic": Family(
        "how often the whole gradient travels in a step",
        (),
        lambda run: max(run.scenario.micro_batches) if run.scenario.buckets.sync_every_micro_batch else 1,
        number,
    ),
    "ranks_without_wait": Family(
        "how many ranks do not wait",
        (),
        lambda run: _of(run.metrics.wait_s, lambda wait: float(np.sum(wait == 0))),
    ),
}
