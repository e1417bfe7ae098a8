"""Scenario to trace: the only composer of batch, model, reduction, collective, optimizer and clock."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.collectives import REDUCE, build, run_values
from dpsim.model import initial_parameters, local_sums
from dpsim.optimizer import clip, clip_factor, initial_state, norms
from dpsim.optimizer import step as optimizer_step
from dpsim.reduction import NEEDS_COUNT, Reduction, reduction
from dpsim.scenario import Scenario
from dpsim.size import check_size, count_events
from dpsim.timeline import COUNT, NONE, Begun, Bucket, Part, Span, Transfers, buckets, step_times
from dpsim.trace import (
    COLUMNS,
    FLOAT_COLUMNS,
    KINDS,
    RECEIVE,
    SEND,
    Events,
    Floats,
    Ints,
    Trace,
)

__all__ = ["check_size", "count_events", "simulate"]


def simulate(scenario: Scenario) -> Trace:
    """Run every step of `scenario` in numpy, as far as it comes. The same scenario gives the same trace.

    Where the collective is not awaited, each rank's optimizer uses what its buffers hold at the end of its
    own backward: what it brought itself, and what the transfers that had reached it by then made of that.
    Every step has buffers of its own, so what arrives later is in no gradient.
    """
    check_size(scenario)
    batch = global_batch(scenario)
    micro, steps, size = scenario.micro_batches, scenario.begun_steps, scenario.world_size
    most, width = max(micro), scenario.model.size
    valid = batch.shard_counts(batch.valid)
    tokens = batch.shard_counts(batch.lengths)
    table = reduction(scenario.reduction, valid, micro)
    counts = valid.sum(axis=1)
    counted = scenario.reduction in NEEDS_COUNT
    optimized = table.undefined is None and bool(counts.sum() > 0) and not scenario.hangs

    # Where it hangs nobody comes further than into the first micro-batch that some ranks do not have.
    reached = scenario.synchronised + 1 if scenario.hangs else most
    schedule_of = lru_cache(maxsize=None)(lambda e: build(scenario.collective, size, e))
    parameters = np.empty((steps + 1, size, width))
    parameters[0] = initial_parameters(scenario)
    loss_sums = np.zeros((steps, size, most))
    sums = np.zeros((steps, size, most, width))
    scaled = np.zeros_like(sums)
    reduced = np.zeros((steps, size, width))
    totals = np.full((steps, size), -1, np.int64)
    state = initial_state(parameters[0])
    columns: list[dict[str, Ints | Floats]] = []
    payload: list[Floats] = []
    begun = Begun(np.zeros(size), 0.0)
    for t in range(steps):
        for r in range(size):
            for k in range(min(micro[r], reached)):
                local = local_sums(scenario, batch, parameters[t, r], r, k)
                loss_sums[t, r, k], sums[t, r, k] = local.loss, local.gradient
        scaled[t] = _scaled(scenario, table, sums[t])
        parts, begun = step_times(
            scenario, t, begun, tokens, schedule_of, counted=counted, optimized=optimized
        )
        gradient, moved = _all_reduced(scenario, scaled[t], buckets(scenario, t), parts)
        gradient = gradient * table.after
        parameters[t + 1] = parameters[t]
        if optimized:
            reduced[t] = gradient
            limit = scenario.optimizer.clip_norm if scenario.optimizer.clip == "after" else None
            used = clip(gradient, limit)
            parameters[t + 1], state = optimizer_step(scenario.optimizer, parameters[t], used, state)
        if counted:
            schedule = build(scenario.algorithm, size, 1)
            final, counting = run_values(schedule, counts[:, None].astype(np.float64))
            totals[t] = final[:, 0]
            moved = counting + moved
        columns += [_columns(t, part) for part in parts]
        payload += moved
    events = _events(columns)
    reason = table.undefined or ("no rank has a valid token: N = 0" if not counts.sum() else None)
    if scenario.hangs:
        reason = f"the all-reduce of micro-batch {reached} never ends"
    return Trace(
        scenario=scenario,
        source="simulated",
        events=events,
        parameters=parameters,
        loss_sums=loss_sums,
        gradient_sums=sums,
        valid_tokens=np.tile(valid, (steps, 1, 1)),
        scaled=scaled,
        counted=totals,
        reduced=reduced,
        payload=np.concatenate(payload) if payload else np.zeros(0),
        payload_stops=np.cumsum([len(p) for p in payload], dtype=np.int64),
        undefined=(reason,) * steps,
    )


def _scaled(scenario: Scenario, table: Reduction, sums: Floats) -> Floats:
    """What travels: the sums times the factor before the all-reduce, clipped per rank where that is chosen.

    Clipping before the average acts on the gradient a rank would hand to an averaging all-reduce, which is
    R times its share of the result.
    """
    out = table.before[:, :, None] * sums
    chosen = scenario.optimizer
    if chosen.clip_norm is not None and chosen.clip == "before":
        own = scenario.world_size * table.after * out.sum(axis=1)
        factor = clip_factor(norms(own), chosen.clip_norm)
        out = out * factor[:, None, None]
    return out


def _all_reduced(
    scenario: Scenario, scaled: Floats, made: tuple[Bucket, ...], parts: list[Part]
) -> tuple[Floats, list[Floats]]:
    """The sum over ranks and micro-batches as every rank's optimizer finds it [R, P], and every transfer's
    payload in order."""
    size, _, width = scaled.shape
    total = np.zeros((size, width))
    moved: list[Floats] = []
    read_s = None if scenario.exchange.awaited else _own_backward_ends(size, parts)
    for part in parts:
        if not isinstance(part, Transfers) or part.bucket == COUNT:
            continue
        window = scaled.sum(axis=1) if part.micro_batch == NONE else scaled[:, part.micro_batch]
        place = slice(made[part.bucket].start, made[part.bucket].stop)
        final, payloads = run_values(part.schedule, window[:, place])
        moved += payloads
        if read_s is not None:
            final = _held_at(part, window[:, place], payloads, read_s)
        total[:, place] += final
    return total, moved


def _own_backward_ends(size: int, parts: list[Part]) -> Floats:
    """When every rank is through with its last backward [R]."""
    ends = np.zeros(size)
    for part in parts:
        if isinstance(part, Span) and part.kind == "backward":
            np.maximum.at(ends, part.ranks, part.end_s)
    return ends


def _held_at(part: Transfers, brought: Floats, payloads: list[Floats], read_s: Floats) -> Floats:
    """What every rank holds of an all-reduce [R, E] at a moment of its own: only what had reached it."""
    schedule, state = part.schedule, brought.copy()
    for row in np.flatnonzero(part.end_s <= read_s[schedule.destination]).tolist():
        chunk = schedule.chunk[row]
        cell = state[schedule.destination[row], schedule.bounds[chunk] : schedule.bounds[chunk + 1]]
        cell[:] = cell + payloads[row] if schedule.op[row] == REDUCE else payloads[row]
    return state


def _columns(step: int, part: Part) -> dict[str, Ints | Floats]:
    if isinstance(part, Span):
        rows: dict[str, Any] = {
            "rank": part.ranks,
            "kind": KINDS.index(part.kind),
            "start_s": part.start_s,
            "end_s": part.end_s,
        }
    else:
        rows = _transfer_columns(part)
    rows |= {"step": step, "micro_batch": part.micro_batch, "bucket": part.bucket}
    length = len(part.start_s) * (2 if isinstance(part, Transfers) else 1)
    return {
        name: np.broadcast_to(np.asarray(rows.get(name, 0.0 if name == "bytes" else NONE)), (length,))
        for name in COLUMNS
    }


def _transfer_columns(part: Transfers) -> dict[str, Any]:
    """Every row of the schedule as a send and a receive: all sends first, then all receives."""
    s = part.schedule
    return {
        "rank": np.concatenate([s.source, s.destination]),
        "peer": np.concatenate([s.destination, s.source]),
        "kind": np.repeat([SEND, RECEIVE], len(s.round)),
        "round": np.tile(s.round, 2),
        "chunk": np.tile(s.chunk, 2),
        "start_s": np.tile(part.start_s, 2),
        "end_s": np.tile(part.end_s, 2),
        "bytes": np.tile(s.chunk_elements[s.chunk] * part.bytes_per_element, 2),
    }


def _events(columns: list[dict[str, Ints | Floats]]) -> Events:
    joined: dict[str, Any] = {
        name: np.concatenate([c[name] for c in columns]).astype(
            np.float64 if name in FLOAT_COLUMNS else np.int64
        )
        for name in COLUMNS
    }
    return Events(**joined)
