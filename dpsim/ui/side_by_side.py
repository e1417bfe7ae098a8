"""A step as predicted and as measured: two timelines on one axis, and the differences by name."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from dpsim.differences import Difference, differences
from dpsim.metrics import step_metrics
from dpsim.prose import literal
from dpsim.trace import ALL_REDUCE, BACKWARD, BARRIER, FORWARD, OPTIMIZER, RECEIVE, Trace
from dpsim.ui.text import NONE, table
from dpsim.wording import duration, lasting, size

# As on the stage's timeline: a kind of event is a shade of the ink, since colour means a rank.
KINDS = (
    ("forward", (FORWARD,), 0.18, ""),
    ("backward", (BACKWARD,), 0.34, ""),
    ("all-reduce", (RECEIVE, ALL_REDUCE), 0.7, ""),
    ("barrier", (BARRIER,), 0.25, "/"),
    ("optimizer step", (OPTIMIZER,), 1.0, ""),
)
INKS = ("27, 33, 48", "242, 244, 248")  # of the light and the dark theme


def side_by_side(simulated: Trace, measured: Trace, key: str) -> None:
    """Draw both for the last step."""
    last = measured.steps - 1
    st.plotly_chart(
        timelines(simulated, measured, last, dark=st.context.theme.type == "dark"),
        key=key, config={"displayModeBar": False}, alt=_in_words(simulated, measured, last),
    )  # fmt: skip
    rows = [
        [literal(d.name), _amount(d, d.predicted), _amount(d, d.measured), _ratio(d)]
        for d in differences(simulated, measured, last)
    ]
    st.markdown(table(["part of the step", "predicted", measured.source, "ratio"], rows))
    st.caption(
        "Where a measured bandwidth is missing, too few bytes were sent to show one; Calibrate sends more."
    )


def _amount(part: Difference, value: float | None) -> str:
    if value is None:
        return NONE
    return literal(duration(value) if part.unit == "s" else f"{size(value)}/s")


def _ratio(part: Difference) -> str:
    return literal(f"{part.measured / part.predicted:.2g}") if part.predicted and part.measured else NONE


def _in_words(predicted: Trace, measured: Trace, step: int) -> str:
    ends = [lasting(step_metrics(trace, step).step_time_s) for trace in (predicted, measured)]
    return f"Timelines of one step, rank by rank: predicted {ends[0]}, {measured.source} {ends[1]}"


def timelines(predicted: Trace, measured: Trace, step: int, *, dark: bool) -> go.Figure:
    """One step of both traces, one above the other on one axis in milliseconds: a bar for every event."""
    figure = make_subplots(
        2,
        1,
        shared_xaxes=True,
        vertical_spacing=0.28 if measured.scenario.world_size < 4 else 0.16,  # a title below an axis
        subplot_titles=["Predicted", measured.source.capitalize()],
    )
    for row, trace in enumerate((predicted, measured), 1):
        events, begun = trace.events, trace.step_window(step)[0]
        for name, kinds, shade, texture in KINDS:
            rows = sorted(i for kind in kinds for i in events.where(step=step, kind=kind).tolist())
            colour = f"rgba({INKS[dark]}, {shade})"
            pattern = {"shape": texture, "fgcolor": f"rgb({INKS[dark]})", "bgcolor": "rgba(0, 0, 0, 0)"}
            figure.add_bar(
                y=[f"rank {int(events.rank[i])}" for i in rows],
                base=[1e3 * (events.start_s[i] - begun) for i in rows],
                x=[1e3 * (events.end_s[i] - events.start_s[i]) for i in rows],
                orientation="h", name=name, legendgroup=name, showlegend=row == 1,
                marker={"color": colour, "pattern": pattern if texture else {}, "line": {"width": 0}},
                hovertemplate="%{y}, " + name + ": %{x:.3g} ms<extra></extra>", row=row, col=1,
            )  # fmt: skip
    ranks_down = [f"rank {r}" for r in reversed(range(measured.scenario.world_size))]
    figure.update_yaxes(categoryorder="array", categoryarray=ranks_down)
    figure.update_xaxes(title="ms since the step began", row=2, col=1)
    figure.update_xaxes(showticklabels=True, row=1, col=1)
    figure.update_layout(
        barmode="overlay", bargap=0.25, height=260 + 44 * measured.scenario.world_size,
        margin={"l": 8, "r": 8, "t": 40, "b": 8}, legend={"orientation": "h", "y": -0.18},
    )  # fmt: skip
    return figure
