"""Beside the lab's stage: every reduction against one device, where the time goes, and charts over steps."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from dpsim.comparison import Comparison, Outcome, drift, whole_loss
from dpsim.hiding import hidden_faults
from dpsim.metrics import StepMetrics, step_metrics
from dpsim.prose import literal
from dpsim.reduction import NAMES
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.text import NONE, explained, table
from dpsim.wording import duration, lasting, number, size, vector

MOST_RANKS = 8  # ranks whose weights and waits stand one by one

# Colour means a rank and nothing else: the ways of reducing differ by how their lines are drawn.
LINES = {
    "one_device": {"width": 7, "dash": "solid"},
    "token_weighted": {"width": 2, "dash": "solid"},
    "mean_of_rank_means": {"width": 2, "dash": "dash"},
}
OTHER = {"width": 2, "dash": "dot"}


def warnings(scenario: Scenario, ways: Comparison) -> None:
    """Where clipping or Adam hides a fault."""
    for hidden in hidden_faults(scenario, ways):
        st.warning(literal(hidden.in_words()), icon=":material/visibility_off:")


def results(trace: Trace, ways: Comparison, before: tuple[Trace, Comparison] | None) -> None:
    """All of it, in tabs."""
    gradients, time, steps = st.tabs(["Gradients", "Time", "Over the steps"])
    with gradients:
        gradients_table(ways)
    with time:
        was = before and step_metrics(before[0], before[0].steps - 1)
        _time(trace.steps, step_metrics(trace, trace.steps - 1), was)
    with steps:
        _over_steps(trace.scenario, ways)


def gradients_table(ways: Comparison) -> None:
    """Every way of reducing against one device: gradient, errors, weight of a token, parameters after."""
    head = ["reduction", "gradient", "relative L2 error", "cosine", "weight of a token", "parameters after"]
    shown = {"one device on the whole batch": ways.one_device}
    shown |= {NAMES[name]: outcome for name, outcome in ways.schemes.items()}
    rows = [_row(name, outcome, outcome.scheme == ways.chosen) for name, outcome in shown.items()]
    note = "The first step. The weight of a token is what one valid token counts on each rank, 1 being right."
    with st.container(key="reductions"):  # it scrolls where it is too wide; the terms let the keyboard in
        st.markdown(table(head, rows))
        st.markdown(explained(note), unsafe_allow_html=True)


def _row(name: str, outcome: Outcome, ours: bool) -> list[str]:
    gradient, error, cosine = outcome.gradient[0], outcome.relative_l2_error[0], outcome.cosine[0]
    label = f"**{literal(name)}** (this run)" if ours else literal(name)
    if gradient is None:
        return [label, literal(f"undefined: {outcome.undefined}"), NONE, NONE, NONE, NONE]
    return [
        label,
        literal(vector(gradient.tolist())),
        NONE if error is None else literal(_share(error)),
        NONE if cosine is None else literal(number(cosine)),
        literal(_weights(outcome)),
        literal(vector(outcome.parameters[1].tolist())),
    ]


def _share(error: float) -> str:
    """A relative error as a percentage; rounding in the last digits is none."""
    return f"{number(100 * error)} %" if error > 1e-12 else "0"


def _weights(outcome: Outcome) -> str:
    if outcome.token_weight is None:
        return "1 everywhere" if outcome.scheme == "one_device" else NONE
    cells = [[number(w) for w in row] for row in outcome.token_weight.tolist()]
    flat = {w for row in cells for w in row}
    if len(flat) == 1:
        return f"{flat.pop()} everywhere"
    texts = [row[0] if len(set(row)) == 1 else f"({', '.join(row)})" for row in cells[:MOST_RANKS]]
    return ", ".join(texts) + (", …" if len(cells) > MOST_RANKS else "")


def _time(steps: int, now: StepMetrics, before: StepMetrics | None) -> None:
    st.markdown(f"Step {steps}, the last." if steps > 1 else "The one step.")
    figures = [_figures(m) for m in (now, before) if m is not None]
    with st.container(horizontal=True):
        for label, value in figures[0].items():
            was = figures[-1].get(label, "")
            st.metric(
                label, value, f"was {was}" if was not in ("", value) else None,
                delta_color="off", delta_arrow="off", border=True, width=190,
            )  # fmt: skip
    ranks = len(now.compute_s)
    waits = [lasting(None)] * ranks if now.wait_s is None else [duration(float(w)) for w in now.wait_s]
    sent = [NONE] * len(waits) if now.bytes_sent is None else [size(float(b)) for b in now.bytes_sent]
    rows = [[str(r), waits[r], sent[r]] for r in range(min(len(waits), 64))]
    with st.expander("Rank by rank", expanded=len(rows) <= MOST_RANKS):
        st.markdown(table(["rank", "wait", "bytes sent"], rows))


def _figures(m: StepMetrics) -> dict[str, str]:
    return {
        "Step time": lasting(m.step_time_s),
        "Longest wait": lasting(m.longest_wait_s),
        "Exposed communication": lasting(m.exposed_communication_s),
        "Sent by a rank, at most": NONE if m.bytes_sent is None else size(float(m.bytes_sent.max())),
        "busbw": NONE if m.busbw_bytes_per_s is None else f"{size(m.busbw_bytes_per_s)}/s",
        "Scaling efficiency": NONE
        if m.scaling_efficiency is None
        else f"{number(100 * m.scaling_efficiency)} %",
    }


def _over_steps(scenario: Scenario, ways: Comparison) -> None:
    if len(ways.one_device.loss) < 2:
        st.markdown("One step has no curve yet: choose more steps above.")
        return
    names = ["one_device", "token_weighted", "mean_of_rank_means"]
    names += [ways.chosen] if ways.chosen not in names else []
    lost, drifted = st.columns(2)
    with lost:
        curves = {n: whole_loss(scenario, _of(ways, n)) for n in names}
        _chart(curves, "Mean loss over all valid tokens", "loss", ways.chosen)
    with drifted:
        away = {n: drift(ways, n) for n in names[1:]}
        _chart(away, "Drift of the parameters from one device", "relative L2 error", ways.chosen)


def _of(ways: Comparison, name: str) -> Outcome:
    return ways.one_device if name == "one_device" else ways.schemes[name]


def _chart(curves: dict[str, tuple[float | None, ...]], title: str, unit: str, chosen: str) -> None:
    dark = st.context.theme.type == "dark"
    ink, pale = ("#f2f4f8", "#5c6675") if dark else ("#1b2130", "#b9c0cc")
    figure = go.Figure()
    for name, values in curves.items():
        label = NAMES.get(name, "one device") + (" (this run)" if name == chosen else "")
        line = LINES.get(name, OTHER) | {"color": pale if name == "one_device" else ink}
        figure.add_scatter(y=list(values), x=list(range(len(values))), name=label, line=line, mode="lines")
    figure.update_layout(
        title=title, height=340, margin={"l": 8, "r": 8, "t": 48, "b": 8}, hovermode="x unified",
        legend={"orientation": "h", "y": -0.25}, xaxis_title="steps taken", yaxis_title=unit,
    )  # fmt: skip
    ends = "; ".join(
        f"{NAMES.get(n, 'one device')} ends at {number(v[-1])}"
        for n, v in curves.items()
        if v[-1] is not None
    )
    st.plotly_chart(figure, key=title, config={"displayModeBar": False}, alt=f"{title}: {ends}")
