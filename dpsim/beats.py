"""A trace told as beats: a phase, a bucket or a round, each with one sentence and its arithmetic.

A beat's moment is the latest end among its events; its id is stable, so that a link can name it. The stage
stops at beats, the keys step by them, and the list of beats is the text version of the whole.
"""

from __future__ import annotations

from dpsim.batch import global_batch
from dpsim.telling import PHASES, Beat, Focus, Teller
from dpsim.trace import Trace
from dpsim.wording import duration

__all__ = ["Beat", "Focus", "beats", "beats_as_text", "phase_names"]


def beats(trace: Trace) -> tuple[Beat, ...]:
    """All beats of `trace`, by their moments."""
    told: list[Beat] = []
    batch = global_batch(trace.scenario)
    for step in range(trace.steps):
        told += sorted(Teller(trace, step, batch).tell(), key=lambda b: b.moment_s)
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
        "optimizer": "Optimizer",
    }


def beats_as_text(told: tuple[Beat, ...]) -> str:
    """The beats as plain text: complete without any picture."""
    blocks = []
    for i, beat in enumerate(told, 1):
        lines = [f"{i}. {beat.title} [{beat.id}], at {duration(beat.moment_s)}", f"   {beat.sentence}"]
        lines += [f"   {line}" for line in beat.arithmetic]
        lines += [f"   - {line}" for line in beat.details]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
