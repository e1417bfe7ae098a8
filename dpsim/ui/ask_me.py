"""Below a stage: a question about what comes next, the verdict, and a step on to see it.

It knows where the stage rests from what the stage tells: where it stops, not what it passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

from dpsim.ask import ask
from dpsim.beat import Beat
from dpsim.puzzle import judged
from dpsim.questions import Asked
from dpsim.trace import Trace
from dpsim.ui.answers import answers
from dpsim.ui.asking import form, in_words, refused, right_in_words, verdict

WIDTH = 780  # pixels: lines that can be read
NOTHING_LEFT = "This is the last beat: nothing comes after it to ask about."


@dataclass(frozen=True)
class Open:
    """A question that somebody has asked for: of which beats, at which one, what is asked; `closed` is the
    beat on which the stage rested when what was asked about had come."""

    ids: tuple[str, ...]
    beat: str
    asked: Asked
    closed: str = ""

    @property
    def next(self) -> int:
        """The number of the beat that is asked about."""
        return self.ids.index(self.beat) + 1


def went_on(stage: str) -> dict[str, object]:
    """What the stage's data say of the last wish to step on; empty where there was none."""
    wish = st.session_state.get(f"goto/{stage}")
    return {"goto": wish} if wish else {}


def ask_me(
    stage: str, ids: tuple[str, ...], beat: str, told: Callable[[], tuple[Beat, ...]], trace: Trace
) -> None:
    """Draw it for the stage with the key `stage`, whose beats are `ids`, and which rests on `beat`."""
    place = f"ask/{stage}"
    now = _now(place, ids, beat)
    with st.container(width=WIDTH):
        if now is not None and not now.closed:
            _question(stage, place, now)
            return
        if now is not None:
            _came(place, now)
        _button(place, ids, beat, told, trace)


def _now(place: str, ids: tuple[str, ...], beat: str) -> Open | None:
    """The question that was asked for, closed once its answer is on the stage; None where there is none,
    and where another picture or another beat is looked at by now."""
    now: Open | None = st.session_state.get(place)
    if now is None or (now.ids == ids and beat == (now.closed or now.beat)):
        return now
    if now.ids == ids and not now.closed and ids.index(beat) >= now.next:
        st.session_state[place] = replace(now, closed=beat)
    else:
        _forget(place)
    return st.session_state.get(place)


def _button(
    place: str, ids: tuple[str, ...], beat: str, told: Callable[[], tuple[Beat, ...]], trace: Trace
) -> None:
    last = beat == ids[-1]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Ask me what comes next", icon=":material/quiz:", key=f"{place}/button", disabled=last,
            on_click=_begin, args=(place, ids, beat, told, trace),
        )  # fmt: skip
        if last:
            st.caption(NOTHING_LEFT)


def _begin(
    place: str, ids: tuple[str, ...], beat: str, told: Callable[[], tuple[Beat, ...]], trace: Trace
) -> None:
    """Put the question of a beat, with nothing of an earlier answer in it."""
    asked = ask(trace, told(), beat)
    _forget(place)
    st.session_state[place] = None if asked is None else Open(ids, beat, asked)


def _forget(place: str) -> None:
    answers().pop(place, None)
    st.session_state.pop(place, None)
    st.session_state.pop(f"{place}:refused", None)
    st.session_state.pop(f"{place}:given", None)


def _question(stage: str, place: str, now: Open) -> None:
    form(now.asked, place, "Check my answer", ":material/check:", item="")
    given = answers().get(place)
    answered = given is not None and not refused(place)
    if given is not None and answered:
        verdict(now.asked, given)
    with st.container(horizontal=True):
        st.button(
            "Step on and see" if answered else "Step on without an answer", icon=":material/skip_next:",
            key=f"{place}/on", on_click=_step_on, args=(stage, now.ids[now.next]),
        )  # fmt: skip
        st.button("Close", key=f"{place}/close", type="tertiary", on_click=_forget, args=(place,))


def _step_on(stage: str, beat: str) -> None:
    """Ask the stage to go to a beat: every wish has a number, so that it obeys each once."""
    before = st.session_state.get(f"goto/{stage}", {"nonce": 0})
    st.session_state[f"goto/{stage}"] = {"beat": beat, "nonce": before["nonce"] + 1}


def _came(place: str, now: Open) -> None:
    """What was asked about has come: what it was, and what had been said."""
    right, given = right_in_words(now.asked), answers().get(place)
    st.caption(f"The question was: {now.asked.question}")
    if given is None:
        st.info(f"It was **{right}**: you saw it.", icon=":material/visibility:")
    elif judged(now.asked, given).right:
        st.success(f"It was **{right}**, as you said.", icon=":material/check_circle:")
    else:
        said = in_words(now.asked, given)
        st.info(f"It was **{right}**; you had said **{said}**.", icon=":material/visibility:")
