"""The ways of reducing side by side, in words: token-weighted, naive, one device, and the scenario's own."""

from __future__ import annotations

from dataclasses import dataclass

from dpsim.comparison import Comparison, Outcome
from dpsim.reduction import NAMES
from dpsim.replicas import differ, worst_rank
from dpsim.trace import Trace
from dpsim.wording import number, signed, vector

WRITTEN_OUT = 4  # ranks up to which the first element is worked out by hand


@dataclass(frozen=True)
class Contrast:
    """One way of reducing: its name, whether this run uses it, its first element by hand, its gradient, and
    how far that is from one device."""

    name: str
    ours: bool
    hand: str
    gradient: str
    error: str


def contrast(trace: Trace, step: int, comparison: Comparison) -> tuple[Contrast, ...]:
    """Token-weighted, naive and one device; before them the scenario's own way where it is another."""
    lines = [
        ("token_weighted", _token_weighted_by_hand(trace, step, comparison)),
        ("mean_of_rank_means", _naive_by_hand(trace, step, comparison)),
    ]
    if comparison.chosen not in ("token_weighted", "mean_of_rank_means"):
        lines.insert(0, (comparison.chosen, _whose(trace, step, comparison)))
    told = [
        Contrast(
            NAMES[name],
            name == comparison.chosen,
            hand,
            _gradient(comparison.schemes[name], step),
            _error(comparison.schemes[name], step),
        )
        for name, hand in lines
    ]
    alone = Contrast("one device on the whole batch", False, "", _gradient(comparison.one_device, step), "")
    return (*told, alone)


def in_words(line: Contrast) -> str:
    """The same as one line of text."""
    marks = [mark for mark in ("this run" if line.ours else "", line.error) if mark]
    aside = f" ({', '.join(marks)})" if marks else ""
    hand = f"{line.hand}; " if line.hand else ""
    return f"{line.name}{aside}: {hand}gradient {line.gradient}"


def _whose(trace: Trace, step: int, comparison: Comparison) -> str:
    """Which rank's gradient stands for a run after which they are not the same."""
    if not differ(trace.reduced[step]):
        return ""
    return f"on rank {worst_rank(trace, comparison.one_device.gradient)}, which is furthest off"


def _gradient(outcome: Outcome, step: int) -> str:
    gradient = outcome.gradient[step]
    return f"undefined: {outcome.undefined}" if gradient is None else vector(gradient.tolist())


def _error(outcome: Outcome, step: int) -> str:
    error = outcome.relative_l2_error[step]
    if error is None:
        return ""
    if error > 1e4:
        return f"off by a factor of {number(error)}"
    return "equals one device" if error < 1e-12 else f"off by {float(f'{100 * error:.3g}'):g} %"


def _first_sums(trace: Trace, step: int) -> list[float] | None:
    """The first element of every rank's gradient sum, while all trajectories are still at their start."""
    chosen = trace.scenario.optimizer
    clipped = chosen.clip == "before" and chosen.clip_norm is not None  # then a share is no longer its S / n
    few = trace.scenario.world_size <= WRITTEN_OUT and not clipped
    return trace.gradient_sums[step, :, :, 0].sum(axis=1).tolist() if few and step == 0 else None


def _token_weighted_by_hand(trace: Trace, step: int, comparison: Comparison) -> str:
    sums, gradient = _first_sums(trace, step), comparison.schemes["token_weighted"].gradient[step]
    if sums is None or gradient is None:
        return "Σ S / Σ n"
    total = int(trace.valid_tokens[step].sum())
    return f"Σ S / Σ n = {number(sum(sums))} / {total} = {number(gradient[0])}"


def _naive_by_hand(trace: Trace, step: int, comparison: Comparison) -> str:
    sums, gradient = _first_sums(trace, step), comparison.schemes["mean_of_rank_means"].gradient[step]
    if sums is None or gradient is None:
        return "mean of S / n"
    counts = trace.valid_tokens[step].sum(axis=1).tolist()
    terms = f"{number(sums[0])}/{counts[0]}"
    for value, count in zip(sums[1:], counts[1:], strict=True):
        terms += f" {signed(value)}/{count}"
    return f"({terms}) / {len(counts)} = {number(gradient[0])}"
