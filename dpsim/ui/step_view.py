"""The page of one step: choose a preset, see its stage, read its beats."""

from __future__ import annotations

import streamlit as st

from dpsim.checks import InputError, choice
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario
from dpsim.ui.downloads import take_along
from dpsim.ui.frame import frame
from dpsim.ui.picture import check_shown, picture, play
from dpsim.ui.text import literal

OPENING = "first-screen"
NOT_OF_THE_SCENARIO = ("preset", "beat", "embed", "embed_options")


def chosen_scenario(name: str, query: dict[str, str]) -> Scenario:
    """The preset called `name`, with what the link says on top."""
    keys = {k: v for k, v in query.items() if k not in NOT_OF_THE_SCENARIO}
    alone = "preset" not in query and "name" in keys  # a whole scenario in the link needs nothing below it
    return check_shown(from_query(keys, base=None if alone else preset(name)))


def step_page() -> None:
    """Draw the page. Bad input gets a message in its place, and the last good picture stays."""
    frame()
    heading, choosing, _ = st.columns([6, 3, 0.4], vertical_alignment="center")
    asked = st.query_params.to_dict()
    errors = []
    try:
        name = choice("preset", asked.get("preset", OPENING), preset_names())
        query = to_query(chosen_scenario(name, asked))
        picture(query)
        st.session_state["good"] = (name, query)
    except InputError as error:
        errors.append(str(error))
    name, query = st.session_state.setdefault("good", (OPENING, to_query(preset(OPENING))))
    # The address is the truth: a link, Back and Forward move the control, and the control writes the address.
    st.session_state["preset"] = name
    choosing.selectbox(
        "Scenario",
        preset_names(),
        key="preset",
        format_func=lambda n: preset(n).title,
        label_visibility="collapsed",
        on_change=_choose,
    )
    data, text, ids = picture(query)
    heading.container(key="title").text(data["title"])
    opening = _opening(data["id"], ids, asked.get("beat"), errors)
    for message in errors:
        st.error(literal(message), icon=":material/error:")
    play(data | {"first": opening})
    with st.expander(f"The same step as text: {len(ids)} beats"):
        st.markdown(text)
    take_along(query)


def _choose() -> None:
    """Another preset: the address names it and nothing of the scenario before."""
    st.query_params.from_dict({"preset": st.session_state["preset"]})


def _opening(identity: str, ids: tuple[str, ...], asked: str | None, errors: list[str]) -> str:
    """The beat this picture opens on: kept for as long as it is shown, so that its data do not change."""
    opened: tuple[str, str] | None = st.session_state.get("opened")
    if opened is None or opened[0] != identity:
        known = asked is None or asked in ids
        if not known:
            errors.append(
                str(InputError("beat", f"must be one of {', '.join(ids[:4])}, …, {ids[-1]}", asked))
            )
        opened = (identity, asked if asked is not None and known else ids[0])
        st.session_state["opened"] = opened
    return opened[1]
