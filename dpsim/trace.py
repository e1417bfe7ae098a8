"""The trace: what happened in a scenario's steps, simulated, measured or recorded.

Every picture, number and file format reads a `Trace` and cannot tell these apart except by `source`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError, choice
from dpsim.forms import to_dict
from dpsim.scenario import Scenario
from dpsim.timeline import Bucket, buckets

FORMAT, VERSION = "dpsim-trace", 1
MAX_EVENTS = 200_000
MAX_VALUES = 8_000_000  # numbers in one trace's arrays: 64 MB

SOURCES = ("simulated", "measured", "recorded")
KINDS = ("scatter", "forward", "backward", "send", "receive", "barrier", "optimizer", "all_reduce")
SCATTER, FORWARD, BACKWARD, SEND, RECEIVE, BARRIER, OPTIMIZER, ALL_REDUCE = range(len(KINDS))
MACHINE = ("hardware", "versions", "date", "process_ids")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Events:
    """Events in columns of one length. `kind` indexes `KINDS`; -1 stands where a column does not apply,
    and bucket -2 is the count of valid tokens. `peer` is the other rank of a send or receive.

    An all-reduce is its sends and receives where each message is known, and one `all_reduce` event per rank
    where it was measured as a whole.
    """

    step: Ints
    rank: Ints
    kind: Ints
    micro_batch: Ints
    bucket: Ints
    round: Ints
    peer: Ints
    chunk: Ints
    start_s: Floats
    end_s: Floats
    bytes: Floats

    def __len__(self) -> int:
        return len(self.step)

    def where(self, *, step: int | None = None, **equal: int) -> Ints:
        """Numbers of the events, of one step or of all, whose columns equal these values, in order."""
        rows: Ints = np.arange(len(self)) if step is None else self._rows_of_steps[step]
        mask = np.ones(len(rows), bool)
        for name, value in equal.items():
            mask &= getattr(self, name)[rows] == value
        chosen: Ints = rows[mask]
        return chosen

    @cached_property
    def _rows_of_steps(self) -> list[Ints]:
        order = np.argsort(self.step, kind="stable")
        return np.split(order, np.searchsorted(self.step[order], np.arange(1, self.step.max() + 1)))

    @cached_property
    def receive_number(self) -> Ints:
        """For every event how many receives stand before it: the place of its payload, if it is one."""
        receives = (self.kind == RECEIVE).astype(np.int64)
        before: Ints = np.cumsum(receives) - receives
        return before


COLUMNS = tuple(f.name for f in fields(Events))
FLOAT_COLUMNS = ("start_s", "end_s", "bytes")


@dataclass(frozen=True, eq=False)
class Hang:
    """Where a run never ends: the ranks that are in the all-reduce of a micro-batch, since when each of them
    is (in seconds), and the ranks that will never enter it, since they have no such micro-batch."""

    step: int
    micro_batch: int
    inside: tuple[int, ...]
    since_s: tuple[float, ...]
    absent: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """Events and named arrays; T steps, R ranks, K micro-batches (the most of any rank), P parameters.

    `parameters` [T + 1, R, P]: every replica before step t, and after the last.
    `gradient_sums` [T, R, K, P], `loss_sums` [T, R, K], `valid_tokens` [T, R, K] (int64).
    `scaled` [T, R, K, P]: what each rank brings to the all-reduce, its sums times the factor before it.
    `counted` [T, R]: the all-reduced count of valid tokens on every rank, -1 where none travels.
    `reduced` [T, R, P]: the gradient on every replica, as its optimizer finds it; zeros in an undefined step.
    Replicas have the same, unless the exchange is faulty.
    `payload`: what every receive event brought, one after another; `payload_stops` where each one ends.
    `undefined`: per step why there is no gradient, or None.
    `machine`: hardware, versions, date and process ids, of a trace that was not simulated, and what else its
    maker says of the run.
    """

    scenario: Scenario
    source: str
    events: Events
    parameters: Floats
    loss_sums: Floats
    gradient_sums: Floats
    valid_tokens: Ints
    scaled: Floats
    counted: Ints
    reduced: Floats
    payload: Floats
    payload_stops: Ints
    undefined: tuple[str | None, ...]
    machine: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice("source", self.source, SOURCES)
        if self.source != "simulated" and not set(self.machine) >= set(MACHINE):
            rule = f"must name {', '.join(MACHINE)} in a {self.source} trace"
            raise InputError("machine", rule, sorted(self.machine))

    @property
    def steps(self) -> int:
        """How many steps the trace holds."""
        return self.scenario.begun_steps

    @cached_property
    def hangs(self) -> Hang | None:
        """Where and from when on the run hangs; None where it ends."""
        if not self.scenario.hangs:
            return None
        micro, k = self.scenario.micro_batches, self.scenario.synchronised
        rows = self.events.where(step=0, kind=BACKWARD, micro_batch=k)
        since = np.zeros(len(micro))
        np.maximum.at(since, self.events.rank[rows], self.events.end_s[rows])
        inside = tuple(r for r, own in enumerate(micro) if own > k)
        absent = tuple(r for r, own in enumerate(micro) if own <= k)
        return Hang(0, k, inside, tuple(since[list(inside)].tolist()), absent)

    @property
    def bytes_per_element(self) -> float:
        """What an element of the gradient weighs on its way: really where it was measured, else what it
        stands for."""
        real = {"float32": 4.0, "float64": 8.0}
        return real.get(self.machine.get("dtype", ""), self.scenario.bytes_per_element)

    def gradient(self, step: int, rank: int = 0) -> Floats | None:
        """The gradient of one step (P) on a replica, the same on all unless the exchange is faulty; None
        where it is undefined."""
        return None if self.undefined[step] else self.reduced[step, rank]

    def payload_of(self, receive: int) -> Floats:
        """What one receive event brought."""
        number = int(self.events.receive_number[receive])
        start = int(self.payload_stops[number - 1]) if number else 0
        return self.payload[start : int(self.payload_stops[number])]

    def step_window(self, step: int) -> tuple[float, float]:
        """When a step starts and ends, in seconds."""
        rows = self.events.where(step=step)
        return float(self.events.start_s[rows].min()), float(self.events.end_s[rows].max())

    def buckets(self, step: int) -> tuple[Bucket, ...]:
        """The buckets of one step. A run that has warmed up uses those of its later steps from the first."""
        made = buckets(self.scenario, step)
        rows = self.events.where(step=step, kind=BACKWARD)
        return made if self.events.bucket[rows].max() < len(made) else buckets(self.scenario, 1)

    def to_json(self) -> str:
        """The trace as one JSON object; floats are written so that they read back bit for bit."""
        arrays = {name: _packed(getattr(self, name)) for name in ARRAYS}
        data = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "scenario": to_dict(self.scenario, full=True),
            "machine": dict(self.machine),
            "undefined": list(self.undefined),
            "kinds": list(KINDS),
            "events": {name: getattr(self.events, name).tolist() for name in COLUMNS},
            "arrays": arrays,
        }
        return json.dumps(data, separators=(",", ":"), allow_nan=False)


INT_ARRAYS = ("valid_tokens", "counted", "payload_stops")
ARRAYS = (
    "parameters",
    "loss_sums",
    "gradient_sums",
    "valid_tokens",
    "scaled",
    "counted",
    "reduced",
    "payload",
    "payload_stops",
)


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), "values": array.ravel().tolist()}
