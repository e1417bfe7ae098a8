"""What goes wrong in an exchange, in words: which transfer is dropped or comes twice, what the ranks are left
with, who waits for whom for ever, and what a real run says then."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsim.collectives import build, contributions
from dpsim.edited import TWICE, WITHOUT
from dpsim.replay import AllReduce
from dpsim.replicas import apart, furthest_from
from dpsim.scenario import Scenario
from dpsim.timeline import COUNT
from dpsim.trace import BACKWARD, OPTIMIZER, Floats, Hang, Ints, Trace
from dpsim.wording import at_start, duration, listed, number, plural, ranks, vector

# Two processes over Gloo with a timeout of 5 s, the second with one all-reduce less than the first: the first
# line of what both said, one in its all-reduce, the other at a barrier behind its last. As it was recorded.
REAL_LINE = (
    "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
    "Timed out waiting 5000ms for recv operation to complete"
)
REAL_RUN = "torch 2.13.0 on two CPU processes over Gloo, with a timeout of 5 s"


@dataclass(frozen=True)
class Told:
    """What a beat says: its title, its moment, a sentence, arithmetic and details."""

    title: str
    moment_s: float
    sentence: str
    arithmetic: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slip:
    """The transfer that is dropped or comes twice."""

    edit: str
    round: int
    source: int
    destination: int
    chunk: int


@lru_cache(maxsize=64)
def slip(scenario: Scenario) -> Slip | None:
    """The transfer that the scenario's collective is written to drop or double; None where it is none."""
    chosen = scenario.exchange
    if not chosen.moves_otherwise:
        return None
    plain = build(chosen.algorithm, scenario.world_size, scenario.world_size)
    columns = (plain.round, plain.source, plain.destination, plain.chunk)
    return Slip(chosen.edit, *(int(column[chosen.row]) for column in columns))


def slip_in(part: AllReduce, scenario: Scenario) -> Slip | None:
    """The same, if it is in this all-reduce: not in the count's, nor where its chunk has no elements."""
    found = slip(scenario)
    if found is None or part.bucket == COUNT or len(part.whole):
        return None
    return found if part.schedule.chunk_elements[found.chunk] else None


def in_words(found: Slip, chunks: int) -> str:
    """What happens to the transfer."""
    what = "the whole vector" if chunks == 1 else f"chunk {found.chunk}"
    if found.edit == WITHOUT:
        return (
            f"What rank {found.source} should send now, {what} to rank {found.destination}, is dropped: "
            f"rank {found.destination} goes on with what it holds."
        )
    assert found.edit == TWICE
    return f"Rank {found.destination} takes in {what} from rank {found.source} twice."


def left_with(part: AllReduce) -> str:
    """What is missing or counted twice in what the ranks end up with; empty where nothing is."""
    size = part.schedule.world_size
    final = contributions(part.schedule)[0]
    found = []
    for chunk in np.flatnonzero(part.schedule.chunk_elements).tolist():
        rows = final[:, chunk]
        odd = np.flatnonzero((rows != 1).any(axis=1)).tolist()
        if not odd:
            continue
        where = "on every rank" if len(odd) == size else f"on {ranks(odd)}"
        what = "the sum" if len(part.schedule.bounds) == 2 else f"chunk {chunk}"
        found.append(f"{what} {counted(rows[odd[0]])}, {where}")
    return "; ".join(found)


def counted(counts: Ints) -> str:
    """Who is not in a sum, and who is in it twice: "lacks rank 2", "has rank 1 twice"."""
    out, double = np.flatnonzero(counts == 0).tolist(), np.flatnonzero(counts > 1).tolist()
    told = [f"lacks {ranks(out)}"] if out else []
    told += [f"has {ranks(double)} twice"] if double else []
    return " and ".join(told)


def own_backward_end(trace: Trace, step: int, rank: int) -> float:
    """When a rank is through with its last backward of a step."""
    return float(trace.events.end_s[trace.events.where(step=step, kind=BACKWARD, rank=rank)].max())


def waits_for_ever(hang: Hang) -> str:
    """Who waits for whom, since when."""
    inside, absent = ranks(hang.inside), ranks(hang.absent)
    are, wait = ("is", "waits") if len(hang.inside) == 1 else ("are", "wait")
    have, enter = ("has", "enters") if len(hang.absent) == 1 else ("have", "enter")
    first, last = duration(min(hang.since_s)), duration(max(hang.since_s))
    since = f"since {first}" if first == last else f"since {first} to {last}"
    return (
        f"{at_start(inside)} {are} in the all-reduce of micro-batch {hang.micro_batch + 1} "
        f"{since}, and {wait} for {absent} for ever: {absent} {have} no such micro-batch and never "
        f"{enter} it."
    )


def what_a_run_prints() -> str:
    """What a real run says when its time is up."""
    return f"A real run says nothing until its timeout. Then, as recorded with {REAL_RUN}: {REAL_LINE}"


def two_of(replicas: Floats) -> str:
    """What two of [R, P] hold, rank 0's and the one that is furthest from it, and how far two lie apart."""
    other = furthest_from(replicas, 0)
    return (
        f"rank {other} holds {vector(replicas[other].tolist())}, rank 0 {vector(replicas[0].tolist())}; "
        f"two replicas lie up to {number(apart(replicas))} apart in a parameter"
    )


def hung(hang: Hang, micro_batches: tuple[int, ...]) -> Told:
    """The end of a run that never ends."""
    since = zip(hang.inside, hang.since_s, strict=True)
    none = f"has no micro-batch {hang.micro_batch + 1}, stands at the step's end"
    return Told(
        "For ever: the run hangs",
        max(hang.since_s),
        f"{waits_for_ever(hang)} Nobody takes an optimizer step. {what_a_run_prints()}",
        (f"micro-batches of the ranks: {listed(micro_batches)}",),
        (
            *(f"rank {r}: in the all-reduce since {duration(s)}" for r, s in since),
            *(f"rank {r}: {none}" for r in hang.absent),
        ),
    )


def own_steps(trace: Trace, step: int, parts: list[AllReduce], odd: str) -> Told:
    """The optimizer step where it leaves the replicas with different parameters; `odd` says what is wrong
    with the sum they waited for, if they did."""
    before, after = trace.parameters[step], trace.parameters[step + 1]
    sentence = "Every replica takes a step of its own" + (f", since {odd}" if odd else "")
    if not trace.scenario.exchange.awaited:
        came, of = _arrived(trace, step, parts)
        how_many = f"at most {max(came)}" if any(came) else "none"
        sentence += (
            " as soon as its own backward is done, with what its buffers hold then: "
            f"{how_many} of the {plural(of, 'transfer')} to a rank had arrived"
        )
    i = int(np.argmax(np.ptp(after, axis=0)))
    return Told(
        "Optimizer step: the replicas drift apart",
        float(trace.events.end_s[trace.events.where(step=step, kind=OPTIMIZER)].max()),
        f"{sentence}. The replicas are no longer equal: {two_of(after)}.",
        tuple(
            f"rank {r}: θ{i}: {number(before[r, i])} becomes {number(after[r, i])} "
            f"(gradient {number(trace.reduced[step, r, i])})"
            for r in range(len(after))
        ),
        tuple(f"rank {r} holds {vector(replica.tolist())}" for r, replica in enumerate(after)),
    )


def _arrived(trace: Trace, step: int, parts: list[AllReduce]) -> tuple[list[int], int]:
    """How many of the transfers to each rank had arrived when its own backward was done, and the most that
    there are to one; the count's aside."""
    events, size = trace.events, trace.scenario.world_size
    came, meant = [0] * size, [0] * size
    read = [own_backward_end(trace, step, r) for r in range(size)]
    for arrival in (a for part in parts if part.bucket != COUNT for a in part.arrivals):
        rank = int(events.rank[arrival.event])
        meant[rank] += 1
        came[rank] += bool(events.end_s[arrival.event] <= read[rank])
    return came, max(meant)


def come_late(trace: Trace, step: int, parts: list[AllReduce]) -> Told:
    """The moment at which the sum is there, and nobody looks at it any more."""
    ends = trace.events.end_s
    there = max(float(ends[a.event]) for part in parts if part.bucket != COUNT for a in part.arrivals)
    steps = ends[trace.events.where(step=step, kind=OPTIMIZER)]
    sentence = "Only now has the last message arrived: every rank holds the sum, and none has used it."
    if len(steps) and there > steps.max():
        sentence += f" The last optimizer step was over {duration(there - float(steps.max()))} before."
    return Told("The sum comes too late", there, sentence)
