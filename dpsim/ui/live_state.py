"""A session's live runs: what goes on, what was measured, which stages are switched to live."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import streamlit as st

from dpsim.comparison import Comparison
from dpsim.live.calibrate import Calibration
from dpsim.live.devices import Machine
from dpsim.live.launch import switched_off
from dpsim.trace import Trace
from dpsim.ui.background import Background, Say, begun
from dpsim.ui.picture import Picture, pictured

SIMULATED, LIVE = "simulated", "live"
HERE = "this-machine"  # the name of what is calibrated from a page
MOST_KEPT = 6  # results of a session
MOST_BYTES = 64_000_000  # of all of them but the newest


@dataclass(frozen=True, eq=False)
class Measured:
    """What came of one press of Run: the measured trace of the scenario in `query`, and every way of reducing
    that was run beside it, against one device as it was run."""

    query: str
    mode: str
    trace: Trace
    ways: Comparison

    @cached_property
    def picture(self) -> Picture:
        """The stage's data, the beats as Markdown and their ids."""
        return pictured(self.trace, self.ways)

    @cached_property
    def bytes(self) -> int:
        """About what it takes in memory."""
        held = [*vars(self.trace).values(), *vars(self.trace.events).values()]
        return sum(value.nbytes for value in held if isinstance(value, np.ndarray))


@dataclass(frozen=True)
class Refusal:
    """Why something was not done, and where that is told: at a stage and a scenario, empty for any."""

    text: str
    stage: str = ""
    query: str = ""


@dataclass
class LiveState:
    """One session's live runs: the one that goes on and the place that it is for, what came of earlier ones
    (newest last), which stages are switched to live, the last refusal, and the stage whose Run was pressed
    in which visit."""

    running: Background | None = None
    place: tuple[str, str] = ("", "")
    kept: tuple[Measured, ...] = ()
    on: dict[str, bool] = field(default_factory=dict)
    refused: Refusal | None = None
    pressed: tuple[str, int] | None = None

    def begin(self, work: Callable[[Say, threading.Event], Any], stage: str = "", query: str = "") -> None:
        """Begin some work for a stage and a scenario, unless something goes on already."""
        if self.running is None:
            self.refused, self.place, self.running = None, (stage, query), begun(work)

    def collect(self) -> None:
        """Take what work that has ended has left."""
        running = self.running
        if running is None or not running.done.is_set():
            return
        self.running = None
        self.refused = Refusal(running.error, *self.place) if running.error else None
        found = running.result
        if isinstance(found, Calibration):
            st.session_state["predict.with"] = HERE
        if isinstance(found, Machine):
            machines().append(found)
        if isinstance(found, Measured):
            others = [m for m in self.kept if (m.query, m.mode) != (found.query, found.mode)]
            kept = [*others, found][-MOST_KEPT:]
            while len(kept) > 1 and sum(m.bytes for m in kept) > MOST_BYTES:
                del kept[0]
            self.kept = tuple(kept)

    def modes(self, query: str) -> dict[str, Measured]:
        """What this scenario has measured, by mode, the newest last."""
        return {found.mode: found for found in self.kept if found.query == query}

    def refusal(self, stage: str, query: str) -> str | None:
        """What there is to be told at a stage that shows this scenario."""
        r = self.refused
        return r.text if r and r.stage in ("", stage) and r.query in ("", query) else None


def live_state() -> LiveState:
    """This session's live runs."""
    state: LiveState = st.session_state.setdefault("live", LiveState())
    return state


def is_live(stage: str) -> bool:
    """Whether this stage is switched to live; also where the switch itself is not drawn."""
    state = live_state()
    if (said := st.session_state.get(f"{stage}.live")) is not None:
        state.on[stage] = said == LIVE
    return state.on.get(stage, False) and switched_off() is None


def measured(stage: str, query: str) -> Measured | None:
    """What the stage shows of the scenario in `query`, if it is live and has run."""
    state = live_state()
    state.collect()
    if not is_live(stage):
        return None
    found = list(state.modes(query).values())
    return found[-1] if found else None


@lru_cache(maxsize=1)
def machines() -> list[Machine]:
    """What this machine turned out to have; the same for everyone, and empty until somebody has looked."""
    return []
