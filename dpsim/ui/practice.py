"""An exercise of the bank: a variant with numbers of its own, its worked solution, and the next one."""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from dpsim.exercises import Series, chart_of, variant
from dpsim.questions import Asked
from dpsim.ui.answers import answer, answers
from dpsim.ui.asking import form, refused, verdict


def drill(item: str, place: str) -> None:
    """Draw the exercise in a lesson: variants in an order that is the same for all, so that a class has the
    same numbers before it."""
    at = f"{place}:nth"
    nth = max(st.session_state.get(at, 0), _first_open(place))  # kept answers may come after a first look
    st.session_state[at] = nth
    if practise(item, str(nth), f"{place}#{nth}" if nth else place):
        st.button(
            "Another one, with fresh numbers", key=f"{place}:another", icon=":material/casino:",
            on_click=_next, args=(at,),
        )  # fmt: skip


def _first_open(place: str) -> int:
    """The last variant that was answered here, to come back to; the first where none was."""
    nth = 0
    while f"{place}#{nth + 1}" in answers():
        nth += 1
    return nth


def _next(at: str) -> None:
    st.session_state[at] += 1


def practise(item: str, seed: str, place: str) -> bool:
    """Draw one variant; whether it has been answered, so that its solution and its situation are shown."""
    asked = variant(item, seed)
    form(asked, place, "Check my answer", ":material/check:", item=item, seed=seed)
    given = answer(asked, place)
    if given is None or refused(place):
        return False
    verdict(asked, given)
    if asked.solution:
        with st.expander("Worked solution", icon=":material/function:"):
            st.markdown(asked.solution)
    if series := chart_of(item, seed):
        _chart(series, place)
    see(asked)
    return True


def see(asked: Asked) -> None:
    """The way to the very situation, if a scenario can express it."""
    if asked.link:
        query: dict[str, str | list[str]] = dict(parse_qsl(asked.link, keep_blank_values=True))
        st.page_link(
            "pages/lab.py", label="See exactly this on the stage", icon=":material/play_circle:",
            query_params=query,
        )  # fmt: skip


def _chart(series: Series, place: str) -> None:
    from dpsim.ui.lesson_charts import series_drawn  # only who draws a chart waits for Plotly

    drawing, said = series_drawn(series)
    st.plotly_chart(
        drawing, key=f"{place}:chart", theme="streamlit", alt=said, config={"displayModeBar": False}
    )
