"""The clocks of several hosts: how far each is ahead of rank 0's, from messages that went there and back.

The estimate is that of the Network Time Protocol (RFC 5905, section 8). All times are whole nanoseconds: a
float64 would lose some once a host has been up for 104 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Result = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """A message to another host and its answer: `sent` and `back` on rank 0's clock, `came` and `answered` on
    the other's."""

    sent: int
    came: int
    answered: int
    back: int

    @property
    def round_trip(self) -> int:
        """The time on the way, both ways together."""
        return (self.back - self.sent) - (self.answered - self.came)


@dataclass(frozen=True)
class Offset:
    """At `at` on its own clock a host's clock is `ahead` of rank 0's, give or take `error`."""

    at: int
    ahead: int
    error: int


def offset(exchanges: Sequence[Exchange]) -> Offset:
    """The offset from the exchange that was on its way the shortest.

    The way there took at least nothing and at most the whole round trip: so much is certain, however unlike
    the two ways are, and the middle is at most half of the round trip off. Halves are rounded outwards.
    """
    best = min(exchanges, key=lambda exchange: exchange.round_trip)
    twice = (best.came - best.sent) + (best.answered - best.back)
    return Offset((best.came + best.answered) // 2, twice // 2, -(-best.round_trip // 2))


@dataclass(frozen=True)
class Drift:
    """A host's clock between two offsets, in which it is taken to drift steadily."""

    before: Offset
    after: Offset

    @property
    def error(self) -> int:
        """How wrong a corrected time may be; between the two offsets no more than at the worse of them."""
        return max(self.before.error, self.after.error)

    def on_rank_0(self, times: Ints) -> Ints:
        """Times of this host as rank 0's clock would have shown them; what came first stays first."""
        gained, since = self.after.ahead - self.before.ahead, times - self.before.at
        passed = self.after.at - self.before.at
        steady: Ints = np.rint(since * (gained / passed)).astype(np.int64)
        return times - self.before.ahead - steady


def on_one_clock(results: Sequence[Result], drifts: Sequence[Drift | None]) -> list[Result]:
    """The ranks' results with all times on rank 0's clock; rank r's clock is told by `drifts[r]`, None where
    it is rank 0's own."""
    return [_corrected(r, drift) if drift else r for r, drift in zip(results, drifts, strict=True)]


def _corrected(result: Result, drift: Drift) -> Result:
    def moved(times: Any) -> Any:
        return drift.on_rank_0(np.asarray(times, np.int64)).tolist()

    columns = result["events"]
    columns = columns | {name: moved(columns[name]) for name in ("start_s", "end_s")}
    return result | {"events": columns} | {name: moved(result[name]) for name in ("zero_ns", "end_ns")}


def most_wrong(errors: Sequence[int]) -> int:
    """By how much the time between two events of different hosts may be wrong: the two worst errors together.
    `errors` has one of every host, 0 for rank 0's."""
    return sum(sorted(errors)[-2:])
