"""The ranks' results as one trace: their events in one order, their replicas compared bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.batch import global_batch
from dpsim.collectives import build, contributions
from dpsim.live.errors import LiveError
from dpsim.reduction import reduction
from dpsim.scenario import Scenario
from dpsim.trace import COLUMNS, RECEIVE, SEND, Events, Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Result = dict[str, Any]


def assemble(
    scenario: Scenario, results: list[Result], machine: dict[str, str], clock_error_s: float = math.inf
) -> Trace:
    """The trace of a run whose rank r answered `results[r]`, in times that may be `clock_error_s` wrong
    between two ranks. LiveError where two replicas differ, or times contradict each other by more than that.
    """
    parameters = _by_rank(results, "parameters")
    if keeps_replicas_equal(scenario):
        check_replicas(parameters)
    events, payloads = _events(results, clock_error_s)
    batch = global_batch(scenario)
    valid = batch.shard_counts(batch.valid)
    table = reduction(scenario.reduction, valid, scenario.micro_batches)
    reason = table.undefined or ("no rank has a valid token: N = 0" if not valid.sum() else None)
    return Trace(
        scenario=scenario,
        source="measured",
        events=events,
        parameters=parameters,
        loss_sums=_by_rank(results, "loss_sums"),
        gradient_sums=_by_rank(results, "gradient_sums"),
        valid_tokens=np.tile(valid, (scenario.steps, 1, 1)),
        scaled=_by_rank(results, "scaled"),
        counted=_by_rank(results, "counted").astype(np.int64),
        reduced=_by_rank(results, "reduced"),
        payload=np.array([v for payload in payloads for v in payload], np.float64),
        payload_stops=np.cumsum([len(p) for p in payloads], dtype=np.int64),
        undefined=(reason,) * scenario.steps,
        machine=machine,
    )


def keeps_replicas_equal(scenario: Scenario) -> bool:
    """Whether the collective leaves the same on every rank, as one does that is carried out in full."""
    size = scenario.world_size
    held = contributions(build(scenario.collective, size, size))[0]
    return bool(np.all(held == held[0]))


def check_replicas(parameters: Floats) -> None:
    """Law 2: LiveError naming the rank where a replica [T + 1, R, P] differs from rank 0's in a bit."""
    for t, replicas in enumerate(parameters):
        for rank, replica in enumerate(replicas):
            if replica.tobytes() != replicas[0].tobytes():
                when = f"after step {t}" if t else "before the first step"
                raise LiveError(f"rank {rank} does not hold the same parameters as rank 0 {when}")


def _by_rank(results: list[Result], name: str) -> Floats:
    """An array of every rank, [T, R, ...]."""
    return np.stack([np.array(result[name], np.float64) for result in results], axis=1)


def _events(results: list[Result], clock_error_s: float) -> tuple[Events, list[list[float]]]:
    """All events, messages in the order of a schedule's rows, and what the receives brought."""
    zero = min(result["zero_ns"] for result in results)  # the start of step 0: who left its barrier first
    joined: dict[str, Any] = {
        name: np.concatenate([np.array(result["events"][name], np.int64) for result in results])
        for name in COLUMNS
    }
    for name in ("start_s", "end_s"):
        joined[name] = (joined[name] - zero) / 1e9
    joined["bytes"] = joined["bytes"].astype(np.float64)
    receiving = joined["kind"] == RECEIVE
    source = np.where(receiving, joined["peer"], joined["rank"])
    destination = np.where(receiving, joined["rank"], joined["peer"])
    keys = ("step", "kind", "micro_batch", "bucket", "round")
    message = (*(joined[name] for name in keys), source, destination, joined["chunk"], joined["start_s"])
    order = np.lexsort(message[::-1])
    payloads = [payload for result in results for payload in result["payloads"]]
    number = np.cumsum(receiving) - 1
    ordered = {name: joined[name][order] for name in COLUMNS}
    _meet(ordered, clock_error_s)
    return Events(**ordered), [payloads[number[i]] for i in order if receiving[i]]


def _meet(columns: dict[str, Any], clock_error_s: float) -> None:
    """Let a receive start when both ranks had posted the message: a rank that is ready early posts early and
    waits, which is waiting and no part of the message. A send stays what its sender saw: it may be done with
    it, and go on, before the other rank has taken it in.

    Where two clocks are not known exactly, a message may seem to be there before it was sent: by no more
    than the clocks' error, and then it is drawn as there when it was there, without a duration.
    """
    sends, receives = np.flatnonzero(columns["kind"] == SEND), np.flatnonzero(columns["kind"] == RECEIVE)
    # Both stand in the schedule's order within a step, and every message has its two ends.
    names = ("step", "micro_batch", "bucket", "round", "chunk", "bytes")
    same = all(np.array_equal(columns[name][sends], columns[name][receives]) for name in names)
    if not same or not np.array_equal(columns["rank"][sends], columns["peer"][receives]):
        raise LiveError("a message that was sent was not received: the ranks did not follow one schedule")
    begun = np.maximum(columns["start_s"][sends], columns["start_s"][receives])
    there = columns["end_s"][receives]
    early_s = float(np.max(begun - there, initial=0.0))
    if early_s > clock_error_s:
        raise LiveError(
            f"a message seems to have been there {early_s * 1e3:.3g} ms before it was sent, where the hosts' "
            f"clocks should be at most {clock_error_s * 1e3:.3g} ms apart: they did not drift steadily"
        )
    columns["start_s"][receives] = np.minimum(begun, there)
