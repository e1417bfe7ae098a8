"""The parts of a scenario: model, batch, optimizer, compute, network, buckets. Each checks itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsim.checks import InputError, choice, flag, number, sequence, whole

MAX_RANKS = 1024
MAX_STEPS = 1000
MAX_SEQUENCES = 4096
MAX_LENGTH = 4096
MAX_TOKENS = 65536
MAX_MICRO_BATCHES = 64
MAX_PARAMETERS = 4096

MASKED = -100  # the label of a token that does not count: torch's CrossEntropyLoss default ignore_index

MODELS = ("bigram", "scalar", "given")
SHARDS = ("contiguous", "strided", "longest_first", "balance_valid", "by_hand")
SCHEMES = (
    "token_weighted",
    "mean_of_rank_means",
    "mean_of_micro_batch_means",
    "token_weighted_not_compensated",
    "sum_over_world_size",
)
COLLECTIVES = ("ring", "tree", "halving-doubling", "parameter-server")
OPTIMIZERS = ("sgd", "momentum", "adam")


def put(part: object, **values: Any) -> None:
    """Set fields of a frozen part while it is made."""
    for name, value in values.items():
        object.__setattr__(part, name, value)


def counts(name: str, value: Any, low: int, high: int, longest: int) -> tuple[int, ...]:
    """`value` as a tuple of whole numbers in [low, high]."""
    return tuple(whole(f"{name}[{i}]", v, low, high) for i, v in enumerate(sequence(name, value, longest)))


@dataclass(frozen=True)
class Model:
    """The tiny model. `gradient_sums` [R][K][P] belongs to `given`; `parameters` (P) overrides the start."""

    kind: str = "bigram"
    vocabulary: int = 8
    width: int = 2
    gradient_sums: tuple[tuple[tuple[float, ...], ...], ...] | None = None
    parameters: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        choice("model.kind", self.kind, MODELS)
        put(self, vocabulary=whole("model.vocabulary", self.vocabulary, 2, 64))
        put(self, width=whole("model.width", self.width, 1, 16))
        if (self.kind == "given") != (self.gradient_sums is not None):
            rule = "is needed for the model 'given', and only there"
            raise InputError("model.gradient_sums", rule, self.gradient_sums)
        if self.gradient_sums is not None:
            put(self, gradient_sums=self._given(self.gradient_sums))
        if self.parameters is not None:
            values = sequence("model.parameters", self.parameters, MAX_PARAMETERS, self.size)
            numbers = [number(f"model.parameters[{i}]", v, -1e50, 1e50) for i, v in enumerate(values)]
            put(self, parameters=tuple(numbers))

    @staticmethod
    def _given(table: Any) -> tuple[tuple[tuple[float, ...], ...], ...]:
        size: int | None = None
        ranks = []
        for r, row in enumerate(sequence("model.gradient_sums", table, MAX_RANKS)):
            vectors = []
            for k, cell in enumerate(sequence(f"model.gradient_sums[{r}]", row, MAX_MICRO_BATCHES)):
                where = f"model.gradient_sums[{r}][{k}]"
                listed = cell if isinstance(cell, (list, tuple)) else [cell]
                vector = sequence(where, listed, MAX_PARAMETERS, size)
                size = len(vector)
                vectors.append(tuple(number(f"{where}[{i}]", v) for i, v in enumerate(vector)))
            ranks.append(tuple(vectors))
        return tuple(ranks)

    @property
    def size(self) -> int:
        """How many parameters the model has."""
        if self.gradient_sums is not None:
            return len(self.gradient_sums[0][0])
        if self.kind == "scalar":
            return self.vocabulary
        return self.vocabulary * (2 * self.width + 1)


@dataclass(frozen=True)
class Batch:
    """The global batch, written in one of three ways, and how it is dealt to ranks and micro-batches.

    `lengths` (and `valid`: how many of a sequence's tokens count, the first ones; absent: all), or
    `tokens` and `labels` (-100 for what does not count), or `sequences` of up to `max_length` tokens
    drawn from the scenario's seed.
    """

    lengths: tuple[int, ...] | None = None
    valid: tuple[int, ...] | None = None
    tokens: tuple[tuple[int, ...], ...] | None = None
    labels: tuple[tuple[int, ...], ...] | None = None
    sequences: int | None = None
    max_length: int = 8
    shard: str = "contiguous"
    assignment: tuple[tuple[tuple[int, ...], ...], ...] | None = None
    micro_batches: int | tuple[int, ...] = 1

    def __post_init__(self) -> None:
        choice("batch.shard", self.shard, SHARDS)
        given = [n for n in ("lengths", "tokens", "sequences") if getattr(self, n) is not None]
        if len(given) != 1:
            raise InputError("batch", "needs one of lengths, tokens, sequences", given)
        for name, base in (("valid", "lengths"), ("labels", "tokens")):
            if getattr(self, name) is not None and getattr(self, base) is None:
                raise InputError(f"batch.{name}", f"goes with {base}", getattr(self, name))
        put(self, max_length=whole("batch.max_length", self.max_length, 1, MAX_LENGTH))
        total = self._check_lengths() if self.lengths is not None else 0
        total = self._check_tokens() if self.tokens is not None else total
        if self.sequences is not None:
            put(self, sequences=whole("batch.sequences", self.sequences, 1, MAX_SEQUENCES))
            total = self.count * self.max_length
        if total > MAX_TOKENS:
            raise InputError("batch", f"must have at most {MAX_TOKENS} tokens", total)
        self._check_dealing()

    def _check_lengths(self) -> int:
        lengths = counts("batch.lengths", self.lengths, 0, MAX_LENGTH, MAX_SEQUENCES)
        values = lengths if self.valid is None else self.valid
        valid = sequence("batch.valid", values, MAX_SEQUENCES, len(lengths))
        checked = tuple(whole(f"batch.valid[{i}]", v, 0, lengths[i]) for i, v in enumerate(valid))
        put(self, lengths=lengths, valid=checked)
        return sum(lengths)

    def _check_tokens(self) -> int:
        rows = sequence("batch.tokens", self.tokens, MAX_SEQUENCES)
        if self.labels is None:
            raise InputError("batch.labels", "is needed beside batch.tokens", None)
        marks = sequence("batch.labels", self.labels, MAX_SEQUENCES, len(rows))
        tokens, labels = [], []
        for i, (row, mark) in enumerate(zip(rows, marks, strict=True)):
            tokens.append(counts(f"batch.tokens[{i}]", row, -10_000, 10_000, MAX_LENGTH))
            same = sequence(f"batch.labels[{i}]", mark, MAX_LENGTH, len(tokens[-1]))
            labels.append(counts(f"batch.labels[{i}]", same, MASKED, 63, MAX_LENGTH))
        put(self, tokens=tuple(tokens), labels=tuple(labels))
        return sum(map(len, tokens))

    def _check_dealing(self) -> None:
        if (self.shard == "by_hand") != (self.assignment is not None):
            rule = "is needed for the shard 'by_hand', and only there"
            raise InputError("batch.assignment", rule, self.assignment)
        if isinstance(self.micro_batches, (list, tuple)):
            each = counts("batch.micro_batches", self.micro_batches, 1, MAX_MICRO_BATCHES, MAX_RANKS)
            put(self, micro_batches=each)
        else:
            k = whole("batch.micro_batches", self.micro_batches, 1, MAX_MICRO_BATCHES)
            put(self, micro_batches=k)
        if self.assignment is None:
            return
        if self.micro_batches != 1:
            rule = "follows from batch.assignment and must be left out beside it"
            raise InputError("batch.micro_batches", rule, self.micro_batches)
        dealt = []
        for r, row in enumerate(sequence("batch.assignment", self.assignment, MAX_RANKS)):
            name = f"batch.assignment[{r}]"
            cells = sequence(name, row, MAX_MICRO_BATCHES)
            dealt.append(
                tuple(
                    counts(f"{name}[{k}]", cell, 0, self.count - 1, MAX_SEQUENCES)
                    if cell != [] and cell != ()
                    else ()
                    for k, cell in enumerate(cells)
                )
            )
        flat = sorted(i for row in dealt for cell in row for i in cell)
        if flat != list(range(self.count)):
            rule = f"must deal each of the sequences 0 to {self.count - 1} exactly once"
            raise InputError("batch.assignment", rule, self.assignment)
        put(self, assignment=tuple(dealt))

    @property
    def count(self) -> int:
        """How many sequences the global batch has."""
        if self.sequences is not None:
            return self.sequences
        return len(self.lengths if self.lengths is not None else self.tokens or ())


@dataclass(frozen=True)
class Optimizer:
    """The optimizer and its usual coefficients; `clip_norm` clips `before` or `after` the average."""

    kind: str = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_norm: float | None = None
    clip: str = "after"

    def __post_init__(self) -> None:
        choice("optimizer.kind", self.kind, OPTIMIZERS)
        choice("optimizer.clip", self.clip, ("after", "before"))
        rate = number("optimizer.learning_rate", self.learning_rate, 0, 1e6)
        epsilon = number("optimizer.epsilon", self.epsilon, 0, 1, open_low=True)
        put(self, learning_rate=rate, epsilon=epsilon)
        for name in ("momentum", "beta1", "beta2"):
            value = number(f"optimizer.{name}", getattr(self, name), 0, 1, open_high=True)
            put(self, **{name: value})
        if self.clip_norm is not None:
            put(self, clip_norm=number("optimizer.clip_norm", self.clip_norm, 0, 1e9, open_low=True))


@dataclass(frozen=True)
class Compute:
    """What computing costs: seconds per token at speed 1, a speed per rank (a straggler is below 1)."""

    forward_s_per_token: float = 0.00025
    backward_s_per_token: float = 0.0005
    speed: tuple[float, ...] | None = None
    optimizer_s: float = 0.0005
    work_factor: int = 1

    def __post_init__(self) -> None:
        for name in ("forward_s_per_token", "backward_s_per_token", "optimizer_s"):
            put(self, **{name: number(f"compute.{name}", getattr(self, name), 0, 3600)})
        put(self, work_factor=whole("compute.work_factor", self.work_factor, 1, 1_000_000))
        if self.speed is not None:
            values = sequence("compute.speed", self.speed, MAX_RANKS)
            speeds = (number(f"compute.speed[{i}]", v, 0.001, 1000) for i, v in enumerate(values))
            put(self, speed=tuple(speeds))


@dataclass(frozen=True)
class Network:
    """A link: a message of B bytes takes latency_s + B / bandwidth. `gradient_bytes` is what the tiny
    gradient stands for in time and in buckets (absent: 4 bytes an element)."""

    latency_s: float = 0.0001
    bandwidth_bytes_per_s: float = 10e9
    gradient_bytes: float | None = None

    def __post_init__(self) -> None:
        latency = number("network.latency_s", self.latency_s, 0, 3600)
        name = "network.bandwidth_bytes_per_s"
        bandwidth = number(name, self.bandwidth_bytes_per_s, 0.001, 1e18)
        put(self, latency_s=latency, bandwidth_bytes_per_s=bandwidth)
        if self.gradient_bytes is not None:
            size = number("network.gradient_bytes", self.gradient_bytes, 0, 1e15, open_low=True)
            put(self, gradient_bytes=size)


@dataclass(frozen=True)
class Buckets:
    """How the gradient is cut into buckets, and whether their all-reduces overlap the backward pass."""

    cap_bytes: float | None = None
    overlap: bool = True
    sync_every_micro_batch: bool = False

    def __post_init__(self) -> None:
        flag("buckets.overlap", self.overlap)
        flag("buckets.sync_every_micro_batch", self.sync_every_micro_batch)
        if self.cap_bytes is not None:
            cap = number("buckets.cap_bytes", self.cap_bytes, 0, 1e15, open_low=True)
            put(self, cap_bytes=cap)
