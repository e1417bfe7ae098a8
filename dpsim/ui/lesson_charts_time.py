"""Charts of time in a lesson: all-reduces on more and more ranks, a step rank by rank, sizes of buckets."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsim.directives import Chart
from dpsim.figures import figure
from dpsim.network import cost
from dpsim.run_figures import run
from dpsim.scenario import COLLECTIVES, Scenario
from dpsim.timeline import Bucket, buckets
from dpsim.ui.inks import DASHES, INKS, marker
from dpsim.ui.lab_controls import COLLECTIVE_NAMES
from dpsim.wording import duration, plural, size

WORLD_SIZES = (2, 4, 8, 16, 32, 64)
TINY_BYTES = 4.0  # one element: a count, a flag, a loss to be printed
# Where a logarithmic axis of seconds may be marked.
TICKS = tuple(10.0**power for power in range(-6, 3))


T = TypeVar("T")


def time_by_ranks(chart: Chart) -> tuple[go.Figure, str]:
    """What an all-reduce of the scenario's gradient, and one of four bytes, takes by each algorithm."""
    network, gradient = chart.scenario.network, chart.scenario.bytes_per_element * chart.scenario.model.size
    drawing = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
    said = []
    for row, amount in enumerate((gradient, TINY_BYTES), 1):
        for i, name in enumerate(COLLECTIVES):
            costs = [
                cost(name, r, amount, network.latency_s, network.bandwidth_bytes_per_s) for r in WORLD_SIZES
            ]
            times = [each.time_s for each in costs]
            drawing.add_scatter(
                x=list(map(str, WORLD_SIZES)), y=times, name=COLLECTIVE_NAMES[name], legendgroup=name,
                line={"color": INKS[i], "dash": DASHES[i], "width": 3}, marker={"symbol": i, "size": 9},
                mode="lines+markers", showlegend=row == 1, text=list(map(duration, times)),
                hovertemplate="%{x} ranks: %{text}", row=row, col=1,
            )  # fmt: skip
            ends = f"{duration(times[0])} to {duration(times[-1])}"
            said.append(f"{COLLECTIVE_NAMES[name]}, {size(amount)}: {ends}")
        drawing.update_yaxes(title_text=f"time to add up {size(amount)}", row=row, col=1)
    drawing.update_yaxes(type="log", tickvals=TICKS, ticktext=list(map(duration, TICKS)))
    drawing.update_xaxes(type="category")
    drawing.update_xaxes(title_text="ranks", row=2, col=1)
    drawing.update_layout(height=560)
    about = f"Line charts of the time of an all-reduce on {WORLD_SIZES[0]} to {WORLD_SIZES[-1]} ranks."
    return drawing, f"{about} {'; '.join(said)}."


def known(value: T | None) -> T:
    """A time of a run that ends: charts of one that hangs are refused when their lesson is read."""
    assert value is not None
    return value


def step_by_rank(chart: Chart) -> tuple[go.Figure, str]:
    """Where the last step of every rank goes: a bar of its parts, which add up to the step time."""
    metrics, size_of = run(chart.scenario).last, chart.scenario.world_size
    parts = {
        "scatter and count": metrics.scatter_s + metrics.count_s,
        "compute": metrics.compute_s,
        "wait": known(metrics.wait_s),
        "exposed communication": np.full(size_of, known(metrics.exposed_communication_s)),
        "optimizer step": np.full(size_of, metrics.optimizer_s),
    }
    names = [f"rank {r}" for r in range(size_of)]
    order = (3, 0, 1, 2, 5)  # the ink and texture of each part
    bars = [
        go.Bar(
            y=names, x=1e3 * seconds, name=part, orientation="h", marker=marker(ink),
            text=list(map(duration, seconds)), textposition="none", hovertemplate="%{y}: %{text}",
        )
        for ink, (part, seconds) in zip(order, parts.items(), strict=True)
    ]  # fmt: skip
    drawing = go.Figure(bars)
    drawing.update_layout(barmode="stack", bargap=0.3, height=190 + 30 * size_of, legend_traceorder="normal")
    drawing.update_yaxes(autorange="reversed")
    drawing.update_xaxes(title_text="ms")
    each = [
        f"rank {r}: " + ", ".join(f"{part} {duration(float(s[r]))}" for part, s in parts.items())
        for r in range(size_of)
    ]
    return (
        drawing,
        f"Bars of the parts of a step of {duration(known(metrics.step_time_s))}. {'; '.join(each)}.",
    )


def cut(scenario: Scenario) -> list[Scenario]:
    """The scenario with every other number of buckets that a cap can make of it, fewest first."""
    last = scenario.steps - 1
    parts = buckets(replace(scenario, buckets=replace(scenario.buckets, cap_bytes=1e-9)), last)
    sizes = [(part.stop - part.start) * scenario.bytes_per_element for part in parts]
    caps = {sum(sizes[i:j]) for i in range(len(sizes)) for j in range(i + 1, len(sizes) + 1)}
    made: dict[tuple[Bucket, ...], Scenario] = {}
    for cap in sorted(caps):
        other = replace(scenario, buckets=replace(scenario.buckets, cap_bytes=cap))
        made.setdefault(buckets(other, last), other)
    return sorted(made.values(), key=lambda s: len(buckets(s, last)))


def bucket_sizes(chart: Chart) -> tuple[go.Figure, str]:
    """How long the gradient travels in one bucket and in several, and how much of that backward hides."""
    names, hidden, exposed, said = [], [], [], []
    for scenario in cut(chart.scenario):
        facts = {name: figure(scenario, f"last_{name}") for name in ("hidden", "exposed", "step_time")}
        hidden.append(1e3 * facts["hidden"].number)
        exposed.append(1e3 * facts["exposed"].number)
        count = plural(len(buckets(scenario, scenario.steps - 1)), "bucket")
        names.append(f"{count}<br>exposed {facts['exposed'].text}<br>step {facts['step_time'].text}")
        said.append(
            f"{count}: " + ", ".join(f"{name.replace('_', ' ')} {f.text}" for name, f in facts.items())
        )
    bars = [
        go.Bar(x=names, y=ms, name=name, marker=marker(ink), hovertemplate=name + ": %{y:.3g} ms")
        for ink, name, ms in ((0, "hidden", hidden), (2, "exposed", exposed))
    ]
    drawing = go.Figure(bars)
    drawing.update_layout(barmode="stack", bargap=0.45, legend_traceorder="normal")
    drawing.update_yaxes(title_text="communication, ms", rangemode="tozero")
    return drawing, f"Stacked bars of communication, hidden and exposed. {'; '.join(said)}."


OF_TIME = {"time": time_by_ranks, "step": step_by_rank, "buckets": bucket_sizes}
