"""The page of one step: choose a preset, see its stage, read its beats."""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from dpsim.checks import InputError, choice
from dpsim.edits import on_preset
from dpsim.forms import preset, preset_names, to_query
from dpsim.prose import literal
from dpsim.scenario import Scenario
from dpsim.ui.downloads import take_along
from dpsim.ui.frame import frame, present_button, presenting, rests_on
from dpsim.ui.live import live_bar
from dpsim.ui.live_state import measured
from dpsim.ui.picture import check_shown, picture, play, run_of

OPENING = "first-screen"
STAGE = "stage"
NOT_OF_THE_SCENARIO = ("preset", "beat", "present", "embed", "embed_options")


def chosen_scenario(name: str, query: dict[str, str]) -> Scenario:
    """The preset called `name`, with what the link says on top."""
    keys = {k: v for k, v in query.items() if k not in NOT_OF_THE_SCENARIO}
    alone = "preset" not in query and "name" in keys  # a whole scenario in the link needs nothing below it
    return check_shown(on_preset(None if alone else name, keys))


def step_page() -> None:
    """Draw the page. Bad input gets a message in its place, and the last good picture stays."""
    frame()
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
    found = measured(STAGE, query)
    data, text, ids = found.picture if found else picture(query)
    large = presenting(STAGE, ids)
    opening = _opening((data["id"], large), query, ids, asked.get("beat"), errors)
    if large:
        play(data | {"first": opening, "present": True}, STAGE)
        return
    _heading(name, query, data["title"], ids)
    with st.container(horizontal=True, vertical_alignment="center", key="begin"):
        st.caption("dpsim shows one step of data-parallel training, number by number.", width="content")
        st.page_link("pages/lesson.py", label="New here? Begin with the lessons", icon=":material/school:")
    for message in errors:
        st.error(literal(message), icon=":material/error:")
    live_bar(STAGE, query)
    play(data | {"first": opening}, STAGE, found.trace if found else run_of(query)[0])
    if found:
        from dpsim.ui.live_results import live_results  # only who has run waits for Plotly

        live_results(found)
    with st.expander(f"The same step as text: {len(ids)} beats"):
        st.markdown(text)
    take_along(query, *(found.trace, found.ways) if found else ())


def _heading(name: str, query: str, title: str, ids: tuple[str, ...]) -> None:
    heading, choosing, lab, present = st.columns([5, 3, 1.3, 1.1], vertical_alignment="center")
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
    heading.container(key="title").text(title)
    with lab:
        asked: dict[str, str | list[str]] = dict(parse_qsl(query, keep_blank_values=True))
        st.page_link("pages/lab.py", label="Try it in the lab", icon=":material/science:", query_params=asked)
    with present:
        present_button(STAGE, ids)


def _choose() -> None:
    """Another preset: the address names it and nothing of the scenario before."""
    st.query_params.from_dict({"preset": st.session_state["preset"]})


def _opening(
    picture: tuple[str, bool], query: str, ids: tuple[str, ...], asked: str | None, errors: list[str]
) -> str:
    """The beat this picture opens on: kept for as long as it is shown, so that its data do not change.
    Another picture of the same scenario (the presenter's, one that was measured) opens where it rests."""
    opened: tuple[tuple[str, bool], str, str] | None = st.session_state.get("opened")
    if opened is None or opened[0] != picture:
        if opened is not None and opened[1] == query:
            asked = rests_on(STAGE, ids) or (opened[2] if opened[2] in ids else ids[0])
        known = asked is None or asked in ids
        if not known:
            errors.append(
                str(InputError("beat", f"must be one of {', '.join(ids[:4])}, …, {ids[-1]}", asked))
            )
        opened = (picture, query, asked if asked is not None and known else ids[0])
        st.session_state["opened"] = opened
    return opened[2]
