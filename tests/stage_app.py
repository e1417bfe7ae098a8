"""A page for the stage's tests: the stage beside controls that rerun it, change its data, keep it waiting.

The link says what to show: `preset`, `beat`, `change` (keys of a scenario on top, "key=value;key=value", that
the box takes up), and with any value `keep`, `ghost` (of the picture before) and `present`.
"""

from __future__ import annotations

import time

import streamlit as st

from dpsim.beats import beats
from dpsim.comparison import compare
from dpsim.forms import from_query, preset
from dpsim.simulate import simulate
from dpsim.ui.stage import stage
from dpsim.ui.stage.payload import Data, ghost_of, stage_data

st.set_page_config(layout="wide")
asked = st.query_params.to_dict()
if "present" in asked:
    st.html("<style>.stAppHeader { display: none; } .stMainBlockContainer { padding: 0.5rem 1rem; }</style>")


@st.cache_data
def shown(name: str, keys: dict[str, str], beat: str | None) -> Data:
    """The stage's data for a preset with some keys on top."""
    scenario = from_query(keys, base=preset(name))
    trace, ways = simulate(scenario), compare(scenario)
    told = beats(trace, ways)
    return stage_data(trace, told, ways, beat or told[0].id)


@st.fragment
def play(data: Data) -> None:
    """The stage in a fragment, as the app has it."""
    stage(data, key="stage")


name, beat = asked.get("preset", "first-screen"), asked.get("beat")
change = dict(pair.split("=") for pair in asked.get("change", "").split(";") if pair)
data = shown(name, {}, beat)
extra = {key: True for key in ("keep", "present") if key in asked}
slot = st.container()
with st.container(horizontal=True):
    changed = st.checkbox("Changed")
    st.button("Rerun")
    if st.button("Be busy"):
        time.sleep(5)
if changed:
    before = data
    data = shown(name, change, beat)
    if "ghost" in asked:
        extra["ghost"] = ghost_of(before)
with slot:
    play(data | extra)
