"""An all-reduce in words: what the ranks bring, a transfer, its arithmetic, and the rule that all follow."""

from __future__ import annotations

import numpy as np

from dpsim.collectives import Schedule
from dpsim.edited import WITHOUT
from dpsim.mishaps import Slip, counted
from dpsim.reduction import reduction
from dpsim.replay import AllReduce, Arrival
from dpsim.trace import Trace
from dpsim.wording import MINUS, added, number, ranks, vector


def brought_lines(trace: Trace, step: int, k: int) -> list[str]:
    """The gradient of micro-batch k on the first rank that has one, and what of it travels."""
    rank = next(r for r, micro in enumerate(trace.scenario.micro_batches) if micro > k)
    sums, how, travels = _brought(trace, step, rank, k)
    if how == "as it is":
        return [f"gradient sum on rank {rank}, which travels as it is: {sums}"]
    return [f"gradient sum on rank {rank}: {sums}", f"{how}: {travels}"]


def brought_details(trace: Trace, step: int, k: int) -> list[str]:
    """The same for every rank that has a micro-batch k."""
    lines = []
    for rank, micro in enumerate(trace.scenario.micro_batches):
        if micro > k:
            sums, how, travels = _brought(trace, step, rank, k)
            rest = "travels as it is" if how == "as it is" else f"{how}: {travels}"
            lines.append(f"rank {rank}: gradient sum {sums}, {rest}")
    return lines


def _brought(trace: Trace, step: int, rank: int, k: int) -> tuple[str, str, str]:
    """The gradient sum of a micro-batch, what is done with it, and what comes of that."""
    scenario = trace.scenario
    micro, each = scenario.micro_batches[rank], scenario.buckets.sync_every_micro_batch
    table = reduction(scenario.reduction, trace.valid_tokens[step], scenario.micro_batches)
    before = float(table.before[rank, k])
    clipped = scenario.optimizer.clip == "before" and scenario.optimizer.clip_norm is not None
    sums, scaled = trace.gradient_sums[step, rank, k], trace.scaled[step, rank]
    factor = "" if before == 1 and not clipped else f"times {number(before)}"
    factor += " and clipped on the rank" if clipped else ""
    if each or micro == 1:
        how, result = (f"{factor}, what travels" if factor else "as it is"), scaled[k]
    elif k + 1 < micro:
        how, result = f"{factor + ', ' if factor else ''}added up so far", scaled[: k + 1].sum(axis=0)
    else:
        how, result = f"all {micro} micro-batches together, what travels", scaled.sum(axis=0)
    return vector(sums.tolist()), how, vector(result.tolist())


def transfer(part: AllReduce, row: int) -> str:
    """Who sends what to whom, what it is made of, and what the receiver holds afterwards."""
    schedule, arrival = part.schedule, part.arrivals[row]
    source, rank = int(schedule.source[row]), int(schedule.destination[row])
    payload, held, now = (vector(v.tolist()) for v in (arrival.payload, arrival.held, arrival.now))
    chunk = "the whole vector" if len(schedule.bounds) == 2 else f"chunk {schedule.chunk[row]}"
    if not arrival.adds:
        if odd := counted(arrival.payload_counts):
            return f"Rank {source} sends {chunk}, {payload}, to rank {rank}, which keeps it: it {odd}."
        return f"Rank {source} sends {chunk}, complete with {payload}, to rank {rank}, which keeps it."
    inside = np.flatnonzero(arrival.payload_counts).tolist()
    made = "its own" if inside == [source] else f"made of {ranks(inside)}"
    there = np.flatnonzero(arrival.counts - arrival.payload_counts).tolist()
    adds = f"its own {held}" if there == [rank] else f"the {held} it holds"
    return (
        f"Rank {source} sends {chunk} ({payload}, {made}) to rank {rank}. Rank {rank} adds {adds} "
        f"and now holds {now}; {_missing(arrival)}{_more(schedule, row)}."
    )


def _more(schedule: Schedule, row: int) -> str:
    """Whether the same cell receives again later in the same round: then this is not what the stage shows."""
    columns = (schedule.round, schedule.destination, schedule.chunk)
    again = np.logical_and.reduce([column[row + 1 :] == column[row] for column in columns])
    return ", and more comes to it in this round" if again.any() else ""


def _missing(arrival: Arrival) -> str:
    out = np.flatnonzero(arrival.counts == 0).tolist()
    double = np.flatnonzero(arrival.counts > 1).tolist()
    twice = f", {ranks(double)} twice" if double else ""
    if not out:
        return "every rank is in it" + twice
    if len(out) == 1:
        return f"only rank {out[0]} is missing" + twice
    return f"{ranks(out)} are missing" + (f", and {ranks(double)} in it twice" if double else "")


def arithmetic(part: AllReduce, row: int) -> str:
    """The sum of a transfer, written out."""
    arrival = part.arrivals[row]
    where = f"chunk {part.schedule.chunk[row]} on rank {part.schedule.destination[row]}"
    if not arrival.adds:
        return f"{where}: {vector(arrival.payload.tolist())}, kept as it came"
    if len(arrival.now) == 1:
        return f"{where}: {added([arrival.held[0], arrival.payload[0]])} = {number(arrival.now[0])}"
    held, came, now = (vector(v.tolist()) for v in (arrival.held, arrival.payload, arrival.now))
    return f"{where}: {held} + {came} = {now}"


def rule(schedule: Schedule, round_number: int, wrong: Slip | None = None) -> list[str]:
    """What all ranks do in this round, in one line; none where a single transfer is all. `wrong` is what does
    not go by it."""
    transfers = int(schedule.round_starts[round_number + 1] - schedule.round_starts[round_number])
    if schedule.algorithm != "ring":
        return [f"{transfers} transfers in this round"] if transfers > 1 else []
    half, size = schedule.rounds // 2, schedule.world_size
    offset = -round_number if round_number < half else half + 1 - round_number
    shift = "r" if offset == 0 else f"(r {MINUS if offset < 0 else '+'} {abs(offset)})"
    aside = ""
    if wrong is not None and wrong.round == round_number:
        aside = (
            f", but what rank {wrong.source} sends {'is dropped' if wrong.edit == WITHOUT else 'comes twice'}"
        )
    return [f"every rank r sends chunk {shift} mod {size} to rank (r + 1) mod {size}{aside}"]
