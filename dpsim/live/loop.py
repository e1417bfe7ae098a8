"""The loop of one rank: scatter, count, forward and backward, all-reduce, barrier, optimizer step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from dpsim.batch import global_batch
from dpsim.checks import InputError
from dpsim.live import board as phases
from dpsim.live.board import Board
from dpsim.live.errors import LiveError
from dpsim.live.exchange import Chunks, Library, probe
from dpsim.live.job import Job
from dpsim.live.recorder import Clock, Recorder, Where
from dpsim.live.replica import Replica, clip_factor, optimizer, valid_tokens
from dpsim.live.synchronise import ByBuckets, ByDdp, Window
from dpsim.reduction import NEEDS_COUNT, Reduction, reduction
from dpsim.timeline import COUNT, NONE
from dpsim.trace import BARRIER, OPTIMIZER, SCATTER

WARM_UP_TURNS = 2  # as many as there are unrecorded steps
MESSAGE_TURNS = 25  # enough for a median, and under a second on a laptop's CPU


@dataclass
class Kept:
    """What one rank keeps of a run, an entry per step (and the start, for the parameters)."""

    parameters: list[torch.Tensor] = field(default_factory=list)
    loss_sums: list[torch.Tensor] = field(default_factory=list)
    gradient_sums: list[torch.Tensor] = field(default_factory=list)
    scaled: list[torch.Tensor] = field(default_factory=list)
    reduced: list[torch.Tensor] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The same as lists of numbers."""
        rows = vars(self).items()
        return {name: [v if isinstance(v, int) else v.tolist() for v in values] for name, values in rows}


class Loop:
    """One rank's part of a job, inside a process group that stands."""

    def __init__(self, job: Job, rank: int, board: Board) -> None:
        self.job, self.rank, self.board, self.scenario = job, rank, board, job.scenario
        self.batch = global_batch(self.scenario)
        self.valid = self.batch.shard_counts(self.batch.valid)
        self.replica = Replica(job, rank)
        self.recorder = Recorder(Clock(self.replica.device))
        self.exchange: Chunks | Library = Library(rank, self.recorder, board)
        if job.mode == "chunks":
            self.exchange = Chunks(self.scenario, rank, self.recorder, board)
        self.optimizer = optimizer(self.scenario.optimizer, self.replica.parameters)
        self.kept = Kept()

    def run(self) -> dict[str, Any]:
        """All steps; what the launcher makes its trace of."""
        probed = probe(self.replica.dtype, self.replica.wire)
        if probed["SUM"] != "right":
            raise LiveError(
                f"the backend {self.job.backend} cannot be trusted with sums: SUM is {probed['SUM']}"
            )
        self.board.post(self.rank, phases.WARMING_UP)
        ways = ByDdp if self.job.mode == "ddp" else ByBuckets
        if self.job.broadcast:
            self.replica.take_from_rank_0()
        self.way = ways(self.job, self.rank, self.replica, self.recorder, self.board, self.exchange)
        # torch sets much up when it is first used, and DistributedDataParallel makes its buckets anew after
        # the first backward, in the second forward: neither belongs into what is measured.
        for _ in range(2):
            self.step(0, warm_up=True)
        dist.barrier()
        zero = self.recorder.clock.start()
        self.recorder.on = self.job.record
        self.kept.parameters.append(self.replica.vector())
        for t in range(self.scenario.steps):
            self.step(t)
        ended = self.recorder.clock.host_mark()
        self.recorder.on = False
        messages = self.message_times()
        self.board.post(self.rank, phases.HANDING_IN)
        self.way.check()
        return {
            **self.kept.plain(),
            "zero_ns": zero,
            "end_ns": ended,
            "events": self.recorder.columns(self.rank),
            "payloads": self.recorder.payloads(),
            "probe": probed,
            "own_start": self.replica.own_start,
            "messages": messages,
        }

    def message_times(self) -> list[list[tuple[int, int]]]:
        """When an all-reduce started and ended here, in nanoseconds, for every turn and message of the job.

        It is that of the steps, on a vector of which each rank's chunk is such a message. The sizes take
        turns, so that what slows the machine down for a while slows all of them.
        """
        size, wire = self.scenario.world_size, self.replica.wire
        vectors = [torch.zeros(size * n, dtype=self.replica.dtype, device=wire) for n in self.job.messages]
        where = Where(self.scenario.steps - 1, NONE, NONE)
        turns = []
        for _ in range(WARM_UP_TURNS + MESSAGE_TURNS if vectors else 0):
            times = []
            for vector in vectors:
                dist.barrier()
                start = self.recorder.clock.host_mark()
                self.exchange.begin(vector, where)()
                times.append((start, self.recorder.clock.host_mark()))
            turns.append(times)
        return turns[WARM_UP_TURNS:]

    def step(self, t: int, *, warm_up: bool = False) -> None:
        """One step. In a warm-up nothing is kept, and the parameters stay."""
        whole = Where(t, NONE, NONE)
        self.board.post(self.rank, phases.SCATTER, t)
        scattered = self.recorder.span(SCATTER, whole)
        given = self.replica.inputs(self.job, self.batch, self.rank)
        scattered()
        counted = self.count(t) if self.scenario.reduction in NEEDS_COUNT else -1
        table = self.table(counted)
        window = Window(t, given, table, 1 if warm_up else self.replica.repeats)
        gradient = self.way.gradient(window, self.barrier)
        if warm_up:
            self.replica.forget_gradient()
            return
        optimized = table.undefined is None and bool(self.valid.sum() > 0)
        if optimized:
            self.board.post(self.rank, phases.OPTIMIZER, t)
            stepped = self.recorder.span(OPTIMIZER, whole)
            self.take_step(gradient)
            stepped()
            self.check_parameters(t)
        self.kept.parameters.append(self.replica.vector())
        if self.job.record:
            self.kept.loss_sums.append(self.way.losses.clone())
            self.kept.gradient_sums.append(self.way.sums.clone())
            self.kept.scaled.append(self.way.scaled.clone())
            self.kept.reduced.append(gradient if optimized else torch.zeros_like(gradient))
            self.kept.counted.append(counted)

    def count(self, t: int) -> int:
        """The valid tokens of all ranks in the whole window, as an int64 that travels before forward."""
        own = valid_tokens(self.batch, self.rank)
        total = torch.tensor([own], dtype=torch.int64, device=self.replica.wire)
        self.exchange.begin(total, Where(t, NONE, COUNT))()
        return int(total.item())

    def table(self, counted: int) -> Reduction:
        """The factors. Where they hold N, it is the count that has travelled, not one that is known here."""
        seen = self.valid
        if counted >= 0:
            seen = np.zeros_like(self.valid)
            seen[self.rank] = self.valid[self.rank]
            seen[self.rank - 1, 0] += counted - seen[self.rank].sum()  # the rest is on other ranks
        return reduction(self.scenario.reduction, seen, self.scenario.micro_batches)

    def barrier(self, t: int, micro_batch: int) -> None:
        """Wait for all ranks. In chunks mode every message is this rank's own work, so the wait for others
        is a barrier of its own; elsewhere an all-reduce ends only when all have contributed."""
        if self.job.mode == "chunks":
            self.board.post(self.rank, phases.BARRIER, t, micro_batch)
            passed = self.recorder.span(BARRIER, Where(t, micro_batch, NONE))
            dist.barrier()
            passed()

    def take_step(self, gradient: torch.Tensor) -> None:
        """The optimizer step with `gradient`, clipped first where that is chosen."""
        chosen = self.scenario.optimizer
        if chosen.clip_norm is not None and chosen.clip == "after":
            gradient = gradient * clip_factor(gradient, chosen.clip_norm)
        self.replica.set_gradient(gradient.clone())
        self.optimizer.step()
        self.replica.forget_gradient()

    def check_parameters(self, t: int) -> None:
        """InputError where the parameters have run away."""
        if self.replica.ran_away():
            rule = (
                f"must be small enough for the parameters to stay finite in {self.job.dtype} (step {t + 1})"
            )
            raise InputError("optimizer.learning_rate", rule, self.scenario.optimizer.learning_rate)
