"""What a message costs, and what each collective costs in closed form.

The latency-bandwidth model (Hockney 1994; Thakur, Rabenseifner and Gropp 2005): a message of B bytes takes
latency + B / bandwidth and occupies the sender's sending port and the receiver's receiving port that long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """What one all-reduce of `bytes` costs: seconds, rounds, bytes sent by each rank [R]."""

    world_size: int
    bytes: float
    time_s: float
    rounds: int
    bytes_sent: Floats

    @property
    def algbw_bytes_per_s(self) -> float | None:
        """Bytes of the vector per second; None where it takes no time."""
        return self.bytes / self.time_s if self.time_s > 0 else None

    @property
    def busbw_bytes_per_s(self) -> float | None:
        """2 (R - 1) / R of algbw, for every algorithm (the convention of nccl-tests)."""
        return busbw(self.algbw_bytes_per_s, self.world_size)


def busbw(algbw_bytes_per_s: float | None, world_size: int) -> float | None:
    """2 (R - 1) / R of algbw."""
    if algbw_bytes_per_s is None:
        return None
    return 2 * (world_size - 1) / world_size * algbw_bytes_per_s


def cost(
    algorithm: str, world_size: int, size: float, latency_s: float, bandwidth_bytes_per_s: float
) -> Cost:
    """The closed form for a vector of `size` bytes, as if chunks could have fractions of an element."""
    r = world_size
    transfer = size / bandwidth_bytes_per_s
    sent = np.zeros(r)
    if r == 1:
        return Cost(1, size, 0.0, 0, sent)
    if algorithm == "ring":
        rounds = 2 * (r - 1)
        sent[:] = 2 * (r - 1) * size / r
        return Cost(r, size, rounds * (latency_s + transfer / r), rounds, sent)
    if algorithm == "tree":
        rounds = 2 * (r - 1).bit_length()
        sent[1:] = size  # every rank but the root sends once towards it
        for rank in range(r):
            reach = (rank & -rank) if rank else 1 << (r - 1).bit_length()
            sent[rank] += size * sum(rank + 2**s < r for s in range(reach.bit_length() - 1))
        return Cost(r, size, rounds * (latency_s + transfer), rounds, sent)
    if algorithm == "halving-doubling":
        levels = r.bit_length() - 1
        p = 2**levels
        fold = int(r > p)
        sent[:p] = 2 * (p - 1) * size / p
        sent[: r - p] += size  # they hand the result back to the ranks folded into them
        sent[p:] = size
        time_s = 2 * (levels * latency_s + (p - 1) / p * transfer)
        return Cost(r, size, time_s + fold * 2 * (latency_s + transfer), 2 * (levels + fold), sent)
    sent[1:] = size
    sent[0] = (r - 1) * size
    return Cost(r, size, 2 * (r - 1) * (latency_s + transfer), 2, sent)
