"""All-reduce as data: a schedule of transfers, four builders of it, and the interpreter that moves values.

A row says: in this round, source sends this chunk to destination, which adds it (reduce) or keeps it (copy).
A round reads the state at its start. Rows of one round, source and destination are one message.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsim.edited import TWICE, WITHOUT, parsed

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

REDUCE, COPY = 0, 1
OPS = ("reduce", "copy")


@dataclass(frozen=True, eq=False)
class Schedule:
    """The rows of one all-reduce in columns, sorted by round, source, destination, chunk.

    Chunk c is the elements bounds[c] to bounds[c + 1]. `rounds` counts those of the algorithm.
    """

    algorithm: str
    world_size: int
    bounds: NDArray[np.int64]
    rounds: int
    round: Ints
    source: Ints
    destination: Ints
    chunk: Ints
    op: Ints

    @property
    def elements(self) -> int:
        """Length of the vector that is reduced."""
        return int(self.bounds[-1])

    @cached_property
    def chunk_elements(self) -> NDArray[np.int64]:
        """Elements in every chunk."""
        return np.diff(self.bounds)

    @cached_property
    def round_starts(self) -> NDArray[np.int64]:
        """Row at which each round starts, and the number of rows at the end: [rounds + 1]."""
        return np.searchsorted(self.round, np.arange(self.rounds + 1))

    @cached_property
    def message_starts(self) -> NDArray[np.int64]:
        """Row at which each message starts."""
        if len(self.round) == 0:
            return np.zeros(0, np.int64)
        new = np.zeros(len(self.round), bool)
        new[0] = True
        for column in (self.round, self.source, self.destination):
            new[1:] |= column[1:] != column[:-1]
        return np.flatnonzero(new)

    def bytes_sent(self, bytes_per_element: float = 4.0) -> Floats:
        """Bytes that every rank sends: [R]."""
        sizes = self.chunk_elements[self.chunk] * bytes_per_element
        return np.bincount(self.source, weights=sizes, minlength=self.world_size).astype(np.float64)

    def reduces_in(self, round_number: int) -> bool:
        """Whether what arrives in this round is added, as in the first half, or kept as it is."""
        return 2 * round_number < self.rounds


Columns = tuple[NDArray[np.integer], ...]


def unseen(world_size: int, elements: int) -> Schedule:
    """An all-reduce of which no message is known: the whole vector in one round, without a row."""
    none = np.zeros(0, np.int32)
    return Schedule("unseen", world_size, np.array([0, elements]), 1, none, none, none, none, none)


def even_bounds(elements: int, chunks: int) -> NDArray[np.int64]:
    """Bounds of `chunks` chunks whose lengths differ by at most one element, the longer ones first."""
    size, extra = divmod(elements, chunks)
    c = np.arange(chunks + 1)
    return c * size + np.minimum(c, extra)


def build(collective: str, world_size: int, elements: int) -> Schedule:
    """The schedule of a collective for a vector of `elements` on `world_size` ranks, with what is done wrong
    in it: `dpsim.edited` tells how that is written."""
    chosen = parsed(collective)
    chunks, rounds, made = BUILDERS[chosen.algorithm](world_size)
    columns = [column.astype(np.int32, copy=False) for column in made]
    bounds = even_bounds(elements, chunks)
    key = columns[0].astype(np.int64)
    for column, size in zip(columns[1:4], (world_size, world_size, chunks), strict=True):
        key *= size
        key += column
    if np.any(key[1:] < key[:-1]):
        order = np.argsort(key)
        columns = [column[order] for column in columns]
    schedule = Schedule(chosen.algorithm, world_size, bounds, rounds, *columns)
    if chosen.edit == WITHOUT:
        schedule = without_row(schedule, chosen.row)
    elif chosen.edit == TWICE:
        schedule = with_row_twice(schedule, chosen.row)
    # A chunk without elements is not sent: a vector may be shorter than the ring is long.
    if elements < chunks:
        schedule = _edited(schedule, np.flatnonzero(schedule.chunk_elements[schedule.chunk] > 0))
    return schedule


def _ring(size: int) -> tuple[int, int, Columns]:
    """Patarasuk and Yuan 2009: reduce-scatter, then all-gather, every rank to its right neighbour.

    Rank r sends chunk r - n in round n, in both: all-gather round s is round n = R - 1 + s, and there
    r + 1 - s = r - n modulo R.
    """
    rounds = 2 * (size - 1)
    n, r = np.arange(rounds, dtype=np.int32)[:, None], np.arange(size, dtype=np.int32)
    op = np.where(n < size - 1, np.int32(REDUCE), np.int32(COPY))
    columns = np.broadcast_arrays(n, r, (r + 1) % size, (r - n) % size, op)
    return size, rounds, tuple(column.ravel() for column in columns)


def _tree(size: int) -> tuple[int, int, Columns]:
    """A binomial tree to rank 0 and back, the whole vector in one chunk."""
    levels = (size - 1).bit_length()
    parts: list[Columns] = []
    for s in range(levels):
        child = np.arange(2**s, size, 2 ** (s + 1))
        parent = child - 2**s
        last = 2 * levels - 1 - s
        parts.append(_rows(s, child, parent, np.zeros_like(child), REDUCE))
        parts.append(_rows(last, parent, child, np.zeros_like(child), COPY))
    return 1, 2 * levels, _joined(parts)


def _halving_doubling(size: int) -> tuple[int, int, Columns]:
    """Recursive halving, then doubling (Thakur et al. 2005). Ranks beyond the last power of two hand all
    they have to rank r - p first, and get the result back at the end."""
    levels = size.bit_length() - 1
    p = 2**levels
    extra = np.arange(p, size)
    fold = int(size > p)
    parts: list[Columns] = []
    every = np.arange(p)
    if fold:
        who, chunk = np.repeat(extra, p), np.tile(every, size - p)
        parts.append(_rows(0, who, who - p, chunk, REDUCE))
        parts.append(_rows(2 * levels + 1, who - p, who, chunk, COPY))
    for s in range(levels):
        distance = p >> (s + 1)
        rank = np.repeat(every, distance)
        partner = rank ^ distance
        # After s halvings a rank works on the chunks that share its s highest bits; it sends the half
        # that its partner keeps. On the way back it sends the half it has completed.
        offset = np.tile(np.arange(distance), p)
        theirs, own = partner // distance * distance + offset, rank // distance * distance + offset
        parts.append(_rows(fold + s, rank, partner, theirs, REDUCE))
        parts.append(_rows(fold + 2 * levels - 1 - s, rank, partner, own, COPY))
    return p, 2 * (levels + fold), _joined(parts)


def _parameter_server(size: int) -> tuple[int, int, Columns]:
    """Rank 0 is the server: every worker pushes the whole vector to it and pulls the sum back."""
    worker = np.arange(1, size)
    server, chunk = np.zeros_like(worker), np.zeros_like(worker)
    push = _rows(0, worker, server, chunk, REDUCE)
    pull = _rows(1, server, worker, chunk, COPY)
    return 1, 2 * (size > 1), _joined([push, pull])


def _rows(round_number: int, source: NDArray[np.int64], *rest: NDArray[np.int64] | int) -> Columns:
    destination, chunk, op = rest
    same = np.full_like(source, round_number)
    return (same, source, np.asarray(destination), np.asarray(chunk), np.full_like(source, op))


def _joined(parts: list[Columns]) -> Columns:
    empty: Columns = (np.zeros(0, np.int64),) * 5
    return tuple(np.concatenate(columns) for columns in zip(empty, *parts, strict=True))


BUILDERS: dict[str, Callable[[int], tuple[int, int, Columns]]] = {
    "ring": _ring,
    "tree": _tree,
    "halving-doubling": _halving_doubling,
    "parameter-server": _parameter_server,
}


def run_values(schedule: Schedule, values: Floats) -> tuple[Floats, list[Floats]]:
    """Move `values` [R, E] along the schedule; the final values and the payload of every row."""
    state = values.copy()
    payloads: list[Floats] = []
    bounds = schedule.bounds
    sends = schedule.source.tolist(), schedule.destination.tolist(), schedule.chunk.tolist()
    ops, starts = schedule.op.tolist(), schedule.round_starts.tolist()
    for first, stop in itertools.pairwise(starts):
        rows = list(zip(*(column[first:stop] for column in sends), strict=True))
        payloads += [state[source, bounds[c] : bounds[c + 1]].copy() for source, _, c in rows]
        for row, (_, destination, c) in enumerate(rows, first):
            target = state[destination, bounds[c] : bounds[c + 1]]
            if ops[row] == REDUCE:
                target += payloads[row]
            else:
                target[:] = payloads[row]
    return state, payloads


def contributions(schedule: Schedule) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Who is in what: the values interpreter on the identity matrix.

    Returns counts [R, C, R] at the end (how often the last axis' rank went into a chunk on the first axis'
    rank) and, for every row, the counts [R] in its payload. A chunk that was added twice shows a 2.
    """
    size, chunks = schedule.world_size, len(schedule.chunk_elements)
    counting = replace(schedule, bounds=np.arange(chunks + 1) * size)
    final, payloads = run_values(counting, np.tile(np.eye(size), (1, chunks)))
    whole = final.reshape(size, chunks, size).astype(np.int64)
    return whole, [p.astype(np.int64) for p in payloads]


def without_row(schedule: Schedule, row: int) -> Schedule:
    """The schedule with one transfer dropped."""
    return _edited(schedule, np.delete(np.arange(len(schedule.round)), row))


def with_row_twice(schedule: Schedule, row: int) -> Schedule:
    """The schedule with one transfer done twice."""
    return _edited(schedule, np.insert(np.arange(len(schedule.round)), row, row))


def _edited(schedule: Schedule, rows: NDArray[np.int64]) -> Schedule:
    names = ("round", "source", "destination", "chunk", "op")
    return replace(schedule, **{name: getattr(schedule, name)[rows] for name in names})
