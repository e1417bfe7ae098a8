"""Runs that were measured and kept: a trace as a file, shown as recorded, and what was predicted of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dpsim.app import PACKAGE
from dpsim.checks import choice, read_text
from dpsim.differences import Difference, differences
from dpsim.hardware import Hardware, from_toml, predicted
from dpsim.run_figures import Family, percent
from dpsim.simulate import simulate
from dpsim.trace import RECEIVE, Trace
from dpsim.trace_files import load
from dpsim.wording import duration, size

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
def calibrated(name: str) -> Hardware:
    """The latency, bandwidth and passes that were measured on the machine of a recording."""
    path = FOLDER / f"{choice('recording', name, recordings())}.toml"
    return from_toml(read_text("hardware", path, MAX_HARDWARE_BYTES))


@lru_cache(maxsize=8)
def prediction(name: str) -> Trace:
    """The same step predicted with what was measured on that machine."""
    trace = recording(name)
    machine = trace.machine
    costly = predicted(trace.scenario, calibrated(name), dtype=machine["dtype"], mode=machine["mode"])
    return simulate(costly)


def _part(name: str, part: str) -> Difference:
    trace = recording(name)
    found = differences(prediction(name), trace, trace.steps - 1)
    return next(each for each in found if each.name == PARTS[part])


def _off(name: str, part: str) -> float | None:
    """By how much a prediction misses, in percent of what was measured."""
    found = _part(name, part)
    if found.predicted is None or not found.measured:
        return None
    return 100 * abs(found.predicted / found.measured - 1)


def _break_even(name: str) -> float:
    """Bytes that take as long on a link as the latency of their message."""
    hardware = calibrated(name)
    return hardware.latency_s * hardware.bandwidth_bytes_per_s


def _largest(name: str) -> float:
    """The bytes of a recording's largest message."""
    events = recording(name).events
    return float(events.bytes[events.where(kind=RECEIVE)].max())


RECORDED: dict[str, Family] = {
    "off": Family(
        "by how much the prediction misses what was recorded",
        ("recording", "part"),
        lambda run, n, p: _off(n, p),
        percent,
    ),
    "calibrated_latency": Family(
        "the latency of a message as calibrated on the machine of a recording",
        ("recording",),
        lambda run, n: calibrated(n).latency_s,
        duration,
    ),
    "calibrated_bandwidth": Family(
        "the bandwidth as calibrated there",
        ("recording",),
        lambda run, n: calibrated(n).bandwidth_bytes_per_s,
        lambda value: f"{size(value)}/s",
    ),
    "break_even": Family(
        "the bytes that take as long as the latency there",
        ("recording",),
        lambda run, n: _break_even(n),
        size,
    ),
    "largest_message": Family(
        "the bytes of the largest message of a recording", ("recording",), lambda run, n: _largest(n), size
    ),
    "largest_time": Family(
        "how long its bytes take there, without the latency",
        ("recording",),
        lambda run, n: _largest(n) / calibrated(n).bandwidth_bytes_per_s,
        duration,
    ),
    "recorded": Family(
        "a part of a recorded step", ("recording", "part"), lambda run, n, p: _part(n, p).measured, duration
    ),
    "predicted": Family(
        "the same as predicted", ("recording", "part"), lambda run, n, p: _part(n, p).predicted, duration
    ),
}
