"""What can be taken along from a page: the stage as an offline page, its text, its scenario, its trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from dpsim.beats import beats, beats_as_text
from dpsim.comparison import compare
from dpsim.forms import from_query, to_toml
from dpsim.simulate import simulate
from dpsim.trace import Trace, to_perfetto
from dpsim.ui.stage.offline import offline_page
from dpsim.ui.stage.payload import stage_data


def _offline(trace: Trace) -> str:
    ways = compare(trace.scenario)
    told = beats(trace, ways)
    return offline_page(stage_data(trace, told, ways, told[0].id), told)


def _text(trace: Trace) -> str:
    return beats_as_text(beats(trace)) + "\n"


def _toml(trace: Trace) -> str:
    return to_toml(trace.scenario)


FILES: tuple[tuple[str, str, str, Callable[[Trace], str]], ...] = (
    ("Stage as a page that plays offline", ".html", "text/html", _offline),
    ("Beats as text", ".txt", "text/plain", _text),
    ("Scenario as TOML", ".toml", "application/toml", _toml),
    ("Trace as JSON", ".trace.json", "application/json", Trace.to_json),
    ("Events for Perfetto or Chrome", ".perfetto.json", "application/json", to_perfetto),
)


def take_along(query: str, trace: Trace | None = None) -> None:
    """The buttons, for the scenario in `query` or a trace of it that was opened; a file is made when its
    button is pressed."""
    name = re.sub(r"[^\w-]+", "-", from_query(query).name)

    def made(make: Callable[[Trace], str]) -> str:
        return make(trace if trace is not None else simulate(from_query(query)))

    with st.expander("Take it along"), st.container(horizontal=True):
        for label, ending, mime, make in FILES:
            st.download_button(
                label, partial(made, make), name + ending, mime, key=f"take{ending}", on_click="ignore"
            )
