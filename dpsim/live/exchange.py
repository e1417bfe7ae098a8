"""Two ways to add a vector up over all ranks: a schedule's messages, and the library's own all-reduce.

The third way of a live run, DistributedDataParallel, is in `dpsim.live.ddp`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
import torch.distributed as dist

from dpsim.collectives import build
from dpsim.live.board import ALL_REDUCE as EXCHANGING
from dpsim.live.board import COUNT as COUNTING
from dpsim.live.board import Board
from dpsim.live.plan import Message, Round, plan
from dpsim.live.recorder import Mark, Recorder, Where
from dpsim.scenario import Scenario
from dpsim.timeline import COUNT
from dpsim.trace import ALL_REDUCE, RECEIVE, SEND

Finish = Callable[[], None]


class Chunks:
    """Executes the scenario's schedule with point-to-point messages, and records every one of them."""

    overlaps = False  # its rounds are the rank's own work, so they follow its backward

    def __init__(self, scenario: Scenario, rank: int, recorder: Recorder, board: Board) -> None:
        self._rank, self._recorder, self._board = rank, recorder, board
        size = scenario.world_size
        self._plan: Callable[[str, int], tuple[Round, ...]] = lru_cache(maxsize=None)(
            lambda collective, elements: plan(build(collective, size, elements), rank)
        )
        # What is done wrong is done wrong with the gradient; the count is added up as it should be.
        self._gradient, self._count = scenario.collective, scenario.algorithm
        # A device's clock only sees what the device sends; Gloo sends from the host.
        on_device = dist.get_backend() == "nccl"
        self._mark = recorder.clock.mark if on_device else recorder.clock.host_mark
        self._swap = _swap_grouped if on_device else _swap

    def begin(self, vector: torch.Tensor, where: Where) -> Finish:
        """Sum `vector` (1-D, replaced by the sum) over all ranks, when what comes back is called."""
        return lambda: self._run(vector, where)

    def _run(self, vector: torch.Tensor, where: Where) -> None:
        phase = COUNTING if where.bucket == COUNT else EXCHANGING
        collective = self._count if where.bucket == COUNT else self._gradient
        for turn in self._plan(collective, len(vector)):
            self._board.post(
                self._rank, phase, where.step, where.micro_batch, max(where.bucket, -1), turn.number
            )
            # Copies: a round reads the state at its start, whatever arrives meanwhile.
            out = [torch.cat([vector[part] for part in message.parts]) for message in turn.sends]
            came = [vector.new_empty(message.elements) for message in turn.receives]
            posted = self._mark()
            taken = self._swap(turn, out, came, self._mark)
            for message, buffer, at in zip(turn.receives, came, taken, strict=True):
                self._take(vector, message, buffer)
                self._record(RECEIVE, where, turn.number, message, buffer, posted, at)
            done = self._mark()
            for message, buffer in zip(turn.sends, out, strict=True):
                self._record(SEND, where, turn.number, message, buffer, posted, done)

    @staticmethod
    def _take(vector: torch.Tensor, message: Message, buffer: torch.Tensor) -> None:
        parts = torch.split(buffer, message.lengths)
        for part, values in zip(message.parts, parts, strict=True):
            if message.adds:
                vector[part] += values
            else:
                vector[part] = values

    def _record(
        self,
        kind: int,
        where: Where,
        number: int,
        message: Message,
        values: torch.Tensor,
        start: Mark,
        end: Mark,
    ) -> None:
        parts = torch.split(values, message.lengths)
        for chunk, part in zip(message.chunks, parts, strict=True):
            self._recorder.add(
                kind,
                where,
                start,
                end,
                round=number,
                peer=message.peer,
                chunk=chunk,
                size=part.numel() * part.element_size(),
                payload=part if kind == RECEIVE else None,
            )


def _swap(
    turn: Round, out: list[torch.Tensor], came: list[torch.Tensor], mark: Callable[[], Mark]
) -> list[Mark]:
    """Post a round's receives, then its sends, then wait: no order of ranks can make this hang. Gives the
    moment at which each receive was there."""
    receives = [dist.irecv(buffer, m.peer) for m, buffer in zip(turn.receives, came, strict=True)]
    sends = [dist.isend(buffer, m.peer) for m, buffer in zip(turn.sends, out, strict=True)]
    taken = []
    for work in receives:
        _wait(work)
        taken.append(mark())
    for work in sends:
        _wait(work)
    return taken


def _wait(work: dist.Work | None) -> None:
    assert work is not None, "it is only where this rank is not of the group"
    work.wait()


def _swap_grouped(
    turn: Round, out: list[torch.Tensor], came: list[torch.Tensor], mark: Callable[[], Mark]
) -> list[Mark]:
    """The same for NCCL, which needs a round's messages as one group, and ends them together."""
    messages = [dist.P2POp(dist.irecv, buffer, m.peer) for m, buffer in zip(turn.receives, came, strict=True)]
    messages += [dist.P2POp(dist.isend, buffer, m.peer) for m, buffer in zip(turn.sends, out, strict=True)]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    return [mark()] * len(came)


class Library:
    """The backend's own all-reduce, which may run while backward goes on."""

    overlaps = True

    def __init__(self, rank: int, recorder: Recorder, board: Board) -> None:
        self._rank, self._recorder, self._board = rank, recorder, board

    def begin(self, vector: torch.Tensor, where: Where) -> Finish:
        """Start summing `vector` over all ranks; it holds the sum when what comes back has been called."""
        phase = COUNTING if where.bucket == COUNT else EXCHANGING
        self._board.post(self._rank, phase, where.step, where.micro_batch, max(where.bucket, -1))
        future = whole(self._recorder, vector, where)

        def finish() -> None:
            future.wait()

        return finish


def whole(recorder: Recorder, vector: torch.Tensor, where: Where) -> torch.futures.Future[torch.Tensor]:
    """Start the backend's sum of `vector` in place, and record it as a whole when it ends."""
    size, start = vector.numel() * vector.element_size(), recorder.clock.mark()
    work = dist.all_reduce(vector, async_op=True)

    def ended(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        recorder.add(ALL_REDUCE, where, start, recorder.clock.mark(), size=size)
        return future.value()[0]

    future: torch.futures.Future[torch.Tensor] = work.get_future().then(ended)
    return future


def probe(dtype: torch.dtype, device: torch.device) -> dict[str, str]:
    """Whether the backend's SUM and AVG do what they say: ranks bring 1, 2, …, R."""
    size, rank = dist.get_world_size(), dist.get_rank()
    found = {}
    for name, op, right in (
        ("SUM", dist.ReduceOp.SUM, size * (size + 1) / 2),
        ("AVG", dist.ReduceOp.AVG, (size + 1) / 2),
    ):
        value = torch.full((1,), rank + 1.0, dtype=dtype, device=device)
        try:
            dist.all_reduce(value, op=op)
        except (RuntimeError, ValueError):
            if name == "SUM":  # every backend has it: another rank has died, or this one cannot go on
                raise
            found[name] = "not supported"
            continue
        got = value.item()
        found[name] = "right" if got == right else f"wrong: {got:g} instead of {right:g}"
    return found
