"""Runs that were measured and kept: a trace as a file, shown as recorded, and what was predicted of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dpsim.app import PACKAGE
from dpsim.checks import choice, read_text
from dpsim.differences import Difference, differences
from dpsim.hardware import from_toml, predicted
from dpsim.run_figures import Family
from dpsim.simulate import simulate
from dpsim.trace import Trace
from dpsim.trace_files import load
from dpsim.wording import duration

FOLDER = PACKAGE / "content" / "recordings"
MAX_HARDWARE_BYTES = 10_000

# The parts of a step as figures name them, by their names in `dpsim.differences`.
PARTS = {
    "step": "step",
    "compute": "forward and backward, slowest rank",
    "wait": "arrival spread: the longest wait",
    "exposed": "exposed communication",
    "latency": "latency: the smallest message",
    "overhead": "overhead: scatter, count and all between",
}


def recordings() -> tuple[str, ...]:
    """The names of all recordings."""
    return tuple(path.stem for path in sorted(FOLDER.glob("*.json")))


@lru_cache(maxsize=8)
def recording(name: str) -> Trace:
    """A recording by its name; it says itself on which machine it was measured, and when."""
    return replace(load(FOLDER / f"{choice('recording', name, recordings())}.json"), source="recorded")


@lru_cache(maxsize=8)
def prediction(name: str) -> Trace:
    """The same step predicted with the latency, bandwidth and passes that were measured on that machine."""
    trace = recording(name)
    hardware = from_toml(read_text("hardware", FOLDER / f"{name}.toml", MAX_HARDWARE_BYTES))
    machine = trace.machine
    return simulate(predicted(trace.scenario, hardware, dtype=machine["dtype"], mode=machine["mode"]))


def _part(name: str, part: str) -> Difference:
    trace = recording(name)
    found = differences(prediction(name), trace, trace.steps - 1)
    return next(each for each in found if each.name == PARTS[part])


RECORDED: dict[str, Family] = {
    "recorded": Family(
        "a part of a recorded step", ("recording", "part"), lambda run, n, p: _part(n, p).measured, duration
    ),
    "predicted": Family(
        "the same as predicted", ("recording", "part"), lambda run, n, p: _part(n, p).predicted, duration
    ),
}
