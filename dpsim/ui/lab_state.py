"""The lab's state: the scenario, what it was before, and the address that mirrors it.

Streamlit may break off a run, callbacks included, as soon as the next click has arrived. So a control has no
callback that could be lost: what it says and the scenario does not yet is taken over at the start of a run.

What the browser sends of a control may be older than what the session has put there (an undo, another
preset), so whenever something else than a control decides what is shown, all controls are new ones.

The same holds for the address: a quick second click is sent with the address of before the first, and a
regained connection may bring an old one. So the session holds the truth, and the address only where somebody
has come here from elsewhere or gone Back or Forward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from threading import RLock
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from dpsim.checks import InputError
from dpsim.comparison import Comparison
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario
from dpsim.trace import Trace
from dpsim.ui.frame import has_navigated, rests_on, visit
from dpsim.ui.picture import Picture, check_shown, picture, picture_of, run_of
from dpsim.ui.step_view import NOT_OF_THE_SCENARIO, chosen_scenario

START = "next-token"
MOST_UNDO = 50
MOST_TRACES = 2  # opened traces among them: each may take tens of megabytes
MOST_ADDRESS = 8000  # characters of an address that servers and proxies let through
STAGE = "lab.stage"
BESIDE = tuple(k for k in NOT_OF_THE_SCENARIO if k != "preset")  # keys that may stand beside a scenario
TOO_LONG = "long"  # the address of a scenario that no address can hold: it lives in the session

Edit = Callable[[Scenario, Any], Scenario]


@dataclass(frozen=True)
class Shown:
    """What the lab shows: a scenario by its query, and its trace if one was opened."""

    query: str
    trace: Trace | None = None

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that is shown."""
        return self.trace.scenario if self.trace is not None else from_query(self.query)

    @cached_property
    def preset(self) -> str | None:
        """The name of the preset that it is; None where it is none."""
        name = self.scenario.name
        return name if name in preset_names() and to_query(preset(name)) == self.query else None

    @cached_property
    def address(self) -> dict[str, str]:
        """What the address says of it. A scenario that no address can hold has a mark of its own there."""
        if self.preset is not None:
            return {"preset": self.preset}
        if len(self.query) > MOST_ADDRESS:
            return {TOO_LONG: sha256(self.query.encode()).hexdigest()[:12]}
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def run(self) -> tuple[Trace, Comparison]:
        """Its trace, and every reduction beside one device."""
        return run_of(self.query) if self.trace is None else (self.trace, run_of(self.query)[1])

    @property
    def picture(self) -> Picture:
        """The stage's data, the beats as Markdown and their ids."""
        return picture(self.query) if self.trace is None else picture_of(self.trace)


@dataclass
class Lab:
    """One session's lab.

    `before` is what was shown earlier, newest last. `said` is what every control said when it was last
    listened to, `edits` what a control does, `refused` why what it says cannot be, `drawn` the controls of
    this run. `linked` is the beat that the last link asked for, and `told` what the stage had told until
    then; the stage is `placed` there until something is changed: from then on it keeps its own place. `epoch`
    rises whenever something else than a control decides what is shown, `named` whenever another preset is, or
    none is any more; `seen` is the epoch whose controls the browser is known to have. `visit` is the one in
    which the address was read.
    `lock`: an operator may switch fastReruns on again, and then two runs of a session listen at once.
    """

    shown: Shown
    before: tuple[Shown, ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    drawn: set[str] = field(default_factory=set)
    placed: bool = True
    linked: str = ""
    told: str = ""
    epoch: int = 0
    named: int = 0
    seen: int = 0
    visit: int = 0
    lock: RLock = field(default_factory=RLock)

    def put(self, shown: Shown) -> None:
        """Show something else; what was shown goes to the undo."""
        if shown == self.shown:
            return
        before = [*self.before, self.shown][-MOST_UNDO:]
        traces = [i for i, earlier in enumerate(before) if earlier.trace is not None]
        for i in traces[:-MOST_TRACES]:
            before[i] = Shown(before[i].query)
        self.before = tuple(before)
        self.named += shown.preset != self.shown.preset
        self.shown, self.placed = shown, False

    def overrule(self, shown: Shown) -> None:
        """Show something that no control has said: what was typed and refused is forgotten."""
        self.put(shown)
        self.refused = {}
        self.epoch += 1

    def widget(self, key: str) -> str:
        """The key of the widget that is a control now."""
        return f"lab.{key}.{self.epoch}"

    def undo(self) -> None:
        """Back to what was shown before the last change."""
        if self.before:
            *before, last = self.before
            self.overrule(last)
            self.before = tuple(before)


def lab() -> Lab:
    """This session's lab."""
    found = st.session_state["lab"]
    assert isinstance(found, Lab)
    return found


def listen(now: Lab) -> None:
    """Take over what the controls say and the scenario does not; what cannot be is told at its control."""
    start = st.session_state.get(start_key(now))
    saying = {key: value for key in now.edits if (value := heard(now, key)) is not None}
    if start not in (None, now.shown.preset):
        now.overrule(Shown(to_query(preset(start))))
        return
    for key, value in saying.items():
        if value == now.said.get(key):
            continue
        now.seen = now.epoch
        try:
            scenario = check_shown(named(now.edits[key](now.shown.scenario, value)))
            query = to_query(scenario)
            picture(query)  # what cannot be simulated is refused as well
        except InputError as error:
            now.refused[key], now.said[key] = str(error), value
            continue
        now.refused.pop(key, None)
        if query != now.shown.query:
            now.put(Shown(query))
        now.said[key] = value


def start_key(now: Lab) -> str:
    """The key of the widget that chooses a preset: another one whenever the answer is another."""
    return f"lab.preset.{now.named}"


def heard(now: Lab, key: str) -> Any:
    """What a control says; None where it was not drawn."""
    said = st.session_state.get(now.widget(key))
    if key == "tokens" and said is not None:
        rows = said.get("rows")
        return tuple(rows) if isinstance(rows, list) and all(isinstance(r, str) for r in rows) else None
    return said


def named(scenario: Scenario) -> Scenario:
    """A changed preset is no longer that preset."""
    return replace(scenario, name="lab", title="") if scenario.name in preset_names() else scenario


def settle() -> tuple[Lab, str | None]:
    """Bring session, controls and address together; also what is wrong with the address, if something is."""
    asked = {k: v for k, v in st.query_params.to_dict().items() if k not in BESIDE}
    now: Lab | None = st.session_state.get("lab")
    if now is None or now.visit != visit():
        return _read(asked, now)
    with now.lock:
        if asked == now.shown.address:
            now.seen = now.epoch
        listen(now)
        now.drawn = set()
        if has_navigated() and asked != now.shown.address:
            return _read(asked, now)
        _write(now, asked)
        return now, None


def stopped_at(now: Lab) -> str:
    """The beat that the stage rests on, as far as it has told and what is shown has it; empty: the first."""
    ids = now.shown.picture[2]
    told = rests_on(STAGE, ids)
    beat = now.linked if told == now.told else told
    return beat if beat in ids[1:] else ""


def _read(asked: dict[str, str], now: Lab | None) -> tuple[Lab, str | None]:
    """Take the address for the truth."""
    wrong = None
    shown = now.shown if now else Shown(to_query(preset(START)))
    try:
        if TOO_LONG in asked:
            known = [now.shown, *reversed(now.before)] if now else []
            kept = [earlier for earlier in known if earlier.address.get(TOO_LONG) == asked[TOO_LONG]]
            if not kept:
                rule = "was too long for a link and is gone with its session; open its file again"
                raise InputError("scenario", rule, asked[TOO_LONG])
            shown = kept[0]
        else:
            whole = asked if "name" in asked else {"preset": START} | asked
            query = to_query(chosen_scenario(whole.get("preset", START), whole))
            picture(query)
            shown = Shown(query)
    except InputError as error:
        wrong = str(error)
    now = now or Lab(shown)
    now.overrule(shown)
    now.visit, now.drawn = visit(), set()
    ids = shown.picture[2]
    beat = st.query_params.get("beat", ids[0])
    if beat not in ids and wrong is None:
        wrong = str(InputError("beat", f"must be one of {', '.join(ids[:4])}, …, {ids[-1]}", beat))
    now.linked, now.placed = beat if beat in ids else ids[0], True
    now.told = rests_on(STAGE, ids)
    st.session_state["lab"] = now
    return now, wrong


def _write(now: Lab, asked: dict[str, str]) -> None:
    """Let the address say what is shown; the beat and the presenter's view stay in it."""
    pairs = now.shown.address
    if pairs != asked:
        kept = {k: v for k, v in st.query_params.to_dict().items() if k in BESIDE and k != "beat"}
        beat = stopped_at(now)
        st.query_params.from_dict(pairs | kept | ({"beat": beat} if beat else {}))
