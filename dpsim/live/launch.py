"""Starting a live run, watching over it, and making a trace of what the ranks answer."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpsim.checks import choice, number
from dpsim.live.assemble import Result, assemble
from dpsim.live.board import Board
from dpsim.live.devices import Choice, Machine, choose
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.job import DEVICES, DTYPES, Job, check_runs_live
from dpsim.live.pool import Pool, Process
from dpsim.live.watch import Limits, Progress, Watch
from dpsim.scenario import Batch, Model, Scenario
from dpsim.trace import Trace

MAX_DEADLINE_S = 600.0  # what a rank's own collectives wait for each other

POOL = Pool()
atexit.register(POOL.close)


def switched_off() -> str | None:
    """Why no live run may be started on this machine; None where one may."""
    if not sys.platform.startswith("linux"):
        return "runs on this machine's devices need Linux so far"
    if os.environ.get("DPSIM_LIVE", "").lower() in ("off", "0", "no"):
        return "runs on this machine are switched off by its operator (DPSIM_LIVE=off)"
    return None


def run_live(
    scenario: Scenario,
    *,
    mode: str = "chunks",
    dtype: str | None = None,
    devices: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    deadline_s: float = 120.0,
    stall_s: float = 10.0,
    broadcast: bool = True,
) -> Trace:
    """Run every step of `scenario` on this machine, a process per rank; the measured trace.

    `mode`: chunks, library or ddp; `dtype`: float64 (the default on a CPU) or float32; `devices`: auto, cpu
    or cuda. `on_progress` hears of every stage, `cancel` ends the run when it is set. `deadline_s` bounds all
    of it but the waiting for other runs, `stall_s` the time without a sign of life. Without `broadcast` every
    rank keeps its own start, to see that this breaks the replicas.
    InputError where the scenario cannot run so, LiveError where the run fails.
    """
    limits = Limits(deadline_s, stall_s, cancel or threading.Event())
    say = on_progress or (lambda _: None)
    done = carried_out(scenario, mode, dtype, devices, limits, say, broadcast=broadcast)
    return assemble(scenario, done.results, described(done))


@dataclass(frozen=True)
class Done:
    """A run that went through: on what, how, by which processes, and what each rank answered."""

    machine: Machine
    chosen: Choice
    job: Job
    process_ids: tuple[int, ...]
    results: list[Result]

    @property
    def probe(self) -> dict[str, str]:
        """What the backend's SUM and AVG turned out to be."""
        found: dict[str, str] = self.results[0]["probe"]
        return found


def carried_out(
    scenario: Scenario,
    mode: str,
    dtype: str | None,
    devices: str,
    limits: Limits,
    say: Callable[[Progress], None],
    *,
    broadcast: bool = True,
    record: bool = True,
    messages: tuple[int, ...] = (),
) -> Done:
    """The same as `run_live`, as the ranks answered it. Without `record` they keep their parameters alone;
    `messages`, in elements, are timed after the steps."""
    if reason := switched_off():
        raise LiveError(reason)
    from dpsim.live.turns import turn  # not every system has its locks

    check_runs_live(scenario, mode)
    choice("devices", devices, DEVICES)
    choice("dtype", dtype or DTYPES[0], DTYPES)
    number("deadline_s", limits.deadline_s, 0, MAX_DEADLINE_S, open_low=True)
    watch = Watch(limits, say)
    with turn(lambda place: _wait(place, limits, say)), _ranks(scenario.world_size, watch) as (ranks, folder):
        machine = watch.until_ready(ranks)
        chosen = choose(machine, devices, dtype, scenario.world_size)
        how = (mode, chosen.dtype, chosen.devices, chosen.backend, record, broadcast)
        job = Job(scenario, *how, messages)
        board = Board.made(folder / "board", len(ranks))
        for rank, process in enumerate(ranks):
            process.send(job.line(rank, folder))
        results = watch.until_done(ranks, board, scenario.steps)
    return Done(machine, chosen, job, tuple(process.pid for process in ranks), results)


def look(cancel: threading.Event | None = None) -> Done:
    """What this machine has, found out by two ranks that run a step of next to nothing."""
    scenario = Scenario(name="look", world_size=2, batch=Batch(lengths=(1, 1)), model=Model(kind="scalar"))
    return carried_out(
        scenario, "library", None, "auto", Limits(60.0, 10.0, cancel or threading.Event()), lambda _: None
    )


@contextmanager
def _ranks(count: int, watch: Watch) -> Iterator[tuple[list[Process], Path]]:
    """The processes and the folder of a run. Unless all of them wait for a job when it ends, however it does,
    they are killed: no run may meet what is left of another."""
    watch.starts()
    try:
        yield POOL.take(count)
    finally:
        if watch.waiting:
            POOL.give_back()
        else:
            POOL.close()


def _wait(place: int, limits: Limits, say: Callable[[Progress], None]) -> None:
    """While another run has the machine: say where in the queue this one stands."""
    say(Progress("queued", place, place))
    if limits.cancel.is_set():
        raise CancelledError("the run was cancelled while it waited for another one")


def described(done: Done) -> dict[str, str]:
    """What a trace says of the machine and of how it ran there."""
    return {
        "hardware": f"{done.chosen.hardware} ({done.machine.machine})",
        "versions": f"Python {done.machine.python}, torch {done.machine.torch}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "process_ids": " ".join(map(str, done.process_ids)),
        "mode": done.job.mode,
        "devices": " ".join(done.job.devices),
        "backend": done.job.backend,
        "dtype": done.job.dtype,
        "probe": ", ".join(f"{name} {verdict}" for name, verdict in done.probe.items()),
        "clock": "the host's monotonic clock, which all ranks share",
    }
