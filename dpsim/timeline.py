"""The clock: when each transfer, and each part of a step, starts and ends.

`clock` is the clock interpreter of a schedule. `step_times` lays one step out on it: scatter, the count,
forward and backward, the buckets' all-reduces, the barrier and the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsim.collectives import Schedule, build
from dpsim.model import tensors
from dpsim.scenario import Network, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_BUCKET_BYTES = 2**20  # torch.distributed._DEFAULT_FIRST_BUCKET_BYTES
BUCKET_CAP_BYTES = 25 * 2**20  # DistributedDataParallel(bucket_cap_mb=25)
COUNT_BYTES = 8  # the valid-token count travels as one int64
TOKEN_BYTES = 16  # a token and its label, an int64 each: what the scatter hands to a rank


def clock(
    schedule: Schedule, network: Network, bytes_per_element: float, ready_s: Floats
) -> tuple[Floats, Floats]:
    """Start and end of every row, in seconds.

    A message starts once its chunks are at the source, both ranks are ready (`ready_s` [R]) and both the
    source's sending port and the destination's receiving port are free. Messages of one round that meet at
    a port queue there in the order in which they could start.
    """
    first, chunks, size = schedule.message_starts, len(schedule.chunk_elements), schedule.world_size
    lengths = np.diff(first, append=len(schedule.round))  # rows in each message
    single = len(first) == len(schedule.round)
    source, destination = schedule.source.astype(np.intp), schedule.destination.astype(np.intp)
    leaving, arriving = source * chunks + schedule.chunk, destination * chunks + schedule.chunk
    duration = (schedule.chunk_elements.astype(np.float64) * bytes_per_element)[schedule.chunk]
    if not single:
        source, destination = source[first], destination[first]
        duration = np.add.reduceat(duration, first)
    duration /= network.bandwidth_bytes_per_s
    duration += network.latency_s
    starts = np.empty(len(first))
    have = np.repeat(ready_s, chunks)  # when each rank has each chunk: rows leave and arrive in these cells
    sending, receiving = ready_s.copy(), ready_s.copy()
    row_stops = schedule.round_starts
    stops = np.searchsorted(first, row_stops)
    crowded = _meet(source, stops, size) | _meet(destination, stops, size)
    rounds = zip(pairwise(row_stops.tolist()), pairwise(stops.tolist()), crowded.tolist(), strict=True)
    for (row, row_stop), (message, stop), queued in rounds:
        rows, m = slice(row, row_stop), slice(message, stop)
        src, dst = source[m], destination[m]
        there = have[leaving[rows]]
        if not single:
            there = np.maximum.reduceat(there, first[m] - row)
        start = np.maximum(np.maximum(there, sending[src]), receiving[dst])
        if queued:
            _queue(start, src, dst, duration[m], sending, receiving)
            np.maximum.at(have, arriving[rows], np.repeat(start + duration[m], lengths[m]))
        else:
            end = start + duration[m]
            sending[src] = receiving[dst] = end
            # Nothing reached a destination later than this: its receiving port was busy until then.
            have[arriving[rows]] = end if single else np.repeat(end, lengths[m])
        starts[m] = start
    ends = starts + duration
    return (starts, ends) if single else (np.repeat(starts, lengths), np.repeat(ends, lengths))


def _meet(ranks: Ints, stops: Ints, size: int) -> NDArray[np.bool_]:
    """Whether two messages of a round have the same rank; messages stops[n] to stops[n + 1] are round n."""
    messages = np.diff(stops)
    seen = np.zeros((len(messages), size), bool)
    seen.reshape(-1)[np.repeat(np.arange(len(messages)) * size, messages) + ranks] = True
    ranks_seen: Ints = np.count_nonzero(seen, axis=1)
    return ranks_seen < messages


def _queue(start: Floats, src: Ints, dst: Ints, duration: Floats, sending: Floats, receiving: Floats) -> None:
    """Let a round's messages through the ports one after another; `start` and the ports are updated."""
    for i in np.argsort(start, kind="stable"):
        start[i] = max(start[i], sending[src[i]], receiving[dst[i]])
        sending[src[i]] = receiving[dst[i]] = start[i] + duration[i]


@dataclass(frozen=True)
class Bucket:
    """Elements start to stop of the flat gradient, which travel together; `names` of their tensors."""

    start: int
    stop: int
    names: tuple[str, ...]


def buckets(scenario: Scenario, step: int) -> tuple[Bucket, ...]:
    """The buckets of one step, in the order in which backward completes them, by torch's rules.

    A tensor is never split; a bucket closes once it reaches its cap. The very first backward uses one
    bucket: DistributedDataParallel learns the order in it and rebuilds the buckets afterwards.
    """
    parts = tensors(scenario.model)
    stop = start = scenario.model.size
    made: list[Bucket] = []
    names: list[str] = []
    for name, elements in reversed(parts):
        start -= elements
        names.insert(0, name)
        cap = scenario.buckets.cap_bytes
        if cap is None:
            cap = BUCKET_CAP_BYTES if made else FIRST_BUCKET_BYTES
        full = step > 0 and (stop - start) * scenario.bytes_per_element >= cap
        if full or start == 0:
            made.append(Bucket(start, stop, tuple(names)))
            stop, names = start, []
    return tuple(made)


@dataclass(frozen=True, eq=False)
class Span:
    """A part of a step on every rank: start and end [R] in seconds."""

    kind: str
    micro_batch: int
    bucket: int
    start_s: Floats
    end_s: Floats
    ranks: Ints


@dataclass(frozen=True, eq=False)
class Transfers:
    """One all-reduce on the clock: its schedule and the start and end of every row."""

    schedule: Schedule
    micro_batch: int
    bucket: int
    bytes_per_element: float
    start_s: Floats
    end_s: Floats


@dataclass(frozen=True, eq=False)
class Begun:
    """When each rank can begin a step [R], and from when on the links are free, in seconds."""

    ranks_s: Floats
    links_s: float


NONE, COUNT = -1, -2  # "not in a bucket", and the bucket number of the valid-token count

Part = Span | Transfers


def step_times(
    scenario: Scenario,
    step: int,
    begun: Begun,
    tokens: Ints,
    schedule_of: Callable[[int], Schedule],
    *,
    counted: bool,
    optimized: bool,
) -> tuple[list[Part], Begun]:
    """The parts of one step that begins at `begun`, and when the next one can begin.

    `tokens` [R, K] are all tokens of every micro-batch; `schedule_of(E)` gives the schedule for E elements;
    `counted` says whether the valid-token count travels, `optimized` whether there is an optimizer step.

    Where the collective is not awaited there is no barrier: a rank goes on as soon as its own backward is
    done, into its optimizer step and into the next step, while the messages are on their way. They go on, and
    the links are busy with them until they are through: the next all-reduce, that of a count too, begins
    behind them.

    Where the ranks synchronise every micro-batch and some have more than others, the step ends in the first
    all-reduce that not all enter. Ranks that have no such micro-batch are done and stand at the end of the
    step, where nobody goes on before all are there; so there is no optimizer step, on no rank.
    """
    clockwork = _Step(scenario, step, begun, tokens, schedule_of)
    clockwork.scatter()
    if counted:
        clockwork.count()
    sync_each = scenario.buckets.sync_every_micro_batch
    last = int(clockwork.micro.max()) - 1
    for k in range(last + 1):
        clockwork.compute(k, sync_each)
        if scenario.hangs and k == scenario.synchronised:
            return clockwork.parts, clockwork.ended
        if sync_each or k == last:
            clockwork.all_reduce(k if sync_each else NONE)
    if optimized:
        clockwork.optimizer()
    return clockwork.parts, clockwork.ended


class _Step:
    """One step while it is laid out: `now` [R] is when each rank is done with what has been laid so far."""

    def __init__(
        self,
        scenario: Scenario,
        step: int,
        begun: Begun,
        tokens: Ints,
        schedule_of: Callable[[int], Schedule],
    ) -> None:
        self.scenario, self.tokens, self.schedule_of = scenario, tokens, schedule_of
        self.micro = np.array(scenario.micro_batches)
        self.speed = np.array(scenario.speeds)
        self.everyone = np.arange(scenario.world_size)
        self.buckets = buckets(scenario, step)
        self.ready = np.zeros((len(self.buckets), scenario.world_size))
        self.parts: list[Part] = []
        self.now = begun.ranks_s
        self.links_free = begun.links_s

    @property
    def ended(self) -> Begun:
        """When the next step can begin: together, unless nobody waits for anybody."""
        if self.scenario.exchange.awaited:
            return Begun(np.full(len(self.now), self.now.max()), float(self.now.max()))
        return Begun(self.now, self.links_free)

    def span(self, kind: str, k: int, b: int, end: Floats, ranks: Ints) -> None:
        """`ranks` are busy with this from now to `end`."""
        self.parts.append(Span(kind, k, b, self.now[ranks], end[ranks], ranks))
        self.now = self.now.copy()
        self.now[ranks] = end[ranks]

    def transfers(self, schedule: Schedule, k: int, b: int, element_bytes: float, entry: float) -> Floats:
        """An all-reduce that all ranks enter together; when each of them is through with it [R]."""
        done = np.full(len(self.now), entry)
        start, end = clock(schedule, self.scenario.network, element_bytes, done)
        self.parts.append(Transfers(schedule, k, b, element_bytes, start, end))
        np.maximum.at(done, schedule.source, end)
        np.maximum.at(done, schedule.destination, end)
        self.links_free = float(done.max())
        return done

    def scatter(self) -> None:
        """Every rank is handed its own tokens and labels over its own link."""
        network = self.scenario.network
        handed = self.tokens.sum(axis=1) * TOKEN_BYTES / network.bandwidth_bytes_per_s
        self.span("scatter", NONE, NONE, self.now + network.latency_s + handed, self.everyone)

    def count(self) -> None:
        """The valid tokens of the whole window, summed before forward: the labels are known by now.

        Ranks leave it together, so that what skews their arrival later is their own computing.
        """
        entry = max(float(self.now.max()), self.links_free)
        schedule = build(self.scenario.algorithm, len(self.now), 1)
        done = self.transfers(schedule, NONE, COUNT, float(COUNT_BYTES), entry)
        self.now = np.full(len(done), self.links_free)

    def compute(self, k: int, sync_each: bool) -> None:
        """Forward and backward of micro-batch k; backward bucket by bucket where its gradient will travel."""
        cost, tokens = self.scenario.compute, self.tokens[:, k] / self.speed
        here = np.flatnonzero(self.micro > k)
        self.span("forward", k, NONE, self.now + tokens * cost.forward_s_per_token, here)
        backward_s = tokens * cost.backward_s_per_token
        syncing = here if sync_each else np.flatnonzero(self.micro == k + 1)
        plain = np.setdiff1d(here, syncing)
        if len(plain):
            self.span("backward", k, NONE, self.now + backward_s, plain)
        if len(syncing) == 0:
            return
        for b, bucket in enumerate(self.buckets):
            share = (bucket.stop - bucket.start) / self.scenario.model.size
            self.span("backward", k, b, self.now + backward_s * share, syncing)
            self.ready[b, syncing] = self.now[syncing]

    def all_reduce(self, k: int) -> None:
        """The buckets one after another, then the barrier if anybody waits. Without overlap they start after
        backward."""
        done = self.now
        for b, bucket in enumerate(self.buckets):
            ready = self.ready[b] if self.scenario.buckets.overlap else self.now
            entry = max(float(ready.max()), self.links_free)
            element_bytes = self.scenario.bytes_per_element
            schedule = self.schedule_of(bucket.stop - bucket.start)
            done = self.transfers(schedule, k, b, element_bytes, entry)
        if not self.scenario.exchange.awaited:
            return
        barrier = np.full(len(done), max(float(self.now.max()), self.links_free))
        self.now = np.maximum(self.now, done)
        self.span("barrier", k, NONE, barrier, self.everyone)

    def optimizer(self) -> None:
        """Every replica takes its optimizer step."""
        end = self.now + self.scenario.compute.optimizer_s
        self.span("optimizer", NONE, NONE, end, self.everyone)
