"""The lab: everything that a scenario holds can be changed, and what comes of it stands beside the stage."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from dpsim.forms import preset, preset_names, to_toml
from dpsim.prose import literal
from dpsim.trace import Trace
from dpsim.ui.downloads import take_along
from dpsim.ui.frame import frame, present_button, presenting
from dpsim.ui.lab_breaks import break_it, callout
from dpsim.ui.lab_controls import first_five, on_demand
from dpsim.ui.lab_results import results, warnings
from dpsim.ui.lab_state import STAGE, Lab, lab, settle, start_key, stopped_at
from dpsim.ui.live import live_bar
from dpsim.ui.live_results import live_results
from dpsim.ui.live_state import Measured, measured
from dpsim.ui.opening import open_button
from dpsim.ui.picture import play
from dpsim.ui.stage.payload import ghost_of

MOST_LINK = 2000


def lab_page() -> None:
    """Draw the page. Bad input gets a message in its place, and what was shown stays."""
    frame()
    now, wrong = settle()
    found = measured(STAGE, now.shown.query)
    data, text, ids = found.picture if found else now.shown.picture
    place = {"first": stopped_at(now) or ids[0], "keep": not now.placed}
    if presenting(STAGE, ids):
        play(data | place | {"present": True}, key=STAGE)
    else:
        _heading(now, ids, found)
        if wrong:
            st.error(literal(wrong), icon=":material/error:")
        first_five(now.shown.scenario)
        on_demand(now.shown.scenario)
        opened = now.shown.trace is not None
        live_bar(STAGE, now.shown.query, "the trace that was opened" if opened else "the simulation")
        callout(now)
        trace, ways = now.shown.run
        play(data | place | ({} if found else _ghost(now)), STAGE, found.trace if found else trace)
        warnings(now.shown.scenario, ways)
        if found:
            live_results(found)
        else:
            results(trace, ways, now.before[-1].run if now.before else None)
        with st.expander(f"The same as text: {len(ids)} beats"):
            st.markdown(text)
        take_along(now.shown.query, *((found.trace, found.ways) if found else (now.shown.trace,)))


def _heading(now: Lab, ids: tuple[str, ...], found: Measured | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Lab", anchor=False, width="content")
        names, name = preset_names(), now.shown.preset
        st.selectbox(
            "Start from", names, None if name is None else names.index(name), key=start_key(now),
            format_func=lambda n: preset(n).title, label_visibility="collapsed",
            placeholder="Start from a preset", width=330,
        )  # fmt: skip
        st.button(
            "Undo", icon=":material/undo:", on_click=lambda: lab().undo(), disabled=not now.before,
            key="lab.undo",
        )  # fmt: skip
        if st.button("Share", icon=":material/link:", key="lab.share"):
            share(now)
        break_it(now)
        with st.popover("Open", icon=":material/folder_open:"):
            open_button()
        present_button(STAGE, ids)
    if now.shown.trace is not None and found is None:
        st.info(_opened(now.shown.trace))


def _opened(trace: Trace) -> str:
    """Where a trace that was opened comes from, and how exact its times are, as far as its file says."""
    said = [trace.machine[key] for key in ("hardware", "versions", "date") if trace.machine.get(key)]
    where = f" on {literal('; '.join(said))}" if said else ""
    clock = f" Its clock: {literal(trace.machine['clock'])}." if trace.machine.get("clock") else ""
    return f"A trace that was opened, {trace.source}{where}.{clock} Changing anything simulates anew."


def _ghost(now: Lab) -> dict[str, object]:
    """The result before the last change, for the stage to show it quietly."""
    return {"ghost": ghost_of(now.before[-1].picture[0])} if now.before else {}


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
