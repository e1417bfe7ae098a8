"""Where a choice hides a fault: the gradient is wrong, and the parameters hardly show it.

Adam divides by the gradient's own size and so forgets a constant factor; clipping to a norm does the same to
whatever is longer. Both leave the direction alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsim.comparison import Comparison, compare
from dpsim.reduction import NAMES, relative_l2_error
from dpsim.scenario import Scenario
from dpsim.wording import number

WRONG = 0.01  # a gradient that is off by less than this share is not called wrong here
HIDDEN = 0.1  # hidden: the update is off by less than this share of the gradient's own error


@dataclass(frozen=True)
class Hidden:
    """A reduction whose first gradient is wrong, by how much, how little its update is, and what hides it."""

    scheme: str
    gradient_error: float
    update_error: float
    by: str

    def in_words(self) -> str:
        """One sentence."""
        least = 1e-4
        update = f"{number(100 * max(self.update_error, least))} %"
        return (
            f"{self.by} hides a fault here: under “{NAMES[self.scheme]}” the first gradient is off by "
            f"{number(100 * self.gradient_error)} %, and the first update by "
            f"{'less than ' if self.update_error < least else 'only '}{update}. "
            "Judge a reduction by its gradient, not by where the parameters end up."
        )


def hidden_faults(scenario: Scenario, comparison: Comparison) -> tuple[Hidden, ...]:
    """The wrong reductions that clipping or Adam hides in the first step."""
    if scenario.optimizer.kind != "adam" and scenario.optimizer.clip_norm is None:
        return ()
    found = []
    plain = _by_other_optimizer(scenario)
    for name, outcome in comparison.schemes.items():
        error = outcome.relative_l2_error[0]
        if name not in plain.schemes or error is None or error < WRONG:
            continue
        update = _update_error(comparison, name)
        if update is None or update > HIDDEN * error:
            continue
        found.append(Hidden(name, error, update, _culprit(scenario, plain, name, error)))
    return tuple(found)


def _update_error(comparison: Comparison, name: str) -> float | None:
    own, right = (o.parameters for o in (comparison.schemes[name], comparison.one_device))
    return relative_l2_error(own[1] - own[0], right[1] - right[0])


def _by_other_optimizer(scenario: Scenario) -> Comparison:
    """The same without clipping: what it shows was hidden by clipping, what it does not by Adam."""
    return compare(replace(scenario, steps=1, optimizer=replace(scenario.optimizer, clip_norm=None)))


def _culprit(scenario: Scenario, unclipped: Comparison, name: str, error: float) -> str:
    update = _update_error(unclipped, name)
    clipped = scenario.optimizer.clip_norm is not None
    if clipped and (update is None or update > HIDDEN * error):
        return "Clipping"
    return "Adam"
