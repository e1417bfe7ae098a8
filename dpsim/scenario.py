"""The scenario: one frozen value that holds everything that was chosen, seed included.

Every part checks itself when it is made, so a `Scenario` that exists is a valid one. Its written
forms (TOML, URL, JSON) are in `dpsim.forms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsim.checks import InputError, choice, number, sequence, text, whole
from dpsim.edited import Collective, checked, parsed
from dpsim.parts import (
    COLLECTIVES,
    MASKED,
    MAX_MICRO_BATCHES,
    MAX_RANKS,
    MAX_STEPS,
    OPTIMIZERS,
    SCHEMES,
    Batch,
    Buckets,
    Compute,
    Model,
    Network,
    Optimizer,
    put,
)

__all__ = [
    "COLLECTIVES",
    "MASKED",
    "MAX_RANKS",
    "MAX_STEPS",
    "OPTIMIZERS",
    "SCHEMES",
    "Batch",
    "Buckets",
    "Compute",
    "Model",
    "Network",
    "Optimizer",
    "Scenario",
    "check_app_bounds",
]

APP_RANKS = 64
APP_STEPS = 200


@dataclass(frozen=True)
class Scenario:
    """Everything that was chosen. `reduction` is a scheme's name or a table w[r][k]; `dpsim.edited` tells how
    `collective` is written."""

    name: str
    batch: Batch
    title: str = ""
    seed: int = 0
    steps: int = 1
    world_size: int = 4
    reduction: str | tuple[tuple[float, ...], ...] = "token_weighted"
    collective: str = "ring"
    model: Model = field(default_factory=Model)
    optimizer: Optimizer = field(default_factory=Optimizer)
    compute: Compute = field(default_factory=Compute)
    network: Network = field(default_factory=Network)
    buckets: Buckets = field(default_factory=Buckets)

    def __post_init__(self) -> None:
        if not text("name", self.name, 64).strip():
            raise InputError("name", "must not be blank", self.name)
        text("title", self.title, 200)
        put(self, seed=whole("seed", self.seed, 0, 2**32 - 1))
        put(self, steps=whole("steps", self.steps, 1, MAX_STEPS))
        put(self, world_size=whole("world_size", self.world_size, 1, MAX_RANKS))
        put(self, collective=str(checked(self.collective, self.world_size)))
        self._check_world_size()
        if isinstance(self.reduction, str):
            choice("reduction", self.reduction, SCHEMES)
        else:
            self._check_table()
        self._check_model()

    def _check_world_size(self) -> None:
        rule = f"must have one entry per rank, {self.world_size}"
        per_rank = {
            "compute.speed": self.compute.speed,
            "batch.assignment": self.batch.assignment,
            "model.gradient_sums": self.model.gradient_sums,
        }
        if isinstance(self.batch.micro_batches, tuple):
            per_rank["batch.micro_batches"] = self.batch.micro_batches
        for name, values in per_rank.items():
            if values is not None and len(values) != self.world_size:
                raise InputError(name, rule, values)

    def _check_table(self) -> None:
        rows = sequence("reduction", self.reduction, MAX_RANKS, self.world_size)
        table = []
        for r, row in enumerate(rows):
            cells = sequence(f"reduction[{r}]", row, MAX_MICRO_BATCHES, self.micro_batches[r])
            table.append(tuple(number(f"reduction[{r}][{k}]", v) for k, v in enumerate(cells)))
        put(self, reduction=tuple(table))

    def _check_model(self) -> None:
        batch, model = self.batch, self.model
        if model.gradient_sums is not None:
            shape = tuple(map(len, model.gradient_sums))
            if shape != self.micro_batches:
                rule = f"must have {list(self.micro_batches)} micro-batches on the ranks"
                raise InputError("model.gradient_sums", rule, list(shape))
            if batch.sequences is not None:
                rule = "must be left out under the model 'given', whose sequences are typed in"
                raise InputError("batch.sequences", rule, batch.sequences)
            if batch.shard == "strided" and batch.count % self.world_size:
                rule = "must not repeat sequences under the model 'given'"
                raise InputError("batch.shard", rule, batch.shard)
        lowest = 0 if model.kind == "bigram" else -10_000
        highest = model.vocabulary - 1 if model.kind == "bigram" else 10_000
        for i, row in enumerate(batch.tokens or ()):
            for j, token in enumerate(row):
                whole(f"batch.tokens[{i}][{j}]", token, lowest, highest)
        for i, row in enumerate(batch.labels or ()):
            for j, label in enumerate(row):
                if label != MASKED:
                    whole(f"batch.labels[{i}][{j}]", label, 0, model.vocabulary - 1)

    @property
    def micro_batches(self) -> tuple[int, ...]:
        """K for every rank."""
        if self.batch.assignment is not None:
            return tuple(map(len, self.batch.assignment))
        if isinstance(self.batch.micro_batches, tuple):
            return self.batch.micro_batches
        return (self.batch.micro_batches,) * self.world_size

    @property
    def exchange(self) -> Collective:
        """The collective: its algorithm, and what is done wrong in it."""
        return parsed(self.collective)

    @property
    def algorithm(self) -> str:
        """The collective's algorithm alone."""
        return self.exchange.algorithm

    @property
    def hangs(self) -> bool:
        """Whether a step never ends: the ranks synchronise every micro-batch, and some have more of them."""
        return self.buckets.sync_every_micro_batch and len(set(self.micro_batches)) > 1

    @property
    def begun_steps(self) -> int:
        """How many steps a run begins: a run that hangs does so in its first."""
        return 1 if self.hangs else self.steps

    @property
    def synchronised(self) -> int:
        """How many all-reduces of the gradient a step comes to the end of."""
        return min(self.micro_batches) if self.buckets.sync_every_micro_batch else 1

    @property
    def speeds(self) -> tuple[float, ...]:
        """The speed of every rank; 1 where none was chosen."""
        return self.compute.speed or (1.0,) * self.world_size

    @property
    def passes(self) -> tuple[int, ...]:
        """How often every rank of a live run makes each pass: its work, more often where it is slow."""
        return tuple(max(1, round(self.compute.work_factor / speed)) for speed in self.speeds)

    @property
    def bytes_per_element(self) -> float:
        """How many bytes one element of the gradient stands for."""
        size = self.network.gradient_bytes
        return 4.0 if size is None else size / self.model.size


def check_app_bounds(scenario: Scenario) -> Scenario:
    """`scenario`, if it is small enough for the app."""
    whole("world_size", scenario.world_size, 1, APP_RANKS)
    whole("steps", scenario.steps, 1, APP_STEPS)
    return scenario
