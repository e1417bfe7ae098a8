"""What can be taken along from a page: the stage as an offline page, its text, its scenario, its trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from dpsim.beats import beats, beats_as_text
from dpsim.comparison import Comparison
from dpsim.forms import from_query, to_toml
from dpsim.trace import Trace
from dpsim.trace_files import to_perfetto
from dpsim.ui.picture import run_of
from dpsim.ui.stage.offline import offline_page
from dpsim.ui.stage.payload import stage_data


def _offline(trace: Trace, ways: Comparison) -> str:
    told = beats(trace, ways)
    return offline_page(stage_data(trace, told, ways, told[0].id), told)


def _text(trace: Trace, ways: Comparison) -> str:
    return beats_as_text(beats(trace, ways)) + "\n"


def _toml(trace: Trace, _: Comparison) -> str:
    return to_toml(trace.scenario)


def _json(trace: Trace, _: Comparison) -> str:
    return trace.to_json()


def _perfetto(trace: Trace, _: Comparison) -> str:
    return to_perfetto(trace)


FILES: tuple[tuple[str, str, str, Callable[[Trace, Comparison], str]], ...] = (
    ("Stage as a page that plays offline", ".html", "text/html", _offline),
    ("Beats as text", ".txt", "text/plain", _text),
    ("Scenario as TOML", ".toml", "application/toml", _toml),
    ("Trace as JSON", ".trace.json", "application/json", _json),
    ("Events for Perfetto or Chrome", ".perfetto.json", "application/json", _perfetto),
)


def take_along(query: str, trace: Trace | None = None, ways: Comparison | None = None) -> None:
    """The buttons, for the scenario in `query` or a trace of it that was opened or measured, with the ways
    that were run beside it; a file is made when its button is pressed."""
    name = re.sub(r"[^\w-]+", "-", from_query(query).name)

    def made(make: Callable[[Trace, Comparison], str]) -> str:
        simulated, by_formula = run_of(query)
        return make(trace or simulated, ways or by_formula)

    with st.expander("Take it along"), st.container(horizontal=True):
        for label, ending, mime, make in FILES:
            st.download_button(
                label, partial(made, make), name + ending, mime, key=f"take{ending}", on_click="ignore"
            )
