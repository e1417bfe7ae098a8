"""Scenario to trace: the only composer of batch, model, reduction, collective, optimizer and clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.collectives import Schedule, build, run_values
from dpsim.model import initial_parameters, local_sums
from dpsim.optimizer import clip, clip_factor, initial_state, norms
from dpsim.optimizer import step as optimizer_step
from dpsim.reduction import NEEDS_COUNT, Reduction, reduction
from dpsim.scenario import Scenario
from dpsim.size import check_size, count_events
from dpsim.timeline import NONE, Bucket, Part, Span, Transfers, buckets, step_times
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
    """Run every step of `scenario` in numpy. The same scenario gives the same trace."""
    check_size(scenario)
    batch = global_batch(scenario)
    micro, steps, size = scenario.micro_batches, scenario.steps, scenario.world_size
    most, width = max(micro), scenario.model.size
    valid = batch.shard_counts(batch.valid)
    tokens = batch.shard_counts(batch.lengths)
    table = reduction(scenario.reduction, valid, micro)
    counts = valid.sum(axis=1)
    counted = scenario.reduction in NEEDS_COUNT
    optimized = table.undefined is None and bool(counts.sum() > 0)

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
    now = 0.0
    for t in range(steps):
        for r in range(size):
            for k in range(micro[r]):
                local = local_sums(scenario, batch, parameters[t, r], r, k)
                loss_sums[t, r, k], sums[t, r, k] = local.loss, local.gradient
        scaled[t] = _scaled(scenario, table, sums[t])
        gradient, moved = _all_reduced(scenario, scaled[t], buckets(scenario, t), schedule_of)
        gradient = gradient * table.after
        parameters[t + 1] = parameters[t]
        if optimized:
            reduced[t] = gradient
            limit = scenario.optimizer.clip_norm if scenario.optimizer.clip == "after" else None
            used = clip(gradient, limit)
            parameters[t + 1], state = optimizer_step(scenario.optimizer, parameters[t], used, state)
        if counted:
            final, counting = run_values(schedule_of(1), counts[:, None].astype(np.float64))
            totals[t] = final[:, 0]
            moved = counting + moved
        parts, now = step_times(scenario, t, now, tokens, schedule_of, counted=counted, optimized=optimized)
        columns += [_columns(t, part) for part in parts]
        payload += moved
    events = _events(columns)
    reason = table.undefined or ("no rank has a valid token: N = 0" if not counts.sum() else None)
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
    scenario: Scenario,
    scaled: Floats,
    made: tuple[Bucket, ...],
    schedule_of: Callable[[int], Schedule],
) -> tuple[Floats, list[Floats]]:
    """The sum over ranks and micro-batches on every rank [R, P], and every transfer's payload in order."""
    size, most, width = scaled.shape
    each = scenario.buckets.sync_every_micro_batch
    windows = [scaled[:, k] for k in range(most)] if each else [scaled.sum(axis=1)]
    total = np.zeros((size, width))
    moved: list[Floats] = []
    for window in windows:
        for bucket in made:
            part = slice(bucket.start, bucket.stop)
            final, payloads = run_values(schedule_of(bucket.stop - bucket.start), window[:, part])
            total[:, part] += final
            moved += payloads
    return total, moved


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
