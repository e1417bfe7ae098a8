"""Charts of a lesson: the speed-up of more ranks, the memory of a rank, and published figures."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from dpsim.directives import Chart
from dpsim.figures import figure
from dpsim.figures_data import STAGES
from dpsim.published import published
from dpsim.ui.inks import DASHES, INKS, marker
from dpsim.wording import listed

RANKS = (1, 2, 4, 8, 16, 32, 64)
TICKS = (1, 8, 16, 32, 64)  # those below would stand on each other
SPEEDUPS = ((0, "speedup", "each rank keeps its share"), (2, "speedup_same_batch", "the same batch, divided"))
KINDS = ("plain", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3")
PARTS = (
    ("weights", 2, 3),
    ("gradients", 2, 2),
    ("optimizer state", 12, 1),
)  # bytes, sharded from which stage


def _speedup(chart: Chart) -> tuple[go.Figure, str]:
    lines, said = [], []
    for i, family, name in SPEEDUPS:
        found = [figure(chart.scenario, f"{family}.{ranks}") for ranks in RANKS]
        if found[0].value is None:  # a batch that is laid down rank by rank cannot be divided anew
            continue
        line = {"color": INKS[i], "dash": DASHES[i], "width": 3}
        values = [one.value for one in found]
        lines.append(go.Scatter(x=RANKS, y=values, name=name, line=line, mode="lines+markers"))
        pairs = [f"{one.text} on {ranks} ranks" for ranks, one in zip(RANKS, found, strict=True)]
        said.append(f"{name}: {listed(pairs)}")
    ideal = {"color": INKS[1], "dash": "dot", "width": 1.5}
    drawing = go.Figure(
        [*lines, go.Scatter(x=RANKS, y=RANKS, name="as many as ranks", line=ideal, mode="lines")]
    )
    drawing.update_xaxes(title_text="ranks", tickvals=TICKS)
    drawing.update_yaxes(title_text="times one rank", tickvals=TICKS)
    return drawing, f"Line chart of the speed-up against the number of ranks. {'; '.join(said)}."


def _memory(chart: Chart) -> tuple[go.Figure, str]:
    parameters, ranks = (published()[name] for name in chart.names)
    bars = []
    for i, (part, each, from_stage) in enumerate(PARTS):
        held = [
            each * parameters.value / (ranks.value if stage >= from_stage else 1) / 1e9
            for stage in range(len(STAGES))
        ]
        bars.append(go.Bar(y=KINDS, x=held, name=part, orientation="h", marker=marker(i)))
    totals = [figure(chart.scenario, f"memory.{stage}.{'.'.join(chart.names)}") for stage in STAGES]
    drawing = go.Figure(bars)
    drawing.update_layout(barmode="stack")
    for kind, total in zip(KINDS, totals, strict=True):
        at = {"x": total.number, "y": kind, "text": f" {total.text}"}
        drawing.add_annotation(**at, showarrow=False, xanchor="left")
    drawing.update_xaxes(title_text="GB on every rank", range=[0, 1.2 * totals[0].number])
    drawing.update_yaxes(autorange="reversed")
    pairs = [f"{kind} {total.text}" for kind, total in zip(KINDS, totals, strict=True)]
    what = f"{parameters.written(parameters.value)} parameters on {ranks.written(ranks.value)} ranks"
    return drawing, f"Bar chart of what a rank holds for {what}: {listed(pairs)}."


def _published(chart: Chart) -> tuple[go.Figure, str]:
    x, y = (published()[name] for name in chart.names)
    line = {"color": INKS[0], "width": 3}
    drawing = go.Figure(go.Scatter(x=x.values, y=y.values, line=line, mode="lines+markers"))
    drawing.update_xaxes(
        title_text=_axis(x.says, x.unit),
        type="log",
        tickvals=x.values,
        ticktext=[x.written(value) for value in x.values],
    )
    drawing.update_yaxes(title_text=_axis(y.says, y.unit))
    pairs = [f"{y.written(b)} at {x.written(a)}" for a, b in zip(x.values, y.values, strict=True)]
    return drawing, f"Line chart of {y.says} against {x.says}: {listed(pairs)}. Source: {y.source}."


def _axis(says: str, unit: str) -> str:
    return f"{says}, {unit}" if unit else says


OF_FIGURES: dict[str, Callable[[Chart], tuple[go.Figure, str]]] = {
    "speedup": _speedup,
    "memory": _memory,
    "published": _published,
}
