"""The page of one step: choose a preset, see its stage, read its beats."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpsim.beats import beats
from dpsim.checks import InputError, choice
from dpsim.comparison import compare
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario, check_app_bounds
from dpsim.simulate import simulate
from dpsim.ui.frame import frame
from dpsim.ui.stage import stage
from dpsim.ui.stage.payload import Data, stage_data
from dpsim.ui.text import beats_markdown, literal

OPENING = "first-screen"
NOT_OF_THE_SCENARIO = ("preset", "beat", "embed", "embed_options")


@st.cache_data(max_entries=64, show_spinner=False)
def picture(query: str) -> tuple[Data, str, tuple[str, ...]]:
    """The stage's data for the scenario in `query`, its beats as Markdown, and their ids."""
    scenario = from_query(query)
    trace = simulate(scenario)
    told = beats(trace)
    data = stage_data(trace, told, compare(scenario), told[0].id)
    return data, beats_markdown(told), tuple(b.id for b in told)


def chosen_scenario(name: str, query: dict[str, str]) -> Scenario:
    """The preset called `name`, with what the link says on top."""
    keys = {k: v for k, v in query.items() if k not in NOT_OF_THE_SCENARIO}
    return check_app_bounds(from_query(keys, base=preset(name)))


def step_page() -> None:
    """Draw the page. Bad input gets a message in its place, and the last good picture stays."""
    frame()
    heading, choosing, _ = st.columns([6, 3, 0.5], vertical_alignment="center")
    asked = st.query_params.to_dict()
    name = choosing.selectbox(
        "Scenario", preset_names(), key="preset", bind="query-params", label_visibility="collapsed"
    )
    good: tuple[str, dict[str, Any]] = st.session_state.setdefault("good", (to_query(preset(OPENING)), {}))
    try:
        if "preset" in asked:
            choice("preset", asked["preset"], preset_names())
        good = (to_query(chosen_scenario(name, asked)), good[1])
        picture(good[0])
        st.session_state["good"] = good
    except InputError as error:
        st.error(literal(str(error)), icon=":material/error:")
        good = st.session_state["good"]
    data, text, ids = picture(good[0])
    heading.markdown(f"#### {literal(data['title'])}")
    opening = _opening(data["id"], ids, asked.get("beat"))
    play(data | {"first": opening})
    with st.expander(f"The same step as text: {len(ids)} beats"):
        st.markdown(text)


def _opening(identity: str, ids: tuple[str, ...], asked: str | None) -> str:
    """The beat this picture opens on: kept for as long as it is shown, so that its data do not change."""
    opened: tuple[str, str] | None = st.session_state.get("opened")
    if opened is None or opened[0] != identity:
        first = opened is None
        opened = (identity, asked if first and asked in ids else ids[0])
        st.session_state["opened"] = opened
        if first and asked is not None and asked not in ids:
            st.warning(literal(f"beat: must be one of this scenario's beats, got {asked[:60]!r}"))
    return opened[1]


@st.fragment
def play(data: Data) -> None:
    """The stage in a fragment of its own, so that stopping at a beat reruns nothing else."""
    stage(data, key="stage")
