"""Live runs for tests, and what every measured trace has to obey."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from dpsim.collectives import build, run_values
from dpsim.live.calibrate import calibrate
from dpsim.live.launch import run_live
from dpsim.reduction import reduction
from dpsim.scenario import Scenario
from dpsim.timeline import COUNT
from dpsim.trace import (
    ALL_REDUCE,
    BACKWARD,
    BARRIER,
    FORWARD,
    OPTIMIZER,
    RECEIVE,
    SCATTER,
    SEND,
    Trace,
)

# A rank that a busy machine starves is not one that hangs.
for run in (run_live, calibrate):
    (run.__kwdefaults__ or {}).update(deadline_s=600.0, stall_s=120.0)

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch: live runs need it")
MODES = ("chunks", "library", "ddp")


@cache
def live(scenario: Scenario, mode: str = "chunks", dtype: str = "float64") -> Trace:
    """The measured trace on CPU processes; a scenario that was run so already is not run again."""
    return run_live(scenario, mode=mode, dtype=dtype, devices="cpu")


def gap(value: Any, reference: Any) -> float:
    """Relative L2 error; 0 where both are zero."""
    size = float(np.linalg.norm(reference))
    return float(np.linalg.norm(np.asarray(value) - reference)) / (size or 1.0)


def windows(trace: Trace, step: int) -> list[tuple[int, int, np.ndarray, int]]:
    """Every all-reduce of a step: micro-batch, bucket, what the ranks brought [R, E], where it starts."""
    scenario = trace.scenario
    found = []
    if trace.counted[step, 0] >= 0:
        found.append((-1, COUNT, trace.valid_tokens[step].sum(axis=1)[:, None].astype(np.float64), 0))
    each = scenario.buckets.sync_every_micro_batch
    for k in range(max(scenario.micro_batches)) if each else [-1]:
        brought = trace.scaled[step, :, k] if each else _added_up(trace.scaled[step])
        for b, bucket in enumerate(trace.buckets(step)):
            found.append((k, b, brought[:, bucket.start : bucket.stop], bucket.start))
    return found


def _added_up(scaled: np.ndarray) -> np.ndarray:
    """Micro-batch after micro-batch, as a rank accumulates them."""
    total = scaled[:, 0].copy()
    for k in range(1, scaled.shape[1]):
        total += scaled[:, k]
    return total


def obeys_law_2(trace: Trace) -> None:
    for replicas in (*trace.parameters, *trace.reduced):
        assert len({replica.tobytes() for replica in replicas}) == 1


def obeys_law_3(trace: Trace) -> None:
    """Every message brought what the values interpreter moves, bit for bit, and so every rank has the sum."""
    scenario, events = trace.scenario, trace.events
    for t in range(trace.steps):
        total = np.zeros_like(trace.reduced[t])
        for k, b, brought, start in windows(trace, t):
            schedule = build(scenario.collective, scenario.world_size, brought.shape[1])
            final, payloads = run_values(schedule, brought)
            rows = events.where(step=t, kind=RECEIVE, micro_batch=k, bucket=b)
            columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk)
            named = (events.round, events.peer, events.rank, events.chunk)
            for column, name in zip(columns, named, strict=True):
                assert name[rows].tolist() == column.tolist()
            for row, payload in zip(rows.tolist(), payloads, strict=True):
                assert np.array_equal(trace.payload_of(row), payload)
            if b == COUNT:
                assert final[:, 0].tolist() == trace.counted[t].tolist()
            else:
                total[:, start : start + brought.shape[1]] += final
        if trace.undefined[t] is None:
            table = reduction(scenario.reduction, trace.valid_tokens[t], scenario.micro_batches)
            assert np.array_equal(trace.reduced[t], total * table.after)


def obeys_law_5(trace: Trace) -> None:
    """Nothing happens before what it needs."""
    scenario, events = trace.scenario, trace.events
    start, end = events.start_s, events.end_s
    assert np.all(start >= 0)
    assert np.all(end >= start)
    for t in range(trace.steps):
        arrivals, barriers = [], []
        for r in range(scenario.world_size):
            own = {k: events.where(step=t, rank=r, kind=k) for k in range(ALL_REDUCE + 1)}
            counting = np.concatenate([own[RECEIVE], own[SEND], own[ALL_REDUCE]])
            counting = counting[events.bucket[counting] == COUNT]
            assert end[own[SCATTER]].max() <= start[own[FORWARD]].min()
            assert end[counting].max(initial=0.0) <= start[own[FORWARD]].min()
            for k in range(scenario.micro_batches[r]):
                forward, backward = (
                    own[kind][events.micro_batch[own[kind]] == k] for kind in (FORWARD, BACKWARD)
                )
                assert end[forward].max() <= start[backward].min()
            arrivals.append(end[own[BACKWARD]].max())
            barriers.append((start[own[BARRIER]].max(), end[own[BARRIER]].max()))
            assert arrivals[r] <= barriers[r][0]
            assert end[own[RECEIVE]].max(initial=0.0) <= barriers[r][1]
            if len(own[OPTIMIZER]):
                assert barriers[r][1] <= start[own[OPTIMIZER]].min()
            if t + 1 < trace.steps:
                assert start[events.where(step=t + 1, rank=r)].min() >= end[own[BARRIER]].max()
        reached = max(begun for begun, _ in barriers) if has_messages(trace) else max(arrivals)
        assert min(passed for _, passed in barriers) >= reached  # nobody goes on before the last has arrived
        _messages_in_order(trace, t)


def has_messages(trace: Trace) -> bool:
    return bool(np.any(trace.events.kind == SEND)) or trace.scenario.world_size == 1


def _messages_in_order(trace: Trace, t: int) -> None:
    events, scenario = trace.events, trace.scenario
    there: dict[tuple[int, ...], list[tuple[int, float]]] = defaultdict(list)

    def key(i: int) -> tuple[int, ...]:
        return tuple(getattr(events, c)[i] for c in ("micro_batch", "bucket", "rank", "chunk"))

    for i in events.where(step=t, kind=RECEIVE):
        there[key(i)].append((events.round[i], events.end_s[i]))
    travels = [i for kind in (SEND, RECEIVE, ALL_REDUCE) for i in events.where(step=t, kind=kind)]
    for i in travels:
        if events.kind[i] == SEND:
            earlier = [e for n, e in there[key(i)] if n < events.round[i]]
            assert events.start_s[i] >= max(earlier, default=0.0)
        if events.bucket[i] == COUNT:
            continue
        # A sender may post before the other rank is ready; the message starts when both are.
        ranks = {int(events.rank[i])} | ({int(events.peer[i])} if events.kind[i] == RECEIVE else set())
        for rank in ranks:
            rows = events.where(step=t, rank=rank, kind=BACKWARD)
            if events.micro_batch[i] >= 0:
                rows = rows[events.micro_batch[rows] == events.micro_batch[i]]
            rows = rows[events.bucket[rows] <= events.bucket[i]]
            assert len(rows)
            assert events.end_s[rows].max() <= events.start_s[i]
    assert scenario.world_size == 1 or travels


def obeys_law_8(trace: Trace, simulated: Trace, tolerance: float = 1e-12) -> None:
    """The values are the simulated ones; a sum that cancels is held to the size of what was added."""
    assert trace.undefined == simulated.undefined
    assert trace.counted.tolist() == simulated.counted.tolist()
    assert trace.valid_tokens.tolist() == simulated.valid_tokens.tolist()
    for name in ("parameters", "loss_sums", "gradient_sums", "scaled"):
        assert gap(getattr(trace, name), getattr(simulated, name)) <= tolerance, name
    added = np.abs(simulated.scaled).sum(axis=(1, 2))
    for t in range(trace.steps):
        size = float(np.linalg.norm(simulated.reduced[t, 0]))
        after = size / (float(np.linalg.norm(simulated.scaled[t].sum(axis=(0, 1)))) or 1.0)
        allowed = tolerance * max(size, after * float(np.linalg.norm(added[t])))
        assert float(np.linalg.norm(trace.reduced[t, 0] - simulated.reduced[t, 0])) <= allowed
    arrays = (trace.payload, trace.scaled, trace.reduced, trace.parameters, trace.loss_sums)
    assert all(np.all(np.isfinite(array)) for array in arrays)


def obeys_the_laws(trace: Trace, simulated: Trace, tolerance: float = 1e-12) -> None:
    """Laws 2, 3, 5 and 8 of the design."""
    assert trace.source == "measured"
    obeys_law_2(trace)
    if trace.machine["mode"] == "chunks" and trace.machine["dtype"] == "float64":
        obeys_law_3(trace)
    obeys_law_5(trace)
    obeys_law_8(trace, simulated, tolerance)
