"""The lab's kinds of controls: they say what the scenario says, or why what was typed cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpsim.edits import changed
from dpsim.glossary import glossary
from dpsim.prose import literal
from dpsim.scenario import Scenario
from dpsim.ui.lab_state import Edit, lab


def meaning(term: str) -> str:
    """What the glossary says of a term."""
    return glossary()[term].says


def _bind(key: str, value: Any, edit: Edit) -> str:
    """The widget's key; it says what the scenario says, unless what was typed has been refused."""
    now = lab()
    widget = now.widget(key)
    now.edits[key] = edit
    now.drawn.add(key)
    if key in now.refused and widget not in st.session_state:  # drawn anew, as it was when it was refused
        st.session_state[widget] = now.said[key]
    if key not in now.refused:
        # A new control is told again until it was seen: of two answers the browser may draw the last alone.
        if st.session_state.get(widget) != value or now.seen != now.epoch:
            st.session_state[widget] = value
        now.said[key] = value
    return widget


def _refused(key: str) -> None:
    """Under a control, why what it says now cannot be."""
    if key in lab().refused:
        st.error(literal(lab().refused[key]))


def select(
    label: str, key: str, value: str, options: Sequence[str], names: dict[str, str], edit: Edit, **more: Any
) -> None:
    """A choice by name."""
    st.selectbox(label, options, format_func=names.__getitem__, key=_bind(key, value, edit), **more)
    _refused(key)


def amount(label: str, key: str, value: float, edit: Edit, *, unit: float = 1.0, **more: Any) -> None:
    """A number in a unit of its own; `unit` is how much one of it is inside the scenario."""
    # Without a value of its own a field that is cleared says nothing, and takes the scenario's again.
    if isinstance(value, float):

        def inside(scenario: Scenario, said: float) -> Scenario:
            return edit(scenario, float(f"{said * unit:.12g}"))

        shown = float(f"{value / unit:.12g}")
        st.number_input(label, value=None, key=_bind(key, shown, inside), format="%.12g", **more)
    else:
        st.number_input(label, value=None, key=_bind(key, value, edit), **more)
    _refused(key)


def switch(label: str, key: str, value: bool, edit: Edit, **more: Any) -> None:
    """On or off."""
    st.toggle(label, key=_bind(key, value, edit), **more)
    _refused(key)


def line(label: str, key: str, value: str, edit: Edit, *, tall: bool = False, **more: Any) -> None:
    """Numbers typed as text."""
    kind = st.text_area if tall else st.text_input
    kind(label, max_chars=20_000, key=_bind(key, value, edit), **more)
    _refused(key)


def set_to(key: str) -> Edit:
    """The edit that puts a widget's value at a dotted key of the scenario."""
    return lambda scenario, value: changed(scenario, key, value)
