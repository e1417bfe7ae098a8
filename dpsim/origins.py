"""Where the numbers of a step come from: which ranks, how many tokens, which beat, and the arithmetic.

Everything here is read from the trace, a metric of it, or the comparison beside it, and written out in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpsim.batch import GlobalBatch
from dpsim.metrics import step_metrics
from dpsim.mishaps import own_backward_end
from dpsim.optimizer import clip_factor, norms
from dpsim.reduction import reduction
from dpsim.replay import AllReduce, Arrival
from dpsim.timeline import COUNT
from dpsim.trace import BACKWARD, Floats, Ints, Trace
from dpsim.wording import added, bracketed, duration, listed, number, plural, ranks

FEW, SOME = 4, 16  # ranks up to which four elements are written out, and up to which every rank is


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a number comes from: a sentence, lines of (what, arithmetic), how often each rank is in it
    (empty where nobody asks), the id of the beat that made it, and the numbers it was made of."""

    title: str
    says: str
    lines: tuple[tuple[str, str], ...] = ()
    counts: tuple[int, ...] = ()
    beat: str = ""
    parts: tuple[Origin, ...] = ()


@dataclass(frozen=True, eq=False)
class CellOrigins:
    """Of one all-reduce: what every rank brought, by chunk; what it had added up after each micro-batch but
    its last, by (rank, micro-batch); and what was there after each arrival, in the schedule's order, or on
    each rank after an all-reduce that was measured as a whole."""

    brought: tuple[tuple[Origin, ...], ...]
    added_up: dict[tuple[int, int], tuple[Origin, ...]]
    arrivals: tuple[Origin, ...]
    last: dict[tuple[int, int], Origin]


class Origins:
    """The origins of one step of `trace`."""

    def __init__(self, trace: Trace, step: int, batch: GlobalBatch) -> None:
        self.trace, self.step, self.batch = trace, step, batch
        self.scenario, self.events = trace.scenario, trace.events
        self.size, self.micro = self.scenario.world_size, self.scenario.micro_batches
        self.each = self.scenario.buckets.sync_every_micro_batch
        self.valid = trace.valid_tokens[step]
        self.tokens = batch.shard_counts(batch.lengths)
        self.total = int(self.valid.sum())
        self.table = reduction(self.scenario.reduction, self.valid, self.micro)
        self.prefix = f"s{step}." if step else ""
        self.buckets = len(trace.buckets(step))
        self.over = lru_cache(maxsize=None)(self._over)
        self.backward_beat = lru_cache(maxsize=None)(self._backward_beat)

    # -- beats -------------------------------------------------------------------------------------------

    def window(self, k: int) -> str:
        return f".m{k}" if max(self.micro) > 1 and k >= 0 else ""

    def _backward_beat(self, rank: int, k: int, bucket: int) -> str:
        """The beat at whose end a rank has its gradient of micro-batch k in a bucket."""
        rows = self.events.where(step=self.step, kind=BACKWARD, micro_batch=k)
        split = self.buckets > 1 and bool((self.events.bucket[rows] >= 0).any())
        own = self.events.bucket[rows[self.events.rank[rows] == rank]]
        suffix = f".b{bucket}" if split and bucket in own else ""
        return f"{self.prefix}backward{self.window(k)}{suffix}"

    def round_beat(self, part: AllReduce, round_number: int) -> str:
        if part.bucket == COUNT:
            return f"{self.prefix}count"
        whole = f"{self.prefix}allreduce{self.window(part.micro_batch)}.b{part.bucket}"
        return whole if len(part.whole) else f"{whole}.r{round_number}"

    # -- cells -------------------------------------------------------------------------------------------

    def cells(self, part: AllReduce) -> CellOrigins:
        """Every cell of an all-reduce, from what the ranks brought to the finished chunks."""
        chunks = np.flatnonzero(part.schedule.chunk_elements).tolist()  # those without elements stand last
        brought = tuple(tuple(self._brought(part, r, c) for c in chunks) for r in range(self.size))
        kept = {
            (r, k): tuple(self._accumulated(part, r, c, k) for c in chunks)
            for r in range(self.size)
            for k in range(self.micro[r] - 1)
            if part.micro_batch < 0 and part.bucket != COUNT
        }
        now = {(r, c): brought[r][c] for r in range(self.size) for c in chunks}
        made: list[Origin] = []
        for low, high in pairwise(part.schedule.round_starts.tolist()):
            before = dict(now)  # a round reads the state at its start
            for row in range(low, high):
                rank, chunk = int(part.schedule.destination[row]), int(part.schedule.chunk[row])
                came = before[int(part.schedule.source[row]), chunk]
                made.append(self._arrived(part, row, now[rank, chunk], came))
                now[rank, chunk] = made[-1]
        if not self.scenario.exchange.awaited:
            now = self._as_read(part, brought, made)
        for rank in range(self.size) if len(part.whole) else ():
            made.append(self._summed(part, rank, tuple(row[0] for row in brought)))
            now[rank, 0] = made[-1]
        return CellOrigins(brought, kept, tuple(made), now)

    def _as_read(
        self, part: AllReduce, brought: tuple[tuple[Origin, ...], ...], made: list[Origin]
    ) -> dict[tuple[int, int], Origin]:
        """What the optimizer finds that does not wait: what had arrived at the end of a rank's backward."""
        found = {(r, c): origin for r, row in enumerate(brought) for c, origin in enumerate(row)}
        for row, arrival in enumerate(part.arrivals):
            rank, chunk = int(part.schedule.destination[row]), int(part.schedule.chunk[row])
            if self.events.end_s[arrival.event] <= own_backward_end(self.trace, self.step, rank):
                found[rank, chunk] = made[row]
        return found

    def where(self, part: AllReduce, rank: int, chunk: int) -> str:
        if part.bucket == COUNT:
            return f"Valid tokens, as rank {rank} knows them"
        made = self.buckets
        which = "the whole vector" if len(part.schedule.bounds) == 2 else f"chunk {chunk}"
        which = f"bucket {part.bucket + 1} of {made}, {which}" if made > 1 else which
        return f"{which[0].upper()}{which[1:]} on rank {rank}"

    def elements(self, part: AllReduce, chunk: int) -> range:
        """The elements of a chunk that are written out, as places in the bucket's vector."""
        low, high = part.schedule.bounds[chunk : chunk + 2].tolist()
        return range(low, min(high, low + (4 if self.size <= FEW else 1)))

    def label(self, part: AllReduce, element: int) -> str:
        return "" if part.bucket == COUNT else f"element {part.start + element}"

    def _over(self, counts: tuple[int, ...], k: int = -1) -> str:
        """How many tokens are in the parts of some ranks, in micro-batch k or in all."""
        inside = np.flatnonzero(counts)
        column = slice(None) if k < 0 else slice(k, k + 1)
        valid, tokens = int(self.valid[inside, column].sum()), int(self.tokens[inside, column].sum())
        return f"{valid} valid of {plural(tokens, 'token')}"

    @cached_property
    def clipped(self) -> Floats | None:
        """The factor by which every rank clips what it brings; None where none does."""
        chosen = self.scenario.optimizer
        if chosen.clip != "before" or chosen.clip_norm is None:
            return None
        sums = self.table.before[:, :, None] * self.trace.gradient_sums[self.step]
        return clip_factor(norms(self.size * self.table.after * sums.sum(axis=1)), chosen.clip_norm)

    def factor(self, rank: int, k: int) -> str:
        """What a gradient sum is divided by, or multiplied with, before it travels."""
        n = int(self.valid[rank, k])
        clipped = "" if self.clipped is None else f" × {number(float(self.clipped[rank]))} to clip it"
        if self.table.before[rank, k] == 0:
            return " × 0" + clipped
        written = {
            "mean_of_rank_means": f" / {int(self.valid[rank].sum())}",
            "mean_of_micro_batch_means": f" / {n}"
            if self.micro[rank] == 1
            else f" / ({self.micro[rank]} × {n})",
            "token_weighted_not_compensated": f" / {self.total}",
            "custom": f" × {bracketed(float(self.table.before[rank, k]))}",
        }
        return written.get(self.table.name, "") + clipped

    def _one(self, counts: int) -> tuple[int, ...]:
        return tuple(int(r == counts) for r in range(self.size))

    def _brought(self, part: AllReduce, rank: int, chunk: int) -> Origin:
        if part.bucket == COUNT:
            counts = self.valid[rank, : self.micro[rank]].tolist()
            line = ("", added(counts) + (f" = {sum(counts)}" if len(counts) > 1 else ""))
            says = f"Rank {rank} has counted its own tokens: {self.over(self._one(rank))}."
            return Origin(
                self.where(part, rank, chunk), says, (line,), self._one(rank), f"{self.prefix}scatter"
            )
        last = part.micro_batch if part.micro_batch >= 0 else self.micro[rank] - 1
        return self._accumulated(part, rank, chunk, last)

    def _accumulated(self, part: AllReduce, rank: int, chunk: int, k: int) -> Origin:
        """What a rank holds of a chunk after its own micro-batch k."""
        only = self.each or self.micro[rank] == 1
        first = k if self.each else 0
        lines = []
        for i in self.elements(part, chunk):
            e = part.start + i
            sums = self.trace.gradient_sums[self.step, rank, first : k + 1, e]
            scaled = self.trace.scaled[self.step, rank, first : k + 1, e]
            factors = [self.factor(rank, m) for m in range(first, k + 1)]
            if any(factors):
                for m, (s, f, v) in enumerate(zip(sums, factors, scaled, strict=True), first):
                    what = self.label(part, i) + ("" if only else f", micro-batch {m + 1}")
                    lines.append((what, f"{number(float(s))}{f} = {number(float(v))}"))
            if first < k or not any(factors):
                total = f" = {number(float(scaled.sum()))}" if first < k else ""
                lines.append((self.label(part, i), added(scaled.tolist()) + total))
        tokens = self.over(self._one(rank), k if only else -1)
        if only or k + 1 == self.micro[rank]:
            says = f"The gradient sum of rank {rank} alone, over {tokens}."
        else:
            some = np.zeros_like(self.valid)
            some[:, : k + 1] = 1
            n, t = int((self.valid * some)[rank].sum()), int((self.tokens * some)[rank].sum())
            says = (
                f"Accumulated on rank {rank} after {k + 1} of {self.micro[rank]} micro-batches, "
                f"over {n} valid of {plural(t, 'token')}."
            )
        beat = self.backward_beat(rank, k, part.bucket)
        return Origin(self.where(part, rank, chunk), says, tuple(lines), self._one(rank), beat)

    def _arrived(self, part: AllReduce, row: int, held: Origin, came: Origin) -> Origin:
        arrival, schedule = part.arrivals[row], part.schedule
        source, rank = int(schedule.source[row]), int(schedule.destination[row])
        chunk = int(schedule.chunk[row])
        lines = [
            (self.label(part, i), _sum(arrival, i - int(schedule.bounds[chunk])))
            for i in self.elements(part, chunk)
        ]
        counts = tuple(arrival.counts.tolist())
        inside = [r for r, times in enumerate(counts) if times]
        if arrival.adds and len(inside) > 2 and max(counts) == 1:
            first = int(schedule.bounds[chunk])
            terms = added(part.brought[inside, first].tolist())
            what = "what the ranks brought" + (" of it" if len(lines) > 1 else "")
            lines.append((what, f"{terms} = {number(float(arrival.now[0]))}"))
        tokens = self.over(counts, part.micro_batch)
        if part.bucket == COUNT:
            tokens = f"the counts of {ranks(inside)}"
        does = (
            f"adds what rank {source} sent" if arrival.adds else f"keeps what rank {source} sent, as it came"
        )
        twice = [r for r, times in enumerate(counts) if times > 1]
        done = len(inside) == self.size and not twice
        says = f"Rank {rank} {does}. " + (f"Finished: all {self.size} ranks are in it" if done else "In it")
        says += f", {ranks(twice)} twice," if twice else ""
        says += f", {tokens}." if done else f": {tokens}." if part.bucket == COUNT else f" now: {tokens}."
        beat = self.round_beat(part, int(schedule.round[row]))
        parts = (held, came) if arrival.adds else (came,)
        return Origin(self.where(part, rank, chunk), says, tuple(lines), counts, beat, parts)

    def _summed(self, part: AllReduce, rank: int, brought: tuple[Origin, ...]) -> Origin:
        """What an all-reduce has left on a rank whose messages nobody saw."""
        lines = []
        for i in self.elements(part, 0):
            terms = part.brought[:, i]
            total = f" = {number(float(terms.sum()))}" if self.size > 1 else ""
            lines.append((self.label(part, i), added(terms.tolist()) + total))
        counts = (1,) * self.size
        inside = "their counts" if part.bucket == COUNT else self.over(counts, part.micro_batch)
        says = (
            "The library has added up what all ranks brought; only the whole of it was measured. "
            f"Finished: all {self.size} ranks are in it, {inside}."
        )
        beat = self.round_beat(part, 0)
        return Origin(self.where(part, rank, 0), says, tuple(lines), counts, beat, brought)

    # -- counts and times --------------------------------------------------------------------------------

    def valid_of(self, rank: int) -> Origin:
        """A rank's valid-token count: its sequences, one micro-batch after the other."""
        lines = []
        for k, cell in enumerate(self.batch.assignment[rank]):
            which = f"sequence{'s' if len(cell) != 1 else ''} {listed(cell)}" if cell else "no sequence"
            which = f"{len(cell)} sequences" if len(cell) > 8 else which
            where = f"micro-batch {k + 1}: " if self.micro[rank] > 1 else ""
            values = self.batch.valid[list(cell)].tolist() if cell else [0]
            total = f" = {sum(values)}" if len(values) > 1 else ""
            lines.append((where + which, _shortened(values) + total))
        valid, tokens = int(self.valid[rank].sum()), int(self.tokens[rank].sum())
        if self.micro[rank] > 1:
            lines.append(
                ("all micro-batches", f"{added(self.valid[rank, : self.micro[rank]].tolist())} = {valid}")
            )
        lines.append(("masked or padding", f"{tokens} − {valid} = {tokens - valid}"))
        says = f"Dealt to rank {rank}: {plural(tokens, 'token')}, of which {valid} count in the loss."
        title = f"Valid tokens of rank {rank}"
        return Origin(title, says, tuple(lines), self._one(rank), f"{self.prefix}scatter")

    def all_valid(self) -> Origin:
        """N."""
        says = "The ranks add up their counts before they compute, so that all divide by the same number."
        line = ("valid tokens", f"{added(self.valid.sum(axis=1).tolist())} = {self.total}")
        return Origin("N, all valid tokens", says, (line,), (1,) * self.size, f"{self.prefix}count")

    def step_time(self) -> Origin:
        """The step time as the sum of its parts, on every rank (law 6), and all waiting added up."""
        m = step_metrics(self.trace, self.step)
        if m.step_time_s is None or m.wait_s is None or m.exposed_communication_s is None:
            return Origin("Step time", "There is none: this step never ends.", (), (), f"{self.prefix}hang")
        unit, name = _unit(m.step_time_s)
        shown = list(range(self.size))
        says = (
            "On every rank: scatter + count + compute + wait + exposed communication + optimizer = step time."
        )
        measured = self.trace.source != "simulated"
        if measured:
            says = f"{says[:-1]}, but for what lies between these."
        if self.size > SOME:
            shown = sorted({int(m.wait_s.argmax()), int(m.wait_s.argmin())})
            says += " Here: the rank that waits longest, and the last one."
        lines = []
        for r in shown:
            parts = [m.scatter_s[r], m.count_s[r], m.compute_s[r], m.wait_s[r], m.exposed_communication_s]
            terms = [float(p) / unit for p in [*parts, m.optimizer_s]]
            terms += [m.step_time_s / unit - sum(terms)] if measured else []
            whole = m.step_time_s / unit if self.scenario.exchange.awaited else sum(terms)
            total = f"{number(whole)} {name}"
            lines.append((f"rank {r}", f"{added(map(_clean, terms))} = {total}"))
        if not self.scenario.exchange.awaited:
            says = (
                "Nobody waits: on every rank scatter + count + compute + optimizer = a step time of its own. "
                f"From the first start to the last end it is {duration(m.step_time_s)}."
            )
            return Origin("Step time", says, tuple(lines), (), f"{self.prefix}optimizer")
        if 1 < self.size <= SOME:
            waits = " + ".join(number(_clean(float(w) / unit)) for w in m.wait_s)
            lines.append(("waited in all", f"{waits} = {number(float(m.wait_s.sum()) / unit)} {name}"))
        elif self.size > 1:
            lines.append((f"waited in all, {self.size} ranks", duration(float(m.wait_s.sum()))))
        beat = f"{self.prefix}{'barrier' + self.window(max(self.micro) - 1) if self.each else 'barrier'}"
        return Origin("Step time", says, tuple(lines), (), beat)


def _sum(arrival: Arrival, i: int) -> str:
    if not arrival.adds:
        return f"{number(float(arrival.now[i]))}, kept as it came"
    return f"{added([float(arrival.held[i]), float(arrival.payload[i])])} = {number(float(arrival.now[i]))}"


def _unit(seconds: float) -> tuple[float, str]:
    """The unit in which a step is written, so that its parts can be added up by hand."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    return next((u for u in units if seconds >= u[0]), units[-1])


def _clean(value: float) -> float:
    """A difference of two times that is no more than their rounding is none."""
    return 0.0 if abs(value) < 1e-9 else value


def _shortened(values: list[int]) -> str:
    return added(values) if len(values) <= 12 else f"{added(values[:12])} + …"


def inside_text(counts: Ints) -> str:
    """Which ranks are in a chunk, as runs: "0–3, 61–63"."""
    inside = np.flatnonzero(counts)
    runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs if len(run))
