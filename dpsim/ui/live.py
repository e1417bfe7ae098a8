"""The switch of every stage: simulated, or live on what this machine has."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

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
from dpsim.live.together import Together, run_together
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.background import Background, Say, begun
from dpsim.ui.picture import Picture, check_shown, pictured
from dpsim.ui.text import literal
from dpsim.wording import listed

SIMULATED, LIVE = "simulated", "live"
# A pass of the tiny model took 0.1 to 0.2 ms where this was written; repeated so often, it takes a few.
WORK_FACTOR = 20
HERE = "this-machine"  # the name of what is calibrated from a page
MOST_KEPT = 6  # results of a session: each may take megabytes
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
    """What came of one press of Run."""

    query: str
    mode: str
    together: Together

    @property
    def trace(self) -> Trace:
        """The measured trace of the scenario."""
        return self.together.trace

    @cached_property
    def ways(self) -> Comparison:
        """Every way of reducing that was run, against one device as it was run."""
        return as_run(self.together.runs, self.together.chosen)

    @cached_property
    def picture(self) -> Picture:
        """The stage's data, the beats as Markdown and their ids."""
        return pictured(self.trace, self.ways)


@dataclass
class LiveState:
    """One session's live runs: the one that goes on, what came of earlier ones (newest last), which stages
    are switched to live, the last refusal, and the stage whose Run was pressed."""

    running: Background | None = None
    waits: tuple[str, str] = ("", "")
    kept: tuple[Measured, ...] = ()
    on: dict[str, bool] = field(default_factory=dict)
    refused: str | None = None
    pressed: str = ""

    def collect(self) -> None:
        """Take what a run that has ended has left."""
        running = self.running
        if running is None or not running.done.is_set():
            return
        self.running = None
        self.refused = running.error
        if isinstance(running.result, Calibration):
            st.session_state["predict.with"] = HERE
        if isinstance(running.result, Machine):
            _seen().append(running.result)
        if isinstance(running.result, Together):
            query, mode = self.waits
            found = Measured(query, mode, running.result)
            self.kept = (*(m for m in self.kept if (m.query, m.mode) != self.waits), found)[-MOST_KEPT:]

    def modes(self, query: str) -> dict[str, Measured]:
        """What this scenario has measured, by mode, the newest last."""
        return {found.mode: found for found in self.kept if found.query == query}


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


def live_bar(stage: str, query: str) -> None:
    """The switch above a stage, and while it stands on live: where it runs, how, Run, Cancel, progress."""
    off, scenario, state = switched_off(), from_query(query), live_state()
    if is_live(stage) and not _seen() and state.running is None and not state.refused:
        state.running = begun(_look)
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
                _run_button(stage, query, scenario, mode, int(work))
        if is_live(stage):
            _said(scenario, query, int(work))


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


def _run_button(stage: str, query: str, scenario: Scenario, mode: str, work: int) -> None:
    state = live_state()
    if state.pressed == stage:  # in a run of its own, so that what was chosen just before is heard first
        state.pressed = ""
        start(query, scenario, mode, work)
    st.button(
        "Run", key=f"{stage}.run", type="primary", icon=":material/play_arrow:",
        on_click=_press, args=(stage,), disabled=state.running is not None,
    )  # fmt: skip


def _press(stage: str) -> None:
    live_state().pressed = stage


def _with_work(scenario: Scenario, work: int) -> Scenario:
    return replace(scenario, compute=replace(scenario.compute, work_factor=work))


def press_calibrate() -> None:
    """Begin to measure this machine, to predict with."""
    state = live_state()
    if state.running is None:
        state.refused, state.running = None, begun(_calibrate)


def _calibrate(say: Say, cancel: threading.Event) -> Calibration:
    found = calibrate(HERE, on_progress=lambda p: say(f"calibrating: {p.text}", 0.5), cancel=cancel)
    save(found.hardware)
    return found


def start(query: str, scenario: Scenario, mode: str, work: int) -> None:
    """Begin a run of the scenario in `query`; what it cannot be is told in its place."""
    state = live_state()
    asked = _with_work(scenario, work)
    try:
        check_runs_live(check_shown(asked), mode)
    except InputError as error:
        state.refused = str(error)
        return
    state.refused, state.waits = None, (query, mode)
    state.running = begun(partial(_carry_out, asked, mode))


def _carry_out(scenario: Scenario, mode: str, say: Say, cancel: threading.Event) -> Together:
    """The work of one press of Run."""
    return run_together(scenario, mode, say=say, cancel=cancel)


def _look(say: Say, cancel: threading.Event) -> Machine:
    say("looking at what this machine has", 0.0)
    return look(cancel).machine


def _said(scenario: Scenario, query: str, work: int) -> None:
    """Where it runs and why, what goes on, what came of it."""
    state = live_state()
    if state.running is not None:
        _progress()
        return
    if state.refused:
        st.error(literal(state.refused), icon=":material/error:")
    found = list(state.modes(query).values())
    if found:
        st.caption(literal(_how(found[-1].trace)))
    else:
        st.caption("Not run yet: the stage shows the simulation. " + literal(_where(scenario.world_size)))
    if straggler := _straggler(scenario, work):
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


def _straggler(scenario: Scenario, work: int) -> str:
    """How often each rank makes its passes where the scenario lets them differ in speed."""
    if len(set(scenario.speeds)) == 1:
        return ""
    times = [f"rank {r} {passes}" for r, passes in enumerate(_with_work(scenario, work).passes)]
    return f"Put there by the scenario, passes of each rank: {listed(times)}."


@st.fragment(run_every=0.25)
def _progress() -> None:
    """What the run does now, four times a second, and the way to call it off."""
    running: Any = live_state().running
    if running is None or running.done.is_set():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(running.share, 1.0), literal(running.text))
        st.button(
            "Cancel", key="live.cancel", icon=":material/stop:", on_click=running.cancel.set,
            disabled=running.cancel.is_set(),
        )  # fmt: skip
