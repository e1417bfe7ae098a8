"""The lab's state: the scenario, what it was before, and the address that mirrors it.

Streamlit may break off a run, callbacks included, as soon as the next click has arrived. So a control has no
callback that could be lost: what it says and the scenario does not yet is taken over at the start of a run.

The session holds the truth until a run has been finished, because a quick second click is sent with the
address of before the first. After that, another address means that somebody has navigated, and is the truth.
A regained connection may bring an old address: then the session wins again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from dpsim.checks import InputError
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.frame import rests_on
from dpsim.ui.picture import check_shown, picture
from dpsim.ui.step_view import NOT_OF_THE_SCENARIO, chosen_scenario

START = "next-token"
MOST_UNDO = 50
MOST_ADDRESS = 8000  # characters of an address that servers and proxies let through
STAGE = "lab.stage"
BESIDE = tuple(k for k in NOT_OF_THE_SCENARIO if k != "preset")  # keys that may stand beside a scenario
TOO_LONG = "long"  # the address of a scenario that no address can hold: it lives in the session

Edit = Callable[[Scenario, Any], Scenario]


@dataclass(frozen=True)
class Shown:
    """What the lab shows: a scenario by its query, and its trace if one was opened, under a `name`."""

    query: str
    trace: Trace | None = None
    name: str = ""

    @property
    def scenario(self) -> Scenario:
        """The scenario that is shown."""
        return self.trace.scenario if self.trace is not None else from_query(self.query)


@dataclass
class Lab:
    """One session's lab.

    `before` are the queries of earlier results, newest last. `address` is what was last read from the address
    bar or written to it. `said` is what every control said when it was last listened to, `edits` what a
    control does, `refused` why what it says cannot be. `linked` is the beat that the last link asked for, and
    `told` what the stage had told until then; the stage is `placed` there until something is changed: from
    then on it keeps its own place. `epoch` rises whenever something else than a click on the token
    editor decides what it shows. `busy` until a run with a change is through.
    """

    shown: Shown
    before: tuple[str, ...] = ()
    address: dict[str, str] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    placed: bool = True
    linked: str = ""
    told: str = ""
    epoch: int = 0
    busy: bool = False
    lock: RLock = field(default_factory=RLock)
    socket: str | None = None

    def put(self, shown: Shown) -> None:
        """Show something else; what was shown goes to the undo."""
        self.busy = True
        if shown == self.shown:
            return
        self.before = (*self.before, self.shown.query)[-MOST_UNDO:]
        self.shown, self.placed = shown, False

    def overrule(self, shown: Shown) -> None:
        """Show something that no control has said: what was typed and refused is forgotten."""
        self.put(shown)
        self.refused = {}
        self.epoch += 1

    def undo(self) -> None:
        """Back to what was shown before the last change."""
        if self.before:
            *before, last = self.before
            self.overrule(Shown(last))
            self.before = tuple(before)


def lab() -> Lab:
    """This session's lab."""
    found = st.session_state["lab"]
    assert isinstance(found, Lab)
    return found


def listen(now: Lab) -> None:
    """Take over what the controls say and the scenario does not; what cannot be is told at its control."""
    saying = {key: value for key in now.edits if (value := heard(key)) is not None}
    for key, value in saying.items():
        if value == now.said.get(key):
            continue
        now.busy = True
        try:
            scenario = check_shown(_named(now.edits[key](now.shown.scenario, value)))
            query = to_query(scenario)
            picture(query)  # what cannot be simulated is refused as well
        except InputError as error:
            now.refused[key], now.said[key] = str(error), value
            continue
        now.refused.pop(key, None)
        if query != now.shown.query:
            now.put(Shown(query))
        now.said[key] = value


def heard(key: str) -> Any:
    """What a control says; None where it was not drawn."""
    said = st.session_state.get(f"lab.{key}")
    if key == "tokens" and said is not None:
        rows = said.get("rows")
        return tuple(rows) if isinstance(rows, list) and all(isinstance(r, str) for r in rows) else None
    return said


def _named(scenario: Scenario) -> Scenario:
    """A changed preset is no longer that preset."""
    return replace(scenario, name="lab", title="") if scenario.name in preset_names() else scenario


def settle(arrived: bool) -> tuple[Lab, str | None]:
    """Bring session, controls and address together; also what is wrong with the address, if something is."""
    asked = {k: v for k, v in st.query_params.to_dict().items() if k not in BESIDE}
    socket = st.context.headers.get("Sec-Websocket-Key")
    now: Lab | None = st.session_state.get("lab")
    if now is not None:
        with now.lock:
            listen(now)
            regained, now.socket = now.socket != socket, socket
            if now.busy or regained or now.address == asked or (arrived and not asked):
                _write(now, asked)
                return now, None
    return _read(asked, now, socket)


def stopped_at(now: Lab) -> str:
    """The beat that the stage rests on, as far as it has told and what is shown has it; empty: the first."""
    ids = picture(now.shown.query)[2]
    told = rests_on(STAGE, ids)
    beat = now.linked if told == now.told else told
    return beat if beat in ids[1:] else ""


def _read(asked: dict[str, str], now: Lab | None, socket: str | None) -> tuple[Lab, str | None]:
    """Take the address for the truth."""
    wrong = None
    shown = now.shown if now else Shown(to_query(preset(START)))
    try:
        if TOO_LONG in asked:
            if now is None:
                rule = "was too long for a link and is gone with its session; open its file again"
                raise InputError("scenario", rule, TOO_LONG)
        else:
            whole = asked if "name" in asked else {"preset": START} | asked
            query = to_query(chosen_scenario(whole.get("preset", START), whole))
            picture(query)
            shown = Shown(query)
    except InputError as error:
        wrong = str(error)
    now = now or Lab(shown, socket=socket)
    now.overrule(shown)
    now.address = asked
    ids = picture(shown.query)[2]
    beat = st.query_params.get("beat", ids[0])
    if beat not in ids and wrong is None:
        wrong = str(InputError("beat", f"must be one of {', '.join(ids[:4])}, …, {ids[-1]}", beat))
    now.linked, now.placed = beat if beat in ids else ids[0], True
    now.told = rests_on(STAGE, ids)
    st.session_state["lab"] = now
    return now, wrong


def _write(now: Lab, asked: dict[str, str]) -> None:
    """Let the address say what is shown; the beat and the presenter's view stay in it."""
    query = now.shown.query
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    if pairs["name"] in preset_names() and to_query(preset(pairs["name"])) == query:
        pairs = {"preset": pairs["name"]}
    elif len(query) > MOST_ADDRESS:
        pairs = {TOO_LONG: str(len(query))}
    if pairs != asked:
        kept = {k: v for k, v in st.query_params.to_dict().items() if k in BESIDE and k != "beat"}
        beat = stopped_at(now)
        st.query_params.from_dict(pairs | kept | ({"beat": beat} if beat else {}))
    now.address = pairs
