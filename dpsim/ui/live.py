"""The switch of every stage: simulated, or live on what this machine has."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpsim.as_run import as_run
from dpsim.checks import InputError
from dpsim.forms import from_query
from dpsim.hardware import save
from dpsim.live.calibrate import Calibration, calibrate
from dpsim.live.devices import Machine, choose
from dpsim.live.job import MODES, check_runs_live
from dpsim.live.launch import look, switched_off
from dpsim.live.together import run_together
from dpsim.prose import literal
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.background import Say
from dpsim.ui.frame import visit
from dpsim.ui.live_state import HERE, LIVE, SIMULATED, Measured, Refusal, is_live, live_state, machines
from dpsim.ui.picture import check_shown
from dpsim.wording import listed

# A pass of the tiny model took 0.1 to 0.2 ms where this was written; repeated so often, it takes a few.
WORK_FACTOR = 20
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


def live_bar(stage: str, query: str, shows: str = "the simulation") -> None:
    """The switch above a stage, and while it stands on live: where it runs, how, Run, Cancel, progress.
    `shows` is what the stage shows until something was measured."""
    off, scenario, state = switched_off(), from_query(query), live_state()
    if is_live(stage) and not machines() and state.refusal("", "") is None:
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
    found = machines()
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
    if state.pressed == (stage, visit()):  # not in the callback: what was chosen just before is heard first
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
    if not machines():
        return f"{ranks} ranks will be {ranks} processes on this machine's own devices."
    try:
        return _sentence(choose(machines()[-1], "auto", None, ranks).hardware) + "."
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
