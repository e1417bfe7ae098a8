"""One step of a trace told beat by beat: everything that is said is in the trace or a metric of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dpsim.batch import GlobalBatch
from dpsim.beat import PHASES, Beat, Focus
from dpsim.comparison import Comparison
from dpsim.contrast import contrast, in_words
from dpsim.metrics import synchronisations
from dpsim.reduction import NAMES, reduction
from dpsim.replay import AllReduce, all_reduces
from dpsim.rounds import arithmetic, brought_details, brought_lines, rule, transfer
from dpsim.timeline import COUNT, buckets
from dpsim.trace import BACKWARD, BARRIER, FORWARD, OPTIMIZER, SCATTER, Ints, Trace
from dpsim.wording import added, bracketed, duration, listed, number, plural, ranks, signed, vector

MOST_TOLD = 16  # ranks that are listed one by one; above, the rule of the round says it for all


class Teller:
    """Tells one step of `trace`."""

    def __init__(self, trace: Trace, step: int, batch: GlobalBatch, ways: Comparison) -> None:
        self.trace, self.step, self.batch = trace, step, batch
        self.scenario, self.events = trace.scenario, trace.events
        self.size = self.scenario.world_size
        self.ways = [in_words(line) for line in contrast(trace, step, ways)]
        self.synced = synchronisations(trace, step)
        self.wait_s = np.sum([s.wait_s for s in self.synced], axis=0)
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
        for k in range(max(self.scenario.micro_batches)):
            yield self.forward(k)
            yield from self.backward(k)
        for part in parts:
            if part.bucket != COUNT:
                yield from self.rounds(part) if not len(part.whole) else [self.all_reduce(part)]
        yield from self.barriers()
        yield self.optimizer()

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

    def ended(self, rows: Ints) -> float:
        return float(self.events.end_s[rows].max())

    def window(self, k: int) -> str:
        return f".m{k}" if self.several and k >= 0 else ""

    def each_rank(self, lines: list[str]) -> list[str]:
        """A line per rank where they can be read one by one."""
        return lines if self.size <= MOST_TOLD else []

    def start(self) -> Beat:
        count, total = len(self.batch.tokens), int(self.batch.lengths.sum())
        held = vector(self.trace.parameters[self.step, 0].tolist())
        who = {1: "One replica holds the", 2: "Both replicas hold the same"}
        replicas = who.get(self.size, f"All {self.size} replicas hold the same")
        what = "parameter" if self.scenario.model.size == 1 else "parameters"
        sentence = (
            f"{replicas} {what}, {held}. The global batch has {plural(count, 'sequence')} "
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
            sentence = f"Every rank has the gradient sum over its own valid tokens. {self.arrival(k)}"
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
        schedule = part.schedule
        half = schedule.rounds // 2
        first, second = PHASES[self.scenario.collective]
        made = len(self.trace.buckets(self.step))
        which = f"bucket {part.bucket + 1} of {made}, " if made > 1 else ""
        for n in range(schedule.rounds):
            low, high = schedule.round_starts[n], schedule.round_starts[n + 1]
            arrivals = part.arrivals[low:high]
            told = range(low, high) if self.size <= MOST_TOLD else range(0)
            row = low + int(np.argmin(schedule.chunk[low:high]))
            adds = schedule.reduces_in(n)
            label, place = (first, n + 1) if adds else (second, n + 1 - half)
            yield self.beat(
                f"allreduce{self.window(part.micro_batch)}.b{part.bucket}.r{n}",
                f"{label}{self.ordinal(part.micro_batch)}, {which}round {place} of {half}",
                max(float(self.events.end_s[a.event]) for a in arrivals),
                transfer(part, row),
                [arithmetic(part, row), *rule(schedule, n)],
                [transfer(part, i) for i in told],
                Focus(
                    int(schedule.destination[row]),
                    int(schedule.source[row]),
                    part.bucket,
                    int(schedule.chunk[row]),
                ),
                "reduce" if adds else "gather",
            )

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

    def barriers(self) -> Iterator[Beat]:
        rows = self.events.where(step=self.step, kind=BARRIER)
        windows = sorted(set(self.events.micro_batch[rows].tolist()))
        for k in windows:
            own = rows[self.events.micro_batch[rows] == k]
            last = k == windows[-1]
            waited = float(self.wait_s.sum())
            sentence = "Every rank holds the same sum, and no rank goes on before the last one is done."
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

    def reduced_lines(self) -> list[str]:
        gradient = self.trace.gradient(self.step)
        if gradient is None:
            return [f"undefined: {self.trace.undefined[self.step]}"]
        divided = {
            "token_weighted": f" / N = … / {self.valid.sum()}",
            "custom": "",
        }.get(self.table.name, f" / R = … / {self.size}")
        total = (gradient / self.table.after).tolist()
        shown = divided.replace("…", vector(total))
        return [f"{NAMES[self.table.name]}: sum{shown} = {vector(gradient.tolist())}"]

    def optimizer(self) -> Beat:
        trace, t = self.trace, self.step
        rows = self.events.where(step=t, kind=OPTIMIZER)
        gradient = trace.gradient(t)
        if gradient is None:
            barrier = self.ended(self.events.where(step=t, kind=BARRIER))
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
        how = {"sgd": "θ′ = θ − rate × g", "momentum": "SGD with momentum", "adam": "Adam"}[chosen.kind]
        clip = ", the gradient clipped first" if chosen.clip_norm and chosen.clip == "after" else ""
        who = {1: "The replica takes its", 2: "Both replicas take the same"}
        replicas = who.get(self.size, f"All {self.size} replicas take the same")
        sentence = (
            f"{replicas} step ({how}{clip}): {vector(before.tolist())} becomes "
            f"{vector(after.tolist())}" + (", and they stay equal." if self.size > 1 else ".")
        )
        return self.beat("optimizer", "Optimizer step", self.ended(rows), sentence, lines, self.ways)
