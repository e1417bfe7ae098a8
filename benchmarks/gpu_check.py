"""Everything that live runs do, on the devices of this machine, in under five minutes.

`python benchmarks/gpu_check.py` prints a Markdown table and saves recordings. On one GPU the ranks share it
over Gloo; on several, scenarios with no more ranks than there are GPUs run over NCCL, the others share. In
every run are checked: the replicas bit for bit, the values against the simulator's, every message against the
schedule, and that nothing happens before what it needs. `--devices cpu` checks this program itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dpsim.checks import InputError
from dpsim.collectives import run_values
from dpsim.forms import preset
from dpsim.live.calibrate import calibrate
from dpsim.live.job import DTYPES, MODES
from dpsim.live.launch import look, run_live
from dpsim.metrics import step_metrics
from dpsim.replay import all_reduces
from dpsim.scenario import Compute, Scenario
from dpsim.simulate import simulate
from dpsim.trace import BACKWARD, BARRIER, FORWARD, OPTIMIZER, Trace
from dpsim.trace_files import save

PRESETS = ("first-screen", "chapter-19-2", "accelerate-doc", "empty-rank", "accumulation", "overlap")
COLLECTIVES = ("collective-tree", "collective-halving-doubling", "collective-parameter-server", "ring-8")
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}  # relative L2
RECORDED = ("first-screen", "accelerate-doc", "overlap")
HEAVY = replace(
    preset("accelerate-doc"), name="straggler", compute=Compute(work_factor=200, speed=(1.0, 0.25))
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; the exit code is 1 where one of them failed."""
    parser = argparse.ArgumentParser(description="Check live runs on this machine's devices.")
    parser.add_argument("--devices", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--out", default="recordings", metavar="FOLDER", help="where recordings are saved")
    parser.add_argument("--quick", action="store_true", help="two presets only")
    args = parser.parse_args(arguments)
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    found = look()
    print(f"{found.chosen.hardware}; {found.machine.gpus or 'no GPU'}; torch {found.machine.torch}; ", end="")
    print(", ".join(f"{name} {verdict}" for name, verdict in found.probe.items()), "\n")
    print("| scenario | ranks | mode | dtype | backend | step | gradient's error | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    verdicts = [
        line(scenario, mode, dtype, args.devices, folder)
        for scenario in scenarios(args.quick)
        for mode in MODES
        for dtype in DTYPES
    ]
    print(f"\n{calibrated(args.devices)}")
    failed = sum(verdict != "right" for verdict in verdicts)
    print(f"\n{len(verdicts)} runs, {failed} failed, {time.monotonic() - begun:.0f} s")
    return int(failed > 0)


def scenarios(quick: bool) -> list[Scenario]:
    """What is run."""
    return [*map(preset, PRESETS[1:3])] if quick else [*map(preset, (*PRESETS, *COLLECTIVES)), HEAVY]


def line(scenario: Scenario, mode: str, dtype: str, devices: str, folder: Path) -> str:
    """Run one scenario in one way, and print its row; the verdict."""
    start = f"| {scenario.name} | {scenario.world_size} | {mode} | {dtype} |"
    try:
        trace = run_live(scenario, mode=mode, dtype=dtype, devices=devices)
    except InputError as error:
        print(start, f"- | - | - | {error} |", flush=True)
        return str(error)
    error, verdict = checked(trace)
    took = step_metrics(trace, trace.steps - 1).step_time_s
    backend = trace.machine["backend"]
    print(start, f"{backend} | {took * 1e3:.2f} ms | {error:.1e} | {verdict} |", flush=True)
    if scenario.name in RECORDED and verdict == "right":
        save(replace(trace, source="recorded"), folder / f"{scenario.name}-{mode}-{dtype}.json")
    return verdict


def calibrated(devices: str) -> str:
    """What a calibration finds, or why there is none; no verdict, since times are neither right nor wrong."""
    try:
        found = calibrate("gpu-check", devices=devices).hardware
    except InputError as error:
        return f"Calibration: {error}"
    return (
        f"Calibration, {found.backend}: latency {found.latency_s * 1e6:.1f} µs, bandwidth "
        f"{found.bandwidth_bytes_per_s / 1e9:.3g} GB/s (error {found.message_error:.0%}); forward "
        f"{found.forward_s * 1e6:.1f} µs and {found.forward_s_per_token * 1e9:.1f} ns a token, backward "
        f"{found.backward_s * 1e6:.1f} µs and {found.backward_s_per_token * 1e9:.1f} ns"
    )


def checked(trace: Trace) -> tuple[float, str]:
    """The largest relative error of a gradient against the simulator's, and what is wrong, if anything."""
    simulated, tolerance = simulate(trace.scenario), TOLERANCE[trace.machine["dtype"]]
    error = max(gap(trace.reduced[t, 0], simulated.reduced[t, 0]) for t in range(trace.steps))
    faults = {
        "another gradient": error > tolerance,
        "other parameters": gap(trace.parameters, simulated.parameters) > tolerance,
        "other losses": gap(trace.loss_sums, simulated.loss_sums) > tolerance,
        "another count": trace.counted.tolist() != simulated.counted.tolist(),
        "undefined otherwise": trace.undefined != simulated.undefined,
        "other messages": not all(follows_schedule(trace, t) for t in range(trace.steps)),
        "out of order": not all(in_order(trace, t) for t in range(trace.steps)),
    }
    return error, ", ".join(name for name, wrong in faults.items() if wrong) or "right"


def gap(value: np.ndarray, reference: np.ndarray) -> float:
    """Relative L2 error; absolute against zero."""
    return float(np.linalg.norm(value - reference) / (np.linalg.norm(reference) or 1.0))


def follows_schedule(trace: Trace, step: int) -> bool:
    """Whether messages brought what the values interpreter moves: bit for bit, in float32 to 1e-5."""
    tolerance = TOLERANCE["float32"] if trace.machine["dtype"] == "float32" else 0.0
    for part in all_reduces(trace, step):
        moved = run_values(part.schedule, part.brought)[1] if part.arrivals else []
        for arrival, payload in zip(part.arrivals, moved, strict=True):
            if not np.allclose(arrival.payload, payload, rtol=tolerance, atol=tolerance):
                return False
    return True


def in_order(trace: Trace, step: int) -> bool:
    """Whether every rank goes forward, backward, through the barrier and takes its step, in this order."""
    events = trace.events
    for rank in range(trace.scenario.world_size):
        kinds = (FORWARD, BACKWARD, BARRIER, OPTIMIZER)
        rows = [events.where(step=step, rank=rank, kind=kind) for kind in kinds]
        moments = [float(events.end_s[own].max()) for own in rows if len(own)]
        if moments != sorted(moments):
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
