"""What the figures of a lesson are read from, and what a family of figures is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpsim.comparison import Comparison, Outcome
from dpsim.metrics import StepMetrics, step_metrics
from dpsim.reduction import reduction
from dpsim.replicas import beside
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.trace import Trace
from dpsim.wording import number


@dataclass(frozen=True, eq=False)
class Run:
    """What the figures of a scenario are read from."""

    trace: Trace
    ways: Comparison
    metrics: StepMetrics

    @property
    def scenario(self) -> Scenario:
        return self.trace.scenario

    @property
    def last(self) -> StepMetrics:
        """The metrics of the last step: where there are several, its buckets are those of a steady run."""
        return step_metrics(self.trace, self.trace.steps - 1)

    def counts(self) -> Any:
        """Valid tokens of every rank [R]."""
        return self.trace.valid_tokens[0].sum(axis=1)

    def sums(self) -> Any:
        """The gradient sum of every rank [R, P]."""
        return self.trace.gradient_sums[0].sum(axis=1)

    def mean(self, rank: int) -> Any:
        """A rank's own mean gradient [P]; None where it has no valid token."""
        count = self.counts()[rank]
        return self.sums()[rank] / count if count else None

    def way(self, name: str) -> Outcome:
        """A scheme's outcome, or the one device's."""
        return self.ways.one_device if name == "one_device" else self.ways.schemes[name]

    def error(self, way: str) -> float | None:
        """The relative L2 error of a way's gradient in percent; what only rounding makes is none."""
        error = self.way(way).relative_l2_error[0]
        return None if error is None else 100 * error if error >= 1e-12 else 0.0

    def token_weight(self, scheme: str, rank: int) -> Any:
        """The weight of one valid token on a rank, a number per micro-batch [K]."""
        weights = self.way(scheme).token_weight
        return None if weights is None else weights[rank, : self.scenario.micro_batches[rank]]

    def factor(self, scheme: str, rank: int) -> Any:
        """The factor w[r][k] of a rank's gradient sums [K]."""
        chosen = self.scenario.reduction if scheme == "custom" else scheme
        table = reduction(chosen, self.trace.valid_tokens[0], self.scenario.micro_batches)
        return None if table.undefined else table.weights[rank, : self.scenario.micro_batches[rank]]

    def ratio(self, scheme: str, one: int, other: int) -> Any:
        """How many times as much a token on one rank counts as a token on another."""
        weights = self.way(scheme).token_weight
        return None if weights is None or not weights[other, 0] else weights[one, 0] / weights[other, 0]

    def moved(self, gradient: Any) -> Any:
        """The parameters after a plain step along `gradient`, with the scenario's learning rate."""
        if gradient is None:
            return None
        return self.trace.parameters[0, 0] - self.scenario.optimizer.learning_rate * gradient


@lru_cache(maxsize=64)
def run(scenario: Scenario) -> Run:
    """The run of `scenario` that its figures are read from."""
    trace = simulate(scenario)
    return Run(trace, beside(trace), step_metrics(trace, 0))


@dataclass(frozen=True)
class Family:
    """Figures of one kind: what they say, their keys (rank, scheme, way), their source, how written.

    The source gives a number, a list, text, a published figure, or None where it is undefined.
    """

    says: str
    keys: tuple[str, ...]
    of: Callable[..., Any]
    written: Callable[[float], str] = number


def percent(value: float) -> str:
    """Three digits and the sign."""
    return f"{number(float(f'{value:.3g}'))} %"


def gigabytes(value: float) -> str:
    """A value in GB, with three digits."""
    return f"{number(float(f'{value:.3g}'))} GB"
