"""A trace's all-reduces, transfer by transfer: what was held, what came, what is held now, who is in it.

The payloads are the trace's own; only their order along the schedule is used to follow the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError
from dpsim.collectives import REDUCE, Schedule, build, contributions, unseen
from dpsim.scenario import Scenario
from dpsim.timeline import COUNT, NONE
from dpsim.trace import ALL_REDUCE, RECEIVE, Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arrival:
    """One receive event. `counts` [R] says how often each rank is in the chunk that is held now;
    `payload_counts` the same for what came."""

    event: int
    adds: bool
    held: Floats
    payload: Floats
    now: Floats
    counts: Ints
    payload_counts: Ints


@dataclass(frozen=True, eq=False)
class AllReduce:
    """One all-reduce of a step: bucket (-2 for the count), micro-batch (-1 for the whole window), what the
    ranks brought [R, E], its schedule and its arrivals in the schedule's order; `whole` are the events of one
    that was measured as a whole, rank by rank, which has no arrivals."""

    micro_batch: int
    bucket: int
    start: int
    schedule: Schedule
    brought: Floats
    arrivals: tuple[Arrival, ...]
    whole: Ints

    def elements(self, chunk: int) -> slice:
        """Where a chunk lies in the flat gradient."""
        low, high = self.schedule.bounds[chunk], self.schedule.bounds[chunk + 1]
        return slice(self.start + int(low), self.start + int(high))


def _carried_by(scenario: Scenario, bucket: int) -> str:
    """The collective of a bucket; nothing is ever done wrong with the count."""
    return scenario.algorithm if bucket == COUNT else scenario.collective


@lru_cache(maxsize=32)
def _schedule(collective: str, world_size: int, elements: int) -> Schedule:
    return build(collective, world_size, elements)


@lru_cache(maxsize=32)
def _counted(collective: str, world_size: int, elements: int) -> list[Ints]:
    return contributions(_schedule(collective, world_size, elements))[1]


def all_reduces(trace: Trace, step: int) -> list[AllReduce]:
    """The all-reduces of one step in the order in which they ran."""
    scenario, events = trace.scenario, trace.events
    made = trace.buckets(step)
    each = scenario.buckets.sync_every_micro_batch
    windows = range(scenario.synchronised) if each else (NONE,)
    wanted = [(NONE, COUNT)] if trace.counted[step, 0] >= 0 else []
    wanted += [(k, b) for k in windows for b in range(len(made))]
    told = []
    for k, b in wanted:
        if b == COUNT:
            start, brought = 0, trace.valid_tokens[step].sum(axis=1)[:, None].astype(np.float64)
        else:
            start = made[b].start
            window = trace.scaled[step, :, k] if each else trace.scaled[step].sum(axis=1)
            brought = window[:, made[b].start : made[b].stop]
        whole = events.where(step=step, kind=ALL_REDUCE, micro_batch=k, bucket=b)
        if len(whole):
            schedule = unseen(scenario.world_size, brought.shape[1])
            told.append(AllReduce(k, b, start, schedule, brought, (), whole))
            continue
        key = (_carried_by(scenario, b), scenario.world_size, brought.shape[1])
        rows = events.where(step=step, kind=RECEIVE, micro_batch=k, bucket=b)
        payloads = [trace.payload_of(e) for e in rows.tolist()]
        arrivals = _arrivals(_schedule(*key), _counted(*key), brought, rows, payloads)
        told.append(AllReduce(k, b, start, _schedule(*key), brought, tuple(arrivals), whole))
    return told


def check_replayable(trace: Trace) -> Trace:
    """`trace`, if its receives follow its scenario's schedules row by row, or an all-reduce that was measured
    as a whole has one event a rank and no receives; a file may claim anything."""
    scenario, events = trace.scenario, trace.events
    each = scenario.buckets.sync_every_micro_batch
    windows = range(scenario.synchronised) if each else (NONE,)
    for step in range(trace.steps):
        wanted = {(NONE, COUNT): 1} if trace.counted[step, 0] >= 0 else {}
        wanted |= {
            (k, b): part.stop - part.start for k in windows for b, part in enumerate(trace.buckets(step))
        }
        for (k, b), elements in wanted.items():
            schedule = _schedule(_carried_by(scenario, b), scenario.world_size, elements)
            whole = events.where(step=step, kind=ALL_REDUCE, micro_batch=k, bucket=b)
            if len(whole):
                schedule = unseen(scenario.world_size, elements)
                if not np.array_equal(events.rank[whole], np.arange(scenario.world_size)):
                    rule = f"must have one all_reduce a rank, in order, of bucket {b} in step {step}"
                    raise InputError("trace.events", rule, events.rank[whole].tolist())
            rows = events.where(step=step, kind=RECEIVE, micro_batch=k, bucket=b)
            number = events.receive_number[rows]
            starts = np.where(number > 0, trace.payload_stops[number - 1], 0)
            fits = len(rows) == len(schedule.round) and all(
                np.array_equal(found, right)
                for found, right in (
                    (events.rank[rows], schedule.destination),
                    (events.peer[rows], schedule.source),
                    (events.chunk[rows], schedule.chunk),
                    (events.round[rows], schedule.round),
                    (trace.payload_stops[number] - starts, schedule.chunk_elements[schedule.chunk]),
                )
            )
            if not fits:
                rule = f"must follow the {scenario.collective} of bucket {b} in step {step}, row by row"
                raise InputError("trace.events", rule, f"{len(rows)} receives")
    return trace


def _arrivals(
    schedule: Schedule, counted: list[Ints], brought: Floats, rows: Ints, payloads: list[Floats]
) -> list[Arrival]:
    cells = brought.copy()
    counts = np.tile(np.eye(schedule.world_size, dtype=np.int64)[:, None], (1, len(schedule.bounds) - 1, 1))
    arrivals = []
    for row, (event, payload) in enumerate(zip(rows, payloads, strict=True)):
        rank, chunk = int(schedule.destination[row]), int(schedule.chunk[row])
        cell = cells[rank, schedule.bounds[chunk] : schedule.bounds[chunk + 1]]
        adds = bool(schedule.op[row] == REDUCE)
        held = cell.copy()
        cell[:] = held + payload if adds else payload
        counts[rank, chunk] = counts[rank, chunk] + counted[row] if adds else counted[row]
        arrivals.append(
            Arrival(int(event), adds, held, payload, cell.copy(), counts[rank, chunk].copy(), counted[row])
        )
    return arrivals
