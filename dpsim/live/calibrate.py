"""Calibrating the clock to this machine: a live run of passes, then of messages, of several sizes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpsim.checks import InputError, whole
from dpsim.fit import Points, fit_line
from dpsim.hardware import ELEMENT_BYTES, Hardware, checked_name
from dpsim.live.assemble import assemble
from dpsim.live.job import MAX_RANKS
from dpsim.live.launch import Done, carried_out, described
from dpsim.live.watch import Limits, Progress
from dpsim.scenario import Batch, Compute, Scenario
from dpsim.trace import BACKWARD, FORWARD, OPTIMIZER, Trace

# Micro-batches up to where tokens, and no longer the fixed cost of a pass, take most of the time. With 15
# steps of them 16 ranks are within a scenario's bounds.
TOKENS = (8, 32, 128, 512, 2048)
STEPS = 15
TRIES = 3
# Passes a micro-batch, of which the last has the bookkeeping of a step. Few, since a system takes a core away
# for milliseconds at a time: most of what is short is measured undisturbed, and the median is of that.
WORK_FACTOR = 4
MESSAGES = (1, 16, 128, 1024, 8192, 65536)  # elements, up to 512 KiB in float64, between two ranks


@dataclass(frozen=True)
class Calibration:
    """A machine's entry and the measurements that it was fitted to."""

    hardware: Hardware
    messages: Points
    forward: Points
    backward: Points


def calibration_scenario(ranks: int) -> Scenario:
    """A run in which every rank has a micro-batch of each size, on a ring."""
    sizes = len(TOKENS)
    dealt = tuple(tuple((r * sizes + k,) for k in range(sizes)) for r in range(ranks))
    return Scenario(
        name="calibrate",
        steps=STEPS,
        world_size=ranks,
        batch=Batch(lengths=TOKENS * ranks, shard="by_hand", assignment=dealt),
        compute=Compute(work_factor=WORK_FACTOR),
    )


def calibrate(
    name: str,
    *,
    ranks: int = 2,
    dtype: str | None = None,
    devices: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    deadline_s: float = 120.0,
    stall_s: float = 10.0,
) -> Calibration:
    """Measure this machine, a process per rank, as the entry `name`, which is not kept yet.

    The options are those of `run_live`, and so are the queue, the limits and the errors; InputError too where
    there are fewer than two ranks, who would send nothing, or where larger messages took
    no longer, each time anew.
    """
    checked_name("--name", name)
    whole("ranks", ranks, 2, MAX_RANKS)
    limits = Limits(deadline_s, stall_s, cancel or threading.Event())
    say = on_progress or (lambda _: None)
    scenario = calibration_scenario(ranks)

    def measured() -> Calibration:
        done = carried_out(scenario, "chunks", dtype, devices, limits, say, messages=MESSAGES)
        trace = assemble(scenario, done.results, described(done))
        return _fitted(name, trace, _message_times(done))

    for _ in range(TRIES - 1):
        with suppress(InputError):  # no line fits where something else kept the machine busy
            return measured()
    return measured()


def _fitted(name: str, trace: Trace, message_s: tuple[float, ...]) -> Calibration:
    """The entry of what `trace` and the messages took."""
    machine, model = trace.machine, trace.scenario.model
    sizes = tuple(n * ELEMENT_BYTES[machine["dtype"]] for n in MESSAGES)
    messages = Points(sizes, message_s, fit_line("messages", sizes, message_s))
    forward, backward = _passes(trace, FORWARD), _passes(trace, BACKWARD)
    steps = trace.events.kind == OPTIMIZER
    hardware = Hardware(
        name=name,
        source="measured",
        latency_s=messages.line.fixed_s,
        bandwidth_bytes_per_s=1 / messages.line.each_s,
        forward_s=forward.line.fixed_s,
        forward_s_per_token=forward.line.each_s,
        backward_s=backward.line.fixed_s,
        backward_s_per_token=backward.line.each_s,
        optimizer_s=float(np.median((trace.events.end_s - trace.events.start_s)[steps])),
        message_error=messages.line.error,
        forward_error=forward.line.error,
        backward_error=backward.line.error,
        ranks=trace.scenario.world_size,
        model=f"{model.kind}, vocabulary {model.vocabulary}, width {model.width}",
        machine=machine["hardware"],
        **{key: machine[key] for key in ("dtype", "devices", "backend", "mode", "versions", "date")},
    )
    return Calibration(hardware, messages, forward, backward)


def _message_times(done: Done) -> tuple[float, ...]:
    """Seconds of one round of an all-reduce, per message: from when the last rank had started to when the
    last one was through, over the 2(R - 1) rounds of a ring; the median over all turns."""
    times = np.array([result["messages"] for result in done.results])  # [R, turns, messages, start and end]
    taken = times[..., 1].max(axis=0) - times[..., 0].max(axis=0)
    rounds = 2 * (len(done.results) - 1)
    return tuple((np.median(taken, axis=0) / rounds / 1e9).tolist())


def _passes(trace: Trace, kind: int) -> Points:
    """Seconds of one pass per micro-batch size: the median over all steps and ranks. On a GPU so few tokens
    may cost nothing beside what starts a pass."""
    events, size = trace.events, trace.scenario.world_size
    taken = np.zeros((trace.steps, size, len(TOKENS)))
    rows = events.where(kind=kind)
    cell = events.step[rows], events.rank[rows], events.micro_batch[rows]
    np.add.at(taken, cell, events.end_s[rows] - events.start_s[rows])  # backward has an event per bucket
    seconds = tuple((np.median(taken, axis=(0, 1)) / WORK_FACTOR).tolist())
    what = "forward passes" if kind == FORWARD else "backward passes"
    return Points(TOKENS, seconds, fit_line(what, TOKENS, seconds, may_be_flat=True))
