"""How the ranks that torchrun has started meet: through its store at first, then by messages over Gloo.

Whatever they tell each other is JSON or whole numbers, never an object that would be run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from dpsim.live.errors import LiveError
from dpsim.live.job import Job
from dpsim.live.offsets import Exchange, Offset, offset

TIMEOUT = timedelta(seconds=120)  # of one wait for another rank: what a whole run on one host may take
SPOKEN = timedelta(seconds=5)  # writing a line takes far less, on a busy machine too
# The quickest counts, so that a few hiccups do no harm; together a hundredth of a second on a local network.
EXCHANGES = 100


class Meeting:
    """One rank's way to all others."""

    def __init__(self) -> None:
        self.store, self.rank, self.size = next(rendezvous("env://", timeout=TIMEOUT))

    def told(self, text: str, about: str) -> list[str]:
        """What all ranks say about something, each its own text."""
        self.store.set(f"dpsim.{about}.{self.rank}", text)
        return [self.store.get(f"dpsim.{about}.{rank}").decode() for rank in range(self.size)]

    def decide(self, text: str) -> None:
        """At rank 0: say what is to be done; nothing, where that has failed."""
        self.store.set("dpsim.decided", text)

    def decided(self) -> str:
        """What rank 0 says is to be done."""
        text: str = self.store.get("dpsim.decided").decode()
        if not text:
            raise LiveError("rank 0 has given up")
        return text

    def first_to_fail(self) -> bool:
        """Whether no other rank has failed yet: what follows a failure are but its effects. Whoever is not
        the first leaves the first the time to speak, since torchrun ends all when one ends."""
        try:
            if self.store.add("dpsim.failed", 1) == 1:
                return True
            self.store.wait(["dpsim.spoken"], SPOKEN)
        except RuntimeError:  # torchrun, which keeps the store, or the first has gone without a word
            return True
        return False

    def has_spoken(self) -> None:
        """The failure has been told; nobody needs to wait for this rank any more."""
        try:
            self.store.set("dpsim.spoken", "")
            if self.rank == 0:
                self.decide("")
        except RuntimeError:
            return

    def begin(self, job: Job) -> None:
        """Form the process group, and beside it one over Gloo, for what lies in the hosts' memory."""
        device = torch.device(job.devices[self.rank])
        if device.type == "cuda":
            torch.cuda.set_device(device)
        store = self.store.clone()  # a connection of its own: while one waits there, another can still speak
        dist.init_process_group(
            job.backend, store=store, rank=self.rank, world_size=self.size, timeout=TIMEOUT
        )
        self._hosts = dist.new_group(backend="gloo", timeout=TIMEOUT)

    def offsets(self, leaders: Sequence[int]) -> list[Offset]:
        """At rank 0: how far ahead the clocks of the other hosts are, each asked by its first rank. The other
        leaders answer, and whoever is none has nothing to do."""
        found = []
        for peer in leaders[1:]:
            if self.rank == 0:
                found.append(offset([self._ask(peer) for _ in range(EXCHANGES)]))
            elif self.rank == peer:
                for _ in range(EXCHANGES):
                    self._answer()
        return found

    def _ask(self, peer: int) -> Exchange:
        question, answer = torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        sent = time.perf_counter_ns()
        dist.send(question, peer, group=self._hosts)
        dist.recv(answer, peer, group=self._hosts)
        back = time.perf_counter_ns()
        came, answered = answer.tolist()
        return Exchange(sent, came, answered, back)

    def _answer(self) -> None:
        question, answer = torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        dist.recv(question, 0, group=self._hosts)
        answer[0] = time.perf_counter_ns()
        answer[1] = time.perf_counter_ns()
        dist.send(answer, 0, group=self._hosts)

    def collected(self, text: str) -> list[str]:
        """At rank 0 the texts of all ranks, in order; elsewhere none."""
        if self.rank != 0:
            self._send(text)
            return []
        return [text, *(self._received(rank) for rank in range(1, self.size))]

    def _send(self, text: str) -> None:
        data = torch.frombuffer(bytearray(text, "utf-8"), dtype=torch.uint8)
        dist.send(torch.tensor([len(data)]), 0, group=self._hosts)
        dist.send(data, 0, group=self._hosts)

    def _received(self, rank: int) -> str:
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, rank, group=self._hosts)
        data = torch.empty(int(length), dtype=torch.uint8)
        dist.recv(data, rank, group=self._hosts)
        return data.numpy().tobytes().decode("utf-8")

    def end(self) -> None:
        """Part, once rank 0 has written everything down: until then all of them can still fail together."""
        dist.barrier(group=self._hosts)
        dist.destroy_process_group()
