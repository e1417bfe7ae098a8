"""A lesson's stage that can be broken: as it should be, or with a fault in it and what comes of that."""

from __future__ import annotations

import streamlit as st

from dpsim.directives import Break
from dpsim.faults import broken, consequence
from dpsim.forms import to_query
from dpsim.prose import literal
from dpsim.ui.frame import rests_on
from dpsim.ui.picture import picture, play, run_of
from dpsim.ui.stage.payload import ghost_of

HEALTHY = "As it should be"


def break_it(block: Break, place: str) -> None:
    """The choice, the stage of what is chosen, and what comes of it. Nothing chosen is as it should be."""
    titles = {fault.title: fault for fault in block.faults}
    chosen = st.pills(
        "Break it", [HEALTHY, *titles], default=HEALTHY, key=f"break/{place}", label_visibility="collapsed"
    )
    query, key = to_query(block.scenario), f"stage/break/{place}"
    healthy = picture(query)
    fault = titles.get(chosen or HEALTHY)
    if fault is None:
        data, text, ids = healthy
        first = {"first": rests_on(key, ids) or ids[0], "keep": True}
        play(data | first, key, run_of(query)[0])
    else:
        scenario = broken(block.scenario, fault.name)
        query = to_query(scenario)
        data, text, ids = picture(query)
        st.markdown(literal(fault.says))
        first = {"first": rests_on(key, ids) or ids[0], "keep": True}
        play(data | first | {"ghost": ghost_of(healthy[0])}, key, run_of(query)[0])
        said = " ".join(consequence(scenario, block.scenario))
        st.warning(literal(said), icon=":material/heart_broken:")
    with st.expander(f"The same step as text: {len(ids)} beats"):
        st.markdown(text)
