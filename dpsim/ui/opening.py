"""Opening what was taken along: a scenario as TOML, or a saved trace. A file may claim anything."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpsim.checks import InputError
from dpsim.forms import from_toml, to_query
from dpsim.metrics import step_metrics
from dpsim.prose import literal
from dpsim.replay import check_replayable
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.trace_files import from_json
from dpsim.ui.lab_state import Shown, lab
from dpsim.ui.picture import check_shown, picture, picture_of

MOST_MEGABYTES = 5
MOST_TOML = 100_000


def open_button() -> None:
    """The place to open a file, and what is wrong with it."""
    st.file_uploader(
        "A scenario (TOML) or a trace (JSON)", ["toml", "json"], key="lab.file", on_change=_open,
        max_upload_size=MOST_MEGABYTES,
    )  # fmt: skip
    message = st.session_state.get("lab.file_refused")
    if message:
        st.error(literal(message))


def _open() -> None:
    file = st.session_state["lab.file"]
    st.session_state["lab.file_refused"] = None
    if file is None:
        return
    try:
        text = file.getvalue().decode("utf-8-sig")
        if file.name.lower().endswith(".toml"):
            lab().overrule(Shown(opened_scenario(text)))
        else:
            trace = opened_trace(text)
            lab().overrule(Shown(to_query(trace.scenario), trace))
    except UnicodeDecodeError:
        st.session_state["lab.file_refused"] = str(InputError("file", "must be UTF-8 text", file.name))
    except InputError as error:
        st.session_state["lab.file_refused"] = str(error)


def opened_scenario(text: str) -> str:
    """The query of the scenario in a TOML file's text."""
    if len(text) > MOST_TOML:
        raise InputError("TOML", f"must have at most {MOST_TOML} characters", len(text))
    return _shown_by(from_toml(text))


def _shown_by(scenario: Scenario) -> str:
    """The query of a scenario, once the app has simulated it within its bounds."""
    query = to_query(check_shown(scenario))
    picture(query)
    return query


def opened_trace(text: str) -> Trace:
    """The trace in a JSON file's text, once everything that a page shows of it has been made."""
    trace = from_json(text)
    _shown_by(trace.scenario)
    if trace.source == "measured":
        trace = replace(trace, source="recorded")
    check_replayable(trace)
    try:
        picture_of(trace)
        for step in range(trace.steps):
            step_metrics(trace, step)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InputError("trace", "must hold events and arrays that fit together", str(error)) from None
    return trace
