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
from dpsim.trace import to_perfetto
from dpsim.ui.stage.offline import offline_page
from dpsim.ui.stage.payload import stage_data


def _offline(query: str) -> str:
    scenario = from_query(query)
    trace, ways = simulate(scenario), compare(scenario)
    told = beats(trace, ways)
    return offline_page(stage_data(trace, told, ways, told[0].id), told)


def _text(query: str) -> str:
    return beats_as_text(beats(simulate(from_query(query)))) + "\n"


def _toml(query: str) -> str:
    return to_toml(from_query(query))


def _trace(query: str) -> str:
    return simulate(from_query(query)).to_json()


def _perfetto(query: str) -> str:
    return to_perfetto(simulate(from_query(query)))


FILES: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("Stage as a page that plays offline", ".html", "text/html", _offline),
    ("Beats as text", ".txt", "text/plain", _text),
    ("Scenario as TOML", ".toml", "application/toml", _toml),
    ("Trace as JSON", ".trace.json", "application/json", _trace),
    ("Events for Perfetto or Chrome", ".perfetto.json", "application/json", _perfetto),
)


def take_along(query: str) -> None:
    """The buttons; a file is made when its button is pressed."""
    name = re.sub(r"[^\w-]+", "-", from_query(query).name)
    with st.expander("Take it along"), st.container(horizontal=True):
        for label, ending, mime, make in FILES:
            st.download_button(
                label, partial(make, query), name + ending, mime, key=f"take{ending}", on_click="ignore"
            )
