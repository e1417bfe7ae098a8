"""Questions in a lesson: a prediction is locked before its outcome shows, an exercise may be tried again."""

from __future__ import annotations

import streamlit as st

from dpsim.directives import Exercise, Predict
from dpsim.setting import Setting
from dpsim.ui.answers import answer
from dpsim.ui.asking import form, in_words, refused, right_in_words, verdict
from dpsim.ui.text import explained


def predict(block: Predict, place: str, setting: Setting) -> bool:
    """Draw a prediction; whether it is locked, so that what follows may be shown."""
    asked = setting.asked(block.question.asked)
    given = answer(asked, place)
    if given is None:
        form(asked, place, "Lock my prediction", ":material/lock:")
        st.caption("What happens is shown once your prediction is locked.")
        return False
    with st.container(border=True, key=f"outcome.{place}"):
        st.markdown(f"**{asked.question}**")
        predicted, actual = st.columns(2)
        predicted.markdown(f"You predicted  \n**{in_words(asked, given)}**")
        actual.markdown(f"It is  \n**{right_in_words(asked)}**")
    verdict(asked, given)
    if block.after:
        st.markdown(explained(setting.shown(block.after)), unsafe_allow_html=True)
    return True


def exercise(block: Exercise, place: str, setting: Setting) -> None:
    """Draw an exercise: graded at once, and to be tried again."""
    asked = setting.asked(block.question.asked)
    form(asked, place, "Check my answer", ":material/check:")
    given = answer(asked, place)
    if given is not None and not refused(place):
        verdict(asked, given)
