"""A step as it was predicted and as it was measured: where the two differ, and what that part is called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsim.metrics import step_metrics
from dpsim.trace import RECEIVE, Trace

# Over loopback 0.3 GB/s and 0.2 ms were the best that was measured: there so many bytes take one latency
# more. Fewer show the latency's own scatter, and no bandwidth.
LEAST_BYTES = 65_536


@dataclass(frozen=True)
class Difference:
    """One part of a step; `unit` is s or B/s. None where it cannot be told from the trace."""

    name: str
    unit: str
    predicted: float | None
    measured: float | None


def differences(predicted: Trace, measured: Trace, step: int) -> tuple[Difference, ...]:
    """The parts of one step in two traces of one scenario. Forward and backward, exposed communication, the
    optimizer step and the overhead make up the step; the others explain them."""
    parts = [_parts(trace, step, measured.bytes_per_element) for trace in (predicted, measured)]
    return tuple(
        Difference(name, unit, parts[0][name, unit], parts[1][name, unit]) for name, unit in parts[0]
    )


def _parts(trace: Trace, step: int, element_bytes: float) -> dict[tuple[str, str], float | None]:
    m = step_metrics(trace, step)
    compute = float(m.compute_s.max())
    latency, bandwidth = message_cost(trace, step)
    if trace.source == "simulated":  # known, and that of the real elements where they stand for larger ones
        network = trace.scenario.network
        bandwidth = network.bandwidth_bytes_per_s * element_bytes / trace.bytes_per_element
    assert m.step_time_s is not None, "what hangs is neither measured nor predicted"
    assert m.exposed_communication_s is not None
    overhead = m.step_time_s - compute - m.exposed_communication_s - m.optimizer_s
    return {
        ("step", "s"): m.step_time_s,
        ("forward and backward, slowest rank", "s"): compute,
        ("arrival spread: the longest wait", "s"): m.longest_wait_s,
        ("exposed communication", "s"): m.exposed_communication_s,
        ("latency: the smallest message", "s"): latency,
        ("bandwidth of a message", "B/s"): bandwidth,
        ("optimizer step", "s"): m.optimizer_s,
        ("overhead: scatter, count and all between", "s"): overhead,
    }


def message_cost(trace: Trace, step: int) -> tuple[float | None, float | None]:
    """Latency in seconds and bandwidth in bytes per second, as the messages of one step show them.

    The smallest messages (those of the count have 8 bytes) cost next to nothing but latency: their median.
    What the largest take longer, by the median again, is their bytes over the bandwidth. None where no single
    message was seen, where larger messages were not slower, or where too few bytes were sent to tell.
    """
    events = trace.events
    rows = events.where(step=step, kind=RECEIVE)
    if len(rows) == 0:
        return None, None
    sizes, took = events.bytes[rows], events.end_s[rows] - events.start_s[rows]
    small, large = sizes.min(), sizes.max()
    first, last = (float(np.median(took[sizes == size])) for size in (small, large))
    told = last > first and large - small >= LEAST_BYTES
    return first, float(large - small) / (last - first) if told else None
