"""The switch of every stage: simulated, or live on what this machine has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import streamlit as st

from dpsim.as_run import as_run
from dpsim.checks import InputError
from dpsim.comparison import Comparison
from dpsim.forms import from_query
from dpsim.hardware import save
from dpsim.live.calibrate import Calibration, calibrate
from dpsim.live.devices import Machine, choose
from dpsim.live.job import MODES, check_runs_live
from dpsim.live.launch import look, switched_off
from dpsim.live.together import run_together
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.background import Background, Say, begun
from dpsim.ui.frame import visit
from dpsim.ui.picture import Picture, check_shown, pictured
from dpsim.ui.text import literal
from dpsim.wording import listed

SIMULATED, LIVE = "simulated", "live"
# A pass of the tiny model took 0.1 to 0.2 ms where this was written; repeated so often, it takes a few.
WORK_FACTOR = 20
HERE = "this-machine"  # the name of what is calibrated from a page
MOST_KEPT = 6  # results of a session
MOST_BYTES = 64_000_000  # of all of them but the newest
MODE_NAMES = {
    "chunks": "chunk by chunk",
    "library": "the backend's all-reduce",
    "ddp": "DistributedDataParallel",
}
MODE_MEANS = (
    "**Chunk by chunk**: the ranks send each other the very chunks that move on the stage. "
    "**The backend's all-reduce**: one call to Gloo or NCCL, whose messages nobody sees. "
    "**DistributedDataParallel**: torch's own buckets, on their way while backward still goes on."
)


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
            _seen().append(found)
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
def _seen() -> list[Machine]:
    """What this machine turned out to have; the same for everyone, and empty until somebody has looked."""
    return []


def live_bar(stage: str, query: str, shows: str = "the simulation") -> None:
    """The switch above a stage, and while it stands on live: where it runs, how, Run, Cancel, progress.
    `shows` is what the stage shows until something was measured."""
    off, scenario, state = switched_off(), from_query(query), live_state()
    if is_live(stage) and not _seen() and state.refusal("", "") is None:
        state.begin(_look)
    with st.container(key=f"{stage}.bar", gap="small"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _switch(stage, off)
            if is_live(stage):
                mode = st.selectbox(
                    "Exchange", MODES, key=f"{stage}.mode", format_func=MODE_NAMES.__getitem__,
                    help=MODE_MEANS, width=240,
                )  # fmt: skip
                work = st.number_input(
                    "Repeat the work", 1, 1_000_000, max(WORK_FACTOR, scenario.compute.work_factor),
                    key=f"{stage}.work", width=150,
                    help="How often each rank repeats its real forward and backward pass: the tiny model "
                    "alone takes a fraction of a millisecond.",
                )  # fmt: skip
                asked = _asked(scenario, mode, int(work))
                _run_button(stage, query, asked, mode)
        if is_live(stage):
            _said(stage, query, asked, shows)


def _asked(scenario: Scenario, mode: str, work: int) -> Scenario:
    """The scenario as it runs: passes repeated, and under torch's own buckets a gradient of its real size,
    since torch knows no other. A cap of one's own says the buckets itself."""
    asked = replace(scenario, compute=replace(scenario.compute, work_factor=work))
    if mode == "ddp" and scenario.buckets.cap_bytes is None:
        asked = replace(asked, network=replace(asked.network, gradient_bytes=None))
    return asked


def _switch(stage: str, off: str | None) -> None:
    found = _seen()
    name = "this machine" if not found else found[-1].gpus or f"{found[-1].cores} CPU cores"
    names = {SIMULATED: "Simulated", LIVE: f"Live on {name}"}
    st.session_state.setdefault(f"{stage}.live", LIVE if live_state().on.get(stage) else SIMULATED)
    st.segmented_control(
        "What the stage shows", (SIMULATED, LIVE), key=f"{stage}.live", format_func=names.__getitem__,
        label_visibility="collapsed", disabled=off is not None, required=True,
        help=off and f"Live is off: {off}.",
    )  # fmt: skip
    if off is not None:
        st.caption(literal(f"Live is off: {off}."))


def _run_button(stage: str, query: str, asked: Scenario, mode: str) -> None:
    state = live_state()
    if state.pressed == (
        stage,
        visit(),
    ):  # in a run of its own, so that what was chosen before is heard first
        start(stage, query, asked, mode)
        state.pressed = None
    st.button(
        "Run", key=f"{stage}.run", type="primary", icon=":material/play_arrow:",
        on_click=_press, args=(stage,), disabled=state.running is not None,
    )  # fmt: skip


def _press(stage: str) -> None:
    live_state().pressed = stage, visit()


def press_calibrate(query: str) -> None:
    """Begin to measure this machine, to predict the scenario in `query` with."""
    live_state().begin(_calibrate, query=query)


def _calibrate(say: Say, cancel: threading.Event) -> Calibration:
    found = calibrate(HERE, on_progress=lambda p: say(f"calibrating: {p.text}", 0.5), cancel=cancel)
    save(found.hardware)
    return found


def start(stage: str, query: str, asked: Scenario, mode: str) -> None:
    """Begin a run of the scenario in `query` as it was asked for; what it cannot be is told in its place."""
    state = live_state()
    try:
        check_runs_live(check_shown(asked), mode)
    except InputError as error:
        state.refused = Refusal(str(error), stage, query)
        return
    state.begin(partial(_carry_out, query, asked, mode), stage, query)


def _carry_out(query: str, asked: Scenario, mode: str, say: Say, cancel: threading.Event) -> Measured:
    """The work of one press of Run. Of what ran beside the scenario only the comparison is kept."""
    done = run_together(asked, mode, say=say, cancel=cancel)
    return Measured(query, mode, done.trace, as_run(done.runs, done.chosen))


def _look(say: Say, cancel: threading.Event) -> Machine:
    say("looking at what this machine has", 0.0)
    return look(cancel).machine


def _said(stage: str, query: str, asked: Scenario, shows: str) -> None:
    """Where it runs and why, what goes on, what came of it."""
    state = live_state()
    if state.running is not None:
        _progress()
        return
    if refused := state.refusal(stage, query):
        st.error(literal(refused), icon=":material/error:")
    found = list(state.modes(query).values())
    if found:
        st.caption(literal(_how(found[-1].trace)))
    else:
        st.caption(literal(f"Not run yet: the stage shows {shows}. {_where(asked.world_size)}"))
    if straggler := _straggler(found[-1].trace.scenario if found else asked):
        st.caption(literal(straggler))


def _where(ranks: int) -> str:
    if not _seen():
        return f"{ranks} ranks will be {ranks} processes on this machine's own devices."
    try:
        return _sentence(choose(_seen()[-1], "auto", None, ranks).hardware) + "."
    except InputError as error:
        return str(error)


def _how(trace: Trace) -> str:
    m = trace.machine
    return (
        f"Measured here. {_sentence(m['hardware'])}; {MODE_NAMES[m['mode']]}, {m['backend']}, {m['dtype']}; "
        f"{m['versions']}; {m['date']}. The backend was probed before it was trusted: {m['probe']}."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _straggler(scenario: Scenario) -> str:
    """How often each rank makes its passes where the scenario lets them differ in speed."""
    if len(set(scenario.speeds)) == 1:
        return ""
    times = [f"rank {r} {passes}" for r, passes in enumerate(scenario.passes)]
    return f"Put there by the scenario, passes of each rank: {listed(times)}."


@st.fragment(run_every=0.5)
def _progress() -> None:
    """What the run does now, twice a second, and the way to call it off."""
    running: Any = live_state().running
    if running is None or running.done.is_set():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(running.share, 1.0), literal(running.text))
        st.button(
            "Cancel", key="live.cancel", icon=":material/stop:", on_click=running.cancel.set,
            disabled=running.cancel.is_set(),
        )  # fmt: skip
