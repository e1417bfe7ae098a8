"""From micro-batches to a step's gradient: by buckets over an exchange, or by DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from dpsim.live import board as phases
from dpsim.live.board import Board
from dpsim.live.ddp import Watch, wrap
from dpsim.live.exchange import Chunks, Finish, Library
from dpsim.live.job import Job
from dpsim.live.models import Inputs, flat
from dpsim.live.recorder import Mark, Recorder, Where
from dpsim.live.replica import Replica, clip_factor
from dpsim.reduction import Reduction
from dpsim.timeline import NONE, buckets
from dpsim.trace import BACKWARD, BARRIER, FORWARD

Barrier = Callable[[int, int], None]


@dataclass(frozen=True)
class Window:
    """One step's work on this rank: its micro-batches, the factors, and how often each pass is made."""

    step: int
    given: list[Inputs]
    table: Reduction
    repeats: int


class _Passes:
    """What both ways share: the passes of a micro-batch, and what is kept of them.

    `sums` and `scaled` [K, P], `losses` [K]: of the last step.
    """

    def __init__(
        self,
        job: Job,
        rank: int,
        replica: Replica,
        recorder: Recorder,
        board: Board,
        exchange: Chunks | Library,
    ) -> None:
        self.job, self.rank, self.scenario = job, rank, job.scenario
        self.replica, self.recorder, self.board, self.exchange = replica, recorder, board, exchange
        most, width = max(self.scenario.micro_batches), self.scenario.model.size
        self.sums = torch.zeros(most, width, dtype=replica.dtype, device=replica.device)
        self.scaled, self.losses = torch.zeros_like(self.sums), torch.zeros_like(self.sums[:, 0])
        self.each = self.scenario.buckets.sync_every_micro_batch
        self.last = self.scenario.micro_batches[rank] - 1
        self.tick = partial(board.tick, rank)
        self.k = 0
        self.marks: list[Mark] = []

    def forward(self, window: Window, k: int, model: torch.nn.Module) -> torch.Tensor:
        """The loss sum of micro-batch k."""
        self.k, self.marks = k, []
        self.board.post(self.rank, phases.FORWARD, window.step, k)
        passed = self.recorder.span(FORWARD, Where(window.step, k, NONE))
        loss = self.replica.forward(model, window.given[k], window.repeats, self.tick)
        passed()
        self.losses[k] = loss.detach()
        self.board.post(self.rank, phases.BACKWARD, window.step, k)
        return loss

    def record_backward(self, step: int, k: int, start: Mark, ends: list[Mark], *, syncing: bool) -> None:
        """One event per bucket where the gradient travels, one in all where it stays."""
        for b, end in enumerate(ends if syncing else ends[-1:]):
            self.recorder.add(BACKWARD, Where(step, k, b if syncing else NONE), start, end)
            start = end

    def check(self) -> None:
        """InputError where a run was not what its trace would say."""


class ByBuckets(_Passes):
    """Gradient sums times their factor are accumulated in `scaled`; a bucket leaves when it is full."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        chosen, ways = self.scenario.optimizer, self.scenario.buckets
        # Who clips before the average has to know the whole gradient before any of it leaves.
        self.clips = chosen.clip_norm if chosen.clip == "before" else None
        self.early = self.exchange.overlaps and ways.overlap and self.clips is None
        self.missing: list[int] = []
        self.syncing = False
        for i, parameter in enumerate(self.replica.parameters):
            parameter.register_post_accumulate_grad_hook(partial(self._accumulated, i))

    def gradient(self, window: Window, barrier: Barrier) -> torch.Tensor:
        """The step's gradient [P], the same on every rank."""
        self.window, self.made = window, buckets(self.scenario, window.step)
        self.total = torch.zeros_like(self.sums[0])
        for k in range(self.last + 1):
            self.syncing = self.each or k == self.last
            self.leaving: list[tuple[slice, torch.Tensor, Finish]] = []
            loss = self.forward(window, k, self.replica.module)
            self._backward(loss)
            if self.syncing:
                self._arrive(barrier, k if self.each else NONE)
        return self.total * window.table.after

    def _backward(self, loss: torch.Tensor) -> None:
        start = self.recorder.clock.mark()
        self.replica.repeat_backward(loss, self.window.repeats, self.tick)
        self.replica.forget_gradient()
        self.missing = [len(bucket.names) for bucket in self.made]
        loss.backward()
        if not self.early:  # else a bucket is on its way from the moment it is full
            self.marks[-1] = self.recorder.clock.mark()
        self.record_backward(self.window.step, self.k, start, self.marks, syncing=self.syncing)

    def _accumulated(self, i: int, parameter: torch.Tensor) -> None:
        """The gradient of parameter i is there: multiply it by its factor; does that fill a bucket?"""
        assert parameter.grad is not None
        part, k = self.replica.parts[i], self.k
        self.sums[k, part] = parameter.grad.reshape(-1)
        self.scaled[k, part] = self.sums[k, part] * float(self.window.table.before[self.rank, k])
        b = next(b for b, bucket in enumerate(self.made) if bucket.start <= part.start < bucket.stop)
        self.missing[b] -= 1
        if self.missing[b] == 0:
            self.marks.append(self.recorder.clock.mark())
            if self.syncing and self.early:
                self._leave(b)

    def _leave(self, b: int) -> None:
        """Send what this rank brings of bucket b on its way."""
        part = slice(self.made[b].start, self.made[b].stop)
        rows = self.scaled[self.k : self.k + 1, part] if self.each else self.scaled[: self.last + 1, part]
        brought = rows[0].clone()
        for row in rows[1:]:
            brought += row
        brought = brought.to(self.replica.wire)
        where = Where(self.window.step, self.k if self.each else NONE, b)
        self.leaving.append((part, brought, self.exchange.begin(brought, where)))

    def _arrive(self, barrier: Barrier, micro_batch: int) -> None:
        """Take in the sums of all buckets."""
        arrived = self.recorder.clock.mark()
        if self.clips is not None:
            own = self.scaled[: self.last + 1].sum(dim=0) * self.scenario.world_size * self.window.table.after
            self.scaled *= clip_factor(own, self.clips)
        for b in range(0 if not self.early else len(self.made), len(self.made)):
            self._leave(b)
        for part, vector, finish in self.leaving:
            finish()
            self.total[part] += vector.to(self.replica.device)
        if self.job.mode != "chunks":
            where = Where(self.window.step, micro_batch, NONE)
            self.recorder.add(BARRIER, where, arrived, self.recorder.clock.mark())
        barrier(self.window.step, micro_batch)


class ByDdp(_Passes):
    """DistributedDataParallel averages the gradient of a loss that is scaled so that the average is right."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.ddp = wrap(self.replica.module, self.scenario, broadcast=self.job.broadcast)
        self.watch = Watch(self.replica.module, self.recorder, self._full)
        self.ddp.register_comm_hook(None, self.watch.hook)
        self.factor, self.watching = 0.0, False
        for i, parameter in enumerate(self.replica.parameters):
            parameter.register_hook(partial(self._seen, i))

    def gradient(self, window: Window, barrier: Barrier) -> torch.Tensor:
        """The step's gradient [P], the same on every rank."""
        before = window.table.before[self.rank]
        self.replica.forget_gradient()
        for k in range(self.last + 1):
            # The average divides by R: what a rank brings is R w S.
            self.factor = self.scenario.world_size * window.table.after * float(before[k])
            syncing = self.each or k == self.last
            with nullcontext() if syncing else self.ddp.no_sync():
                loss = self.forward(window, k, self.ddp)
                self._backward(window, loss, syncing)
            self.scaled[k] = self.sums[k] * float(before[k])
        return flat([p.grad for p in self.replica.parameters if p.grad is not None])

    def _backward(self, window: Window, loss: torch.Tensor, syncing: bool) -> None:
        step, k = window.step, self.k
        self.watch.where = Where(step, k if self.each else NONE, NONE)
        start = self.recorder.clock.mark()
        self.replica.repeat_backward(loss, window.repeats, self.tick)
        if self.factor == 0:  # what is multiplied by zero cannot be divided out again
            self.sums[k] = flat(list(self.replica.gradients(loss)))
        self.watching = True
        (loss * self.factor).backward()
        self.watching = False
        end = self.recorder.clock.mark()
        self.record_backward(step, k, start, self.marks or [end], syncing=syncing)
        if (
            syncing
        ):  # backward has ended with the last average; this rank's own part ended with its last bucket
            self.recorder.add(BARRIER, self.watch.where, self.marks[-1], end)

    def _full(self, _: int) -> None:
        self.marks.append(self.recorder.clock.mark())

    def _seen(self, i: int, gradient: torch.Tensor) -> None:
        """The gradient of parameter i in this backward alone, before it is added up and averaged."""
        if self.watching and self.factor != 0:
            self.sums[self.k, self.replica.parts[i]] = gradient.reshape(-1) / self.factor

    def check(self) -> None:
        """InputError where torch has made other buckets than the trace will speak of."""
        self.watch.check(self.scenario)
