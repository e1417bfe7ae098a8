"""The lab's state: the scenario, what it was before, and the address that mirrors it.

The session holds the truth while a control is being used, because a quick second click is sent with the
address of before the first. Where nothing was clicked and the address is another one, somebody has navigated:
then the address is the truth. A regained connection may bring an old address: then the session wins again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from dpsim.checks import InputError
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.picture import check_shown, picture
from dpsim.ui.step_view import NOT_OF_THE_SCENARIO, chosen_scenario

START = "next-token"
MOST_UNDO = 50
MOST_ADDRESS = 8000  # characters of an address that servers and proxies let through
TOO_LONG = "long"  # the address of a scenario that no address can hold: it lives in the session


@dataclass(frozen=True)
class Lab:
    """What is shown, the results before it (newest last), and the address as it was last written or read."""

    query: str
    before: tuple[str, ...] = ()
    address: tuple[tuple[str, str], ...] = ()
    trace: Trace | None = None
    opened: str = ""
    epoch: int = 0

    @property
    def scenario(self) -> Scenario:
        """The scenario that is shown."""
        return self.trace.scenario if self.trace is not None else from_query(self.query)


def lab() -> Lab:
    """The state of this session."""
    found = st.session_state["lab"]
    assert isinstance(found, Lab)
    return found


def change(edit: Callable[[Scenario], Scenario], key: str = "") -> None:
    """A callback's work: put the edited scenario in place; what cannot be is told beside its control."""
    st.session_state["lab.touched"] = True
    refused: dict[str, str] = st.session_state.setdefault("lab.refused", {})
    try:
        scenario = check_shown(_named(edit(lab().scenario)))
        query = to_query(scenario)
        picture(query)  # what cannot be simulated is refused as well
    except InputError as error:
        refused[key] = str(error)
        return
    refused.pop(key, None)
    put(query)


def put(query: str, trace: Trace | None = None, opened: str = "", *, override: bool = False) -> None:
    """Show the scenario in `query`, or a trace that was opened; what was shown goes to the undo."""
    now = lab()
    if query == now.query and trace is now.trace:
        return
    before = (*now.before, now.query)[-MOST_UNDO:]
    st.session_state["lab"] = replace(
        now, query=query, before=before, trace=trace, opened=opened, epoch=now.epoch + override
    )
    st.session_state["lab.touched"] = True


def undo() -> None:
    """Back to what was shown before the last change."""
    now = lab()
    if now.before:
        st.session_state["lab"] = replace(
            now, query=now.before[-1], before=now.before[:-1], trace=None, opened="", epoch=now.epoch + 1
        )
    st.session_state["lab.refused"] = {}
    st.session_state["lab.touched"] = True


def start_from(name: str) -> None:
    """Another preset."""
    st.session_state["lab.refused"] = {}
    put(to_query(preset(name)), override=True)


def _named(scenario: Scenario) -> Scenario:
    """A changed preset is no longer that preset."""
    return replace(scenario, name="lab", title="") if scenario.name in preset_names() else scenario


def settle(arrived: bool) -> str | None:
    """Bring the session and the address together; what is wrong with the address, if something is."""
    asked = {k: v for k, v in st.query_params.to_dict().items() if k not in ("beat", "present")}
    touched = st.session_state.pop("lab.touched", False)
    key = st.context.headers.get("Sec-Websocket-Key")
    regained = st.session_state.get("lab.socket", key) != key
    st.session_state["lab.socket"] = key
    known: Lab | None = st.session_state.get("lab")
    if known is not None and (touched or regained or dict(known.address) == asked or (arrived and not asked)):
        _write(known)
        return None
    return _read(asked, known)


def _read(asked: dict[str, str], known: Lab | None) -> str | None:
    """Take the address for the truth."""
    wrong = None
    query = known.query if known else to_query(preset(START))
    try:
        if TOO_LONG in asked:
            if known is None:
                rule = "was too long for a link and is gone with its session; open its file again"
                raise InputError("scenario", rule, TOO_LONG)
        else:
            alone = {"preset": START} | asked
            scenario = chosen_scenario(alone["preset"], asked if "name" in asked else alone)
            query = to_query(scenario)
            picture(query)
    except InputError as error:
        wrong = str(error)
    st.session_state["lab.refused"] = {}
    before = (*known.before, known.query)[-MOST_UNDO:] if known and known.query != query else ()
    before = known.before if known and known.query == query else before
    st.session_state["lab"] = Lab(query, before, tuple(asked.items()), epoch=known.epoch + 1 if known else 0)
    return wrong


def _write(known: Lab) -> None:
    """Let the address say what is shown; the beat and the presenter's view stay in it."""
    pairs: dict[str, Any] = dict(parse_qsl(known.query, keep_blank_values=True))
    if pairs.get("name") in preset_names() and to_query(preset(pairs["name"])) == known.query:
        pairs = {"preset": pairs["name"]}
    elif len(known.query) > MOST_ADDRESS:
        pairs = {TOO_LONG: str(len(known.query))}
    if pairs == dict(known.address):
        return
    kept = {k: v for k, v in st.query_params.to_dict().items() if k in NOT_OF_THE_SCENARIO and k != "preset"}
    st.query_params.from_dict(pairs | kept)
    st.session_state["lab"] = replace(known, address=tuple(pairs.items()))
