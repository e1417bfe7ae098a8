"""Starting a live run, watching over it, and making a trace of what the ranks answer."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from dpsim.checks import number
from dpsim.live.assemble import Result, assemble
from dpsim.live.board import Board
from dpsim.live.devices import Choice, Machine, choose
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.job import Job, check_runs_live
from dpsim.live.pool import Pool, Process
from dpsim.live.turns import turn
from dpsim.live.watch import Limits, Progress, Watch
from dpsim.scenario import Scenario
from dpsim.trace import Trace

_pool = Pool()
atexit.register(_pool.close)


def switched_off() -> str | None:
    """Why no live run may be started on this machine; None where one may."""
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
    **switches: bool,
) -> Trace:
    """Run every step of `scenario` on this machine, a process per rank; the measured trace.

    `mode`: chunks, library or ddp; `dtype`: float64 (on a CPU the default) or float32; `devices`: auto, cpu or
    cuda. `on_progress` hears of every stage, `cancel` ends the run when it is set. `deadline_s` bounds all of it
    but the waiting for other runs, `stall_s` the time without a sign of life; `switches` are those of `Job`.
    InputError where the scenario cannot run so, LiveError where the run fails.
    """
    if reason := switched_off():
        raise LiveError(reason)
    check_runs_live(scenario, mode)
    number("deadline_s", deadline_s, 0, 3600, open_low=True)
    limits = Limits(deadline_s, stall_s, cancel or threading.Event())
    say = on_progress or (lambda _: None)
    with turn(lambda place: _wait(place, limits, say)):
        watch = Watch(limits, say)
        try:
            processes = _pool.take(scenario.world_size)
            machine = watch.until_ready(processes)
            chosen = choose(machine, devices, dtype, scenario.world_size)
            job = Job(scenario, mode, chosen.dtype, chosen.devices, chosen.backend, **switches)
            results = _run(job, processes, watch)
        except BaseException:  # also an interrupt: nothing of a broken run may be met by the next one
            _pool.close()
            raise
        _pool.give_back()
    return assemble(scenario, results, described(machine, chosen, job, processes, results))


def _wait(place: int, limits: Limits, say: Callable[[Progress], None]) -> None:
    """While another run has the machine: say where in the queue this one stands."""
    say(Progress("queued", place, place))
    if limits.cancel.is_set():
        raise CancelledError("the run was cancelled while it waited for another one")


def _run(job: Job, processes: list[Process], watch: Watch) -> list[Result]:
    """Hand the job out and wait for every rank's result; the folder they meet in is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dpsim-live-"))  # of mode 0700
    try:
        board = Board.made(folder / "board", len(processes))
        for rank, process in enumerate(processes):
            process.send(job.line(rank, folder))
        return watch.until_done(processes, board, job.scenario.steps)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def described(
    machine: Machine, chosen: Choice, job: Job, processes: list[Process], results: list[Result]
) -> dict[str, str]:
    """What a trace says of the machine and of how it ran there."""
    probed = ", ".join(f"{name} {verdict}" for name, verdict in results[0]["probe"].items())
    return {
        "hardware": f"{chosen.hardware} ({machine.machine})",
        "versions": f"Python {machine.python}, torch {machine.torch}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "process_ids": " ".join(str(process.pid) for process in processes),
        "mode": job.mode,
        "devices": " ".join(job.devices),
        "backend": job.backend,
        "dtype": job.dtype,
        "probe": probed,
        "clock": "the host's monotonic clock, which all ranks share",
    }
