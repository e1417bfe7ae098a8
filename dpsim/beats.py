"""A trace told as beats: a phase, a bucket or a round, each with one sentence and its arithmetic.

A beat's moment is the latest end among its events; its id is stable, so that a link can name it. The stage
stops at beats, the keys step by them, and the list of beats is the text version of the whole.
"""

from __future__ import annotations

from dpsim.batch import global_batch
from dpsim.beat import PHASES, Beat, Focus
from dpsim.comparison import Comparison
from dpsim.network import cost
from dpsim.replicas import beside
from dpsim.scenario import Scenario
from dpsim.telling import Teller
from dpsim.timeline import buckets
from dpsim.trace import Trace
from dpsim.wording import duration

__all__ = ["Beat", "Focus", "beats", "beats_as_text", "count_beats", "phase_names"]


def beats(trace: Trace, comparison: Comparison | None = None) -> tuple[Beat, ...]:
    """All beats of `trace`, by their moments; `comparison` saves making it again."""
    told: list[Beat] = []
    batch = global_batch(trace.scenario)
    ways = comparison or beside(trace)
    for step in range(trace.steps):
        told += sorted(Teller(trace, step, batch, ways).tell(), key=lambda b: b.moment_s)
    return tuple(told)


def phase_names(algorithm: str) -> dict[str, str]:
    """The phases in order, as they are written on the screen."""
    first, second = PHASES[algorithm]
    return {
        "start": "Start",
        "scatter": "Scatter",
        "count": "Count",
        "forward": "Forward",
        "backward": "Backward",
        "reduce": first,
        "gather": second,
        "barrier": "Barrier",
        "hang": "For ever",
        "optimizer": "Optimizer",
    }


def count_beats(scenario: Scenario) -> int:
    """How many beats a scenario's trace will have at most, without making it."""
    micro = max(scenario.micro_batches)
    windows = micro if scenario.buckets.sync_every_micro_batch else 1
    rounds = cost(scenario.algorithm, scenario.world_size, 1.0, 0.0, 1.0).rounds
    made = [len(buckets(scenario, step)) for step in range(2)]
    each = [5 + micro * (2 + b) + windows * (1 + b * rounds) for b in made]
    return each[0] + each[1] * (scenario.steps - 1)


def beats_as_text(told: tuple[Beat, ...]) -> str:
    """The beats as plain text: complete without any picture."""
    blocks = []
    for i, beat in enumerate(told, 1):
        lines = [f"{i}. {beat.title} [{beat.id}], at {duration(beat.moment_s)}", f"   {beat.sentence}"]
        lines += [f"   {line}" for line in beat.arithmetic]
        lines += [f"   - {line}" for line in beat.details]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
