"""Blocks of a lesson that set algorithms, or a prediction and a recording, beside each other."""

from __future__ import annotations

import streamlit as st

from dpsim.directives import Collectives, Recording
from dpsim.figures import figure
from dpsim.prose import literal
from dpsim.recordings import prediction, recording
from dpsim.scenario import COLLECTIVES
from dpsim.setting import Setting
from dpsim.ui.lab_controls import COLLECTIVE_NAMES
from dpsim.ui.picture import picture_of, play
from dpsim.ui.text import table

FACTS = (
    ("rounds", "cost_rounds"),
    ("bytes of the busiest rank", "busiest_bytes"),
    ("its time by formula", "cost_time"),
    ("on the clock", "clock_time"),
    ("time of four bytes", "tiny_time"),
)


def collectives(block: Collectives) -> None:
    """The four algorithms as a table, by their closed forms."""
    rows = [
        [
            literal(COLLECTIVE_NAMES[name]),
            *(literal(figure(block.scenario, f"{f}.{name}").text) for _, f in FACTS),
        ]
        for name in COLLECTIVES
    ]
    with st.container(key="wide-collectives"):
        st.markdown(table(["algorithm", *(says for says, _ in FACTS)], rows))


def recorded(block: Recording, place: str, setting: Setting) -> None:
    """A recorded run: where and when it was measured, its stage, and the prediction beside it."""
    trace = recording(block.name)
    machine = trace.machine
    said = "; ".join((machine["hardware"], machine["versions"], machine["date"][:10]))
    st.info(f"Recorded, not run here: {literal(said)}.", icon=":material/history:")
    if "stage" in block.show:
        data, text, ids = picture_of(trace)
        play(data | {"first": block.beat}, f"recording/{place}", trace)
        with st.expander(f"The recorded run as text: {len(ids)} beats"):
            st.markdown(text)
    if "predicted" in block.show:
        from dpsim.ui.side_by_side import side_by_side  # only who shows a prediction waits for Plotly

        side_by_side(prediction(block.name), trace, f"recorded/{place}")
    if block.caption:
        st.markdown(f"*{setting.shown(block.caption)}*")
