"""A schedule from one rank's side: whom it sends what in every round, and whose message it takes in."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from dpsim.collectives import REDUCE, Schedule


@dataclass(frozen=True)
class Message:
    """Chunks that travel together between this rank and `peer`: their numbers and where they lie in the
    vector. The receiver adds them (`adds`) or keeps them."""

    peer: int
    chunks: tuple[int, ...]
    parts: tuple[slice, ...]
    adds: bool

    @property
    def lengths(self) -> list[int]:
        """The length of every chunk."""
        return [part.stop - part.start for part in self.parts]

    @property
    def elements(self) -> int:
        """The length of the message."""
        return sum(self.lengths)


@dataclass(frozen=True)
class Round:
    """What one rank does in one round. Messages stand in the schedule's order: so sums are formed in it."""

    number: int
    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


def plan(schedule: Schedule, rank: int) -> tuple[Round, ...]:
    """The rounds in which `rank` has something to do, in order."""
    columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk, schedule.op)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    bounds = schedule.bounds.tolist()
    made: dict[int, tuple[list[Message], list[Message]]] = {}
    for (number, source, destination, op), group in groupby(rows, key=lambda row: (*row[:3], row[4])):
        if rank not in (source, destination):
            continue
        chunks = tuple(row[3] for row in group)
        parts = tuple(slice(bounds[c], bounds[c + 1]) for c in chunks)
        sends, receives = made.setdefault(number, ([], []))
        if rank == source:
            sends.append(Message(destination, chunks, parts, op == REDUCE))
        else:
            receives.append(Message(source, chunks, parts, op == REDUCE))
    return tuple(Round(n, tuple(sends), tuple(receives)) for n, (sends, receives) in made.items())
