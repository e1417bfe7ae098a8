"""One step of a trace told beat by beat: everything that is said is in the trace or a metric of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from dpsim.batch import GlobalBatch
from dpsim.beat import PHASES, Beat, Focus
from dpsim.collectives import Schedule
from dpsim.comparison import Comparison
from dpsim.contrast import contrast
from dpsim.contrast import in_words as as_line
from dpsim.edited import WITHOUT
from dpsim.metrics import synchronisations
from dpsim.mishaps import Slip, Told, come_late, hung, in_words, left_with, own_steps, slip_in, two_of
from dpsim.reduction import NAMES, reduction
from dpsim.replay import AllReduce, all_reduces
from dpsim.replicas import differ, furthest_from
from dpsim.rounds import arithmetic, brought_details, brought_lines, rule, transfer
from dpsim.timeline import COUNT, buckets
from dpsim.trace import BACKWARD, BARRIER, FORWARD, OPTIMIZER, SCATTER, Ints, Trace
from dpsim.wording import added, at_start, bracketed, duration, listed, number, plural, ranks, signed, vector

MOST_TOLD = 16  # ranks that are listed one by one; above, the rule of the round says it for all


class Teller:
    """Tells one step of `trace`."""

    def __init__(self, trace: Trace, step: int, batch: GlobalBatch, ways: Comparison) -> None:
        self.trace, self.step, self.batch = trace, step, batch
        self.scenario, self.events = trace.scenario, trace.events
        self.size = self.scenario.world_size
        self.ways = [as_line(line) for line in contrast(trace, step, ways)]
        self.synced = synchronisations(trace, step)
        self.wait_s = np.sum([np.zeros(self.size), *(s.wait_s for s in self.synced)], axis=0)
        self.reached = max(self.scenario.micro_batches) if not trace.hangs else trace.hangs.micro_batch + 1
        self.valid = trace.valid_tokens[step].sum(axis=1)
        self.tokens = batch.shard_counts(batch.lengths).sum(axis=1)
        self.table = reduction(self.scenario.reduction, trace.valid_tokens[step], self.scenario.micro_batches)
        self.prefix = f"s{step}." if step else ""
        self.several = max(self.scenario.micro_batches) > 1

    def tell(self) -> Iterator[Beat]:
        """The beats of the step, phase by phase; sort them by their moments."""
        yield self.start()
        yield self.scatter()
        parts = all_reduces(self.trace, self.step)
        yield from (self.count(part) for part in parts if part.bucket == COUNT)
        for k in range(self.reached):
            yield self.forward(k)
            yield from self.backward(k)
        for part in parts:
            if part.bucket != COUNT:
                yield from self.rounds(part) if not len(part.whole) else [self.all_reduce(part)]
        yield from self.barriers(parts)
        if self.trace.hangs:
            yield self.told("hang", hung(self.trace.hangs, self.scenario.micro_batches))
            return
        yield self.optimizer(parts)
        if not self.scenario.exchange.awaited:
            yield self.told("late", come_late(self.trace, self.step, parts), "gather")

    def beat(
        self,
        name: str,
        title: str,
        moment: float,
        sentence: str,
        arithmetic: list[str],
        details: list[str],
        focus: Focus | None = None,
        phase: str | None = None,
    ) -> Beat:
        return Beat(
            id=self.prefix + name,
            step=self.step,
            phase=phase or name.partition(".")[0],
            title=title,
            moment_s=moment,
            sentence=sentence,
            arithmetic=tuple(arithmetic),
            details=tuple(details),
            focus=focus,
        )

    def told(self, name: str, told: Told, phase: str | None = None) -> Beat:
        return self.beat(
            name,
            told.title,
            told.moment_s,
            told.sentence,
            self.each_rank(list(told.arithmetic)),
            self.each_rank(list(told.details)),
            phase=phase,
        )

    def ended(self, rows: Ints) -> float:
        return float(self.events.end_s[rows].max())

    def window(self, k: int) -> str:
        return f".m{k}" if self.several and k >= 0 else ""

    def each_rank(self, lines: list[str]) -> list[str]:
        """A line per rank where they can be read one by one."""
        return lines if self.size <= MOST_TOLD else []

    def start(self) -> Beat:
        count, total = len(self.batch.tokens), int(self.batch.lengths.sum())
        replicas_held = self.trace.parameters[self.step]
        held = vector(replicas_held[0].tolist())
        who = {1: "One replica holds the", 2: "Both replicas hold the same"}
        replicas = who.get(self.size, f"All {self.size} replicas hold the same")
        what = "parameter" if self.scenario.model.size == 1 else "parameters"
        holding = f"{replicas} {what}, {held}."
        if differ(replicas_held):
            holding = f"The {self.size} replicas are no longer equal: {two_of(replicas_held)}."
        sentence = (
            f"{holding} The global batch has {plural(count, 'sequence')} "
            f"with {plural(total, 'token')}; {self.batch.valid_total} of them are valid."
        )
        title = "Before the step" if self.trace.steps == 1 else f"Before step {self.step + 1}"
        scatter = self.events.where(step=self.step, kind=SCATTER)
        moment = float(self.events.start_s[scatter].max())  # where ranks do not start together: the last one
        return self.beat("start", title, moment, sentence, [f"θ = {held}"], [])

    def scatter(self) -> Beat:
        shares = [
            f"rank {r} gets {n} valid of {plural(t, 'token')}"
            for r, (n, t) in enumerate(zip(self.valid.tolist(), self.tokens.tolist(), strict=True))
        ]
        most, least = int(self.valid.argmax()), int(self.valid.argmin())
        text = (
            f"{'; '.join(shares)}."
            if self.size <= 4
            else f"from {self.valid[least]} valid (rank {least}) to {self.valid[most]} (rank {most})."
        )
        flat = [i for row in self.batch.assignment for cell in row for i in cell]
        again = sorted(i for i, times in Counter(flat).items() if times > 1)
        if again:
            which = f"{'sequence' if len(again) == 1 else 'sequences'} {listed(again)}"
            which = which if len(again) <= 8 else f"{len(again)} sequences"
            text += f" To give every rank the same number, the sampler repeats {which}."
        details = [
            f"rank {r}: "
            + "; ".join(
                f"sequence{'s' if len(cell) != 1 else ''} {listed(cell)}" if cell else "no sequence"
                for cell in row
            )
            + f": {self.valid[r]} valid of {plural(int(self.tokens[r]), 'token')}"
            for r, row in enumerate(self.batch.assignment)
        ]
        sums = [f"valid tokens: {added(self.valid.tolist())} = {self.valid.sum()}"]
        rows = self.events.where(step=self.step, kind=SCATTER)
        return self.beat(
            "scatter",
            "Scatter: the batch is dealt",
            self.ended(rows),
            f"Every rank gets its own part of the batch: {text}",
            sums if self.size <= MOST_TOLD else [f"valid tokens in all: N = {self.valid.sum()}"],
            self.each_rank(details),
        )

    def count(self, part: AllReduce) -> Beat:
        total = int(self.trace.counted[self.step, 0])
        sentence = (
            f"The labels are known, so the ranks add up their counts before they compute: "
            f"N = {total} valid tokens in all. Every rank now knows the same divisor."
        )
        values = part.brought[:, 0].tolist()
        sums = [f"N = {added(values)} = {total}" if self.size <= MOST_TOLD else f"N = {total}"]
        rows = np.array([*(a.event for a in part.arrivals), *part.whole], np.int64)
        scatter = self.ended(self.events.where(step=self.step, kind=SCATTER))
        moment = self.ended(rows) if len(rows) else scatter
        return self.beat("count", "Count: how many tokens are valid", moment, sentence, sums, [])

    def forward(self, k: int) -> Beat:
        trace, t = self.trace, self.step
        rows = self.events.where(step=t, kind=FORWARD, micro_batch=k)
        loss, valid = trace.loss_sums[t, :, k], trace.valid_tokens[t, :, k]
        here = [r for r in range(self.size) if self.scenario.micro_batches[r] > k]
        details = [
            f"rank {r}: loss sum {number(loss[r])} over {plural(int(valid[r]), 'valid token')}" for r in here
        ]
        first = here[0]
        if self.scenario.model.kind == "given":
            pairs = zip(trace.parameters[t, first], trace.gradient_sums[t, first, k], strict=True)
            terms = [f"{signed(a)} × {bracketed(b)}" for a, b in list(pairs)[:4]]
            written = " ".join(terms).removeprefix("+ ") + (" + …" if self.scenario.model.size > 4 else "")
            sums = [f"loss sum on rank {first}: θ · S = {written} = {number(loss[first])}"]
        else:
            sums = [
                f"loss sum on rank {first}: Σ −log p(label) over {plural(int(valid[first]), 'valid token')}"
                f" = {number(loss[first])}"
            ]
        total = f"loss sums: {added(loss[here].tolist())} = {number(float(loss[here].sum()))}"
        sentence = (
            f"Every rank sums the loss over its own valid tokens: {number(loss[first])} over "
            f"{valid[first]} on rank {first}. No rank has seen another's tokens."
        )
        if self.scenario.model.kind == "given":
            sentence += " (Here the loss is simply θ · S, so that its gradient is the S that was given.)"
        return self.beat(
            f"forward{self.window(k)}",
            f"Forward{self.ordinal(k)}: the loss on every rank",
            self.ended(rows),
            sentence,
            [*sums, total] if self.size <= MOST_TOLD else sums,
            self.each_rank(details),
        )

    def ordinal(self, k: int) -> str:
        if not self.several or k < 0:
            return ""
        return f", micro-batch {k + 1} of {max(self.scenario.micro_batches)}"

    def backward(self, k: int) -> Iterator[Beat]:
        rows = self.events.where(step=self.step, kind=BACKWARD, micro_batch=k)
        made = self.trace.buckets(self.step)
        if len(made) == 1 or (self.events.bucket[rows] < 0).all():
            yield self.whole_backward(k, rows)
            return
        syncing = self.scenario.buckets.sync_every_micro_batch or k + 1 == max(self.scenario.micro_batches)
        for b in sorted(set(self.events.bucket[rows].tolist())):
            own = rows[self.events.bucket[rows] == b]
            done = ", ".join(made[b].names) if b >= 0 else "all"
            sentence = (
                f"Backward reaches the last layers first. The gradient of {done} is complete: "
                f"bucket {b + 1} of {len(made)} is ready to travel."
                if b >= 0
                else "Some ranks still accumulate: their gradient stays at home in this micro-batch."
            )
            last = syncing and b == len(made) - 1
            yield self.beat(
                f"backward{self.window(k)}" + (f".b{b}" if b >= 0 else ""),
                f"Backward{self.ordinal(k)}" + (f": bucket {b + 1} of {len(made)}" if b >= 0 else ""),
                self.ended(own),
                sentence + (f" {self.arrival(k)}" if last else ""),
                brought_lines(self.trace, self.step, k),
                self.each_rank(brought_details(self.trace, self.step, k)) if last else [],
            )

    def whole_backward(self, k: int, rows: Ints) -> Beat:
        micro, each = self.scenario.micro_batches, self.scenario.buckets.sync_every_micro_batch
        later = len(buckets(self.scenario, 1))
        if each or k + 1 == max(micro):
            who = "Every rank" if min(micro) > k or not each else "Whoever has such a micro-batch"
            sentence = f"{who} has the gradient sum over its own valid tokens. {self.arrival(k)}"
        elif k + 1 in micro:
            through = ranks([r for r, n in enumerate(micro) if n == k + 1])
            sentence = f"The others still accumulate, while this was the last micro-batch of {through}."
        else:
            sentence = "The gradient sum stays on its rank: nothing travels before the last micro-batch."
        if self.step == 0 and later > 1:
            sentence += f" The very first backward uses one bucket; from the next step on there are {later}."
        return self.beat(
            f"backward{self.window(k)}",
            f"Backward{self.ordinal(k)}: a gradient on every rank",
            self.ended(rows),
            sentence,
            brought_lines(self.trace, self.step, k),
            self.each_rank(brought_details(self.trace, self.step, k)),
        )

    def arrival(self, k: int) -> str:
        """Who is last at the barrier behind micro-batch k."""
        if not self.scenario.exchange.awaited:
            return "And nobody waits: every rank goes on by itself."
        if self.trace.hangs and k == self.trace.hangs.micro_batch:
            return f"{at_start(ranks(self.trace.hangs.absent))} will not come to the all-reduce that follows."
        wait = next(s.wait_s for s in self.synced if s.micro_batch in (k, -1))
        late = np.flatnonzero(wait == 0).tolist()
        if self.size == 1:
            return "There is nobody to wait for."
        if len(late) == self.size:
            return "All ranks arrive together: nobody waits."
        who = ranks(late)
        verb = "is" if len(late) == 1 else "are"
        return (
            f"{who[0].upper()}{who[1:]} {verb} last, and the others wait up to {duration(float(wait.max()))}."
        )

    def rounds(self, part: AllReduce) -> Iterator[Beat]:
        schedule, wrong = part.schedule, slip_in(part, self.scenario)
        moment = float(self.events.end_s[self.events.where(step=self.step, kind=BACKWARD)].max())
        half = schedule.rounds // 2
        first, second = PHASES[self.scenario.algorithm]
        made = len(self.trace.buckets(self.step))
        which = f"bucket {part.bucket + 1} of {made}, " if made > 1 else ""
        for n in range(schedule.rounds):
            low, high = schedule.round_starts[n], schedule.round_starts[n + 1]
            arrivals = part.arrivals[low:high]
            told = range(low, high) if self.size <= MOST_TOLD else range(0)
            adds = schedule.reduces_in(n)
            label, place = (first, n + 1) if adds else (second, n + 1 - half)
            here = wrong if wrong is not None and wrong.round == n else None
            odd = [in_words(here, len(schedule.bounds) - 1)] if here else []
            if here and here.edit == WITHOUT:
                focus, sentence, sums = Focus(here.destination, -1, part.bucket, here.chunk), odd[0], []
            else:
                row = int(low) + self.shown_row(schedule, slice(low, high), here)
                ends = int(schedule.destination[row]), int(schedule.source[row])
                focus = Focus(*ends, part.bucket, int(schedule.chunk[row]))
                sentence = " ".join([*odd, transfer(part, row)])
                sums = [arithmetic(part, row)]
            moment = max((float(self.events.end_s[a.event]) for a in arrivals), default=moment)
            yield self.beat(
                f"allreduce{self.window(part.micro_batch)}.b{part.bucket}.r{n}",
                f"{label}{self.ordinal(part.micro_batch)}, {which}round {place} of {half}",
                moment,
                sentence,
                [*sums, *rule(schedule, n, wrong)],
                [transfer(part, i) for i in told],
                focus,
                "reduce" if adds else "gather",
            )

    @staticmethod
    def shown_row(schedule: Schedule, rows: slice, wrong: Slip | None) -> int:
        """Which transfer of a round is told: that of the lowest chunk, or the second time of one that comes
        twice."""
        if wrong is None:
            return int(np.argmin(schedule.chunk[rows]))
        same = (schedule.source[rows] == wrong.source) & (schedule.destination[rows] == wrong.destination)
        return int(np.flatnonzero(same & (schedule.chunk[rows] == wrong.chunk))[-1])

    def all_reduce(self, part: AllReduce) -> Beat:
        """An all-reduce that was measured as a whole: no message of it is known."""
        made = self.trace.buckets(self.step)
        which = f", bucket {part.bucket + 1} of {len(made)}" if len(made) > 1 else ""
        spent = self.events.end_s[part.whole] - self.events.start_s[part.whole]
        total = vector(part.brought.sum(axis=0).tolist())
        sentence = (
            f"The library adds up the gradient of {', '.join(made[part.bucket].names)} over all ranks in a "
            f"way of its own. Only the whole was measured: from {duration(float(spent.min()))} to "
            f"{duration(float(spent.max()))} on a rank."
        )
        return self.beat(
            f"allreduce{self.window(part.micro_batch)}.b{part.bucket}",
            f"All-reduce{self.ordinal(part.micro_batch)}{which}, measured as a whole",
            self.ended(part.whole),
            sentence,
            [f"what the ranks bring adds up to {total}"],
            self.each_rank([f"rank {r} brings {vector(v.tolist())}" for r, v in enumerate(part.brought)]),
            phase="reduce",
        )

    def barriers(self, parts: list[AllReduce]) -> Iterator[Beat]:
        rows = self.events.where(step=self.step, kind=BARRIER)
        windows = sorted(set(self.events.micro_batch[rows].tolist()))
        for k in windows:
            own = rows[self.events.micro_batch[rows] == k]
            last = k == windows[-1] and not self.trace.hangs
            waited = float(self.wait_s.sum())
            sentence = "Every rank holds the same sum, and no rank goes on before the last one is done."
            if odd := self.odd(parts, [k]):
                sentence = f"No rank goes on before the last one is done. But the sum is wrong: {odd}."
            if last and self.trace.undefined[self.step]:
                sentence += " But this sum is not used: there is no mean."
            late = np.flatnonzero(self.wait_s == 0).tolist()
            if last and waited > 0 and len(late) == 1:
                sentence += f" The others have waited {duration(waited)} in all for rank {late[0]}."
            elif last and waited > 0:
                sentence += f" Together the ranks have waited {duration(waited)}."
            yield self.beat(
                f"barrier{self.window(k)}",
                f"Barrier{self.ordinal(k)}",
                self.ended(own),
                sentence if self.size > 1 else "One rank alone has nobody to wait for.",
                self.reduced_lines() if last else [],
                self.each_rank([f"rank {r} waited {duration(float(w))}" for r, w in enumerate(self.wait_s)])
                if last
                else [],
            )

    def odd(self, parts: list[AllReduce], windows: Iterable[int]) -> str:
        """What is missing or counted twice behind the all-reduces of some windows; empty where nothing is."""
        made = len(self.trace.buckets(self.step)) if self.scenario.exchange.moves_otherwise else 0
        for k in windows if made else ():
            own = [part for part in parts if part.bucket != COUNT and part.micro_batch == k]
            if told := [
                (f"in bucket {part.bucket + 1}, " if made > 1 else "") + odd
                for part in own
                if (odd := left_with(part))
            ]:
                return "; ".join(told)
        return ""

    def reduced_lines(self) -> list[str]:
        gradient = self.trace.gradient(self.step)
        if gradient is None:
            return [f"undefined: {self.trace.undefined[self.step]}"]
        if differ(self.trace.reduced[self.step]):
            found = self.trace.reduced[self.step]
            pair = (0, furthest_from(found, 0))
            return [f"the gradient on rank {r}: {vector(found[r].tolist())}" for r in pair]
        divided = {
            "token_weighted": f" / N = … / {self.valid.sum()}",
            "custom": "",
        }.get(self.table.name, f" / R = … / {self.size}")
        total = (gradient / self.table.after).tolist()
        shown = divided.replace("…", vector(total))
        return [f"{NAMES[self.table.name]}: sum{shown} = {vector(gradient.tolist())}"]

    def optimizer(self, parts: list[AllReduce]) -> Beat:
        trace, t = self.trace, self.step
        rows = self.events.where(step=t, kind=OPTIMIZER)
        gradient, windows = trace.gradient(t), [s.micro_batch for s in self.synced]
        if gradient is None:
            kind = BARRIER if self.scenario.exchange.awaited else BACKWARD
            barrier = self.ended(self.events.where(step=t, kind=kind))
            name = NAMES[self.table.name]
            sentence = (
                f"The optimizer step is skipped: the {name} is undefined, since {trace.undefined[t]}. "
                f"The parameters stay as they are."
            )
            return self.beat("optimizer", "Optimizer: skipped", barrier, sentence, [], self.ways)
        before, after = trace.parameters[t, 0], trace.parameters[t + 1, 0]
        chosen, rate = self.scenario.optimizer, number(self.scenario.optimizer.learning_rate)
        plain = chosen.kind == "sgd" and (chosen.clip_norm is None or chosen.clip == "before")
        lines = [
            (
                f"θ{i}: {number(a)} − {rate} × {bracketed(g)} = {number(b)}"
                if plain
                else f"θ{i}: {number(a)} becomes {number(b)} (gradient {number(g)}, rate {rate})"
            )
            for i, (a, g, b) in enumerate(zip(before[:4], gradient[:4], after[:4], strict=True))
        ]
        if differ(trace.parameters[t + 1]):
            told = own_steps(trace, t, parts, self.odd(parts, windows))
            return self.told("optimizer", replace(told, details=(*told.details, *self.ways)))
        how = {"sgd": "θ′ = θ − rate × g", "momentum": "SGD with momentum", "adam": "Adam"}[chosen.kind]
        clip = ", the gradient clipped first" if chosen.clip_norm and chosen.clip == "after" else ""
        who = {1: "The replica takes its", 2: "Both replicas take the same"}
        replicas = who.get(self.size, f"All {self.size} replicas take the same")
        sentence = (
            f"{replicas} step ({how}{clip}): {vector(before.tolist())} becomes "
            f"{vector(after.tolist())}" + (", and they stay equal." if self.size > 1 else ".")
        )
        if why := self.odd(parts, windows):
            sentence += f" So no replica shows that it is the wrong step: {why}."
        return self.beat("optimizer", "Optimizer step", self.ended(rows), sentence, lines, self.ways)
