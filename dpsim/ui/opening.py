"""Opening what was taken along: a scenario as TOML, or a saved trace. A file may claim anything."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import streamlit as st

from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.forms import from_toml, to_query
from dpsim.metrics import step_metrics
from dpsim.replay import check_replayable
from dpsim.trace import Trace, from_json
from dpsim.ui.lab_state import Shown, lab
from dpsim.ui.picture import check_shown, picture
from dpsim.ui.stage.payload import stage_data
from dpsim.ui.text import literal

MOST_MEGABYTES = 5
MOST_TOML = 100_000
# A key of thousands of dotted parts keeps the parser busy for as long as its square.
DEEP_KEY = re.compile(r"(?:[\w\"'-]+\s*\.\s*){8}")


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
        text = file.getvalue().decode("utf-8")
        if file.name.lower().endswith(".toml"):
            lab().overrule(Shown(opened_scenario(text)))
        else:
            trace = opened_trace(text)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            lab().overrule(Shown(to_query(trace.scenario), trace, name))
    except UnicodeDecodeError:
        st.session_state["lab.file_refused"] = str(InputError("file", "must be UTF-8 text", file.name))
    except InputError as error:
        st.session_state["lab.file_refused"] = str(error)


def opened_scenario(text: str) -> str:
    """The query of the scenario in a TOML file's text."""
    if len(text) > MOST_TOML:
        raise InputError("TOML", f"must have at most {MOST_TOML} characters", len(text))
    deep = DEEP_KEY.search(text)
    if deep:
        raise InputError("TOML", "must have no key of more than eight parts", deep.group())
    query = to_query(check_shown(from_toml(text)))
    picture(query)
    return query


def opened_trace(text: str) -> Trace:
    """The trace in a JSON file's text, once everything that a page shows of it can be made."""
    trace = from_json(text)
    check_shown(trace.scenario)
    if trace.source == "measured":
        trace = replace(trace, source="recorded")
    check_replayable(trace)
    try:
        ways = compare(trace.scenario)
        told = beats(trace, ways)
        stage_data(trace, told, ways, told[0].id)
        for step in range(trace.steps):
            step_metrics(trace, step)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InputError("trace", "must hold events and arrays that fit together", str(error)) from None
    return trace
