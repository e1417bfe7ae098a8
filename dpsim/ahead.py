"""The beat that comes next, as somebody who asks about it needs it, and a question with options about it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from dpsim.beat import Beat
from dpsim.questions import Asked, Option
from dpsim.replay import AllReduce, all_reduces
from dpsim.trace import Trace
from dpsim.wording import short, tiny

MOST_OPTIONS = 4
_ID = re.compile(r"(?:s\d+\.)?[a-z]+(?:\.m(\d+))?(?:\.b(\d+))?(?:\.r(\d+))?")
# What a small cell rounds to, by size: half a unit of its last digit (see `short` and `tiny` in wording).
_HALF_UNITS = {
    short: ((100, 0.5), (10, 0.05), (1, 0.005), (0.001, 0.0005)),
    tiny: ((10, 0.5), (1, 0.05), (0.01, 0.005)),
}


@dataclass(frozen=True, eq=False)
class Ahead:
    """Beat number `at` of `told` and the one after it, which is what is asked about. `draw` varies questions
    from beat to beat, and gives the same ones at the same beat."""

    trace: Trace
    told: tuple[Beat, ...]
    at: int
    draw: random.Random

    @property
    def beat(self) -> Beat:
        """Where the stage rests."""
        return self.told[self.at]

    @property
    def next(self) -> Beat:
        """What comes."""
        return self.told[self.at + 1]

    @property
    def step(self) -> int:
        """The step that the next beat belongs to."""
        return self.next.step

    @property
    def place(self) -> tuple[int, int, int]:
        """The next beat's micro-batch, bucket and round; -1 for what it does not name."""
        found = _ID.fullmatch(self.next.id)
        micro, bucket, n = (int(text or -1) for text in (found.groups() if found else ("",) * 3))
        return micro, bucket, n

    @property
    def all_reduce(self) -> AllReduce:
        """The all-reduce that the next beat is of."""
        micro, bucket, _ = self.place
        parts = parts_of(self.trace, self.step)
        return next(p for p in parts if p.bucket == bucket and p.micro_batch in (max(micro, 0), -1))

    def comes(self, event: int) -> bool:
        """Whether an event has not ended yet where the stage rests, so that nothing of it is shown."""
        return bool(self.trace.events.end_s[event] > self.beat.moment_s + 1e-15)

    def cell(self, value: float) -> tuple[str, float]:
        """A number as a cell shows it, and half a unit of its last digit."""
        how = tiny if self.trace.scenario.world_size > 8 else short
        size = abs(value)
        half = next((half for least, half in _HALF_UNITS[how] if size >= least), None)
        return how(value), half if half is not None else 0.5 * size

    def choose(self, question: str, right: tuple[str, str], wrong: Iterable[tuple[str, str]]) -> Asked | None:
        """A question with one right option and some of `wrong`, text and feedback each, in a drawn order;
        what reads like another is left out. None where nothing wrong is left."""
        texts = {right[0]}
        options = [Option(*right, right=True)]
        for text, feedback in wrong:
            if text not in texts and len(options) < MOST_OPTIONS:
                texts.add(text)
                options.append(Option(text, feedback))
        if len(options) < 2:
            return None
        self.draw.shuffle(options)
        return Asked("choose-one", question, tuple(options))


@lru_cache(maxsize=8)
def parts_of(trace: Trace, step: int) -> tuple[AllReduce, ...]:
    """The all-reduces of a step, kept for the next question."""
    return tuple(all_reduces(trace, step))
