"""The lab: everything that a scenario holds can be changed, and what comes of it stands beside the stage."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from dpsim.beats import beats
from dpsim.comparison import Comparison, compare
from dpsim.forms import from_query, preset, preset_names, to_toml
from dpsim.simulate import simulate
from dpsim.trace import Trace
from dpsim.ui.downloads import take_along
from dpsim.ui.frame import frame, present_button, presenting
from dpsim.ui.lab_controls import first_five, on_demand
from dpsim.ui.lab_results import results, warnings
from dpsim.ui.lab_state import Lab, lab, settle, start_from, undo
from dpsim.ui.opening import open_button
from dpsim.ui.picture import Picture, picture, play
from dpsim.ui.stage.payload import stage_data
from dpsim.ui.text import beats_markdown, literal

MOST_LINK = 2000


def lab_page() -> None:
    """Draw the page. Bad input gets a message in its place, and what was shown stays."""
    arrived = frame("lab")
    wrong = settle(arrived)
    now = lab()
    data, text, ids = shown(now)
    if presenting():
        play(data | {"first": _first(ids, wrong), "present": True}, key="lab.stage")
        return
    _heading(now)
    if wrong:
        st.error(literal(wrong), icon=":material/error:")
    scenario = now.scenario
    first_five(scenario)
    on_demand(scenario)
    trace, ways = run(now)
    before = run_of(now.before[-1]) if now.before else None
    ghost: dict[str, object] = {}
    play(data | {"first": _first(ids, wrong), "keep": True} | ghost, key="lab.stage")
    warnings(scenario, ways)
    results(trace, ways, before)
    with st.expander(f"The same steps as text: {len(ids)} beats"):
        st.markdown(text)
    take_along(now.query, now.trace)


def _heading(now: Lab) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Lab", anchor=False, width="content")
        name = now.scenario.name if now.scenario.name in preset_names() else None
        st.session_state["lab.preset"] = name
        st.selectbox(
            "Start from", preset_names(), key="lab.preset", format_func=lambda n: preset(n).title,
            label_visibility="collapsed", placeholder="Start from a preset", on_change=lambda: start_from(st.session_state["lab.preset"]), width=330,
        )  # fmt: skip
        st.button("Undo", icon=":material/undo:", on_click=undo, disabled=not now.before, key="lab.undo")
        if st.button("Share", icon=":material/link:", key="lab.share"):
            share(now)
        with st.popover("Open", icon=":material/folder_open:"):
            open_button()
        present_button()
    if now.trace is not None:
        st.info(f"A trace that was opened, {now.trace.source}. Changing anything simulates anew.")


@st.cache_data(max_entries=32, show_spinner=False)
def run_of(query: str) -> tuple[Trace, Comparison]:
    """A scenario's trace, and every reduction beside one device."""
    scenario = from_query(query)
    return simulate(scenario), compare(scenario)


def run(now: Lab) -> tuple[Trace, Comparison]:
    """The same of what the lab shows."""
    return run_of(now.query) if now.trace is None else (now.trace, compare(now.trace.scenario))


def shown(now: Lab) -> Picture:
    """The stage's data, the beats as Markdown and their ids, of a scenario or of a trace that was opened."""
    return picture(now.query) if now.trace is None else _picture_of(now.opened, now.trace)


@st.cache_data(max_entries=8, show_spinner=False)
def _picture_of(opened: str, _trace: Trace) -> Picture:
    ways = compare(_trace.scenario)
    told = beats(_trace, ways)
    return stage_data(_trace, told, ways, told[0].id), beats_markdown(told), tuple(b.id for b in told)


def _first(ids: tuple[str, ...], wrong: str | None) -> str:
    """The beat that a link opens on. The stage keeps its own place afterwards."""
    asked = st.query_params.get("beat")
    return asked if asked in ids else ids[0]


@st.dialog("Share")
def share(now: Lab) -> None:
    """A link with the whole scenario and the beat, or a file where a link would be too long."""
    beat = st.query_params.get("beat")
    here = str(st.context.url).partition("?")[0]
    link = f"{here}?{now.query}" + (f"&{urlencode({'beat': beat})}" if beat else "")
    if len(link) <= MOST_LINK and now.trace is None:
        st.markdown("Whoever opens this link sees this scenario" + (" at this beat." if beat else "."))
        st.code(link, language=None, wrap_lines=True)
        return
    why = "A trace is too large for a link." if now.trace is not None else (
        f"The link would have {len(link)} characters; some programs cut links after {MOST_LINK}."
    )  # fmt: skip
    st.markdown(f"{why} Share the file: it opens in the lab under Open.")
    if now.trace is not None:
        st.download_button("Trace as JSON", now.trace.to_json, "trace.json", on_click="ignore")
    else:
        st.download_button("Scenario as TOML", to_toml(now.scenario), "scenario.toml", on_click="ignore")
