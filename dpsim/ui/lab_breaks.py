"""The lab's faults: the button that switches one on, and what is said above the stage while one is on."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dpsim.checks import InputError
from dpsim.faults import FAULTS, Fault, broken, consequence, healthy_of
from dpsim.forms import to_query
from dpsim.prose import literal
from dpsim.scenario import Scenario
from dpsim.ui.lab_state import Lab, Shown, lab, named
from dpsim.ui.picture import check_shown, picture


def break_it(now: Lab) -> None:
    """The faults in a popover, one to choose at a time; those that cannot be say why."""
    key = f"lab.break.{now.epoch}"  # after a choice it is a new one, and closed
    popover = st.popover("Break it", icon=":material/heart_broken:", key=key, on_change="rerun")
    if popover.open:  # what nobody sees is not worked out
        with popover:
            _faults(now)


def _faults(now: Lab) -> None:
    found = _found(now)
    base = found[1] if found else now.shown.scenario
    st.markdown("One thing is done wrong, on purpose. Undo takes it back.")
    for fault in FAULTS:
        on = found is not None and found[0] == fault
        made, why = (None, "It is on.") if on else _made(base, fault)
        st.button(
            fault.title, key=f"lab.break.{fault.name}", on_click=partial(_choose, made),
            disabled=made is None, type="primary" if on else "secondary", width="stretch",
        )  # fmt: skip
        st.caption(literal(f"{fault.says} {why}".strip()))
    if found:
        query = to_query(found[1])
        st.button(
            "As it should be", key="lab.break.mend", on_click=partial(_choose, query), width="stretch",
            icon=":material/healing:",
        )  # fmt: skip


def _made(scenario: Scenario, fault: Fault) -> tuple[str | None, str]:
    """The query of the scenario with a fault in it, or why there is none."""
    try:
        made = check_shown(named(broken(scenario, fault.name)))
        query = to_query(made)
        picture(query)
    except InputError as error:
        return None, f"Not here: it {error.rule}." if error.field == "fault" else f"Not here: {error}."
    return query, ""


def _choose(query: str | None) -> None:
    if query is not None:
        lab().overrule(Shown(query))


def callout(now: Lab) -> None:
    """Which fault is on, and what comes of it."""
    found = _found(now)
    if found is None:
        return
    fault, healthy = found
    try:
        said = consequence(now.shown.scenario, check_shown(healthy))
    except InputError as error:  # what was mended may be too large, or run away
        said = (str(error),)
    head = f"**{literal(fault.title)}.** {literal(fault.says)}"
    st.warning(f"{head}\n\n{literal(' '.join(said))}", icon=":material/heart_broken:")


def _found(now: Lab) -> tuple[Fault, Scenario] | None:
    """The fault in what is shown, and the scenario without it."""
    before = now.before[-1].scenario if now.before else None
    return healthy_of(now.shown.scenario, before)
