"""A trace as the data the stage draws: every number already written as text, every time an index.

Nothing is computed here that is not in the trace, a metric of it, or the comparison beside it. The shapes
are documented in `docs/design.md`, where the JavaScript that reads them is described too.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np

from dpsim.batch import GlobalBatch, global_batch
from dpsim.beats import Beat, phase_names
from dpsim.comparison import Comparison
from dpsim.contrast import contrast
from dpsim.metrics import StepMetrics, step_metrics
from dpsim.origins import Origins, inside_text
from dpsim.replay import AllReduce, Arrival, all_reduces
from dpsim.scenario import MASKED, Scenario
from dpsim.timeline import COUNT
from dpsim.trace import ALL_REDUCE, BACKWARD, BARRIER, KINDS, OPTIMIZER, RECEIVE, SCATTER, SEND, Trace
from dpsim.ui.stage.packing import Packer, terms_of
from dpsim.wording import MINUS, at_start, duration, lasting, number, plural, ranks, short, tiny

WITH_NUMBERS = 16  # up to this many ranks are drawn as cards with numbers, more as a matrix
MOST_ENTRIES = 4  # entries of a chunk that a cell shows with up to four ranks; with more it shows one
MOST_PARAMETERS = 4
OPEN_ENDED = 1.2  # how much longer than all that happens the picture of a step is that never ends
MOST_STRIP = 24  # tokens that are drawn one by one; a longer strip is drawn as a bar

Data = dict[str, Any]

# What travels and is added up, by reduction.
TRAVELS = {
    "token_weighted": "gradient sum",
    "sum_over_world_size": "gradient sum",
    "mean_of_rank_means": "sum of means",
    "mean_of_micro_batch_means": "sum of means",
    "token_weighted_not_compensated": "sum of shares",
}


def stage_data(trace: Trace, told: tuple[Beat, ...], comparison: Comparison, first: str) -> Data:
    """The whole payload. `first` is the id of the beat to open on."""
    batch = global_batch(trace.scenario)
    times = np.unique(np.concatenate([trace.events.start_s, trace.events.end_s]))
    spans = np.flatnonzero(~np.isin(trace.events.kind, (SEND, RECEIVE, ALL_REDUCE)))
    phases = phase_names(trace.scenario.algorithm)
    if np.any(trace.events.kind == ALL_REDUCE):  # nobody knows what it is made of
        phases |= {"reduce": "All-reduce"}
    packer = Packer(trace, told, comparison, batch)
    sets: dict[bytes, int] = {}
    steps = [_step(trace, t, comparison, times, packer, sets) for t in range(trace.steps)]
    data: Data = {
        "source": trace.source,
        "collective": trace.scenario.algorithm,
        "title": trace.scenario.title or trace.scenario.name,
        "world": trace.scenario.world_size,
        "numbers": trace.scenario.world_size <= WITH_NUMBERS,
        "travels": TRAVELS.get(str(trace.scenario.reduction), "weighted sum"),
        "phases": [
            {"key": key, "label": label} for key, label in phases.items() if any(b.phase == key for b in told)
        ],
        "beats": [_beat(b) for b in told],
        "times": times.tolist(),
        "spans": {
            "kinds": list(KINDS),
            "step": trace.events.step[spans].tolist(),
            "rank": trace.events.rank[spans].tolist(),
            "kind": trace.events.kind[spans].tolist(),
            "start": np.searchsorted(times, trace.events.start_s[spans]).tolist(),
            "end": np.searchsorted(times, trace.events.end_s[spans]).tolist(),
        },
        "batch": _batch(batch),
        "ranks": _ranks(trace, batch, packer),
        "steps": steps,
        "origins": packer.packed(),
        "who": [_who(inside) for inside in sets],
    }
    data["terms"] = terms_of(data)
    data["id"] = hashlib.sha256(repr(data).encode()).hexdigest()[:16]
    data["first"] = first
    return data


def ghost_of(data: Data, step: int | None = None) -> Data:
    """What the stage remembers of a picture before a change, as its `ghost`: all steps, or only one."""
    kept = ("start", "end", "arrivals", "summary", "after", "own")
    compared = ("name", "error", "gradient")
    steps = [
        {key: old[key] for key in kept if key in old}
        | {"compare": [{key: line[key] for key in compared} for line in old["compare"]]}
        if step in (None, t)
        else None
        for t, old in enumerate(data["steps"])
    ]
    return {"world": data["world"], "steps": steps}


def _beat(beat: Beat) -> Data:
    focus = beat.focus
    return {
        "id": beat.id,
        "step": beat.step,
        "phase": beat.phase,
        "title": beat.title,
        "moment": beat.moment_s,
        "say": beat.sentence,
        "math": list(beat.arithmetic),
        "focus": focus and [focus.rank, focus.peer, focus.bucket, focus.chunk],
    }


def _batch(batch: GlobalBatch) -> list[str]:
    """A sequence as text: 1 a valid token, 0 a masked one; "7/8" where it is too long to draw."""
    strips = []
    for label in batch.labels:
        counts = label != MASKED
        if len(label) > MOST_STRIP:
            strips.append(f"{int(counts.sum())}/{len(label)}")
        else:
            strips.append("".join("1" if c else "0" for c in counts))
    return strips


def _ranks(trace: Trace, batch: GlobalBatch, packer: Packer) -> list[Data]:
    valid = batch.shard_counts(batch.valid).sum(axis=1)
    tokens = batch.shard_counts(batch.lengths).sum(axis=1)
    return [
        {
            "valid": int(valid[r]),
            "tokens": int(tokens[r]),
            "says": f"{valid[r]} valid of {plural(int(tokens[r]), 'token')}"
            if trace.scenario.world_size <= 8
            else f"{valid[r]} of {tokens[r]}",
            "sequences": [list(cell) for cell in row],
            **(packer.rank(r) if trace.scenario.world_size <= WITH_NUMBERS else {}),
        }
        for r, row in enumerate(batch.assignment)
    ]


def _entries(values: Any, world: int) -> list[str]:
    """A chunk's first entries as text, and how many more there are."""
    most = MOST_ENTRIES if world <= 4 else 1
    texts = [tiny(v) if world > 8 else short(v) for v in values[:most]]
    more = len(values) - most
    return [*texts, f"+{more}"] if more > 0 else texts


def _step(
    trace: Trace, step: int, comparison: Comparison, times: Any, packer: Packer, sets: dict[bytes, int]
) -> Data:
    of = Origins(trace, step, packer.batch)
    numbers = trace.scenario.world_size <= WITH_NUMBERS
    parts = [(part, of.cells(part) if numbers else None) for part in all_reduces(trace, step)]
    known = [(part, cells) for part, cells in parts if cells]
    measured = step_metrics(trace, step)
    begun, ended = trace.step_window(step)
    if trace.hangs:  # the picture goes on where nothing happens any more
        ended = begun + OPEN_ENDED * (ended - begun)
    held, after = (trace.parameters[t, 0, :MOST_PARAMETERS].tolist() for t in (step, step + 1))
    groups = [
        _group(trace, step, part, times, sets) | packer.places(of, part, cells) for part, cells in parts
    ]
    origins = packer.step(step, known, len(held))
    data: Data = {
        "start": begun,
        "end": ended,
        "ticks": _ticks(begun, ended),
        "summary": _summary(trace, measured),
        "before": _parameters(held, trace.scenario),
        "after": _parameters(after, trace.scenario),
        "hidden": max(0, trace.scenario.model.size - MOST_PARAMETERS),
        "waits": [] if measured.wait_s is None else [duration(float(w)) for w in measured.wait_s],
        "arrivals": [float(a) for a in _arrivals(trace, step)],
        "late": _late(trace, measured),
        "total": f"N = {trace.valid_tokens[step].sum()}" if trace.counted[step, 0] >= 0 else "",
        "groups": groups,
        "origins": origins,
        "buckets": [" ".join(b.names) for b in trace.buckets(step)],
        "compare": [vars(line) for line in contrast(trace, step, comparison)],
    }
    if trace.hangs:
        data["hangs"] = True
    if not trace.scenario.exchange.awaited:
        data["done"] = _done(trace, step)
    own = origins.pop("own")
    if len(own) > 1 and numbers:
        data["own"] = [_own(trace, step, rank) | {"origins": rows} for rank, rows in enumerate(own)]
    return data


def _own(trace: Trace, step: int, rank: int) -> Data:
    """A replica's own parameters, where they are not the same on all."""
    before, after = (trace.parameters[t, rank, :MOST_PARAMETERS].tolist() for t in (step, step + 1))
    return {"before": _parameters(before, trace.scenario), "after": _parameters(after, trace.scenario)}


def _done(trace: Trace, step: int) -> list[float]:
    """When each rank has taken its optimizer step, or is through with its backward where there is none."""
    ends = _arrivals(trace, step)
    rows = trace.events.where(step=step, kind=OPTIMIZER)
    ends[trace.events.rank[rows]] = trace.events.end_s[rows]
    return [float(end) for end in ends]


def _summary(trace: Trace, measured: StepMetrics) -> str:
    if trace.hangs:
        return "the step never ends"
    waiting = f"up to {lasting(measured.longest_wait_s)} of waiting"
    awaited = trace.scenario.exchange.awaited
    return f"{lasting(measured.step_time_s)} per step · {waiting if awaited else 'nobody waits'}"


def _parameters(values: list[float], scenario: Scenario) -> list[str]:
    """Parameters as a card has room for: exact on few cards, where all of them are on it and not too long."""
    roomy = scenario.world_size <= 4 and scenario.model.size <= MOST_PARAMETERS
    written = ((number(v), short(v)) for v in values)
    return [exact if roomy and len(exact) <= 6 else brief for exact, brief in written]


def _late(trace: Trace, measured: StepMetrics) -> str:
    """Who does not wait, or waits for ever, in a sentence; empty where nobody waits."""
    if trace.hangs:
        here, there = ranks(trace.hangs.inside), ranks(trace.hangs.absent)
        return f"{at_start(here)} and {there} wait for each other, for ever."
    if measured.wait_s is None or not trace.scenario.exchange.awaited:
        return ""
    last = np.flatnonzero(measured.wait_s == 0).tolist()
    if len(last) == len(measured.wait_s):
        return ""
    if len(last) == 1:
        return f"Rank {last[0]} is late: it does not wait, the others wait for it."
    return f"{len(last)} ranks arrive last, together: they do not wait."


def _ticks(begun: float, ended: float) -> list[list[Any]]:
    """About four round times of the step, [seconds from its start, text]."""
    if ended <= begun:
        return []
    rough = (ended - begun) / 4
    power = 10.0 ** np.floor(np.log10(rough))
    apart = float(next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.99))
    return [[i * apart, duration(i * apart)] for i in range(int((ended - begun) / apart) + 1)]


def _arrivals(trace: Trace, step: int) -> Any:
    """When each rank is through with the last backward of the step; in a step that hangs, from when on it
    waits, be it behind the last barrier that all have passed."""
    out = np.zeros(trace.scenario.world_size)
    for kind in (BACKWARD, BARRIER) if trace.hangs else (BACKWARD,):
        rows = trace.events.where(step=step, kind=kind)
        np.maximum.at(out, trace.events.rank[rows], trace.events.end_s[rows])
    return out


def _added_up(trace: Trace, step: int, part: AllReduce, bounds: Any) -> list[Data]:
    """What a rank has accumulated after each micro-batch but its last: [rank, time, chunks as text]."""
    if part.micro_batch >= 0:
        return []
    events, world = trace.events, trace.scenario.world_size
    kept = []
    for rank, micro in enumerate(trace.scenario.micro_batches):
        total = trace.scaled[step, rank].cumsum(axis=0)[:, part.start : part.start + int(bounds[-1])]
        for k in range(micro - 1):
            row = events.where(step=step, rank=rank, kind=BACKWARD, micro_batch=k)[-1]
            chunks = [_entries(total[k, a:b].tolist(), world) for a, b in pairwise(bounds)]
            kept.append({"rank": rank, "at": float(events.end_s[row]), "chunks": chunks})
    return kept


def _sum(arrival: Arrival) -> str:
    """What was held plus what came, where a small cell has room for it."""
    if not arrival.adds or len(arrival.now) > 1:
        return ""
    came = float(arrival.payload[0])
    written = f"{short(arrival.held[0])} {MINUS if came < 0 else '+'} {short(abs(came))}"
    return written if len(written) <= 8 else ""


def _ready(trace: Trace, step: int, part: AllReduce) -> Any:
    """When every rank has what it brings to an all-reduce."""
    events = trace.events
    if part.bucket == COUNT:
        rows = events.where(step=step, kind=SCATTER)
    else:
        rows = events.where(step=step, kind=BACKWARD, bucket=part.bucket)
        if part.micro_batch >= 0:
            rows = rows[events.micro_batch[rows] == part.micro_batch]
    out = np.zeros(trace.scenario.world_size)
    np.maximum.at(out, events.rank[rows], events.end_s[rows])
    return out


def _who(inside: bytes) -> str | list[Any]:
    """Who is in a chunk: how often each rank, "1020"; with many ranks how many, and which as runs."""
    counts = np.frombuffer(inside, np.int64)
    if len(counts) <= WITH_NUMBERS:
        return "".join(map(str, np.minimum(counts, 9).tolist()))
    return [int(counts.sum()), inside_text(counts)]


def _group(trace: Trace, step: int, part: AllReduce, times: Any, sets: dict[bytes, int]) -> Data:
    """One all-reduce: what the ranks bring, and its transfers in columns. With many ranks no numbers travel
    to the browser, only who is in a chunk."""
    schedule, events = part.schedule, trace.events
    columns: tuple[Any, ...]
    if len(part.whole):  # the sum comes to every rank at once, nobody knows from whom: -1
        rows, none = part.whole, np.zeros_like(part.whole)
        columns = (none, none - 1, events.rank[rows], none)
        inside = [np.ones_like(rows)] * len(rows)
        now = [part.brought.sum(axis=0)] * len(rows)
    else:
        rows = np.array([a.event for a in part.arrivals], np.int64)
        columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk)
        inside = [a.counts for a in part.arrivals]
        now = [a.now for a in part.arrivals]
    numbers = trace.scenario.world_size <= WITH_NUMBERS
    data: Data = {
        "bucket": part.bucket,
        "micro": part.micro_batch,
        "count": part.bucket == COUNT,
        "chunks": len(schedule.bounds) - 1,
        "sizes": schedule.chunk_elements.tolist(),
        "round": columns[0].tolist(),
        "source": columns[1].tolist(),
        "rank": columns[2].tolist(),
        "chunk": columns[3].tolist(),
        "start": np.searchsorted(times, events.start_s[rows]).tolist(),
        "end": np.searchsorted(times, events.end_s[rows]).tolist(),
        "ready": _ready(trace, step, part).tolist(),
        "inside": [sets.setdefault(counts.tobytes(), len(sets)) for counts in inside],
    }
    if numbers:
        bounds, world = schedule.bounds, schedule.world_size
        data["brought"] = [
            [_entries(row[low:high].tolist(), world) for low, high in pairwise(bounds)]
            for row in part.brought
        ]
        data["added_up"] = _added_up(trace, step, part, bounds) if part.bucket != COUNT else []
        data["now"] = [_entries(values.tolist(), world) for values in now]
        data["came"] = [_entries(a.payload.tolist(), world) for a in part.arrivals]
        data["sums"] = [_sum(a) for a in part.arrivals] if world <= 4 else []
        data["came_from"] = [sets.setdefault(a.payload_counts.tobytes(), len(sets)) for a in part.arrivals]
    return data
