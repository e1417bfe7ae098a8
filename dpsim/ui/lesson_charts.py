"""Charts of a lesson: the weight of one token on each rank, loss or error over steps, and those of
`lesson_charts_time` and `lesson_charts_data`."""

from __future__ import annotations

import plotly.graph_objects as go

from dpsim.directives import Chart
from dpsim.exercises import Series
from dpsim.figures import figure
from dpsim.reduction import NAMES
from dpsim.run_figures import run
from dpsim.ui.inks import DASHES, INKS, marker
from dpsim.ui.lesson_charts_data import OF_FIGURES
from dpsim.ui.lesson_charts_time import OF_TIME
from dpsim.wording import listed, number

AXES = {"error": "relative L2 error of the gradient", "loss": "loss before the update"}


def way_name(way: str) -> str:
    """A way of reducing in words."""
    return "one device" if way == "one_device" else NAMES[way]


def drawn(chart: Chart) -> tuple[go.Figure, str]:
    """The chart, and the same in words for whoever does not see it."""
    own = {"weight": _weights, "error": _over_steps, "loss": _over_steps}
    drawing, said = (own | OF_TIME | OF_FIGURES)[chart.show](chart)
    drawing.update_layout(
        height=drawing.layout.height or 340,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        font={"size": 15},
    )
    return drawing, said


def _weights(chart: Chart) -> tuple[go.Figure, str]:
    ranks = range(chart.scenario.world_size)
    names = [f"rank {r}, {figure(chart.scenario, f'valid.{r}').text} valid" for r in ranks]
    bars, said = [], []
    for i, way in enumerate(chart.ways):
        found = [figure(chart.scenario, f"weight.{way}.{r}") for r in ranks]
        texts = [weight.text for weight in found]
        bars.append(
            go.Bar(
                x=names, y=[w.value for w in found], text=texts, name=way_name(way), marker=marker(i),
                textposition="outside", cliponaxis=False, hovertemplate="%{x}: %{text}",
            )
        )  # fmt: skip
        pairs = [f"{text} on {name}" for text, name in zip(texts, names, strict=True)]
        said.append(f"{way_name(way)}: {listed(pairs)}")
    drawing = go.Figure(bars)
    drawing.update_yaxes(title_text="weight of one valid token", rangemode="tozero")
    drawing.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": "#7d8694"})
    return drawing, f"Bar chart of the weight of one valid token, 1 being right. {'; '.join(said)}."


def _over_steps(chart: Chart) -> tuple[go.Figure, str]:
    ways, lines, said = run(chart.scenario).ways, [], []
    for i, way in enumerate(chart.ways):
        outcome = ways.one_device if way == "one_device" else ways.schemes[way]
        values = outcome.loss if chart.show == "loss" else outcome.relative_l2_error
        line = {"color": INKS[i], "dash": DASHES[i], "width": 3}
        steps = list(range(1, len(values) + 1))
        lines.append(go.Scatter(x=steps, y=values, name=way_name(way), line=line, mode="lines+markers"))
        ends = [value for value in (values[0], values[-1]) if value is not None]
        said.append(
            f"{way_name(way)}: from {' to '.join(map(number, ends))}"
            if ends
            else f"{way_name(way)}: undefined"
        )
    drawing = go.Figure(lines)
    drawing.update_xaxes(title_text="step", dtick=max(1, chart.scenario.steps // 10))
    drawing.update_yaxes(title_text=AXES[chart.show])
    return (
        drawing,
        f"Line chart over {chart.scenario.steps} steps of the {AXES[chart.show]}. {'; '.join(said)}.",
    )


def series_drawn(series: Series) -> tuple[go.Figure, str]:
    """How an exercise's answer depends on the one number that matters, with its own point marked."""
    line = {"color": INKS[0], "width": 3}
    drawing = go.Figure(go.Scatter(x=series.x, y=series.y, mode="lines+markers", line=line, showlegend=False))
    x, y = series.at, series.y[series.x.index(series.at)]
    mark = {"size": 15, "symbol": "circle-open", "color": INKS[2], "line": {"width": 3}}
    drawing.add_scatter(x=[x], y=[y], mode="markers", marker=mark, name="this exercise")
    drawing.update_xaxes(title_text=series.x_name)
    drawing.update_yaxes(title_text=series.y_name, rangemode="tozero")
    drawing.update_layout(
        height=300, margin={"l": 10, "r": 10, "t": 10, "b": 10}, font={"size": 15},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    (x0, y0), (x1, y1) = ((series.x[i], series.y[i]) for i in (0, -1))
    ends = f"from {number(y0)} at {number(x0)} to {number(y1)} at {number(x1)}"
    said = f"{series.title}: line chart of {series.y_name} against {series.x_name}, {ends}."
    return drawing, f"{said} This exercise: {number(y)} at {number(x)}."
