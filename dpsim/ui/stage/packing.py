"""Origins and terms as the stage gets them: every text once, everything else a place in a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpsim.batch import GlobalBatch
from dpsim.beats import Beat
from dpsim.comparison import Comparison
from dpsim.derivations import MASKED_TOKEN, Derivations
from dpsim.glossary import glossary, terms_in
from dpsim.origins import CellOrigins, Origin, Origins
from dpsim.replay import AllReduce
from dpsim.replicas import differ
from dpsim.timeline import COUNT
from dpsim.trace import Trace

Data = dict[str, Any]

# What the stage itself writes beside the payload's texts (in stage.html and the scripts), terms in it.
OWN_WORDS = (
    "rank, step, global batch, gradient sum, optimizer, waits, all-reduce, barrier, count, bucket, chunk"
)


class Packer:
    """The origins of a trace in rows: title, sentence, lines (what, arithmetic), who is in it, beat, parts.

    Texts are places in `texts`, parts are rows of their own; -1 stands where there is none.
    """

    def __init__(self, trace: Trace, told: tuple[Beat, ...], ways: Comparison, batch: GlobalBatch) -> None:
        self.trace, self.batch = trace, batch
        self.beats = {beat.id: i for i, beat in enumerate(told)}
        ranks = trace.scenario.world_size if any(map(differ, trace.parameters)) else 1
        self.own = [Derivations(trace, batch, ways, rank) for rank in range(ranks)]
        self.derived = self.own[0]
        self.held: list[list[int]] = [[] for _ in self.own]
        self.rows: list[list[Any]] = []
        self.texts: dict[str, int] = {}
        self._rows_of: dict[Origin, int] = {}

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def add(self, origin: Origin) -> int:
        """The row of `origin`, made on first sight."""
        if origin not in self._rows_of:
            parts = [self.add(part) for part in origin.parts]
            inside = "".join(str(min(times, 9)) for times in origin.counts)
            self._rows_of[origin] = len(self.rows)
            self.rows.append(
                [
                    self.text(origin.title),
                    self.text(origin.says),
                    [self.text(t) for line in origin.lines for t in line],
                    self.text(inside) if inside else -1,
                    self.beats.get(origin.beat, -1),
                    parts,
                ]
            )
        return self._rows_of[origin]

    def places(self, of: Origins, part: AllReduce, made: CellOrigins | None) -> Data:
        """The beat of every round and, where numbers are shown, the rows of the first chunk that each rank
        brought, of the first chunk of each sum it added up, and of the first arrival; the rest follow."""
        rounds = range(part.schedule.rounds)
        data: Data = {"beats": [self.beats.get(of.round_beat(part, n), -1) for n in rounds]}
        if made is None:
            last = [max(part.micro_batch, 0) if of.each else k - 1 for k in of.micro]
            own = [of.backward_beat(r, k, part.bucket) for r, k in enumerate(last)]
            return data | {"own_beats": [self.beats.get(beat, -1) for beat in own]}
        brought = [[self.add(origin) for origin in row] for row in made.brought]
        kept = [[self.add(origin) for origin in row] for row in made.added_up.values()]
        came = [self.add(origin) for origin in made.arrivals]
        return data | {
            "own": [row[0] for row in brought],
            "kept": [row[0] for row in kept],
            "made": came[0] if came else -1,
        }

    def step(self, step: int, parts: list[tuple[AllReduce, CellOrigins]], shown: int) -> Data:
        """The rows of a step's other numbers: parameters before and after, N, its time, the ways compared;
        where replicas differ the parameters of every rank too."""
        of, derived = Origins(self.trace, step, self.batch), self.derived
        own = [self._parameters(step, parts, shown, rank) for rank in range(len(self.own))]
        counted = self.trace.counted[step, 0] >= 0
        return own[0] | {
            "total": self.add(of.all_valid()) if counted else -1,
            "summary": self.add(of.step_time()),
            "compare": [self.add(origin) for origin in derived.compared(step)],
            "own": own,
        }

    def _parameters(
        self, step: int, parts: list[tuple[AllReduce, CellOrigins]], shown: int, rank: int
    ) -> Data:
        """The rows of a rank's parameters before and after a step."""
        sums = {
            part.start + e: cells.last[rank, chunk]
            for part, cells in parts
            if part.bucket != COUNT and part.micro_batch < 0  # one all-reduce makes the whole sum
            for chunk in np.flatnonzero(part.schedule.chunk_elements).tolist()
            for e in range(int(part.schedule.bounds[chunk]), int(part.schedule.bounds[chunk + 1]))
        }
        derived = self.own[rank]
        if not step:
            self.held[rank] = [self.add(derived.started(i)) for i in range(shown)]
        before = self.held[rank]
        self.held[rank] = [self.add(derived.updated(step, i, sums.get(i))) for i in range(shown)]
        return {"before": before, "after": self.held[rank]}

    def rank(self, rank: int) -> Data:
        """The rows of a rank's count, of a valid token in each of its micro-batches, and of all of them."""
        micro = self.trace.scenario.micro_batches[rank]
        counted = Origins(self.trace, 0, self.batch).valid_of(rank)
        weights = [self.add(self.derived.token(rank, k)) for k in range(micro)]
        whole = self.add(self.derived.tokens(rank)) if micro > 1 else weights[0]
        return {
            "count": self.add(counted),
            "weights": [*weights, whole],
        }

    def packed(self) -> Data:
        masked = self.add(MASKED_TOKEN)
        return {"rows": self.rows, "texts": list(self.texts), "masked": masked}


def terms_of(data: Data) -> Data:
    """The terms in the payload's texts and in the stage's own, by their written forms: [says, form, …]."""
    found = {term.name for text in (OWN_WORDS, *_texts(data)) for _, _, term in terms_in(text)}
    return {name: [term.says, name, *term.also] for name, term in glossary().items() if name in found}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float)):
        for inner in value:
            yield from _texts(inner)
