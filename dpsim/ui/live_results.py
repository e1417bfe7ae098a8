"""Below a live stage: the ways as they were run, predicted beside measured, the kinds of exchange."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpsim.checks import InputError
from dpsim.comparison import Comparison
from dpsim.hardware import at_real_size, load, names, predicted
from dpsim.metrics import step_metrics
from dpsim.mishaps import two_of
from dpsim.prose import literal
from dpsim.reduction import NAMES
from dpsim.replicas import differ
from dpsim.simulate import simulate
from dpsim.trace import Floats, Trace
from dpsim.ui.lab_results import gradients_table
from dpsim.ui.live import MODE_NAMES, press_calibrate
from dpsim.ui.live_state import HERE, Measured, live_state
from dpsim.ui.side_by_side import side_by_side
from dpsim.ui.text import NONE, table
from dpsim.wording import duration, lasting, number, vector

OWN = "the scenario's own numbers"


def live_results(found: Measured) -> None:
    """All of it, in tabs."""
    ways, time, modes = st.tabs(["As run", "Predicted and measured", "Ways to exchange"])
    with ways:
        _ways(found)
    with time:
        _predicted(found)
    with modes, st.container(key="wide-modes"):
        _modes(live_state().modes(found.query))


def _ways(found: Measured) -> None:
    st.markdown("Each line is a run of its own on these devices; errors are against the run on one device.")
    gradients_table(found.ways)
    steps = found.trace.steps
    with st.expander("Losses and parameters, step by step", expanded=steps == 1):
        named = {NAMES[name]: way for name, way in found.ways.schemes.items()}
        named["one device"] = found.ways.one_device
        rows = [
            [str(t + 1), literal(name), _loss(way.loss[t]), _vector(way.parameters[t + 1])]
            for t in range(steps)
            for name, way in named.items()
        ]
        st.markdown(table(["step", "run", "loss before it", "parameters after it"], rows))
    _replicas(found.trace, found.ways)


def _loss(loss: float | None) -> str:
    return NONE if loss is None else literal(number(loss))


def _vector(parameters: Floats) -> str:
    return literal(vector(parameters.tolist())) if parameters.size else NONE


def _replicas(trace: Trace, ways: Comparison) -> None:
    own = ways.schemes[ways.chosen]
    if own.undefined:
        return
    ranks = trace.scenario.world_size
    if differ(trace.parameters[-1]):
        st.markdown(literal(f"The replicas are not equal: {two_of(trace.parameters[-1])}."))
    elif ranks > 1:
        st.markdown(f"After every step the {ranks} replicas were compared: they are equal bit for bit.")


def _predicted(found: Measured) -> None:
    scenario = found.trace.scenario
    last = scenario.steps - 1
    try:
        simulated, by = prediction(found.trace, _predictor(found.query))
    except InputError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    st.markdown(literal(f"{by} The last step is shown." if last else by))
    side_by_side(simulated, found.trace, "timelines")


def _predictor(query: str) -> str | None:
    """The hardware to predict with, and the way to measure this machine."""
    kept = names()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen: str | None = st.selectbox(
            "Predict with", [OWN, *kept], index=1 + kept.index(HERE) if HERE in kept else 0,
            key="predict.with", width=280,
        )  # fmt: skip
        st.button(
            "Calibrate this machine", icon=":material/speed:", key="calibrate", on_click=press_calibrate,
            args=(query,),
            disabled=live_state().running is not None,
            help=f"Measures messages and passes of several sizes for some seconds, and keeps them as {HERE}.",
        )  # fmt: skip
    if live_state().running is not None:
        st.caption("Something goes on on this machine: its progress stands above the stage.")
    return None if chosen == OWN else chosen


def prediction(trace: Trace, hardware: str | None) -> tuple[Trace, str]:
    """The simulation to set beside a measured trace, and by what it was made, or an InputError."""
    scenario, dtype, mode = trace.scenario, trace.machine["dtype"], trace.machine["mode"]
    if hardware is not None:
        entry = load(hardware)
        by = f"Predicted with {hardware}: {entry.machine or entry.source}, {entry.date}."
        return simulate(predicted(scenario, entry, dtype=dtype, mode=mode)), by
    compute, work = scenario.compute, scenario.compute.work_factor
    repeated = replace(
        compute,
        forward_s_per_token=compute.forward_s_per_token * work,
        backward_s_per_token=compute.backward_s_per_token * work,
    )
    by = (
        "Predicted with the scenario's own latency, bandwidth and seconds per token, for "
        f"{work} passes and the gradient's real bytes: a cluster of your choice, not this machine. "
        "Calibrate to predict this one."
    )
    return simulate(at_real_size(replace(scenario, compute=repeated), dtype, mode)), by


def _modes(found: dict[str, Measured]) -> None:
    last = [(each.trace, step_metrics(each.trace, each.trace.steps - 1)) for each in found.values()]
    rows = [
        ["step", *(lasting(m.step_time_s) for _, m in last)],
        ["forward and backward, slowest rank", *(duration(float(m.compute_s.max())) for _, m in last)],
        ["longest wait", *(lasting(m.longest_wait_s) for _, m in last)],
        ["all-reduce", *(duration(m.communication_s) for _, m in last)],
        ["exposed of it", *(lasting(m.exposed_communication_s) for _, m in last)],
        ["passes for one", *(str(trace.scenario.compute.work_factor) for trace, _ in last)],
        ["buckets", *(str(len(trace.buckets(trace.steps - 1))) for trace, _ in last)],
    ]
    st.markdown(table(["last step", *(literal(MODE_NAMES[mode]) for mode in found)], rows))
    if others := [MODE_NAMES[mode] for mode in MODE_NAMES if mode not in found]:
        st.caption(literal(f"Run it another way to see it here as well: {', '.join(others)}."))
