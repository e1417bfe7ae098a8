"""Named numbers of a trace: step time and its parts, waiting, bytes, bandwidths, efficiency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.batch import global_batch
from dpsim.network import busbw
from dpsim.scenario import Scenario
from dpsim.timeline import COUNT, TOKEN_BYTES
from dpsim.trace import ALL_REDUCE, BACKWARD, BARRIER, FORWARD, OPTIMIZER, RECEIVE, SCATTER, SEND, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepMetrics:
    """One step, in seconds and bytes; arrays are per rank [R].

    For every rank scatter + count + compute + wait + exposed communication + optimizer = step time; in a
    step that was measured there is also the little time between its events.
    `straggler` is the rank that does not wait, None where all arrive together. `communication_s` is the time
    from the first to the last message of each bucket, `algbw` the gradient's bytes over it; `bytes_sent` are
    those of the gradient, without the count's, None where all-reduces were measured as a whole. What one
    device would take, and with it the efficiency, is None in a step that was not simulated.

    In a step that hangs, step time, wait and exposed communication are None: they have no end. Where nobody
    waits for the all-reduce there is no wait and nothing is exposed; the step time is that of the last rank,
    and messages may still be on their way.
    """

    step_time_s: float | None
    scatter_s: Floats
    count_s: Floats
    compute_s: Floats
    wait_s: Floats | None
    exposed_communication_s: float | None
    communication_s: float
    optimizer_s: float
    straggler: int | None
    bytes_sent: Floats | None
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    one_device_step_time_s: float | None
    scaling_efficiency: float | None

    @property
    def longest_wait_s(self) -> float | None:
        """How long the rank that waits longest does so."""
        return None if self.wait_s is None else float(self.wait_s.max())


def step_metrics(trace: Trace, step: int) -> StepMetrics:
    """The metrics of one step of `trace`."""
    events, size = trace.events, trace.scenario.world_size
    total = _step_time(trace, step)

    def per_rank(kind: int, how: str) -> Floats:
        rows = events.where(step=step, kind=kind)
        out = np.zeros(size)
        if how == "spent":
            np.add.at(out, events.rank[rows], events.end_s[rows] - events.start_s[rows])
        else:
            out = np.full(size, np.inf)
            np.minimum.at(out, events.rank[rows], events.start_s[rows])
        return out

    scatter = per_rank(SCATTER, "spent")
    count = per_rank(FORWARD, "first") - per_rank(SCATTER, "first") - scatter
    compute = per_rank(FORWARD, "spent") + per_rank(BACKWARD, "spent")
    synced = synchronisations(trace, step)
    wait = np.sum([np.zeros(size), *(s.wait_s for s in synced)], axis=0)
    sends = events.where(step=step, kind=SEND)
    sends = sends[events.bucket[sends] != COUNT]
    rank, size_sent = events.rank[sends], events.bytes[sends]
    sent = np.bincount(rank, weights=size_sent, minlength=size).astype(np.float64)
    whole = events.where(step=step, kind=ALL_REDUCE)
    messages = np.concatenate([events.where(step=step, kind=RECEIVE), whole])
    messages = messages[events.bucket[messages] != COUNT]
    busy, moved = 0.0, 0.0
    for k, b in sorted({(int(events.micro_batch[i]), int(events.bucket[i])) for i in messages}):
        own = messages[(events.micro_batch[messages] == k)]
        own = own[events.bucket[own] == b]
        starts = events.start_s[own]
        # A rank may enter an all-reduce early and wait in it: one measured as a whole starts with the last.
        busy += float(events.end_s[own].max() - (starts.max() if len(whole) else starts.min()))
    if len(messages):
        moved = trace.scenario.synchronised * trace.scenario.model.size * trace.bytes_per_element
    algbw = moved / busy if busy > 0 else None
    optimizer = events.where(step=step, kind=OPTIMIZER)
    late = np.flatnonzero(wait == 0)
    alone = None
    if (
        trace.source == "simulated" and not trace.hangs
    ):  # what a measured step would take alone has to be measured too
        alone = one_device_step_time(trace.scenario, optimized=len(optimizer) > 0)
    return StepMetrics(
        step_time_s=total,
        scatter_s=scatter,
        count_s=count,
        compute_s=compute,
        wait_s=None if trace.hangs else wait,
        exposed_communication_s=None if trace.hangs else sum(s.exposed_s for s in synced),
        communication_s=busy,
        optimizer_s=float(np.max(events.end_s[optimizer] - events.start_s[optimizer], initial=0.0)),
        straggler=int(late[0]) if 0 < len(late) < size and not trace.hangs else None,
        bytes_sent=None if len(whole) else sent,
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=busbw(algbw, size),
        one_device_step_time_s=alone,
        scaling_efficiency=alone / (size * total) if alone is not None and total else None,
    )


def _step_time(trace: Trace, step: int) -> float | None:
    """From the first rank's start to the last rank's end; None where there is no end."""
    if trace.hangs:
        return None
    events = trace.events
    rows = events.where(step=step)
    if not trace.scenario.exchange.awaited:
        rows = rows[(events.kind[rows] != SEND) & (events.kind[rows] != RECEIVE)]
    return float(events.end_s[rows].max()) - float(events.start_s[rows].min())


@dataclass(frozen=True, eq=False)
class Synchronisation:
    """One barrier of a step: its micro-batch (-1 for the whole window), the wait of every rank [R], and the
    communication exposed behind the last arrival."""

    micro_batch: int
    wait_s: Floats
    exposed_s: float


def synchronisations(trace: Trace, step: int) -> list[Synchronisation]:
    """The barriers of a step in order. A rank arrives at the end of its own backward before the barrier."""
    events, size = trace.events, trace.scenario.world_size
    found = []
    for k in np.unique(events.micro_batch[events.where(step=step, kind=BARRIER)]).tolist():
        barrier = float(events.end_s[events.where(step=step, kind=BARRIER, micro_batch=k)].max())
        rows = events.where(step=step, kind=BACKWARD)
        if k >= 0:
            rows = rows[events.micro_batch[rows] == k]
        arrival = np.zeros(size)
        np.maximum.at(arrival, events.rank[rows], events.end_s[rows])
        last = float(arrival.max())
        # Equal work adds up to times that may differ in the last digit: that is no straggler.
        wait = np.where(last - arrival <= 1e-12 * last, 0.0, last - arrival)
        found.append(Synchronisation(k, wait, barrier - last))
    return found


def one_device_step_time(scenario: Scenario, *, optimized: bool = True) -> float:
    """T_1: the same batch on one device of speed 1, without a collective."""
    compute, network = scenario.compute, scenario.network
    tokens = int(global_batch(scenario).lengths.sum())
    scatter = network.latency_s + tokens * TOKEN_BYTES / network.bandwidth_bytes_per_s
    work = tokens * (compute.forward_s_per_token + compute.backward_s_per_token)
    return scatter + work + (compute.optimizer_s if optimized else 0.0)
