"""The board: a small shared file on which every rank says what it does, so that it is known after its death.

Writing to it is a copy of 24 bytes and no system call, so it may stand in the middle of what is measured.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

SLOT = struct.Struct("<6i")

# In the order in which a step goes through them; "rank 1 was killed …"
PHASES = (
    "while starting",
    "while joining the other ranks",
    "while warming up",
    "while taking its tokens",
    "while counting valid tokens",
    "in the forward pass",
    "in the backward pass",
    "in the all-reduce",
    "at the barrier",
    "in the optimizer step",
    "while handing in its results",
)
(
    STARTING,
    JOINING,
    WARMING_UP,
    SCATTER,
    COUNT,
    FORWARD,
    BACKWARD,
    ALL_REDUCE,
    BARRIER,
    OPTIMIZER,
    HANDING_IN,
) = range(len(PHASES))


@dataclass(frozen=True, order=True)
class Activity:
    """What a rank did last; -1 stands where a number does not apply. Later activities compare greater."""

    step: int = -1
    phase: int = STARTING
    micro_batch: int = -1
    bucket: int = -1
    round: int = -1
    tick: int = 0

    @property
    def told(self) -> str:
        """The activity as the end of a sentence."""
        named = (("step", self.step), ("micro-batch", self.micro_batch), ("bucket", self.bucket))
        where = [f"{name} {value + 1}" for name, value in (*named, ("round", self.round)) if value >= 0]
        return " of ".join([PHASES[self.phase], ", ".join(where)] if where else [PHASES[self.phase]])


class Board:
    """The slots of all ranks in the file at `path`."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @classmethod
    def made(cls, path: Path, ranks: int) -> Board:
        """A fresh board for `ranks` ranks."""
        path.write_bytes(SLOT.pack(-1, STARTING, -1, -1, -1, 0) * ranks)
        return cls(path)

    def post(
        self, rank: int, phase: int, step: int = -1, micro_batch: int = -1, bucket: int = -1, round: int = -1
    ) -> None:
        """Say what `rank` is about to do."""
        SLOT.pack_into(self._memory, rank * SLOT.size, step, phase, micro_batch, bucket, round, 0)

    def tick(self, rank: int, count: int) -> None:
        """A sign of life in the middle of something long."""
        struct.pack_into("<i", self._memory, rank * SLOT.size + SLOT.size - 4, count)

    def read(self, rank: int) -> Activity:
        """What `rank` said last."""
        return Activity(*SLOT.unpack_from(self._memory, rank * SLOT.size))

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()
