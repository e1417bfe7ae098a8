"""The global batch: sequences, labels and masks, and the ways to deal them to ranks and micro-batches."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsim.scenario import MASKED, Scenario

Ints = NDArray[np.int64]
Assignment = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, eq=False)
class GlobalBatch:
    """The sequences as dealt. `tokens[i]` and `labels[i]` have the length of sequence i; a label of
    -100 does not count. `assignment[r][k]` holds sequence numbers."""

    tokens: tuple[Ints, ...]
    labels: tuple[Ints, ...]
    assignment: Assignment

    @cached_property
    def lengths(self) -> Ints:
        """All tokens of each sequence."""
        return np.array([len(t) for t in self.tokens], np.int64)

    @cached_property
    def valid(self) -> Ints:
        """Valid tokens of each sequence."""
        return np.array([int(np.sum(y != MASKED)) for y in self.labels], np.int64)

    @property
    def valid_total(self) -> int:
        """Valid tokens of the batch before dealing, where no sequence is repeated."""
        return int(self.valid.sum())

    def shard_counts(self, values: Ints) -> Ints:
        """`values` per sequence, summed for every rank and micro-batch [R, max K]; 0 beyond a rank's K."""
        most = max(map(len, self.assignment))
        table = np.zeros((len(self.assignment), most), np.int64)
        for r, row in enumerate(self.assignment):
            for k, cell in enumerate(row):
                table[r, k] = values[list(cell)].sum() if cell else 0
        return table


def global_batch(scenario: Scenario) -> GlobalBatch:
    """The batch of `scenario`, the same at every step."""
    tokens, labels = _sequences(scenario)
    lengths = [len(t) for t in tokens]
    valid = [int(np.sum(y != MASKED)) for y in labels]
    return GlobalBatch(tokens, labels, _deal(scenario, lengths, valid))


def _sequences(scenario: Scenario) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    batch, model = scenario.batch, scenario.model
    if batch.tokens is not None and batch.labels is not None:
        return (
            tuple(np.array(t, np.int64) for t in batch.tokens),
            tuple(np.array(y, np.int64) for y in batch.labels),
        )
    draw = np.random.default_rng([scenario.seed, 1])
    if batch.lengths is not None and batch.valid is not None:
        lengths, valid = list(batch.lengths), list(batch.valid)
    else:
        sizes = draw.integers(1, batch.max_length, batch.count, endpoint=True)
        lengths = [int(n) for n in sizes]
        valid = [int(draw.integers(0, n, endpoint=True)) for n in lengths]
    tokens, labels = [], []
    for length, count in zip(lengths, valid, strict=True):
        if model.kind == "bigram":
            text = draw.integers(0, model.vocabulary, length + 1)
            x, y = text[:-1], text[1:].copy()  # the label is the next token
        else:
            x = np.arange(1, length + 1)
            y = x % model.vocabulary
        y[count:] = MASKED
        tokens.append(x.astype(np.int64))
        labels.append(y.astype(np.int64))
    return tuple(tokens), tuple(labels)


def _deal(scenario: Scenario, lengths: list[int], valid: list[int]) -> Assignment:
    batch, ranks, count = scenario.batch, scenario.world_size, len(lengths)
    if batch.assignment is not None:
        return batch.assignment
    if batch.shard == "contiguous":
        rows = split(list(range(count)), ranks)
    elif batch.shard == "strided":
        # torch's DistributedSampler without drop_last: the indices are repeated from the start until
        # every rank gets the same number, then rank r takes every R-th.
        padded = [i % count for i in range(-(-count // ranks) * ranks)]
        rows = [padded[r::ranks] for r in range(ranks)]
    else:
        rows = _balance(lengths if batch.shard == "longest_first" else valid, ranks)
    micro = scenario.micro_batches
    return tuple(tuple(tuple(cell) for cell in split(row, k)) for row, k in zip(rows, micro, strict=True))


def split(items: list[int], parts: int) -> list[list[int]]:
    """`items` in `parts` runs whose lengths differ by at most one, the longer ones first."""
    size, extra = divmod(len(items), parts)
    stops = [size * p + min(p, extra) for p in range(parts + 1)]
    return [items[a:b] for a, b in itertools.pairwise(stops)]


def _balance(weights: list[int], ranks: int) -> list[list[int]]:
    """Greedy: the heaviest sequence first, each to the rank that has least so far (the lowest of equals)."""
    rows: list[list[int]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for i in sorted(range(len(weights)), key=lambda i: -weights[i]):
        r = min(range(ranks), key=lambda r: (load[r], len(rows[r])))
        rows[r].append(i)
        load[r] += weights[i]
    return rows
