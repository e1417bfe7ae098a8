"""The lab: everything that a scenario holds can be changed, and what comes of it stands beside the stage."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from dpsim.beats import beats
from dpsim.comparison import Comparison, compare
from dpsim.forms import preset, preset_names, to_query, to_toml
from dpsim.trace import Trace
from dpsim.ui.downloads import take_along
from dpsim.ui.frame import frame, present_button, presenting
from dpsim.ui.lab_controls import first_five, on_demand
from dpsim.ui.lab_results import results, warnings
from dpsim.ui.lab_state import STAGE, Lab, Shown, lab, settle, stopped_at
from dpsim.ui.opening import open_button
from dpsim.ui.picture import Picture, picture, play, run_of
from dpsim.ui.stage.payload import ghost_of, stage_data
from dpsim.ui.text import beats_markdown, literal

MOST_LINK = 2000


def lab_page() -> None:
    """Draw the page. Bad input gets a message in its place, and what was shown stays."""
    now, wrong = settle(frame("lab"))
    data, text, ids = _picture(now.shown)
    place = {"first": stopped_at(now) or ids[0], "keep": not now.placed}
    if presenting(STAGE, ids):
        play(data | place | {"present": True}, key=STAGE)
    else:
        _heading(now, ids)
        if wrong:
            st.error(literal(wrong), icon=":material/error:")
        first_five(now.shown.scenario)
        on_demand(now.shown.scenario)
        play(data | place | _ghost(now), key=STAGE)
        trace, ways = _run(now.shown)
        warnings(now.shown.scenario, ways)
        results(trace, ways, run_of(now.before[-1]) if now.before else None)
        with st.expander(f"The same as text: {len(ids)} beats"):
            st.markdown(text)
        take_along(now.shown.query, now.shown.trace)
    now.busy = False  # the run is through: from here on another address means that somebody has navigated


def _heading(now: Lab, ids: tuple[str, ...]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Lab", anchor=False, width="content")
        name = now.shown.scenario.name
        st.session_state["lab.preset"] = name if name in preset_names() else None
        st.selectbox(
            "Start from", preset_names(), key="lab.preset", format_func=lambda n: preset(n).title,
            label_visibility="collapsed", placeholder="Start from a preset", on_change=_start, width=330,
        )  # fmt: skip
        st.button(
            "Undo", icon=":material/undo:", on_click=lambda: lab().undo(), disabled=not now.before,
            key="lab.undo",
        )  # fmt: skip
        if st.button("Share", icon=":material/link:", key="lab.share"):
            share(now)
        with st.popover("Open", icon=":material/folder_open:"):
            open_button()
        present_button(STAGE, ids)
    if now.shown.trace is not None:
        st.info(f"A trace that was opened, {now.shown.trace.source}. Changing anything simulates anew.")


def _start() -> None:
    lab().overrule(Shown(to_query(preset(st.session_state["lab.preset"]))))


def _run(shown: Shown) -> tuple[Trace, Comparison]:
    """The same of what the lab shows."""
    return run_of(shown.query) if shown.trace is None else (shown.trace, compare(shown.trace.scenario))


def _picture(shown: Shown) -> Picture:
    """The stage's data, the beats as Markdown and their ids, of a scenario or of a trace that was opened."""
    return picture(shown.query) if shown.trace is None else _picture_of(shown.name, shown.trace)


@st.cache_data(max_entries=8, show_spinner=False)
def _picture_of(name: str, _trace: Trace) -> Picture:
    ways = compare(_trace.scenario)
    told = beats(_trace, ways)
    return stage_data(_trace, told, ways, told[0].id), beats_markdown(told), tuple(b.id for b in told)


def _ghost(now: Lab) -> dict[str, object]:
    """The result before the last change, for the stage to show it quietly."""
    return {"ghost": ghost_of(picture(now.before[-1])[0])} if now.before else {}


@st.dialog("Share")
def share(now: Lab) -> None:
    """A link with the whole scenario and the beat, or a file where a link would be too long."""
    beat = stopped_at(now)
    here = str(st.context.url).partition("?")[0]
    link = f"{here}?{now.shown.query}" + (f"&{urlencode({'beat': beat})}" if beat else "")
    trace = now.shown.trace
    if len(link) <= MOST_LINK and trace is None:
        st.markdown("Whoever opens this link sees this scenario" + (" at this beat." if beat else "."))
        st.code(link, language=None, wrap_lines=True)
    elif trace is None:
        why = f"The link would have {len(link)} characters; some programs cut links after {MOST_LINK}."
        st.markdown(f"{why} Share the file: it opens in the lab under Open.")
        toml = to_toml(now.shown.scenario)
        st.download_button("Scenario as TOML", toml, "scenario.toml", on_click="ignore")
    else:
        st.markdown("A trace is too large for a link. Share the file: it opens in the lab under Open.")
        st.download_button("Trace as JSON", trace.to_json, "trace.json", on_click="ignore")
